"""Impact laws: what several simultaneous contacts do to the velocities of a rigid mechanism.

Source: Hurmuzlu, Génot, Brogliato, *Modeling, stability and control of biped robots: a general framework* (2001),
sections 3.2.2 and 3.3.2. "The paper" is this one. Every law is a pure function of the same arguments:

    M: (nv, nv) inertia matrix, symmetric positive definite [kg, kg.m, kg.m^2].
    J: (m, nv) rows of the contacts that touch (F_i = 0), the transpose of the paper's grad F: ``J @ v`` are the normal
        velocities [m/s], negative where a contact closes. Rows may depend on each other.
    v_before: (nv,) generalised velocity [m/s, rad/s].
    restitution: e, 0 plastic to 1 elastic; a number, or (m,) for the laws that take one for each contact.
    friction: Tangential rows and coefficients, for the laws that have friction in the paper.

and returns an ``ImpactResult``. All raise ConfigError for arguments that are wrong or that the law does not know.
``docs/impact_laws.md`` compares them.
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
"""Longest sequence that Han and Gilmore's enumeration follows."""
MAX_STATES = 400
"""Different velocities that it visits in all: sequences need not end, and their number can double with each impact."""
ENDS_ALIKE = 1e-7
"""Outcomes closer than this part of the speed before are one."""


