"""The nonlinear complementarity problem of point contacts with the exact Coulomb cone, and its residual.

Signorini's and Coulomb's laws in the form of De Saxcé (De Saxcé and Feng 1998): with impulses f_i at n points, and
their velocities u = D f + g beyond the wanted ones,

    K_mu  contains  f_i,     K_mu*  contains  u_i + mu |u_i,t| e_n,     both orthogonal;

so a point that leaves carries nothing, one that slips carries mu f_n against its slip, one that sticks stays within.

D = J G J^T is never formed: J of a foot is known from the arms of its points, and G is (6K, 6K).

The same with a pyramid of k sides inside each cone is a linear complementarity problem: friction is then the nearest
point of a regular polygon instead of a disc, and dissipates most of all forces in that.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics import Array, Flags, Integers, add_wrench, assign, kernel, point_velocity, unlimited, zeros_of

LEAVES, STICKS, SLIPS = range(3)
"""What a point does: it carries nothing, it stays where it is, or it carries all friction against its slip."""


class ConeProblem(NamedTuple):
    """Points of K feet, N at most, and what their solution takes.

    Attributes:
        tolerance: Residual that counts as solved. iterations: Newton steps, sweeps and iterations of ADMM together.
        sides: Of the pyramid that friction is in; 0 for the round cone. half: (2,) cosine and sine of half a side.
        round: (1,) whether to take the cone for now, whatever ``sides`` says.
        points: (1,) how many n. foot: (N,) foot of each. arm: (N, 3) from its sole origin, ground axes [m].
        axis: (N, 2) direction of the first corner of the pyramid, a unit vector.
        mu: (N,) friction. mobility: (N,) mean inverse mass that an impulse at the point meets [1/kg].
        g: (N, 3) velocities without contact, beyond the wanted ones [m/s].
        scale: (1,) speed that residuals are relative to [m/s].
        f, u: (N, 3) impulses [N.s], in and out, and velocities beyond the wanted ones [m/s].
        best: (N, 3) impulses of the least residual so far. residual: (1,) that residual. used: (1,) iterations.
        wrench, twist: (6K,) impulses at the sole origins and the velocities that they bring.
        z, y, x: (N, 3) primal and scaled dual variables of ADMM, and z before the projection on the cones; the first
            also what sweeps came to. shift: (N,) De Saxcé's correction. rho: (1,) penalty. W, S: (6K, 6K), (K, 6, 6)
            matrices.
        c, C: (N, 3), (N, 3, 3) a Newton step is -(c + C du) for the velocities du that it brings.
        proximal: (1,) weight of the proximal term.
        guess: (N,) what each point is thought to do, ``LEAVES``, ``STICKS`` or ``SLIPS``, where Newton's method is to
            begin with that. enough: (1,) residual with which it ends; 0 is rounding.
        budget: (1,) operations that this problem and all others of the step may still take together.
        H, A, rhs, rows, columns: (K, 6, 6), (6K, 6K), (6K,), (6K,), (6K,) work.
    """

    tolerance: float
    iterations: int
    sides: int
    half: Annotated[Array, 2]
    round: Annotated[Flags, 1]
    points: Annotated[Integers, 1]
    foot: Annotated[Integers, "N"]
    arm: Annotated[Array, "N", 3]
    axis: Annotated[Array, "N", 2]
    mu: Annotated[Array, "N"]
    mobility: Annotated[Array, "N"]
    g: Annotated[Array, "N", 3]
    scale: Annotated[Array, 1]
    f: Annotated[Array, "N", 3]
    u: Annotated[Array, "N", 3]
    best: Annotated[Array, "N", 3]
    residual: Annotated[Array, 1]
    used: Annotated[Integers, 1]
    wrench: Annotated[Array, "6K"]
    twist: Annotated[Array, "6K"]
    z: Annotated[Array, "N", 3]
    y: Annotated[Array, "N", 3]
    x: Annotated[Array, "N", 3]
    rho: Annotated[Array, 1]
    proximal: Annotated[Array, 1]
    guess: Annotated[Integers, "N"]
    enough: Annotated[Array, 1]
    shift: Annotated[Array, "N"]
    W: Annotated[Array, "6K", "6K"]
    S: Annotated[Array, "K", 6, 6]
    c: Annotated[Array, "N", 3]
    C: Annotated[Array, "N", 3, 3]
    H: Annotated[Array, "K", 6, 6]
    A: Annotated[Array, "6K", "6K"]
    rhs: Annotated[Array, "6K"]
    rows: Annotated[Integers, "6K"]
    columns: Annotated[Integers, "6K"]
    budget: Annotated[Integers, 1]

    @classmethod
    def of_feet(
        cls,
        n_feet: int,
        n_points: int,
        tolerance: float,
        iterations: int,
        sides: int = 0,
        budget: Integers | None = None,
    ) -> ConeProblem:
        """Return an empty problem for ``n_points`` at most on ``n_feet``; without a ``budget`` of its own only."""
        half = np.pi / max(sides, 1)
        budget = unlimited() if budget is None else budget
        given = {"sides": sides, "half": np.array([np.cos(half), np.sin(half)]), "budget": budget}
        return zeros_of(cls, {"K": n_feet, "N": n_points}, tolerance=tolerance, iterations=iterations, **given)


INSIDE, EDGE, CORNER = 0, 1, 2
NOTHING = 1e-20
"""What Newton's method leaves of the impulse of a point that leaves, beside the largest speed, at most."""


