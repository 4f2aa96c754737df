"""Formulate conditions for contacts to stick, to slide in one direction, and to open: A x + B > 0.

Source: Hurmuzlu, Genot and Brogliato 2001, eq. 59 to 72 (appendix A) and 73 to 90 (appendix B). Both appendices are the
same computation. Let w = W x + w0 be the motion of the feet without contacts, and G = J M^-1 J^T. The held contacts
require T (w + G F lam) = 0. The wrenches F lam are therefore affine in x, and so is the motion of the open contacts. In
appendix A, x are the torques and w accelerations. In appendix B, x are velocities before the impact and w velocities
after it.

The paper has one force per contact and independent constraints. Here a foot has one wrench, and redundant rows (both
feet of a planar robot) are solved for the wrenches of minimum norm, as in constraint selection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bipedsim.contact import FootMode, ModeRows, Sliding, clamped_range, constraints
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim_studies.feasibility.foot_rule import FORCES, FootRule, Units, mode_of
from bipedsim_studies.feasibility.support import TOUCHES, Support, SupportFoot

Keep = Mapping[str, Sequence[int]]
"""Held vertices by foot; the other vertices in contact are to open."""


class Slip(NamedTuple):
    """Given slip of a foot, which makes its friction linear.

    Attributes:
        direction: (3,) -(f_1, f_2, torsion / c) / (mu f_n), opposite to (u_1, u_2, c w_n). The latter are the velocity
            of the CoP along t1 and t2, and the angular velocity of the foot about the normal. In a plane: (+-1, 0, 0).
        radius: Radius c of the torsion [m].
        centre: (3,) CoP from the sole origin, contact axes [m].
    """

    direction: Array
    radius: float
    centre: Array


Slide = Mapping[str, Slip]
"""Slip by foot, for feet that are held but slide."""

_STILL = Slip(np.zeros(3), 0.0, np.zeros(3))

RANK = 1e-10
"""Eigenvalues below this fraction of the largest one belong to redundant rows."""


@dataclass(frozen=True)
class Reserve:
    """Safety reserve of the contact conditions.

    Attributes:
        force: Minimum normal force of a foot [N].
        edge: Minimum distance of the CoP from the edge [m].
        friction: Reserved fraction of the friction coefficient.
    """

    force: float = 0.0
    edge: float = 0.0
    friction: float = 0.0

    def __post_init__(self) -> None:
        if not (self.force >= 0.0 and self.edge >= 0.0 and 0.0 <= self.friction < 1.0):
            raise ConfigError("force and edge must not be negative, and friction must be below 1", self)


NOTHING = Reserve()


class Response(NamedTuple):
    """Motion w of the soles as a function of x and of the feet's wrenches f: w = W x + w0 + G f.

    Attributes:
        G: (6K, 6K) effect of the feet's wrenches or impulses.
        W, w0: (6K, n), (6K,) motion without contacts.
        turning: (K, 3) angular velocities of the feet [rad/s] if w are accelerations. The points of a rotating foot
            have other accelerations than its sole origin.
        units: Units of wrenches and of w, for labels.
    """

    G: Array
    W: Array
    w0: Array
    turning: Array | None = None
    units: Units = FORCES


class Conditions:
    """Conditions for the held contacts to stick (or slide in one direction) and the others to open, as functions of x.

    Args:
        support: Robot and feet in one state.
        response: Motion of the soles.
        keep: Vertices that stick, by foot; by default all feet with all their vertices in contact. Feet without an
            entry have none.
        slide: Slip of the held feet that slide; the others stick.
        touches: Maximum height of a vertex in contact [m].
        reserve: Safety reserve.
        sides: Number of sides of the friction pyramid.

    Attributes:
        held: Names of the held feet.
        modes: (K,) contact mode of each foot, 0 if all its contacts open.
        wrenches: (6 len(held), n + 1) stacked wrenches of the held feet as ``[X x0]``: X x + x0.
        exact_labels: Names and units of the :meth:`margins`; the friction cones of the sticking feet are last.

    Raises:
        ConfigError: A foot does not exist, or its vertices form no contact mode or are not in contact.
    """

    def __init__(
        self,
        support: Support,
        response: Response,
        keep: Keep | None = None,
        *,
        slide: Slide | None = None,
        touches: float = TOUCHES,
        reserve: Reserve = NOTHING,
        sides: int = 8,
    ) -> None:
        G, W, w0, turning, units = response
        if sides < 2:
            raise ConfigError("must be 3 or more, and 2 in a plane", "sides", sides)
        touching = support.touching(touches)
        self.modes = _modes(support, touching, keep)
        feet = [k for k, mode in enumerate(self.modes) if mode]
        self.held = tuple(support.feet[k].name for k in feet)
        slips = {support.index(name): slip for name, slip in (slide or {}).items()}
        if not set(slips) <= set(feet):
            raise ConfigError(f"must be feet that are held, too: {self.held}", "slide", sorted(slide or {}))
        self._sides, self._units = sides, units
        self._sticking = [i for i, k in enumerate(feet) if k not in slips]
        relied = (1.0 - reserve.friction) * np.array([foot.mu_static for foot in support.feet])
        self._rules = [FootRule(support.feet[k], self.modes[k], relied[k], reserve.edge, units) for k in feet]

        middles = [_middle(foot, mode) for foot, mode in zip(support.feet, self.modes, strict=True)]
        affine = np.column_stack([W, w0])
        T, F = _held_rows(support, self.modes, slips)
        required = T @ affine
        if turning is not None:
            inwards = np.zeros(len(w0))
            for k, (w, middle) in enumerate(zip(turning, middles, strict=True)):
                inwards[6 * k : 6 * k + 3] = _inwards(w, middle)
            required[:, -1] += T @ inwards
        lam = -np.linalg.pinv(T @ G @ F, rcond=RANK, hermitian=not slips) @ required
        impulse = F @ lam
        self.wrenches: Array = np.concatenate([impulse[:0], *(impulse[6 * k : 6 * k + 6] for k in feet)])
        self._after = affine + G @ impulse

        parts: list[Array] = [affine[:0]]
        labels: list[str] = []
        for i, rule in enumerate(self._rules):
            part = rule.rows @ self._wrench(i)
            part[0, -1] -= reserve.force
            parts.append(part)
            labels += rule.labels
        for k, slip in slips.items():
            moving = self._after[6 * k : 6 * k + 6]
            x, y, z = slip.centre
            along = moving[0] + moving[4] * z - moving[5] * y, moving[1] + moving[5] * x - moving[3] * z
            speed = np.stack([*along, slip.radius * moving[5]])
            parts.append(slip.direction[None] @ speed)
            labels.append(f"{support.feet[k].name}: slides on [{units.motion}]")
        for k, vertices in enumerate(touching):
            foot = support.feet[k]
            held = held_vertices(self.modes[k], foot.n_vertices)
            for i in (i for i in vertices if i not in held):
                x, y, _ = foot.offsets[i]
                moving = self._after[6 * k : 6 * k + 6]
                speed = moving[2] + y * moving[3] - x * moving[4]
                if turning is not None:
                    speed[-1] += _inwards(turning[k], foot.offsets[i])[2]
                parts.append(speed[None])
                labels.append(f"{foot.name}: vertex {i} lifts [{units.motion}]")
        self._affine: Array = np.concatenate(parts)
        self._affine_labels = tuple(labels)
        frictions = (f"{self.held[i]}: friction [{units.force}]" for i in self._sticking)
        self.exact_labels = (*self._affine_labels, *frictions)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the rows of A and B; the rows of the friction pyramids are last."""
        names, sides = [self.held[i] for i in self._sticking], self._sides
        unit = self._units.force
        of_sides = (f"{name}: friction, side {j} of {sides} [{unit}]" for name in names for j in range(sides))
        return (*self._affine_labels, *of_sides)

    @cached_property
    def _rows(self) -> Array:
        pyramids = (self._rules[i].pyramid(self._sides) @ self._wrench(i) for i in self._sticking)
        return np.concatenate([self._affine, *pyramids])

    @property
    def A(self) -> Array:  # noqa: N802 -- the symbol of the paper
        """(r, n) matrix of eq. 72 and 90."""
        return self._rows[:, :-1]

    @property
    def B(self) -> Array:  # noqa: N802 -- the symbol of the paper
        """(r,) vector of eq. 72 and 90."""
        return self._rows[:, -1]

    def _wrench(self, i: int) -> Array:
        return self.wrenches[6 * i : 6 * i + 6]

    def rule(self, name: str) -> FootRule:
        """Return the rule of the held foot ``name``."""
        return self._rules[self.held.index(name)]

    def wrench(self, x: Array) -> Array:
        """Return the wrenches (len(held), 6) that hold the feet under ``x``, at the sole origins in contact axes."""
        stacked: Array = self.wrenches[:, :-1] @ x + self.wrenches[:, -1]
        return stacked.reshape(-1, 6)

    def margins(self, x: Array) -> Array:
        """Return the values that must be positive under ``x`` (n,), with exact friction cones and torsion of the soles.

        The conditions are satisfied if and only if all values are positive.
        """
        wrenches = self.wrench(x)
        friction = [self._rules[i].friction(wrenches[i]) for i in self._sticking]
        return np.concatenate([self._affine[:, :-1] @ x + self._affine[:, -1], friction])

    def holds(self, x: Array) -> bool:
        """Return whether all conditions are satisfied under ``x``."""
        return bool((self.margins(x) > 0.0).all())

    def velocity(self, x: Array) -> Array:
        """Return w (6K,) of the sole origins under ``x`` with active contacts."""
        w: Array = self._after[:, :-1] @ x + self._after[:, -1]
        return w

    def tangents(self, x: Array) -> tuple[Array, Array]:
        """Return rows (m, n) and offsets (m,) of planes tangent to the m friction cones at ``x``.

        ``rows @ x + offsets`` are the frictions of :meth:`margins` at ``x``, and their linearisation elsewhere.
        """
        wrenches = self.wrench(x)
        rows = np.zeros((len(self._sticking), self.wrenches.shape[1]))
        for row, i in enumerate(self._sticking):
            rows[row] = self._rules[i].tangent(wrenches[i]) @ self._wrench(i)
        return rows[:, :-1], rows[:, -1]

    def linear(self, x: Array) -> tuple[Array, Array]:
        """Return A, B with friction linearised at ``x`` instead of pyramids, which is exact at ``x``."""
        rows, offsets = self.tangents(x)
        return np.vstack([self._affine[:, :-1], rows]), np.concatenate([self._affine[:, -1], offsets])


