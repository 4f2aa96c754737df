"""Check the conditions for a foot to stick: positive normal force, CoP inside the foot, and friction with torsion.

Constraint selection has the same rules for a sticking foot (``bipedsim.contact.selection``). Here they are functions of
the wrench. The forces of the vertices are not unique: four vertices of a flat sole have 12 forces for 6 equations. The
vertices can exert a wrench if its normal force is positive, its CoP inside, and its friction in the cone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bipedsim.contact import clamped_range, mode_masks
from bipedsim.contact.selection import centre_of_pressure, centre_on_edge, gauge, share_out
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, kernel
from bipedsim_studies.feasibility.support import SupportFoot

_STEP = 1e-6
"""Step of central differences, relative to the wrench."""


class Units(NamedTuple):
    """Names and units of wrenches and motions in labels."""

    push: str
    force: str
    moment: str
    motion: str


FORCES = Units("force", "N", "N.m", "m/s^2")
IMPULSES = Units("impulse", "N.s", "N.m.s", "m/s")


def mode_of(foot: SupportFoot, vertices: Iterable[int]) -> int:
    """Return the contact mode (contact/modes.py) in which exactly these vertices of the foot are held.

    Raises:
        ConfigError: No mode has these vertices; a mode holds one vertex, one edge or the face.
    """
    numbers = sorted({int(i) for i in vertices})
    masks = mode_masks(foot.n_vertices) if foot.n_vertices else np.zeros((1, 0), dtype=np.int64)
    mask = np.zeros(foot.n_vertices, dtype=np.int64)
    if numbers and not 0 <= numbers[0] <= numbers[-1] < foot.n_vertices:
        raise ConfigError(f"must be of 0 to {foot.n_vertices - 1}", f"foot {foot.name!r}: vertices", numbers)
    mask[numbers] = 1
    modes = np.flatnonzero((masks == mask).all(axis=1))
    if not len(modes):
        raise ConfigError(
            f"cannot carry the foot; give none, one, two neighbours or all {foot.n_vertices}",
            f"foot {foot.name!r}: vertices",
            numbers,
        )
    return int(modes[0])


class FootRule:
    """Conditions of one foot in one contact mode.

    Wrenches are (force, torque) at the sole origin in contact axes, [N, N.m], or impulses of these.

    Args:
        foot: The foot.
        mode: Contact mode, not none.
        mu: Friction coefficient.
        reserve: Required distance [m] of the CoP from the edge of the held vertices.
        units: Units of the wrenches, for labels.

    Attributes:
        rows: (r, 6) linear conditions ``rows @ wrench > 0``. The first is the normal force [N]. The others are moments
            about the edges, or the ends of the edge, and keep the CoP inside [N.m].
        labels: (r,) names of these conditions.
        mu: Friction coefficient.
    """

    def __init__(self, foot: SupportFoot, mode: int, mu: float, reserve: float = 0.0, units: Units = FORCES) -> None:
        self.foot, self.mu = foot, mu
        self.first, self.count = clamped_range(mode, foot.n_vertices)
        # The kernels are compiled for contiguous arrays.
        polygon, offsets, rotation = (
            np.ascontiguousarray(array, dtype=np.float64) for array in (foot.polygon, foot.offsets, foot.rotation)
        )
        work = np.zeros((max(self.count, 1), 3)), np.zeros(2), np.zeros(3)
        self._held = _HeldFoot(self.first, self.count, polygon, offsets, rotation, *work)
        rows = [np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])]
        labels = [f"{foot.name}: normal {units.push} [{units.force}]"]
        held = [(self.first + i) % foot.n_vertices for i in range(self.count)]
        if self.count == 2:
            ends = foot.offsets[held]
            e = ends[1] - ends[0]
            length = np.sqrt(e @ e)
            if length <= 2.0 * reserve:
                raise ConfigError(
                    f"m leaves nothing of edge {held[0]}-{held[1]}", f"foot {foot.name!r}: reserve", reserve
                )
            inwards = np.array([e, -e])
            # The rows are moments about level axes across the edge, at its ends.
            across = inwards[:, [1, 0]] * [1.0, -1.0]
            rows.append(_moments(ends + reserve / length * inwards, across))
            labels += [f"{foot.name}: CoP inside the end {i} [{units.moment}]" for i in held]
        elif self.count > 2:
            points, after = foot.shrunk(reserve)[held], [*held[1:], held[0]]
            rows.append(_moments(points, np.concatenate([points[1:], points[:1]])[:, :2] - points[:, :2]))
            pairs = zip(held, after, strict=True)
            labels += [f"{foot.name}: CoP inside the edge {i}-{j} [{units.moment}]" for i, j in pairs]
        self.rows: Array = np.concatenate(rows)
        self.labels = tuple(labels)

    def centre(self, wrench: Array) -> tuple[Array, float]:
        """Return the CoP (3,) from the sole origin in contact axes [m], and the radius c [m] of the torsion about it.

        Without a normal force, the CoP is the mean of the held vertices.
        """
        radius = _centre(np.ascontiguousarray(wrench, dtype=np.float64), self._held)
        return self._held.place.copy(), float(radius)

    def friction(self, wrench: Array) -> float:
        """Return mu f_z minus the friction that the vertices need for force and torsion about the CoP [N].

        The value is positive inside the cone, and zero on the limit surface of the vertices. Without a normal force, it
        is minus the needed friction.
        """
        return float(_friction(np.ascontiguousarray(wrench, dtype=np.float64), self.mu, self._held))

    def tangent(self, wrench: Array) -> Array:
        """Return the gradient (6,) of :meth:`friction`; ``gradient @ wrench`` is the value, which is homogeneous.

        The gradient is computed by central differences. At the tip of the cone it is not defined, and the function
        returns the gradient for a purely normal force.
        """
        gradient = np.empty(6)
        _tangent(np.array(wrench, dtype=np.float64), gradient, self.mu, self._held)
        return gradient

    def pyramid(self, sides: int) -> Array:
        """Return the rows (sides, 6) of the pyramid around the cone of (f_x, f_y): mu f_z - d . f_t > 0 for each side.

        The first side faces t1. For a planar robot, two sides are exact. In space, the conditions are necessary only:
        the pyramid is too wide by up to 1 / cos(pi / sides), and it omits the torsion.
        """
        angle = 2.0 * np.pi * np.arange(sides) / sides
        rows = np.zeros((sides, 6))
        rows[:, 0], rows[:, 1], rows[:, 2] = -np.cos(angle), -np.sin(angle), self.mu
        return rows


def _moments(points: Array, along: Array) -> Array:
    """Return rows (m, 6): moments of a wrench at the sole origin about level axes (m, 2) through ``points`` (m, 3)."""
    x, y, z = points.T
    ax, ay = along.T / np.hypot(along[:, 0], along[:, 1])
    return np.column_stack([-z * ay, z * ax, x * ay - y * ax, ax, ay, np.zeros(len(points))])


class _HeldFoot(NamedTuple):
    """Arguments of the kernels.

    Attributes:
        first, n: First of the held vertices, and their number.
        polygon, offsets, rotation: Properties of the foot; see :class:`SupportFoot`.
        shares: (m, 3) result: the shares of the held vertices.
        cop: (2,) result: the CoP in the sole frame.
        place: (3,) result: the CoP from the sole origin.
    """

    first: int
    n: int
    polygon: Array
    offsets: Array
    rotation: Array
    shares: Array
    cop: Array
    place: Array


@kernel
def _centre(wrench: Array, foot: _HeldFoot) -> float:
    """Fill the CoP and the vertices' shares of a wrench (6,), and return the radius, see :meth:`FootRule.centre`."""
    first, count, polygon, offsets, rotation, shares, cop, place = foot
    n = polygon.shape[0]
    if wrench[2] > 0.0 and count < 3:
        centre_on_edge(wrench, polygon, offsets, first, (first + count - 1) % n, cop, place)
    elif wrench[2] > 0.0:
        centre_of_pressure(wrench, rotation, cop, place)
    else:
        cop[:] = 0.0
        place[:] = 0.0
        for i in range(count):
            j = (first + i) % n
            for a in range(2):
                cop[a] += polygon[j, a] / count
            for a in range(3):
                place[a] += offsets[j, a] / count
    return share_out(first, count, n, polygon, rotation, cop, shares)


