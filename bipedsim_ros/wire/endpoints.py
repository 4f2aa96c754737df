"""Create publishers and subscriptions from the table of topics, and convert QoS between rclpy and rosbag2."""

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
from bipedsim_ros.wire.departures import machine_of
from bipedsim_ros.wire.message_definitions import definition_of, type_hash_of
from bipedsim_ros.wire.topics import Topic

# The queue covers everything that arrives while the recorder gets no processor time for a second.
_RECORDER_DEPTH = 5000


def profile(qos: Qos) -> QoSProfile:
    """Return the rclpy profile of a quality of service."""
    return QoSProfile(
        depth=qos.depth,
        history=HistoryPolicy[qos.history.upper()],
        reliability=ReliabilityPolicy[qos.reliability.upper()],
        durability=DurabilityPolicy[qos.durability.upper()],
    )


def qos_words(profile: QoSProfile) -> Qos:
    """Return the quality of service of an rclpy profile, in the terms of rosbag2."""
    names = (profile.reliability.name, profile.durability.name, profile.history.name)
    reliability, durability, history = (name.lower() for name in names)
    return Qos(reliability, durability, history, profile.depth, profile.liveliness.name.lower())


def message_class(msgtype: str) -> Any:
    """Return the Python class of a message type.

    Raises:
        ConfigError: The type cannot be imported.
    """
    package, kind, name = msgtype.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{kind}"), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"it cannot be imported: install {package} ({error})", f"message type {msgtype}") from error


def relative(name: str) -> str:
    """Return a topic's name relative to the node's namespace: ``/cop`` becomes /r1/cop for a node in /r1."""
    return name.removeprefix("/")


def publisher(node: Node, topic: Topic, foot: str = "", name: str = "") -> Any:
    """Return a publisher of a topic, for ``foot`` or ``name`` if the topic exists once per foot or per thing."""
    return node.create_publisher(message_class(topic.msgtype), relative(topic.of(foot, name)), profile(topic.offered))


class PatientPublisher:
    """Publishes without loss: it stores unacknowledged messages, and blocks while its queue is full.

    Args:
        node, topic, foot, name: See :func:`publisher`.
        go_on: Called about ten times a second while the publisher blocks, with the name of the topic. If it returns
            false, the message is discarded.
    """

    def __init__(self, node: Node, topic: Topic, foot: str, go_on: Callable[[str], bool], name: str = "") -> None:
        self._go_on = go_on
        name, qos = relative(topic.of(foot, name)), replace(topic.offered, history="keep_all")
        self._publisher = node.create_publisher(message_class(topic.msgtype), name, profile(qos))
        self.get_subscription_count = self._publisher.get_subscription_count

    def publish(self, message: Any) -> None:
        """Publish a message as soon as the queue has space."""
        while True:
            try:
                self._publisher.publish(message)
                return
            except RCLError:
                # rclpy has blocked for 0.1 s. The error does not report the reason.
                if not self._go_on(self._publisher.topic_name):
                    return


def requested(topic: Topic) -> QoSProfile:
    """Return the profile that this project's subscription to a topic requests."""
    if topic.requested is None:
        raise ConfigError("the table of topics does not say how it is subscribed to", topic.name)
    return profile(topic.requested)


def listeners(node: Node, publisher: Any) -> int:
    """Return how many subscriptions request the full reliability that a publisher of the node offers.

    A subscription with less reliability is a viewer. It must not be counted as the recorder for which a node waits.
    """
    if not publisher.get_subscription_count():
        return 0
    offered = publisher.qos_profile.reliability
    subscriptions = node.get_subscriptions_info_by_topic(publisher.topic_name)
    return sum(info.qos_profile.reliability == offered for info in subscriptions)


def recorder_profile(qos: Qos) -> QoSProfile:
    """Return the recorder's profile for publishers that offer ``qos``: keep all messages of a reliable publisher.

    A full recorder queue then leaves messages unacknowledged, and a simulator without a real-time clock waits.
    """
    history = "keep_all" if qos.reliability == "reliable" else "keep_last"
    return profile(replace(qos, history=history, depth=_RECORDER_DEPTH))


def offered_qos(node: Node, name: str) -> Qos | None:
    """Return the strongest quality of service that all present publishers of a topic in the node's namespace offer.

    The result is None if there are no publishers.
    """
    offers = [qos_words(info.qos_profile) for info in node.get_publishers_info_by_topic(relative(name))]
    if not offers:
        return None
    best_effort = any(qos.reliability == "best_effort" for qos in offers)
    latched = not best_effort and all(qos.durability == "transient_local" for qos in offers)
    return Qos(
        reliability="best_effort" if best_effort else "reliable",
        durability="transient_local" if latched else "volatile",
    )


def described(node: Node, name: str, msgtype: str) -> bag.Topic:
    """Return a bag's description of a topic in the node's namespace, with profiles and machine of its publishers."""
    publishers = node.get_publishers_info_by_topic(relative(name))
    machines = {machine_of(info.endpoint_gid) for info in publishers}
    return bag.Topic(
        name,
        msgtype,
        definition_of(msgtype),
        type_hash_of(msgtype),
        tuple(qos_words(info.qos_profile) for info in publishers),
        machines.pop() if len(machines) == 1 else "",
    )