@kernel
def facet(q: ConeProblem, m, x, y, limit) -> tuple[int, float, float]:
    """Return where the point nearest to (x, y) of the polygon of point ``m`` is, whose corners are at radius ``limit``.

    INSIDE, on an EDGE with its outward normal, or on a CORNER with its direction.
    """
    ax, ay = q.axis[m]
    cosine, sine = q.half
    if x * x + y * y <= (limit * cosine) ** 2:
        return INSIDE, 0.0, 0.0
    along = x * ax + y * ay
    aside = y * ax - x * ay
    # Mirrored in its axis the polygon is the same: to the last bit, on one side of it.
    side = -1.0 if aside < 0.0 else 1.0
    aside *= side
    if aside * cosine <= (along - limit) * sine:
        return CORNER, ax, ay
    half = np.pi / q.sides
    angle = (2.0 * np.floor(np.arctan2(aside, along) / (2.0 * half)) + 1.0) * half
    c = np.cos(angle)
    s = np.sin(angle)
    if along * c + aside * s <= limit * cosine:
        return INSIDE, 0.0, 0.0
    offset = aside * c - along * s
    kind = EDGE
    if not abs(offset) < limit * sine:
        kind = CORNER
        angle += half if offset > 0.0 else -half
        c = np.cos(angle)
        s = np.sin(angle)
    s *= side
    return kind, c * ax - s * ay, c * ay + s * ax


@kernel
def onto_polygon(q: ConeProblem, m, x, y, limit) -> tuple[float, float]:
    """Return the point nearest to (x, y) of the polygon of point ``m``, whose corners are at radius ``limit``."""
    kind, c, s = facet(q, m, x, y, limit)
    if kind == CORNER:
        return limit * c, limit * s
    if kind == EDGE:
        beyond = x * c + y * s - limit * q.half[0]
        return x - beyond * c, y - beyond * s
    return x, y


@kernel
def gather(q: ConeProblem, f, scaled):
    """Fill ``q.wrench`` with J^T f; ``scaled``: of impulses in units of ADMM."""
    q.wrench[:] = 0.0
    for m in range(q.points[0]):
        by = 1.0 / np.sqrt(q.mobility[m]) if scaled else 1.0
        add_wrench(q.wrench[6 * q.foot[m] :], (f[m, 0] * by, f[m, 1] * by, f[m, 2] * by), q.arm[m])


@kernel
def copy_points(source, target):
    for m in range(source.shape[0]):
        for a in range(3):
            target[m, a] = source[m, a]


@kernel
def set_aside(q: ConeProblem) -> int:
    """Take half of what is left of the budget of the step away, and return it: for all problems after this one."""
    aside: int = max(q.budget[0], 0) // 2
    q.budget[0] -= aside
    return aside


