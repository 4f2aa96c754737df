"""Count and name the discrete states of a robot with m feet (hurmuzlu2001 eq. 44)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import product
from math import comb


class FootState(IntEnum):
    """State of one foot. An impact is named after the state that follows it: stick or slide (eq. 47, 48)."""

    AIR = 0
    STICK = 1
    SLIDE = 2
    IMPACT_STICK = 3
    IMPACT_SLIDE = 4

    @property
    def words(self) -> str:
        """State in words, as it is printed."""
        return self.name.lower().replace("_", ", ").replace("air", "detached")


State = tuple[FootState, ...]
"""States of all feet, in the order of the feet."""

IMPACTS = (FootState.IMPACT_STICK, FootState.IMPACT_SLIDE)
_LETTERS = {
    FootState.AIR: "d",
    FootState.STICK: "s",
    FootState.SLIDE: "~",
    FootState.IMPACT_STICK: "S!",
    FootState.IMPACT_SLIDE: "~!",
}


def count_states(feet: int) -> int:
    """Return the number of states of ``feet`` feet, by eq. 44.

    The equation has 3^m states without impact, and 2^i 3^(m-i) C(m, i) with i impacts. The sum is (2 + 3)^m, because
    every foot is in one of five states independently of the others.
    """
    return 3**feet + sum(2**i * 3 ** (feet - i) * comb(feet, i) for i in range(1, feet + 1))


def all_states(feet: int) -> list[State]:
    """Return all states of ``feet`` feet, those without an impact first."""
    states: list[State] = list(product(FootState, repeat=feet))
    return sorted(states, key=lambda state: sum(foot in IMPACTS for foot in state))


def is_impact(state: State) -> bool:
    """Return whether a foot has an impact in ``state``: a phase I of the paper instead of a phase Omega."""
    return any(foot in IMPACTS for foot in state)


def state_name(state: State, feet: Sequence[str]) -> str:
    """Return a state in words, such as ``left stick; right impact, stick``, or ``flight`` if all feet are airborne."""
    if not any(state):
        return "flight"
    return "; ".join(f"{foot} {foot_state.words}" for foot, foot_state in zip(feet, state, strict=True))


def state_symbol(state: State, feet: Sequence[str]) -> str:
    """Return a short name of a state for figures and sequences.

    The name is the paper's superscript if it has one and the feet are called left and right: ``f``, ``sl``, ``sr``,
    ``dss`` (no impact), ``Irs``, ``Ild`` and their mirror images. Otherwise the name has one letter per foot, in
    order: d detached, s sticking, ~ sliding, ``S!`` and ``~!`` impacts followed by sticking or sliding.
    """
    if not any(state):
        return "f"
    if len(state) == 2 and {foot[:1].lower() for foot in feet} == {"l", "r"}:
        sides = [foot[0].lower() for foot in feet]
        sorted_states = sorted(state)
        if sorted_states == [FootState.AIR, FootState.STICK]:
            return "s" + sides[state.index(FootState.STICK)]
        if sorted_states == [FootState.STICK, FootState.STICK]:
            return "dss"
        if sorted_states[1] == FootState.IMPACT_STICK and sorted_states[0] in (FootState.AIR, FootState.STICK):
            suffix = "d" if sorted_states[0] == FootState.AIR else "s"
            return f"I{sides[state.index(FootState.IMPACT_STICK)]}{suffix}"
    return " ".join(_LETTERS[foot] for foot in state)
