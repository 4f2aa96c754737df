"""Compute the velocity of a rigid mechanism after simultaneous impacts, by the impact laws of the literature.

Source: Hurmuzlu, Génot, Brogliato, *Modeling, stability and control of biped robots: a general framework* (2001),
sections 3.2.2 and 3.3.2. The docstrings below call it "the paper". Each law is a pure function of these arguments:

    M: (nv, nv) inertia matrix, symmetric positive definite [kg, kg.m, kg.m^2].
    J: (m, nv) rows of the contacts at zero distance (F_i = 0), the transpose of the paper's grad F. ``J @ v`` are the
        normal velocities [m/s], negative where a contact closes. Rows may depend on each other.
    v_before: (nv,) generalised velocity [m/s, rad/s].
    restitution: e, from 0 (plastic) to 1 (elastic); a number, or (m,) for laws with one coefficient per contact.
    friction: Tangential rows and coefficients, for laws that have friction in the paper.

Each law returns an ``ImpactResult``. It raises ConfigError for invalid or unsupported arguments.
``docs/impact_laws.md`` compares the laws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim_studies.impacts.problem import (
    RESTING,
    Friction,
    ImpactProblem,
    ImpactResult,
    NoImpactOutcomeError,
    indices,
)

__all__ = ["IMPACT_LAWS", "Friction", "ImpactLaw", "ImpactResult", "NoImpactOutcomeError"]

MAX_IMPACTS = 100
"""Maximum length of a sequence of impacts in Han and Gilmore's enumeration."""
MAX_STATES = 400
"""Maximum number of distinct velocities in it. Sequences need not end, and each impact can double their number."""
ENDS_ALIKE = 1e-7
"""Outcomes are equal if they differ by less than this fraction of the speed before the impact."""


def haug(problem: ImpactProblem) -> ImpactResult:
    """Apply Newton's restitution to closing contacts, and hold all other resting contacts (Haug, Wu, Yang 1986).

    J_i v+ = -e_i J_i v- where J_i v- < 0, and J_i v+ = 0 where J_i v- = 0. Separating contacts take no part. See
    Fig. 10 and comment 4 of section 3.2.2. The paper has one colliding contact; here Newton's law holds for each
    closing contact.

    Advantages: one linear solve, the textbook result for one contact, and with e = 0 the usual "support transfer" of
    walkers. With equal e_i, the kinetic energy never rises.

    Disadvantages: held contacts can be pulled (negative impulses), so that a foot cannot lift. A separating contact may
    be driven into the ground. With unequal e_i, the kinetic energy may rise.

    Raises:
        ConfigError: Restitution is unequal and the closing rows of J are dependent, so not all coefficients can be met.
    """
    signs = problem.signs(problem.w)
    active = np.flatnonzero(signs <= 0)
    impulse = np.zeros(problem.m)
    if len(active) and (signs < 0).any():
        change = -(1.0 + problem.restitution[active]) * problem.w[active]
        change[signs[active] == 0] = -problem.w[active][signs[active] == 0]
        rows = problem.A[active]
        impulse[active] = problem.to_velocities(rows, change)
        if np.abs(rows @ rows.T @ impulse[active] - change).max() > 1e-6 * np.abs(change).max():
            raise ConfigError(
                f"contacts {active.tolist()} depend on each other and cannot rebound with "
                f"{problem.restitution[active].tolist()}; give them one value",
                "restitution",
            )
        return problem.result(impulse, (indices(signs <= 0),))
    return problem.result(impulse, ())


