"""Estimate the parameters of a robot by instrumental variables, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags, Integers
from bipedsim_studies.identify.equations import Equations, Rows
from bipedsim_studies.identify.parameters import KINDS, Parameters, parameters_of
from bipedsim_studies.identify.signals import PHASES, RATE, SMOOTHED, TAPS, Signals, predicted

ITERATIONS = 20
SETTLED = 8
"""Iterations after which the weights of the equations do not change any more, so that the others converge."""
LONGEST = 1.0
"""Longest step of an iteration in expected standard deviations. A full step may leave the linear range."""
CONVERGED = 0.1
"""Step of an iteration, in standard deviations of the estimate, at which it counts as converged."""
CORRELATED = 0.5
"""Time over which residuals are correlated [s]; Newey and West's estimate of their covariance reaches as far."""
REPEATED = 0.1
"""Time over which errors of the model count as constant [s], since they repeat with the motion."""
INDEPENDENT = RATE * 2.0 / 3.0 * (SMOOTHED + TAPS / RATE)
"""Rows from one independent sample to the next one."""
OUTLIER = 2.0
"""Residual of a row in standard deviations from which its weight decreases (Huber)."""
LEARNT = 0.5
"""Share of the expected standard deviation below which a number was learnt from the data."""
_FLOOR, _FLOORS = 0.05, (3e-3, 50.0)
_Z95, _TINY = 1.959964, 1e-300


