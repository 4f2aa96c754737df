"""Suggest the motion that identifies most of a robot, by simulating some with the identified parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bipedsim.config import RunConfig, from_mapping
from bipedsim.errors import BipedSimError
from bipedsim.model import Robot
from bipedsim.recording import Recording, write_text
from bipedsim.runs import Scenario, prepare, run
from bipedsim_studies.identify.estimation import Estimate, with_more
from bipedsim_studies.identify.lacking import Lacking, in_order
from bipedsim_studies.identify.signals import signals_of

DURATION = 10.0
"""Duration of each motion [s]."""
MOST_LIMITED = 0.01
"""Largest share of the time in which a torque may be at its limit."""


def _posture(**params: float | str) -> dict[str, Any]:
    return {"controller": "posture", "controller_params": params}


def _walk(**velocity: float) -> dict[str, Any]:
    return {"controller": "zmp", "velocity": [{"at": 1.0, **velocity}]}


MOTIONS: Mapping[str, Mapping[str, Any]] = {
    **{
        f"squat {depth:g} m in {period:g} s": _posture(mode="squat", squat_depth=depth, squat_period=period)
        for depth in (0.03, 0.06, 0.1)
        for period in (0.7, 1.2)
    },
    **{
        f"sway {amplitude:.0%} in {period:g} s": _posture(mode="sway", sway_amplitude=amplitude, sway_period=period)
        for amplitude in (0.6, 0.9)
        for period in (2.0, 4.0)
    },
    **{f"walk {speed:g} m/s": _walk(vx=speed) for speed in (0.1, 0.2, 0.3, 0.4)},
    "walk backwards 0.15 m/s": _walk(vx=-0.15),
    "walk sideways 0.1 m/s": _walk(vy=0.1),
    "turn 0.3 rad/s": _walk(wz=0.3),
    "walk a curve": _walk(vx=0.2, wz=0.3),
}
"""Name to the keys of a scenario, for motions of a robot on its feet."""


@dataclass(frozen=True, eq=False)
class Suggestion:
    """A motion, and its effect on the estimate.

    Attributes:
        name: Name of the motion.
        scenario: Keys of its scenario file.
        result: The estimate with the covariance that it would have with this motion; None if the motion fails.
        why: Reason of the failure.
        shrinks: Mean factor by which the motion narrows the intervals of all numbers.
    """

    name: str
    scenario: Mapping[str, Any]
    result: Estimate | None
    why: str = ""
    shrinks: float = 1.0

    @property
    def rank(self) -> tuple[int, float]:
        """Number of identified numbers, and for equal ones the narrowing."""
        return (-1, 0.0) if self.result is None else (int(self.result.identified.sum()), -self.shrinks)


def suggestions(
    robot: Robot,
    result: Estimate,
    hardware: Mapping[str, Any],
    lacking: Lacking,
    progress: Callable[[], object] | None = None,
) -> list[Suggestion]:
    """Return all motions, the best one first. Those in which the simulated robot fails are the last ones.

    Args:
        robot: The robot as described.
        result: The estimate so far.
        hardware: Hardware of the simulated robot, with the identified numbers.
        lacking: Signals that all recordings lack; a further one would lack them too.
        progress: Called after each motion.
    """
    tried = []
    for name, keys in MOTIONS.items():
        scenario = {"description": name, **keys, "duration": DURATION}
        tried.append(_try(robot, result, hardware, lacking, name, scenario))
        if progress is not None:
            progress()
    return sorted(tried, key=lambda each: each.rank, reverse=True)


def _try(
    robot: Robot,
    result: Estimate,
    hardware: Mapping[str, Any],
    lacking: Lacking,
    name: str,
    scenario: Mapping[str, Any],
) -> Suggestion:
    """Return the effect of a motion."""
    try:
        settings = RunConfig(robot=str(robot.source), hardware=hardware, duration=DURATION)
        recording, summary = run(prepare(settings, from_mapping(Scenario, scenario, name)))
        if faults := list(_faults(recording, summary)):
            return Suggestion(name, scenario, None, faults[0])
        measured = lacking.removed(in_order(recording, robot, name))
        more = with_more(robot, result, signals_of(measured, robot, name))
    except (BipedSimError, np.linalg.LinAlgError) as error:
        return Suggestion(name, scenario, None, str(error))
    free = result.parameters.free
    ratios = more.deviation[free] / result.deviation[free]
    return Suggestion(name, scenario, more, shrinks=float(np.exp(np.mean(np.log(ratios)))))


def _faults(recording: Recording, summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons why a robot should not move like this."""
    if summary["fell_at_s"] is not None:
        yield f"it falls after {summary['fell_at_s']:.3g} s"
    elif np.isfinite(recording.gave_up_at):
        yield f"its controller gives up after {recording.gave_up_at:.3g} s ({recording.gave_up_why})"
    if summary.get("joint_stops"):
        yield f"{', '.join(summary['joint_stops'])} reach their limits"
    if (summary.get("torque_limited_fraction") or 0.0) > MOST_LIMITED:
        yield f"torques are at their limits during {summary['torque_limited_fraction']:.1%} of the time"


def write_suggestion(path: Path, best: Suggestion, robot: str) -> str:
    """Write the scenario of the best motion, and return a line that says so.

    Args:
        path: The file.
        best: The best motion. No file is written if it fails, since all others fail too.
        robot: Option with the robot, for the line.

    Raises:
        RecordingError: The file cannot be written.
    """
    if best.result is None:
        return f"{path} is not written, because no motion succeeds"
    write_text(path, yaml.safe_dump(dict(best.scenario), sort_keys=False))
    return f"wrote {path}; see it with: bipedsim run {robot} --scenario {path} --view"