@kernel
def let_go(q: ConeProblem) -> None:
    """Clear what rounding leaves of the impulses of points that leave: each Newton step takes all but 1e-16 of it.

    Where a residual was ``enough`` no further step was made, and up to as much is left.
    """
    nothing = max(NOTHING, q.enough[0]) * q.scale[0]
    for m in range(q.points[0]):
        load = q.mobility[m] * q.f[m, 2]
        if load < nothing and q.u[m, 2] > load:
            for a in range(3):
                q.f[m, a] = 0.0


@kernel
def multiply(A, x, out):
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[0]):
            total += A[i, j] * x[j]
        out[i] = total


@kernel
def multiply_blocks(G, H, factor, A):
    """Fill A with 1 + ``factor`` G H, H block diagonal (K, 6, 6)."""
    for i in range(A.shape[0]):
        for k in range(H.shape[0]):
            for j in range(6):
                total = 0.0
                for a in range(6):
                    total += G[i, 6 * k + a] * H[k, a, j]
                A[i, 6 * k + j] = factor * total
        A[i, i] += 1.0


@kernel
def add_quadratic(r, C, by, H):
    """Add J^T C J times ``by`` to ``H`` (6, 6), J = (1, -r x) of a point."""
    for a in range(3):
        b = (a + 1) % 3
        c = (a + 2) % 3
        for j in range(3):
            H[a, j] += by * C[a, j]
            # Rows of r x C, then the columns of both with -r x.
            H[3 + a, j] += by * (r[b] * C[c, j] - r[c] * C[b, j])
    for i in range(3):
        b = (i + 1) % 3
        c = (i + 2) % 3
        for a in range(3):
            e = (a + 1) % 3
            f = (a + 2) % 3
            # (X (-r x)) column a = r_e X_f - r_f X_e
            H[i, 3 + a] += by * (r[e] * C[i, f] - r[f] * C[i, e])
            low_f = r[b] * C[c, f] - r[c] * C[b, f]
            low_e = r[b] * C[c, e] - r[c] * C[b, e]
            H[3 + i, 3 + a] += by * (r[e] * low_f - r[f] * low_e)


@kernel
def fill_velocities(G, q: ConeProblem):
    """Fill ``q.u`` with D f + g."""
    gather(q, q.f, False)
    multiply(G, q.wrench, q.twist)
    for m in range(q.points[0]):
        assign(q.u[m], point_velocity(q.twist[6 * q.foot[m] :], q.arm[m]))
        for a in range(3):
            q.u[m, a] += q.g[m, a]


@kernel
def measure(q: ConeProblem) -> float:
    """Return how far (f, u) are from a solution, relative to ``q.scale``: zero at one, and only there.

    The largest over all points of two speeds, impulses counted by the speed that they give their own point. The normal
    one, |min(f_n, u_n)|, is pull, penetration (what is outside the dual cone after De Saxcé's correction) and the gap
    of complementarity. The tangential one is the distance of friction from the projection of f_t - u_t on the disc of
    radius mu f_n: what is outside the cone, and the gap to the friction that dissipates most.
    """
    worst = 0.0
    for m in range(q.points[0]):
        d = q.mobility[m]
        fn = d * q.f[m, 2]
        fx = d * q.f[m, 0]
        fy = d * q.f[m, 1]
        worst = max(worst, abs(min(fn, q.u[m, 2])))
        x = fx - q.u[m, 0]
        y = fy - q.u[m, 1]
        length = np.sqrt(x * x + y * y)
        limit = q.mu[m] * max(fn, 0.0)
        if q.sides > 0 and not q.round[0]:
            x, y = onto_polygon(q, m, x, y, limit)
        elif length > limit:
            x *= limit / length
            y *= limit / length
        x = fx - x
        y = fy - y
        gap = np.sqrt(x * x + y * y)
        # Also where something is not finite.
        if not gap <= worst:
            worst = gap
    return worst / q.scale[0] if q.scale[0] > 0.0 else 0.0
