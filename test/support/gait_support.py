"""The states that hurmuzlu2001 names, and its gaits as words of them."""

from __future__ import annotations

from collections.abc import Iterable

from bipedsim_studies.gait_modes.sequence import Entry
from bipedsim_studies.gait_modes.states import FootState, State, state_symbol

FEET = ("left", "right")
AIR, STICK, SLIDE, HIT, HIT_SLIDE = FootState
# The states that the paper names, by the names that it gives them.
NAMED: dict[str, State] = {
    "f": (AIR, AIR),
    "sl": (STICK, AIR),
    "sr": (AIR, STICK),
    "dss": (STICK, STICK),
    "Irs": (STICK, HIT),
    "Ils": (HIT, STICK),
    "Ild": (HIT, AIR),
    "Ird": (AIR, HIT),
}
# Equation 45, a turn each.
WALK = ("sl", "Irs", "dss", "sr", "Ils", "dss")
HOP = ("f", "Ild")
RUN = ("f", "Ild", "sl", "f", "Ird", "sr")


def symbols(entries: Iterable[Entry]) -> list[str]:
    """Return the entries' states in the paper's names."""
    return spelled_states(entry.state for entry in entries)


def spelled_states(states: Iterable[State]) -> list[str]:
    """Return states in the paper's names."""
    return [state_symbol(state, FEET) for state in states]