def moreau(problem: ImpactProblem) -> ImpactResult:
    """Apply Moreau's sweeping process: the nearest admissible velocity in the kinetic metric, reflected by e (eq. 24).

    v+ = (1 + e) prox_M[v-, V] - e v-, V = {v: J v >= 0}. In eq. 24, the paper substitutes (1 + d)/2 v+ + (1 - d)/2 v-
    for v+ and calls d the restitution. In terms of v+, d = 1 is plastic and d = 0 elastic. So d is an index of
    dissipation, and e = (1 - d)/(1 + d).

    With friction, this is the law of Moreau 1994 for mean velocities of each contact. The mean normal velocity
    (w+ + e w-)/(1 + e) and the normal impulse satisfy Signorini's condition. The mean slip (s+ + r s-)/(1 + r) and the
    tangential impulse satisfy Coulomb's law, where r is the restitution of the slip. Sticking means s+ = -r s-. The
    function enumerates the states and returns the first consistent one.

    The energy change has two parts. The product of tangential impulse and mean slip is never positive. Half of
    impulse^T diag((1 - e)/(1 + e), (1 - r)/(1 + r)) H M^-1 H^T impulse is subtracted, which is not negative if r = e.

    States: J v+ >= -e J v-, impulse >= 0, impulse complementary to J (v+ + e v-). The energy never rises; with
    friction, this requires r = e.

    Advantages: the outcome always exists and v+ is unique for any rank of J. It needs one convex projection, and proofs
    are based on this law.

    Disadvantages: there is one e for all contacts. For e > 0, a separating contact (J_i v- > 0) may be driven into
    penetration; V is certainly reached only from -V, the domain of eq. 23. The cradle's textbook outcome (0, 0, 1) is
    never obtained. With friction, the effort is exponential in m, the outcome is not unique, and the energy may rise if
    r differs from e.

    Raises:
        NoImpactOutcomeError: No state of sticking and sliding is consistent with Coulomb's law.
    """
    e = problem.one_restitution("moreau")
    if problem.mu is not None:
        if not (problem.signs(problem.w) < 0).any():
            return problem.result(np.zeros(problem.m), ())
        before = problem.H @ problem.y
        target = -np.concatenate([np.full(problem.m, e), problem.slip_restitution]) * before
        impulses = _phase("moreau", problem, problem.y, np.zeros(problem.m), "the impact", target)
        return problem.result(impulses[: problem.m], problem.pushing(impulses[: problem.m]), impulses[problem.m :])
    impulse = problem.on_cone(problem.y, problem.A)
    return problem.result((1.0 + e) * impulse, problem.pushing(impulse))


def van_der_schaft_schumacher(problem: ImpactProblem) -> ImpactResult:
    """Require J_i v+ = 0 for closing contacts and for those that stay (van der Schaft, Schumacher 1996).

    The paper (after eq. 24) defines the set of contacts implicitly: active before and in the near future, or about to
    be violated. Here one projection makes the set explicit: v+ = argmin |v - v-|_M with J_i v = 0 for closing contacts
    and J_i v >= 0 for all others. The others stay if their impulse is positive.

    States: J v+ >= 0, J_i v+ = 0 for closing contacts. The energy never rises. For one contact, the law equals
    Moreau's.

    Advantages: one linear solve if the set is known.

    Disadvantages: closing contacts may be pulled (negative impulse) where Moreau's law releases them. The law is
    plastic only. Existence and uniqueness of motions are proved for m = 1.
    """
    closing = problem.signs(problem.w) < 0
    if not closing.any():
        return problem.result(np.zeros(problem.m), ())
    closing_rows = problem.A[closing]
    _, values, directions = np.linalg.svd(closing_rows)
    rank = int((values > 1e-12 * values[0]).sum())
    null_space = directions[rank:]
    # The other contacts act in the null space of the closing ones, whose impulses then compensate the remaining
    # velocity.
    others = np.flatnonzero(~closing)
    projected = problem.A[others] @ null_space.T
    movable = np.linalg.norm(projected, axis=1) > 1e-10 * np.linalg.norm(problem.A[others], axis=1)
    impulse = np.zeros(problem.m)
    impulse[others[movable]] = problem.on_cone(null_space @ problem.y, projected[movable])
    impulse[closing] = problem.to_velocities(closing_rows, -closing_rows @ (problem.y + problem.A.T @ impulse))
    return problem.result(impulse, (indices(closing | (impulse > 0.0)),))


