"""Publishers and subscriptions: the topics of the table in the words of rclpy, and what a graph offers in ours."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rclpy._rclpy_pybind11 import RCLError
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from bipedsim.errors import ConfigError
from bipedsim.recording import bag
from bipedsim.recording.bag import Qos
from bipedsim_ros.wire.message_definitions import definition_of, type_hash_of
from bipedsim_ros.wire.topics import Topic

# Deeper than anything that arrives while the recorder is kept from running for a second.
_RECORDER_DEPTH = 5000


def profile(qos: Qos) -> QoSProfile:
    """Return a quality of service as rclpy takes it."""
    return QoSProfile(
        depth=qos.depth,
        history=HistoryPolicy[qos.history.upper()],
        reliability=ReliabilityPolicy[qos.reliability.upper()],
        durability=DurabilityPolicy[qos.durability.upper()],
    )


def qos_words(profile: QoSProfile) -> Qos:
    """Return a profile in the words of rosbag2."""
    names = (profile.reliability.name, profile.durability.name, profile.history.name)
    reliability, durability, history = (name.lower() for name in names)
    return Qos(reliability, durability, history, profile.depth, profile.liveliness.name.lower())


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


def relative(name: str) -> str:
    """Return the name of a topic in the namespace of the node that uses it: ``/cop`` is /r1/cop for a node in /r1."""
    return name.removeprefix("/")


def publisher(node: Node, topic: Topic, foot: str = "", name: str = "") -> Any:
    """Return a publisher of a topic: of ``foot``, or of ``name`` where several things have their own."""
    return node.create_publisher(message_class(topic.msgtype), relative(topic.of(foot, name)), profile(topic.offered))


class PatientPublisher:
    """A publisher that keeps what a reliable subscriber has not taken, and waits when that is too much.

    Args:
        node, topic, foot, name: See :func:`publisher`.
        go_on: Asked while it waits, about ten times a second, with the name of the topic; if false, the message goes.
    """

    def __init__(self, node: Node, topic: Topic, foot: str, go_on: Callable[[str], bool], name: str = "") -> None:
        self._go_on = go_on
        name, qos = relative(topic.of(foot, name)), replace(topic.offered, history="keep_all")
        self._publisher = node.create_publisher(message_class(topic.msgtype), name, profile(qos))
        self.get_subscription_count = self._publisher.get_subscription_count

    def publish(self, message: Any) -> None:
        """Publish a message, as soon as there is room for it."""
        while True:
            try:
                self._publisher.publish(message)
                return
            except RCLError:
                # It has waited for 0.1 s, and says no more of the reason.
                if not self._go_on(self._publisher.topic_name):
                    return


def requested(topic: Topic) -> QoSProfile:
    """Return what our subscription to a topic asks for."""
    if topic.requested is None:
        raise ConfigError(f"the table of topics does not say how {topic.name} is subscribed to")
    return profile(topic.requested)


def listeners(node: Node, publisher: Any) -> int:
    """Return how many subscriptions ask a publisher of the node for all the reliability that it offers.

    Who asks for less looks on, as a viewer does: he must not be taken for the recorder that somebody waits for.
    """
    if not publisher.get_subscription_count():
        return 0
    offered = publisher.qos_profile.reliability
    found = node.get_subscriptions_info_by_topic(publisher.topic_name)
    return sum(info.qos_profile.reliability == offered for info in found)


def recorder_profile(qos: Qos) -> QoSProfile:
    """Return what a recorder asks of publishers that grant ``qos``: all, so that what is full takes no more.

    What is not taken is not acknowledged, and a simulator whose time is its own waits for that.
    """
    history = "keep_all" if qos.reliability == "reliable" else "keep_last"
    return profile(replace(qos, history=history, depth=_RECORDER_DEPTH))


def offered_qos(node: Node, name: str) -> Qos | None:
    """Return the strongest quality of service that every present publisher of a topic in the node's namespace grants.

    None without publishers.
    """
    found = [qos_words(info.qos_profile) for info in node.get_publishers_info_by_topic(relative(name))]
    if not found:
        return None
    best_effort = any(qos.reliability == "best_effort" for qos in found)
    latched = not best_effort and all(qos.durability == "transient_local" for qos in found)
    return Qos(
        reliability="best_effort" if best_effort else "reliable",
        durability="transient_local" if latched else "volatile",
    )


def described(node: Node, name: str, msgtype: str) -> bag.Topic:
    """Return a topic of the node's namespace as a bag describes it, with the profiles of its present publishers."""
    profiles = tuple(qos_words(info.qos_profile) for info in node.get_publishers_info_by_topic(relative(name)))
    return bag.Topic(name, msgtype, definition_of(msgtype), type_hash_of(msgtype), profiles)
