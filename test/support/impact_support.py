"""Random impact problems, and checks of their outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from bipedsim.numerics import Array
from bipedsim_studies.impacts.laws import IMPACT_LAWS, Friction, ImpactResult, NoImpactOutcomeError

LAWS = list(IMPACT_LAWS)
ELASTIC = [name for name, law in IMPACT_LAWS.items() if law.restitution != "none"]


@dataclass
class Case:
    M: Array
    J: Array
    v: Array
    G: Array
    mu: Array
    e: float

    @property
    def energy(self) -> float:
        return 0.5 * float(self.v @ self.M @ self.v)

    @property
    def reach(self) -> Array:
        """(m,) speed of each contact [m/s] that all the energy could give it: the scale of its tolerances."""
        each = np.einsum("ij,ji->i", self.J, np.linalg.solve(self.M, self.J.T))
        return np.sqrt(each * 2.0 * self.energy)

    def solve(self, name: str, friction: bool = False) -> ImpactResult:
        e = self.e if name in ELASTIC else 0.0
        return IMPACT_LAWS[name](self.M, self.J, self.v, e, Friction(self.G, self.mu) if friction else None)


def random_case(seed: int, m: int, nv: int, rank: int) -> Case:
    """Random SPD inertia; with rank < m the rows of J depend on each other; some contacts rest."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(nv, nv))
    rows = rng.normal(size=(m, nv))
    if rank < m:
        rows = rng.normal(size=(m, rank)) @ rows[:rank]
    v = rng.normal(size=nv)
    if rng.uniform() < 0.4:  # the first contacts rest
        resting = rows[: max(min(m, nv) // 2, 1)]
        v -= np.linalg.pinv(resting, rcond=1e-10) @ (resting @ v)
    return Case(
        M=root @ root.T + 0.05 * np.eye(nv),
        J=rows,
        v=v,
        G=rng.normal(size=(m, nv)),
        mu=rng.uniform(0.0, 1.5, m),
        e=float(rng.choice([0.0, 1.0, rng.uniform()])),
    )


def cases(contacts: int) -> st.SearchStrategy[Case]:
    sizes = st.integers(1, contacts)
    return st.builds(random_case, st.integers(0, 2**32 - 1), sizes, st.integers(1, 7), sizes)


def outcomes_of(case: Case, name: str, friction: bool = False) -> tuple[ImpactResult, ...]:
    """All outcomes; none where the law has none, which only the enumeration may say."""
    try:
        return case.solve(name, friction).outcomes
    except NoImpactOutcomeError:
        assert name == "han_gilmore"
        return ()
