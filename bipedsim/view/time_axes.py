"""The mark of axes over time, which zoom together on interactive pages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKED: WeakSet[Axes] = WeakSet()


def time_axis(*axes: Axes, text: str = "time [s]") -> None:
    """Mark the x axis of ``axes`` as time, and write its label ``text`` below the last of them."""
    _MARKED.update(axes)
    axes[-1].set_xlabel(text)


def is_over_time(ax: Axes) -> bool:
    """Return whether the x axis of ``ax``, or of axes that share it, is marked as time."""
    return any(sibling in _MARKED for sibling in ax.get_shared_x_axes().get_siblings(ax))
