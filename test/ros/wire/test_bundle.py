"""Messages in a bundle: the output equals the input, at any offset."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from hypothesis import given, strategies as st

from bipedsim_ros.wire import BundleReader, BundleWriter, MessageError

PARTS = st.lists(st.tuples(st.text("abc/", min_size=1), st.binary(max_size=40)), max_size=5)


@given(st.lists(PARTS, min_size=1, max_size=4), st.integers(0, 3))
def test_what_was_put_in_comes_out(messages: list[list[tuple[str, bytes]]], behind: int) -> None:
    writer, reader = BundleWriter(), BundleReader()
    # The second time its places are known; other senders may leave some bytes behind the last part.
    for parts in [one for one in messages for _ in range(2)]:
        assert reader.read(writer.write(parts) + bytes(behind)) == parts
        changed = [(name, bytes(255 - x for x in data)) for name, data in parts]
        assert reader.read(writer.write(changed)) == changed


def test_a_bundle_that_is_torn_is_refused_also_after_a_sound_one() -> None:
    writer, reader = BundleWriter(), BundleReader()
    sound = writer.write([("/a", b"12345678"), ("/b", b"1234")])
    assert len(reader.read(sound)) == 2
    for size in range(8, len(sound) - 1):
        with pytest.raises(MessageError):
            reader.read(sound[:size])
    assert reader.read(sound)[1] == ("/b", b"1234")


def test_another_layout_of_the_same_length_is_seen() -> None:
    writer, reader = BundleWriter(), BundleReader()
    for parts in ([("/a", b"12345678"), ("/b", b"1234")], [("/a", b"1234"), ("/b", b"12345678")]):
        assert reader.read(writer.write(parts)) == parts
