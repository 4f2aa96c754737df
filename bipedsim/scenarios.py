"""What a headless run is besides its controller: where the robot starts, what the controller is told, who pushes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bipedsim.errors import UnknownNameError


@dataclass(frozen=True)
class Push:
    """A force on the root body.

    Attributes:
        start, duration: When it acts [s].
        force_over_weight: (x, y, z) in world axes, as a share of the robot's weight.
    """

    start: float
    duration: float
    force_over_weight: tuple[float, float, float]


@dataclass(frozen=True)
class Scenario:
    """One named situation; quantities that depend on the robot scale with it.

    Attributes:
        description: One line for ``--help``.
        controller: Parameters of the controller that this situation needs.
        drop_height: Height of the soles above the ground at the start [m].
        push: A push, or none.
        standing: Whether the robot stands still, so that the forces must balance its weight.
    """

    description: str
    controller: Mapping[str, Any] = field(default_factory=dict)
    drop_height: float = 0.0
    push: Push | None = None
    standing: bool = False


SCENARIOS: dict[str, Scenario] = {
    "stand": Scenario("stand still", {"mode": "stand"}, standing=True),
    "squat": Scenario("squat, 1 s each", {"mode": "squat"}),
    "drop": Scenario("fall from 5 cm and stand", {"mode": "stand"}, drop_height=0.05),
    "push": Scenario("stand, pushed sideways at t = 2 s", {"mode": "stand"}, push=Push(2.0, 0.1, (0.0, 0.1, 0.0))),
    "sway": Scenario("sway the hips from side to side, 5 s each time, feet flat", {"mode": "sway"}),
    "shift": Scenario(
        "shift the weight to the left foot, until the right one rests on its inner edge",
        {"mode": "shift", "sway_amplitude": 0.94},
    ),
    "toe_fall": Scenario("lean forwards and fall over the toes, for about 3 s", {"mode": "toe_fall"}),
    "steps": Scenario("take five steps and stand, for about 11 s", {"mode": "steps"}),
    "jump": Scenario("bend, jump, land on both feet and stand", {"mode": "jump", "squat_delay": 0.5}),
}


def get_scenario(name: str) -> Scenario:
    """Return the scenario ``name``.

    Raises:
        UnknownNameError: No such scenario; the message lists them.
    """
    if name not in SCENARIOS:
        raise UnknownNameError("scenario", name, SCENARIOS)
    return SCENARIOS[name]
