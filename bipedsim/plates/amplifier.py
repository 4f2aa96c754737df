"""Simulate the amplifiers of a run's force plates: state, noise and samples, tick by tick."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # it imports its submodules on first access

from bipedsim.config import checked_seed
from bipedsim.numerics import Array, box, zeros_of
from bipedsim.plates.chain import Chain, begin_tick
from bipedsim.plates.schema import PlateConfig, per_channel
from bipedsim.plates.signals import THRESHOLD
from bipedsim.plates.surfaces import Surfaces

DAMPING = 0.02
"""Default damping ratio of a plate; mounted plates have little damping."""
_STATE = ("state", "taken", "steps", "drift", "clipped", "out", "new", "normal")


class Amplifiers:
    """Amplifiers of force plates and their samples.

    The random numbers depend only on the seed, on the number of resets since it was set, and on the index of the plate.
    The same seed gives the same bits.

    Args:
        configs: One or more plates.
        physics_dt: Length of a physics step [s].
        control_dt: Length of a tick, for which samples are stored [s].
        widest: Largest number of vertices of a foot.

    Attributes:
        configs: The plates, completed with the data of their models.
        geometries: Geometry of each plate.
        chain: Arrays for kernels, which fill ``chain.surfaces`` in each step and then call :func:`chain.advance`.
    """

    def __init__(self, configs: Sequence[PlateConfig], physics_dt: float, control_dt: float, widest: int) -> None:
        self.configs = tuple(config.complete() for config in configs)
        self.geometries = tuple(config.geometry() for config in self.configs)
        self.names = tuple(config.name for config in self.configs)
        count = len(self.configs)
        channels = max(len(geometry.channel_names) for geometry in self.geometries)
        samples = max(math.ceil(geometry.rate * control_dt * (1.0 + 1e-9)) for geometry in self.geometries) + 2
        surfaces = zeros_of(
            Surfaces,
            {"P": count, "P+1": count + 1, "W": widest + 8},
            axes=np.array([geometry.rotation for geometry in self.geometries]),
            centre=np.array([geometry.centre for geometry in self.geometries]),
            half=0.5 * np.array([geometry.size for geometry in self.geometries]),
            origin=np.array([geometry.transducer_origin for geometry in self.geometries]),
        )
        self.chain = zeros_of(
            Chain,
            {"P": count, "C": channels, "C+1": channels + 1, "S": samples},
            surfaces=surfaces,
            h=physics_dt,
            threshold=THRESHOLD,
            period=np.array([1.0 / geometry.rate for geometry in self.geometries]),
            channels=np.array([len(geometry.channel_names) for geometry in self.geometries]),
            gives_cop=np.array([int(geometry.kind == 1) for geometry in self.geometries]),
            offset=np.array([geometry.offset for geometry in self.geometries]),
            limit=np.full((count, channels), np.inf),
        )
        self._largest_drift = np.zeros((count, channels))
        for p in range(count):
            self._fill(p)
        self._noisy = bool(self.chain.noise.any())
        self._boxed = box(self.chain)
        self._generator = np.random.Generator(np.random.Philox(0))
        self._rows = [self.chain.out[p, :, : 1 + n] for p, n in enumerate(self.chain.channels)]

    def _fill(self, p: int) -> None:
        """Fill the constant arrays of plate ``p``."""
        c, config, geometry = self.chain, self.configs[p], self.geometries[p]
        n = len(geometry.channel_names)
        c.cross[p] = np.eye(6) if config.cross_talk is None else np.array(config.cross_talk)
        c.gains[p, :n] = np.eye(6) if geometry.kind == 1 else geometry.gains
        c.noise[p, :n] = per_channel(config.noise, n, 0.0)
        self._largest_drift[p, :n] = per_channel(config.drift, n, 0.0)
        if config.range is not None:
            c.limit[p, :n] = per_channel(config.range, n, np.inf)
            if config.bits is not None:
                c.quantum[p, :n] = 2.0 * c.limit[p, :n] / 2.0**config.bits
        frequency = per_channel(config.natural_frequency, 6, np.inf)
        damping = per_channel(config.damping, 6, DAMPING)
        for a in range(6):
            A, read = _axis(frequency[a], damping[a], config.anti_alias)
            c.flow[p, a], c.read[p, a] = A, read
            c.rigid[p, a] = not A.any()
            c.whole[p, a] = scipy.linalg.expm(A * c.h)
            c.like[p, a] = next(b for b in range(a + 1) if np.array_equal(c.flow[p, b], A))

    def reset(self, seed: int, draw: int) -> None:
        """Restart at t = 0 with the noise of the ``draw``-th reset since ``seed`` was set.

        Raises:
            ConfigError: The seed is not an integer of at least 0; nothing is changed.
        """
        seed = checked_seed(seed)
        c = self.chain
        for name in _STATE:
            getattr(c, name)[...] = 0
        c.surfaces.fallbacks[0] = 0
        # The sensors use the same seed with a spawn key of one number.
        sequence = np.random.SeedSequence(seed, spawn_key=(draw, 1))
        self._generator = np.random.Generator(np.random.Philox(sequence))
        c.drift[...] = self._generator.uniform(-1.0, 1.0, c.drift.shape) * self._largest_drift

    def begin(self) -> None:
        """Start a tick and discard the samples of the last one."""
        begin_tick(self._boxed)
        if self._noisy:
            self._generator.standard_normal(out=self.chain.normal)

    def samples(self, p: int) -> Array:
        """Return time and channels (n, 1 + c) of plate ``p`` in the last tick, as a view."""
        return self._rows[p][: self.chain.new[p]]

    @property
    def clipped(self) -> tuple[int, ...]:
        """Number of values of each plate beyond the range of its amplifier since the reset."""
        return tuple(self.chain.clipped.tolist())

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next samples depend on, and of the last samples."""
        arrays = {name: getattr(self.chain, name).copy() for name in _STATE}
        return {"arrays": arrays, "generator": self._generator.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the result of :meth:`state`."""
        for name, values in state["arrays"].items():
            getattr(self.chain, name)[...] = values
        self._generator = np.random.Generator(np.random.Philox(0))
        self._generator.bit_generator.state = state["generator"]


def _axis(frequency: float, damping: float, cutoff: float | None) -> tuple[Array, int]:
    """Return the matrix (5, 5) of an axis for its states and the force, and the index of the output state.

    Args:
        frequency: Natural frequency [Hz]; infinite for a rigid plate.
        damping: Damping ratio.
        cutoff: Cut-off frequency of the low-pass [Hz]; None without filter.
    """
    A = np.zeros((5, 5))
    source = 4
    if math.isfinite(frequency):
        _oscillator(A, 0, source, 2.0 * math.pi * frequency, damping)
        source = 0
    if cutoff is not None:
        _oscillator(A, 2, source, 2.0 * math.pi * cutoff, math.sqrt(0.5))
        source = 2
    return A, 0 if source == 4 else source


def _oscillator(A: Array, at: int, source: int, omega: float, damping: float) -> None:
    """Fill the rows of the two states at index ``at``, driven by the state ``source``."""
    A[at, at + 1] = 1.0
    A[at + 1, at] = -omega * omega
    A[at + 1, at + 1] = -2.0 * damping * omega
    A[at + 1, source] = omega * omega
