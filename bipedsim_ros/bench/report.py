"""Format the report of ``bipedsim bench --loop``."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from bipedsim.analysis import aligned
from bipedsim_ros.bench.alternate import BARE, HELPED, OURS

ROWS: tuple[tuple[str, str, str, Callable[[list[float]], float]], ...] = (
    ("round trip p50 us", "real_time", "p50_us", min),
    ("round trip p99 us", "real_time", "p99_us", min),
    ("lock_step rounds/s", "lock_step", "per_s", max),
)
"""Name, clock, metric, and function that selects the best of the blocks."""
_LEGEND = f"""\
{BARE}: two processes that send the same messages and do nothing else
{HELPED}: the same, and with the same settings of the machine as our nodes: cores that stay awake, and one for each.
Of times, less is better, of rounds more\
"""


def ratios(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the best and the median of each metric: values of all programs, and ratios of the nodes to the others."""
    rows = []
    for name, clock, figure, best in ROWS:
        measured = {program: [block[figure] for block in blocks] for program, blocks in report["blocks"][clock].items()}
        for word, select in (("best", best), ("median", median)):
            row: dict[str, Any] = {program: select(values) for program, values in measured.items()}
            row |= {f"{OURS} / {other}": row[OURS] / row[other] for other in (BARE, HELPED)}
            rows.append({"name": f"{name}, {word}", **row})
    return rows


def table(report: dict[str, Any]) -> str:
    """Return the report as text."""
    s = report["settings"]
    heading = f"{s['robot']} under {s['controller']}, {s['blocks']} blocks of {s['seconds']:g} s of each by turns"
    rows = ratios(report)
    cells = [["", *list(rows[0])[1:]]]
    for row in rows:
        cells.append([row["name"], *(f"{row[key]:.{2 if '/' in key else 0}f}" for key in cells[0][1:])])
    return "\n".join([heading, _LEGEND, "", *aligned(cells, numbers=True)]) + "\n"
