"""The plan of a controller: as readouts, as places, in files and in bags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from recording_support import NS, joint_state, labelled, write_bag

from bipedsim.recording import PLANNED, load_recording, plan_of, without_plan
from bipedsim.recording.schema import JOINT_STATES, PLAN


def test_a_plan_is_read_from_readouts() -> None:
    assert plan_of({"zmp_margin": 0.1}) is None
    plan = plan_of(
        {
            "plan_com_x": 1.0, "plan_com_y": 2.0, "plan_com_z": 0.9, "plan_zmp_x": 0.5, "plan_zmp_y": 0.1,
            "plan_step_1_x": 0.3, "plan_step_1_y": 0.1, "plan_step_1_yaw": 0.2, "plan_step_1_foot": 1.0,
            "plan_step_2_x": np.nan, "plan_step_2_y": np.nan,
        }
    )
    assert plan is not None
    assert plan.com is not None
    assert plan.com.tolist() == [1.0, 2.0, 0.9]
    assert plan.zmp is not None
    assert plan.zmp.tolist() == [0.5, 0.1, 0.0]
    assert plan.dcm is None
    assert plan.footsteps is not None
    assert plan.footsteps[0, [0, 1, 3]].tolist() == [0.3, 0.1, 0.2]
    assert plan.feet is not None
    assert plan.feet.tolist() == [1]


def test_other_readouts_are_what_is_left() -> None:
    assert without_plan({"zmp_margin": 1, "plan_com_x": 2, "planned": 3}) == {"zmp_margin": 1, "planned": 3}


def test_a_bag_gives_the_plan_back_in_the_rows_that_it_was_made_for(tmp_path: Path) -> None:
    """Ten times a row late on the wire: its own stamp counts."""
    names, labels = ["a", "b"], ["t", "plan_com_x", "plan_com_y", "plan_step_1_x", "other"]
    messages = []
    for i in range(60):
        data = joint_state(i * NS // 100, names, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
        messages.append((JOINT_STATES, "sensor_msgs/msg/JointState", data))
        if i >= 10 and (i - 10) % 10 == 0:
            of = i - 10
            data = labelled(labels, [0.01 * of, 1.0 * of, -1.0 * of, np.nan if of < 20 else 7.0, 5.0])
            messages.append((PLAN, "std_msgs/msg/Float64MultiArray", data))
    recording = load_recording(write_bag(tmp_path / "bag", messages).path)
    assert sorted(recording.readouts) == [name for name in sorted(labels) if name.startswith(PLANNED)]
    rows = np.flatnonzero(np.isfinite(recording.readouts["plan_com_x"]))
    assert rows.tolist() == [0, 10, 20, 30, 40]
    np.testing.assert_array_equal(recording.readouts["plan_com_x"][rows], 1.0 * rows)
    np.testing.assert_array_equal(recording.readouts["plan_com_y"][rows], -1.0 * rows)
    np.testing.assert_array_equal(recording.readouts["plan_step_1_x"][rows], [np.nan, np.nan, 7.0, 7.0, 7.0])
