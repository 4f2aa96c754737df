"""Gains of a controller change while it runs, by parameters of its node."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from recorder_support import RecorderProcess
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import moving, time_of
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from bipedsim.config import ParameterChange, RunConfig
from bipedsim.control.posture.posture import PostureController, PostureParams
from bipedsim.model import load_robot
from bipedsim.recording import Recording, load_recording
from bipedsim.runs import Push, Scenario, prepare, rerun, run
from bipedsim.sim import Simulator

PUSH = Push(0.01, 0.05, (0.0, 30.0, 0.0))


@pytest.mark.ros
def test_a_change_acts_at_the_logged_time_with_the_bits_of_one_process(ros: RosWorld) -> None:
    """In lock step. The change comes in a pause, so that the run does not end before it."""
    states = ros.collect(JointState, "/joint_states")
    changes = ros.collect(String, "/controller_node/changes")
    ros.start("sim_node", clock="lock_step", posture="", drop_height=0.01)
    ros.start("controller_node", controller="posture", lock_step=True)
    ros.until(moving(states), "steps")
    assert ros.call(SetBool, "/sim_node/pause", data=True).success

    def put(name: str, value: float) -> bool:
        wanted = Parameter(name=name, value=ParameterValue(type=3, double_value=value))
        (result,) = ros.call(SetParameters, "/controller_node/set_parameters", parameters=[wanted]).results
        return bool(result.successful)

    assert put("posture.stiffness", 20.0)
    assert not put("posture.stiffness", -1.0)
    assert not put("posture.squat_depth", 0.1), "it is part of a motion that is planned at the start"
    assert ros.call(SetBool, "/sim_node/pause", data=False).success
    ros.until(lambda: changes, "the change")
    change = json.loads(changes[0].data)
    assert (change["name"], change["value"]) == ("stiffness", 20.0)
    tuned_at = 1e-9 * change["stamp"]
    ros.until(lambda: time_of(states[-1]) > tuned_at + 0.2, "states after the change")
    measured = {round(time_of(state), 6): np.array(state.position) for state in states}
    robot, params = load_robot("biped14"), PostureParams()
    sim, controller = Simulator(robot), PostureController(robot, params, 1e-3)
    q = sim.q.copy()
    q[2] += 0.01
    observation = sim.reset(q)
    controller.reset(observation)
    while sim.t < tuned_at + 0.2:
        if round(sim.t, 6) == round(tuned_at, 6):
            controller.tune(replace(params, stiffness=20.0))
        observation = sim.step(controller.update(observation))
        np.testing.assert_array_equal(observation.joint_position, measured[round(sim.t, 6)])


def assert_same_bits(recorded: Recording, again: Recording) -> None:
    """Compare what a run recorded at the ticks that both have."""
    n = min(len(recorded), len(again))
    assert n > 100
    for name in ("joint_position", "joint_velocity", "joint_command", "wrench", "base_pose"):
        np.testing.assert_array_equal(getattr(recorded, name)[:n], getattr(again, name)[:n], err_msg=name)


@pytest.mark.ros
def test_recorded_changes_repeat_the_run_to_the_bit_with_and_without_its_controller(
    ros: RosWorld, tmp_path: Path
) -> None:
    """One change is scheduled, one comes by a parameter in a pause; a reset keeps both."""
    states = ros.collect(JointState, "/joint_states")
    changes = ros.collect(String, "/controller_node/changes")
    with RecorderProcess(ros.env, tmp_path / "bag", "robot:=biped14") as recorder:
        sim = ros.start("sim_node", clock="lock_step", posture="", wait_for_recorder=True, pushes=["0.01 0.05 0 30 0"])
        scheduled = ["0.05 damping 0.2"]
        ros.start("controller_node", controller="posture", lock_step=True, wait_for_listeners=2, changes=scheduled)
        ros.until(lambda: changes and time_of(states[-1]) > 0.1, "the scheduled change")
        assert ros.call(SetBool, "/sim_node/pause", data=True).success
        wanted = Parameter(name="posture.stiffness", value=ParameterValue(type=3, double_value=20.0))
        assert ros.call(SetParameters, "/controller_node/set_parameters", parameters=[wanted]).results[0].successful
        assert ros.call(SetBool, "/sim_node/pause", data=False).success
        ros.until(lambda: len(changes) > 1, "the change by a parameter")
        tuned_at = 1e-9 * json.loads(changes[1].data)["stamp"]
        ros.until(lambda: time_of(states[-1]) > tuned_at + 0.1, "states after the change")
        assert ros.call(Trigger, "/sim_node/reset").success
        ros.until(lambda: len(changes) >= 4 and 0.1 < time_of(states[-1]) < tuned_at, "states after the reset")
        assert ros.call(SetBool, "/sim_node/pause", data=True).success
        sim.stop()
        recorder.finish(signal.SIGINT)
    damping, stiffness = (
        ParameterChange(at, name, value) for at, name, value in ((0.05, "damping", 0.2), (tuned_at, "stiffness", 20.0))
    )
    for segment, expected in (
        (0, [damping, stiffness]),
        (1, [replace(stiffness, at=0.0), replace(damping, at=0.0)]),
    ):
        recorded = load_recording(tmp_path / "bag", segment)
        found = sorted((change.name, change.value, round(change.at, 6)) for change in recorded.changes)
        assert found == sorted((change.name, change.value, round(change.at, 6)) for change in expected)
        assert rerun(recorded).first is None
        stepped = recorded.rows(recorded.t > 0.0)
        scenario = Scenario(changes=recorded.changes, pushes=(PUSH,))
        settings = RunConfig(robot="biped14", controller="posture", duration=stepped.t[-1])
        again, _ = run(prepare(settings, scenario))
        assert_same_bits(stepped, again)
        other, _ = run(prepare(settings, replace(scenario, changes=())))
        with pytest.raises(AssertionError):
            assert_same_bits(stepped, other)


@pytest.mark.ros
def test_gains_of_the_drives_change_at_the_logged_time_and_the_recording_repeats_to_the_bit(
    ros: RosWorld, tmp_path: Path
) -> None:
    """The drives are ideal, so the recorded effort must be that of the recorded gains.

    Without a controller, lock step waits only for the recorder, so that the bag is complete on a busy machine.
    """
    states = ros.collect(JointState, "/joint_states")
    changes = ros.collect(String, "/sim_node/changes")
    name = "drive_stiffness.l_knee"
    with RecorderProcess(ros.env, tmp_path / "bag", "robot:=biped14") as recorder:
        settings = {"start": "hold_position", "wait_for_recorder": True, "lock_step_timeout": 1e-3}
        node = ros.start("sim_node", clock="lock_step", **settings)
        ros.until(lambda: moving(states)() and time_of(states[-1]) > 0.1, "steps")

        def put(name: str, value: float) -> str:
            wanted = Parameter(name=name, value=ParameterValue(type=3, double_value=value))
            (result,) = ros.call(SetParameters, "/sim_node/set_parameters", parameters=[wanted]).results
            return "" if result.successful else str(result.reason)

        def pause(on: bool) -> None:
            assert ros.call(SetBool, "/sim_node/pause", data=on).success

        pause(True)
        assert put(name, 400.0) == ""
        assert name in put(name, -1.0)
        assert put("drive_stiffness.tail", 1.0)
        assert "rate: " in put("rate", 500.0)
        ros.until(lambda: changes, "the change")
        change = json.loads(changes[0].data)
        assert (change["name"], change["value"]) == (name, 400.0)
        changed_at = 1e-9 * change["stamp"]
        pause(False)
        ros.until(lambda: time_of(states[-1]) > changed_at + 0.2, "states after the change")
        pause(True)
        assert ros.call(Trigger, "/sim_node/reset").success
        ros.until(lambda: len(changes) == 2, "the change again after the reset")
        ros.until(lambda: time_of(states[-1]) > 0.15, "states after the reset")
        pause(True)
        node.stop()
        recorder.finish(signal.SIGINT)
    for segment, at in ((0, changed_at), (1, 0.0)):
        run = load_recording(tmp_path / "bag", segment)
        assert [replace(found, at=round(found.at, 6)) for found in run.changes] == [
            ParameterChange(round(at, 6), name, 400.0, "drives")
        ]
        knee = run.joint_names.index("l_knee")
        stiffness = run.setpoint[:, knee, 3]
        # The row at t contains the command of the step that ends at t.
        later = run.t > at + 0.5e-3
        assert (stiffness[later & (run.t > 0.0)] == 400.0).all()
        assert not (stiffness[~later] == 400.0).any()
        position, velocity, effort, kp, kd = run.setpoint[1:, :, :5].transpose(2, 0, 1)
        ended = np.flatnonzero(run.t[:-1] > 0.0)
        expected = effort + kp * (position - run.joint_position[:-1]) + kd * (velocity - run.joint_velocity[:-1])
        np.testing.assert_allclose(run.joint_effort[1:][ended], expected[ended], atol=1e-9)
        assert rerun(run).first is None
