"""Nonlinear complementarity problem of point contacts with the exact Coulomb cone, and its residual.

Signorini's and Coulomb's laws are used in the form of De Saxcé (De Saxcé and Feng 1998). With impulses f_i at n points,
and their velocities u = D f + g beyond the target velocities,

    K_mu  contains  f_i,     K_mu*  contains  u_i + mu |u_i,t| e_n,     both orthogonal.

So an open point has no impulse. The friction of a slipping point is mu f_n against its slip. That of a sticking point
is inside its cone.

D = J G J^T is never formed: J of a foot follows from the arms of its points, and G is (6K, 6K).

With a pyramid of k sides inside each cone, the problem is a linear complementarity problem. Friction is then the
nearest point of a regular polygon instead of a disc. Of all forces in the polygon it dissipates most.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics import Array, Flags, Integers, add_wrench, assign, kernel, point_velocity, unlimited, zeros_of

LEAVES, STICKS, SLIPS = range(3)
"""States of a point: it is open without impulse, it sticks, or it slips with full friction against its slip."""


class ConeProblem(NamedTuple):
    """Points of K feet, at most N, and the arrays of their solution.

    Attributes:
        tolerance: Residual that counts as solved.
        iterations: Maximum number of Newton steps, sweeps and ADMM iterations together.
        sides: Number of sides of the friction pyramid; 0 for the round cone.
        half: (2,) cosine and sine of half the angle of a side.
        round: (1,) whether to use the round cone for now, regardless of ``sides``.
        points: (1,) number of points n.
        foot: (N,) foot of each point.
        arm: (N, 3) position relative to the sole origin, ground axes [m].
        axis: (N, 2) direction of the first corner of the pyramid, a unit vector.
        mu: (N,) friction coefficient.
        mobility: (N,) mean inverse effective mass at the point [1/kg].
        g: (N, 3) velocities without contact, beyond the target [m/s].
        scale: (1,) speed to which residuals are relative [m/s].
        f: (N, 3) impulses, input and output [N.s].
        u: (N, 3) velocities beyond the target [m/s].
        best: (N, 3) impulses of the smallest residual so far.
        residual: (1,) that residual.
        used: (1,) number of iterations.
        wrench, twist: (6K,) impulses at the sole origins and the velocities that they cause.
        z, y: (N, 3) primal and scaled dual variables of ADMM; z also stores the impulses of the sweeps.
        x: (N, 3) z before the projection on the cones.
        shift: (N,) De Saxcé's correction.
        rho: (1,) penalty of ADMM.
        W, S: (6K, 6K), (K, 6, 6) matrices of ADMM.
        c, C: (N, 3), (N, 3, 3) a Newton step is -(c + C du), where du are the velocities that it causes.
        proximal: (1,) weight of the proximal term.
        guess: (N,) predicted state of each point (``LEAVES``, ``STICKS`` or ``SLIPS``) from which Newton's method may
            start.
        enough: (1,) residual at which Newton's method stops; 0 for rounding level.
        budget: (1,) remaining operations of this and all other problems of the step.
        H, A, rhs, rows, columns: (K, 6, 6), (6K, 6K), (6K,), (6K,), (6K,) work arrays.
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
        """Return an empty problem for at most ``n_points`` on ``n_feet``; ``budget`` None is unlimited."""
        half = np.pi / max(sides, 1)
        budget = unlimited() if budget is None else budget
        values = {"sides": sides, "half": np.array([np.cos(half), np.sin(half)]), "budget": budget}
        return zeros_of(cls, {"K": n_feet, "N": n_points}, tolerance=tolerance, iterations=iterations, **values)


INSIDE, EDGE, CORNER = 0, 1, 2
NOTHING = 1e-14
"""Effect of an impulse at an open point that is only rounding, relative to the largest speed."""


@kernel
def facet(q: ConeProblem, m, x, y, limit) -> tuple[int, float, float]:
    """Return the position, on the friction polygon of point ``m``, of the point nearest to (x, y).

    The corners of the polygon are at radius ``limit``. The position is INSIDE, an EDGE with its outward normal, or a
    CORNER with its direction.
    """
    ax, ay = q.axis[m]
    cosine, sine = q.half
    if x * x + y * y <= (limit * cosine) ** 2:
        return INSIDE, 0.0, 0.0
    along = x * ax + y * ay
    aside = y * ax - x * ay
    # The polygon is symmetric about its axis; mirroring makes the computation symmetric to the last bit.
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
    """Return the point nearest to (x, y) of the friction polygon of point ``m`` with corners at radius ``limit``."""
    kind, c, s = facet(q, m, x, y, limit)
    if kind == CORNER:
        return limit * c, limit * s
    if kind == EDGE:
        beyond = x * c + y * s - limit * q.half[0]
        return x - beyond * c, y - beyond * s
    return x, y


@kernel
def gather(q: ConeProblem, f, scaled):
    """Fill ``q.wrench`` with J^T f; if ``scaled``, f is in the scaled units of ADMM."""
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
def floor_mobilities(q: ConeProblem) -> float:
    """Raise tiny mobilities to a fraction of the largest one, and return the largest one [1/kg].

    This excludes significant impulses at points that no force can move.
    """
    largest = 0.0
    for m in range(q.points[0]):
        largest = max(largest, q.mobility[m])
    for m in range(q.points[0]):
        q.mobility[m] = max(q.mobility[m], 1e-12 * largest)
    return largest


@kernel
def reserve_budget(q: ConeProblem) -> int:
    """Reserve half of the remaining budget of the step for later problems, and return it."""
    aside: int = max(q.budget[0], 0) // 2
    q.budget[0] -= aside
    return aside


@kernel
def clear_open_points(q: ConeProblem) -> None:
    """Clear the rounding residue of impulses at open points; each Newton step leaves a fraction of 1e-16 of it.

    If the residual was ``enough``, no further step was made, and up to that fraction remains.
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
            # Rows of r x C; the columns of both follow below with -r x.
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
    """Return the residual of (f, u) relative to ``q.scale``; it is zero at a solution, and only there.

    The residual is the largest of two speeds over all points. Impulses count as the speed that they give to their own
    point. The normal one, |min(f_n, u_n)|, measures pull, penetration (the part outside the dual cone after De
    Saxcé's correction) and the complementarity gap. The tangential one is the distance of friction from the projection
    of f_t - u_t on the disc of radius mu f_n. It measures the part outside the cone, and the distance from the friction
    that dissipates most.
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
        # The negated comparison also catches NaN.
        if not gap <= worst:
            worst = gap
    return worst / q.scale[0] if q.scale[0] > 0.0 else 0.0
