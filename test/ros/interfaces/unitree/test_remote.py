"""The remote control: values that the vendor's program reads from its bytes."""

from __future__ import annotations

import struct

import pytest
from refusals import refusal

from bipedsim_ros.interfaces.unitree.remote import BUTTONS, PRESS_S, RemoteControl, read_script


def buttons(data: bytes) -> set[str]:
    """Return the pressed buttons, as deploy_real.py reads them."""
    (keys,) = struct.unpack("<H", data[2:4])
    return {name for bit, name in enumerate(BUTTONS) if keys >> bit & 1}


def stick(data: bytes, at: int) -> float:
    """Return the stick at a place."""
    return float(struct.unpack("<f", data[at : at + 4])[0])


def test_a_button_is_down_for_a_while() -> None:
    remote = RemoteControl()
    assert remote.state(0.0) == bytes(40)
    remote.apply("start, A", 1.0)
    assert buttons(remote.state(1.0)) == {"start", "A"}
    remote.apply("A", 1.2)
    assert buttons(remote.state(1.0 + PRESS_S)) == {"A"}
    assert remote.state(1.2 + PRESS_S) == bytes(40)


@pytest.mark.parametrize(("bit", "name"), [(2, "start"), (3, "select"), (8, "A"), (15, "left")])
def test_bits_are_the_vendors(bit: int, name: str) -> None:
    remote = RemoteControl()
    remote.apply(name, 0.0)
    assert struct.unpack("<H", remote.state(0.0)[2:4]) == (1 << bit,)


def test_sticks_stay_where_they_are_until_they_are_let_go() -> None:
    remote = RemoteControl()
    remote.apply("ly=0.5 lx=-0.25 rx=1 ry=-1", 0.0)
    data = remote.state(100.0)
    assert [stick(data, at) for at in (4, 8, 12, 20)] == [-0.25, 1.0, -1.0, 0.5]
    remote.apply("release", 0.0)
    assert remote.state(0.0) == bytes(40)


def test_a_velocity_moves_the_sticks_ahead_and_to_the_right() -> None:
    """deploy_real.py takes ly for ahead, -lx for left and -rx for turning left."""
    remote = RemoteControl()
    remote.move(0.5, 0.25, 3.0)
    data = remote.state(0.0)
    assert (stick(data, 20), -stick(data, 4), -stick(data, 8)) == (0.5, 0.25, 1.0)


def test_what_the_gantry_is_to_do_moves_no_stick() -> None:
    remote = RemoteControl()
    assert remote.apply("gantry=lower A gantry=release", 0.0) == ("lower", "release")
    assert buttons(remote.state(0.0)) == {"A"}


@pytest.mark.parametrize("words", ["gantry=drop", "gantry", "begin", "ly", "ly=2", "ly=nan", "A=1", "lz=0.1"])
def test_a_wrong_word_is_refused_and_changes_nothing(words: str) -> None:
    remote = RemoteControl()
    with refusal(place="remote", value=words):
        remote.apply(f"A ly=0.5 {words}", 0.0)
    assert remote.state(0.0) == bytes(40)


def test_a_script_is_in_the_order_of_time() -> None:
    script = read_script(["5 A", "0.5 start", "6 ly=0.6 lx=-0.1"])
    assert [(said.at, said.words) for said in script] == [(0.5, "start"), (5.0, "A"), (6.0, "ly=0.6 lx=-0.1")]


@pytest.mark.parametrize("text", ["start", "-1 start", "nan A", "1", "1 jump"])
def test_a_script_that_says_nothing_is_refused(text: str) -> None:
    with refusal(place="remote"):
        read_script([text])
