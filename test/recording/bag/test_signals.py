"""Topics of a user's own nodes in a bag: their columns, and why others have none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording_support import STORE, header, joint_state, labelled, serialise, wrench, write_bag

from bipedsim.cli.main import main
from bipedsim.errors import IncompleteWarning, OmittedWarning
from bipedsim.recording import load_recording
from bipedsim.recording.bag import segments
from bipedsim.recording.schema import USER_TOPICS

JOINTS = "sensor_msgs/msg/JointState"
MS = 1_000_000
ROWS = 40


def primitive(kind: str, value: Any) -> tuple[str, bytes]:
    """Return type and bytes of a message of std_msgs with one field."""
    msgtype = f"std_msgs/msg/{kind}"
    return msgtype, bytes(STORE.serialize_cdr(STORE.types[msgtype](data=value), msgtype))


def numbers(kind: str, values: Any) -> tuple[str, bytes]:
    """Return type and bytes of an array of std_msgs without labels."""
    msgtype, types = f"std_msgs/msg/{kind}", STORE.types
    layout = types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    return msgtype, bytes(STORE.serialize_cdr(types[msgtype](layout=layout, data=values), msgtype))


def pose(i: int) -> bytes:
    position, orientation = dict(zip("xyz", (i, 2.0, 3.0), strict=True)), dict(zip("xyzw", (0, 0, 0, 1.0), strict=True))
    return serialise(
        "geometry_msgs/msg/PoseStamped",
        header=header(i * MS),
        pose={"position": position, "orientation": orientation},
    )


def sent(i: int) -> dict[str, tuple[str, bytes]]:
    """Return what the user's nodes send in row ``i``, by topic."""
    return {
        "/float64": primitive("Float64", 0.5 * i),
        "/float32": primitive("Float32", 0.25 * i),
        "/int8": primitive("Int8", -i),
        "/int32": primitive("Int32", -100_000 * i),
        "/uint16": primitive("UInt16", 60_000 + i),
        "/uint64": primitive("UInt64", 2**63 + 2**20 * i),
        "/bool": primitive("Bool", bool(i % 2)),
        "/array": numbers("Float32MultiArray", np.array([i, -i], dtype=np.float32)),
        "/ints": numbers("Int32MultiArray", np.array([i, 7, -i], dtype=np.int32)),
        "/named": ("std_msgs/msg/Float64MultiArray", labelled(["a", "b"], [i, 2.0 * i])),
        "/wrench": ("geometry_msgs/msg/WrenchStamped", wrench(1, [i, 2, 3, 4, 5, 6])),
        "/pose": ("geometry_msgs/msg/PoseStamped", pose(i)),
        "/arm": (JOINTS, joint_state(1, ["elbow", "wrist"], [i, 2 * i], [], [0, -i])),
    }


EXPECTED = {
    "/float64": 0.5,
    "/float32": 0.25,
    "/int8": -1.0,
    "/int32": -100_000.0,
    "/array[0]": 1.0,
    "/array[1]": -1.0,
    "/ints[2]": -1.0,
    "/named[a]": 1.0,
    "/named[b]": 2.0,
    "/wrench.wrench.force.x": 1.0,
    "/pose.pose.position.x": 1.0,
    "/arm.position[elbow]": 1.0,
    "/arm.position[wrist]": 2.0,
    "/arm.effort[wrist]": -1.0,
}
"""Columns that are a multiple of the row."""


def bag_of(path: Path, topics: dict[int, dict[str, tuple[str, bytes]]], recorded: str | None = None) -> Path:
    """Write joint states, with the topics of each row behind them."""
    messages = []
    for i in range(ROWS):
        messages.append(("/joint_states", JOINTS, joint_state(i * MS, ["knee"], [i], [0], [0])))
        messages += [(name, *message) for name, message in topics.get(i, {}).items()]
    names = ",".join(dict.fromkeys(name for row in topics.values() for name in row))
    write_bag(path, messages, {USER_TOPICS: names if recorded is None else recorded}).close()
    return path


