"""Compute a push map: bisect the impulse for every situation and direction, in parallel processes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from bipedsim.config import ProgressBar
from bipedsim.runs import prepare
from bipedsim_studies.push_map.capture import leg_of
from bipedsim_studies.push_map.settings import PushMapSettings
from bipedsim_studies.push_map.steps import StepLimits, capture_bound
from bipedsim_studies.push_map.trial import PushKind, Situation, direction_names, situations, survives
from bipedsim_studies.study import ONE_PROCESS, Needs, Parallel, Threshold, alive, threshold, workers

FASTEST = 3.0
"""Largest change of the robot's velocity by a push [m/s]. No larger push is simulated."""

SYMBOLS = ("m: mass", "ω = sqrt(g / height of the CoM)", "d: distance from the ZMP to the edge of the support")
"""Symbols of the theoretical limit m ω d of a standing robot."""


@dataclass(frozen=True)
class Direction:
    """Result for one direction.

    Attributes:
        name: Name such as ``forward``, or ``outward`` as seen from a walking robot's stance foot.
        angle: Angle from the heading to the left [rad].
        threshold: Largest survived and smallest fatal impulse [N.s].
        bound: Theoretical limit for fixed feet [N.s]; None for a walking robot.
        capture: Theoretical limit with steps [N.s]; None without phases.
    """

    name: str
    angle: float
    threshold: Threshold
    bound: float | None
    capture: float | None = None


@dataclass(frozen=True, eq=False)
class PushMap:
    """Results of a push map.

    Attributes:
        kind: Common properties of the pushes.
        situations: The situations.
        directions: Results of each situation, by its index.
        legs: Leg length of each situation, from hip to sole in the robot's nominal posture [m].
    """

    kind: PushKind
    situations: tuple[Situation, ...]
    directions: dict[int, list[Direction]] = field(default_factory=dict)
    legs: tuple[float, ...] = ()

    def share(self, i: int, impulse: float) -> float:
        """Return J / (m omega L) of an impulse [N.s] in situation ``i``: the shift of the DCM in leg lengths."""
        stance = self.situations[i].stance
        return impulse / (stance.mass * stance.omega * self.legs[i])

    def variants(self) -> list[list[int]]:
        """Return the indices of the situations, grouped where they differ only in the hardware.

        Situations on different feet are in different groups, because their directions differ.
        """
        groups: dict[tuple[Any, ...], list[int]] = {}
        counts: Counter[tuple[str, str]] = Counter()
        for i, situation in enumerate(self.situations):
            run = situation.settings
            of_run = run.scenario, str(run.hardware)
            groups.setdefault((run.scenario, counts[of_run], situation.stance.feet), []).append(i)
            counts[of_run] += 1
        return list(groups.values())

    def across(self, places: Sequence[int]) -> Iterator[tuple[Direction, ...]]:
        """Yield the results of each direction in the situations ``places`` of one group of :meth:`variants`."""
        yield from zip(*(self.directions[i] for i in places), strict=True)

    def as_json(self) -> dict[str, Any]:
        """Return the push map as JSON values."""
        return {
            "push": asdict(self.kind),
            "situations": [
                {
                    "robot": situation.settings.robot,
                    "scenario": situation.settings.scenario,
                    "controller": situation.settings.controller,
                    "hardware": situation.settings.hardware,
                    "at_s": situation.at,
                    "walking": situation.walking,
                    "phase": situation.phase if math.isfinite(situation.phase) else None,
                    "leg_m": self.legs[i] if self.legs else None,
                    "feet": list(situation.stance.feet),
                    "mass_kg": situation.stance.mass,
                    "com_height_m": situation.stance.com_height,
                    "zmp_m": situation.stance.zmp.tolist(),
                    "polygon_m": situation.stance.polygon.tolist(),
                    "directions": [_direction(entry, situation) for entry in self.directions[i]],
                }
                for i, situation in enumerate(self.situations)
            ],
        }