def lotstedt(problem: ImpactProblem) -> ImpactResult:
    """Apply Gauss' principle to impulses: the LCP of eq. 27, or with friction the QP of eq. 39 (Lötstedt 1982, 1984).

    Without friction, 0 <= impulse and J v+ >= 0 are complementary; v+ is the same as in Moreau's law with e = 0 (eq.
    28). With friction, the impulse within the cones |tangential_i| <= mu_i normal_i minimises the kinetic energy.

    States: J v+ >= mu |G v+| (0 without friction), and eq. 40. The energy never rises, also with friction: by eq. 40 it
    changes by -|v+ - v-|_M^2 / 2.

    Advantages: the problem is convex, so a solution always exists and v+ is unique, for any number of contacts and any
    mu.

    Disadvantages: with friction, the law is not plastic. A contact that slides afterwards rebounds at mu times its
    slip, because eq. 40 is no complementarity. If the slip reverses, friction may do positive work at its contact.
    """
    if problem.mu is None:
        impulse = problem.on_cone(problem.y, problem.A)
        return problem.result(impulse, problem.pushing(impulse))
    m = problem.m
    # These are the extreme rays of the planar cones. Each impulse within is a sum of rays with weights >= 0.
    side = problem.mu[:, None] * problem.H[m:]
    weights = problem.on_cone(problem.y, np.vstack([problem.A + side, problem.A - side]))
    plus, minus = weights[:m], weights[m:]
    normal = plus + minus
    return problem.result(normal, problem.pushing(normal), problem.mu * (plus - minus))


def pfeiffer_glocker(problem: ImpactProblem) -> ImpactResult:
    """Apply Poisson's restitution: compression stops all contacts, expansion returns impulse (eq. 27, 29).

    Compression is Lötstedt's LCP. Expansion is eq. 29 with impulse_E >= e impulse_C instead of impulse_E >= 0,
    complementary to J v+ >= 0. A contact regains e times its impulse of compression, and more if it would otherwise
    penetrate (Pfeiffer, Glocker 1996, chapter 8). The paper prints e = 0, for which expansion has no effect, and e = 1
    in Fig. 10.

    With friction, Coulomb's law relates the slip at the end of each phase to the impulses of the phase, as the paper
    says in words. The function enumerates the states of sticking and sliding, and returns the first consistent one.

    States: J v+ >= 0, impulse >= 0. The energy never rises, for any e_i without friction and for equal e with friction.

    Advantages: a coefficient for each contact, transfer of momentum through resting contacts, and no penetration.

    Disadvantages: with friction, the outcome is not unique and the effort is exponential in m. With dependent rows and
    unequal e, the outcome depends on the distribution of the impulse of compression. Slip cannot reverse in a phase.

    Raises:
        NoImpactOutcomeError: No state of sticking and sliding is consistent with Coulomb's law.
    """
    e, m = problem.restitution, problem.m
    if problem.mu is None:
        compression = problem.on_cone(problem.y, problem.A)
        returned = e * compression
        expansion = returned + problem.on_cone(problem.y + problem.A.T @ (compression + returned), problem.A)
        phase_impulses = np.concatenate([compression, np.zeros(m)]), np.concatenate([expansion, np.zeros(m)])
    elif not (problem.signs(problem.w) < 0).any():
        return problem.result(np.zeros(m), ())
    else:
        at_rest, name = np.zeros(m), "pfeiffer_glocker"
        first = _phase(name, problem, problem.y, np.zeros(m), "compression", at_rest)
        phase_impulses = (
            first,
            _phase(name, problem, problem.y + problem.H.T @ first, e * first[:m], "expansion", at_rest),
        )
    phases = problem.pushing(phase_impulses[0][:m]) + problem.pushing(phase_impulses[1][:m])
    total = phase_impulses[0] + phase_impulses[1]
    return problem.result(total[:m], phases, total[m:])


