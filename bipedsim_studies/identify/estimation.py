"""Estimate the parameters of a robot by instrumental variables, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
import scipy  # it imports its submodules at their first use

from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags, Integers
from bipedsim_studies.identify.equations import Equations, Rows
from bipedsim_studies.identify.parameters import KINDS, Parameters, parameters_of
from bipedsim_studies.identify.repetition import repeated_shares, state_features
from bipedsim_studies.identify.signals import PHASES, RATE, SMOOTHED, TAPS, Signals, predicted
from bipedsim_studies.identify.unknowns import Unknowns

ITERATIONS = 20
SETTLED = 8
"""Iterations after which the weights of the equations do not change any more, so that the others converge."""
LONGEST = 1.0
"""Longest step of an iteration in expected standard deviations. A full step may leave the linear range."""
HALVED = 3
"""Iteration from which model errors change by half a step. Whole steps would alternate between two values."""
DRIFT_STEPS = 6
"""Steps of expectation maximisation for the drift of sensors in an iteration."""
NNLS_STEPS = 30
"""Largest number of steps of the non-negative least squares, for each number."""
CONVERGED = 0.1
"""Step of an iteration, in standard deviations of the estimate, at which it counts as converged."""
CORRELATED = 0.5
"""Time over which residuals are correlated [s]; Newey and West's estimate of their covariance reaches as far."""
BLOCK = 100
"""Rows that are added up at once."""
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
    """Store the result: the p parameters, the drift of sensors in each recording, and their uncertainty.

    Attributes:
        unknowns: Description of all P numbers: the parameters, and the drifts in each recording.
        all_values: (P,) estimates.
        all_covariance: (P, P).
        unexplained: Joint that moved to its torque that the model does not explain.
        converged: Whether the iteration has converged.
        model_errors: (R,) standard deviation of the error of each equation that is no noise of the sensors; NaN if the
            equation holds at no time.
        repeated: (2,) shares of the residuals that repeat with the motion, as errors of the model do: of their whole
            variance, and of the part that errors of the model cause. They are means over the recordings.
    """

    unknowns: Unknowns
    all_values: Array
    all_covariance: Array
    unexplained: Mapping[str, Unexplained]
    converged: bool
    model_errors: Array
    repeated: Array

    @property
    def parameters(self) -> Parameters:
        """Description of the parameters."""
        return self.unknowns.parameters

    @property
    def values(self) -> Array:
        """Estimates (p,) of the parameters; those of offsets that drift are means over the recordings."""
        return self.all_values[: len(self.parameters)]

    @property
    def covariance(self) -> Array:
        """Covariance (p, p) of the parameters."""
        p = len(self.parameters)
        return self.all_covariance[:p, :p]

    def in_recording(self, recording: int) -> Array:
        """Return the parameters (p,) as they are in a recording."""
        return self.unknowns.in_recording(self.all_values, recording)

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
        """Return the estimate with the parameters that a further recording may have, drawn from its distribution.

        Its sensors drift as between the recordings so far. Numbers that would be negative become 0.
        """
        p, after = self.parameters, self.unknowns.of_next
        covariance = self.covariance[np.ix_(p.free, p.free)]
        values = p.with_free(rng.multivariate_normal(self.values[p.free], covariance, method="eigh"))
        # The estimate from one recording contains the drift of that one.
        drifts = 1.0 if self.unknowns.recordings else math.sqrt(2.0)
        values[after.offsets] += drifts * after.deviation * rng.standard_normal(len(after.offsets))
        return replace(self, unknowns=self.unknowns.without_drift, all_values=values, all_covariance=self.covariance)

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
    p, unknowns = len(parameters), Unknowns.of(parameters, len(recordings))
    data = _Data(Equations(robot, parameters), recordings, [predicted(signals) for signals in recordings])
    values, floor = unknowns.start, np.full(data.equations.n_rows, _FLOOR)
    for iteration in range(ITERATIONS):
        sums, squares = data.sums(unknowns, values, floor)
        step, covariance = sums.solved(unknowns, values)
        step *= min(1.0, LONGEST / max(np.abs(step[:p] / parameters.spread).max(), _TINY))
        # The free numbers move, and the others follow, so that a limit of one side keeps both sides tied.
        before, values = values, unknowns.with_free((values + step)[unknowns.free])
        step = values - before
        if 0 < iteration < SETTLED:
            floor = sums.model_errors(floor, 1.0 if iteration < HALVED else 0.5)
            # The sums hold for any drift, so that its deviation can be found in several steps.
            for _ in range(DRIFT_STEPS if unknowns.recordings else 0):
                change, covariance = sums.solved(unknowns, before)
                unknowns = unknowns.learnt(before + change, covariance)
        if progress is not None:
            progress()
        if iteration >= SETTLED and _converged(unknowns, step, covariance):
            break
    covariance, repeated = data.covariance(unknowns, values, floor, sums)
    converged = _converged(unknowns, step, covariance)
    floor[np.diag(sums.information) == 0.0] = np.nan
    return Estimate(unknowns, values, covariance, _unexplained(robot, data, squares), converged, floor, repeated)


