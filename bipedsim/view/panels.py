"""Define the names of the panels of a plot, for help texts that must not import the plotting modules."""

from __future__ import annotations

from collections.abc import Sequence

from bipedsim.errors import UnknownNameError

USUAL_PANELS = ("forces", "cop", "modes", "torques", "readouts", "objects", "sensors")
"""Default panels."""
PANELS = (*USUAL_PANELS, "joints", "velocities", "com", "base", "tracking", "monitors")
ALL = "all"
"""Name that selects every panel."""


def panel_names(panels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the selected panels without repetition: ``joints,torques`` is two, ``all`` is every panel.

    Raises:
        UnknownNameError: A panel does not exist.
    """
    names = [name for text in panels for name in text.split(",") if name]
    for name in names:
        if name not in (*PANELS, ALL):
            raise UnknownNameError("panel", name, (*PANELS, ALL))
    return PANELS if ALL in names else tuple(dict.fromkeys(names))
