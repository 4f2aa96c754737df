"""Match a scenario with a controller: parameters and velocity commands."""

from __future__ import annotations

import dataclasses
from typing import Any

from bipedsim.config import together
from bipedsim.control import CONTROLLERS, find_controller
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.runs.scenario import Scenario


def controller_params_for(scenario: Scenario, controller: str, named: str = "") -> dict[str, Any]:
    """Return those controller parameters of a scenario that ``controller`` accepts.

    Args:
        scenario: The scenario.
        controller: The controller in use, which may differ from that of the scenario.
        named: Name or path with which the user selected the scenario, for messages; by default its own name.

    Raises:
        UnknownNameError: There is no such controller, or the scenario's own controller lacks one of the parameters.
        ConfigError: The scenario's own controller lacks several of the parameters.
    """
    known = _parameters(controller)
    unchecked = [key for key in scenario.controller_params if key not in known or controller != scenario.controller]
    if unchecked:
        own = _parameters(scenario.controller)
        where = f"scenario {(named or scenario.name)!r}: controller_params"
        together([UnknownNameError("parameter", key, own, where) for key in unchecked if key not in own])
    return {key: value for key, value in scenario.controller_params.items() if key in known}


def _parameters(controller: str) -> tuple[str, ...]:
    """Return the names of the parameters of a controller; a third-party controller may have none."""
    declared = getattr(find_controller(controller)[1], "Params", None)
    return tuple(field.name for field in dataclasses.fields(declared)) if declared is not None else ()


def no_velocity(scenario: str, controller: str) -> ConfigError:
    """Return the error for a ``scenario`` with velocity commands that ``controller`` does not accept."""
    able = [name for name, cls in CONTROLLERS.items() if hasattr(cls, "set_velocity")]
    return ConfigError(
        f"it commands a velocity, but controller {controller!r} has no set_velocity; use one that has it "
        f"({', '.join(able)}), or another scenario",
        f"scenario {scenario!r}",
    )
