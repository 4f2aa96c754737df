"""Transforms for RViz, where tf2_msgs is installed."""

from __future__ import annotations

import pinocchio as pin
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from bipedsim.model import Robot
from bipedsim.sim import Simulator
from bipedsim_ros.wire import topics
from bipedsim_ros.wire.endpoints import publisher
from bipedsim_ros.wire.topics import BASE_FRAME, WORLD_FRAME, ankle_frame, sole_frame
from bipedsim_ros.wire.wire import NS_PER_S


def make_transforms(node: Node, robot: Robot, rate: float) -> Transforms | None:
    """Return the publisher of odom -> base_link; None without tf2_msgs, without a floating base, or at rate 0."""
    if rate <= 0.0 or not robot.free_flyer:
        return None
    try:
        from tf2_msgs.msg import TFMessage
    except ImportError:
        node.get_logger().info(
            f"tf2_msgs is not installed: no {topics.TF.name}, but {topics.GROUND_TRUTH.name} holds the pose"
        )
        return None
    return Transforms(node, robot, rate, TFMessage)


class Transforms:
    """odom -> base_link on /tf, and the frames that messages use but the URDF may lack on /tf_static."""

    def __init__(self, node: Node, robot: Robot, rate: float, message_type: type) -> None:
        self._period = 1.0 / rate
        self._next = 0.0
        self._moving = TransformStamped(child_frame_id=BASE_FRAME)
        self._moving.header.frame_id = WORLD_FRAME
        self._message = message_type(transforms=[self._moving])
        self._publisher = publisher(node, topics.TF)
        self._static = publisher(node, topics.TF_STATIC)
        self._static.publish(message_type(transforms=[_transform(*frame) for frame in missing_frames(robot)]))

    def publish(self, sim: Simulator, t_ns: int) -> None:
        """Publish the base pose if a period has passed; a time that ran backwards starts anew."""
        t = sim.t
        if self._next - self._period <= t < self._next:
            return
        self._next = t + self._period
        self._moving.header.stamp.sec, self._moving.header.stamp.nanosec = divmod(t_ns, NS_PER_S)
        _fill(self._moving, sim.q[:7].tolist())
        self._publisher.publish(self._message)


def missing_frames(robot: Robot) -> list[tuple[str, str, list[float]]]:
    """Return parent, child and pose (xyz, quaternion xyzw) of the frames that the messages use and the URDF lacks."""
    model = robot.model
    known = {frame.name for frame in model.frames}
    body_of = {}
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY and frame.parentJoint not in body_of:
            body_of[frame.parentJoint] = frame
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


def _fill(transform: TransformStamped, pose: list[float]) -> None:
    translation, rotation = transform.transform.translation, transform.transform.rotation
    translation.x, translation.y, translation.z = pose[:3]
    rotation.x, rotation.y, rotation.z, rotation.w = pose[3:]


def _transform(parent: str, child: str, pose: list[float]) -> TransformStamped:
    result = TransformStamped(child_frame_id=child)
    result.header.frame_id = parent
    _fill(result, pose)
    return result
