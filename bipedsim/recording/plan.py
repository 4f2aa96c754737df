"""Convert the plan in a controller's debug signals to points in the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bipedsim.numerics import Array, Integers

Value = TypeVar("Value")

PLANNED = "plan_"
"""Prefix of the debug signals that describe a plan."""
_POINTS = ("com", "dcm", "zmp")


@dataclass(frozen=True, eq=False)
class Plan:
    """Planned motion of a controller in the world; an attribute is None if the controller does not publish it.

    Attributes:
        footsteps: (n, 4) x, y, z [m] and heading [rad] of the next sole poses, the next one first.
        feet: (n,) foot of each footstep; -1 if unknown.
        com, dcm, zmp: (3,) planned centre of mass, divergent component of motion and zero-moment point [m].
    """

    footsteps: Array | None = None
    feet: Integers | None = None
    com: Array | None = None
    dcm: Array | None = None
    zmp: Array | None = None


def without_plan(readouts: Mapping[str, Value]) -> dict[str, Value]:
    """Return the readouts that are not part of a plan; plans are drawn in the world, not as curves."""
    return {name: value for name, value in readouts.items() if not name.startswith(PLANNED)}


def plan_of(readouts: Mapping[str, float]) -> Plan | None:
    """Return the plan in a controller's readouts; None if they contain none.

    Points are the readouts ``plan_com_x``, ``plan_com_y`` and ``plan_com_z``, and the same for ``dcm`` and ``zmp``; z
    is optional. Footsteps are numbered, the next one first: ``plan_step_1_x``, ``_y``, ``_yaw`` [rad], ``_foot`` (0 for
    the first foot of robot.yaml), and the optional ``_z``. All positions are in the world [m].
    """
    points = {}
    for name in _POINTS:
        x, y, z = (readouts.get(f"{PLANNED}{name}_{axis}", np.nan) for axis in "xyz")
        if np.isfinite([x, y]).all():
            points[name] = np.array([x, y, 0.0 if np.isnan(z) else z])
    steps, feet = [], []
    number = 1
    while f"{PLANNED}step_{number}_x" in readouts:
        x, y, z, yaw, foot = (
            readouts.get(f"{PLANNED}step_{number}_{part}", np.nan) for part in ("x", "y", "z", "yaw", "foot")
        )
        number += 1
        if np.isfinite([x, y]).all():
            steps.append([x, y, z, np.nan_to_num(yaw)])
            feet.append(int(np.nan_to_num(foot)))
    if not (points or steps):
        return None
    if steps:
        return Plan(np.array(steps), np.array(feet, dtype=np.int64), **points)
    return Plan(**points)
