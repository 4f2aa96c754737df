"""Find parameters with which ``zmp`` walks a new robot, by trial walks in simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bipedsim.analysis import FallReason
from bipedsim.config import ProgressBar, RunConfig
from bipedsim.control import ankles_limit_soles
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import load_robot
from bipedsim.runs.runner import Prepared, Run, prepare
from bipedsim.runs.scenario import Scenario
from bipedsim.runs.velocities import Velocity

DISTANCE = 5.0
"""Distance of a trial walk [m]."""
SHARE = 0.9
"""Speed of a trial walk, as a fraction of ``max_forward``."""
START, MARGIN, AFTER = 1.0, 1.1, 1.5
"""Time before the walk [s], its planned distance as a multiple of ``DISTANCE``, and time after it [s]."""
BEHIND, CHECK = 0.5, 4.0
"""Fraction of the planned distance below which a trial ends as too slow, and time of walking before this check [s]."""
ANKLE_SHARE = 0.8
"""``ankle_share`` of the trials for robots whose ankles cannot use the whole sole."""
GENTLER = ((0.7, 1.7), (0.5, 1.4), (0.35, 1.4))
"""Further trials: ``max_forward`` as a fraction of the first one, and duration of a step times omega.

An error of the DCM grows with e^(omega T) until the next landing, so narrow soles need quick steps."""
GRAVITY = 9.81
"""Gravity for the duration of steps [m/s^2]."""
DOUBLE = 0.08
"""Time of double support divided by that of single support."""


@dataclass(frozen=True)
class WalkTrial:
    """Result of a trial walk.

    Attributes:
        params: Parameters of ``zmp``.
        speed: Commanded speed [m/s].
        distance: Distance between the first and the last position of the base [m].
        seconds: Simulated time [s].
        fell: Whether the robot fell or the controller gave up.
        reason: Reason of the fall; None without a fall, or if it is unknown.
        error: Message if the controller refuses the robot or the simulation diverges; else empty.
    """

    params: Mapping[str, float]
    speed: float
    distance: float
    seconds: float
    fell: bool = False
    reason: FallReason | None = None
    error: str = ""

    @property
    def walked(self) -> bool:
        """Whether the robot walked the distance without a fall."""
        return not self.fell and not self.error and self.distance >= DISTANCE

    def __str__(self) -> str:
        if self.error:
            return self.error
        if not self.fell:
            return f"walked {self.distance:.2f} m in {self.seconds:.0f} s at a command of {self.speed:.3g} m/s"
        why = f": {self.reason}" if self.reason else ""
        return f"fell after {self.distance:.2f} m at {self.seconds:.1f} s{why}"


def find_walk(robot: str | Path, params: Mapping[str, float], progress: bool = False) -> list[WalkTrial]:
    """Let ``zmp`` walk with ``params``, then with gentler ones, until the robot walks ``DISTANCE`` without a fall.

    Args:
        robot: A robot.yaml.
        params: First parameters of ``zmp``; ``com_height`` and ``max_forward`` are among them.
        progress: Show a progress bar for each trial.

    Returns:
        The trials in order. All but the last one failed; the last one failed only if no parameters work.
    """
    trials: list[WalkTrial] = []
    weak = ankles_limit_soles(load_robot(robot), ANKLE_SHARE)
    for attempt in _attempts(params, weak):
        trials.append(walk_trial(robot, attempt, f"trial walk {len(trials) + 1}" if progress else ""))
        if trials[-1].walked or trials[-1].error:
            break
    return trials


def _attempts(params: Mapping[str, float], weak: bool) -> Iterator[dict[str, float]]:
    """Yield ``params`` and gentler ones; ``weak`` means that the ankles cannot use the whole sole."""
    yield dict(params)
    first = {**params, "ankle_share": ANKLE_SHARE} if weak else dict(params)
    if weak:
        yield first
    period = float(np.sqrt(params["com_height"] / GRAVITY)) / (1.0 + DOUBLE)
    for share, quick in GENTLER:
        speed, single = share * params["max_forward"], quick * period
        yield {**first, "max_forward": float(f"{speed:.2g}"), "single_support": float(f"{single:.2g}")}


def walk_trial(robot: str | Path, params: Mapping[str, float], label: str = "") -> WalkTrial:
    """Let ``zmp`` walk ``DISTANCE`` straight ahead on flat ground, stop and stand.

    The trial ends early if the robot falls, or if it stays far behind its command.

    Args:
        robot: A robot.yaml.
        params: Parameters of ``zmp``.
        label: Label of a progress bar; empty for none.
    """
    speed = SHARE * params["max_forward"]
    stop = START + MARGIN * DISTANCE / speed
    scenario = Scenario(
        name="trial walk",
        controller="zmp",
        duration=stop + AFTER,
        velocity=(Velocity(at=START, vx=speed), Velocity(at=stop)),
    )
    try:
        prepared = prepare(RunConfig(robot=str(robot), controller_params=dict(params)), scenario)
        return _walk(prepared, params, speed, label)
    except (ConfigError, DivergenceError) as error:
        return WalkTrial(params, speed, 0.0, 0.0, error=str(error))


def _walk(prepared: Prepared, params: Mapping[str, float], speed: float, label: str) -> WalkTrial:
    run = Run(prepared)
    verdict = run.rollout.verdict
    start = run.sim.q[:2].copy()
    distance = 0.0
    for _ in ProgressBar(range(prepared.ticks), desc=label or None, unit="tick", disable=not label):
        run.control()
        run.step()
        t = run.sim.t
        distance = float(np.linalg.norm(run.sim.q[:2] - start))
        walking = min(t - START, MARGIN * DISTANCE / speed)
        if run.guard.fallen or verdict.fell_at is not None or (walking > CHECK and distance < BEHIND * speed * walking):
            break
    fell = run.guard.fallen or verdict.fell_at is not None
    return WalkTrial(params, speed, distance, run.sim.t, fell, _reason(run) if fell else None)


def _reason(run: Run) -> FallReason | None:
    """Return the reason of a fall; the guard stops the controller before the body is on the ground."""
    verdict = run.rollout.verdict
    ticks = round(1.0 / run.sim.control_dt)
    for _ in range(ticks):
        if verdict.fell_at is not None:
            return verdict.reason
        run.control()
        run.step()
    return None
