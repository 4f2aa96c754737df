"""Which topics a recorder subscribes to, with which quality of service, and how a bag describes them."""

from __future__ import annotations

import importlib
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from bipedsim.errors import ConfigError
from bipedsim.recording.bag import Qos, Topic
from bipedsim_ros.wire.message_definitions import definition_of, type_hash_of

# Deeper than anything that arrives while the recorder is kept from running for a second.
QUEUE_DEPTH = 5000
# Topics that may have no publisher for as long as nobody pushes, commands or complains.
OPTIONAL = frozenset(
    {"/push", "/effort_controller/commands", "/diagnostics", "/cmd_vel", "/footsteps", "/odom", "/fallen"}
)


def default_topics(feet: list[str]) -> dict[str, tuple[str, str]]:
    """Return topic -> (type, kind of QoS) for all that ``sim_node`` publishes and receives, and controllers beside it.

    What a controller shows under :data:`bipedsim.recording.recording.READOUTS` is known only when it is there.
    """
    wrench, multi = "geometry_msgs/msg/WrenchStamped", "std_msgs/msg/Float64MultiArray"
    point, text = "geometry_msgs/msg/PointStamped", "std_msgs/msg/String"
    topics = {
        "/clock": ("rosgraph_msgs/msg/Clock", "best_effort"),
        "/joint_states": ("sensor_msgs/msg/JointState", "reliable"),
        "/imu/data": ("sensor_msgs/msg/Imu", "reliable"),
        "/cop": (point, "reliable"),
        "/ground_truth/odom": ("nav_msgs/msg/Odometry", "reliable"),
        "/robot_description": (text, "latched"),
        "/effort_controller/commands": (multi, "best_effort"),
        "/push": (wrench, "reliable"),
        "/diagnostics": ("diagnostic_msgs/msg/DiagnosticArray", "reliable"),
        "/cmd_vel": ("geometry_msgs/msg/Twist", "reliable"),
        "/footsteps": ("nav_msgs/msg/Path", "reliable"),
        "/odom": ("nav_msgs/msg/Odometry", "reliable"),
        "/fallen": ("std_msgs/msg/Bool", "latched"),
    }
    for foot in feet:
        topics[f"/{foot}_foot_ft/wrench"] = (wrench, "reliable")
        topics[f"/{foot}_foot/wrench"] = (wrench, "reliable")
        topics[f"/{foot}_foot/cop"] = (point, "reliable")
        topics[f"/{foot}_foot/contact"] = (multi, "reliable")
        topics[f"/{foot}_foot/contact_mode"] = (text, "latched")
    return topics


def qos_of(kind: str) -> QoSProfile:
    """Return the profile to subscribe with: reliable, best_effort or latched."""
    return QoSProfile(
        depth=QUEUE_DEPTH,
        reliability=ReliabilityPolicy.BEST_EFFORT if kind == "best_effort" else ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if kind == "latched" else DurabilityPolicy.VOLATILE,
    )


def offered_kind(node: Node, name: str) -> str:
    """Return the strongest QoS that every present publisher grants; empty without publishers."""
    profiles = [info.qos_profile for info in node.get_publishers_info_by_topic(name)]
    if not profiles:
        return ""
    if any(p.reliability == ReliabilityPolicy.BEST_EFFORT for p in profiles):
        return "best_effort"
    return "latched" if all(p.durability == DurabilityPolicy.TRANSIENT_LOCAL for p in profiles) else "reliable"


def message_class(msgtype: str) -> Any:
    """Return the Python class of a message type.

    Raises:
        ConfigError: It cannot be imported.
    """
    package, kind, name = msgtype.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{kind}"), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"message type {msgtype} cannot be imported: install {package} ({error})") from error


def qos_words(profile: QoSProfile) -> Qos:
    """Return a profile in the words of rosbag2."""
    names = (profile.reliability.name, profile.durability.name, profile.history.name)
    reliability, durability, history = (name.lower() for name in names)
    return Qos(reliability, durability, history, profile.depth, profile.liveliness.name.lower())


def described(node: Node, name: str, msgtype: str) -> Topic:
    """Return a topic as a bag describes it, with the profiles of its present publishers."""
    profiles = tuple(qos_words(info.qos_profile) for info in node.get_publishers_info_by_topic(name))
    return Topic(name, msgtype, definition_of(msgtype), type_hash_of(msgtype), profiles)