@dataclass(frozen=True)
class Unexplained:
    """Torque of a joint that neither the model nor the noise of the sensors explain.

    Attributes:
        rms: Its root mean square [N.m].
        share: The same over that of the joint's effort, or over a tenth of the largest one of all joints.
        by_phase: The root mean square in each of ``PHASES`` in which the joint moved; none if the phases are unknown.
    """

    rms: float
    share: float
    by_phase: Mapping[str, float]

    @classmethod
    def of(cls, squares: Array, effort: float, phases: Integers) -> Unexplained:
        """Return the statistics of a joint.

        Args:
            squares: (n,) expected squares of the error of the model; NaN where the joint does not move.
            effort: Torque for the share [N.m].
            phases: (n,) phase of each row.
        """
        moved = np.isfinite(squares)
        rms = math.sqrt(float(squares[moved].mean()))
        known = {name: squares[moved & (phases == number)] for number, name in enumerate(PHASES)}
        by_phase = {name: math.sqrt(float(values.mean())) for name, values in known.items() if len(values)}
        return cls(rms, rms / effort, by_phase)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Store the result: p numbers and their uncertainty.

    Attributes:
        parameters: Description of the numbers.
        values: (p,) estimates.
        covariance: (p, p).
        unexplained: Joint that moved to its torque that the model does not explain.
        converged: Whether the iteration has converged.
        model_errors: (R,) standard deviation of the error of each equation that is no noise of the sensors.
    """

    parameters: Parameters
    values: Array
    covariance: Array
    unexplained: Mapping[str, Unexplained]
    converged: bool
    model_errors: Array

    @property
    def deviation(self) -> Array:
        """Standard deviations (p,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def half_width(self) -> Array:
        """Half widths (p,) of the 95 % intervals."""
        return _Z95 * self.deviation

    @property
    def interval(self) -> tuple[Array, Array]:
        """Ends (p,) of the 95 % intervals; those of numbers that cannot be negative begin at 0 or above."""
        low, high = self.values - self.half_width, self.values + self.half_width
        return np.where(self.parameters.positive, np.maximum(low, 0.0), low), high

    def drawn(self, rng: np.random.Generator) -> Estimate:
        """Return the estimate with values that are drawn from its distribution; those that are negative become 0."""
        p = self.parameters
        covariance = self.covariance[np.ix_(p.free, p.free)]
        drawn = rng.multivariate_normal(self.values[p.free], covariance, method="eigh")
        return replace(self, values=p.with_free(drawn))

    @property
    def identified(self) -> Flags:
        """Whether each number (p,) is known as precisely as its kind asks for."""
        kinds = [KINDS[kind] for kind in self.parameters.kinds]
        # A mass is a logarithm: its share is the number itself.
        shares = [1.0 if name == "mass" else abs(x) for name, x in zip(self.parameters.kinds, self.values, strict=True)]
        wanted = [max(kind.precise, kind.relative * share) for kind, share in zip(kinds, shares, strict=True)]
        learnt = self.parameters.estimated & (self.deviation < LEARNT * self.parameters.spread)
        return np.asarray((self.half_width <= wanted) & learnt)


def estimate(
    robot: Robot,
    recordings: Sequence[Signals],
    progress: Callable[[], object] | None = None,
    parameters: Parameters | None = None,
) -> Estimate:
    """Estimate the parameters of a robot.

    The equations are linearised and solved by two-stage least squares with weights, in the manner of Gauss and Newton.
    The instruments are the derivatives at signals that were predicted from their past
    (:func:`bipedsim_studies.identify.predicted`). The expectation before any data is a further, weak measurement.

    Args:
        robot: The robot as described.
        recordings: Signals of one or more recordings.
        progress: Called after each iteration.
        parameters: Its parameters; by default all of :func:`bipedsim_studies.identify.parameters_of`.
    """
    parameters = parameters_of(robot) if parameters is None else parameters
    equations = Equations(robot, parameters)
    pasts = [predicted(signals) for signals in recordings]
    free = parameters.free
    values, floor, converged = parameters.start.copy(), np.full(equations.n_rows, _FLOOR), False
    for iteration in range(ITERATIONS):
        sums, squares = _sums(equations, recordings, pasts, values, floor)
        step, covariance = sums.solved(parameters, values)
        step *= min(1.0, LONGEST / max(np.abs(step / parameters.spread).max(), _TINY))
        # The free numbers move, and the others follow, so that a limit of one side keeps both sides tied.
        target = parameters.with_free((values + step)[free])
        step, values = target - values, target
        known: Flags = np.any(np.isfinite(squares), axis=0)
        if 0 < iteration < SETTLED:
            floor[known] = np.clip(np.sqrt(np.nanmean(squares[:, known], axis=0)), *_FLOORS)
        size = float(np.abs(step[free] / np.sqrt(np.diag(covariance)[free])).max())
        if progress is not None:
            progress()
        converged = iteration >= SETTLED and size < CONVERGED
        if converged:
            break
    middle = TAPS // 2  # of the window of a row
    rows = [slice(past.begin + middle, len(past) - middle) for past in pasts]
    efforts = np.vstack([each.effort[part] for each, part in zip(recordings, rows, strict=True)])
    efforts = np.sqrt(np.mean(efforts**2, axis=0))
    efforts = np.maximum(efforts, max(0.1 * efforts.max(), 1e-9))
    phases = np.concatenate([each.phases[part] for each, part in zip(recordings, rows, strict=True)])
    unexplained = {
        joint: Unexplained.of(squares[:, row], float(effort), phases)
        for joint, row, effort in zip(robot.joint_names, robot.idx_v, efforts, strict=True)
        if known[row]
    }
    return Estimate(parameters, values, covariance, unexplained, converged, floor)


def with_more(robot: Robot, result: Estimate, signals: Signals) -> Estimate:
    """Return the estimate with the covariance that it would have if ``signals`` were recorded in addition.

    The information of both is added; the values stay. The equations are weighted as before.
    """
    p = result.parameters
    sums, _ = _sums(Equations(robot, p), [signals], [predicted(signals)], result.values, result.model_errors)
    _, alone = sums.solved(p, result.values)
    spread, chosen = p.spread[p.free], np.ix_(p.free, p.free)
    total = sum(_information(covariance[chosen], spread) for covariance in (result.covariance, alone))
    scaled = np.linalg.inv(np.eye(len(spread)) + total)
    return replace(result, covariance=p.basis @ (scaled * np.outer(spread, spread)) @ p.basis.T)


def _information(covariance: Array, spread: Array) -> Array:
    """Return the information (p, p) of data alone, in units of the expectation before the data.

    An estimate of the covariance may exceed this expectation in some directions; there is no information in them.
    """
    directions, axes = np.linalg.eigh(np.linalg.inv(covariance / np.outer(spread, spread)))
    information: Array = (axes * np.maximum(directions - 1.0, 0.0)) @ axes.T
    return information


def _sums(
    equations: Equations, recordings: Sequence[Signals], pasts: Sequence[Signals], values: Array, floor: Array
) -> tuple[_Sums, Array]:
    """Return the sums over all rows at ``values``, and the expected squares (n, R) of the errors of the model."""
    sums, squares = _Sums(len(values)), []
    for signals, past in zip(recordings, pasts, strict=True):
        rows, instruments = equations.rows(signals, values), equations.rows(past, values).slope
        squares.append(sums.add(rows, instruments, signals.noise, floor, past.begin))
    return sums, np.vstack(squares)


class _Sums:
    """Add up the products of instruments, derivatives and residuals.

    Attributes:
        zj, zz: (p, p) of instruments with derivatives, and with each other. zr: (p,) with residuals.
        scatter: (p, p) covariance of ``zr``: of the residuals as they are correlated in time, and of model errors,
            which repeat with the motion.
    """

    def __init__(self, p: int) -> None:
        self.zj, self.zz, self.scatter, self.zr = np.zeros((p, p)), np.zeros((p, p)), np.zeros((p, p)), np.zeros(p)

    def solved(self, parameters: Parameters, values: Array) -> tuple[Array, Array]:
        """Return the step (p,) from ``values`` to the solution of two-stage least squares, and its covariance (p, p).

        The expectation before any data is a further, weak measurement.
        """
        free, basis = parameters.free, parameters.basis
        zj, zz, scatter = (basis.T @ each @ basis for each in (self.zj, self.zz, self.scatter))
        spread, moved = parameters.spread[free], (values - parameters.start)[free]
        expected = np.diag(spread**-2.0)
        # Above rounding, for instruments that depend on each other, as those of joints at rest do.
        ridge = max(1e-6, 1e-14 * float(np.diag(zz) @ spread**2))
        gain = np.linalg.solve(zz + ridge * expected, zj).T
        normal = gain @ zj + expected
        step = -np.linalg.solve(normal, gain @ (basis.T @ self.zr) + expected @ moved)
        inverse = np.linalg.inv(normal)
        covariance = inverse @ (gain @ scatter @ gain.T + expected) @ inverse.T
        return np.asarray(basis @ step), np.asarray(basis @ covariance @ basis.T)

    def add(self, rows: Rows, instruments: Array, noise: Array, floor: Array, begin: int) -> Array:
        """Add the rows from ``begin`` on; return the expected squares (n, R) of their model errors, or NaN."""
        times, p = range(begin, len(rows.residual)), len(self.zr)
        scores = np.zeros((len(times), p))
        squares = np.full((len(times), rows.residual.shape[1]), np.nan)
        for i, k in enumerate(times):
            used = rows.used[k]
            if not used.any():
                continue
            sensors, variance = rows.noise[k][used] * noise, floor[used] ** 2
            inverse = np.linalg.inv(sensors @ sensors.T + np.diag(variance))
            slope, instrument, residual = rows.slope[k][used], instruments[k][used], rows.residual[k][used]
            white, of_instrument = inverse @ residual, inverse @ instrument
            size = float(np.sqrt(residual @ white / len(residual)))
            weight = min(1.0, OUTLIER / max(size, 1e-9)) / INDEPENDENT
            self.zj += weight * of_instrument.T @ slope
            self.zz += weight * of_instrument.T @ instrument
            scores[i] = weight * (white @ instrument)
            systematic = (weight * np.sqrt(REPEATED * RATE)) * floor[used, None] * of_instrument
            self.scatter += systematic.T @ systematic
            left = np.maximum(variance - variance**2 * np.diag(inverse), 0.0)
            squares[i, used] = (variance * white) ** 2 + left
        self.zr += scores.sum(axis=0)
        self.scatter += _newey_west(scores, int(CORRELATED * RATE))
        return squares


def _newey_west(scores: Array, lags: int) -> Array:
    """Return the covariance (p, p) of the sum of ``scores`` (n, p), which are correlated over ``lags`` rows."""
    total = scores.T @ scores
    for lag in range(1, min(lags, len(scores) - 1) + 1):
        product = scores[lag:].T @ scores[:-lag]
        total += (1.0 - lag / (lags + 1.0)) * (product + product.T)
    return total