def _phase(law: str, problem: ImpactProblem, y: Array, floor: Array, name: str, target: Array) -> Array:
    """Return the first impulse (2m,) of one phase with friction; ``target`` is defined in ``ImpactProblem.states``."""
    impulse = next(problem.states(y, range(problem.m), target, np.maximum(floor, 0.0), closed=False), None)
    if impulse is None:
        raise NoImpactOutcomeError(
            f"no sticking or sliding state agrees with Coulomb's law in {name} (friction.coefficient {problem.mu}); "
            "use lotstedt, which always has an outcome, or a smaller coefficient",
            law,
        )
    return impulse


def han_gilmore(problem: ImpactProblem) -> ImpactResult:
    """Enumerate all valid sequences of simple and simultaneous impacts (Han, Gilmore 1993; Hurmuzlu, Marghitu 1994).

    As long as a contact closes, each set of closing or resting contacts with at least one closing contact may collide
    together. Then J_i v+ = -e_i J_i v- within the set, and there is no impulse elsewhere. The set is consistent if all
    impulses are positive. Such an impact may close other contacts, which collide next. With friction, each colliding
    contact sticks or slides, consistent with Coulomb's law (section 3.3.2). The whole sequence takes no time.

    States: for each outcome, J v+ >= 0 and impulse >= 0. With equal e and no friction, the energy never rises.

    Advantages: it shows how indeterminate the outcome of rigid bodies is. It finds the cradle's textbook result
    (0, 0, 1).

    Disadvantages: there are several outcomes without preference; the first has the fewest impacts. The effort is
    exponential in m. Sequences may be endless (impacts alternate between two contacts). They are followed until the
    speeds are within rounding, or otherwise counted in ``open_sequences``. With friction, Newton's law may raise the
    energy, even for one contact.

    Raises:
        NoImpactOutcomeError: No sequence ends within MAX_IMPACTS impacts and MAX_STATES velocities.
    """
    m, size = problem.m, float(np.linalg.norm(problem.y))
    level: list[tuple[Array, tuple[tuple[int, ...], ...]]] = [(np.zeros(2 * m), ())]
    visited = [problem.y]
    final_velocities: list[Array] = []
    outcomes: list[ImpactResult] = []
    open_count = 0
    while level:
        following = []
        for impulse, sequence in level:
            y = problem.y + problem.H.T @ impulse
            signs = problem.signs(problem.A @ y)
            if not (signs < 0).any():
                # Endless sequences stop close to their limit, which another sequence may already have reached.
                if not _among(y, final_velocities, ENDS_ALIKE * size):
                    final_velocities.append(y)
                    outcomes.append(problem.result(impulse[:m], sequence, impulse[m:]))
                continue
            for struck, blow in _blows(problem, y, signs):
                after = y + problem.H.T @ blow
                # Equal velocities are one state for any history. Each impact changes the velocity by more than this.
                if _among(after, visited, 0.01 * RESTING * size):
                    continue
                if len(sequence) == MAX_IMPACTS or len(visited) == MAX_STATES:
                    open_count += 1
                    continue
                visited.append(after)
                following.append((impulse + blow, (*sequence, struck)))
        level = following
    if not outcomes:
        raise NoImpactOutcomeError(
            f"no sequence of impacts ended within {MAX_IMPACTS} impacts and {MAX_STATES} velocities ({open_count} "
            "left open); use moreau or pfeiffer_glocker",
            "han_gilmore",
        )
    return replace(outcomes[0], alternatives=tuple(outcomes[1:]), open_sequences=open_count)


def _among(y: Array, points: list[Array], distance: float) -> bool:
    return bool(points) and bool((np.abs(np.array(points) - y).max(axis=1) <= distance).any())


