"""Derive a robot's tf frames from its URDF: moving frames, static frames and joints. Does not need ROS."""

from __future__ import annotations

from xml.etree import ElementTree

import pinocchio as pin

from bipedsim.model import Robot
from bipedsim_ros.wire.topics import BASE_FRAME, ankle_frame, sole_frame

Frame = tuple[str, str, list[float]]
"""Parent, child and pose of a frame: xyz and quaternion xyzw."""


def moving_frame(robot: Robot) -> str:
    """Return the frame whose pose is on /tf: base_link, or the URDF's root link above it."""
    known = {frame.name for frame in robot.model.frames}
    return BASE_FRAME if BASE_FRAME not in known else _bodies(robot)[1].name


def static_frames(robot: Robot) -> list[Frame]:
    """Return the frames that messages use and the URDF lacks, and the child links of locked joints.

    robot_state_publisher cannot place the latter, because /joint_states does not contain locked joints.
    """
    return [*_missing_frames(robot), *_locked_links(robot)]


def _bodies(robot: Robot) -> dict[int, pin.Frame]:
    """Return the first link that each joint moves, by the index of the joint."""
    bodies: dict[int, pin.Frame] = {}
    for frame in robot.model.frames:
        if frame.type == pin.FrameType.BODY:
            bodies.setdefault(frame.parentJoint, frame)
    return bodies


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
            # odom -> base_link is the parent of the URDF's tree, so the root link must be a child of base_link.
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
            # A mimic joint is locked if the joint that it follows is locked.
            names.append(mimic.get("joint", ""))
        locked = joint.get("type") not in ("fixed", "floating") and not any(map(model.existJointName, names))
        if locked and all(end in links for end in ends):
            parent, child = (links[end] for end in ends)
            pose = pin.SE3ToXYZQUAT(parent.placement.actInv(child.placement)).tolist()
            result.append((parent.name, child.name, pose))
    return result


def jointed_links(robot: Robot) -> tuple[list[tuple[str, str]], list[Frame]]:
    """Return the transforms that robot_state_publisher derives from the URDF.

    Returns:
        Parent and child links of the moving joints, and the frames of the fixed joints.
    """
    links = {frame.name: frame for frame in robot.model.frames if frame.type == pin.FrameType.BODY}
    locked = {child for _, child, _ in _locked_links(robot)}
    moving, fixed = [], []
    for joint in ElementTree.fromstring(robot.urdf_xml).findall("joint"):
        parent, child = (tag.get("link", "") if tag is not None else "" for tag in map(joint.find, ("parent", "child")))
        if joint.get("type") == "floating" or child in locked or not {parent, child} <= links.keys():
            continue
        if joint.get("type") == "fixed":
            pose = links[parent].placement.actInv(links[child].placement)
            fixed.append((parent, child, pin.SE3ToXYZQUAT(pose).tolist()))
        else:
            moving.append((parent, child))
    return moving, fixed


def root_link(robot: Robot) -> str:
    """Return the root link of the URDF, which is no joint's child."""
    tree = ElementTree.fromstring(robot.urdf_xml)
    children = {tag.get("link", "") for tag in tree.iterfind("joint/child")}
    return next(tag.get("name", "") for tag in tree.findall("link") if tag.get("name", "") not in children)
