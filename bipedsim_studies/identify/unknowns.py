"""Extend the parameters of a robot by the drift of its sensors: how their offsets differ between recordings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # it imports its submodules at their first use

from bipedsim.numerics import Array, Indices
from bipedsim_studies.identify.equations import Equations, Rows
from bipedsim_studies.identify.parameters import Parameters
from bipedsim_studies.identify.signals import Signals

DRIFTING = ("force_offset", "moment_offset", "accelerometer_offset")
"""Kinds of offsets that temperature, load and a new zero change from one recording to the next."""
EXPECTED = 0.2
"""Standard deviation of a drift before any data, as a share of what is expected of the offset."""
_LEAST = 1e-3
"""Least standard deviation of a drift, as a share of what is expected of the offset."""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Describe the numbers that are estimated together: p parameters of the robot, and m drifts in each recording.

    The offset of a sensor in a recording is its parameter plus the drift, which has a normal distribution about zero.
    One recording cannot tell them apart, so it has no drift.

    Attributes:
        parameters: The parameters.
        offsets: (m,) indices of the parameters that drift.
        deviation: (m,) standard deviation of the drift of each.
        recordings: Number of recordings with a drift.
    """

    parameters: Parameters
    offsets: Indices
    deviation: Array
    recordings: int

    @classmethod
    def of(cls, parameters: Parameters, recordings: int) -> Unknowns:
        """Return the unknowns of some recordings, with the drift that is expected before any data."""
        offsets = np.flatnonzero(np.isin(parameters.kinds, DRIFTING) & parameters.estimated)
        return cls(parameters, offsets, EXPECTED * parameters.spread[offsets], recordings if recordings > 1 else 0)

    @property
    def free(self) -> Indices:
        """Indices of the numbers that are estimated by themselves."""
        return np.concatenate([self.parameters.free, np.arange(len(self.parameters), len(self.start))])

    @property
    def basis(self) -> Array:
        """Changes of all numbers due to changes of the free ones."""
        drifts = np.eye(len(self.start) - len(self.parameters))
        return np.asarray(scipy.linalg.block_diag(self.parameters.basis, drifts))

    @property
    def start(self) -> Array:
        """Values before any data."""
        return np.concatenate([self.parameters.start, np.zeros(self.recordings * len(self.offsets))])

    @property
    def spread(self) -> Array:
        """Standard deviations before any data."""
        return np.concatenate([self.parameters.spread, np.tile(self.deviation, self.recordings)])

    def with_free(self, free: Array) -> Array:
        """Return all numbers for these free ones; see :meth:`Parameters.with_free`."""
        m = len(self.parameters.free)
        return np.concatenate([self.parameters.with_free(free[:m]), free[m:]])

    @property
    def drift(self) -> Array:
        """Standard deviation (p,) of the drift of each parameter; 0 for those that do not drift."""
        result = np.zeros(len(self.parameters))
        if self.recordings:
            result[self.offsets] = self.deviation
        return result

    @property
    def of_next(self) -> Unknowns:
        """The unknowns of one more recording, whose sensors drift as those of the recordings so far."""
        return replace(self, recordings=1)

    @property
    def without_drift(self) -> Unknowns:
        """The parameters alone."""
        return replace(self, recordings=0)

    def _drifts(self, numbers: Array) -> Array:
        """Return the part (recordings, m) of ``numbers`` that belongs to drifts."""
        return numbers[len(self.parameters) :].reshape(self.recordings, len(self.offsets))

    def in_recording(self, values: Array, recording: int) -> Array:
        """Return the parameters (p,) as they are in a recording."""
        result = values[: len(self.parameters)].copy()
        if self.recordings:
            result[self.offsets] += self._drifts(values)[recording]
        return result

    def rows(self, equations: Equations, signals: Signals, values: Array, recording: int) -> Rows:
        """Return the equations of a recording with derivatives with respect to all numbers."""
        rows = equations.rows(signals, self.in_recording(values, recording))
        return rows._replace(slope=self.of_all(rows.slope, recording))

    def of_all(self, slope: Array, recording: int) -> Array:
        """Return derivatives with respect to all numbers, for those with respect to the parameters in a recording.

        Args:
            slope: (..., p) derivatives.
            recording: Index of the recording.
        """
        if not self.recordings:
            return slope
        m = len(self.offsets)
        result = np.zeros((*slope.shape[:-1], len(self.start)))
        result[..., : len(self.parameters)] = slope
        begin = len(self.parameters) + recording * m
        result[..., begin : begin + m] = slope[..., self.offsets]
        return result

    def learnt(self, values: Array, covariance: Array) -> Unknowns:
        """Return the unknowns with more likely deviations of the drift, which an estimate shows.

        This is a step of expectation maximisation. The sensors of a kind have the same deviation.
        """
        if not self.recordings:
            return self
        squares = self._drifts(values) ** 2 + self._drifts(np.diag(covariance))
        shares = squares / self.parameters.spread[self.offsets] ** 2
        deviation = np.empty(len(self.offsets))
        kinds = np.array(self.parameters.kinds)[self.offsets]
        for kind in DRIFTING:
            of_kind = kinds == kind
            if not of_kind.any():
                continue
            share = max(float(np.sqrt(shares[:, of_kind].mean())), _LEAST)
            deviation[of_kind] = share * self.parameters.spread[self.offsets[of_kind]]
        return replace(self, deviation=deviation)
