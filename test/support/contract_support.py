"""Messages of a robot at rest, derived by hand and written without ROS, so that tests can change anything."""

from __future__ import annotations

import functools
import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from recording_support import NS, STORE, T0, header, joint_state, serialise, wrench

from bipedsim.model import load_robot
from bipedsim.recording.bag.reader import Qos
from bipedsim_ros.contract.evidence import Endpoint, Evidence, TopicEvidence
from bipedsim_ros.contract.robot_contract import Contract, robot_contract

ROBOT = load_robot("biped14")
CONTRACT = robot_contract(ROBOT)
ROWS = 150
JOINTS, IMU, LEFT, RIGHT = (topic.found_as for topic in CONTRACT.sensors)
COMMANDS = CONTRACT.commands.found_as


@dataclass
class Stream:
    """All that the robot sends on one topic.

    Attributes:
        msgtype, frame: Of the messages.
        publishers, subscriptions: Of the topic.
        stamps: (n,) [ns].
        sent: (n,) [ns], on the same clock.
        values: Fields of the message, (n, k) each.
        names: Of joints.
    """

    msgtype: str
    frame: str
    stamps: Any
    values: dict[str, Any]
    sent: Any
    publishers: list[Endpoint] = field(default_factory=lambda: [Endpoint("/robot", Qos())])
    subscriptions: list[Endpoint] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@dataclass
class PlayedRobot:
    """biped14 standing, its weight on the middle of both soles; tests change any message.

    Its knees drift by 12 mrad, slow enough to be at rest, so that velocities can be judged.

    Attributes:
        streams: By topic.
        others: Further topics of the graph.
        command_joints: Joints that the effort controller reports.
    """

    streams: dict[str, Stream]
    others: dict[str, str] = field(default_factory=dict)
    command_joints: tuple[str, ...] | None = None

    def evidence(self) -> Evidence:
        """Return the observations of a watcher."""
        topics = {}
        for name, s in self.streams.items():
            # Copied, so that rows are contiguous; and unspoilt streams are serialised once for all tests.
            values = {key: np.ascontiguousarray(value) for key, value in s.values.items()}
            topics[name] = TopicEvidence(
                (s.msgtype,),
                tuple(s.publishers),
                tuple(s.subscriptions),
                s.sent.tolist(),
                (s.sent + 100_000).tolist(),
                _messages(pickle.dumps((s.msgtype, s.frame, s.stamps, values, s.names))),
            )
        return Evidence("played", True, topics, self.others, self.command_joints)


@functools.cache
def _messages(stream: bytes) -> list[bytes]:
    """Return the messages of a pickled stream, serialised."""
    msgtype, frame, times, values, names = pickle.loads(stream)
    rows = [{key: value[i] for key, value in values.items()} for i in range(len(times))]
    stamps = [int(t) for t in times]
    if msgtype.endswith("JointState"):
        return [joint_state(t, names, **row) for t, row in zip(stamps, rows, strict=True)]
    if msgtype.endswith("WrenchStamped"):
        return [wrench(t, row["wrench"], frame) for t, row in zip(stamps, rows, strict=True)]
    if msgtype.endswith("Imu"):
        return [_imu(t, frame, row) for t, row in zip(stamps, rows, strict=True)]
    if msgtype.endswith("Bool"):
        return [serialise(msgtype, data=bool(row["data"])) for row in rows]
    return [_multi_array(row["data"]) for row in rows]


