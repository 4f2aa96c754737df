"""Publish transforms for RViz, where tf2_msgs is installed."""

from __future__ import annotations

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from bipedsim.model import Robot
from bipedsim.recording.bag import NS_PER_S
from bipedsim.sim import Simulator
from bipedsim_ros.wire import topics
from bipedsim_ros.wire.endpoints import publisher, relative
from bipedsim_ros.wire.frames import moving_frame, static_frames
from bipedsim_ros.wire.topics import WORLD_FRAME

NO_TRANSFORMS = (
    f"a node listens to {topics.TF.name}, which is not there: tf2_msgs is not installed, which comes with a ROS 2 "
    f"installation (apt install ros-$ROS_DISTRO-tf2-msgs). {topics.GROUND_TRUTH.name} and {topics.JOINT_STATES.name} "
    "say the same, and `bipedsim export RUN --format mcap` adds it to a recording"
)
NO_LINKS = (
    f"a node listens to {topics.TF.name}, which has the pose of the base alone, so that RViz and Foxglove draw no "
    "robot: robot_state_publisher places its links, which a launch starts where it is installed (apt install "
    "ros-$ROS_DISTRO-robot-state-publisher)"
)
PATIENCE = 5
"""Successive checks without a publisher of links before the warning; robot_state_publisher may still be starting."""


def make_transforms(node: Node, robot: Robot, rate: float) -> Transforms | None:
    """Return the publisher of odom -> base_link; None without tf2_msgs, without a floating base, or at rate 0."""
    if rate <= 0.0 or not robot.free_flyer or not topics.HAS_TF:
        return None
    from tf2_msgs.msg import TFMessage

    return Transforms(node, robot, rate, TFMessage)


class TransformsWatch:
    """Warns once if /tf is incomplete and a node subscribes to it.

    Args:
        node: Node that publishes the transforms.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._looks = 0
        self._warned = False

    def look(self) -> str:
        """Check /tf, about once a second; return a warning or an empty text."""
        node, name = self._node, relative(topics.TF.name)
        if self._warned or not node.count_subscribers(name):
            return ""
        # The recorder records /tf as it is, so an incomplete /tf is no problem for it.
        listeners = {info.node_name for info in node.get_subscriptions_info_by_topic(name)} - {"recorder_node"}
        incomplete = listeners and (not topics.HAS_TF or node.count_publishers(name) < 2)
        self._looks = self._looks + 1 if incomplete else 0
        if self._looks < (PATIENCE if topics.HAS_TF else 1):
            return ""
        self._warned = True
        return NO_LINKS if topics.HAS_TF else NO_TRANSFORMS


class Transforms:
    """Publishes odom -> base_link on /tf, and the frames that robot_state_publisher cannot place on /tf_static.

    robot_state_publisher publishes the joints and the fixed links, so no transform has two publishers.
    """

    def __init__(self, node: Node, robot: Robot, rate: float, message_type: type) -> None:
        self._period = 1.0 / rate
        self._next = 0.0
        self._moving = TransformStamped(child_frame_id=moving_frame(robot))
        self._moving.header.frame_id = WORLD_FRAME
        self._message = message_type(transforms=[self._moving])
        self._publisher = publisher(node, topics.TF)
        self._static = publisher(node, topics.TF_STATIC)
        self._static.publish(message_type(transforms=[_transform(*frame) for frame in static_frames(robot)]))

    def publish(self, sim: Simulator, t_ns: int) -> None:
        """Publish the base pose if a period has passed, or if time has jumped backwards."""
        t = sim.t
        if self._next - self._period <= t < self._next:
            return
        self._next = t + self._period
        if not self._publisher.get_subscription_count():
            return
        self._moving.header.stamp.sec, self._moving.header.stamp.nanosec = divmod(t_ns, NS_PER_S)
        _fill(self._moving, sim.q[:7].tolist())
        self._publisher.publish(self._message)


def _fill(transform: TransformStamped, pose: list[float]) -> None:
    translation, rotation = transform.transform.translation, transform.transform.rotation
    translation.x, translation.y, translation.z = pose[:3]
    rotation.x, rotation.y, rotation.z, rotation.w = pose[3:]


def _transform(parent: str, child: str, pose: list[float]) -> TransformStamped:
    result = TransformStamped(child_frame_id=child)
    result.header.frame_id = parent
    _fill(result, pose)
    return result
