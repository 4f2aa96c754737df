"""Find parameters with which ``zmp`` walks a new robot, by trial walks in simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bipedsim.analysis import FallReason
from bipedsim.config import ProgressBar, RunConfig
from bipedsim.control import DOUBLE_SUPPORT, Guard, StopKind, ankles_limit_soles
from bipedsim.errors import BipedSimError, ConfigError
from bipedsim.model import Robot, load_robot
from bipedsim.runs.runner import Run, prepare
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


@dataclass(frozen=True)
class WalkTrial:
    """Result of a trial walk.

    Attributes:
        params: Parameters of ``zmp``.
        speed: Commanded speed [m/s].
        distance: Distance between the first and the last position of the base [m].
        seconds: Simulated time [s].
        fell: Whether the robot fell.
        reason: Reason of the fall, also of one within a second after the controller gave up; None if it is unknown.
        error: Message if the robot or the parameters are refused; else empty.
        stop: Why the trial stopped without a fall: the controller gave up or failed, or the simulation diverged.
    """

    params: Mapping[str, float]
    speed: float
    distance: float
    seconds: float
    fell: bool = False
    reason: FallReason | None = None
    error: str = ""
    stop: str = ""

    @property
    def walked(self) -> bool:
        """Whether the robot walked the distance without a fall."""
        return not (self.fell or self.error or self.stop) and self.distance >= DISTANCE

    def __str__(self) -> str:
        if self.error:
            return self.error
        if self.walked:
            return f"walked {self.distance:.2f} m in {self.seconds:.0f} s at {self.speed:.2g} m/s"
        what = "stopped" if self.stop else "fell" if self.fell else "was too slow"
        why = "".join(f": {cause}" for cause in (self.stop, self.reason) if cause)
        return f"at {self.speed:.2g} m/s it {what} after {self.distance:.2f} m, {self.seconds:.1f} s{why}"


def find_walk(robot: str | Path, params: Mapping[str, float], progress: bool = False) -> list[WalkTrial]:
    """Let ``zmp`` walk with ``params``, then with gentler ones, until the robot walks ``DISTANCE`` without a fall.

    Args:
        robot: A robot.yaml.
        params: First parameters of ``zmp``; ``com_height`` and ``max_forward`` are among them.
        progress: Show a progress bar for each trial.

    Returns:
        The trials in order. All but the last one failed; the last one failed only if no parameters work. A trial with
        an ``error`` is the last one.
    """
    trials: list[WalkTrial] = []
    for attempt in _attempts(robot, params):
        trials.append(walk_trial(robot, attempt, f"trial walk {len(trials) + 1}" if progress else ""))
        if trials[-1].walked or trials[-1].error:
            break
    return trials


def _attempts(robot: str | Path, params: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Yield ``params`` and gentler ones, with ``ankle_share`` if the ankles cannot use the whole sole."""
    yield dict(params)
    loaded = load_robot(robot)
    weak = _has_weak_ankles(loaded)
    first = {**params, "ankle_share": ANKLE_SHARE} if weak else dict(params)
    if weak:
        yield first
    gravity = float(np.linalg.norm(loaded.model.gravity.linear))
    period = float(np.sqrt(params["com_height"] / gravity)) / (1.0 + DOUBLE_SUPPORT)
    for share, quick in GENTLER:
        speed, single = share * params["max_forward"], quick * period
        yield {**first, "max_forward": float(f"{speed:.2g}"), "single_support": float(f"{single:.2g}")}


def _has_weak_ankles(robot: Robot) -> bool:
    """Return whether ``ankle_share`` makes a difference, and leaves something of the soles."""
    try:
        return ankles_limit_soles(robot, ANKLE_SHARE)
    except ConfigError:
        return False


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
    except ConfigError as error:
        return WalkTrial(params, speed, 0.0, 0.0, error=str(error))
    try:
        run = Run(prepared)
    except Exception as error:
        return WalkTrial(params, speed, 0.0, 0.0, stop=_failure(prepared.guard, error))
    return _walk(run, prepared.ticks, params, speed, label)


def _walk(run: Run, ticks: int, params: Mapping[str, float], speed: float, label: str) -> WalkTrial:
    verdict = run.rollout.verdict
    start = run.sim.q[:2].copy()
    distance = 0.0
    try:
        for _ in ProgressBar(range(ticks), desc=label or None, unit="tick", disable=not label):
            run.control()
            run.step()
            distance = float(np.linalg.norm(run.sim.q[:2] - start))
            walking = min(run.sim.t - START, MARGIN * DISTANCE / speed)
            too_slow = walking > CHECK and distance < BEHIND * speed * walking
            if run.guard.fallen or verdict.fell_at is not None or too_slow:
                break
    except Exception as error:
        return WalkTrial(params, speed, distance, run.sim.t, stop=_failure(run.guard, error))
    seconds, stop = run.sim.t, run.guard.reason
    fell = verdict.fell_at is not None or (stop is not None and stop.kind is StopKind.TILTED)
    reason = _reason(run) if fell or (stop is not None and not stop.kind.failed) else None
    return WalkTrial(params, speed, distance, seconds, fell, reason, stop=str(stop) if stop and not fell else "")


def _failure(guard: Guard, error: Exception) -> str:
    """Return why an error ended a trial: that of the controller, or one of the simulation."""
    if guard.reason is not None:
        return str(guard.reason)
    return str(error) if isinstance(error, BipedSimError) else f"{type(error).__name__}: {error}"


def _reason(run: Run) -> FallReason | None:
    """Return the reason of a fall; the guard stops the controller before the body is on the ground."""
    verdict = run.rollout.verdict
    ticks = round(1.0 / run.sim.control_dt)
    with suppress(Exception):
        for _ in range(ticks):
            if verdict.fell_at is not None:
                break
            run.control()
            run.step()
    return None if verdict.fell_at is None else verdict.reason
