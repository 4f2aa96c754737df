"""The action FollowJointTrajectory of sim_node, called as MoveIt calls it, if control_msgs is installed."""

from __future__ import annotations

import math
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("control_msgs", reason="control_msgs comes with a ROS 2 installation")

from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from rclpy.action import ActionClient
from recorder_support import RecorderProcess
from ros_support import NodeUnderTest, RosWorld, new_world
from sensor_msgs.msg import JointState
from sim_node_support import Commander, moving, time_of
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from bipedsim.model import load_robot
from bipedsim.recording import load_recording
from bipedsim.runs import rerun
from bipedsim_ros.loop import ErrorCode

pytestmark = pytest.mark.ros

ACTION = "/joint_trajectory_controller/follow_joint_trajectory"
ROBOT = load_robot("biped14")
JOINTS = [f"{side}_{joint}_pitch" for side in "lr" for joint in ("hip", "ankle")] + ["l_knee", "r_knee"]
START = ROBOT.posture[[ROBOT.joint_names.index(name) for name in JOINTS]]
BENT = START + np.array([-0.2, -0.2, -0.2, -0.2, 0.4, 0.4])
# Hanging legs follow closely, and no goal makes the robot fall.
HANGING = {"start": "hold_position", "rate": 500.0, "gantry": "{clearance: 0.2}", "priority": 0}


def seconds(t: float) -> Duration:
    return Duration(sec=math.floor(t), nanosec=round(t % 1.0 * 1e9))


def bend(t: float, **fields: Any) -> FollowJointTrajectory.Goal:
    """Return a goal that moves the joints from ``START`` to ``BENT`` within ``t`` seconds."""
    point = JointTrajectoryPoint(positions=BENT.tolist(), time_from_start=seconds(t))
    point.velocities = [0.0] * len(JOINTS)
    trajectory = JointTrajectory(joint_names=JOINTS, points=[point])
    return FollowJointTrajectory.Goal(trajectory=trajectory, **fields)


class Client:
    """A client of the action, and the joint states of the robot."""

    def __init__(self, ros: RosWorld) -> None:
        self.ros = ros
        self.states: list[JointState] = ros.collect(JointState, "/joint_states")
        self.feedback: list[Any] = []
        self._client = ActionClient(ros.node, FollowJointTrajectory, ACTION)

    def send(self, goal: FollowJointTrajectory.Goal) -> Any:
        """Send a goal and return its handle."""
        self.ros.until(self._client.server_is_ready, "the action")
        sent = self._client.send_goal_async(goal, lambda message: self.feedback.append(message.feedback))
        self.ros.until(sent.done, "an answer to the goal")
        return sent.result()

    def result(self, handle: Any) -> tuple[int, Any]:
        """Return status and result of a goal at its end."""
        future = handle.get_result_async()
        self.ros.until(future.done, "the end of the goal")
        return future.result().status, future.result().result

    def joints(self, names: Sequence[str] = tuple(JOINTS)) -> np.ndarray:
        """Return the newest measured positions."""
        angles = dict(zip(self.states[-1].name, self.states[-1].position, strict=True))
        return np.array([angles[name] for name in names])

    def pass_time(self, dt: float) -> None:
        """Wait until so much simulated time has passed."""
        end = time_of(self.states[-1]) + dt
        self.ros.until(lambda: time_of(self.states[-1]) >= end, "simulated time")


def hanging(ros: RosWorld, **parameters: Any) -> tuple[NodeUnderTest, Client]:
    client = Client(ros)
    sim = ros.start("sim_node", **(HANGING | parameters))
    ros.until(moving(client.states), "a robot that hangs")
    return sim, client


def test_error_codes_are_those_of_the_message() -> None:
    for code in ErrorCode:
        assert getattr(FollowJointTrajectory.Result, code.name) == code


