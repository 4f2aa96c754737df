"""Wait for messages in a loop with deadlines, and serve everything else in a thread.

An executor checks all entities of a node on every call. A wait set with only the relevant subscriptions responds in
half the time. An executor in a separate thread serves services, parameters and slow topics.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile

from bipedsim_ros.loop.drops import Drops
from bipedsim_ros.loop.realtime import give_way
from bipedsim_ros.wire import Topic, message_class, relative, requested

_AFTER_FAULT_S = 0.01
_SWITCH_S = 1e-4
"""Maximum time the loop waits for Python's interpreter lock while another thread holds it; the default is 5 ms."""


class HandledByLoop(CallbackGroup):
    """Callback group that hides the loop's own subscriptions from executors."""

    def can_execute(self, entity: Any) -> bool:
        """Refuse, because the loop reads the messages."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Refuse, because the loop reads the messages."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Do nothing, because nothing was begun."""


def _taken_by_loop(_message: Any = None) -> None:
    """Serve as the required callback; never called, because the loop reads the messages."""


def subscribe_raw(node: Node, msgtype: str, name: str, qos: QoSProfile) -> Any:
    """Return a subscription to serialised messages that a loop reads with :func:`take_raw`, without callbacks.

    Raises:
        ConfigError: The message type cannot be imported.
    """
    return node.create_subscription(
        message_class(msgtype), name, _taken_by_loop, qos, callback_group=HandledByLoop(), raw=True
    )


def take_raw(subscription: Any) -> tuple[bytes, dict[str, Any]] | None:
    """Return the next serialised message and its properties, or None; never block."""
    taken: tuple[bytes, dict[str, Any]] | None = subscription.handle.take_message(subscription.msg_type, True)
    return taken


class Inbox:
    """Provides subscriptions that end a wait, others that are only read, and a wake-up from another thread.

    Args:
        node: The node.
        topic: Topic that :meth:`take` reads.
        more: Further topics whose messages end a wait; :meth:`take_any` reads all of them.
    """

    def __init__(self, node: Node, topic: Topic, *more: Topic) -> None:
        self._node = node
        self._awaited = [(awaited, self.subscribe(awaited)) for awaited in (topic, *more)]
        self._subscription = self._awaited[0][1]
        self._guard = node.create_guard_condition(_taken_by_loop, callback_group=HandledByLoop())
        self._wait_set = rclpy_implementation.WaitSet(len(self._awaited), 1, 0, 0, 0, 0, node.context.handle)

    def subscribe(self, topic: Topic, foot: str = "") -> Any:
        """Return a further subscription of the loop; read it with :meth:`take_from`."""
        return subscribe_raw(self._node, topic.msgtype, relative(topic.of(foot)), requested(topic))

    @property
    def topic(self) -> str:
        """Resolved name of the first topic that ends a wait."""
        return str(self._subscription.topic_name)

    def publishers(self) -> int:
        """Return the number of publishers to which the awaited subscriptions are connected."""
        return sum(subscription.get_publisher_count() for _, subscription in self._awaited)

    def wait(self, timeout_ns: int) -> bool:
        """Block until a message arrives, :meth:`wake` is called, or the timeout; return whether a message is there."""
        wait_set = self._wait_set
        wait_set.clear_entities()
        for _, subscription in self._awaited:
            wait_set.add_subscription(subscription.handle)
        wait_set.add_guard_condition(self._guard.handle)
        wait_set.wait(max(timeout_ns, 0))
        return bool(wait_set.get_ready_entities("subscription"))

    def take(self) -> bytes | None:
        """Return the next serialised message, or None; never block."""
        return self.take_from(self._subscription)

    def take_any(self) -> tuple[Topic, bytes] | None:
        """Return the next serialised message of all awaited topics with its topic, or None; never block."""
        for topic, subscription in self._awaited:
            data = self.take_from(subscription)
            if data is not None:
                return topic, data
        return None

    @staticmethod
    def take_from(subscription: Any) -> bytes | None:
        """Return the next serialised message of a subscription from :meth:`subscribe`, or None; never block."""
        taken = take_raw(subscription)
        return None if taken is None else taken[0]

    def wake(self) -> None:
        """End a wait; may be called from any thread."""
        self._guard.trigger()


class Background:
    """Serves the services, parameters and slow topics of nodes in a separate thread.

    Args:
        node: The node whose log reports failures.
        more: Further nodes.
    """

    def __init__(self, node: Node, *more: Node) -> None:
        self._executor = SingleThreadedExecutor(context=node.context)
        for served in (node, *more):
            self._executor.add_node(served)
        self._drops = Drops(node.get_logger().error)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="services", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        sys.setswitchinterval(_SWITCH_S)
        self._thread.start()

    def _run(self) -> None:
        give_way()
        while not self._stop.is_set():
            try:
                self._executor.spin_once(timeout_sec=0.5)
            except ExternalShutdownException:
                return
            except Exception as error:
                # A failure in one message, service or file must not prevent service to the others.
                kind = type(error).__name__
                self._drops.add(kind, f"a message or service was not served: {kind}: {error}; the others still are")
                self._stop.wait(_AFTER_FAULT_S)

    def submit(self, work: Any) -> None:
        """Run ``work()`` in the thread."""
        self._executor.create_task(work)

    def stop(self) -> None:
        """Finish the current callback and end the thread."""
        self._stop.set()
        self._executor.wake()
        if self._thread.is_alive():
            self._thread.join()
        self._executor.shutdown()
