"""Conditions on torques or on velocities for contacts to stick, to slide one way, and to break: A x + B > 0.

Source: Hurmuzlu, Genot and Brogliato 2001, eq. 59 to 72 (appendix A) and 73 to 90 (appendix B). The appendices are one
computation: with w = W x + w0 what the feet would do without contacts and G = J M^-1 J^T, the contacts that are held
leave T (w + G F lam) = 0, hence wrenches F lam affine in x, and so is what the broken contacts do. In appendix A, x
are the torques and w accelerations; in appendix B, x are velocities before the impact and w velocities after it.

Where the paper has one force per contact and independent constraints, a foot has one wrench here, and redundant rows
(both feet of a robot in a plane) are solved for the wrenches of least norm, as constraint selection does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.modes import clamped_range, constraints
from bipedsim.errors import ConfigError
from bipedsim.feasibility.foot_rule import FootRule, mode_of
from bipedsim.feasibility.support import TOUCHES, Support

Array = NDArray[np.float64]

Keep = Mapping[str, Sequence[int]]
"""Foot to the vertices of it that are held; the others that touch are to break."""
Slide = Mapping[str, Array]
"""Foot that is held but slides, to (s_1, s_2, s_3, c): the unit direction of its slip (u_1, u_2, c w_n) [m/s] along t1,
along t2 and about the normal, and the radius c [m] of its torsion; (+-1, 0, 0, 0) in a plane."""

RANK = 1e-10
"""Eigenvalues below this share of the largest are those of redundant rows."""


@dataclass(frozen=True)
class Reserve:
    """What is kept back of what the feet could carry.

    Attributes:
        force: Least normal force of a foot [N].
        edge: Distance of the CoP from the edge [m].
        friction: Share of the friction coefficient.
    """

    force: float = 0.0
    edge: float = 0.0
    friction: float = 0.0

    def __post_init__(self) -> None:
        if not (self.force >= 0.0 and self.edge >= 0.0 and 0.0 <= self.friction < 1.0):
            raise ConfigError(f"{self}: force and edge must not be negative, and friction is a share below 1")


NOTHING = Reserve()


class Conditions:
    """What must be positive for the held contacts to stick (or slide one way) and the others to break, by x.

    Args:
        support: The feet.
        G: (6K, 6K) what their wrenches or impulses do to w.
        W, w0: (6K, n), (6K,) w = W x + w0 without contacts.
        turning: (K, 3) angular velocities of the feet [rad/s], where w are accelerations: points of a foot that turns
            accelerate otherwise than its sole origin.
        keep: Foot to the vertices that stick; every foot with all that touch by default. Feet that are not named have
            none.
        slide: Which of the held feet slide; the others stick.
        touches: Height up to which a vertex touches [m].
        reserve: What is kept back.
        sides: Of the friction pyramid.
        lift: Unit of w, for labels.

    Attributes:
        held: The feet that are held.
        modes: (K,) contact mode of every foot, 0 where all its contacts break.
        wrenches: (6 len(held), n + 1) the wrenches of the held feet, stacked, as ``[X x0]``: X x + x0.
        labels: (r,) what the rows say, those of the friction pyramids last.
        exact_labels: The same of :meth:`margins`: one friction cone for each foot that sticks, in place of pyramids.
        A, B: (r, n), (r,) of eq. 72 and 90.

    Raises:
        ConfigError: A foot that there is not, vertices that no foot can rest on alone or that do not touch.
    """

    def __init__(
        self,
        support: Support,
        G: Array,
        W: Array,
        w0: Array,
        keep: Keep | None = None,
        *,
        turning: Array | None = None,
        slide: Slide | None = None,
        touches: float = TOUCHES,
        reserve: Reserve = NOTHING,
        sides: int = 8,
        lift: str = "m/s^2",
    ) -> None:
        if sides < 2:
            raise ConfigError(f"sides = {sides}: a friction pyramid has 3 or more, and 2 in a plane")
        touching = support.touching(touches)
        self.modes = _modes(support, touching, keep)
        feet = [k for k, mode in enumerate(self.modes) if mode]
        self.held = tuple(support.feet[k].name for k in feet)
        slips = {support.index(name): np.asarray(slip, dtype=np.float64) for name, slip in (slide or {}).items()}
        if not set(slips) <= set(feet):
            raise ConfigError(f"feet that slide are held, too: {sorted(slide or {})} are not all of {self.held}")
        self._rules = [
            FootRule(support.feet[k], self.modes[k], support.feet[k].mu_static * (1.0 - reserve.friction), reserve.edge)
            for k in feet
        ]
        affine = np.column_stack([W, w0])
        T, F = _held_rows(support, self.modes, slips)
        wanted = T @ affine
        if turning is not None:
            inwards = [
                np.append(np.cross(w, np.cross(w, _middle(support, k, mode))), np.zeros(3))
                for k, (w, mode) in enumerate(zip(turning, self.modes, strict=True))
            ]
            wanted[:, -1] += T @ np.concatenate(inwards)
        lam = -np.linalg.pinv(T @ G @ F, rcond=RANK, hermitian=not slips) @ wanted
        impulse = F @ lam
        self.wrenches: Array = np.vstack([np.zeros((0, affine.shape[1])), *(impulse[6 * k : 6 * k + 6] for k in feet)])
        after = affine + G @ impulse
        parts = [np.zeros((0, affine.shape[1]))]
        labels: list[str] = []
        for i, rule in enumerate(self._rules):
            part = rule.rows @ self._wrench(i)
            part[0, -1] -= reserve.force
            parts.append(part)
            labels += rule.labels
        for k, slip in slips.items():
            moving = after[6 * k : 6 * k + 6]
            x, y, z = _middle(support, k, self.modes[k])
            speed = slip[0] * (moving[0] + moving[4] * z - moving[5] * y)
            speed += slip[1] * (moving[1] + moving[5] * x - moving[3] * z) + slip[2] * slip[3] * moving[5]
            parts.append(speed[None])
            labels.append(f"{support.feet[k].name}: slides on [{lift}]")
        for k, vertices in enumerate(touching):
            foot = support.feet[k]
            held = held_vertices(self.modes[k], foot.n_vertices)
            for i in (i for i in vertices if i not in held):
                x, y, _ = foot.offsets[i]
                speed = after[6 * k + 2] + y * after[6 * k + 3] - x * after[6 * k + 4]
                if turning is not None:
                    speed[-1] += np.cross(turning[k], np.cross(turning[k], foot.offsets[i]))[2]
                parts.append(speed[None])
                labels.append(f"{foot.name}: vertex {i} lifts [{lift}]")
        self._affine: Array = np.vstack(parts)
        self._affine_labels = tuple(labels)
        self._after = after
        self._sticking = [i for i, k in enumerate(feet) if k not in slips]
        sticking = [self.held[i] for i in self._sticking]
        pyramids = [self._rules[i].pyramid(sides) @ self._wrench(i) for i in self._sticking]
        both = np.vstack([self._affine, *pyramids])
        self.A, self.B = both[:, :-1], both[:, -1]
        sides_of = (f"{name}: friction, side {j} of {sides} [N]" for name in sticking for j in range(sides))
        self.labels = (*self._affine_labels, *sides_of)
        self.exact_labels = (*self._affine_labels, *(f"{name}: friction [N]" for name in sticking))

    def _wrench(self, i: int) -> Array:
        return self.wrenches[6 * i : 6 * i + 6]

    def rule(self, name: str) -> FootRule:
        """Return the rule of a held foot."""
        return self._rules[self.held.index(name)]

    def wrench(self, x: Array) -> Array:
        """Return the wrenches (len(held), 6) at the sole origins in contact axes that hold the feet under ``x``."""
        stacked: Array = self.wrenches[:, :-1] @ x + self.wrenches[:, -1]
        return stacked.reshape(-1, 6)

    def margins(self, x: Array) -> Array:
        """Return what must be positive under ``x`` (n,), with the exact friction cone and the torsion of the soles.

        The conditions hold, necessary and sufficient, where all are positive.
        """
        wrenches = self.wrench(x)
        friction = [self._rules[i].friction(wrenches[i]) for i in self._sticking]
        return np.concatenate([self._affine[:, :-1] @ x + self._affine[:, -1], friction])

    def holds(self, x: Array) -> bool:
        """Whether all conditions hold under ``x``."""
        return bool((self.margins(x) > 0.0).all())

    def velocity(self, x: Array) -> Array:
        """Return w (6K,) of the sole origins under ``x`` with the contacts acting."""
        w: Array = self._after[:, :-1] @ x + self._after[:, -1]
        return w

    def tangents(self, x: Array) -> tuple[Array, Array]:
        """Return rows (m, n) and offsets (m,) of planes that touch the m friction cones at ``x``.

        ``rows @ x + offsets`` are the frictions of :meth:`margins` at ``x``; elsewhere they are its linearisation.
        """
        wrenches = self.wrench(x)
        rows = np.zeros((len(self._sticking), self.wrenches.shape[1]))
        for row, i in enumerate(self._sticking):
            rows[row] = self._rules[i].tangent(wrenches[i]) @ self._wrench(i)
        return rows[:, :-1], rows[:, -1]

    def linear(self, x: Array) -> tuple[Array, Array]:
        """Return A, B with the friction linearised at ``x`` in place of the pyramids: exact there."""
        rows, offsets = self.tangents(x)
        return np.vstack([self._affine[:, :-1], rows]), np.concatenate([self._affine[:, -1], offsets])


def held_vertices(mode: int, n: int) -> tuple[int, ...]:
    """Return the vertices that ``mode`` holds of a foot with ``n`` of them."""
    first, count = clamped_range(mode, n)
    return tuple((first + i) % n for i in range(count))


def _middle(support: Support, k: int, mode: int) -> Array:
    """Return the mean (3,) of the vertices that are held, from the sole origin; a face is held at that origin."""
    foot = support.feet[k]
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
                f"foot {name!r}: vertices {high} are to stick but are {heights} m above the ground; raise `touches`, "
                "or leave them out"
            )
    return tuple(modes)


def _held_rows(support: Support, modes: Sequence[int], slips: Mapping[int, Array]) -> tuple[Array, Array]:
    """Return T (m, 6K) and F (6K, m): which velocities are zero, and the wrenches that see to it (moraud2008 Table I).

    F = T^T where feet stick; friction of a foot that slides is mu f_z against its slip.
    """
    size = 6 * len(modes)
    rows, columns = [np.zeros((0, size))], [np.zeros((0, size))]
    T, F, b, middle = np.zeros((6, 6)), np.zeros((6, 6)), np.zeros(6), np.zeros(3)
    for k, mode in enumerate(modes):
        foot = support.feet[k]
        n = foot.n_vertices
        slip = slips.get(k, np.zeros(4))
        m = constraints(
            mode, k in slips, n, foot.offsets, np.zeros(n), np.zeros((n, 2)), foot.mu_dynamic, slip[3], slip[:3], 1.0,
            0.0, T, F, b, middle,
        )  # fmt: skip
        picked, spread = (np.eye(6), np.eye(6)) if m == 6 else (T[:m], F[:, :m].T)
        for parts, part in ((rows, picked), (columns, spread)):
            parts.append(np.zeros((m, size)))
            parts[-1][:, 6 * k : 6 * k + 6] = part
    return np.vstack(rows), np.vstack(columns).T
