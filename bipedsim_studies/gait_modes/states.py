"""The states of the discrete-event system of a robot with m feet, counted and named (hurmuzlu2001 eq. 44)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import product
from math import comb


class FootState(IntEnum):
    """What a foot does. An impact is named by what follows it: the foot sticks, or it slides (eq. 47, 48)."""

    AIR = 0
    STICK = 1
    SLIDE = 2
    IMPACT_STICK = 3
    IMPACT_SLIDE = 4

    @property
    def words(self) -> str:
        """The state as it is printed."""
        return self.name.lower().replace("_", ", ").replace("air", "detached")


State = tuple[FootState, ...]
"""What all feet do, in the order of the feet."""

IMPACTS = (FootState.IMPACT_STICK, FootState.IMPACT_SLIDE)
_LETTERS = {
    FootState.AIR: "d",
    FootState.STICK: "s",
    FootState.SLIDE: "~",
    FootState.IMPACT_STICK: "S!",
    FootState.IMPACT_SLIDE: "~!",
}


def count_states(feet: int) -> int:
    """Return how many states ``feet`` feet have, by eq. 44: 3^m without impact, and 2^i 3^(m-i) C(m, i) with i impacts.

    That is (2 + 3)^m: every foot is in one of five states, whatever the others do.
    """
    return 3**feet + sum(2**i * 3 ** (feet - i) * comb(feet, i) for i in range(1, feet + 1))


def all_states(feet: int) -> list[State]:
    """Return all states of ``feet`` feet, those without an impact first."""
    states: list[State] = list(product(FootState, repeat=feet))
    return sorted(states, key=lambda state: sum(foot in IMPACTS for foot in state))


def is_impact(state: State) -> bool:
    """Return whether a foot meets the ground in ``state``: a phase I of the paper, and not a phase Omega."""
    return any(foot in IMPACTS for foot in state)


def state_name(state: State, feet: Sequence[str]) -> str:
    """Return a state in words, such as ``left stick, right impact, stick``; of all feet in the air, ``flight``."""
    if not any(state):
        return "flight"
    return "; ".join(f"{foot} {what.words}" for foot, what in zip(feet, state, strict=True))


def state_symbol(state: State, feet: Sequence[str]) -> str:
    """Return a short name for pictures and sequences.

    It is the superscript of the paper where it has one, for feet that are called left and right: ``f``, ``sl``, ``sr``,
    ``dss`` (no impact), ``Irs``, ``Ild`` and their mirror images. Elsewhere a letter stands for each foot, in order: d
    detached, s sticks, ~ slides, ``S!`` and ``~!`` the impacts that end so.
    """
    if not any(state):
        return "f"
    if len(state) == 2 and {foot[:1].lower() for foot in feet} == {"l", "r"}:
        sides = [foot[0].lower() for foot in feet]
        plain = sorted(state)
        if plain == [FootState.AIR, FootState.STICK]:
            return "s" + sides[state.index(FootState.STICK)]
        if plain == [FootState.STICK, FootState.STICK]:
            return "dss"
        if plain[1] == FootState.IMPACT_STICK and plain[0] in (FootState.AIR, FootState.STICK):
            other = "d" if plain[0] == FootState.AIR else "s"
            return f"I{sides[state.index(FootState.IMPACT_STICK)]}{other}"
    return " ".join(_LETTERS[foot] for foot in state)
