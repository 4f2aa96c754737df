"""Errors of the sensors that a robot has in addition to its main IMU and its ankle sensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.model import NoiseParams
from bipedsim.numerics import Array
from bipedsim.sim.io import Observation
from bipedsim.sim.noise import Noise

_STREAM = 2
"""Key of their random numbers, so that they do not change those of the other sensors."""


class AdditionalSensors:
    """Convert ideal measurements of the additional IMUs and contact switches to real ones.

    Every IMU has noise, bias and delay of the main IMU, with its own random numbers. The switches have only the delay.

    Args:
        params: Errors of the sensors.
        ideal: The ideal observation; its arrays are refilled in place.
        real: The observation to fill. Its arrays must not be replaced afterwards.
        control_dt: Period of the measurements [s].
        seed: At least 0.
    """

    def __init__(
        self, params: NoiseParams, ideal: Observation, real: Observation, control_dt: float, seed: int
    ) -> None:
        self._imus = [
            Noise(params, _alone(now), control_dt, seed, real=_alone(later), stream=(_STREAM, i))
            for i, (now, later) in enumerate(zip(ideal.imus, real.imus, strict=True))
        ]
        self._closed, self._out = ideal.contact_switches, real.contact_switches
        self._line = np.zeros((round(params.measurement_delay / control_dt) + 1, len(self._closed)))
        self._head = 0

    def reset(self, seed: int | None) -> None:
        """Draw the biases and restart the noise; ``seed`` as in :meth:`Noise.reset`."""
        for imu in self._imus:
            imu.reset(seed)

    def measure(self, first: bool) -> None:
        """Process the ideal measurements of this tick; ``first`` as in :meth:`Noise.measure`."""
        for imu in self._imus:
            imu.measure(first)
        if first:
            self._line[:] = self._closed
        self._line[self._head] = self._closed
        self._head = (self._head + 1) % len(self._line)
        self._out[:] = self._line[self._head]

    def state(self) -> dict[str, Any]:
        """Return a copy of the state on which the next measurements depend."""
        switches = self._line.copy(), self._head, self._out.copy()
        return {"imus": [imu.state() for imu in self._imus], "switches": switches}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state` returned."""
        for imu, earlier in zip(self._imus, state["imus"], strict=True):
            imu.set_state(earlier)
        line, self._head, out = state["switches"]
        self._line[:], self._out[:] = line, out


def _alone(row: Array) -> Observation:
    """Return an observation of one IMU alone, whose arrays are views of its ``row`` (10,) in ``Observation.imus``."""
    none = np.zeros(0)
    return Observation(0.0, none, none, none, row[:4], row[4:7], row[7:], np.zeros((0, 6)))
