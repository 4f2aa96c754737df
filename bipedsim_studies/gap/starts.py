"""The states from which predictions start, estimated from encoders, IMU and ankle sensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.control.estimation import Estimator, EstimatorParams
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array, Flags
from bipedsim_studies.gap.footing import Footing
from bipedsim_studies.gap.models import GapModel
from bipedsim_studies.gap.recorded import RobotRun

SETTLE = 0.3
"""Time after the first measurement in which the estimator settles [s]."""

STALE = 0.01
"""Age of the last row with all measurements from which the state is unknown [s]; slower sensors have NaN in between."""
SENSORS = (
    *("joint_position", "joint_velocity", "imu_orientation"),
    *("imu_angular_velocity", "imu_linear_acceleration", "ankle_wrench"),
)
"""Columns of a recording that a state is estimated from, in the order in which they are used."""
BEYOND = 0.01
"""Largest angle beyond a joint's limit that is moved to the limit [rad]."""


@dataclass(frozen=True, eq=False)
class StartStates:
    """Store the estimated states of the n rows of a run.

    Attributes:
        q, v: (n, nq), (n, nv) states; NaN where there is none.
        loaded: (n, K) feet in contact.
        model: The model for which they were estimated.
    """

    q: Array
    v: Array
    loaded: Flags
    model: GapModel

    def known(self, first: int, last: int) -> bool:
        """Return whether all rows from ``first`` to ``last`` have a state."""
        return bool(np.isfinite(self.q[first : last + 1]).all())

    def at(self, row: int) -> tuple[Array, Array]:
        """Return the state (nq,), (nv,) with resting feet on the ground and joints within their limits."""
        q, v = Footing(self.model.plant).settled(self.q[row], self.v[row], self.loaded[row])
        stops = self.model.sim.dynamics.stops
        angles = q[stops.idx_q]
        limited = np.clip(angles, stops.lower, stops.upper)
        q = q.copy()
        # A joint that rests at its limit is measured beyond it half of the time.
        q[stops.idx_q] = np.where(np.abs(limited - angles) < BEYOND, limited, angles)
        return q, v


def estimate_starts(run: RobotRun, model: GapModel) -> StartStates:
    """Return the states of all rows that the measurements give.

    Raises:
        RecordingError: No row has all measurements of joints, IMU and ankles.
        ConfigError: The estimator does not support the robot.
    """
    robot, n = model.plant, len(run)
    corrected = model.without_offsets(run)
    q, v = np.full((n, robot.model.nq), np.nan), np.full((n, robot.model.nv), np.nan)
    loaded = np.zeros((n, len(robot.soles)), dtype=bool)
    signals = (run.position, run.velocity, run.orientation, run.gyro, run.accelerometer, run.wrench)
    complete: Flags = np.all([np.isfinite(s.reshape(n, -1)).all(axis=1) for s in signals], axis=0)
    if not complete.any():
        lost = [name for name, values in zip(SENSORS, signals, strict=True) if _lost(values)]
        which = f"no row has {' and '.join(lost)}" if lost else f"no row has all of {', '.join(SENSORS)}"
        message = f"{which} of all joints and feet; record them, or add their columns to the table"
        raise RecordingError(message, "measurements")
    joints: Flags = np.asarray(np.isfinite(run.position + run.velocity).all(axis=1))
    first = newest = int(np.argmax(complete))
    estimator = Estimator(robot, EstimatorParams(largest_gap=max(0.1, 1.5 * run.dt)), run.dt)
    estimator.reset(corrected.observation(first))
    for row in range(first + 1, n):
        estimate = estimator.update(corrected.observation(row))
        # The row reports the state of an earlier one.
        at = row - model.late
        newest = row if complete[row] else newest
        fresh = run.t[row] - run.t[newest] < STALE
        if joints[row] and fresh and run.t[row] - run.t[first] > SETTLE and at >= 0:
            q[at], v[at], loaded[at] = estimate.q, estimate.v, estimate.contact
    return StartStates(q, v, loaded, model)


def _lost(values: Array) -> bool:
    """Return whether no row of a signal is complete."""
    return not np.isfinite(values.reshape(len(values), -1)).all(axis=1).any()
