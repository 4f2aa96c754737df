"""Send requests of a page to the nodes: services and parameters of sim_node, pushes, velocity commands."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters, SetParameters
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import SetBool, Trigger

from bipedsim.numerics import Array
from bipedsim.runs import PERIOD_NS, PlanarVelocity
from bipedsim_ros.live.newest import Newest
from bipedsim_ros.wire import TwistWriter, publisher, relative, topics

PATIENCE = 12.0
"""Maximum time to wait for an answer [s]; sim_node itself gives up after 10 s."""
STANDING = 5
"""Number of zero velocities that are published at the end of a velocity command."""
_GOODBYE = Duration(seconds=1)
SIM, CONTROLLER = "sim_node", "controller_node"


@dataclass(frozen=True)
class Answer:
    """Result of a request from the page.

    Attributes:
        asked: Name of the action on the page.
        good: Whether it succeeded.
        text: Explanation.
    """

    asked: str
    good: bool
    text: str


@dataclass(frozen=True)
class LiveParameter:
    """A number of a node that can change while it runs.

    Attributes:
        name: Name of the ROS parameter.
        value: Its value.
        low, high: Its range; infinite without a limit.
        doc: Its description.
    """

    name: str
    value: float
    low: float
    high: float
    doc: str


class Remote:
    """Sends requests, and passes on answers when they arrive; no method blocks.

    Args:
        node: The node; another thread must serve it.
        answered: Called with each answer by :meth:`look`.
    """

    def __init__(self, node: Node, answered: Callable[[Answer], None]) -> None:
        self._node = node
        self._answered = answered
        services = {"Pause": topics.PAUSE, "Resume": topics.PAUSE, "One step": topics.STEP, "Reset": topics.RESET}
        self._names = {asked: service.replace("~", SIM) for asked, service in services.items()}
        self._pause = node.create_client(SetBool, self._names["Pause"])
        self._triggers = {asked: node.create_client(Trigger, self._names[asked]) for asked in ("One step", "Reset")}
        self._set = {name: node.create_client(SetParameters, f"{name}/set_parameters") for name in (SIM, CONTROLLER)}
        self._get = {name: node.create_client(GetParameters, f"{name}/get_parameters") for name in (SIM, CONTROLLER)}
        self._list = {name: node.create_client(ListParameters, f"{name}/list_parameters") for name in (SIM, CONTROLLER)}
        self._describe = {
            name: node.create_client(DescribeParameters, f"{name}/describe_parameters") for name in (SIM, CONTROLLER)
        }
        changes = {SIM: topics.DRIVES_TUNED, CONTROLLER: topics.TUNED}
        self._changes = {name: Newest(node, topic, qos=topic.offered) for name, topic in changes.items()}
        self._pending: list[tuple[str, Any, float, Callable[[Any], Answer | None]]] = []
        self._push = publisher(node, topics.PUSH)
        self._velocity = publisher(node, topics.VELOCITY)
        self._twist = TwistWriter()
        self._velocity_command: PlanarVelocity = (0.0, 0.0, 0.0)
        self._standing = STANDING
        self._due = 0.0

    def pause(self, on: bool) -> None:
        """Pause or resume the simulation."""
        asked = "Pause" if on else "Resume"
        self._call(asked, self._pause, SetBool.Request(data=on), self._names[asked], _success(asked))

    def trigger(self, asked: str) -> None:
        """Request ``One step`` or ``Reset``."""
        self._call(asked, self._triggers[asked], Trigger.Request(), self._names[asked], _success(asked))

    def change(self, asked: str, name: str, value: float, of: str = SIM) -> None:
        """Change a parameter of a node."""

        def read(response: Any) -> Answer:
            result = response.results[0]
            return Answer(asked, result.successful, result.reason or f"{name} = {value:g}")

        request = SetParameters.Request(parameters=[Parameter(name, value=float(value)).to_parameter_msg()])
        self._call(asked, self._set[of], request, f"{of}/set_parameters", read)

    def read(self, of: str, names: Sequence[str], take: Callable[[dict[str, Any]], None]) -> bool:
        """Request parameters of a node; ``take`` gets those that exist. Return whether the node exists."""
        client = self._get[of]
        if not client.service_is_ready():
            return False

        def read(response: Any) -> None:
            values = map(parameter_value_to_python, response.values)
            take({name: value for name, value in zip(names, values, strict=False) if value is not None})

        self._ask(client, GetParameters.Request(names=list(names)), read)
        return True

    def start_of(self, of: str) -> tuple[bytes, ...]:
        """Return a value that differs between two starts of a node; empty without the node.

        It comes from the graph of this process, so that the node has no work.
        """
        infos = self._node.get_publishers_info_by_topic(relative(self._changes[of].name))
        return tuple(sorted(bytes(info.endpoint_gid) for info in infos))

    def changed(self, of: str) -> bool:
        """Return whether a node has published changed parameters since the last call."""
        return bool(list(self._changes[of].all()))

    def read_live(
        self, take: Callable[[list[LiveParameter]], None], of: str = CONTROLLER, groups: Sequence[str] = ()
    ) -> bool:
        """Request the numbers of a node that can change.

        Args:
            take: Gets the numbers.
            of: The node.
            groups: First parts of the names, such as ``drive_stiffness``; all by default.

        Returns:
            Whether the node exists.
        """
        clients = (self._list[of], self._describe[of], self._get[of])
        if not all(client.service_is_ready() for client in clients):
            return False

        def describe(response: Any) -> None:
            names = response.result.names
            self._ask(self._describe[of], DescribeParameters.Request(names=names), partial(get, names))

        def get(names: Sequence[str], response: Any) -> None:
            double = ParameterType.PARAMETER_DOUBLE
            described = zip(names, response.descriptors, strict=True)
            live = {name: each for name, each in described if each.type == double and not each.read_only}

            def give(values: dict[str, Any]) -> None:
                take([_live(name, live[name], value) for name, value in values.items()])

            self.read(of, list(live), give)

        self._ask(self._list[of], ListParameters.Request(prefixes=groups), describe)
        return True

    def push(self, force: Array, body: str) -> None:
        """Push a body with a force (3,) in odom axes [N]; a zero force ends the push."""
        message = WrenchStamped()
        message.header.frame_id = body
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = map(float, force)
        self._push.publish(message)

    @property
    def pushable(self) -> bool:
        """Whether any node subscribes to pushes."""
        return bool(self._push.get_subscription_count())

    @property
    def steerable(self) -> bool:
        """Whether any node subscribes to velocities."""
        return bool(self._velocity.get_subscription_count())

    @property
    def steered_by_others(self) -> bool:
        """Whether other nodes publish velocities too; the last message is valid, regardless of its publisher."""
        return bool(self._node.count_publishers(relative(topics.VELOCITY.name)) > 1)

    def steer(self, velocity: PlanarVelocity) -> None:
        """Publish a velocity ten times per second from now on; a zero velocity only a few times."""
        self._velocity_command, self._standing, self._due = velocity, 0, 0.0

    def look(self) -> None:
        """Publish a due velocity, and pass on the answers that have arrived."""
        now = time.monotonic()
        if now >= self._due and self._standing < STANDING:
            self._due = now + 1e-9 * PERIOD_NS
            self._standing += not any(self._velocity_command)
            self._velocity.publish(self._twist.write(self._velocity_command))
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        for request in pending:
            asked, future, since, read = request
            if future.done():
                answer = read(future.result())
                if answer is not None:
                    self._answered(answer)
            elif now - since < PATIENCE:
                self._pending.append(request)
            elif asked:
                self._answered(Answer(asked, False, f"no answer in {PATIENCE:g} s"))

    def stand(self) -> None:
        """Stop a robot that was steered, as when the page closes."""
        if any(self._velocity_command):
            self.steer((0.0, 0.0, 0.0))
            self.look()
            self._velocity.wait_for_all_acked(_GOODBYE)

    def _ask(self, client: Any, request: Any, read: Callable[[Any], None]) -> None:
        """Send a request of the page itself; without an answer nothing happens."""
        self._pending.append(("", client.call_async(request), time.monotonic(), read))

    def _call(self, asked: str, client: Any, request: Any, name: str, read: Callable[[Any], Answer]) -> None:
        if not client.service_is_ready():
            node = name.partition("/")[0]
            self._answered(Answer(asked, False, f"no node offers {name}: is {node} up?"))
            return
        self._pending.append((asked, client.call_async(request), time.monotonic(), read))


def _live(name: str, descriptor: Any, value: float) -> LiveParameter:
    low, high = -math.inf, math.inf
    if descriptor.floating_point_range:
        bounds = descriptor.floating_point_range[0]
        low, high = bounds.from_value, bounds.to_value
    return LiveParameter(name, float(value), low, high, descriptor.description)


def _success(asked: str) -> Callable[[Any], Answer]:
    return lambda response: Answer(asked, response.success, response.message)
