"""The bag on the disk: read by us and by third-party libraries, whole, unfinished and torn."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import shutil
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
import zstandard
from hypothesis import HealthCheck, given, settings, strategies as st
from mcap.opcode import Opcode
from mcap.reader import make_reader
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, Writer
from recording_support import NS, STORE, T0, joint_state, topic, wrench, write_bag
from refusals import refusal
from rosbags import rosbag2
from rosbags.rosbag2 import Reader

from bipedsim.errors import IncompleteWarning, RecordingError
from bipedsim.recording.bag.reader import Bag, BagWriter, Qos

WRENCH = "geometry_msgs/msg/WrenchStamped"
JOINTS = "sensor_msgs/msg/JointState"


def some_messages(n: int) -> list[tuple[str, str, bytes]]:
    """Return ``n`` ticks of two topics whose numbers identify their tick."""
    result = []
    for i in range(n):
        result.append(("/wrench", WRENCH, wrench(i * 1_000_000, [i, 0, 0, 0, 0, 0])))
        result.append(("/joint_states", JOINTS, joint_state(i * 1_000_000, ["a"], [i], [], [0.5])))
    return result


def foreign_file(folder: Path, messages: list[tuple[str, str, bytes]], **options: Any) -> Path:
    """Write an uncompressed file with the ``mcap`` package alone, 1 ms of log time apart."""
    path = folder / "foreign.mcap"
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE, **options)
        writer.start(profile="ros2", library="another recorder")
        channels: dict[str, int] = {}
        for i, (name, msgtype, data) in enumerate(messages):
            if name not in channels:
                schema = writer.register_schema(msgtype, "ros2msg", topic(name, msgtype).definition.encode())
                channels[name] = writer.register_channel(name, "cdr", schema)
            writer.add_message(channels[name], T0 + i * 1_000_000, data, T0 + i * 1_000_000)
        writer.finish()
    return path


def contents(bag: Bag) -> dict[str, list[bytes]]:
    return {name: [m.data for m in messages] for name, messages in bag.messages.items()}


def expected(messages: list[tuple[str, str, bytes]]) -> dict[str, list[bytes]]:
    result: dict[str, list[bytes]] = {}
    for name, _msgtype, data in messages:
        result.setdefault(name, []).append(data)
    return result


def compressed(path: Path, messages: list[tuple[str, str, bytes]], mode: Any) -> Path:
    """Write a bag with the ``rosbags`` package, as ``ros2 bag record --compression-mode``."""
    writer = rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP)
    writer.set_compression(mode, rosbag2.CompressionFormat.ZSTD)
    with writer as bag:
        channels = {}
        for i, (name, msgtype, data) in enumerate(messages):
            if name not in channels:
                channels[name] = bag.add_connection(name, msgtype, typestore=STORE)
            bag.write(channels[name], T0 + i * 1_000_000, data)
    return path


@pytest.mark.parametrize("mode", ["MESSAGE", "STORAGE"])
def test_a_bag_with_compressed_messages_is_read(mode: str, tmp_path: Path) -> None:
    messages = some_messages(300)
    path = compressed(tmp_path / "bag", messages, getattr(rosbag2.CompressionMode, mode))
    assert contents(Bag(path)) == expected(messages)


def test_a_damaged_compressed_message_is_left_out_with_a_warning(tmp_path: Path) -> None:
    """Of three, one has a wrong length and one is cut."""
    messages = some_messages(300)
    frames = [(name, kind, zstandard.compress(data)) for name, kind, data in messages]
    # The byte behind the magic number says that the length of the content follows, here with eight bytes.
    frames[5] = (*frames[5][:2], frames[5][2][:4] + b"\xe0" + b"\xff" * 30)
    frames[9] = (*frames[9][:2], frames[9][2][:-9])
    write_bag(tmp_path / "bag", frames).close()
    metadata = tmp_path / "bag" / "metadata.yaml"
    text = metadata.read_text(encoding="utf-8").replace("compression_mode: ''", "compression_mode: MESSAGE")
    metadata.write_text(text.replace("compression_format: ''", "compression_format: zstd"), encoding="utf-8")
    bag = Bag(tmp_path / "bag")
    with pytest.warns(IncompleteWarning):
        assert contents(bag) == expected([message for i, message in enumerate(messages) if i not in (5, 9)])
    metadata.write_text(text.replace("compression_format: ''", "compression_format: lz4"), encoding="utf-8")
    with refusal(RecordingError, place="compression_format", value="lz4"):
        Bag(tmp_path / "bag")


def test_a_bag_of_compressed_files_is_refused_until_they_are_decompressed(tmp_path: Path) -> None:
    path = compressed(tmp_path / "bag", some_messages(10), rosbag2.CompressionMode.FILE)
    (file,) = path.glob("*.zstd")
    for which in (path, file):
        with refusal(RecordingError, place=str(which)):
            Bag(which)
    file.with_suffix("").write_bytes(zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).read())
    assert contents(Bag(path)) == expected(some_messages(10))


# The end of a file during recording: the records DataEnd and Footer, and the magic bytes.
ENDING = 13 + 29 + 8

chunks = st.lists(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=60)), max_size=6), max_size=5)


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(chunks)
def test_what_goes_in_comes_out_after_every_flush(tmp_path: Path, plan: list[list[tuple[int, bytes]]]) -> None:
    path = tmp_path / "bag"
    shutil.rmtree(path, ignore_errors=True)
    bag = BagWriter(path)
    channels: dict[int, int] = {}
    written: dict[str, list[tuple[int, bytes]]] = {}
    now = T0
    for chunk in plan:
        for number, data in chunk:
            name = f"/topic{number}"
            if number not in channels:
                channels[number] = bag.add_topic(topic(name, WRENCH))
            now += 1000
            bag.add_message(channels[number], now, now - 5, data)
            written.setdefault(name, []).append((now, data))
        bag.flush()
        read = Bag(path)
        assert {n: [(m.log_time, m.data) for m in ms] for n, ms in read.messages.items()} == written
        assert all(m.publish_time == m.log_time - 5 for ms in read.messages.values() for m in ms)
        assert "stopped before" in read.recovered
    bag.close()
    read = Bag(path)
    assert {n: [(m.log_time, m.data) for m in ms] for n, ms in read.messages.items()} == written
    assert read.recovered == ""


@pytest.mark.parametrize("finished", [True, False])
def test_other_readers_open_it_whole_and_unfinished(tmp_path: Path, finished: bool) -> None:
    ros2 = pytest.importorskip("mcap_ros2.reader", reason="mcap-ros2-support is not installed")
    messages = some_messages(300)
    qos = (Qos("best_effort", "transient_local", "keep_last", 7),)
    bag = BagWriter(tmp_path / "bag", {"robot": "r"})
    channels = {name: bag.add_topic(topic(name, kind, qos)) for name, kind, _ in messages[:2]}
    for i, (name, _kind, data) in enumerate(messages):
        bag.add_message(channels[name], T0 + i, T0 + i, data, i)
        if i % 100 == 99:
            bag.flush()
    if finished:
        bag.close()
    bag.release()
    with Reader(tmp_path / "bag") as r:
        assert {c.topic: c.msgtype for c in r.connections} == {"/wrench": WRENCH, "/joint_states": JOINTS}
        for connection in r.connections:
            assert connection.digest == STORE.hash_rihs01(connection.msgtype)
            profile = connection.ext.offered_qos_profiles[0]
            assert (profile.reliability.name, profile.durability.name, profile.depth) == (
                "BEST_EFFORT",
                "TRANSIENT_LOCAL",
                7,
            )
        got = [(c.topic, t, bytes(data)) for c, t, data in r.messages(r.connections)]
        if finished:  # else rosbags uses metadata.yaml, which is written once a second
            assert r.message_count == 600
            assert r.start_time == T0
            assert r.end_time == T0 + 600
    assert got == [(name, T0 + i, data) for i, (name, _kind, data) in enumerate(messages)]
    file = tmp_path / "bag" / "bag_0.mcap"
    decoded = list(ros2.read_ros2_messages(str(file)))
    assert [m.ros_msg.wrench.force.x for m in decoded if m.channel.topic == "/wrench"] == list(range(300))
    assert [m.ros_msg.position[0] for m in decoded if m.channel.topic == "/joint_states"] == list(range(300))
    with file.open("rb") as handle:
        names = [type(record).__name__ for record in StreamReader(handle, validate_crcs=True).records]
    assert names.count("Message") == 600
    assert names.count("ChunkIndex") == (6 if finished else 0)
    assert names[-1] == "Footer"


@pytest.mark.filterwarnings("ignore:start_time is deprecated")  # its successor is too new for Python 3.10's mcap
def test_the_summary_points_at_what_it_says(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", some_messages(50))
    bag.close()
    with (tmp_path / "bag" / "bag_0.mcap").open("rb") as handle:
        reader = make_reader(handle, validate_crcs=True)
        summary = reader.get_summary()
        assert summary.statistics.message_count == 100
        assert summary.statistics.message_start_time == T0
        assert summary.statistics.message_end_time == T0 + 99_000_000
        assert sorted(summary.statistics.channel_message_counts.values()) == [50, 50]
        (metadata,) = reader.iter_metadata()
        inner = yaml.safe_load(metadata.metadata["serialized_metadata"])
        # Seeking by time goes through the chunk and message indexes.
        late = list(reader.iter_messages(topics=["/wrench"], start_time=T0 + 90_000_000))
    assert len(late) == 5
    outer = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert inner == outer
    assert outer["version"] == 9
    assert outer["message_count"] == 100
    assert outer["duration"]["nanoseconds"] == 99_000_000


def test_a_file_cut_at_any_byte_gives_its_whole_messages(tmp_path: Path) -> None:
    messages = some_messages(30)
    bag = BagWriter(tmp_path / "bag")
    channels = {name: bag.add_topic(topic(name, kind)) for name, kind, _ in messages[:2]}
    ends = []
    file = tmp_path / "bag" / "bag_0.mcap"
    for i, (name, _kind, data) in enumerate(messages):
        bag.add_message(channels[name], T0 + i, T0 + i, data)
        if i % 10 == 9:
            bag.flush()
            ends.append(file.stat().st_size)
    bag.close()
    raw = file.read_bytes()
    everything = expected(messages)
    cut = tmp_path / "cut.mcap"
    most = 0
    assert len(ends) == 6
    for size in range(8, len(raw), 37):
        cut.write_bytes(raw[:size])
        read = Bag(cut)
        got = contents(read)
        count = sum(map(len, got.values()))
        assert all(got[name] == everything[name][: len(got[name])] for name in got)
        assert count >= most
        most = count
        # A truncated file as it was on the disk ends with a chunk and a provisional ending. Only the chunk counts.
        assert count >= 10 * sum(end - ENDING <= size for end in ends)
        # Behind the data only summaries follow, and a cut there costs no message.
        assert read.recovered or count == 60
    assert most == 60


@pytest.mark.parametrize("chunked", [True, False])
def test_a_bag_of_another_recorder_cut_short_gives_what_is_whole(tmp_path: Path, chunked: bool) -> None:
    messages = some_messages(100)
    file = foreign_file(tmp_path, messages, chunk_size=4000, use_chunking=chunked)
    raw = file.read_bytes()
    at = raw.index(wrench(50_000_000, [50, 0, 0, 0, 0, 0])) + 10
    whole = 100
    if chunked:
        with file.open("rb") as handle:
            indexes = make_reader(handle).get_summary().chunk_indexes
        last = max(c.message_end_time for c in indexes if c.chunk_start_offset + c.chunk_length <= at)
        whole = (last - T0) // 1_000_000 + 1
        assert 50 < whole < 100
    file.write_bytes(raw[:at])
    read = Bag(file)
    assert contents(read) == expected(messages[:whole])
    assert f"recovered {whole} whole messages over {(whole - 1) * 1e-3:.3f} s" in read.recovered
    assert f"the file ends at byte {at} without a footer" in read.recovered


def test_a_write_torn_over_the_old_summary_keeps_all_older_messages(tmp_path: Path) -> None:
    messages = some_messages(200)
    bag = write_bag(tmp_path / "bag", messages[:200])
    file = tmp_path / "bag" / "bag_0.mcap"
    before = file.read_bytes()
    channel = bag.add_topic(topic("/late", WRENCH))
    for i in range(100):
        bag.add_message(channel, T0 + NS + i, T0 + NS + i, np.random.default_rng(i).bytes(60))
    bag.flush()
    bag.release()
    after = file.read_bytes()
    same = next(i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    for size in range(same, len(after), 301):
        file.write_bytes(after[:size] + before[size:])
        got = contents(Bag(tmp_path / "bag"))
        assert got["/wrench"] == expected(messages[:200])["/wrench"]
        assert len(got.get("/late", [])) in (0, 100)


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    # Uncompressed, so that nothing but the checksum can notice.
    file = foreign_file(tmp_path, some_messages(100))
    raw = bytearray(file.read_bytes())
    raw[raw.index(wrench(50_000_000, [50, 0, 0, 0, 0, 0])) + 40] ^= 1
    file.write_bytes(raw)
    read = Bag(file)
    assert "its checksum does not match" in read.recovered
    assert not any(read.messages.values())


def test_the_final_summary_leaves_no_rest_behind_the_footer(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag")
    channel = bag.add_topic(topic("/wrench", WRENCH))
    for i in range(51):
        bag.add_message(channel, T0 + i, T0 + i, b"")
        bag.flush()
        with (tmp_path / "bag" / "bag_0.mcap").open("rb") as handle:
            assert len([r for r in StreamReader(handle).records if type(r).__name__ == "Message"]) == i + 1
            assert handle.read() == b""
    bag.close()
    with (tmp_path / "bag" / "bag_0.mcap").open("rb") as handle:
        records = list(StreamReader(handle, validate_crcs=True).records)
        assert handle.read() == b""
    assert sum(type(record).__name__ == "Message" for record in records) == 51


def test_chunk_indexes_point_at_their_message_indexes(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", some_messages(20)).close()
    raw = (tmp_path / "bag" / "bag_0.mcap").read_bytes()
    with (tmp_path / "bag" / "bag_0.mcap").open("rb") as handle:
        (chunk,) = make_reader(handle).get_summary().chunk_indexes
    assert raw[chunk.chunk_start_offset] == Opcode.CHUNK
    assert len(chunk.message_index_offsets) == 2
    for channel, at in chunk.message_index_offsets.items():
        opcode, length, number = struct.unpack_from("<BQH", raw, at)
        assert (opcode, number) == (Opcode.MESSAGE_INDEX, channel)
        assert length == 6 + 16 * 20
    first = min(chunk.message_index_offsets.values())
    assert first == chunk.chunk_start_offset + chunk.chunk_length


@pytest.mark.long
def test_the_indexes_of_many_chunks_take_little_memory_and_are_all_there(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag")
    channels = [bag.add_topic(topic(f"/wrench_{i}", WRENCH)) for i in range(20)]

    def chunks(numbers: range) -> None:
        for i in numbers:
            for channel in channels:
                bag.add_message(channel, T0 + i, T0 + i, b"something")
            bag.flush()

    chunks(range(500))
    tracemalloc.start()
    chunks(range(500, 2500))
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown / 2000 < 250, "bytes a chunk: a record of an index has 290, the library's own object 3000"
    bag.close()
    raw = (tmp_path / "bag" / "bag_0.mcap").read_bytes()
    with (tmp_path / "bag" / "bag_0.mcap").open("rb") as handle:
        indexes = make_reader(handle).get_summary().chunk_indexes
    assert [c.message_start_time - T0 for c in indexes] == list(range(2500))
    assert all(raw[c.chunk_start_offset] == Opcode.CHUNK and len(c.message_index_offsets) == 20 for c in indexes)


def test_a_bag_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with refusal(place=tmp_path / "bag"):
        BagWriter(tmp_path / "bag")


def open_in(folder: Path) -> list[str]:
    """Return the files in a folder that this process has open."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        # That of the folder itself has gone.
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(one))
    return [path for path in found if path.startswith(str(folder))]


