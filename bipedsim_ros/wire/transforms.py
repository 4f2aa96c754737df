"""Transforms for RViz, where tf2_msgs is installed."""

from __future__ import annotations

from xml.etree import ElementTree

import pinocchio as pin
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from bipedsim.model import Robot
from bipedsim.sim import Simulator
from bipedsim_ros.wire import topics
from bipedsim_ros.wire.endpoints import publisher
from bipedsim_ros.wire.topics import BASE_FRAME, WORLD_FRAME, ankle_frame, sole_frame
from bipedsim_ros.wire.wire import NS_PER_S

NO_TRANSFORMS = (
    f"without {topics.TF.name}, from which RViz and Foxglove know where the robot is: tf2_msgs is not installed, which "
    f"comes with a ROS 2 installation (apt install ros-$ROS_DISTRO-tf2-msgs); {topics.GROUND_TRUTH.name} and "
    f"{topics.JOINT_STATES.name} say the same"
)


def make_transforms(node: Node, robot: Robot, rate: float) -> Transforms | None:
    """Return the publisher of odom -> base_link; None without tf2_msgs, without a floating base, or at rate 0."""
    if rate <= 0.0 or not robot.free_flyer:
        return None
    try:
        from tf2_msgs.msg import TFMessage
    except ImportError:
        node.get_logger().info(NO_TRANSFORMS)
        return None
    return Transforms(node, robot, rate, TFMessage)


class Transforms:
    """odom -> base_link on /tf, and on /tf_static what robot_state_publisher cannot know.

    Joints and fixed links are that node's: no transform comes from both.
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
        """Publish the base pose if a period has passed; a time that ran backwards starts anew."""
        t = sim.t
        if self._next - self._period <= t < self._next:
            return
        self._next = t + self._period
        if not self._publisher.get_subscription_count():
            return
        self._moving.header.stamp.sec, self._moving.header.stamp.nanosec = divmod(t_ns, NS_PER_S)
        _fill(self._moving, sim.q[:7].tolist())
        self._publisher.publish(self._message)


Frame = tuple[str, str, list[float]]
"""Parent, child and pose of a frame: xyz and quaternion xyzw."""


def moving_frame(robot: Robot) -> str:
    """Return the frame whose pose is on /tf: base_link, unless the URDF hangs that below another root link."""
    known = {frame.name for frame in robot.model.frames}
    return BASE_FRAME if BASE_FRAME not in known else _bodies(robot)[1].name


def static_frames(robot: Robot) -> list[Frame]:
    """Return the frames that the messages use and the URDF lacks, and the links behind joints that are locked.

    robot_state_publisher moves a joint by /joint_states, where locked ones are not.
    """
    return [*_missing_frames(robot), *_locked_links(robot)]


def _bodies(robot: Robot) -> dict[int, pin.Frame]:
    """Return the first link that each joint moves, by the joint's number."""
    found: dict[int, pin.Frame] = {}
    for frame in robot.model.frames:
        if frame.type == pin.FrameType.BODY:
            found.setdefault(frame.parentJoint, frame)
    return found


def _missing_frames(robot: Robot) -> list[Frame]:
    known, body_of = {frame.name for frame in robot.model.frames}, _bodies(robot)
    wanted = [(1, BASE_FRAME, pin.SE3.Identity())]
    for k, sole in enumerate(robot.soles):
        wanted.append((sole.joint_id, sole_frame(sole.name), sole.placement_joint_sole))
        wanted.append((robot.ankle_joint_ids[k], ankle_frame(sole.name), robot.placement_joint_ankle[k]))
    result = []
    for joint, name, placement in wanted:
        if name in known:
            continue
        body = body_of[joint]
        if name == BASE_FRAME:
            # odom -> base_link is the parent of the URDF's tree, so its root link hangs below and not above.
            result.append((BASE_FRAME, body.name, pin.SE3ToXYZQUAT(body.placement).tolist()))
        else:
            result.append((body.name, name, pin.SE3ToXYZQUAT(body.placement.actInv(placement)).tolist()))
    return result


def _locked_links(robot: Robot) -> list[Frame]:
    model, links = robot.model, {frame.name: frame for frame in robot.model.frames}
    result = []
    for joint in ElementTree.fromstring(robot.urdf_xml).findall("joint"):
        ends = [tag.get("link", "") for tag in (joint.find("parent"), joint.find("child")) if tag is not None]
        names = [joint.get("name", "")]
        if (mimic := joint.find("mimic")) is not None:
            # It follows another one, which is where to look.
            names.append(mimic.get("joint", ""))
        locked = joint.get("type") not in ("fixed", "floating") and not any(map(model.existJointName, names))
        if locked and all(end in links for end in ends):
            parent, child = (links[end] for end in ends)
            pose = pin.SE3ToXYZQUAT(parent.placement.actInv(child.placement)).tolist()
            result.append((parent.name, child.name, pose))
    return result


def _fill(transform: TransformStamped, pose: list[float]) -> None:
    translation, rotation = transform.transform.translation, transform.transform.rotation
    translation.x, translation.y, translation.z = pose[:3]
    rotation.x, rotation.y, rotation.z, rotation.w = pose[3:]


def _transform(parent: str, child: str, pose: list[float]) -> TransformStamped:
    result = TransformStamped(child_frame_id=child)
    result.header.frame_id = parent
    _fill(result, pose)
    return result