def haug(problem: ImpactProblem) -> ImpactResult:
    """Newton's kinematic restitution where contacts close, all other resting contacts held (Haug, Wu, Yang 1986).

    J_i v+ = -e_i J_i v- where J_i v- < 0, J_i v+ = 0 where it is 0; separating contacts take no part. Fig. 10
    and comment 4 of section 3.2.2; the paper has one colliding contact, here every one that closes gets Newton's law.

    Good at: one linear solve, the textbook answer for one contact; with e = 0 the usual "support transfer" of walkers.
    Bad at: it holds contacts as if glued (impulses may be negative, a foot that would lift is pulled down), may drive a
    separating contact into the ground, and with unequal e_i may raise the kinetic energy. With equal e it never does.

    Raises:
        ConfigError: Unequal restitution where closing rows of J depend on each other, so that not all can be met.
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
                f"restitution: contacts {active.tolist()} depend on each other and cannot rebound with "
                f"{problem.restitution[active].tolist()}; give all the same"
            )
        return problem.result(impulse, (indices(signs <= 0),))
    return problem.result(impulse, ())


def moreau(problem: ImpactProblem) -> ImpactResult:
    """Moreau's sweeping process: the nearest admissible velocity in the kinetic metric, mirrored by e (eq. 24).

    v+ = (1 + e) prox_M[v-, V] - e v-, V = {v: J v >= 0}. The paper substitutes (1 + d)/2 v+ + (1 - d)/2 v- for v+ in
    eq. 24 and calls d restitution; solved for v+, d = 1 is plastic and d = 0 elastic: an index of dissipation,
    e = (1 - d)/(1 + d).

    With friction it is the law of Moreau 1994, for mean velocities of each contact: the normal one (w+ + e w-)/(1 + e)
    and the impulse as Signorini's condition has them, the slip (s+ + r s-)/(1 + r) and the tangential impulse as
    Coulomb's law has them, r the restitution of the slip. Sticking is s+ = -r s-. States are enumerated, and the first
    that agrees is taken. The energy changes by tangential impulse . mean slip, which is never positive, less half of
    impulse^T diag((1 - e)/(1 + e), (1 - r)/(1 + r)) H M^-1 H^T impulse, which is not negative where r = e.

    States: J v+ >= -e J v-, impulse >= 0, impulse complementary to J (v+ + e v-); energy never rises, with friction
    where r = e.
    Good at: exists always and is unique in v+ whatever the rank of J; one convex projection; proofs rest on it.
    Bad at: one e for all contacts; for e > 0 a contact that separates (J_i v- > 0) may be driven together, V is reached
    for certain only from -V, the domain of eq. 23; never the cradle's textbook (0, 0, 1). With friction exponential in
    m, not unique, and with r other than e it may raise the energy.

    Raises:
        NoImpactOutcomeError: No state of sticking and sliding agrees with Coulomb's law.
    """
    e = problem.one_restitution("moreau")
    if problem.mu is not None:
        if not (problem.signs(problem.w) < 0).any():
            return problem.result(np.zeros(problem.m), ())
        before = problem.H @ problem.y
        back = -np.concatenate([np.full(problem.m, e), problem.slip_restitution]) * before
        both = _phase("moreau", problem, problem.y, np.zeros(problem.m), "the impact", back)
        return problem.result(both[: problem.m], problem.pushing(both[: problem.m]), both[problem.m :])
    impulse = problem.on_cone(problem.y, problem.A)
    return problem.result((1.0 + e) * impulse, problem.pushing(impulse))


def van_der_schaft_schumacher(problem: ImpactProblem) -> ImpactResult:
    """Contacts that would be violated, and those that stay, have J_i v+ = 0 (van der Schaft, Schumacher 1996).

    The paper (after eq. 24) defines the set of contacts implicitly: active before and in the near future, or about to
    be violated. Here it is made explicit by one projection, v+ = argmin |v - v-|_M with J_i v = 0 for closing contacts
    and J_i v >= 0 for all others: those stay whose impulse is positive.

    States: J v+ >= 0, J_i v+ = 0 for closing contacts; energy never rises. Equal to Moreau's for one contact.
    Good at: a linear solve once the set is known.
    Bad at: closing contacts may be pulled (negative impulse) where Moreau's law lets them go; plastic only; existence
    and uniqueness of motions are proved for m = 1.
    """
    closing = problem.signs(problem.w) < 0
    if not closing.any():
        return problem.result(np.zeros(problem.m), ())
    shut = problem.A[closing]
    _, values, directions = np.linalg.svd(shut)
    rank = int((values > 1e-12 * values[0]).sum())
    free = directions[rank:]
    # The other contacts act in what the shut ones leave free; the shut ones then answer for the rest.
    others = np.flatnonzero(~closing)
    seen = problem.A[others] @ free.T
    able = np.linalg.norm(seen, axis=1) > 1e-10 * np.linalg.norm(problem.A[others], axis=1)
    impulse = np.zeros(problem.m)
    impulse[others[able]] = problem.on_cone(free @ problem.y, seen[able])
    impulse[closing] = problem.to_velocities(shut, -shut @ (problem.y + problem.A.T @ impulse))
    return problem.result(impulse, (indices(closing | (impulse > 0.0)),))


def lotstedt(problem: ImpactProblem) -> ImpactResult:
    """Gauss' principle at the impulse level: the LCP of eq. 27, with friction the QP of eq. 39 (Lötstedt 1982, 1984).

    Without friction: 0 <= impulse, J v+ >= 0, complementary; the same v+ as Moreau's with e = 0 (eq. 28). With
    friction: the impulse within the cones |tangential_i| <= mu_i normal_i that leaves least kinetic energy.

    States: J v+ >= mu |G v+| (0 without friction); eq. 40; energy never rises, friction included: by eq. 40 it changes
    by -|v+ - v-|_M^2 / 2.
    Good at: convex, so it exists always and v+ is unique, with any number of contacts and any mu.
    Bad at: plastic in name only once there is friction: a contact that slides afterwards rebounds at mu times its slip
    (eq. 40 is no complementarity); where slip reverses, friction may do positive work at its contact.
    """
    if problem.mu is None:
        impulse = problem.on_cone(problem.y, problem.A)
        return problem.result(impulse, problem.pushing(impulse))
    m = problem.m
    # Extreme rays of the planar cones: every impulse within is a sum of them with weights >= 0.
    side = problem.mu[:, None] * problem.H[m:]
    weights = problem.on_cone(problem.y, np.vstack([problem.A + side, problem.A - side]))
    plus, minus = weights[:m], weights[m:]
    normal = plus + minus
    return problem.result(normal, problem.pushing(normal), problem.mu * (plus - minus))


def pfeiffer_glocker(problem: ImpactProblem) -> ImpactResult:
    """Poisson's restitution: a compression that stops all contacts, an expansion that gives impulse back (eq. 27, 29).

    Compression is Lötstedt's LCP. Expansion is eq. 29 with impulse_E >= e impulse_C in place of impulse_E >= 0,
    complementary to J v+ >= 0: a contact gets back e times its impulse of compression, and more where it would be
    penetrated (Pfeiffer, Glocker 1996, chapter 8; the paper prints e = 0, where expansion does nothing, and e = 1 in
    Fig. 10). With friction, Coulomb's law binds the slip at the end of each phase to the impulses of the phase; the
    paper says so in words. The states of sticking and sliding are enumerated and the first that agrees is taken.

    States: J v+ >= 0, impulse >= 0; energy never rises, for any e_i without friction and for equal e with it.
    Good at: a coefficient for each contact, momentum handed on through resting contacts, no penetration ever.
    Bad at: with friction uniqueness is lost and the work exponential in m; with dependent rows and unequal e the
    outcome depends on how the impulse of compression is shared; no reversal of slip within a phase.

    Raises:
        NoImpactOutcomeError: No state of sticking and sliding agrees with Coulomb's law.
    """
    e, m = problem.restitution, problem.m
    if problem.mu is None:
        compression = problem.on_cone(problem.y, problem.A)
        returned = e * compression
        expansion = returned + problem.on_cone(problem.y + problem.A.T @ (compression + returned), problem.A)
        both = np.concatenate([compression, np.zeros(m)]), np.concatenate([expansion, np.zeros(m)])
    elif not (problem.signs(problem.w) < 0).any():
        return problem.result(np.zeros(m), ())
    else:
        still, name = np.zeros(m), "pfeiffer_glocker"
        first = _phase(name, problem, problem.y, np.zeros(m), "compression", still)
        both = first, _phase(name, problem, problem.y + problem.H.T @ first, e * first[:m], "expansion", still)
    phases = problem.pushing(both[0][:m]) + problem.pushing(both[1][:m])
    total = both[0] + both[1]
    return problem.result(total[:m], phases, total[m:])


def _phase(law: str, problem: ImpactProblem, y: Array, floor: Array, name: str, target: Array) -> Array:
    """Return the first impulse (2m,) of one phase with friction; ``target`` as ``states`` takes it."""
    found = next(problem.states(y, range(problem.m), target, np.maximum(floor, 0.0), closed=False), None)
    if found is None:
        raise NoImpactOutcomeError(
            f"{law}: no sticking or sliding state agrees with Coulomb's law in {name} "
            f"(friction.coefficient {problem.mu}); use lotstedt, which always has an outcome, or a smaller coefficient"
        )
    return found


def han_gilmore(problem: ImpactProblem) -> ImpactResult:
    """Every sequence of simple and simultaneous impacts that ends well (Han, Gilmore 1993; Hurmuzlu, Marghitu 1994).

    As long as a contact closes, each set of contacts that close or rest, at least one of them closing, may be struck
    together: J_i v+ = -e_i J_i v- within the set, no impulse elsewhere, consistent if all are positive. That may send
    other contacts together, which are struck next. With friction each struck contact sticks or slides, consistent with
    Coulomb's law (section 3.3.2). All of it happens at one instant.

    States: for every outcome J v+ >= 0, impulse >= 0; with equal e and no friction energy never rises.
    Good at: shows how far rigid bodies leave the outcome open; finds the textbook (0, 0, 1) of the cradle.
    Bad at: several outcomes, none preferred (the first has the fewest impacts); exponential in m; sequences may be
    endless (impacts to and fro between two contacts), are followed until the speeds are rounding, or else counted in
    ``open_sequences``; Newton's law with friction may raise the energy, from one contact on.

    Raises:
        NoImpactOutcomeError: No sequence ended within MAX_IMPACTS impacts and MAX_STATES velocities.
    """
    m, size = problem.m, float(np.linalg.norm(problem.y))
    level: list[tuple[Array, tuple[tuple[int, ...], ...]]] = [(np.zeros(2 * m), ())]
    seen = [problem.y]
    ends: list[Array] = []
    outcomes: list[ImpactResult] = []
    cut = 0
    while level:
        following = []
        for impulse, sequence in level:
            y = problem.y + problem.H.T @ impulse
            signs = problem.signs(problem.A @ y)
            if not (signs < 0).any():
                # Endless sequences stop close to their limit, which another sequence may have reached.
                if not _among(y, ends, ENDS_ALIKE * size):
                    ends.append(y)
                    outcomes.append(problem.result(impulse[:m], sequence, impulse[m:]))
                continue
            for struck, blow in _blows(problem, y, signs):
                after = y + problem.H.T @ blow
                # Equal velocities are one state, whatever led there; the smallest blow moves further than this.
                if _among(after, seen, 0.01 * RESTING * size):
                    continue
                if len(sequence) == MAX_IMPACTS or len(seen) == MAX_STATES:
                    cut += 1
                    continue
                seen.append(after)
                following.append((impulse + blow, (*sequence, struck)))
        level = following
    if not outcomes:
        raise NoImpactOutcomeError(
            f"han_gilmore: no sequence of impacts ended within {MAX_IMPACTS} impacts and {MAX_STATES} velocities "
            f"({cut} left open); use moreau or pfeiffer_glocker"
        )
    return replace(outcomes[0], alternatives=tuple(outcomes[1:]), open_sequences=cut)


def _among(y: Array, known: list[Array], distance: float) -> bool:
    return bool(known) and bool((np.abs(np.array(known) - y).max(axis=1) <= distance).any())


def _blows(problem: ImpactProblem, y: Array, signs: np.ndarray) -> list[tuple[tuple[int, ...], Array]]:
    """Return all consistent (struck contacts, impulse (2m,)) at y, the largest sets first."""
    m, w = problem.m, problem.A @ y
    target = np.where(signs < 0, -problem.restitution * w, 0.0)
    touching = indices(signs <= 0)
    found = []
    for count in range(len(touching), 0, -1):
        for struck in combinations(touching, count):
            if not (signs[list(struck)] < 0).any():
                continue
            if problem.mu is not None:
                found += [(struck, blow) for blow in problem.states(y, struck, target, np.zeros(m), closed=True)]
                continue
            rows = problem.A[list(struck)]
            change = (target - w)[list(struck)]
            blow = np.zeros(2 * m)
            blow[list(struck)] = problem.to_velocities(rows, change)
            met = np.abs(rows @ rows.T @ blow[list(struck)] - change).max() <= 1e-9 * np.abs(change).max()
            if met and (blow[list(struck)] > 1e-12 * np.abs(blow).max()).all():
                found.append((struck, blow))
    return found


@dataclass(frozen=True)
class ImpactLaw:
    """A law and what it knows.

    Attributes:
        law: The function; its docstring says what it is good and bad at.
        restitution: "none" (plastic), "one" for all contacts, or "each".
        friction: Whether it has Coulomb friction (planar contacts).
        source: Publication and equations of the paper.
        slip_restitution: Whether it has restitution of the slip.
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
        """Return the outcome of the impact; arguments, shapes and units as at the top of this module.

        Raises:
            ConfigError: A wrong argument, or restitution or friction for a law that has none.
            NoImpactOutcomeError: The law has no outcome for this state.
        """
        name = self.law.__name__
        if friction is not None and not self.friction:
            able = ", ".join(key for key, law in IMPACT_LAWS.items() if law.friction)
            raise ConfigError(f"friction: {name} has none. Laws with friction: {able}")
        problem = ImpactProblem(M, J, v_before, restitution, friction)
        if not self.slip_restitution and problem.slip_restitution.any():
            able = ", ".join(key for key, law in IMPACT_LAWS.items() if law.slip_restitution)
            raise ConfigError(f"friction.restitution: {name} has none, give 0. Laws with it: {able}")
        if self.restitution == "none" and problem.restitution.any():
            able = ", ".join(key for key, law in IMPACT_LAWS.items() if law.restitution != "none")
            raise ConfigError(f"restitution: {name} is plastic, give 0. Laws with restitution: {able}")
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
"""Every impact law by its name: ``IMPACT_LAWS["moreau"](M, J, v, restitution=0.5).v_after``."""
