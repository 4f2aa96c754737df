"""What ``bipedsim bench --loop`` prints."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from bipedsim.analysis import aligned

ROWS: tuple[tuple[str, str, str, Callable[[list[float]], float]], ...] = (
    ("round trip p50 us", "real_time", "p50_us", min),
    ("round trip p99 us", "real_time", "p99_us", min),
    ("lock_step rounds/s", "lock_step", "per_s", max),
)
"""Name, clock, figure, and which of the blocks is the best."""


def ratios(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each row name, and best and median of bare and ours over the blocks, with the ratio ours / bare."""
    rows = []
    for name, clock, figure, best in ROWS:
        found = report["blocks"][clock]
        bare, ours = ([block[figure] for block in found[who]] for who in ("bare", "ours"))
        row: dict[str, Any] = {"name": name}
        for word, of in (("best", best), ("median", median)):
            row[word] = {"bare": of(bare), "ours": of(ours), "ratio": of(ours) / of(bare)}
        rows.append(row)
    return rows


def table(report: dict[str, Any]) -> str:
    """Return the report as text."""
    s = report["settings"]
    what = f"{s['robot']} under {s['controller']}, {s['blocks']} blocks of {s['seconds']:g} s of each by turns"
    lines = [f"{what}; bare: two processes that send the same messages and do nothing else", ""]
    cells = [["", "bare", "ours", "ours / bare", "bare, median", "ours, median", "ours / bare"]]
    for row in ratios(report):
        numbers = [f"{row[word][key]:.{digits}f}" for word in ("best", "median") for key, digits in _COLUMNS]
        cells.append([row["name"], *numbers])
    return "\n".join([*lines, *aligned(cells, numbers=True)]) + "\n"


_COLUMNS = (("bare", 0), ("ours", 0), ("ratio", 2))
