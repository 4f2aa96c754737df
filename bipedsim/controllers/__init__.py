"""The table of controllers: a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bipedsim.controllers.base import Controller
from bipedsim.controllers.posture import PostureController
from bipedsim.errors import UnknownNameError
from bipedsim.params import from_mapping
from bipedsim.robot import Robot

CONTROLLERS: dict[str, type[Any]] = {
    "posture": PostureController,
}


def controller_defaults(name: str, robot: Robot) -> dict[str, Any]:
    """Return the parameters that ``robot`` wants for the controller ``name``.

    Raises:
        UnknownNameError: No such controller; the message lists the choices.
    """
    if name not in CONTROLLERS:
        raise UnknownNameError("controller", name, CONTROLLERS)
    return dict(robot.controllers.get(name, {}))


def make_controller(
    name: str, robot: Robot, overrides: Mapping[str, Any] | None = None, dt: float = 1e-3
) -> Controller:
    """Return a controller with its defaults, then those of robot.yaml, then ``overrides``; mappings merge by key.

    Args:
        name: Key of ``CONTROLLERS``.
        robot: The robot that is controlled.
        overrides: Parameters that differ.
        dt: Control period [s].

    Raises:
        UnknownNameError: No such controller or parameter; the message lists the choices.
        ConfigError: A parameter is wrong.
    """
    values = controller_defaults(name, robot)
    where = f"controller {name!r} of {robot.name!r}"
    for key, value in (overrides or {}).items():
        old = values.get(key)
        values[key] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    cls = CONTROLLERS[name]
    controller: Controller = cls(robot, from_mapping(cls.Params, values, where), dt)
    return controller