def _converged(unknowns: Unknowns, step: Array, covariance: Array) -> bool:
    """Return whether the last ``step`` (P,) of the free numbers was small against their standard deviations."""
    free = unknowns.free
    return bool(np.all(np.abs(step[free]) <= CONVERGED * np.sqrt(np.diag(covariance)[free])))


def _unexplained(robot: Robot, data: _Data, squares: Array) -> dict[str, Unexplained]:
    """Return the torque of each joint that moved that is not explained, from the ``squares`` (n, R) of model errors."""
    middle = TAPS // 2  # of the window of a row
    rows = [slice(past.begin + middle, len(past) - middle) for past in data.pasts]
    efforts = np.vstack([each.effort[part] for each, part in zip(data.recordings, rows, strict=True)])
    efforts = np.sqrt(np.mean(efforts**2, axis=0))
    efforts = np.maximum(efforts, max(0.1 * efforts.max(), 1e-9))
    phases = np.concatenate([each.phases[part] for each, part in zip(data.recordings, rows, strict=True)])
    return {
        joint: Unexplained.of(squares[:, row], float(effort), phases)
        for joint, row, effort in zip(robot.joint_names, robot.idx_v, efforts, strict=True)
        if np.isfinite(squares[:, row]).any()
    }


def with_more(robot: Robot, result: Estimate, signals: Signals) -> Estimate:
    """Return the estimate with the covariance that it would have if ``signals`` were recorded in addition.

    The information of both is added; the values stay. The equations are weighted as before, and their errors repeat
    with the motion as before.
    """
    p, before = result.parameters, result.covariance.copy()
    unknowns = result.unknowns.of_next
    if not result.unknowns.recordings:
        # Nothing shows yet how far its offsets are from those of the next recording.
        before[unknowns.offsets, unknowns.offsets] += unknowns.deviation**2
    data = _Data(Equations(robot, p), [signals], [predicted(signals)])
    values = np.concatenate([result.values, unknowns.start[len(p) :]])
    # Nothing shows yet how wrong the equations of joints that did not move are; they count as those of other joints.
    floor, joints = result.model_errors.copy(), result.model_errors[robot.idx_v]
    if np.isfinite(joints).any():
        floor[robot.idx_v] = np.where(np.isfinite(joints), joints, np.sqrt(np.nanmean(joints**2)))
    floor = np.nan_to_num(floor, nan=_FLOOR)
    sums, _ = data.sums(unknowns, values, floor)
    alone = data.covariance(unknowns, values, floor, sums, result.repeated)[0][: len(p), : len(p)]
    spread, chosen = p.spread[p.free], np.ix_(p.free, p.free)
    total = np.diag(spread**-2.0) + sum(_information(covariance[chosen], spread) for covariance in (before, alone))
    # In units of the deviations before, rounding has little effect.
    units = np.outer(np.sqrt(np.diag(before)[p.free]), np.sqrt(np.diag(before)[p.free]))
    covariance = p.basis @ (np.linalg.inv(total * units) * units) @ p.basis.T
    return replace(result, unknowns=result.unknowns.without_drift, all_values=result.values, all_covariance=covariance)


def _information(covariance: Array, spread: Array) -> Array:
    """Return the information (p, p) of data alone, without that of the expectation before the data.

    An estimate of the covariance may exceed this expectation in some directions; there is no information in them.
    """
    deviations = np.sqrt(np.diag(covariance))
    units = np.outer(deviations, deviations)
    directions, axes = np.linalg.eigh(np.linalg.inv(covariance / units) - np.diag((deviations / spread) ** 2))
    return np.asarray((axes * np.maximum(directions, 0.0)) @ axes.T / units)