@kernel
def _friction(wrench: Array, mu: float, foot: _HeldFoot) -> float:
    """Return :meth:`FootRule.friction`; overwrite the results in ``foot`` as :func:`_centre` does."""
    c, place = _centre(wrench, foot), foot.place
    torsion = 0.0
    if c > 0.0:
        torsion = (wrench[5] - (place[0] * wrench[1] - place[1] * wrench[0])) / c
    size = np.sqrt(wrench[0] ** 2 + wrench[1] ** 2 + torsion**2)
    if size > 0.0 and foot.n > 1:
        size *= gauge((wrench[0] / size, wrench[1] / size, torsion / size), foot.shares, foot.n, np.inf)[0]
    return mu * max(wrench[2], 0.0) - size


@kernel
def _tangent(wrench: Array, gradient: Array, mu: float, foot: _HeldFoot) -> None:
    """Fill ``gradient`` (6,) with :meth:`FootRule.tangent`; ``wrench`` has its original values afterwards."""
    size = 0.0
    for a in range(6):
        size += wrench[a] ** 2
    size = np.sqrt(size)
    if size == 0.0:
        gradient[:] = 0.0
        gradient[2] = mu
        return
    for a in range(6):
        value = wrench[a]
        wrench[a] = value + _STEP * size
        above = _friction(wrench, mu, foot)
        wrench[a] = value - _STEP * size
        below = _friction(wrench, mu, foot)
        wrench[a] = value
        gradient[a] = (above - below) / (2.0 * _STEP * size)
