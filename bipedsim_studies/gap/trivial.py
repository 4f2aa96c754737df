"""Simple rules of prediction, which a model should beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array
from bipedsim.sim import Observation
from bipedsim_studies.gap.recorded import RobotRun
from bipedsim_studies.gap.signals import QUANTITIES, errors_at, matrix_of

HELD, CONSTANT_VELOCITY = "held", "constant velocity"
"""Rules: all measurements stay as at the start; joints and trunk continue with the measured velocity."""
MOVING = ("joint position", "attitude")
"""Quantities for which the second rule differs from the first."""


def trivial_errors(run: RobotRun, rows: Sequence[int], ticks: Sequence[int]) -> dict[str, dict[str, Array]]:
    """Return the errors (W, H, m) of both rules, for predictions from ``rows`` (W) over ``ticks`` (H)."""
    rules = {HELD: _held, CONSTANT_VELOCITY: _constant_velocity}
    return {
        rule: {
            name: np.array([[errors[name] for errors in window] for window in windows])
            for name in (QUANTITIES if rule == HELD else MOVING)
        }
        for rule, predict in rules.items()
        for windows in [[[predict(run, row, tick) for tick in ticks] for row in rows]]
    }


def _held(run: RobotRun, row: int, ticks: int) -> dict[str, Array]:
    return _errors(run, row + ticks, run.observation(row))


def _constant_velocity(run: RobotRun, row: int, ticks: int) -> dict[str, Array]:
    ahead, time = run.observation(row).copy(), ticks * run.dt
    ahead.joint_position += time * ahead.joint_velocity
    if np.isfinite(ahead.imu_orientation).all() and np.isfinite(ahead.imu_angular_velocity).all():
        turned = matrix_of(ahead.imu_orientation) @ pin.exp3(time * ahead.imu_angular_velocity)
        ahead.imu_orientation = pin.Quaternion(turned).coeffs()
    return _errors(run, row + ticks, ahead)


def _errors(run: RobotRun, row: int, predicted: Observation) -> dict[str, Array]:
    """Return the errors in ``row``; NaN beyond the end of the run."""
    errors = errors_at(run, min(row, len(run) - 1), predicted)
    return errors if row < len(run) else {name: np.full_like(error, np.nan) for name, error in errors.items()}
