"""The topics of the robot, message by message, as a driver under ros2_control has them.

This module uses plain messages instead of bipedsim's writers, so that a mistake in those cannot hide on both sides.
"""

from __future__ import annotations

import array

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String

from bipedsim.model import Robot
from bipedsim.sim import Observation
from bipedsim_ros.wire import BASE_FRAME, ankle_frame, topics

Array = NDArray[np.float64]

_STATE = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_CLOCK = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class RobotTopics:
    """Publishes what the robot measures.

    Args:
        node: Owner of the publishers.
        robot: The robot.
        ft_sign: 1 publishes the ground on the foot, -1 the reverse.
        clock: Whether to publish the stamps as ``/clock`` too.
    """

    def __init__(self, node: Node, robot: Robot, ft_sign: float, clock: bool) -> None:
        self._ft_sign = ft_sign
        self._joint_states = node.create_publisher(JointState, topics.JOINT_STATES.name, _STATE)
        self._imu = node.create_publisher(Imu, topics.IMU.name, _STATE)
        self._feet = [node.create_publisher(WrenchStamped, topics.ANKLE_WRENCH.of(s.name), _STATE) for s in robot.soles]
        self._clock = node.create_publisher(Clock, topics.CLOCK.name, _CLOCK) if clock else None
        self._description = node.create_publisher(String, topics.ROBOT_DESCRIPTION.name, _LATCHED)
        self._description.publish(String(data=robot.urdf_xml))
        # One message each, filled again and again.
        self._state_message = JointState(name=list(robot.joint_names))
        self._state_message.header.frame_id = BASE_FRAME
        self._imu_message = Imu()
        self._imu_message.header.frame_id = robot.imu_frame
        self._foot_messages = [WrenchStamped() for _ in robot.soles]
        for message, sole in zip(self._foot_messages, robot.soles, strict=True):
            message.header.frame_id = ankle_frame(sole.name)

    def listeners(self) -> int:
        """Return how many subscriptions the joint states have."""
        return int(self._joint_states.get_subscription_count())

    def publish(self, observation: Observation, stamp_ns: int) -> None:
        """Publish IMU and feet, then the joint states, which a controller answers."""
        sec, nanosec = divmod(stamp_ns, 1_000_000_000)
        for message in (self._imu_message, *self._foot_messages, self._state_message):
            message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
        imu = self._imu_message
        _fill(imu.orientation, "xyzw", observation.imu_orientation)
        _fill(imu.angular_velocity, "xyz", observation.imu_angular_velocity)
        _fill(imu.linear_acceleration, "xyz", observation.imu_linear_acceleration)
        self._imu.publish(imu)
        for publisher, message, wrench in zip(self._feet, self._foot_messages, observation.foot_wrench, strict=True):
            _fill(message.wrench.force, "xyz", self._ft_sign * wrench[:3])
            _fill(message.wrench.torque, "xyz", self._ft_sign * wrench[3:])
            publisher.publish(message)
        state = self._state_message
        state.position = array.array("d", observation.joint_position)
        state.velocity = array.array("d", observation.joint_velocity)
        state.effort = array.array("d", observation.joint_effort)
        self._joint_states.publish(state)
        if self._clock is not None:
            clock = Clock()
            clock.clock.sec, clock.clock.nanosec = sec, nanosec
            self._clock.publish(clock)


def _fill(vector: object, axes: str, values: Array) -> None:
    for axis, value in zip(axes, values.tolist(), strict=True):
        setattr(vector, axis, value)


class RobotCommands:
    """Torques as they reach the drives.

    A message of the wrong size or with a value that is not finite is dropped. Without a sound one for
    ``timeout`` seconds the joints go to ``mode``: ``damping`` (against the velocity, the effort limit at the velocity
    limit), ``zero``, or ``hold`` (the last command without limit).

    Attributes:
        received, dropped: Messages so far.
        timeouts: How often the timeout began.
        started: Whether a valid command has arrived.
    """

    def __init__(self, robot: Robot, timeout: float, mode: str) -> None:
        self._timeout = timeout
        self._mode = mode
        self._limit = robot.effort_limit
        self._damping = robot.effort_limit / robot.velocity_limit
        self._tau = np.zeros(robot.nu)
        self._last = 0.0
        self._late = False
        self.received = self.dropped = self.timeouts = 0
        self.started = False

    def accept(self, data: bytes, t: float) -> str:
        """Take a serialised message that came at time ``t`` [s]; return what is wrong with it, empty if nothing is."""
        values = np.array(deserialize_message(data, Float64MultiArray).data)
        if len(values) != len(self._tau) or not np.isfinite(values).all():
            self.dropped += 1
            return f"{len(values)} values, expected {len(self._tau)} finite ones"
        self._tau[:] = values
        self._last = t
        self.received += 1
        self.started = True
        return ""

    def torque(self, observation: Observation, t: float) -> Array:
        """Return the torques (nu,) [N.m] for the period that begins at ``t``, within the effort limits."""
        # Half a microsecond, because times are sums.
        late = self.started and t - self._last > self._timeout + 5e-7
        self.timeouts += late and not self._late
        self._late = late
        if late and self._mode != "hold":
            tau = -self._damping * observation.joint_velocity if self._mode == "damping" else np.zeros_like(self._tau)
        else:
            tau = self._tau
        return np.clip(tau, -self._limit, self._limit)
