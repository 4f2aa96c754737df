"""The table of controllers: a new one is one file and one line here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from bipedsim.controllers.base import Controller
from bipedsim.controllers.computed_torque import ComputedTorqueController
from bipedsim.controllers.finite_time import FiniteTimeController
from bipedsim.controllers.pfl import PflController
from bipedsim.controllers.posture import PostureController
from bipedsim.controllers.sliding import SlidingController
from bipedsim.controllers.zmp import ZmpController
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.params import from_mapping
from bipedsim.robot import Robot

CONTROLLERS: dict[str, type[Any]] = {
    "posture": PostureController,
    "zmp": ZmpController,
    "computed_torque": ComputedTorqueController,
    "sliding": SlidingController,
    "pfl": PflController,
    "finite_time": FiniteTimeController,
}


def find_controller(name: str) -> tuple[str, type[Any]]:
    """Return the name of its parameters and the class of a controller in the table, or of ``package.module:Class``.

    Raises:
        UnknownNameError: No such controller or class; the message lists the choices.
        ConfigError: The module cannot be imported.
    """
    if ":" not in name:
        if name not in CONTROLLERS:
            raise UnknownNameError("controller", name, (*CONTROLLERS, "package.module:Class"))
        return name, CONTROLLERS[name]
    module_name, _, class_name = name.partition(":")
    if "" not in sys.path:
        # A console script does not look into the current folder, where users keep their first controller.
        sys.path.append("")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"controller = {name!r}: cannot import {module_name!r} ({error})") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        choices = [n for n, value in vars(module).items() if isinstance(value, type) and hasattr(value, "update")]
        raise UnknownNameError("class", class_name, choices, name)
    return class_name, found


def make_controller(
    name: str, robot: Robot, overrides: Mapping[str, Any] | None = None, dt: float = 1e-3
) -> Controller:
    """Return a controller with its defaults, then those of robot.yaml, then ``overrides``; mappings merge by key.

    Args:
        name: Key of ``CONTROLLERS``, or ``package.module:Class``.
        robot: The robot that is controlled.
        overrides: Parameters that differ.
        dt: Control period [s].

    Raises:
        UnknownNameError: No such controller or parameter; the message lists the choices.
        ConfigError: A parameter is wrong, or the controller has none.
    """
    prefix, cls = find_controller(name)
    where = f"controller {name!r} of {robot.name!r}"
    if not hasattr(cls, "Params"):
        if overrides:
            raise ConfigError(f"{where}: it has no Params, but {', '.join(overrides)} is given")
        without: Controller = cls(robot, None, dt)
        return without
    values = dict(robot.controllers.get(prefix, {}))
    for key, value in (overrides or {}).items():
        old = values.get(key)
        values[key] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    controller: Controller = cls(robot, from_mapping(cls.Params, values, where), dt)
    return controller
