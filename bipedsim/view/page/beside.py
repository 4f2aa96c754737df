"""Add metrics, curves over time and body data next to the player of a static HTML file.

The file has no server, so it contains the values of every frame. They are scaled to 16-bit steps over the range of
their channel, stored as differences and compressed.
"""

from __future__ import annotations

import base64
import json
import zlib
from html import escape
from importlib.resources import files

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.view.page import figures
from bipedsim.view.page.body_figures import Row, Value, body_rows
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.plots import AFTER, BEFORE, colours
from bipedsim.view.page.signals import SignalTable, usual_plots
from bipedsim.view.page.state import DerivedState

_STEPS = 65534
"""Number of steps of a range; one further 16-bit value means unknown."""
_UNKNOWN = -32768


class SidePanel:
    """Collects the data of all frames for the side panel of a static file.

    Args:
        robot: Robot of the run.
        bodies: Name of each clickable node to its link and joint.
    """

    def __init__(self, robot: Robot, bodies: dict[str, tuple[str, int]]) -> None:
        self._robot, self._bodies = robot, bodies
        self._table = SignalTable(robot)
        self._at: list[float] = []
        self._t: list[float] = []
        self._now: list[str] = []

    def add(self, at: float, instant: Instant, state: DerivedState | None) -> None:
        """Add a frame that begins at the time ``at`` [s] of the player."""
        self._at.append(round(at, 6))
        self._t.append(round(instant.t, 6))
        self._now.append(figures.now(instant, self._robot, state))
        self._table.add(instant, state)

    def html(self, title: str, notes: str) -> str:
        """Return the HTML for the body of the page.

        Args:
            title: Title of the run.
            notes: Notes on the run for the user.
        """
        signals, every = self._table.signals, range(len(self._table.signals))
        steps, ranges = quantised(self._table.values(every))
        head = json.dumps(
            {
                "at": self._at,
                "t": self._t,
                "now": self._now,
                "names": [signal.name for signal in signals],
                "resolutions": [signal.resolution for signal in signals],
                "plots": usual_plots(self._robot),
                "colours": {count: colours(count) for count in range(1, 7)},
                "window": (BEFORE, AFTER),
                "ranges": ranges,
                "body_id": figures.BODY_ID,
                "bodies": {
                    name: [_row(row) for row in body_rows(self._robot, link, joint)]
                    for name, (link, joint) in self._bodies.items()
                },
            },
            separators=(",", ":"),
        ).encode()
        packed = len(head).to_bytes(4, "little") + head + bytes((4 + len(head)) % 2) + steps.tobytes()
        data = base64.b64encode(zlib.compress(packed, 9)).decode("ascii")
        own = files(__package__)
        style, script = (own.joinpath(name).read_text(encoding="utf-8") for name in ("beside.css", "beside.js"))
        return (
            f"<style>{style}</style>"
            f'<aside id="bipedsim-side"><h1>{escape(title)}</h1><div id="bipedsim-now"></div>'
            f'<h2>Over time</h2><div id="bipedsim-add"><select id="bipedsim-signal" aria-label="signal"></select>'
            '<button id="bipedsim-new">new plot</button><button id="bipedsim-same">last plot</button></div>'
            '<div id="bipedsim-curves"></div>'
            f'<h2>Body</h2><div id="bipedsim-chosen" style="{figures.STYLE}">click on a body of the robot</div>'
            f"<h2>Colours</h2>{figures.legend()}<small>{escape(notes)}</small></aside>"
            '<button id="bipedsim-fold" title="show or hide the figures">&#9776;</button>'
            f'<script type="text/plain" id="bipedsim-data">{data}</script><script>{script}</script>'
        )


def quantised(values: Array) -> tuple[Array, list[tuple[float, float]]]:
    """Quantise channels to 16-bit numbers.

    Args:
        values: (F, C), NaN where a value is unknown.

    Returns:
        Differences of steps (C, F), and lower limit and size of the range of each channel.
    """
    known = np.isfinite(values)
    low = np.where(known.any(axis=0), np.min(values, axis=0, where=known, initial=np.inf), 0.0)
    high = np.where(known.any(axis=0), np.max(values, axis=0, where=known, initial=-np.inf), 0.0)
    size = high - low
    share = np.divide(values - low, size, out=np.zeros_like(values), where=known & (size > 0.0))
    steps = np.where(known, np.round(share * _STEPS) - _STEPS // 2, _UNKNOWN).astype(np.int64)
    differences = np.diff(steps, axis=0, prepend=np.zeros((1, values.shape[1]), dtype=np.int64))
    # Differences may overflow 16 bits. The sum in the player overflows in the same way, so the result is correct.
    return differences.astype("<i2").T.copy(), list(zip(low.tolist(), size.tolist(), strict=True))


def _row(row: Row) -> tuple[str, list[list[float] | str]]:
    parts = [[p.at, p.digits, p.factor, p.unsigned] if isinstance(p, Value) else p for p in row.parts]
    return row.name, parts