def _blows(problem: ImpactProblem, y: Array, signs: np.ndarray) -> list[tuple[tuple[int, ...], Array]]:
    """Return all consistent pairs (colliding contacts, impulse (2m,)) at y, with the largest sets first."""
    m, w = problem.m, problem.A @ y
    target = np.where(signs < 0, -problem.restitution * w, 0.0)
    touching = indices(signs <= 0)
    blows = []
    for count in range(len(touching), 0, -1):
        for struck in combinations(touching, count):
            if not (signs[list(struck)] < 0).any():
                continue
            if problem.mu is not None:
                blows += [(struck, blow) for blow in problem.states(y, struck, target, np.zeros(m), closed=True)]
                continue
            rows = problem.A[list(struck)]
            change = (target - w)[list(struck)]
            blow = np.zeros(2 * m)
            blow[list(struck)] = problem.to_velocities(rows, change)
            consistent = np.abs(rows @ rows.T @ blow[list(struck)] - change).max() <= 1e-9 * np.abs(change).max()
            if consistent and (blow[list(struck)] > 1e-12 * np.abs(blow).max()).all():
                blows.append((struck, blow))
    return blows


@dataclass(frozen=True)
class ImpactLaw:
    """Impact law with its capabilities.

    Attributes:
        law: The function; its docstring lists advantages and disadvantages.
        restitution: "none" (plastic), "one" (one coefficient for all contacts) or "each" (one per contact).
        friction: Whether the law has Coulomb friction (planar contacts).
        source: Publications and equations of the paper.
        slip_restitution: Whether the law has restitution of the slip.
    """

    law: Callable[[ImpactProblem], ImpactResult]
    restitution: str
    friction: bool
    source: str
    slip_restitution: bool = False

    def __call__(
        self,
        M: ArrayLike,
        J: ArrayLike,
        v_before: ArrayLike,
        restitution: ArrayLike = 0.0,
        friction: Friction | None = None,
    ) -> ImpactResult:
        """Return the outcome of the impact; the module docstring lists arguments, shapes and units.

        Raises:
            ConfigError: An argument is invalid, or the law does not support restitution or friction.
            NoImpactOutcomeError: The law has no outcome for this state.
        """
        name = self.law.__name__
        if friction is not None and not self.friction:
            supporting = ", ".join(key for key, law in IMPACT_LAWS.items() if law.friction)
            raise ConfigError(f"{name} has none. Laws with friction: {supporting}", "friction")
        problem = ImpactProblem(M, J, v_before, restitution, friction)
        if not self.slip_restitution and problem.slip_restitution.any():
            supporting = ", ".join(key for key, law in IMPACT_LAWS.items() if law.slip_restitution)
            raise ConfigError(f"{name} has none, give 0. Laws with it: {supporting}", "friction.restitution")
        if self.restitution == "none" and problem.restitution.any():
            supporting = ", ".join(key for key, law in IMPACT_LAWS.items() if law.restitution != "none")
            raise ConfigError(f"{name} is plastic, give 0. Laws with restitution: {supporting}", "restitution")
        return self.law(problem)


IMPACT_LAWS: dict[str, ImpactLaw] = {
    "haug": ImpactLaw(haug, "each", False, "Haug, Wu, Yang 1986; section 3.2.2, comment 4"),
    "moreau": ImpactLaw(
        moreau, "one", True, "Moreau 1985, 1988, 1994; Mabrouk 1998; eq. 24; 3.3.2", slip_restitution=True
    ),
    "van_der_schaft_schumacher": ImpactLaw(
        van_der_schaft_schumacher, "none", False, "van der Schaft, Schumacher 1996; section 3.2.2, after eq. 24"
    ),
    "lotstedt": ImpactLaw(lotstedt, "none", True, "Lötstedt 1982, 1984; eq. 25-28, 39-40"),
    "pfeiffer_glocker": ImpactLaw(pfeiffer_glocker, "each", True, "Pfeiffer, Glocker 1996, chapter 8; eq. 29, 3.3.2"),
    "han_gilmore": ImpactLaw(han_gilmore, "each", True, "Han, Gilmore 1993; section 3.2.2, first approach; 3.3.2"),
}
"""Impact laws by name: ``IMPACT_LAWS["moreau"](M, J, v, restitution=0.5).v_after``."""
