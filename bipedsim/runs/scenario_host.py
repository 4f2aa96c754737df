"""What a scenario and a controller have to do with each other."""

from __future__ import annotations

import dataclasses
from typing import Any

from bipedsim.config import together
from bipedsim.control import CONTROLLERS, find_controller
from bipedsim.errors import UnknownNameError
from bipedsim.runs.scenario import Scenario


def controller_params_for(scenario: Scenario, controller: str, named: str = "") -> dict[str, Any]:
    """Return the controller parameters of a scenario that ``controller`` has, which need not be the scenario's own.

    Args:
        scenario: The scenario.
        controller: The controller that is used.
        named: Name or path by which the scenario was asked for, for messages; by default its own name.

    Raises:
        UnknownNameError: No such controller; or a parameter that the scenario's own controller does not have.
        ConfigError: Several such parameters.
    """
    known = _parameters(controller)
    left = [key for key in scenario.controller_params if key not in known or controller != scenario.controller]
    if left:
        own = _parameters(scenario.controller)
        where = f"scenario {(named or scenario.name)!r}: controller_params"
        together([UnknownNameError("parameter", key, own, where) for key in left if key not in own])
    return {key: value for key, value in scenario.controller_params.items() if key in known}


def _parameters(controller: str) -> tuple[str, ...]:
    """Return the names of the parameters of a controller; one of the user's own need have none."""
    declared = getattr(find_controller(controller)[1], "Params", None)
    return tuple(field.name for field in dataclasses.fields(declared)) if declared is not None else ()


def no_velocity(scenario: str, controller: str) -> str:
    """Return what to say when ``scenario``, a name or path, commands a velocity that ``controller`` does not take."""
    able = [name for name, cls in CONTROLLERS.items() if hasattr(cls, "set_velocity")]
    return (
        f"scenario {scenario!r} commands a velocity, but controller {controller!r} has no set_velocity; "
        f"take {', '.join(able) or 'one'} that has it, or another scenario"
    )
