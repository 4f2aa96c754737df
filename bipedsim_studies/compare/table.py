"""Format a comparison as text: one line per metric, one column per contact model."""

from __future__ import annotations

from bipedsim.analysis import aligned
from bipedsim_studies.compare.comparison import FailedRun, MeasuredRun, ModelComparison
from bipedsim_studies.compare.figures import FIGURES

_KEY = (
    "best: the better values, where any are (0: nearer to 0). (ref): the reference of the deviations, not the truth. "
    "*: depends on the machine. docs/compare.md defines every line.\n"
    "All start in one posture, with soles that are not pressed into the ground. Soft contact has to sink in before it "
    "carries, and deviates from the first tick on"
)


def headline(comparison: ModelComparison) -> str:
    """Return a one-line description of the run."""
    settings, prepared = comparison.settings, comparison.prepared
    return (
        f"{prepared.robot.name}, {settings.scenario} on {settings.ground}, controller {settings.controller} at "
        f"{settings.rate:g} Hz, physics_dt {1e3 * prepared.physics_dt:g} ms, "
        f"{prepared.ticks * prepared.control_dt:g} s, m g = {prepared.robot.weight:.1f} N"
    )


def number(value: float | int | None) -> str:
    """Return a value with four significant digits, or ``-`` if there is none."""
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.4g}"


def table(comparison: ModelComparison) -> str:
    """Return the table of all metrics, and the errors of failed runs."""
    rows = comparison.rows
    head = [name + (" (ref)" if name == comparison.reference else "") for name in rows]
    statuses = ("ok" if isinstance(row, MeasuredRun) else row.status for row in rows.values())
    lines = [["", "best", *head], ["status", "", *statuses]]
    for key, figure in FIGURES.items():
        values = [row.figures[key] if isinstance(row, MeasuredRun) else None for row in rows.values()]
        # Metrics without a value in any run are omitted, such as those of pushes or falls.
        if any(value is not None for value in values):
            unit = f" [{figure.unit}]" if figure.unit else ""
            lines.append([f"{figure.name}{unit}{' *' if figure.timed else ''}", figure.better, *map(number, values)])
    text = aligned(lines, numbers=True)
    failures = [f"{name}: {row.error}" for name, row in rows.items() if isinstance(row, FailedRun)]
    return "\n".join([headline(comparison), "", *text, _KEY, *failures])
