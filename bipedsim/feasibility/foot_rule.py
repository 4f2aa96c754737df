"""What one foot needs to stay as it is: push, keep its CoP inside, and stay within friction, torsion included.

These are the rules by which constraint selection judges a sticking foot (contact/rules.py, contact/friction.py), as
functions of the wrench. Vertices share a wrench in many ways, and four of them on a flat sole would give 12 forces for
6 equations; a wrench that pushes with its CoP inside and its friction in the cone is one that the vertices can carry.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.candidate import centre_of_pressure, centre_on_edge
from bipedsim.contact.friction import torsion_radius
from bipedsim.contact.modes import clamped_range, mode_masks
from bipedsim.errors import ConfigError
from bipedsim.feasibility.support import Foot

Array = NDArray[np.float64]

_STEP = 1e-6
"""Of central differences, as a share of the wrench."""


def mode_of(foot: Foot, vertices: Iterable[int]) -> int:
    """Return the contact mode (contact/modes.py) in which exactly these vertices of the foot are held.

    Raises:
        ConfigError: No foot can rest on these alone: not one vertex, one edge or the face.
    """
    wanted = sorted({int(i) for i in vertices})
    masks = mode_masks(foot.n_vertices) if foot.n_vertices else np.zeros((1, 0), dtype=np.int64)
    mask = np.zeros(foot.n_vertices, dtype=np.int64)
    if wanted and not 0 <= wanted[0] <= wanted[-1] < foot.n_vertices:
        raise ConfigError(f"foot {foot.name!r} has the vertices 0 to {foot.n_vertices - 1}, not {wanted}")
    mask[wanted] = 1
    found = np.flatnonzero((masks == mask).all(axis=1))
    if not len(found):
        raise ConfigError(
            f"foot {foot.name!r} cannot rest on its vertices {wanted} alone; give none, one, two neighbours or all "
            f"{foot.n_vertices}"
        )
    return int(found[0])


class FootRule:
    """The rule of one foot held in one mode.

    Wrenches are (force, torque) at the sole origin in contact axes, [N, N.m], or impulses of these.

    Args:
        foot: The foot.
        mode: Contact mode, not none.
        mu: Friction coefficient.
        reserve: Distance [m] that the CoP keeps from the edge of what is held.

    Attributes:
        rows: (r, 6) linear part, all ``rows @ wrench > 0``: normal force [N], then moments about the edges, or the ends
            of the edge, that keep the CoP inside [N.m].
        labels: (r,) what each of them says.
        mu: Friction coefficient.
    """

    def __init__(self, foot: Foot, mode: int, mu: float, reserve: float = 0.0) -> None:
        self.foot, self.mu = foot, mu
        self.first, self.count = clamped_range(mode, foot.n_vertices)
        self._cop, self._place = np.zeros(2), np.zeros(3)
        rows = [np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])]
        labels = [f"{foot.name}: normal force [N]"]
        held = [(self.first + i) % foot.n_vertices for i in range(self.count)]
        if self.count == 2:
            for i, j in (held, held[::-1]):
                e = foot.offsets[j] - foot.offsets[i]
                length = np.linalg.norm(e)
                if length <= 2.0 * reserve:
                    raise ConfigError(f"a reserve of {reserve} m leaves nothing of edge {i}-{j} of foot {foot.name!r}")
                # The moment about a level axis across the edge, at its end.
                across = np.array([e[1], -e[0], 0.0]) / np.hypot(e[0], e[1])
                rows.append(_moment(foot.offsets[i] + reserve / length * e, across))
                labels.append(f"{foot.name}: CoP inside the end {i} [N.m]")
        elif self.count > 2:
            points = foot.shrunk(reserve)
            for i in held:
                j = (i + 1) % foot.n_vertices
                e = points[j] - points[i]
                rows.append(_moment(points[i], np.array([e[0], e[1], 0.0]) / np.hypot(e[0], e[1])))
                labels.append(f"{foot.name}: CoP inside the edge {i}-{j} [N.m]")
        self.rows: Array = np.array(rows)
        self.labels = tuple(labels)

    def centre(self, wrench: Array) -> Array:
        """Return the CoP (3,) from the sole origin, contact axes [m]; the middle of what is held where nothing presses.

        The array is overwritten by the next call.
        """
        foot, n = self.foot, self.foot.n_vertices
        cop, place = self._cop, self._place
        second = (self.first + self.count - 1) % n
        if wrench[2] > 0.0 and self.count < 3:
            centre_on_edge(wrench, foot.polygon, foot.offsets, self.first, second, cop, place)
        elif wrench[2] > 0.0:
            centre_of_pressure(wrench, foot.rotation, cop, place)
        else:
            held = [(self.first + i) % n for i in range(self.count)]
            cop[:], place[:] = foot.polygon[held].mean(axis=0), foot.offsets[held].mean(axis=0)
        return place

    def friction_vector(self, wrench: Array) -> tuple[Array, float]:
        """Return (f_1, f_2, tau / c) (3,) [N], tau the torsion about the CoP, and its radius c [m]."""
        x, y, _ = self.centre(wrench)
        foot, cop = self.foot, self._cop
        c = float(torsion_radius(self.first, self.count, foot.n_vertices, foot.polygon, cop[0], cop[1]))
        torsion = wrench[5] - (x * wrench[1] - y * wrench[0])
        return np.array([wrench[0], wrench[1], torsion / c if c > 0.0 else 0.0]), c

    def friction(self, wrench: Array) -> float:
        """Return mu f_z - |(f_1, f_2, tau / c)| [N], positive inside the cone.

        Where nothing presses it is minus the force that would have to be carried without any.
        """
        vector, _ = self.friction_vector(wrench)
        return self.mu * max(float(wrench[2]), 0.0) - float(np.sqrt(vector @ vector))

    def tangent(self, wrench: Array) -> Array:
        """Return the gradient (6,) of :meth:`friction`, of which ``gradient @ wrench`` is the value: it is homogeneous.

        By central differences; at the tip of the cone, where there is none, that of a force straight up.
        """
        size = float(np.linalg.norm(wrench))
        if size == 0.0:
            return np.array([0.0, 0.0, self.mu, 0.0, 0.0, 0.0])
        gradient = np.empty(6)
        moved = wrench.astype(np.float64)
        for a in range(6):
            for sign in (1.0, -1.0):
                moved[a] = wrench[a] + sign * _STEP * size
                gradient[a] = self.friction(moved) if sign > 0.0 else gradient[a] - self.friction(moved)
            moved[a] = wrench[a]
        return gradient / (2.0 * _STEP * size)

    def pyramid(self, sides: int) -> Array:
        """Return the rows (sides, 6) of the pyramid around the cone of (f_x, f_y): mu f_z - d . f_t > 0, side by side.

        The first side faces t1. Exact in the plane of a planar robot, where two sides do; in space necessary only, by
        up to 1 / cos(pi / sides) too wide, and it leaves out the torsion.
        """
        angle = 2.0 * np.pi * np.arange(sides) / sides
        rows = np.zeros((sides, 6))
        rows[:, 0], rows[:, 1], rows[:, 2] = -np.cos(angle), -np.sin(angle), self.mu
        return rows


def _moment(point: Array, axis: Array) -> Array:
    """Return the row (6,) that gives the moment of a wrench at the sole origin about an axis through ``point``."""
    return np.concatenate([np.cross(point, axis), axis])
