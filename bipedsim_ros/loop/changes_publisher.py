"""Publish and log changed parameters of a controller or of the drives."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rclpy.node import Node
from std_msgs.msg import String

from bipedsim.config import ParameterChange
from bipedsim.recording.bag import NS_PER_S
from bipedsim_ros.wire import publisher, topics


class ChangesPublisher:
    """Publishes changed parameters on a latched topic, which recordings contain.

    Args:
        node: The node.
        topic: Topic of the changes, such as ``topics.TUNED``.
    """

    def __init__(self, node: Node, topic: topics.Topic) -> None:
        self._node = node
        self._publisher = publisher(node, topic)

    def publish(self, changes: Sequence[ParameterChange], t_ns: int) -> None:
        """Publish and log parameters that apply from the joint states stamped ``t_ns`` [ns] on."""
        for change in changes:
            self._node.get_logger().info(f"{change} from t = {t_ns / NS_PER_S:.9f} s on")
            entry = {"stamp": t_ns, "name": change.name, "value": change.value}
            self._publisher.publish(String(data=json.dumps(entry)))
