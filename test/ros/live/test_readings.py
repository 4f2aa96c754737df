"""The state that a viewer builds from topics: the time of the simulator, to the bit, and a real robot alone."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from ros_support import RosWorld
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64, Float64MultiArray, MultiArrayDimension, String, UInt8MultiArray
from std_srvs.srv import SetBool, Trigger

from bipedsim.ground import Ground, get_ground
from bipedsim.model import load_robot
from bipedsim.runs import describe_run
from bipedsim.sim import Simulator
from bipedsim_ros.live.presence import Presence, RunningRobot
from bipedsim_ros.live.readings import Readings
from bipedsim_ros.wire import BundleWriter, publisher, topics

pytestmark = pytest.mark.ros

ROBOT = load_robot("biped14")


def look(ros: RosWorld, readings: Readings, sim: Simulator) -> None:
    """Receive messages until the state has the time of the simulator: joint states, ground truth, and the command.

    They arrive one after the other, and each is identified by its content.
    """

    def there() -> bool:
        readings.take(0.0)
        instant = readings.instant(())
        same = readings.t == pytest.approx(sim.t, abs=1e-9)
        return same and np.array_equal(instant.q, sim.q) and instant.joint_command is not None

    ros.until(there, f"messages of t = {sim.t}")


def forgets_all(readings: Readings, new: Readings) -> None:
    """Reset the readings, and compare them with new ones."""
    readings.forget()
    said, says = vars(readings.instant(())), vars(new.instant(()))
    assert said.keys() == says.keys()
    for name, value in said.items():
        np.testing.assert_equal(value, says[name], err_msg=name)
    np.testing.assert_equal((readings.t, readings.fallen, readings.health), (new.t, new.fallen, new.health))


@pytest.mark.long
def test_an_instant_is_that_of_the_simulator_to_the_bit(ros: RosWorld) -> None:
    told: list[str] = []
    ros.start("sim_node", start="immediately", timeout_mode="zero", real_time_factor=0.1, ground="tiles")
    presence = Presence(ros.node, "", "flat", lambda: "", told.append)
    ros.until(lambda: presence.look() and presence.there, "what runs")
    found = presence.found
    assert found is not None
    assert (found.robot.name, found.simulated) == ("biped14", True)
    readings = Readings(ros.node, found, 1.0, told.append)
    ros.until(lambda: [readings.take(0.0)] and readings.t > 0.0, "a begin")
    ros.call(SetBool, "/sim_node/pause", data=True)
    # The state is of the same tick, for any earlier messages.
    said = ros.call(Trigger, "/sim_node/step").message
    ticks = round(1000 * float(said.split()[2]))
    sim = Simulator(ROBOT, get_ground("tiles"))
    sim.reset(sim.ground.place(ROBOT.q_nominal))
    for _ in range(ticks):
        sim.step(np.zeros(ROBOT.nu))
    look(ros, readings, sim)
    instant, contact = readings.instant(()), sim.contact
    np.testing.assert_array_equal(instant.q, sim.q)
    np.testing.assert_array_equal(instant.v, sim.v)
    for name in ("wrench", "mode", "clamped", "sliding", "cop_margin", "friction_used", "n_vertices"):
        np.testing.assert_array_equal(getattr(instant, name), getattr(contact, name), err_msg=name)
    np.testing.assert_allclose(instant.cop, contact.cop, atol=1e-12)
    np.testing.assert_array_equal(instant.joint_command, np.zeros(ROBOT.nu))
    assert (instant.estimated, instant.notes, told) == (False, (), [])
    np.testing.assert_array_equal(found.ground.arrays().point, sim.ground.arrays().point)
    # A viewer that starts while time stands still shows the same.
    late = Readings(ros.node, found, 1.0, told.append)
    look(ros, late, sim)
    np.testing.assert_array_equal(late.instant(()).q, sim.q)
    forgets_all(late, Readings(ros.node, found, 1.0, told.append))


def test_a_push_is_shown_while_it_acts(ros: RosWorld) -> None:
    ros.start("sim_node", start="immediately", real_time_factor=0.1, pushes=["0.05 0.1 30 -40 0 r_foot"])
    presence = Presence(ros.node, "", "flat", lambda: "", print)
    ros.until(lambda: presence.look() and presence.pushes, "a push")
    assert presence.found is not None
    readings = Readings(ros.node, presence.found, 1.0, print)
    readings.t = 0.04
    assert readings.instant(presence.pushes).push == ()
    readings.t = 0.1
    (push,) = readings.instant(presence.pushes).push
    assert push.force.tolist() == [30.0, -40.0, 0.0]
    assert push.frame == "r_foot"
    readings.t = 0.2
    assert readings.instant(presence.pushes).push == ()


def test_pushes_are_those_of_the_run_that_began_last(ros: RosWorld) -> None:
    presence = Presence(ros.node, "", "flat", lambda: "", print)
    run = publisher(ros.node, topics.RUN)
    begun = describe_run(Simulator(ROBOT))
    push = {"t": 0.1, "after": 0.0, "duration": 0.2, "wrench": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], "body": "base"}

    def seen(seed: int) -> bool:
        return presence.look() is not None and presence.found is not None and presence.found.run["seed"] == seed

    for seed in (1, 2):
        run.publish(String(data=json.dumps({**begun, "seed": seed})))
        ros.until(lambda seed=seed: seen(seed), "a run")
        assert presence.pushes == []
        run.publish(String(data=json.dumps({"push": push})))
        ros.until(lambda: presence.look() and presence.pushes, "a push")
        assert presence.pushes == [push]


@pytest.mark.long
def test_a_robot_alone_is_where_its_odometry_says_and_as_its_imu_says_without(ros: RosWorld) -> None:
    node = Node("viewer", context=ros.context, namespace="/r1", enable_rosout=False)
    presence = Presence(node, "", "flat", lambda: "biped14", print)
    joints = ros.node.create_publisher(JointState, "/r1/joint_states", 1)
    imu = ros.node.create_publisher(Imu, "/r1/imu/data", 1)
    odometry = ros.node.create_publisher(Odometry, "/r1/odom", 1)
    ankles = [ros.node.create_publisher(WrenchStamped, f"/r1/{s.name}_foot_ft/wrench", 1) for s in ROBOT.soles]
    readout = ros.node.create_publisher(Float64, "/r1/controller/lean", 1)
    elsewhere = ros.node.create_publisher(Float64, "/controller/other", 1)
    plan = ros.node.create_publisher(Float64MultiArray, "/r1/plan/readouts", 1)
    planned = Float64MultiArray(data=[1.0, 0.2, 0.1, 0.8])
    planned.layout.dim = [MultiArrayDimension(label="t,plan_com_x,plan_com_y,plan_com_z", size=4, stride=4)]
    ros.until(presence.look, "a robot that the controller names")
    found = presence.found
    assert found is not None
    assert (found.robot.name, found.simulated) == ("biped14", False)
    # Its IMU is turned against its base.
    mounted = ROBOT.placement_joint_imu * pin.SE3(pin.rpy.rpyToMatrix(0.5, -1.0, 2.0), np.zeros(3))
    found = replace(found, robot=replace(found.robot, placement_joint_imu=mounted))
    warned: list[str] = []
    readings = Readings(node, found, -1.0, warned.append)
    names = list(reversed(ROBOT.joint_names))
    state = JointState(name=names, position=ROBOT.posture[::-1].tolist(), velocity=[0.1] * ROBOT.nu)
    leaning = pin.Quaternion(pin.rpy.rpyToMatrix(0.1, -0.2, 0.7))
    measured = Imu()
    (
        measured.orientation.x,
        measured.orientation.y,
        measured.orientation.z,
        measured.orientation.w,
    ) = pin.Quaternion(leaning.toRotationMatrix() @ mounted.rotation).coeffs().tolist()
    wrench = WrenchStamped()
    foot = ROBOT.model.inertias[ROBOT.ankle_joint_ids[0]].mass * 9.81
    wrench.wrench.force.z = foot - 200.0

    def send(pose: bool) -> None:
        state.header.stamp.sec += 1
        joints.publish(state)
        imu.publish(measured)
        readout.publish(Float64(data=0.25))
        elsewhere.publish(Float64(data=1.0))
        plan.publish(planned)
        for one in ankles:
            one.publish(wrench)
        if pose:
            where = Odometry()
            where.pose.pose.position.x, where.pose.pose.position.z = 3.0, 0.9
            odometry.publish(where)

    def known(pose: bool, seconds: float = 10.0) -> bool:
        send(pose)
        readings.take(seconds)
        instant = readings.instant(())
        shown = bool(instant.readouts) and instant.plan is not None
        return instant.placed and shown and bool(np.isfinite(instant.wrench).all())

    ros.until(lambda: known(False), "all but a place")
    instant = readings.instant(())
    assert ROBOT.imu_joint_id == 1
    np.testing.assert_allclose(pin.XYZQUATToSE3(instant.q[:7]).rotation, leaning.toRotationMatrix(), atol=1e-9)
    np.testing.assert_array_equal(instant.q[ROBOT.idx_q], ROBOT.posture)
    assert instant.readouts == {"lean": 0.25}
    assert instant.plan is not None
    assert instant.plan.com is not None
    assert (instant.plan.com.tolist(), instant.plan.footsteps) == ([0.2, 0.1, 0.8], None)
    assert instant.wrench is not None
    assert instant.cop is not None
    np.testing.assert_allclose(instant.wrench[:, 2], 200.0, atol=0.1)
    assert np.isfinite(instant.cop).all()
    assert instant.mode is not None
    assert (instant.mode == -1).all()
    assert any("nothing on /odom" in note for note in instant.notes)
    ros.until(lambda: known(True) and readings.instant(()).estimated, "odometry")
    assert readings.instant(()).q[:3].tolist() == [3.0, 0.0, 0.9]
    assert readings.instant(()).notes == ()
    # Nothing of this robot remains for another one. Its clock starts anew as well.
    state.header.stamp.sec = 2_000_000_000
    ros.until(lambda: known(True) and 2.0 <= readings.t < 1000.0, "stamps of a wall clock, and how it goes on")
    readings.fallen = True
    forgets_all(readings, Readings(node, found, -1.0, warned.append))
    state.header.stamp.sec += 10_000
    ros.until(lambda: known(True), "the next robot")
    assert 0.0 <= readings.t < 1000.0

    # Incomplete and invalid messages are reported and have no other effect.
    state.name, state.position, state.velocity = names[1:], state.position[1:], state.velocity[1:]
    ros.until(lambda: not known(True) and any(names[0] in note for note in readings.lacks), "the joint that lacks")
    assert not readings.instant(()).placed
    assert warned == []
    node.destroy_node()


def test_what_is_no_message_of_this_version_is_told_and_dropped(ros: RosWorld) -> None:
    sim = Simulator(ROBOT)
    found = RunningRobot(ROBOT, Ground.flat(), run=json.loads(json.dumps(describe_run(sim))))
    warned: list[str] = []
    readings = Readings(ros.node, found, 1.0, warned.append)
    shown = ros.node.create_publisher(UInt8MultiArray, "/sim_node/shown", 1)
    contact = serialize_message(Float64MultiArray(data=[1.0, 2.0]))
    standing = topics.ODOMETRY.encoder("odom, base_link").write(0, np.array([3.0, 0, 1, 0, 0, 0, 1]), np.zeros(6))
    parts = [("/left_foot/contact", contact), ("/of_another_version", b"?"), ("/ground_truth/odom", standing)]
    whole = BundleWriter().write(parts)
    torn = deserialize_message(whole, UInt8MultiArray)
    torn.data = torn.data[:-1]

    def told(message: Any, count: int) -> bool:
        shown.publish(message)
        readings.take(0.0)
        return len(warned) >= count

    ros.until(lambda: told(whole, 1), "a warning")
    assert warned[0].startswith("message on /left_foot/contact dropped: it has 2 numbers, and this version has")
    assert readings.instant(()).mode is not None
    # The valid parts of the message are shown.
    assert readings.instant(()).q[0] == 3.0
    ros.until(lambda: told(torn, 2), "another warning")
    assert re.search(r"/sim_node/shown dropped: it holds \d+ bytes, and its layout says \d+", warned[1])


def test_readouts_that_come_together_are_not_taken_one_by_one(ros: RosWorld) -> None:
    """The signals come first from a third-party controller, then from ours.

    Signals of a further node are received as before.
    """
    readings = Readings(ros.node, RunningRobot(ROBOT, Ground.flat()), 1.0, print)
    readings.t = 1.0
    lean, mine = (ros.node.create_publisher(Float64, f"/controller/{name}", 1) for name in ("lean", "mine"))
    clock = itertools.count(1.0)

    def said(**wanted: float) -> bool:
        lean.publish(Float64(data=1.0))
        mine.publish(Float64(data=2.0))
        readings.take(next(clock))
        return dict(readings.instant(()).readouts) == wanted

    ros.until(lambda: said(lean=1.0, mine=2.0), "each by itself")
    shown = ros.node.create_publisher(Float64MultiArray, "/controller_node/shown", 1)

    def together(names: str, *values: float) -> None:
        message = Float64MultiArray(data=[0.5, *values])
        message.layout.dim = [MultiArrayDimension(label=f"t,{names}", size=1 + len(values), stride=1 + len(values))]
        shown.publish(message)

    ros.until(lambda: [together("lean,plan_com_x", 3.0, 0.2)] and said(lean=3.0, mine=2.0), "together")
    ros.until(lambda: not lean.get_subscription_count(), "nobody listens to what comes together")
    assert mine.get_subscription_count() == 1
    plan = readings.instant(()).plan
    assert plan is None or plan.com is None, "a place needs two coordinates"
    # Another controller has others.
    ros.until(lambda: [together("roll", 4.0)] and said(roll=4.0, mine=2.0, lean=1.0), "those of another controller")
    readings.close()
