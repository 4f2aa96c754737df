"""Read the newest message of a topic only on demand, without a Python callback per message."""

from __future__ import annotations

from collections.abc import Iterator

from rclpy.node import Node

from bipedsim.recording.bag import Qos
from bipedsim_ros.loop import subscribe_raw, take_raw
from bipedsim_ros.wire import Topic, profile, relative, topics


class Newest:
    """Subscription that stores only the newest message, at minimum cost for the publisher.

    Args:
        node: The node.
        topic, foot, name: See :func:`bipedsim_ros.wire.publisher`.
        qos: Requested quality of service; a larger depth stores more messages.
    """

    def __init__(
        self, node: Node, topic: Topic, foot: str = "", name: str = "", qos: Qos = topics.NEWEST_OF_ANY
    ) -> None:
        self._node = node
        self.name = topic.of(foot) + name
        self._subscription = subscribe_raw(node, topic.msgtype, relative(self.name), profile(qos))

    def all(self) -> Iterator[bytes]:
        """Yield all stored messages."""
        while (taken := take_raw(self._subscription)) is not None:
            yield taken[0]

    def close(self) -> None:
        """Destroy the subscription."""
        self._node.destroy_subscription(self._subscription)