class _Data(NamedTuple):
    """Store the equations of a robot and the signals of its recordings, measured and predicted from their past."""

    equations: Equations
    recordings: Sequence[Signals]
    pasts: Sequence[Signals]

    def _rows(self, unknowns: Unknowns, values: Array) -> Iterator[tuple[Rows, Array, Signals, int]]:
        """Yield the equations of each recording, the instruments, the signals and the index of the first row."""
        for recording, (signals, past) in enumerate(zip(self.recordings, self.pasts, strict=True)):
            rows = unknowns.rows(self.equations, signals, values, recording)
            yield rows, unknowns.rows(self.equations, past, values, recording).slope, signals, past.begin

    def sums(self, unknowns: Unknowns, values: Array, floor: Array) -> tuple[_Sums, Array]:
        """Return the sums over all rows at ``values``, and the expected squares (n, R) of the errors of the model."""
        sums, squares = _Sums(len(values), self.equations.n_rows), []
        for rows, instruments, signals, begin in self._rows(unknowns, values):
            squares.append(sums.add(rows, instruments, signals.noise, floor, begin))
        return sums, np.vstack(squares)

    def covariance(
        self, unknowns: Unknowns, values: Array, floor: Array, sums: _Sums, shares: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the covariance (P, P) of the solution, and the shares (2,) of residuals that repeat.

        Args:
            unknowns: Description of the numbers.
            values: (P,) the numbers.
            floor: (R,) deviations of model errors.
            sums: Sums over all rows. Their ``scatter`` gets the errors that repeat in addition.
            shares: The shares of residuals that repeat; by default those that each recording shows.
        """
        found = []
        for rows, instruments, signals, begin in self._rows(unknowns, values):
            repeated, of_recording = _repeated(rows, instruments, signals, floor, begin, shares)
            sums.scatter += repeated
            found.append(of_recording)
        _, covariance = sums.solved(unknowns, values)
        return self._widened(unknowns, values, floor, sums, covariance), np.mean(found, axis=0)

    def _widened(self, unknowns: Unknowns, values: Array, floor: Array, sums: _Sums, covariance: Array) -> Array:
        """Return the ``covariance`` of a solution with no deviation below the one that sensor noise alone causes.

        Where few swings of a foot determine a number, their residuals scatter by chance, and so does the covariance
        that is estimated from them. The noise of the sensors is known better, but errors of other kinds are not white.
        """
        gain, inverse, expected = sums.solver(unknowns)
        basis = unknowns.basis
        variances = np.diag(basis @ inverse @ expected @ inverse.T @ basis.T).copy()
        solution = basis @ inverse @ gain @ basis.T
        for rows, instruments, signals, begin in self._rows(unknowns, values):
            effects: dict[int, Array] = {}
            for k, row in _weighted(rows, instruments, signals.noise, floor, begin):
                effects[k] = solution @ (row.weighted.T @ row.sensors)
                effects = {at: each for at, each in effects.items() if k - at < len(signals.correlation)}
                for at, each in effects.items():
                    shared = (effects[k] * each) @ signals.correlation[k - at]
                    variances += shared if at == k else 2.0 * shared
        of_residuals = np.diag(covariance)
        wider = np.sqrt(np.maximum(variances / np.where(of_residuals > 0.0, of_residuals, np.inf), 1.0))
        return covariance * np.outer(wider, wider)


class _Weighted(NamedTuple):
    """Store the n equations that hold at one time, with their weights.

    Attributes:
        used: (R,) which equations these are.
        slope: (n, p) their derivatives with respect to the parameters. residual: (n,).
        instrument: (n, p).
        trust: Weight of the time, 0 to 1; outliers have less.
        weighted: (n, p) the same, times this weight and the inverse of the covariance of their errors.
        sensors: (n, S) standard deviations of the errors from each sensor.
        inverse: (n, n) inverse of the covariance of the errors. white: (n,) the residual times this.
    """

    used: Flags
    slope: Array
    residual: Array
    instrument: Array
    trust: float
    weighted: Array
    sensors: Array
    inverse: Array
    white: Array


def _weighted(
    rows: Rows, instruments: Array, noise: Array, floor: Array, begin: int
) -> Iterator[tuple[int, _Weighted]]:
    """Yield the times from ``begin`` on at which equations hold, and these."""
    for k in range(begin, len(rows.residual)):
        used = rows.used[k]
        if not used.any():
            continue
        sensors, variance = rows.noise[k][used] * noise, floor[used] ** 2
        inverse = np.linalg.inv(sensors @ sensors.T + np.diag(variance))
        residual, instrument = rows.residual[k][used], instruments[k][used]
        white = inverse @ residual
        size = float(np.sqrt(residual @ white / len(residual)))
        trust = min(1.0, OUTLIER / max(size, 1e-9))
        weighted = trust / INDEPENDENT * (inverse @ instrument)
        yield k, _Weighted(used, rows.slope[k][used], residual, instrument, trust, weighted, sensors, inverse, white)


def _repeated(
    rows: Rows, instruments: Array, signals: Signals, floor: Array, begin: int, shares: Array | None
) -> tuple[Array, Array]:
    """Return the covariance (P, P) of instruments times residuals of a recording, of the part that repeats.

    The size of the residuals is the expected one, since the residuals of a fit are smaller. Only the shares that
    repeat, which are the second result, are those of the residuals, unless they are given. Both leave out forces that
    no sensor measures.
    """
    middle = TAPS // 2
    features = state_features(signals, slice(begin + middle, len(signals) - middle))
    residuals, used = np.zeros_like(rows.residual[begin:]), np.zeros_like(rows.used[begin:])
    effects = np.zeros((*rows.slope.shape[1:], features.shape[1]))
    of_model, total = np.zeros(len(floor)), np.full(len(floor), _TINY)
    measured = np.ones(len(signals.noise), dtype=np.bool_)
    measured[-signals.lacking.wrenches.size :] = ~signals.lacking.wrenches.ravel()
    times = _weighted(rows, instruments, signals.noise, floor, begin)
    while block := list(islice(times, BLOCK)):
        weighted = np.zeros((len(block), *effects.shape[:2]))
        for each, (k, row) in zip(weighted, block, strict=True):
            sensors, variance = row.sensors[:, measured], floor[row.used] ** 2
            covariance = sensors @ sensors.T + np.diag(variance)
            of_model[row.used] += variance
            total[row.used] += np.diag(covariance)
            each[row.used] = np.sqrt(np.diag(covariance))[:, None] * row.weighted
            # This is the expectation of the errors whose covariance this is. It is the residual if all is measured.
            residuals[k - begin, row.used], used[k - begin] = row.trust * (covariance @ row.white), row.used
        effects += np.tensordot(weighted, features[[k - begin for k, _ in block]], (0, 0))
    of_model /= total
    if shares is None:
        shares = repeated_shares(residuals, used, features, len(signals.correlation), of_model)
    effects *= np.sqrt(np.clip(shares[0] + shares[1] * of_model, 0.0, 1.0))[:, None, None]
    return np.tensordot(effects, effects, ((0, 2), (0, 2))), shares


class _Sums:
    """Add up the products of instruments, derivatives and residuals.

    Attributes:
        zj, zz: (p, p) of instruments with derivatives, and with each other. zr: (p,) with residuals.
        scatter: (p, p) covariance of ``zr``, of the residuals as they are correlated in time.
        score, information: (R,) and (R, R) twice the derivative of the log likelihood with respect to the variances of
            the model errors, and twice its Fisher information. Outliers count in full, so that impacts show.
    """

    def __init__(self, p: int, equations: int) -> None:
        self.zj, self.zz, self.scatter, self.zr = np.zeros((p, p)), np.zeros((p, p)), np.zeros((p, p)), np.zeros(p)
        self.score, self.information = np.zeros(equations), np.zeros((equations, equations))

    def model_errors(self, floor: Array, share: float) -> Array:
        """Return more likely standard deviations (R,) of model errors than ``floor`` (R,), by a ``share`` of a step.

        The step maximises the quadratic approximation of the likelihood over all variances that are large enough
        (scoring). The deviation of an equation that holds at no time stays.
        """
        known = np.diag(self.information) > 0.0
        if not known.any():
            return floor
        least = _FLOORS[0] ** 2
        above = floor[known] ** 2 - least
        scale = 1.0 / np.sqrt(np.diag(self.information)[known])
        curvature = self.information[np.ix_(known, known)] * np.outer(scale, scale)
        root = np.linalg.cholesky(curvature + 1e-9 * np.eye(len(scale))).T
        aim = np.linalg.solve(root.T, self.score[known] * scale) + root @ (above / scale)
        result = floor.copy()
        best = scale * scipy.optimize.nnls(root, aim, maxiter=NNLS_STEPS * len(aim))[0]
        result[known] = (1.0 - share) * floor[known] + share * np.sqrt(least + best)
        return np.minimum(result, _FLOORS[1])

    def solver(self, unknowns: Unknowns) -> tuple[Array, Array, Array]:
        """Return the parts of the solution by two-stage least squares, for the f free numbers.

        Returns:
            The gain, the inverse of the normal matrix, and the information before any data, which is a further, weak
            measurement. All are (f, f).
        """
        spread, basis = unknowns.spread[unknowns.free], unknowns.basis
        zj, zz = basis.T @ self.zj @ basis, basis.T @ self.zz @ basis
        expected = np.diag(spread**-2.0)
        # Above rounding, for instruments that depend on each other, as those of joints at rest do.
        ridge = max(1e-6, 1e-14 * float(np.diag(zz) @ spread**2))
        gain = np.asarray(np.linalg.solve(zz + ridge * expected, zj).T)
        return gain, np.asarray(np.linalg.inv(gain @ zj + expected)), expected

    def solved(self, unknowns: Unknowns, values: Array) -> tuple[Array, Array]:
        """Return the step from ``values`` to the solution, and the covariance of the solution.

        Numbers that would be negative, but cannot be, stay at 0, and the others are the solution for that. The
        covariance is that without limits.
        """
        basis, moved = unknowns.basis, (values - unknowns.start)[unknowns.free]
        gain, inverse, expected = self.solver(unknowns)
        step = -inverse @ (gain @ (basis.T @ self.zr) + expected @ moved)
        limited = np.append(unknowns.parameters.positive, np.zeros(len(values), dtype=np.bool_))[unknowns.free]
        if limited.any():  # SciPy's solver corrupts the memory if there is nothing to solve.
            step += inverse[:, limited] @ _forces_of_limits(
                (values[unknowns.free] + step)[limited], inverse[np.ix_(limited, limited)]
            )
        scatter = gain @ basis.T @ self.scatter @ basis @ gain.T
        covariance = basis @ inverse @ (scatter + expected) @ inverse.T @ basis.T
        return basis @ step, 0.5 * (covariance + covariance.T)  # Rounding makes it slightly asymmetric.

    def add(self, rows: Rows, instruments: Array, noise: Array, floor: Array, begin: int) -> Array:
        """Add the rows from ``begin`` on; return the expected squares (n, R) of their model errors, or NaN."""
        scores = np.zeros((len(rows.residual), len(self.zr)))
        squares = np.full(rows.residual.shape, np.nan)
        for k, row in _weighted(rows, instruments, noise, floor, begin):
            self.zj += row.weighted.T @ row.slope
            self.zz += row.weighted.T @ row.instrument
            scores[k] = row.residual @ row.weighted
            precision = np.diag(row.inverse)
            self.score[row.used] += row.white**2 - precision
            self.information[np.ix_(row.used, row.used)] += row.inverse**2
            variance = floor[row.used] ** 2
            left = np.maximum(variance - variance**2 * precision, 0.0)
            squares[k, row.used] = (variance * row.white) ** 2 + left
        self.zr += scores.sum(axis=0)
        self.scatter += _newey_west(scores[begin:], int(CORRELATED * RATE))
        return squares[begin:]


def _forces_of_limits(values: Array, compliance: Array) -> Array:
    """Return how the limits at 0 press on ``values`` (m,): forces >= 0 that move them above 0 by ``compliance`` (m, m).

    A force is 0 where a number is above its limit.
    """
    scale = np.sqrt(np.diag(compliance))
    root = np.linalg.cholesky(compliance / np.outer(scale, scale)).T
    aim = np.linalg.solve(root.T, -values / scale)
    return np.asarray(scipy.optimize.nnls(root, aim, maxiter=NNLS_STEPS * len(aim))[0] / scale)


def _newey_west(scores: Array, lags: int) -> Array:
    """Return the covariance (p, p) of the sum of ``scores`` (n, p), which are correlated over ``lags`` rows."""
    total = scores.T @ scores
    for lag in range(1, min(lags, len(scores) - 1) + 1):
        product = scores[lag:].T @ scores[:-lag]
        total += (1.0 - lag / (lags + 1.0)) * (product + product.T)
    return total