def held_vertices(mode: int, n: int) -> tuple[int, ...]:
    """Return the vertices that ``mode`` holds on a foot with ``n`` vertices."""
    first, count = clamped_range(mode, n)
    return tuple((first + i) % n for i in range(count))


def _inwards(w: Array, r: Array) -> Array:
    """Return w x (w x r) (3,): acceleration of a point at ``r`` [m] relative to the origin of a rotating foot."""
    return w * (w @ r) - r * (w @ w)


def _middle(foot: SupportFoot, mode: int) -> Array:
    """Return the mean (3,) of the held vertices from the sole origin; a face is held at the origin itself."""
    held = held_vertices(mode, foot.n_vertices)
    if len(held) in (0, *range(3, foot.n_vertices + 1)):
        return np.zeros(3)
    middle: Array = foot.offsets[list(held)].mean(axis=0)
    return middle


def _modes(support: Support, touching: tuple[tuple[int, ...], ...], keep: Keep | None) -> tuple[int, ...]:
    if keep is None:
        return tuple(mode_of(foot, vertices) for foot, vertices in zip(support.feet, touching, strict=True))
    modes = [0] * len(support.feet)
    for name, vertices in keep.items():
        k = support.index(name)
        modes[k] = mode_of(support.feet[k], vertices)
        high = sorted(set(vertices) - set(touching[k]))
        if high:
            heights = ", ".join(f"{support.feet[k].heights[i]:.3g}" for i in high)
            raise ConfigError(
                f"they are to stick but are {heights} m above the ground; raise `touches`, or leave them out",
                f"foot {name!r}: vertices {high}",
            )
    return tuple(modes)


