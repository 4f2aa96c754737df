"""Estimate the friction of the ground where a foot slides, and a lower bound of it where none does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from bipedsim.model import Robot, Sole
from bipedsim.numerics import Array, Flags
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.feet import Feet
from bipedsim_studies.identify.fit import INDEPENDENT, LEAST, fitted, quantiles
from bipedsim_studies.identify.signals import HANN, RATE

SLIDES = 0.03
"""Velocity of two loaded feet relative to each other [m/s] from which one of them slides. Noise and errors of the
encoders are a third of it."""
STRAIGHT = 0.9
"""Cosine between friction and the opposite of the sliding velocity from which a foot slides without spinning."""
SPINS = 0.2
"""Velocity that a foot's spinning adds at the edge of the sole, as a share of the sliding velocity, from which the
friction counts as combined sliding and spinning, and is smaller than the coefficient times the load."""
ANY = 10.0
"""Standard deviation of a coefficient of friction, as expected before any data: none, for real ground."""
ALIKE = 3.0
"""Standard deviations by which the shares of tangential force in the load of two sliding feet may differ."""
_TINY = 1e-12


@dataclass(frozen=True)
class GroundFriction:
    """Store the friction of the ground.

    Attributes:
        described: Coefficient of static friction of the sole of ``foot`` in the description.
        bound: Lower bound of the coefficient of static friction.
        foot, time, source: Foot, time [s] and recording in which the bound was reached.
        dynamic: Coefficient of dynamic friction and half width of its 95 % interval; None if no foot slid for long
            enough.
        slid: Time during which feet slid straight [s].
        unclear: Time during which one of two feet slid straight, or both on different ground [s].
    """

    described: float
    bound: float
    foot: str
    time: float
    source: str
    dynamic: tuple[float, float] | None
    slid: float
    unclear: float

    def as_json(self) -> dict[str, Any]:
        """Return the friction as JSON values."""
        sliding = None if self.dynamic is None else {"value": self.dynamic[0], "half_width": self.dynamic[1]}
        return {
            "described": self.described,
            "static_at_least": self.bound,
            "foot": self.foot,
            "t": self.time,
            "recording": self.source,
            "dynamic": sliding,
            "slid_for_s": self.slid,
            "unclear_for_s": self.unclear,
        }

    @property
    def ground(self) -> str:
        """Option that simulates the measured friction on flat ground; empty if no foot slid."""
        if self.dynamic is None:
            return ""
        dynamic = self.dynamic[0]
        static = max(self.bound, dynamic)
        return f"--ground '{{flat: {{friction_static: {static:.3g}, friction_dynamic: {dynamic:.3g}}}}}'"

    def text(self) -> Iterator[str]:
        """Yield the friction as lines of text."""
        where = f"{self.foot} foot, t = {self.time:.2f} s of {self.source}"
        yield f"friction of the ground: at least {self.bound:.3f} ({where}); described: {self.described:g}"
        if self.unclear:
            yield (
                f"  {self.unclear:.2g} s of sliding are not used: the feet have different shares of tangential force, "
                "so only one slides, or the ground differs"
            )
        if self.dynamic is None:
            short = f"feet slid for {self.slid:.2g} s, which is too short" if self.slid else ""
            why = short or ("no sliding is used" if self.unclear else "no foot slid")
            yield f"  {why}, so it may be larger. To measure it, let both feet slide while both carry load"
        else:
            value, half = self.dynamic
            yield f"  while sliding: {value:.3f} +- {half:.2g}, from {self.slid:.2g} s of sliding feet:  {self.ground}"
        if self.bound > self.described:
            yield f"  the description has too little friction; raise feet.{self.foot}.friction_static in robot.yaml"


def friction(
    robot: Robot, result: Estimate, recordings: Sequence[Feet], sources: Sequence[str]
) -> GroundFriction | None:
    """Return the friction of the ground.

    A foot that does not turn is taken to be flat on the ground, so that its sole has the normal of the ground. All
    forces of such a foot are inside the cone of friction, and so is a mean of them. If loaded feet move relative to
    each other, at least one of them slides. A foot that sticks may use a larger share of its load than one that slides,
    because the static friction is the larger one. So the sliding foot is known only if both shares are equal within the
    errors of the sensors: then both slide, or the share is the same.

    Args:
        robot: The robot as described.
        result: The estimate, with the offsets of the ankle sensors.
        recordings: Forces and motion of the feet in each recording.
        sources: Names of the recordings.

    Returns:
        None if no foot with a sole was flat on the ground and had a sensor of tangential forces.
    """
    soles = np.array([sole.n_vertices > 2 for sole in robot.soles])
    best: tuple[float, int, float, str] | None = None
    tests = sum(int((feet.flat & feet.sheared & soles).sum()) for feet in recordings)
    sensors = sum(int((feet.flat & feet.sheared & soles).any(axis=0).sum()) for feet in recordings)
    factors = quantiles(tests, max(sensors, 1), 2)
    samples: list[tuple[float, Array]] = []
    slid = 0
    unclear = 0
    for feet, source in zip(recordings, sources, strict=True):
        usable = feet.sheared & soles
        if not (feet.flat & usable).any():
            continue
        bounds = _lower_ends(feet, feet.flat & usable, factors)
        if np.isfinite(bounds).any():
            k, foot = np.unravel_index(int(np.nanargmax(bounds)), bounds.shape)
            found = float(bounds[k, foot])
            if best is None or found > best[0]:
                best = found, int(foot), float(feet.t[k]), source
        both, differ = np.zeros((2, len(feet.t)), dtype=np.bool_)
        for i, j in permutations(map(int, np.flatnonzero(usable)), 2):
            slides = _slides(feet, i, j, _reach(robot.soles[i]))
            alike = _alike(feet, (i, j), slides)
            samples += _shares(feet, i, j, alike)
            both |= alike
            differ |= slides & ~alike
        slid += int(both.sum())
        unclear += int(differ.sum())
    if best is None:
        return None
    bound, of_bound, time, source = best
    sole = robot.soles[of_bound]
    dynamic = None
    if slid >= LEAST * INDEPENDENT:
        shares, slopes = np.array([share for share, _ in samples]), np.array([slope for _, slope in samples])
        found_dynamic = fitted(result, np.ones((len(shares), 1)), shares, slopes, np.array([ANY]))
        dynamic = None if found_dynamic is None else (float(found_dynamic[0][0]), float(found_dynamic[1][0]))
    return GroundFriction(
        described=sole.friction_static,
        bound=max(bound, 0.0),
        foot=sole.name,
        time=time,
        source=source,
        dynamic=dynamic,
        slid=slid / RATE,
        unclear=unclear / RATE,
    )


def _reach(sole: Sole) -> float:
    """Return the largest distance of a vertex from the centre of the sole [m]."""
    return float(np.linalg.norm(sole.vertices - sole.centre, axis=1).max())


def _share(feet: Feet, foot: int, force: Array, slope: Array) -> tuple[float, float]:
    """Return the share of tangential ``force`` (3,) in the load, and the variance due to errors of the estimate."""
    tangential = max(float(np.hypot(force[0], force[1])), _TINY)
    gradient = np.array([force[0] / tangential, force[1] / tangential, -tangential / force[2]]) / force[2]
    known = gradient @ slope
    return tangential / force[2], float(known @ feet.covariance[foot] @ known)


def _lower_ends(feet: Feet, flat: Flags, factors: tuple[float, float]) -> Array:
    """Return lower ends (n, K) of the intervals of tangential over normal force, NaN where a foot is not flat.

    The largest one of all is a bound, for the ``factors`` of :func:`bipedsim_studies.identify.fit.quantiles`.
    """
    wrench, slope = feet.smoothed()
    beside = (len(flat) - len(wrench)) // 2
    bounds = np.full(flat.shape, np.nan)
    of_estimate, of_noise = factors
    for k, foot in np.argwhere(flat[beside : len(flat) - beside]):
        force = wrench[k, foot, :3]
        share, variance = _share(feet, foot, force, slope[k, foot, :3])
        white = _white(feet, foot, share, force[2])
        bounds[k + beside, foot] = share - of_estimate * np.sqrt(variance) - of_noise * white
    return bounds


def _white(feet: Feet, foot: int, share: float, load: float) -> float:
    """Return the standard deviation of a share of ``load`` [N] due to noise, after both smoothing windows."""
    return float(np.linalg.norm(feet.noise[foot, :3] * np.array([1.0, 1.0, share]))) / load


def _slides(feet: Feet, i: int, j: int, reach: float) -> Flags:
    """Return in which rows (n,) foot ``i``, or another one, slides straight, if their forces are those of friction.

    Args:
        feet: Forces and motion.
        i, j: The foot, and another one relative to which it moves.
        reach: Largest distance in the sole [m].
    """
    velocity, tangential = feet.apart[:, i, j, :2], feet.wrench[:, i, :2]
    speed = np.linalg.norm(velocity, axis=1)
    slides = feet.flat[:, i] & feet.flat[:, j] & (speed > SLIDES)
    against = -np.einsum("nc,nc->n", tangential, velocity)
    slides &= against > STRAIGHT * speed * np.linalg.norm(tangential, axis=1)
    slides &= np.abs(feet.turning[:, i, 2]) * reach < SPINS * speed
    # The smoothing window of a row must not reach into a time of sticking.
    slides[1:-1] &= slides[:-2] & slides[2:]
    slides[[0, -1]] = False
    return np.asarray(slides)


def _alike(feet: Feet, pair: tuple[int, int], rows: Flags) -> Flags:
    """Return in which ``rows`` (n,) the shares of tangential force of two feet are equal within the sensors' errors."""
    alike = np.zeros(len(rows), dtype=np.bool_)
    for k in np.flatnonzero(rows):
        shares, total = [], 0.0
        for foot in pair:
            force = feet.wrench[k, foot, :3]
            share, variance = _share(feet, foot, force, feet.slope[k, foot, :3])
            # The row is before the second window, which reduces white noise by the norm of its weights.
            white = _white(feet, foot, share, force[2]) / float(np.linalg.norm(HANN))
            total += variance + white**2
            shares.append(share)
        alike[k] = abs(shares[0] - shares[1]) <= ALIKE * np.sqrt(total)
    return alike


def _shares(feet: Feet, i: int, j: int, rows: Flags) -> Iterator[tuple[float, Array]]:
    """Yield the share of friction in the load of foot ``i`` in ``rows`` (n,), and its derivatives (P,).

    The friction opposes the velocity relative to foot ``j``.
    """
    for k in np.flatnonzero(rows):
        velocity, force = feet.apart[k, i, j, :2], feet.wrench[k, i, :3]
        direction = -velocity / np.linalg.norm(velocity)
        share = float(force[:2] @ direction / force[2])
        yield share, np.append(direction, -share) / force[2] @ feet.slope[k, i, :3] @ feet.numbers[i]
