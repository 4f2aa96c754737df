"""Observe a live graph: its endpoints, and all messages during some seconds. Nothing is published."""

from __future__ import annotations

import math
import time
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from bipedsim.recording.bag import Qos
from bipedsim_ros.contract.evidence import Endpoint, Evidence, TopicEvidence
from bipedsim_ros.contract.robot_contract import Contract
from bipedsim_ros.loop import subscribe_raw, take_raw
from bipedsim_ros.wire import NAMING_S, NO_NAME, UNNAMED, offered_qos, qos_words, recorder_profile

# Discovery takes up to a second, and longer on a busy machine or network.
_DISCOVERY_S = 5.0
_SETTLE_S = 0.5
# DDS stamps messages on arrival, so they need not be read immediately.
_POLL_S = 0.005
_SERVICE_S = 2.0


def watch(node: Node, contract: Contract, duration: float) -> Evidence:
    """Wait for the robot's topics, then collect messages for ``duration`` [s]; return the observations."""
    expected = {topic.found_as: topic for topic in (*contract.measured, contract.commands)}
    _discover(node, contract)
    types = dict(node.get_topic_names_and_types())
    observed = {
        name: TopicEvidence(tuple(types[name]), _publishers(node, name), _subscriptions(node, name))
        for name in expected
        if name in types
    }
    joints = _command_joints(node, contract)
    subscriptions = {}
    for name, topic in expected.items():
        if name in observed and topic.msgtype in observed[name].types:
            qos = recorder_profile(offered_qos(node, name) or Qos(reliability="best_effort"))
            subscriptions[name] = subscribe_raw(node, topic.msgtype, name, qos)
    end = time.monotonic() + (duration if subscriptions else 0.0)
    while time.monotonic() < end:
        time.sleep(_POLL_S)
        for name, subscription in subscriptions.items():
            _take_all(subscription, observed[name])
    others = {name: msgtypes[0] for name, msgtypes in types.items() if name not in expected}
    source = f"live graph of ROS domain {node.context.get_domain_id()}, {duration:g} s"
    return Evidence(source, True, observed, others, joints)


def _discover(node: Node, contract: Contract) -> None:
    """Wait until the robot's topics and the names of their nodes are known, or until a timeout."""
    sensors = [topic.found_as for topic in contract.measured]
    start, known_by = time.monotonic(), math.inf
    unnamed = False
    while (now := time.monotonic()) < (start + NAMING_S if unnamed else min(start + _DISCOVERY_S, known_by)):
        publishers = [_publishers(node, name) for name in sensors]
        unnamed = any(end.node == NO_NAME for endpoints in publishers for end in endpoints)
        if all(publishers) and not unnamed:
            # The rest of the graph is usually discovered soon after.
            known_by = min(known_by, now + _SETTLE_S)
        time.sleep(0.05)


def _take_all(subscription: Any, observed: TopicEvidence) -> None:
    while (taken := take_raw(subscription)) is not None:
        data, info = taken
        arrived = info["received_timestamp"] or time.time_ns()
        observed.sent.append(info["source_timestamp"] or arrived)
        observed.received.append(arrived)
        observed.messages.append(data)


def _publishers(node: Node, name: str) -> tuple[Endpoint, ...]:
    return tuple(_endpoint(info) for info in node.get_publishers_info_by_topic(name))


def _subscriptions(node: Node, name: str) -> tuple[Endpoint, ...]:
    return tuple(_endpoint(info) for info in node.get_subscriptions_info_by_topic(name))


def _endpoint(info: Any) -> Endpoint:
    if info.node_name == UNNAMED:
        return Endpoint(NO_NAME, qos_words(info.qos_profile))
    namespace = info.node_namespace.rstrip("/")
    return Endpoint(f"{namespace}/{info.node_name}", qos_words(info.qos_profile))


def _command_joints(node: Node, contract: Contract) -> tuple[str, ...] | None:
    """Return the parameter ``joints`` of the effort controller, as in ros2_control; None without an answer."""
    controller = contract.commands.found_as.rpartition("/")[0]
    service = f"{controller}/get_parameters"
    if service not in dict(node.get_service_names_and_types()):
        return None
    client = node.create_client(GetParameters, service)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    try:
        future = client.call_async(GetParameters.Request(names=["joints"]))
        executor.spin_until_future_complete(future, timeout_sec=_SERVICE_S)
    finally:
        executor.remove_node(node)
        executor.shutdown()
        node.destroy_client(client)
    answer = future.result() if future.done() else None
    values = answer.values[0].string_array_value if answer is not None and answer.values else []
    return tuple(values) or None