def _held_rows(support: Support, modes: Sequence[int], slips: Mapping[int, Slip]) -> tuple[Array, Array]:
    """Return T (m, 6K), the velocities that are zero, and F (6K, m), the wrenches that enforce it (moraud2008 Table I).

    F = T^T for sticking feet; friction of a sliding foot is mu f_z against its slip.
    """
    size = 6 * len(modes)
    rows, columns = [np.zeros((0, size))], [np.zeros((0, size))]
    held = ModeRows(T=np.zeros((6, 6)), F=np.zeros((6, 6)), b=np.zeros(6), r_vj=np.zeros(3))
    for k, mode in enumerate(modes):
        foot = support.feet[k]
        n = foot.n_vertices
        slip = slips.get(k, _STILL)
        level = np.zeros(n), np.zeros((n, 2))
        m = constraints(
            FootMode(mode, k in slips, n, foot.offsets, *level, h=1.0, gamma=0.0),
            Sliding(foot.mu_dynamic, slip.radius, slip.direction),
            held,
        )
        picked, spread = (np.eye(6), np.eye(6)) if m == 6 else (held.T[:m], held.F[:, :m].T)
        for parts, part in ((rows, picked), (columns, spread)):
            parts.append(np.zeros((m, size)))
            parts[-1][:, 6 * k : 6 * k + 6] = part
    return np.vstack(rows), np.vstack(columns).T
