"""Read the newest message of a topic only on demand, without a Python callback per message."""

from __future__ import annotations

from collections.abc import Iterator

from rclpy.node import Node

from bipedsim.recording.bag import Qos
from bipedsim_ros.loop import Inbox, subscribe_raw
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

    def take(self) -> bytes | None:
        """Return the next serialised message, or None; never block."""
        return Inbox.take_from(self._subscription)

    def all(self) -> Iterator[bytes]:
        """Yield all stored messages."""
        while (data := self.take()) is not None:
            yield data

    def close(self) -> None:
        """Destroy the subscription."""
        self._node.destroy_subscription(self._subscription)
