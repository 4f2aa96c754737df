"""What a scenario and a controller have to do with each other."""

from __future__ import annotations

import dataclasses
from typing import Any

from bipedsim.control import CONTROLLERS, find_controller
from bipedsim.runs.scenario import Scenario


def told(scenario: Scenario, controller: str) -> dict[str, Any]:
    """Return the controller parameters of a scenario that ``controller`` has; one of the user's own need have none.

    Raises:
        UnknownNameError: No such controller.
    """
    known = getattr(find_controller(controller)[1], "Params", None)
    fields = {field.name for field in dataclasses.fields(known)} if known is not None else set()
    return {key: value for key, value in scenario.controller_params.items() if key in fields}


def no_velocity(scenario: Scenario, controller: str) -> str:
    """Return what to say when ``scenario`` commands a velocity that ``controller`` does not take."""
    able = [name for name, cls in CONTROLLERS.items() if hasattr(cls, "set_velocity")]
    return (
        f"scenario {scenario.name!r} commands a velocity, but controller {controller!r} has no set_velocity; "
        f"take {', '.join(able) or 'one'} that has it, or another scenario"
    )
