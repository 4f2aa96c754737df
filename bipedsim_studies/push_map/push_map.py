"""A push map: situations times directions, each bisected in a process of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from tqdm import tqdm

from bipedsim.config import RunConfig
from bipedsim.runs import prepare
from bipedsim_studies.push_map.capture import leg_of
from bipedsim_studies.push_map.steps import StepLimits, capture_bound
from bipedsim_studies.push_map.trial import PushKind, Situation, sideways, situations, survives
from bipedsim_studies.study import LIMIT, Needs, Threshold, alive, threshold, workers

FASTEST = 3.0
"""No push is tried that would change the robot's velocity by more than this [m/s]."""


@dataclass(frozen=True)
class Direction:
    """What was found in one direction.

    Attributes:
        name: Such as ``forward``, or ``outward`` of the foot that carries a walking robot.
        angle: From the heading, to the left [rad].
        found: Impulses [N.s].
        bound: What feet that stay can take in theory [N.s]; None of a robot that walks.
        capture: What steps can catch in theory [N.s]; None where no phases were asked for.
    """

    name: str
    angle: float
    found: Threshold
    bound: float | None
    capture: float | None = None


@dataclass(frozen=True, eq=False)
class PushMap:
    """All that was found.

    Attributes:
        kind: What the pushes are like.
        situations: In which situations.
        directions: What was found in each of them.
        legs: Length of the legs in each of them, from hip to sole as the robot stands [m].
    """

    kind: PushKind
    situations: tuple[Situation, ...]
    directions: dict[int, list[Direction]] = field(default_factory=dict)
    legs: tuple[float, ...] = ()

    def share(self, i: int, impulse: float) -> float:
        """Return J / (m omega L) of an impulse [N.s] in situation ``i``: how far it moves the DCM, in legs."""
        stance = self.situations[i].stance
        return impulse / (stance.mass * stance.omega * self.legs[i])

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
                    "phase": where.phase if math.isfinite(where.phase) else None,
                    "leg_m": self.legs[i] if self.legs else None,
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
        "capture_bound_Ns": entry.capture,
        "trials": found.trials,
    }


def _search(asked: tuple[Situation, float], kind: PushKind, tolerance: float) -> Threshold:
    where, angle = asked
    mass = where.stance.mass
    guess = 0.2 * mass if where.walking else max(where.stance.bound(angle), 0.05 * mass)
    return threshold(lambda impulse: survives(where, kind, angle, impulse), guess, tolerance, FASTEST * mass)


def _capture(asked: tuple[Situation, float], kind: PushKind, limits: StepLimits) -> float | None:
    """Return what steps can catch in theory [N.s], or None of a robot of which that is not known."""
    where, angle = asked
    if where.stride is None:
        return None
    stance = where.stance
    found = capture_bound(where.stride, stance.omega, angle, kind.duration, limits, stance.polygon)
    return stance.mass * stance.omega * found


def push_map(
    runs: Sequence[RunConfig],
    kind: PushKind,
    directions: int = 4,
    tolerance: float = 0.02,
    at: float | None = None,
    jobs: int = 1,
    progress: bool = False,
    scheduler: str = "",
    phases: int = 0,
    limits: StepLimits | None = None,
    time_limit: float = LIMIT,
) -> PushMap:
    """Find the largest push that each run recovers from.

    Args:
        runs: One for each situation.
        kind: What the pushes are like.
        directions: How many, evenly from the heading to the left.
        tolerance: How near the largest survived and the smallest fatal impulse get, as a share.
        at: When to push [s], see :func:`situations`.
        jobs: Processes.
        progress: Show a bar on stderr.
        scheduler: Address of a dask scheduler whose workers do it instead.
        phases: Of the step of a robot that walks, see :func:`situations`; each is a situation, with the bound of
            :func:`capture_bound`.
        limits: Of the steps of that bound.
        time_limit: Wall time within which each direction must be found [s].

    Raises:
        ConfigError: Something in the settings is wrong, or a robot falls without a push.
        ControllerError: A controller raised something; the message says where, and at which push.
        LostWorkersError: Workers died of it, or took longer than the limit, or the scheduler is gone.
    """
    legs = []
    for run in runs:
        # A wrong name is told before processes have loaded their kernels.
        legs.append(leg_of(prepare(run).robot, 0).hip_height)
    needs = Needs.of(part for run in runs for part in vars(run).items())
    with workers(jobs, needs, scheduler, time_limit) as pool:
        found_at = {i: alive(where) for i, where in pool.each(partial(situations, at=at, phases=phases), runs)}
        found = tuple(where for i in range(len(runs)) for where in found_at[i])
        lengths = tuple(legs[i] for i in range(len(runs)) for _ in found_at[i])
        result = PushMap(kind, found, {i: [] for i in range(len(found))}, lengths)
        angles = [2.0 * math.pi * k / directions for k in range(directions)]
        asked = [(i, angle) for i in range(len(found)) for angle in angles]
        work = [(found[i], angle) for i, angle in asked]
        captures: dict[int, float | None] = {}
        if phases:
            of = partial(_capture, kind=kind, limits=limits or StepLimits())
            captures = {number: alive(bound) for number, bound in pool.each(of, work)}
        found_by = pool.each(partial(_search, kind=kind, tolerance=tolerance), work)
        for number, edge in tqdm(found_by, total=len(work), unit="direction", disable=not progress, leave=False):
            i, angle = asked[number]
            where = found[i]
            bound = None if where.walking else where.stance.bound(angle)
            name = sideways(where.stance)(angle)
            result.directions[i].append(Direction(name, angle, alive(edge), bound, captures.get(number)))
    for entries in result.directions.values():
        entries.sort(key=lambda entry: entry.angle)
    return result
