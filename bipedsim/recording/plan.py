"""What a controller intends, as readouts of a recording and as places in the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bipedsim.numerics import Array, Integers

Value = TypeVar("Value")

PLANNED = "plan_"
"""What the names of readouts begin with that are a plan."""
_POINTS = ("com", "dcm", "zmp")


@dataclass(frozen=True, eq=False)
class Plan:
    """What a controller intends, in the world; each part None where it does not show it.

    Attributes:
        footsteps: (n, 4) x, y, z [m] and heading [rad] of the soles to come, the next one first.
        feet: (n,) which foot each is of; -1 where that is not known.
        com, dcm, zmp: (3,) [m].
    """

    footsteps: Array | None = None
    feet: Integers | None = None
    com: Array | None = None
    dcm: Array | None = None
    zmp: Array | None = None


def without_plan(readouts: Mapping[str, Value]) -> dict[str, Value]:
    """Return the readouts that are figures of their own; those of a plan are places, which are drawn in the world."""
    return {name: value for name, value in readouts.items() if not name.startswith(PLANNED)}


def plan_of(readouts: Mapping[str, float]) -> Plan | None:
    """Return what a controller shows of its intentions, None where it shows nothing.

    Its readouts are then called ``plan_com_x``, ``plan_com_y``, ``plan_com_z``, the same of ``dcm`` and ``zmp``, whose
    z may lack; and of each footstep to come, the next one first, ``plan_step_1_x``, ``_y``, ``_yaw`` [rad], ``_foot``
    (0 for the first foot of robot.yaml), and ``_z``, which may lack. All are in the world [m].
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
