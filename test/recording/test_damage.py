"""Damaged recordings: never a traceback, never a silent loss; all readable data is read."""

from __future__ import annotations

import os
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from damage_support import DAMAGES
from recording_support import T0, contact, header, joint_state, point, serialise, standing, topic, wrench

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_INCOMPLETE, EXIT_USAGE, IncompleteWarning, RecordingError
from bipedsim.recording import COLUMNS, Recording, load_recording
from bipedsim.recording.bag.reader import BagWriter

MS = 1_000_000
TICKS, FLUSH = 60, 6
KINDS = {
    "/joint_states": "sensor_msgs/msg/JointState",
    "/left_foot/wrench": "geometry_msgs/msg/WrenchStamped",
    "/left_foot/cop": "geometry_msgs/msg/PointStamped",
    "/left_foot/contact": "std_msgs/msg/Float64MultiArray",
    "/controller/effort": "std_msgs/msg/Float64",
    "/ground_truth/odom": "nav_msgs/msg/Odometry",
}


def write(path: Path, split: bool = False) -> Path:
    """Write a bag of random numbers, which zstd cannot squeeze; ``split`` moves its half into a second file."""
    rng = np.random.default_rng(1)
    bag = BagWriter(path, {"robot": "compass", "feet": "left"})
    channels = {name: bag.add_topic(topic(name, kind)) for name, kind in KINDS.items()}
    for i in range(TICKS):
        t, x = i * MS, rng.standard_normal(7).tolist()
        pose = {"position": dict(zip("xyz", x, strict=False)), "orientation": dict(zip("xyzw", x[3:], strict=True))}
        odometry = serialise(KINDS["/ground_truth/odom"], header=header(t), child_frame_id="b", pose={"pose": pose})
        values = {
            "/joint_states": joint_state(t, ["l_hip", "r_hip"], x[:2], x[2:4], x[4:6]),
            "/left_foot/wrench": wrench(t, x[:6]),
            "/left_foot/cop": point(t, x[:3]),
            "/left_foot/contact": contact([t * 1e-9, 9, 15, 1, *x[:3], *x[:6]]),
            "/controller/effort": serialise(KINDS["/controller/effort"], data=x[0]),
            "/ground_truth/odom": odometry,
        }
        for k, (name, data) in enumerate(values.items()):
            at = T0 + t + k * 1000
            bag.add_message(channels[name], at, at, data)
        if i % FLUSH == FLUSH - 1:
            bag.flush()
    bag.close()
    if split:
        other = write(path.parent / "other")
        metadata, first = path / "metadata.yaml", path / f"{path.name}_0.mcap"
        metadata.write_text(metadata.read_text().replace(f"- {first.name}", f"- {first.name}\n  - later_1.mcap"))
        (other / "other_0.mcap").rename(path / "later_1.mcap")
    return path


def differing(a: Recording, b: Recording) -> list[str]:
    """Return the columns in which two recordings are not bit-equal."""
    columns = [name for name in COLUMNS if getattr(a, name).tobytes() != getattr(b, name).tobytes()]
    shown = {name: values.tobytes() for name, values in a.readouts.items()}
    return columns + ["readouts"] * (shown != {name: values.tobytes() for name, values in b.readouts.items()})


def judge(path: Path, whole: Recording, capsys: pytest.CaptureFixture[str]) -> str:
    """Read a damaged recording with the library and with a command; return the reports of the damage."""
    told, read = "", None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            read = load_recording(path)
        except RecordingError as error:
            told = str(error)
    told = told or "; ".join(str(one.message) for one in caught if issubclass(one.category, IncompleteWarning))
    code = main(["export", str(path), "-o", str(path.parent / "table.csv")])
    err = capsys.readouterr().err
    assert "Traceback" not in err
    if read is not None and not told:
        assert differing(read, whole) == []
    assert (code in (EXIT_INCOMPLETE, EXIT_USAGE)) == bool(told)
    assert bool(err) == bool(told)
    return told


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 60), marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", ["mcap", "metadata.yaml", "npz"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told_or_without_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, damage: Callable[..., None], seeds: range
) -> None:
    bag = write(tmp_path / "bag")
    npz = tmp_path / "run.npz"
    run = standing(50)
    run.wrench += np.random.default_rng(2).standard_normal(run.wrench.shape)
    run.readouts = {"margin": np.arange(50.0)}
    run.save(npz)
    path = npz if target == "npz" else bag
    file = {"mcap": bag / "bag_0.mcap", "metadata.yaml": bag / "metadata.yaml", "npz": npz}[target]
    whole, good = load_recording(path), file.read_bytes()
    for seed in seeds:
        raw = bytearray(good)
        damage(raw, np.random.default_rng(seed))
        file.write_bytes(raw)
        judge(path, whole, capsys)


def test_what_is_whole_around_damage_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = write(tmp_path / "bag")
    whole = load_recording(bag)
    file = bag / "bag_0.mcap"
    raw = bytearray(file.read_bytes())
    third = [at - 37 for at in range(len(raw)) if raw[at : at + 8] == b"\x04\0\0\0zstd"][2]
    raw[third + 60] ^= 1
    file.write_bytes(raw)
    told = judge(bag, whole, capsys)
    assert f"the chunk at byte {third} is damaged" in told
    assert f"recovered {6 * 54} whole messages over 0.059 s, of 360 over 0.059 s (54 of 60 on /joint_states)" in told
    assert "If you have an intact copy of the bag, read that" in told
    kept = np.r_[0:12, 18:60]
    assert differing(load_recording(bag), whole.rows(kept)) == []