def test_a_bag_on_a_full_disk_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with refusal(RecordingError, place=tmp_path / "bag", cause=OSError):
            BagWriter(tmp_path / "bag")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "bag").exists()
    assert not open_in(tmp_path)
    BagWriter(tmp_path / "bag").close()
    assert not open_in(tmp_path)


def test_a_bag_that_cannot_be_finished_leaves_no_file_open_and_is_readable(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag")
    channel = bag.add_topic(topic("/wrench", WRENCH))
    bag.add_message(channel, T0, T0, wrench(0, [0.0] * 6))
    bag.flush()
    bag.add_message(channel, T0 + 1, T0 + 1, wrench(1, [0.0] * 6))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        assert open_in(tmp_path)
        with pytest.raises(OSError, match="File too large"):
            bag.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not open_in(tmp_path)
    bag.release()
    assert len(Bag(tmp_path / "bag").messages["/wrench"]) == 1


def test_a_bag_under_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refusal(place=tmp_path / "file" / "bag", cause=NotADirectoryError):
        BagWriter(tmp_path / "file" / "bag")


@pytest.mark.parametrize(
    "make",
    [
        lambda p: None,
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(b"PK\x03\x04 not a bag"),
        lambda p: p.mkdir(),
        lambda p: (p.mkdir(), (p / "x.db3").touch()),
    ],
)
def test_what_is_no_bag_is_named(tmp_path: Path, make: object) -> None:
    path = tmp_path / "thing"
    make(path)  # type: ignore[operator]
    with refusal(RecordingError, place=path):
        Bag(path)


def test_messages_of_two_channels_of_a_topic_keep_their_order(tmp_path: Path) -> None:
    """As of a publisher that has begun anew, or of two."""
    bag = BagWriter(tmp_path / "bag")
    channels = [bag.add_topic(topic("/wrench", WRENCH)) for _ in range(2)]
    data = [wrench(i, [i, 0, 0, 0, 0, 0]) for i in range(6)]
    for i, raw in enumerate(data):
        bag.add_message(channels[i % 2], T0 + i, T0 + i, raw)
    bag.close()
    assert contents(Bag(tmp_path / "bag")) == {"/wrench": data}


def test_messages_that_were_counted_and_are_not_there_are_missed(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", some_messages(3)).close()
    metadata = tmp_path / "bag" / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("message_count: 3", "message_count: 5", 1))
    assert "recovered 6" in Bag(tmp_path / "bag").recovered


def test_metadata_is_there_from_the_first_flush_and_custom_data_comes_back(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", some_messages(3), {"robot": "talos"}).release()
    read = Bag(tmp_path / "bag")
    assert read.custom_data == {"robot": "talos"}
    topics = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert [t["topic_metadata"]["name"] for t in topics["topics_with_message_count"]] == ["/wrench", "/joint_states"]


def test_damaged_metadata_do_not_hide_the_messages(tmp_path: Path) -> None:
    messages = some_messages(3)
    write_bag(tmp_path / "bag", messages).close()
    (tmp_path / "bag" / "metadata.yaml").write_text("rosbag2: [")
    assert contents(Bag(tmp_path / "bag")) == expected(messages)


@pytest.mark.parametrize("named", [True, False])
def test_the_files_of_a_split_bag_follow_one_another_as_they_were_written(tmp_path: Path, named: bool) -> None:
    """In rosbag2, the file _10 follows _9. Files in metadata.yaml may have any names."""
    messages, folder = some_messages(12), tmp_path / "bag"
    folder.mkdir()
    names = [f"bag_{i}.mcap" if not named else f"{chr(ord('z') - i)}.mcap" for i in range(12)]
    for i, name in enumerate(names):
        part = BagWriter(tmp_path / name)
        for j in (2 * i, 2 * i + 1):
            topic_name, msgtype, data = messages[j]
            part.add_message(part.add_topic(topic(topic_name, msgtype)), T0 + j, T0 + j, data)
        part.close()
        (tmp_path / name / f"{name}_0.mcap").rename(folder / name)
    if named:
        whole = yaml.safe_load((tmp_path / names[0] / "metadata.yaml").read_text())
        whole["rosbag2_bagfile_information"]["relative_file_paths"] = names
        (folder / "metadata.yaml").write_text(yaml.safe_dump(whole))
    bag = Bag(folder)
    assert contents(bag) == expected(messages)
    assert "out of order" not in bag.recovered