@pytest.mark.parametrize("clock", ["real_time", "lock_step"])
def test_a_goal_is_reached_with_feedback(ros: RosWorld, clock: str) -> None:
    sim, client = hanging(ros, clock=clock, lock_step_timeout=0.02)
    tolerances = [JointTolerance(name=name, position=0.06) for name in JOINTS]
    handle = client.send(bend(0.6, goal_tolerance=tolerances, path_tolerance=tolerances))
    assert handle.accepted
    status, result = client.result(handle)
    assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, 0), result.error_string
    np.testing.assert_allclose(client.joints(), BENT, atol=0.06)
    assert client.feedback
    for feedback in client.feedback:
        assert tuple(feedback.joint_names) == ROBOT.joint_names
        difference = np.subtract(feedback.desired.positions, feedback.actual.positions)
        np.testing.assert_allclose(feedback.error.positions, difference, atol=1e-12)
    times = [time_of(feedback) for feedback in client.feedback]
    assert times == sorted(set(times)), "each message is of a later tick"
    assert sim.stop() == 0


def test_a_violated_path_aborts_and_the_joints_stay(ros: RosWorld) -> None:
    _, client = hanging(ros)
    limit = [JointTolerance(name="l_knee", position=1e-5)]
    status, result = client.result(client.send(bend(0.5, path_tolerance=limit)))
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, ErrorCode.PATH_TOLERANCE_VIOLATED)
    assert "l_knee" in result.error_string
    client.pass_time(0.6)
    np.testing.assert_allclose(client.joints(), START, atol=0.06, err_msg="the trajectory is not followed on")


def test_a_goal_that_is_never_exact_aborts_after_its_time(ros: RosWorld) -> None:
    _, client = hanging(ros)
    limit = [JointTolerance(name="l_knee", position=1e-9)]
    goal = bend(0.3, goal_tolerance=limit, goal_time_tolerance=seconds(0.4))
    status, result = client.result(client.send(goal))
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, ErrorCode.GOAL_TOLERANCE_VIOLATED)
    elapsed = client.feedback[-1].desired.time_from_start
    assert elapsed.sec + 1e-9 * elapsed.nanosec == pytest.approx(0.702, abs=1e-9)


def test_goals_that_do_not_fit_are_refused_with_a_reason_in_the_log(ros: RosWorld) -> None:
    sim, client = hanging(ros)
    strange, unknown, past = bend(0.5), bend(0.5), bend(0.5)
    strange.trajectory.joint_names = ["tail", *strange.trajectory.joint_names[1:]]
    unknown.path_tolerance = [JointTolerance(name="trunk", position=0.1)]
    client.pass_time(0.6)
    past.trajectory.header.stamp.nanosec = 1
    for goal, word in ((strange, "tail"), (unknown, "trunk"), (past, "ends at t = 0.5"), (bend(-0.5), "times")):
        assert not client.send(goal).accepted, word
        assert word in sim.output.rpartition("refused")[2]
    assert client.send(bend(0.5)).accepted, "the next one is served"


def test_a_cancelled_goal_holds_its_setpoint(ros: RosWorld) -> None:
    _, client = hanging(ros)
    handle = client.send(bend(2.0))
    client.pass_time(1.0)
    cancel = handle.cancel_goal_async()
    ros.until(cancel.done, "an answer to the cancellation")
    assert len(cancel.result().goals_canceling) == 1
    status, result = client.result(handle)
    assert (status, result.error_code) == (GoalStatus.STATUS_CANCELED, 0)
    client.pass_time(0.3)
    held = client.joints()
    assert 0.2 < (held - START)[-1] / 0.4 < 0.9, "half-way"
    client.pass_time(1.0)
    np.testing.assert_allclose(client.joints(), held, atol=2e-3)
    assert client.send(bend(0.5)).accepted


