"""simulation_interfaces: the standard services, called as others call them, where the package is installed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("simulation_interfaces", reason="simulation_interfaces comes with a ROS 2 installation")

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import Pose, Twist
from nav_msgs.msg import Odometry
from rclpy.action import ActionClient
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import time_of
from simulation_interfaces import srv
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import EntityCategory, EntityFilters, Result, SimulationState, SimulatorFeatures
from std_srvs.srv import SetBool

from bipedsim_ros.nodes.simulation_services import FEATURES

pytestmark = pytest.mark.ros
BALL = '{"name": "ball", "shape": "ball", "mass": 0.4, "radius": 0.1, "position": [3.0, 0.0, 0.5]}'


def call(ros: RosWorld, service: str, **fields: Any) -> Any:
    kind = "".join(word.capitalize() for word in service.split("_"))
    return ros.call(getattr(srv, kind), f"/{service}", **fields)


def code(answer: Any) -> int:
    return int(answer.result.result)


def to(ros: RosWorld, state: int) -> Any:
    return call(ros, "set_simulation_state", state=SimulationState(state=state))


def state_of(ros: RosWorld) -> int:
    return int(call(ros, "get_simulation_state").state.state)


def test_features_say_what_there_is(ros: RosWorld) -> None:
    ros.start("sim_node", start="immediately")
    answer = call(ros, "get_simulator_features")
    assert {getattr(SimulatorFeatures, name) for name in FEATURES} == set(answer.features.features)
    assert SimulatorFeatures.SPAWNING not in answer.features.features
    spawn = call(ros, "spawn_entity")
    assert code(spawn) == Result.RESULT_FEATURE_UNSUPPORTED
    assert "scenario" in spawn.result.error_message
    assert ros.call(SetBool, "/sim_node/pause", data=True).success, "our own are there, too"


def test_states_steps_and_reset(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    sim = ros.start("sim_node", start="immediately", rate=500.0)
    ros.until(lambda: states, "a state")
    assert state_of(ros) == SimulationState.STATE_PLAYING
    assert code(to(ros, SimulationState.STATE_PLAYING)) == srv.SetSimulationState.Response.ALREADY_IN_TARGET_STATE
    refused = call(ros, "step_simulation", steps=1)
    assert code(refused) == Result.RESULT_OPERATION_FAILED
    assert "pause" in refused.result.error_message
    assert code(to(ros, SimulationState.STATE_PAUSED)) == Result.RESULT_OK
    assert state_of(ros) == SimulationState.STATE_PAUSED
    before = call(ros, "get_entity_state", entity="biped14").state.header.stamp
    assert code(call(ros, "step_simulation", steps=25)) == Result.RESULT_OK
    after = call(ros, "get_entity_state", entity="biped14").state.header.stamp
    assert (after.sec - before.sec) * 10**9 + after.nanosec - before.nanosec == 25 * 2_000_000
    half = call(ros, "reset_simulation", scope=srv.ResetSimulation.Request.SCOPE_TIME)
    assert code(half) == Result.RESULT_FEATURE_UNSUPPORTED
    assert code(call(ros, "reset_simulation")) == Result.RESULT_OK
    assert state_of(ros) == SimulationState.STATE_PAUSED, "a reset ends no pause here"
    assert code(to(ros, SimulationState.STATE_STOPPED)) == Result.RESULT_OK
    assert state_of(ros) == SimulationState.STATE_STOPPED
    assert time_of(states[-1]) == 0.0
    assert code(to(ros, SimulationState.STATE_PLAYING)) == Result.RESULT_OK
    ros.until(lambda: time_of(states[-1]) > 0.01, "time moving again")
    assert code(to(ros, 200)) == Result.RESULT_FEATURE_UNSUPPORTED
    assert code(to(ros, SimulationState.STATE_QUITTING)) == Result.RESULT_OK
    assert ros.ended(sim) == 0


def test_the_action_takes_steps_with_feedback_and_can_be_cancelled(ros: RosWorld) -> None:
    ros.start("sim_node", start="immediately", rate=500.0)
    # All feedback: a client of rclpy forgets that of a goal as soon as its result is there, which may overtake it.
    told = ros.collect(SimulateSteps.Impl.FeedbackMessage, "/simulate_steps/_action/feedback")
    client = ActionClient(ros.node, SimulateSteps, "/simulate_steps")
    ros.until(client.server_is_ready, "the action")
    feedback: list[tuple[int, int]] = []

    def take(steps: int) -> Any:
        feedback.clear()
        sent = client.send_goal_async(
            SimulateSteps.Goal(steps=steps),
            feedback_callback=lambda one: feedback.append((one.feedback.completed_steps, one.feedback.remaining_steps)),
        )
        ros.until(sent.done, "an answer to the goal")
        return sent.result()

    def ended(goal: Any) -> tuple[int, Any]:
        future = goal.get_result_async()
        ros.until(future.done, "the end of the steps")
        return future.result().status, future.result().result

    status, answer = ended(take(3))
    assert (status, code(answer)) == (GoalStatus.STATUS_ABORTED, Result.RESULT_OPERATION_FAILED)
    assert "pause" in answer.result.error_message
    to(ros, SimulationState.STATE_PAUSED)
    status, answer = ended(take(25))
    assert (status, code(answer)) == (GoalStatus.STATUS_SUCCEEDED, Result.RESULT_OK)
    ros.until(lambda: len(told) == 25, "feedback of each step")
    steps = [(one.feedback.completed_steps, one.feedback.remaining_steps) for one in told]
    assert steps == [(k, 25 - k) for k in range(1, 26)]
    assert set(feedback) <= set(steps), "the callback of a client has no other"
    goal = take(10**9)
    ros.until(lambda: len(feedback) > 5, "some steps")
    assert state_of(ros) == SimulationState.STATE_PAUSED, "services are served meanwhile"
    ros.until(goal.cancel_goal_async().done, "a cancel")
    status, answer = ended(goal)
    assert status == GoalStatus.STATUS_CANCELED
    assert "of 1000000000 steps" in answer.result.error_message
    client.destroy()


def test_entities_are_found_by_name_and_category_and_are_where_the_topics_say(ros: RosWorld) -> None:
    truth = ros.collect(Odometry, "/ground_truth/odom")
    ball = ros.collect(Odometry, "/objects/ball")
    ros.start("sim_node", start="immediately", objects=[BALL], rate=500.0)
    ros.until(lambda: truth and truth[-1].header.stamp.nanosec > 2e8, "a fall that has begun")
    to(ros, SimulationState.STATE_PAUSED)
    assert call(ros, "get_entities").entities == ["biped14", "ball"]
    objects = EntityFilters(categories=[EntityCategory(category=EntityCategory.CATEGORY_DYNAMIC_OBJECT)])
    assert call(ros, "get_entities", filters=objects).entities == ["ball"]
    assert call(ros, "get_entities", filters=EntityFilters(filter="^bi.*14$")).entities == ["biped14"]
    assert code(call(ros, "get_entities", filters=EntityFilters(filter="["))) == Result.RESULT_OPERATION_FAILED
    missing = call(ros, "get_entity_state", entity="cup")
    assert code(missing) == Result.RESULT_NOT_FOUND
    assert "biped14, ball" in missing.result.error_message
    category = call(ros, "get_entity_info", entity="ball").info.category.category
    assert category == EntityCategory.CATEGORY_DYNAMIC_OBJECT
    found = call(ros, "get_entities_states")
    ros.until(lambda: truth[-1].header.stamp == ball[-1].header.stamp == found.states[0].header.stamp, "the last tick")
    for state, odometry in zip(found.states, (truth[-1], ball[-1]), strict=True):
        assert state.header.frame_id == "odom"
        assert state.pose == odometry.pose.pose
        q = odometry.pose.pose.orientation
        # The reference rotates the twist explicitly from the axes of the body to those of the world.
        x, y, z, w = q.x, q.y, q.z, q.w
        rotation = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )
        for ours, theirs in ((state.twist.linear, "linear"), (state.twist.angular, "angular")):
            body = getattr(odometry.twist.twist, theirs)
            np.testing.assert_allclose([ours.x, ours.y, ours.z], rotation @ [body.x, body.y, body.z], atol=1e-12)


def test_the_robot_is_put_somewhere_at_the_start_alone(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    ros.start("sim_node", start="immediately", rate=500.0, tf_rate=0.0)
    ros.until(lambda: states and time_of(states[-1]) > 0.01, "time")
    request: dict[str, Any] = {"entity": "biped14"}
    place = srv.SetEntityState.Request(**request)
    place.state.pose = Pose()
    place.state.pose.position.x, place.state.pose.position.z = 2.0, 3.0
    place.state.pose.orientation.z, place.state.pose.orientation.w = math.sin(0.5), math.cos(0.5)
    place.state.twist = Twist()
    place.state.twist.linear.x = 0.5
    flags = {name: True for name in ("set_pose", "set_twist") if hasattr(place, name)}
    fields = {**request, "state": place.state, **flags}
    late = call(ros, "set_entity_state", **fields)
    assert code(late) == Result.RESULT_INCORRECT_STATE
    assert "at t = 0 alone" in late.result.error_message
    to(ros, SimulationState.STATE_STOPPED)
    assert code(call(ros, "set_entity_state", **fields)) == Result.RESULT_OK
    begun = call(ros, "get_entity_state", entity="biped14").state
    assert (begun.pose.position.x, begun.pose.position.z) == (2.0, 3.0)
    assert begun.twist.linear.x == pytest.approx(0.5)
    assert begun.twist.linear.y == pytest.approx(0.0, abs=1e-15)
    assert code(call(ros, "step_simulation", steps=50)) == Result.RESULT_OK
    fallen = call(ros, "get_entity_state", entity="biped14").state
    assert fallen.pose.position.z < 3.0
    place.state.pose.orientation.w = 5.0
    to(ros, SimulationState.STATE_STOPPED)
    wrong = call(ros, "set_entity_state", **fields)
    assert code(wrong) == srv.SetEntityState.Response.INVALID_POSE
    assert "quaternion" in wrong.result.error_message
    place.state.header.frame_id = "l_sole"
    assert code(call(ros, "set_entity_state", **fields)) == Result.RESULT_FEATURE_UNSUPPORTED
    assert code(call(ros, "reset_simulation")) == Result.RESULT_OK
    home = call(ros, "get_entity_state", entity="biped14").state.pose.position
    assert abs(home.x) < 0.1, "a reset takes it home"
    assert home.z < 1.0


def test_steps_in_lock_step_are_those_of_a_run(ros: RosWorld, tmp_path: Path) -> None:
    """A run with pauses and steps has the same bits as an uninterrupted one."""
    states = ros.collect(JointState, "/joint_states")
    params = {"mode": "squat", "squat_delay": 0.05}
    controller = {f"posture__{name}": value for name, value in params.items()}
    ros.start("controller_node", lock_step=True, rate=500.0, **controller)
    sim = ros.start("sim_node", clock="lock_step", rate=500.0)
    ros.until(lambda: states and time_of(states[-1]) > 0.1, "a run")
    to(ros, SimulationState.STATE_PAUSED)
    for _ in range(3):
        assert code(call(ros, "step_simulation", steps=20)) == Result.RESULT_OK
    to(ros, SimulationState.STATE_PLAYING)
    ros.until(lambda: time_of(states[-1]) >= 0.6, "its end")
    to(ros, SimulationState.STATE_STOPPED)
    stepped = {round(500 * time_of(one)): list(one.position) for one in states}
    count = len(states)
    to(ros, SimulationState.STATE_PLAYING)
    ros.until(lambda: time_of(states[-1]) >= 0.6 and len(states) > count + 300, "the run once more")
    to(ros, SimulationState.STATE_PAUSED)
    alone = {round(500 * time_of(one)): list(one.position) for one in states[count:]}
    assert all(stepped[tick] == alone[tick] for tick in range(1, 300))
    assert sim.stop() == 0