def _direction(entry: Direction, situation: Situation) -> dict[str, Any]:
    impulses = entry.threshold
    return {
        "name": entry.name,
        "angle_deg": math.degrees(entry.angle),
        "impulse_Ns": impulses.survived,
        "impulse_over_mass_m_s": impulses.survived / situation.stance.mass,
        "falls_at_Ns": impulses.failed if math.isfinite(impulses.failed) else None,
        "bound_Ns": entry.bound,
        "capture_bound_Ns": entry.capture,
        "trials": impulses.trials,
    }


def _search(search: tuple[Situation, float], kind: PushKind, tolerance: float) -> Threshold:
    situation, angle = search
    mass = situation.stance.mass
    guess = 0.2 * mass if situation.walking else max(situation.stance.bound(angle), 0.05 * mass)
    return threshold(lambda impulse: survives(situation, kind, angle, impulse), guess, tolerance, FASTEST * mass)


def _capture(search: tuple[Situation, float], kind: PushKind, limits: StepLimits) -> float | None:
    """Return the theoretical limit with steps [N.s], or None if the robot's next steps are unknown."""
    situation, angle = search
    if situation.stride is None:
        return None
    stance = situation.stance
    bound = capture_bound(situation.stride, stance.omega, angle, kind.duration, limits, stance.polygon)
    return stance.mass * stance.omega * bound


def push_map(settings: PushMapSettings, parallel: Parallel = ONE_PROCESS) -> PushMap:
    """Return the largest push that the robot recovers from in each scenario and direction.

    Args:
        settings: Settings of the push map. With phases, each phase is a situation, and has the limit of
            :func:`capture_bound`.
        parallel: Distribution of the work. The time limit is that of each direction.

    Raises:
        ConfigError: A setting is invalid, or a robot falls without a push.
        ControllerError: A controller raised an exception. The message contains its location and the push.
        LostWorkersError: Workers died or exceeded the time limit, or the scheduler is unreachable.
    """
    runs, kind, directions = settings.runs(), settings.push, settings.directions
    # An invalid name is reported here, before the processes load their kernels.
    legs = [leg_of(prepare(run).robot, 0).hip_height for run in runs]
    needs = Needs.of(item for run in runs for item in vars(run).items())
    find_situations = partial(situations, at=settings.at, phases=settings.phases)
    with workers(parallel, needs) as pool:
        show = partial(ProgressBar, disable=not parallel.progress)
        found_situations = show(pool.each(find_situations, runs), total=len(runs), unit="scenario")
        situations_of_run = {i: alive(found) for i, found in found_situations}
        all_situations = tuple(situation for i in range(len(runs)) for situation in situations_of_run[i])
        lengths = tuple(legs[i] for i in range(len(runs)) for _ in situations_of_run[i])
        result = PushMap(kind, all_situations, {i: [] for i in range(len(all_situations))}, lengths)
        angles = [2.0 * math.pi * k / directions for k in range(directions)]
        asked = [(i, angle) for i in range(len(all_situations)) for angle in angles]
        work = [(all_situations[i], angle) for i, angle in asked]
        captures: dict[int, float | None] = {}
        if settings.phases:
            compute_bound = partial(_capture, kind=kind, limits=settings.steps)
            bounds = show(pool.each(compute_bound, work), total=len(work), unit="bound")
            captures = {number: alive(bound) for number, bound in bounds}
        thresholds = pool.each(partial(_search, kind=kind, tolerance=settings.tolerance), work)
        for number, pending in show(thresholds, total=len(work), unit="direction"):
            i, angle = asked[number]
            situation = all_situations[i]
            bound = None if situation.walking else situation.stance.bound(angle)
            name = direction_names(situation.stance)(angle)
            result.directions[i].append(Direction(name, angle, alive(pending), bound, captures.get(number)))
    for entries in result.directions.values():
        entries.sort(key=lambda entry: entry.angle)
    return result