def _multi_array(values: Any) -> bytes:
    kinds = STORE.types
    layout = kinds["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    message = kinds["std_msgs/msg/Float64MultiArray"](layout=layout, data=np.asarray(values, dtype=np.float64))
    return bytes(STORE.serialize_cdr(message, "std_msgs/msg/Float64MultiArray"))


def _imu(stamp: int, frame: str, row: dict[str, Any]) -> bytes:
    def named(values: Any, axes: str) -> dict[str, float]:
        return dict(zip(axes, map(float, values), strict=True))

    return serialise(
        "sensor_msgs/msg/Imu",
        header=header(stamp, frame),
        orientation=named(row["orientation"], "xyzw"),
        angular_velocity=named(row["angular_velocity"], "xyz"),
        linear_acceleration=named(row["linear_acceleration"], "xyz"),
        orientation_covariance=np.array(row["orientation_covariance"], dtype=np.float64),
    )


def good_robot(contract: Contract = CONTRACT) -> PlayedRobot:
    """Return a fault-free robot with an active controller."""
    robot = contract.robot
    stamps = T0 + np.arange(ROWS) * NS // 1000
    sent = stamps + 100_000
    t = np.arange(ROWS)[:, None] * 1e-3
    drift = np.array([0.08 * ("knee" in name) for name in robot.joint_names])
    drift += [-0.04 * (name.endswith(("hip_pitch", "ankle_pitch"))) for name in robot.joint_names]
    effort = np.linspace(-0.5, 0.6, robot.nu) * robot.effort_limit * np.ones((ROWS, 1))
    ones = np.ones((ROWS, 1))
    streams = {
        JOINTS: Stream(
            "sensor_msgs/msg/JointState",
            "base_link",
            stamps.copy(),
            {"position": robot.posture + t * drift, "velocity": ones * drift, "effort": effort},
            sent,
            names=list(robot.joint_names),
        ),
    }
    frames = [(contract.imu, robot.imu_joint_id, robot.placement_joint_imu)]
    frames += [(t, imu.joint_id, imu.placement_joint_imu) for t, imu in zip(contract.imus, robot.imus, strict=True)]
    for topic, joint, placement in frames:
        pose = _placements(contract).oMi[joint] * placement
        values = {
            "orientation": ones * pin.SE3ToXYZQUAT(pose)[3:],
            "angular_velocity": np.zeros((ROWS, 3)),
            "linear_acceleration": ones * 9.81 * pose.rotation[2],
            "orientation_covariance": np.zeros((ROWS, 9)),
        }
        streams[topic.found_as] = Stream(topic.msgtype, topic.frame, stamps.copy(), values, sent)
    for topic in contract.switches:
        closed = np.ones(ROWS, dtype=np.bool_)
        streams[topic.found_as] = Stream(topic.msgtype, "", stamps.copy(), {"data": closed}, sent - 50_000)
    for topic, measured in zip(contract.wrenches, ankle_wrenches(contract), strict=True):
        streams[topic.found_as] = Stream(topic.msgtype, topic.frame, stamps.copy(), {"wrench": ones * measured}, sent)
    streams[COMMANDS] = Stream(
        "std_msgs/msg/Float64MultiArray",
        "",
        stamps.copy(),
        {"data": effort.copy()},
        sent + 100_000,
        [Endpoint("/controller", Qos(depth=1))],
        [Endpoint("/robot", Qos("best_effort"))],
    )
    return PlayedRobot(streams)


def _placements(contract: Contract) -> pin.Data:
    data = contract.robot.model.createData()
    pin.forwardKinematics(contract.robot.model, data, contract.robot.q_nominal)
    return data


def ankle_wrenches(contract: Contract) -> list[Any]:
    """Return the ankle wrenches when each foot supports half the weight at the middle of its sole."""
    robot, data = contract.robot, _placements(contract)
    result = []
    for sole, joint, placement in zip(robot.soles, robot.ankle_joint_ids, robot.placement_joint_ankle, strict=True):
        centre = (data.oMi[sole.joint_id] * sole.placement_joint_sole).act(np.append(sole.centre, 0.0))
        up = np.array([0.0, 0.0, 0.5 * robot.weight])
        total = pin.Force(up, np.cross(centre, up))
        foot = robot.model.inertias[joint]
        down = np.array([0.0, 0.0, -9.81 * foot.mass])
        total += pin.Force(down, np.cross(data.oMi[joint].act(foot.lever), down))
        result.append((data.oMi[joint] * placement).actInv(total).vector)
    return result
