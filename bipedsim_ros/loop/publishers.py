"""Everything that sim_node publishes: topics, types, QoS, frames, and the order within a tick."""

from __future__ import annotations

import time

from geometry_msgs.msg import PointStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String

from bipedsim.contact import ContactResult, mode_name
from bipedsim.model import Robot
from bipedsim.sim import Observation, Simulator
from bipedsim_ros.wire import (
    BASE_FRAME,
    CLOCK_QOS,
    LATCHED_QOS,
    NS_PER_S,
    STATE_QOS,
    WORLD_FRAME,
    ankle_frame,
    ankle_wrench_topic,
    conversions,
    foot_topic,
    make_transforms,
    sole_frame,
)


class SensorPublishers:
    """What a robot measures: IMU, ankle wrenches, then joint states, which are what a controller waits for."""

    def __init__(self, node: Node, robot: Robot, ft_sign: float) -> None:
        self._imu_writer = conversions.ImuWriter(robot.imu_frame)
        self._joint_writer = conversions.JointStateWriter(robot.joint_names, BASE_FRAME)
        self._imu = node.create_publisher(Imu, "/imu/data", STATE_QOS)
        self._joint_states = node.create_publisher(JointState, "/joint_states", STATE_QOS)
        self._ankles = [
            (
                node.create_publisher(WrenchStamped, ankle_wrench_topic(sole.name), STATE_QOS),
                conversions.WrenchWriter(ankle_frame(sole.name), ft_sign),
            )
            for sole in robot.soles
        ]

    def subscribers(self) -> int:
        """Return how many subscriptions the joint states have."""
        return int(self._joint_states.get_subscription_count())

    def publish(self, observation: Observation, t_ns: int) -> int:
        """Publish one observation; return the time on the monotonic clock [ns] at which the joint states left."""
        self._imu.publish(self._imu_writer.write(observation, t_ns))
        for k, (publisher, writer) in enumerate(self._ankles):
            publisher.publish(writer.write(observation.foot_wrench[k], t_ns))
        out_ns = time.monotonic_ns()
        self._joint_states.publish(self._joint_writer.write(observation, t_ns))
        return out_ns


class _FootPublishers:
    """What only the ground knows about one foot."""

    def __init__(self, node: Node, name: str) -> None:
        frame = sole_frame(name)
        self._wrench_writer = conversions.WrenchWriter(frame)
        self._cop_writer = conversions.PointWriter(frame)
        self._contact_writer = conversions.ContactWriter()
        self._wrench = node.create_publisher(WrenchStamped, foot_topic(name, "wrench"), STATE_QOS)
        self._cop = node.create_publisher(PointStamped, foot_topic(name, "cop"), STATE_QOS)
        self._contact = node.create_publisher(Float64MultiArray, foot_topic(name, "contact"), STATE_QOS)
        self._mode = node.create_publisher(String, foot_topic(name, "contact_mode"), LATCHED_QOS)
        self._last_mode: tuple[int, bool, int] | None = None

    def publish(self, contact: ContactResult, k: int, t: float, t_ns: int) -> None:
        """Publish foot ``k``."""
        self._wrench.publish(self._wrench_writer.write(contact.wrench[k], t_ns))
        self._cop.publish(self._cop_writer.write(contact.cop[k], t_ns))
        mode, sliding = int(contact.mode[k]), bool(contact.sliding[k])
        n = int(contact.n_vertices[k])
        values = (t, mode, contact.clamped[k], sliding, contact.cop_margin[k], contact.friction_used[k], n)
        self._contact.publish(self._contact_writer.write(values, contact.impact[k]))
        if (mode, sliding, n) != self._last_mode:
            self._last_mode = (mode, sliding, n)
            self._mode.publish(String(data=mode_name(mode, sliding, n)))


class GroundPublishers:
    """What no robot measures: sole wrenches, CoP, contact, ground truth; and the clock at the end of the tick."""

    def __init__(self, node: Node, robot: Robot) -> None:
        self._feet = [_FootPublishers(node, sole.name) for sole in robot.soles]
        self._cop_writer = conversions.PointWriter(WORLD_FRAME)
        self._clock_writer = conversions.ClockWriter()
        self._cop = node.create_publisher(PointStamped, "/cop", STATE_QOS)
        self._clock = node.create_publisher(Clock, "/clock", CLOCK_QOS)
        self._odometry = None
        if robot.free_flyer:
            self._odometry_writer = conversions.OdometryWriter(WORLD_FRAME, BASE_FRAME)
            self._odometry = node.create_publisher(Odometry, "/ground_truth/odom", STATE_QOS)

    def publish(self, sim: Simulator, t_ns: int) -> None:
        """Publish what the ground did over the last step."""
        contact, t = sim.contact, sim.t
        for k, foot in enumerate(self._feet):
            foot.publish(contact, k, t, t_ns)
        truth = sim.ground_truth()
        self._cop.publish(self._cop_writer.write(truth.cop_world, t_ns))
        if self._odometry is not None:
            self._odometry.publish(self._odometry_writer.write(truth.pose_world_base, truth.twist_base, t_ns))
        self.publish_clock(t_ns)

    def publish_clock(self, t_ns: int) -> None:
        """Publish the time alone."""
        self._clock.publish(self._clock_writer.write(t_ns))


class Publishers:
    """All publishers of sim_node."""

    def __init__(self, node: Node, sim: Simulator, ft_sign: float, tf_rate: float) -> None:
        self._sim = sim
        others = set(node.publishers)
        self._sensors = SensorPublishers(node, sim.robot, ft_sign)
        self._ground = GroundPublishers(node, sim.robot)
        self._description = node.create_publisher(String, "/robot_description", LATCHED_QOS)
        self._description.publish(String(data=sim.robot.urdf_xml))
        self._recordable = [publisher for publisher in node.publishers if publisher not in others]
        self._transforms = make_transforms(node, sim.robot, tf_rate)

    def _t_ns(self) -> int:
        return round(self._sim.t * NS_PER_S)

    def subscribers(self) -> int:
        """Return how many subscriptions the joint states have."""
        return self._sensors.subscribers()

    def unheard(self) -> list[str]:
        """Return the topics without any subscription, those of tf aside."""
        return [publisher.topic_name for publisher in self._recordable if not publisher.get_subscription_count()]

    def drain(self, seconds: float) -> bool:
        """Wait until every reliable subscriber has what was published, ``seconds`` at most; return whether all have.

        A publisher that goes takes with it what a busy recorder has not fetched yet.
        """
        deadline = time.monotonic() + seconds
        acked = True
        for publisher in self._recordable:
            left = max(0, round((deadline - time.monotonic()) * NS_PER_S))
            acked = publisher.wait_for_all_acked(Duration(nanoseconds=left)) and acked
        return acked

    def publish_sensors(self, observation: Observation) -> int:
        """Publish what the robot measures, the controller's trigger last; return when that left [ns]."""
        return self._sensors.publish(observation, self._t_ns())

    def publish_ground(self) -> None:
        """Publish all the rest, /clock last."""
        t_ns = self._t_ns()
        if self._transforms is not None:
            self._transforms.publish(self._sim, t_ns)
        self._ground.publish(self._sim, t_ns)

    def publish_clock(self) -> None:
        """Publish /clock alone, as during a pause."""
        self._ground.publish_clock(self._t_ns())
