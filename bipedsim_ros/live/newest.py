"""The newest message of a topic, taken when somebody looks: nothing happens in Python when one comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rclpy.node import Node

from bipedsim.recording.bag import Qos
from bipedsim_ros.loop import HandledByLoop, Inbox
from bipedsim_ros.wire import Topic, message_class, profile, relative, topics


class Newest:
    """A subscription that keeps the newest message, and costs the publisher as little as one can.

    Args:
        node: The node.
        topic, foot, name: See :func:`bipedsim_ros.wire.publisher`.
        qos: Asked for; a deeper one keeps more than the newest.
    """

    def __init__(
        self, node: Node, topic: Topic, foot: str = "", name: str = "", qos: Qos = topics.NEWEST_OF_ANY
    ) -> None:
        self._node = node
        self.name = topic.of(foot) + name
        self._subscription: Any = node.create_subscription(
            message_class(topic.msgtype),
            relative(self.name),
            lambda _message: None,
            profile(qos),
            callback_group=HandledByLoop(),
            raw=True,
        )

    def take(self) -> bytes | None:
        """Return the next message, serialised, or None; never block."""
        return Inbox.take_from(self._subscription)

    def all(self) -> Iterator[bytes]:
        """Yield all messages that are there."""
        while (data := self.take()) is not None:
            yield data

    def close(self) -> None:
        """End the subscription."""
        self._node.destroy_subscription(self._subscription)
