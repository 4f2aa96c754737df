"""Services that start, push, move and step a simulation, with fields as typed parameters.

All of them have the type rcl_interfaces/srv/SetParametersAtomically, which every ROS 2 installation contains: names
with values, and an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import yaml
from rcl_interfaces.msg import Parameter
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python

from bipedsim.config import yaml_value
from bipedsim.errors import BipedSimError, ConfigError
from bipedsim_ros.loop import REQUESTS, SimLoop, carry_out, read_request
from bipedsim_ros.wire import topics

MOST_TICKS = 1_000_000


def offer_requests(node: Node, loop: SimLoop) -> None:
    """Create the services on a node; a thread other than the loop's serves them."""

    def create(name: str, act: Callable[[Sequence[Parameter]], str]) -> None:
        def serve(request: Any, response: Any) -> Any:
            try:
                response.result.reason, response.result.successful = act(request.parameters), True
            except BipedSimError as error:
                response.result.reason = str(error)
            return response

        node.create_service(SetParametersAtomically, topics.REQUEST.format(request=name), serve)

    for name in REQUESTS:
        create(name, partial(_single, loop, name))
    create("list", partial(_several, loop))
    create("steps", partial(_steps, loop))


def _ask(loop: SimLoop, action: Callable[[], str]) -> str:
    done, message = loop.requests.ask(action)
    if not done:
        raise BipedSimError(message)
    return message


def _single(loop: SimLoop, name: str, parameters: Sequence[Parameter]) -> str:
    request = read_request(name, fields_of(parameters))
    return _ask(loop, lambda: carry_out(loop, [request]))


def _several(loop: SimLoop, parameters: Sequence[Parameter]) -> str:
    requests = []
    for number, parameter in enumerate(parameters, start=1):
        where, value = f"request {number} of {len(parameters)}", parameter_value_to_python(parameter.value)
        try:
            fields = yaml_value(value) if isinstance(value, str) else None
        except yaml.YAMLError as error:
            raise ConfigError(f"its text is not valid YAML: {error}", where) from error
        if not isinstance(fields, dict):
            raise ConfigError("must be a text with its fields, such as '{body: torso, wrench: [...]}'", where, value)
        try:
            requests.append(read_request(parameter.name, fields))
        except ConfigError as error:
            raise error.within(where) from error
    return _ask(loop, lambda: carry_out(loop, requests))


def _steps(loop: SimLoop, parameters: Sequence[Parameter]) -> str:
    fields = fields_of(parameters)
    ticks = fields.pop("ticks", 1)
    if fields or isinstance(ticks, bool) or not isinstance(ticks, int) or not 1 <= ticks <= MOST_TICKS:
        raise ConfigError(
            f"must be ticks alone, a whole number from 1 to {MOST_TICKS}", "steps", {"ticks": ticks, **fields}
        )
    message = ""
    for taken in range(ticks):
        try:
            message = _ask(loop, loop.single_step)
        except BipedSimError as error:
            raise BipedSimError(f"{error} (after {taken} of {ticks} ticks)") from error
    return message


def fields_of(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the values of parameters by name; ``positions.l_knee`` is an entry of the mapping ``positions``.

    Raises:
        ConfigError: A name is given twice.
    """
    fields: dict[str, Any] = {}
    for parameter in parameters:
        head, _, key = parameter.name.partition(".")
        value = parameter_value_to_python(parameter.value)
        value = list(value) if hasattr(value, "typecode") or hasattr(value, "dtype") else value
        inside = fields.setdefault(head, {}) if key else fields
        name = key or head
        if not isinstance(inside, dict) or name in inside:
            raise ConfigError("is given twice", parameter.name)
        inside[name] = value
    return fields
