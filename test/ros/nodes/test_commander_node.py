"""A velocity schedule over ROS: the same run as without it, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import Twist
from ros_support import RosWorld
from sensor_msgs.msg import JointState

from bipedsim.config.run import RunConfig
from bipedsim.runs.runner import run
from bipedsim_ros.bringup.bringup import plan

pytestmark = pytest.mark.ros

SCENARIO = """
controller: user_controllers:Steered
duration: 0.42
velocity:
  - {at: 0.0, vx: 0.5}
  - {at: 0.15, vx: -1.0, vy: 0.2}
  - {at: 0.3, wz: 0.3}
pushes:
  - {at: 0.2, duration: 0.05, impulse_over_mass: [0.0, 0.1, 0.0], frame: heading}
faults:
  - {part: joints, does: lost, at: 0.05, duration: 0.01}
  - {part: joints, does: offset, joint: r_knee, amount: 0.01, at: 0.1, duration: 0.1}
  - {part: commands, does: lost, share: 0.3, at: 0.1, duration: 0.2}
  - {part: drives, does: scaled, joint: l_knee, amount: 0.5, at: 0.15}
"""


@pytest.mark.long
def test_lock_step_with_a_schedule_repeats_the_headless_run_to_the_bit(ros: RosWorld, tmp_path: Path) -> None:
    scenario = tmp_path / "steered.yaml"
    scenario.write_text(SCENARIO)
    expected, summary = run(RunConfig(scenario=str(scenario)))
    assert summary["readouts"]["vx"] == {"min": -1.0, "max": 0.5}
    # A change between two commands, a tenth of a second apart, is in the second one.
    assert np.flatnonzero(np.diff(expected.readouts["vx"][:-1])).tolist() == [198, 298]

    states: list[Any] = ros.collect(JointState, "/joint_states")
    heard: list[Any] = ros.collect(Twist, "/cmd_vel")
    bringup = plan({"scenario": str(scenario), "clock": "lock_step", "duration": 0.42})
    assert [node.executable for node in bringup.nodes] == ["sim_node", "controller_node", "commander_node"]
    sim, controller, commander = (node.parameters for node in bringup.nodes)
    started = ros.start("sim_node", **sim)
    ros.until(lambda: states, "the state at t = 0, so that this test is connected before time begins")
    ros.start("controller_node", **controller)
    ros.start("commander_node", **{**commander, "wait_for_listeners": 2})
    assert ros.ended(started) == 0
    ros.until(lambda: states[-1].header.stamp.nanosec == 420_000_000, "the last state")
    stepped = [state for state in states if state.header.stamp.nanosec > 0]
    told = np.delete(np.arange(420), range(49, 59))
    assert [round(s.header.stamp.nanosec * 1e-6) - 1 for s in stepped] == told.tolist(), "ten were lost"
    np.testing.assert_array_equal([s.effort for s in stepped], expected.joint_effort[told])
    np.testing.assert_array_equal([s.position for s in stepped], expected.joint_position[told])
    assert 40 < summary["commands_lost"] < 80
    assert [m.linear.x for m in heard] == [0.5, 0.5, -1.0, 0.0, 0.0]


@pytest.mark.long
def test_the_schedule_begins_with_a_robots_clock_and_again_when_time_goes_back(ros: RosWorld) -> None:
    heard: list[Any] = ros.collect(Twist, "/cmd_vel")
    states = ros.node.create_publisher(JointState, "/joint_states", 1)
    ros.start("commander_node", schedule=["0.0 0.5 0.0 0.0", "0.15 -1.0 0.0 0.0"])
    ros.connected(states)

    def command_at(second: int, ms: int) -> float:
        """Return the velocity that is answered to a state of this time, which is sent until it is taken."""
        before, state = len(heard), JointState()
        state.header.stamp.sec, state.header.stamp.nanosec = second, ms * 1_000_000

        def answered() -> bool:
            states.publish(state)
            return len(heard) > before

        ros.until(answered, f"a command at {second} s and {ms} ms")
        return float(heard[-1].linear.x)

    now = 1_800_000_000
    assert [command_at(now, 0), command_at(now, 100), command_at(now, 200)] == [0.5, 0.5, -1.0]
    assert command_at(now - 60, 0) == 0.5, "its clock was set back"
    assert [command_at(0, 0), command_at(0, 200), command_at(0, 0)] == [0.5, -1.0, 0.5], "a simulation, and its reset"
