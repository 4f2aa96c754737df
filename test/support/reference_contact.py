"""The sets of Table I of moraud2008 solved again, in plain NumPy: the reference of the models that select among them.

The code follows the equations (docs/contact_models.md), not the kernels. A candidate is one set per foot, and any
number of candidates is solved at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.dynamics.projection import Projection
from bipedsim.model.sole import Sole
from bipedsim.numerics import Array, Flags, Indices, Integers

RECOVERY = 0.05
"""Fastest that a penetration is taken back [m/s]."""


def table_one(n: int) -> list[tuple[int, ...]]:
    """Return the clamped vertices of every set of a foot with ``n`` vertices, in the order of the mode numbers."""
    vertices = [(i,) for i in range(n)]
    edges = [(0, 1)] if n == 2 else [(i, (i + 1) % n) for i in range(n)] if n > 2 else []
    face = [tuple(range(n))] if n > 2 else []
    return [(), *vertices, *edges, *face]


BLUNT = 1e-4
"""Part of the slip of the whole foot that a vertex has at least, squared: edges of the limit surface are rounded."""


def vertex_shares(polygon: Array, cop: Array) -> Array:
    """Return the shares (C, N) of the vertices in the load for each CoP (C, 2): Wachspress' weights, linear on an edge.

    The weights are written as products of areas, which needs no division and is regular on the edges. A CoP outside
    gets those of the boundary.
    """
    n = len(polygon)
    if n == 1:
        return np.ones((len(cop), 1))
    if n == 2:
        along = polygon[1] - polygon[0]
        share = np.clip((cop - polygon[0]) @ along / (along @ along), 0.0, 1.0)
        return np.column_stack([1.0 - share, share])
    following, previous = np.roll(polygon, -1, axis=0), np.roll(polygon, 1, axis=0)
    corner = cross2(polygon - previous, following - polygon)
    edge = following - polygon
    # areas[:, i] between edge (i, i + 1) and the CoP; w_i needs all but those of its own two edges.
    areas = np.maximum(cross2(edge[None], cop[:, None] - polygon[None]), 0.0)
    weights = np.empty_like(areas)
    for i in range(n):
        others = [j for j in range(n) if j not in (i, (i - 1) % n)]
        weights[:, i] = corner[i] * areas[:, others].prod(axis=1)
    total = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, total, out=np.full_like(weights, 1.0 / n), where=total > 0.0)


def torsional_radius(polygon: Array, cop: Array) -> Array:
    """Return c = sum w_i |p_i - CoP| for each CoP (C, 2)."""
    shares = vertex_shares(polygon, cop)
    arms = polygon[None] - (shares @ polygon)[:, None]
    radius: Array = (shares * np.linalg.norm(arms, axis=2)).sum(axis=1)
    return radius


def slips(shares: Array, arms: Array, V: Array) -> tuple[Array, Array]:
    """Return Q_i (C, N, 3, 3), with V Q_i V the square of the slip of a vertex, and
    sum w_i Q_i / |u_i| (C, 3, 3) at V (C, 3).

    Args:
        shares, arms: (C, N), (C, N, 2) vertices from the CoP over c. V: (u_x, u_y, c w_z).
    """
    B = np.zeros((*shares.shape, 2, 3))
    B[..., 0, 0] = B[..., 1, 1] = 1.0
    B[..., 0, 2], B[..., 1, 2] = -arms[..., 1], arms[..., 0]
    Q = np.swapaxes(B, 2, 3) @ B + BLUNT**2 * np.eye(3)
    speed = np.sqrt(np.einsum("ca,cnab,cb->cn", V, Q, V))
    weight = np.divide(shares, speed, out=np.zeros_like(shares), where=speed > 0.0) / np.sqrt(1.0 + BLUNT**2)
    return Q, np.einsum("cn,cnab->cab", weight, Q)


def reach(shares: Array, arms: Array, x: Array) -> Array:
    """Return the size of the frictions x (C, 3) over mu f_z, 1 on the limit surface of the vertices.

    The largest x.V / D(V), with the dissipation D(V) = sum w_i |u_i| of the vertices, by reweighted least squares.
    """
    found: Array = np.sqrt((x * x).sum(axis=1))
    some = np.flatnonzero(found > 0.0)
    V = x[some].copy()
    for _ in range(300):
        _, A = slips(shares[some], arms[some], V)
        V = np.linalg.solve(A + 1e-13 * A[:, :1, :1] * np.eye(3), x[some, :, None])[..., 0].astype(np.float64)
        V /= np.sqrt((V * V).sum(axis=1, keepdims=True))
    if len(some):
        _, A = slips(shares[some], arms[some], V)
        found[some] = (x[some] * V).sum(axis=1) / np.einsum("ca,cab,cb->c", V, A, V)
    return found


@dataclass
class Step:
    """One step to be solved, with the state of the contact.

    Attributes:
        projection: The dynamics as the feet see them.
        soles: The feet, K of them.
        h, gamma: Step [s], fraction of a position error that one step removes.
        was_sliding: (K,) friction state of the last step.
        errors: Per foot (N, 2), drift of the vertices from their anchors, ground axes [m].
    """

    projection: Projection
    soles: tuple[Sole, ...]
    h: float
    gamma: float
    was_sliding: Flags
    errors: list[Array]

    @classmethod
    def fresh(cls, projection: Projection, soles: tuple[Sole, ...], h: float, gamma: float = 0.2) -> Step:
        """Return a step of feet that remember nothing."""
        errors = [np.zeros((len(sole.vertices), 2)) for sole in soles]
        return cls(projection, soles, h, gamma, np.zeros(len(soles), dtype=bool), errors)

    def arms(self, k: int) -> Array:
        """Return the vertices (N, 3) of foot ``k`` relative to its sole origin, ground axes [m]."""
        return self.soles[k].vertices @ self.projection.rotation[k, :, :2].T

    def heights(self, k: int) -> Array:
        """Return the heights (N,) of the vertices of foot ``k`` above the ground [m]."""
        return self.arms(k)[:, 2] + self.projection.position[k, 2]

    def wanted(self, k: int) -> Array:
        """Return the velocities (N, 3) wanted of clamped vertices, ground axes [m/s]."""
        z = self.heights(k)
        normal = np.where(z < 0.0, np.minimum(-self.gamma * z / self.h, RECOVERY), -z / self.h)
        return np.column_stack([-self.gamma * self.errors[k] / self.h, normal])


@dataclass
class Candidates:
    """Solved candidates, C of them.

    Attributes:
        modes: (C, K). sliding: (C, K). slip: (C, K, 3) friction, (-f_x, -f_y, -torsion / c) over mu f_z.
        impulse, velocity: (C, K, 6) at the sole origins, ground axes.
        cop: (C, K, 2) sole frame [m], NaN without normal force. converged: (C,) whether the slip came to rest.
        backwards: (C,) whether a sliding foot does not move, with less friction than it could have.
    """

    modes: Integers
    sliding: Flags
    slip: Array
    impulse: Array
    velocity: Array
    cop: Array
    converged: Flags
    backwards: Flags


def cross2(a: Array, b: Array) -> Array:
    product: Array = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


def cross3(a: Array, b: Array) -> Array:
    """Return a x b without the overhead of np.cross."""
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.stack(parts, axis=-1)


def _rows(step: Step, k: int, clamped: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return rows (m, 6), their wanted velocities (m,) and the virtual joint (3,) of a sticking foot.

    Order: Tx, Ty, Tz, then the constrained rotations. The wanted motion is the rigid one nearest to the wanted motions
    of the vertices.
    """
    if not clamped:
        return np.zeros((0, 6)), np.zeros(0), np.zeros(3)
    arms, wanted = step.arms(k)[list(clamped)], step.wanted(k)[list(clamped)]
    joint = arms.mean(axis=0)
    held = [np.concatenate([axis, np.cross(joint, axis)]) for axis in np.eye(3)]
    targets = list(wanted.mean(axis=0))
    local = arms - joint
    if len(clamped) == 2:
        e = (arms[1] - arms[0]) * [1.0, 1.0, 0.0]
        e /= np.linalg.norm(e)
        n = np.cross([0.0, 0.0, 1.0], e)
        held.append(np.concatenate([np.zeros(3), n]))
        lever = np.cross(n, local)[:, 2]
        targets.append(lever @ (wanted[:, 2] - wanted[:, 2].mean()) / (lever @ lever))
    elif len(clamped) > 2:
        held += [np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])]
        levers = np.column_stack([local[:, 1], -local[:, 0]])
        targets += list(np.linalg.lstsq(levers, wanted[:, 2] - wanted[:, 2].mean(), rcond=None)[0])
    if len(clamped) > 1:
        held.append(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
        drift = wanted[:, :2] - wanted[:, :2].mean(axis=0)
        targets.append(cross2(local, drift).sum() / (local[:, :2] ** 2).sum())
    return np.array(held), np.array(targets), joint


def solve_candidates(step: Step, modes: Integers, iterations: int = 400, tolerance: float = 1e-13) -> Candidates:
    """Solve given candidates: ``modes`` (C, K), the direction of the slip to ``tolerance``.

    Sticking is tried first. Feet outside their cone slide, all at once, and the solve is repeated. A sliding foot that
    friction can hold sticks once more. If that is outside its cone, it slides permanently.
    """
    count, feet = modes.shape
    tables = [[_rows(step, k, c) for c in table_one(len(sole.vertices))] for k, sole in enumerate(step.soles)]
    sliding = np.zeros((count, feet), dtype=bool)
    slip = np.zeros((count, feet, 3))
    solved = _Solver(step, modes, tables, tolerance)
    solved.run(np.arange(count), sliding, slip, 1)
    held = np.zeros((count, feet), dtype=bool)
    for _ in range(3 * feet):
        fresh = np.zeros_like(sliding)
        for k, sole in enumerate(step.soles):
            moving = step.was_sliding[k] | held[:, k]
            mu = np.where(moving, sole.friction_dynamic, sole.friction_static)
            load, radius = solved.friction_load(k)
            shares, arms, _ = solved.spread(k, np.arange(count))
            used = reach(shares, arms, load)
            # A contact at one corner has no torsion. At a vertex the torsion is only rounding.
            twisted = (radius == 0.0) & (modes[:, k] > len(sole.vertices)) & (np.abs(solved.torsion(k)) > 1e-12)
            free = twisted | (used > mu * np.maximum(solved.impulse[:, k, 2], 0.0))
            fresh[:, k] = free & ~sliding[:, k] & (modes[:, k] > 0)
            slip[fresh[:, k], k] = -load[fresh[:, k]] / used[fresh[:, k], None]
            solved.moving[fresh[:, k], k] = -load[fresh[:, k]]
            solved.radius[fresh[:, k], k] = radius[fresh[:, k]]
        driven = solved.backwards & sliding & ~held & (solved.impulse[:, :, 2] > 0.0)
        driven[fresh.any(axis=1)] = False
        again = np.flatnonzero((fresh | driven).any(axis=1))
        if len(again) == 0:
            break
        held |= driven
        sliding = (sliding | fresh) & ~driven
        solved.backwards[driven] = False
        solved.run(again, sliding, slip, iterations)
    cop = np.where(solved.impulse[:, :, 2:3] > 0.0, solved.cop, np.nan)
    return Candidates(
        modes,
        sliding,
        slip,
        solved.impulse,
        solved.velocity,
        cop,
        solved.moved <= 10.0 * tolerance,
        np.logical_or.reduce(solved.backwards & sliding, axis=1),
    )


class _Solver:
    """Impulses of many candidates in given friction states; refills its arrays."""

    def __init__(
        self, step: Step, modes: Integers, tables: list[list[tuple[Array, Array, Array]]], tolerance: float
    ) -> None:
        count, feet = modes.shape
        self.step, self.modes, self.tolerance = step, modes, tolerance
        self.impulse = np.zeros((count, feet, 6))
        self.velocity = np.zeros((count, feet, 6))
        self.cop = np.zeros((count, feet, 2))
        self.radius = np.zeros((count, feet))
        self.moving = np.zeros((count, feet, 3))
        self.moved = np.zeros(count)
        self.backwards = np.zeros((count, feet), dtype=bool)
        self._clamped = [table_one(len(sole.vertices)) for sole in step.soles]
        self._mean = [
            np.array([sole.vertices[list(c)].mean(axis=0) if c else [0.0, 0.0] for c in self._clamped[k]])
            for k, sole in enumerate(step.soles)
        ]
        self._ends = [
            np.array([sole.vertices[[c[0], c[-1]]] if c else np.zeros((2, 2)) for c in self._clamped[k]])
            for k, sole in enumerate(step.soles)
        ]
        # The matrices have six rows per foot with padding. Rows 0 and 1 are the tangential ones and the last is the
        # spin.
        self._stick = [np.zeros((len(table), 6, 6)) for table in tables]
        self._slide = [np.zeros((len(table), 6, 6)) for table in tables]
        self._wanted = [np.zeros((len(table), 6)) for table in tables]
        self._joint = [np.array([joint for _, _, joint in table]) for table in tables]
        for k, table in enumerate(tables):
            for mode, (rows, wanted, _) in enumerate(table):
                m = len(rows)
                self._stick[k][mode, :m] = rows
                self._wanted[k][mode, :m] = wanted
                kept = [2, *range(3, m - 1)] if m > 3 else [2] * (m > 0)
                self._slide[k][mode, kept] = rows[kept]

    def run(self, which: Indices, sliding: Flags, slip: Array, iterations: int) -> None:
        """Solve the candidates ``which``; those with a sliding foot until the slip rests, ``slip`` in place.

        The fixed point iteration is relaxed by Aitken's rule (Irons and Tuck 1969), each candidate on its own.
        """
        self.moved[which] = 0.0
        relaxation = np.ones(len(self.modes))
        last = np.zeros_like(slip)
        for _ in range(iterations):
            self._solve(which, sliding[which], slip)
            if not sliding[which].any():
                break
            self.moved[which] = 0.0
            self.backwards[which] = False
            turn = np.zeros_like(slip)
            for k in range(self.modes.shape[1]):
                self._turn(k, which[sliding[which, k]], slip, turn)
            which = which[self.moved[which] > self.tolerance]
            if len(which) == 0:
                break
            difference = turn[which] - last[which]
            squares = (difference**2).sum(axis=(1, 2))
            projected = (last[which] * difference).sum(axis=(1, 2))
            factor = np.divide(-projected, squares, out=np.ones_like(squares), where=squares > 0.0)
            started = last[which].any(axis=(1, 2))
            relaxation[which] = np.where(started, np.clip(relaxation[which] * factor, 0.2, 30.0), 1.0)
            last[which] = turn[which]
            slip[which] += relaxation[which, None, None] * turn[which]

    def _solve(self, which: Indices, sliding: Flags, slip: Array) -> None:
        G, w_free = self.step.projection.G, self.step.projection.w_free
        feet = self.modes.shape[1]
        T = np.zeros((len(which), 6 * feet, 6 * feet))
        F = np.zeros_like(T)
        b = np.zeros((len(which), 6 * feet))
        for k, sole in enumerate(self.step.soles):
            s = slice(6 * k, 6 * k + 6)
            mode = self.modes[which, k]
            free = sliding[:, k]
            rows = np.where(free[:, None, None], self._slide[k][mode], self._stick[k][mode])
            T[:, s, s] = rows
            b[:, s] = self._wanted[k][mode]
            spread = rows.transpose(0, 2, 1).copy()
            # Sliding: f_z acts with (-mu s_x, -mu s_y, 1) at the virtual joint and the torsion -mu c s_3. A torque
            # along the ground moves the CoP, and the friction force with it.
            mu = sole.friction_dynamic
            push = np.column_stack([-mu * slip[which, k, :2], np.ones(len(which))])
            normal = np.column_stack([push, cross3(self._joint[k][mode], push)])
            normal[:, 5] -= mu * self.radius[which, k] * slip[which, k, 2]
            pressed = free & (mode > 0)
            spread[pressed, :, 2] = normal[pressed]
            for column in (3, 4):
                tilt = spread[pressed][:, 3:5, column]
                spread[pressed, 5, column] = mu * (slip[which[pressed], k, :2] * tilt).sum(axis=1)
            F[:, s, s] = spread
        A = T @ G @ F
        unused = (T == 0.0).all(axis=2)
        c, r = np.nonzero(unused)
        A[c, r, :] = 0.0
        A[c, r, r] = 1.0
        rhs = b - T @ w_free
        rhs[unused] = 0.0
        lam = np.linalg.solve(A, rhs[..., None])[..., 0]
        impulse = (F @ lam[..., None])[..., 0]
        self.impulse[which] = impulse.reshape(-1, feet, 6)
        self.velocity[which] = (w_free + impulse @ G).reshape(-1, feet, 6)
        for k in range(feet):
            self.cop[which, k] = self._centre(k, which)

    def _centre(self, k: int, which: Indices) -> Array:
        """Return the points of the sole plane (C, 2) about which no torque along the ground remains."""
        R = self.step.projection.rotation[k]
        f, tau = self.impulse[which, k, :3], self.impulse[which, k, 3:]
        pressed = f[:, 2] > 0.0
        cop: Array = self._mean[k][self.modes[which, k]]
        # (x a + y b) x f = tau in its first two rows, a and b the axes of the sole.
        lever = np.stack([cross3(R[:, 0], f)[:, :2], cross3(R[:, 1], f)[:, :2]], axis=2)
        cop[pressed] = np.linalg.solve(lever[pressed], tau[pressed, :2, None])[..., 0]
        # A vertex or an edge supports no load outside it: its point nearest to zero torque.
        modes = self.modes[which, k]
        thin = np.flatnonzero(pressed & (modes > 0) & (modes <= 2 * len(self.step.soles[k].vertices)))
        ends = self._ends[k][modes[thin]]
        along = (ends[:, 1] - ends[:, 0]) @ R[:, :2].T
        about = tau[thin] - cross3(ends[:, 0] @ R[:, :2].T, f[thin])
        arm = cross3(along, f[thin])[:, :2]
        squares = (arm**2).sum(axis=1)
        work = (arm * about[:, :2]).sum(axis=1)
        share = np.divide(work, squares, out=np.zeros_like(squares), where=squares > 0.0)
        cop[thin] = ends[:, 0] + share[:, None] * (ends[:, 1] - ends[:, 0])
        return cop

    def spread(self, k: int, which: Indices) -> tuple[Array, Array, Array]:
        """Return the shares (C, N), the vertices from the CoP along the ground over c (C, N, 2), and c (C,)."""
        sole, modes = self.step.soles[k].vertices, self.modes[which, k]
        shares = np.zeros((len(which), len(sole)))
        for mode in np.unique(modes):
            held = list(self._clamped[k][mode])
            if held:
                chosen = np.flatnonzero(modes == mode)
                shares[np.ix_(chosen, held)] = vertex_shares(sole[held], self.cop[which[chosen], k])
        arms = sole[None] - (shares @ sole)[:, None]
        arms = arms @ self.step.projection.rotation[k, :2, :2].T
        radius = (shares * np.linalg.norm(arms, axis=2)).sum(axis=1)
        # For a vertex, the radius is zero except for rounding.
        radius[radius < 1e-14] = 0.0
        scaled = np.divide(arms, radius[:, None, None], out=np.zeros_like(arms), where=radius[:, None, None] > 0.0)
        return shares, scaled, radius

    def friction_load(self, k: int) -> tuple[Array, Array]:
        """Return the friction, (C, 3) impulses (f_x, f_y, torsion / c), and c (C,)."""
        every = np.arange(len(self.modes))
        radius = self.spread(k, every)[2]
        spin = np.divide(self.torsion(k), radius, out=np.zeros_like(radius), where=radius > 0.0)
        return np.column_stack([self.impulse[:, k, :2], spin]), radius

    def torsion(self, k: int) -> Array:
        """Return the torque (C,) about the normal through the CoP [N.m.s]."""
        arm = self.cop[:, k] @ self.step.projection.rotation[k, :, :2].T
        torque: Array = self.impulse[:, k, 5] - cross2(arm, self.impulse[:, k, :3])
        return torque

    def _turn(self, k: int, which: Indices, slip: Array, turn: Array) -> None:
        """Fill ``turn`` with the change to the friction nearest to s + d u, d the inverse of the mobility over mu f_z.

        That is s + d u - d V with the V that balances it, d V + grad D(V) = s + d u. Reweighted least squares finds it:
        a few of these iterations for each iteration of the slip.
        """
        projection = self.step.projection
        if len(which) == 0:
            return
        w = self.velocity[which, k]
        arm = self.cop[which, k] @ projection.rotation[k, :, :2].T
        shares, arms, radius = self.spread(k, which)
        u = w[:, :3] + cross3(w[:, 3:], arm)
        u[:, 2] = radius * w[:, 5]
        G = projection.G[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
        level = 0.5 * (G[0, 0] + G[1, 1])
        about = np.where(radius > 0.0, radius**2 * G[5, 5], level)
        carried = np.maximum(self.step.soles[k].friction_dynamic * self.impulse[which, k, 2], 1e-12)
        d = 1.0 / (np.column_stack([np.full(len(which), level)] * 2 + [about]) * carried[:, None])
        # The solved quantity is a torsion, but c has changed.
        factor = np.divide(self.radius[which, k], radius, out=np.zeros_like(radius), where=radius > 0.0)
        slip[which, k, 2] *= factor
        x = slip[which, k] + d * u
        V = self.moving[which, k]
        lost = (np.abs(V) < 1e-12 * np.abs(u).max(axis=1, keepdims=True)).all(axis=1)
        V[lost] = u[lost]
        for _ in range(12):
            A = slips(shares, arms, V)[1] + d[:, :, None] * np.eye(3)
            V = np.linalg.solve(A, x[:, :, None])[..., 0]
        self.moving[which, k] = V
        new = x - d * V
        moved = np.maximum(np.abs(new - slip[which, k]).max(axis=1), np.abs(radius - self.radius[which, k]))
        self.moved[which] = np.maximum(self.moved[which], moved)
        self.backwards[which, k] = (d * np.abs(V)).max(axis=1) < 1e-7
        self.radius[which, k] = radius
        turn[which, k] = new - slip[which, k]
