"""A push map: situations times directions, each bisected in a process of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, field
from typing import Any

from tqdm import tqdm

from bipedsim.config import RunConfig
from bipedsim.runs import WorkerPool, prepare
from bipedsim_studies.push_map.search import Threshold, threshold
from bipedsim_studies.push_map.trial import PushKind, Situation, sideways, situation, survives

LIMIT = 3.0
"""No push is tried that would change the robot's velocity by more than this [m/s]."""


@dataclass(frozen=True)
class Direction:
    """What was found in one direction.

    Attributes:
        name: Such as ``forward``, or ``outward`` of the foot that carries a walking robot.
        angle: From the heading, to the left [rad].
        found: Impulses [N.s].
        bound: What feet that stay can take in theory [N.s]; None of a robot that walks.
    """

    name: str
    angle: float
    found: Threshold
    bound: float | None


@dataclass(frozen=True, eq=False)
class PushMap:
    """All that was found.

    Attributes:
        kind: What the pushes are like.
        situations: In which situations.
        directions: What was found in each of them.
    """

    kind: PushKind
    situations: tuple[Situation, ...]
    directions: dict[int, list[Direction]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "push": asdict(self.kind),
            "situations": [
                {
                    "robot": where.settings.robot,
                    "scenario": where.settings.scenario,
                    "controller": where.settings.controller,
                    "at_s": where.at,
                    "walking": where.walking,
                    "feet": list(where.stance.feet),
                    "mass_kg": where.stance.mass,
                    "com_height_m": where.stance.com_height,
                    "zmp_m": where.stance.zmp.tolist(),
                    "polygon_m": where.stance.polygon.tolist(),
                    "directions": [_direction(entry, where) for entry in self.directions[i]],
                }
                for i, where in enumerate(self.situations)
            ],
        }


def _direction(entry: Direction, where: Situation) -> dict[str, Any]:
    found = entry.found
    return {
        "name": entry.name,
        "angle_deg": math.degrees(entry.angle),
        "impulse_Ns": found.survived,
        "impulse_over_mass_m_s": found.survived / where.stance.mass,
        "falls_at_Ns": found.failed if math.isfinite(found.failed) else None,
        "bound_Ns": entry.bound,
        "trials": found.trials,
    }


def _search(where: Situation, kind: PushKind, angle: float, tolerance: float) -> Threshold:
    mass = where.stance.mass
    guess = 0.2 * mass if where.walking else max(where.stance.bound(angle), 0.05 * mass)
    return threshold(lambda impulse: survives(where, kind, angle, impulse), guess, tolerance, LIMIT * mass)


def push_map(
    runs: Sequence[RunConfig],
    kind: PushKind,
    directions: int = 4,
    tolerance: float = 0.02,
    at: float | None = None,
    jobs: int = 1,
    progress: bool = False,
) -> PushMap:
    """Find the largest push that each run recovers from.

    Args:
        runs: One for each situation.
        kind: What the pushes are like.
        directions: How many, evenly from the heading to the left.
        tolerance: How near the largest survived and the smallest fatal impulse get, as a share.
        at: When to push [s], see :func:`situation`.
        jobs: Processes.
        progress: Show a bar on stderr.

    Raises:
        ConfigError: Something in the settings is wrong, or a robot falls without a push.
    """
    for run in runs:
        # A wrong name is told before processes have loaded their kernels.
        prepare(run)
    with WorkerPool(jobs) as pool:
        situations = tuple(pool.map(situation, runs, [at] * len(runs)))
        result = PushMap(kind, situations, {i: [] for i in range(len(situations))})
        angles = [2.0 * math.pi * k / directions for k in range(directions)]
        pending = {
            pool.submit(_search, where, kind, angle, tolerance): (i, angle)
            for i, where in enumerate(situations)
            for angle in angles
        }
        bar = tqdm(as_completed(pending), total=len(pending), unit="direction", disable=not progress, leave=False)
        for job in bar:
            i, angle = pending[job]
            where = situations[i]
            bound = None if where.walking else where.stance.bound(angle)
            result.directions[i].append(Direction(sideways(where.stance)(angle), angle, job.result(), bound))
    for found in result.directions.values():
        found.sort(key=lambda entry: entry.angle)
    return result