def test_numbers_of_all_types_become_columns_in_the_row_in_which_they_arrived(tmp_path: Path) -> None:
    readouts = load_recording(bag_of(tmp_path / "bag", {i: sent(i) for i in range(ROWS)})).readouts
    rows = np.arange(ROWS, dtype=np.float64)
    for name, factor in EXPECTED.items():
        np.testing.assert_array_equal(readouts[name], factor * rows, err_msg=name)
    np.testing.assert_array_equal(readouts["/uint16"], 60_000 + rows)
    np.testing.assert_array_equal(readouts["/uint64"], 2.0**63 + 2.0**20 * rows)
    np.testing.assert_array_equal(readouts["/bool"], rows % 2)
    np.testing.assert_array_equal(readouts["/ints[1]"], 7.0)
    np.testing.assert_array_equal(readouts["/pose.pose.orientation.w"], 1.0)
    assert not [name for name in readouts if "velocity" in name or "stamp" in name or "layout" in name]


def test_a_slow_topic_has_numbers_in_its_own_rows_only(tmp_path: Path) -> None:
    readouts = load_recording(bag_of(tmp_path / "bag", {i: sent(i) for i in (10, 30)})).readouts
    for name, factor in EXPECTED.items():
        expected = np.full(ROWS, np.nan)
        expected[[10, 30]] = factor * 10, factor * 30
        np.testing.assert_array_equal(readouts[name], expected, err_msg=name)


def test_only_topics_of_the_user_become_columns(tmp_path: Path) -> None:
    path = bag_of(tmp_path / "bag", {5: sent(5)}, recorded="/float64")
    assert list(load_recording(path).readouts) == ["/float64"]


def test_the_columns_survive_a_file_and_are_in_table_and_figure(tmp_path: Path) -> None:
    path = bag_of(tmp_path / "bag", {i: sent(i) for i in range(ROWS)})
    run = load_recording(path)
    run.save(tmp_path / "run.npz")
    again = load_recording(tmp_path / "run.npz")
    assert {name: values.tobytes() for name, values in again.readouts.items()} == {
        name: values.tobytes() for name, values in run.readouts.items()
    }
    assert main(["export", str(path), "-o", str(tmp_path / "run.csv")]) == 0
    names, *lines = (tmp_path / "run.csv").read_text().splitlines()
    at = names.split(",").index("/wrench.wrench.force.x")
    assert [float(line.split(",")[at]) for line in lines] == list(range(ROWS))
    assert main(["plot", str(path), "--panels", "readouts", "-o", str(tmp_path / "run.html")]) == 0
    assert "/wrench.wrench.force.x" in (tmp_path / "run.html").read_text()


WITHOUT_COLUMNS = {
    "/text": primitive("String", "42"),
    "/image": numbers("UInt8MultiArray", np.zeros(300, dtype=np.uint8)),
    "/path": (
        "nav_msgs/msg/Path",
        bytes(
            STORE.serialize_cdr(
                STORE.types["nav_msgs/msg/Path"](
                    header=STORE.types["std_msgs/msg/Header"](
                        stamp=STORE.types["builtin_interfaces/msg/Time"](sec=0, nanosec=0), frame_id=""
                    ),
                    poses=[],
                ),
                "nav_msgs/msg/Path",
            )
        ),
    ),
}


@pytest.mark.parametrize("name", WITHOUT_COLUMNS)
def test_a_topic_without_columns_is_named_with_the_reason(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bag_of(tmp_path / "bag", {3: {name: WITHOUT_COLUMNS[name], "/float64": primitive("Float64", 1.0)}})
    with pytest.warns(OmittedWarning) as caught:
        run = load_recording(path)
    assert len(caught) == 1
    assert any(name in note for note in run.notes)
    assert list(run.readouts) == ["/float64"]
    assert main(["export", str(path), "-o", str(tmp_path / "run.csv")]) == 0, "no data are lost"
    assert capsys.readouterr().err.count(f"{name} ") == 1


def test_a_message_of_another_size_is_left_out_and_counted(tmp_path: Path) -> None:
    topics = {
        i: {"/array": numbers("Float64MultiArray", np.full(3 if i == 7 else 2, i, dtype=np.float64))}
        for i in range(ROWS)
    }
    with pytest.warns(IncompleteWarning):
        run = load_recording(bag_of(tmp_path / "bag", topics))
    expected = np.arange(ROWS, dtype=np.float64)
    expected[7] = np.nan
    np.testing.assert_array_equal(run.readouts["/array[1]"], expected)


def test_the_columns_do_not_depend_on_the_size_of_the_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bag_of(tmp_path / "bag", {i: sent(i) for i in range(0, ROWS, 3)})
    whole = load_recording(path).readouts
    monkeypatch.setattr(segments, "ROWS", 8)
    assert {name: values.tobytes() for name, values in load_recording(path).readouts.items()} == {
        name: values.tobytes() for name, values in whole.items()
    }
