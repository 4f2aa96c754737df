"""A comparison as text: a line per figure, a column per contact model."""

from __future__ import annotations

from bipedsim.analysis import aligned
from bipedsim_studies.compare.comparison import Comparison, Failed, Measured
from bipedsim_studies.compare.figures import FIGURES

_KEY = (
    "best: which values are better (0: the nearer to it), where any are; (ref): what deviations are from, not what is "
    "right; *: depends on the machine. docs/compare.md defines every line\n"
    "all start in one posture, with soles that are not pressed into the ground: soft contact has to sink in before it "
    "carries, and deviates from the first tick on"
)


def headline(comparison: Comparison) -> str:
    """Return what was run, in one line."""
    settings, prepared = comparison.settings, comparison.prepared
    return (
        f"{prepared.robot.name}, {settings.scenario} on {settings.ground}, controller {settings.controller} at "
        f"{settings.rate:g} Hz, physics_dt {1e3 * prepared.physics_dt:g} ms, "
        f"{prepared.ticks * prepared.control_dt:g} s, m g = {prepared.robot.weight:.1f} N"
    )


def number(value: float | int | None) -> str:
    """Return a figure with four digits, ``-`` if there is none."""
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.4g}"


def table(comparison: Comparison) -> str:
    """Return all figures, and why runs failed."""
    rows = comparison.rows
    head = [name + (" (ref)" if name == comparison.reference else "") for name in rows]
    ended = ("ok" if isinstance(row, Measured) else row.status for row in rows.values())
    lines = [["", "best", *head], ["status", "", *ended]]
    for key, figure in FIGURES.items():
        values = [row.figures[key] if isinstance(row, Measured) else None for row in rows.values()]
        # A run without pushes, falls or rest needs no line that says so.
        if any(value is not None for value in values):
            unit = f" [{figure.unit}]" if figure.unit else ""
            lines.append([f"{figure.name}{unit}{' *' if figure.timed else ''}", figure.better, *map(number, values)])
    text = aligned(lines, numbers=True)
    failures = [f"{name}: {row.error}" for name, row in rows.items() if isinstance(row, Failed)]
    return "\n".join([headline(comparison), "", *text, _KEY, *failures])
