"""The panels of a picture, by name: what help texts list without loading what draws."""

from __future__ import annotations

from collections.abc import Sequence

from bipedsim.errors import UnknownNameError

PANELS = ("forces", "cop", "modes", "torques", "readouts", "objects")


def check_panels(panels: Sequence[str]) -> None:
    """Find out whether these panels exist.

    Raises:
        UnknownNameError: No such panel.
    """
    for panel in panels:
        if panel not in PANELS:
            raise UnknownNameError("panel", panel, PANELS)
