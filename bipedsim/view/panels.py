"""The panels of a picture, by name: what help texts list without loading what draws."""

from __future__ import annotations

from collections.abc import Sequence

from bipedsim.errors import UnknownNameError

USUAL_PANELS = ("forces", "cop", "modes", "torques", "readouts", "objects")
"""What is drawn where nothing else is asked for."""
PANELS = (*USUAL_PANELS, "joints", "velocities", "com", "base", "tracking", "monitors")
ALL = "all"
"""Stands for every panel."""


def panel_names(panels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the panels that were asked for, each once: ``joints,torques`` is two, ``all`` is every one.

    Raises:
        UnknownNameError: No such panel.
    """
    names = [name for text in panels for name in text.split(",") if name]
    for name in names:
        if name not in (*PANELS, ALL):
            raise UnknownNameError("panel", name, (*PANELS, ALL))
    return PANELS if ALL in names else tuple(dict.fromkeys(names))
