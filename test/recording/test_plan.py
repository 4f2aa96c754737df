"""The plan of a controller: as debug signals, as positions, in files and in bags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from recording_support import NS, joint_state, labelled, topic, write_bag

from bipedsim.recording import PLANNED, load_recording, plan_of, without_plan
from bipedsim.recording.schema import JOINT_STATES, PLAN, VERTEX_FORCES


def test_a_plan_is_read_from_readouts() -> None:
    assert plan_of({"zmp_margin": 0.1}) is None
    plan = plan_of(
        {
            "plan_com_x": 1.0,
            "plan_com_y": 2.0,
            "plan_com_z": 0.9,
            "plan_zmp_x": 0.5,
            "plan_zmp_y": 0.1,
            "plan_step_1_x": 0.3,
            "plan_step_1_y": 0.1,
            "plan_step_1_yaw": 0.2,
            "plan_step_1_foot": 1.0,
            "plan_step_2_x": np.nan,
            "plan_step_2_y": np.nan,
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
    """The plan arrives ten rows late, but its own stamp counts. It stays valid for a while, as in the controller."""
    names, labels = ["a", "b"], ["t", "plan_com_x", "plan_com_y", "plan_step_1_x", "other"]
    messages = []
    for i in range(60):
        data = joint_state(i * NS // 100, names, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
        messages.append((JOINT_STATES, "sensor_msgs/msg/JointState", data))
        if i >= 10 and (i - 10) % 10 == 0:
            of = i - 10
            data = labelled(labels, [0.01 * of, 1.0 * of, -1.0 * of, np.nan if of < 20 else 7.0, 5.0])
            messages.append((PLAN, "std_msgs/msg/Float64MultiArray", data))
    write_bag(tmp_path / "bag", messages).close()
    recording = load_recording(tmp_path / "bag")
    assert sorted(recording.readouts) == [name for name in sorted(labels) if name.startswith(PLANNED)]
    rows = np.flatnonzero(np.isfinite(recording.readouts["plan_com_x"]))
    assert rows.tolist() == [begin + i for begin in (0, 10, 20, 30, 40) for i in range(5)]
    np.testing.assert_array_equal(recording.readouts["plan_com_x"][rows], rows // 10 * 10.0)
    np.testing.assert_array_equal(recording.readouts["plan_com_y"][rows], rows // 10 * -10.0)
    step = recording.readouts["plan_step_1_x"]
    np.testing.assert_array_equal(step[rows], np.where(rows < 20, np.nan, 7.0))


def test_a_bag_whose_recorder_waited_for_a_plan_in_vain_is_read(tmp_path: Path) -> None:
    """Its file names topics without messages, as of every controller that shows no plan."""
    data = [joint_state(i * NS // 1000, ["a"], [0.0], [0.0], [0.0]) for i in range(5)]
    bag = write_bag(tmp_path / "bag", [(JOINT_STATES, "sensor_msgs/msg/JointState", one) for one in data])
    for name in (PLAN, VERTEX_FORCES.format(foot="left")):
        bag.add_topic(topic(name, "std_msgs/msg/Float64MultiArray"))
    bag.close()
    recording = load_recording(bag.path)
    assert (len(recording), recording.readouts, recording.vertex_forces) == (5, {}, {})
