"""The table of controllers: a new controller is one file and one entry here."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bipedsim.config import Table, from_mapping, import_own_module
from bipedsim.errors import ConfigError, UnknownNameError, closest

if TYPE_CHECKING:
    from bipedsim.control.base import Controller
    from bipedsim.model import Robot

CONTROLLERS = Table(
    "controller",
    "bipedsim.controllers",
    {
        "posture": "bipedsim.control.posture.posture:PostureController",
        "zmp": "bipedsim.control.walking.zmp:ZmpController",
        "computed_torque": "bipedsim.control.output.computed_torque:ComputedTorqueController",
        "sliding": "bipedsim.control.output.sliding:SlidingController",
        "pfl": "bipedsim.control.output.pfl:PflController",
        "policy": "bipedsim.control.policy.policy:PolicyController",
    },
)


def find_controller(name: str, others: Iterable[str] = ()) -> tuple[str, type[Any]]:
    """Return the parameter key and the class of a controller, for a name of the table or ``package.module:Class``.

    Args:
        name: The controller.
        others: Alternatives that the message about an unknown name also lists.

    Raises:
        UnknownNameError: There is no such controller or class; the message lists the choices.
        ConfigError: The module cannot be imported, or the class does not have the interface of a controller.
    """
    if name in CONTROLLERS:
        return name, CONTROLLERS[name]
    module_name, _, class_name = name.removeprefix("./").partition(":")
    if ":" in name and not module_name:
        raise ConfigError("lacks the module before the colon, as in package.module:Class", "controller", name)
    if module_name.endswith(".py"):
        suggestion = f"{module_name.removesuffix('.py').replace('/', '.')}:{class_name or 'Class'}"
        raise ConfigError(f"must have the import name of the module, without .py: {suggestion}", "controller", name)
    if ":" not in name:
        exists = name.isidentifier() and Path(f"{name}.py").is_file()
        own_classes = _classes(import_own_module(name, "controller", name)) if exists else []
        if own_classes:
            suggestions = " or ".join(f"{name}:{own_class}" for own_class in own_classes)
            raise ConfigError(f"must also name the class in {name}.py: {suggestions}", "controller", name)
        before, _, last = name.rpartition(".")
        if all(part.isidentifier() for part in name.split(".")) and before:
            raise ConfigError(f"must have a colon before the class; did you mean {before}:{last}?", "controller", name)
        choices = (*CONTROLLERS, *others)
        raise UnknownNameError("controller", name, choices, otherwise="package.module:Class of your own")
    module = import_own_module(module_name, "controller", name)
    controller_class = getattr(module, class_name, None)
    if not isinstance(controller_class, type):
        raise UnknownNameError("class", class_name, _classes(module), name)
    params = getattr(controller_class, "Params", None)
    if params is not None and not dataclasses.is_dataclass(params):
        raise ConfigError(
            "has a Params that is no dataclass: write @dataclass(frozen=True) above `class Params`, and each field "
            "with its type",
            "controller",
            name,
        )
    for method in ("reset", "update"):
        if not callable(getattr(controller_class, method, None)):
            raise ConfigError(f"has no method {method}(self, observation)", "controller", name)
    with suppress(ValueError):
        signature = inspect.signature(controller_class)
        try:
            signature.bind(None, None, None)
        except TypeError as error:
            raise ConfigError(
                f"is made as {class_name}(robot, params, dt), but its __init__ takes {signature} ({error})",
                "controller",
                name,
            ) from error
    return class_name, controller_class


def _classes(module: ModuleType) -> list[str]:
    """Return the names of the controllers that a module itself defines."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and callable(getattr(value, "update", None))
    ]


def robot_params(robot: Robot, prefix: str) -> dict[str, Any]:
    """Return the controller parameters that robot.yaml has under the key ``prefix``.

    Raises:
        UnknownNameError: robot.yaml also has a key that is a misspelt controller name.
    """
    for name in robot.controllers:
        # Keys may also be class names of users' own controllers; those are not in lower case.
        if name not in (prefix, *CONTROLLERS) and name.islower() and closest(name, CONTROLLERS):
            raise UnknownNameError("controller", name, CONTROLLERS, f"{robot.source}: controllers")
    return dict(robot.controllers.get(prefix, {}))


def make_controller(
    name: str, robot: Robot, overrides: Mapping[str, Any] | None = None, dt: float = 1e-3
) -> Controller:
    """Make a controller from its defaults, overridden by robot.yaml, then by ``overrides``; mappings merge by key.

    Args:
        name: Key of ``CONTROLLERS``, or ``package.module:Class``.
        robot: The robot to control.
        overrides: Parameters that differ from the defaults and robot.yaml.
        dt: Control period [s].

    Raises:
        UnknownNameError: There is no such controller or parameter; the message lists the choices.
        ConfigError: A parameter is wrong, or the controller takes none.
    """
    params = controller_params(name, robot, overrides)
    return construct(find_controller(name)[1], robot, params, dt)


def construct(cls: type[Any], robot: Robot, params: Any, dt: float) -> Controller:
    """Construct a controller of a class from :func:`find_controller`, with its ``Params`` or None."""
    controller: Controller = cls(robot, params, dt)
    return controller


def controller_params(name: str, robot: Robot, overrides: Mapping[str, Any] | None = None) -> Any:
    """Return the ``Params`` for :func:`make_controller`, or None for a controller without parameters.

    Raises:
        UnknownNameError, ConfigError: As :func:`make_controller`.
    """
    prefix, cls = find_controller(name)
    where = f"controller {name!r} of {robot.name!r}"
    if getattr(cls, "Params", None) is None:
        if overrides:
            raise ConfigError("it has no Params", f"{where}: {', '.join(overrides)}")
        return None
    values = robot_params(robot, prefix)
    for key, value in (overrides or {}).items():
        old = values.get(key)
        values[key] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return from_mapping(cls.Params, values, where)