def test_another_goal_a_command_a_reset_and_the_end_each_end_a_goal(ros: RosWorld) -> None:
    sim, client = hanging(ros)
    first = client.send(bend(60.0))
    client.pass_time(0.1)
    second = client.send(bend(60.0))
    status, result = client.result(first)
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, ErrorCode.INVALID_GOAL)
    assert "new goal" in result.error_string
    positions = Commander(ros, topic="/forward_position_controller/commands")
    ended = second.get_result_async()
    positions.send([0.0] * ROBOT.nu, ended.done)
    assert ended.result().status == GoalStatus.STATUS_ABORTED
    assert "/forward_position_controller/commands" in ended.result().result.error_string
    third = client.send(bend(60.0))
    assert ros.call(Trigger, "/sim_node/reset").success
    status, result = client.result(third)
    assert (status, "reset" in result.error_string) == (GoalStatus.STATUS_ABORTED, True)
    fourth = client.send(bend(60.0))
    ended = fourth.get_result_async()
    ros.spin(lambda: False, 0.5)
    sim.process.send_signal(signal.SIGINT)
    ros.until(ended.done, "the result at the end of the simulation")
    assert ended.result().status == GoalStatus.STATUS_ABORTED
    assert ros.ended(sim) == 0


def test_a_paused_goal_waits_and_steps_in_lock_step_need_no_other_command(ros: RosWorld) -> None:
    _, client = hanging(ros, clock="lock_step", lock_step_timeout=0.02)
    assert ros.call(SetBool, "/sim_node/pause", data=True).success
    begin = time_of(client.states[-1])
    handle = client.send(bend(0.1))
    result = handle.get_result_async()
    ros.spin(result.done, 0.5)
    assert not result.done(), "time stands still"
    while not result.done():
        assert ros.call(Trigger, "/sim_node/step").success
        ros.spin(result.done, 0.01)
    assert result.result().status == GoalStatus.STATUS_SUCCEEDED
    ros.until(lambda: time_of(client.states[-1]) >= begin + 0.1, "the steps")


def test_lock_step_that_begins_with_a_goal_has_the_same_bits_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for i in range(2):
        world = new_world(tmp_path / str(i), monkeypatch)
        try:
            client = Client(world)
            world.start("sim_node", **(HANGING | {"start": "wait_for_command"}), clock="lock_step")
            world.until(lambda client=client: client.states, "the state at t = 0")  # type: ignore[misc]
            assert client.result(client.send(bend(0.2)))[0] == GoalStatus.STATUS_SUCCEEDED
            world.until(lambda client=client: time_of(client.states[-1]) >= 0.2, "the last state")  # type: ignore[misc]
        finally:
            world.close()
        stepped = [state for state in client.states if 0.0 < time_of(state) <= 0.2]
        assert len(stepped) == 100
        runs.append([(state.position.tobytes(), state.effort.tobytes()) for state in stepped])
    assert runs[0] == runs[1]


def test_a_replay_repeats_a_goal_to_the_bit(ros: RosWorld, tmp_path: Path) -> None:
    with RecorderProcess(ros.env, tmp_path / "bag", "robot:=biped14") as recorder:
        sim, client = hanging(ros, wait_for_recorder=True)
        assert client.result(client.send(bend(0.4)))[0] == GoalStatus.STATUS_SUCCEEDED
        assert ros.call(SetBool, "/sim_node/pause", data=True).success
        sim.stop()
        recorder.finish(signal.SIGINT)
    recorded = load_recording(tmp_path / "bag")
    again = rerun(recorded)
    assert again.first is None
    assert len(again.simulated) > 200
    knee = recorded.setpoint[:, ROBOT.joint_names.index("l_knee"), 0]
    assert np.nanmax(knee) == pytest.approx(BENT[-1])


def test_with_a_controller_manager_the_action_is_left_to_it(ros: RosWorld) -> None:
    client = Client(ros)
    ros.start("sim_node", **HANGING, command_interface="topic_based")
    ros.until(moving(client.states), "a robot that hangs")
    servers = ros.node.count_services(f"{ACTION}/_action/send_goal")
    assert servers == 0


def test_the_example_follows_and_returns(ros: RosWorld) -> None:
    hanging(ros)
    example = ros.start(ROOT / "examples" / "requests" / "follow.py")
    assert ros.ended(example) == 0, example.output
    assert "goal reached" in example.output