def test_a_cut_bag_says_how_much_of_it_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = write(tmp_path / "bag")
    whole = load_recording(bag)
    file = bag / "bag_0.mcap"
    half = file.stat().st_size // 2
    file.write_bytes(file.read_bytes()[:half])
    told = judge(bag, whole, capsys)
    assert f"the file ends at byte {half} without a footer" in told
    n = len(load_recording(bag))
    assert 0 < n < TICKS
    assert f"({n} of 60 on /joint_states)" in told
    assert differing(load_recording(bag), whole.rows(slice(0, n))) == []


def test_a_missing_split_file_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = write(tmp_path / "bag", split=True)
    first = load_recording(bag, segment=0)
    (bag / "later_1.mcap").unlink()
    assert "later_1.mcap is missing" in judge(bag, first, capsys)


def test_metadata_that_is_no_text_costs_nothing_but_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = write(tmp_path / "bag")
    whole = load_recording(bag)
    (bag / "metadata.yaml").write_bytes(b"\xff\xfe rosbag2")
    assert "metadata.yaml is damaged" in judge(bag, whole, capsys)
    assert differing(load_recording(bag), whole) == []


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
@pytest.mark.parametrize("bag", ["", "/bag_0.mcap"])
def test_what_is_no_file_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, bag: str
) -> None:
    """Opening a pipe without a writer would block forever."""
    folder = write(tmp_path / "bag")
    file = folder / "bag_0.mcap"
    file.unlink()
    {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda name: name.symlink_to("/dev/zero")}[kind](file)
    assert main(["summary", f"{folder}{bag}"]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert "bag_0.mcap: not a regular file" in said if not bag else "bag_0.mcap: " in said


@pytest.mark.parametrize("command", ["plot", "export", "animate"])
@pytest.mark.parametrize("path", ["/", "..", "."])
def test_a_folder_without_a_name_is_an_error_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, path: str
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert main([command, path]) == EXIT_USAGE
    # The folders in "/" may contain recordings, which the message then lists.
    assert capsys.readouterr().err.startswith("bipedsim")


def test_a_bag_is_written_beside_its_folder_under_the_name_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "run.1" / "bag")
    monkeypatch.chdir(tmp_path / "run.1")
    assert main(["export", "."]) == 0
    assert (tmp_path / "run.1.csv").exists()


@pytest.mark.parametrize("doubled", [False, True])
def test_parts_of_a_bag_that_are_exchanged_or_doubled_are_no_reset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], doubled: bool
) -> None:
    bag = write(tmp_path / "bag")
    whole = load_recording(bag)
    file = bag / "bag_0.mcap"
    raw = file.read_bytes()
    begins = [at - 37 for at in range(len(raw)) if raw[at : at + 8] == b"\x04\0\0\0zstd"]
    a, b, c = (raw[begins[i] : begins[i + 1]] for i in (1, 2, 3))
    middle = a + b + c + b if doubled else a + c + b
    file.write_bytes(raw[: begins[1]] + middle + raw[begins[4] :])
    told = judge(bag, whole, capsys)
    assert "messages are out of order and not used: some parts are swapped or duplicated" in told
    kept = np.arange(60) if doubled else np.r_[0:12, 18:60]
    assert differing(load_recording(bag), whole.rows(kept)) == []


def test_a_wall_clock_that_is_set_back_costs_nothing(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag", {"robot": "compass", "feet": "left"})
    channel = bag.add_topic(topic("/joint_states", KINDS["/joint_states"]))
    for i in range(TICKS):
        arrived = T0 + i * MS - (20 * MS if i >= 30 else 0)
        bag.add_message(channel, arrived, arrived, joint_state(i * MS, ["l_hip"], [i], [0.0], [0.0]))
    bag.close()
    assert load_recording(tmp_path / "bag").joint_position[:, 0].tolist() == list(range(TICKS))


def test_an_array_of_another_shape_is_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = standing(50)
    run.readouts = {"margin": np.arange(50.0)}
    run.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        arrays = dict(file)
    arrays |= {name: arrays[name][:1] for name in ("wrench", "readout_margin")}
    arrays["sole_vertices_0"] = arrays["sole_vertices_0"][:-1]
    np.savez(tmp_path / "run.npz", **arrays)
    told = judge(tmp_path / "run.npz", run, capsys)
    assert "wrench (ValueError: shape (1, " in told
    assert "readout_margin (ValueError: shape (1,) and not (50,))" in told
    assert "sole_vertices_0 (ValueError: 3 and not 4 vertices)" in told


def test_a_length_that_lies_gets_no_memory(tmp_path: Path) -> None:
    """The first record of a file of some kilobytes claims two gigabytes."""
    file = write(tmp_path / "bag") / "bag_0.mcap"
    raw = bytearray(file.read_bytes())
    raw[9:17] = (1 << 31).to_bytes(8, "little")
    file.write_bytes(raw)
    tracemalloc.start()
    try:
        with pytest.warns(IncompleteWarning):
            load_recording(file.parent)
        assert tracemalloc.get_traced_memory()[1] < 1 << 28
    finally:
        tracemalloc.stop()


def test_a_header_that_was_written_anew_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = standing(50)
    run.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        arrays = dict(file)
    text = str(arrays["header"])
    changed = text.replace('"gave_up_why": ""', '"gave_up_why": "no reason"')
    assert changed != text
    np.savez(tmp_path / "run.npz", **arrays | {"header": np.array(changed)})
    assert main(["summary", str(tmp_path / "run.npz")]) == EXIT_INCOMPLETE
    assert "a valid header" in capsys.readouterr().err
