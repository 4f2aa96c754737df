"""Format the texts and numbers of the page as HTML, for an instant and for a clicked body."""

from __future__ import annotations

from html import escape

import numpy as np

from bipedsim.analysis import readout_text
from bipedsim.model import Robot
from bipedsim.recording import without_plan
from bipedsim.view.page.body_figures import body_rows
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.signals import Signals
from bipedsim.view.page.soles import COLOURS
from bipedsim.view.page.state import UNKNOWN, DerivedState, mode_text
from bipedsim.view.palette import (
    CAPTURE_COLOUR,
    COP_COLOUR,
    FORCE_COLOUR,
    LIMIT_COLOUR,
    PLAN_COLOUR,
    PUSH_COLOUR,
    SUPPORT_COLOUR,
    TOTAL_COLOUR,
)

TIME_ID, FOOT_ID, BODY_ID = "bipedsim-time", "bipedsim-foot-", "bipedsim-body"
"""Ids of elements of the page, for programs that read it; the id of a foot ends with the name of the foot."""
STYLE = "font-size:0.8em;line-height:1.5;padding:0 0.6em"
"""Style of a text block next to the 3D view."""
_CELL = "padding:0 0.6em 0 0;text-align:left;white-space:nowrap"


def legend() -> str:
    """Return the legend for the colours of the scene."""
    modes = [(kind, colour) for kind, colour in COLOURS.items() if kind != UNKNOWN]
    others = [
        ("sliding", LIMIT_COLOUR),
        ("force", FORCE_COLOUR),
        ("CoP", COP_COLOUR),
        ("CoM", TOTAL_COLOUR),
        ("capture point", CAPTURE_COLOUR),
        ("support polygon", SUPPORT_COLOUR),
        ("push", PUSH_COLOUR),
        ("plan", PLAN_COLOUR),
    ]
    swatches = "".join(
        f'<span style="white-space:nowrap;margin-right:0.7em"><span style="display:inline-block;width:0.7em;'
        f'height:0.7em;border-radius:0.15em;background:{colour}"></span> {name}</span> '
        for name, colour in (*modes, *others)
    )
    return f'<div style="{STYLE}">{swatches}</div>'


def now(instant: Instant, robot: Robot, state: DerivedState | None) -> str:
    """Return time, contact of each foot, telemetry and notes of an instant."""
    rows = [f'<div><b id="{TIME_ID}">t = {instant.t:.3f} s</b></div>']
    notes = list(instant.notes)
    if state is None:
        notes.append("no robot: the pose of its base is unknown")
    elif instant.estimated:
        notes.append("base: estimate of the controller")
    if state is not None and robot.soles:
        head = "".join(f"<th style='{_CELL}'>{text}</th>" for text in ("foot", "contact", "f_z", "margin", "friction"))
        feet = "".join(_foot(instant, k, robot, state) for k in range(len(robot.soles)))
        rows.append(f"<table style='border-collapse:collapse'><tr>{head}</tr>{feet}</table>")
    shown = [readout_text(name, value) for name, value in without_plan(instant.readouts).items() if np.isfinite(value)]
    controller = f"controller: {', '.join(shown)}" if shown else ""
    rows += [f"<div>{escape(text)}</div>" for text in (controller, "; ".join(notes)) if text]
    return f'<div style="{STYLE}">{"".join(rows)}</div>'


def _foot(instant: Instant, k: int, robot: Robot, state: DerivedState) -> str:
    sole = robot.soles[k]
    force = np.nan if instant.wrench is None else instant.wrench[k, 2]
    margin = np.nan if instant.cop_margin is None else 1e3 * instant.cop_margin[k]
    used = np.nan if instant.friction_used is None else instant.friction_used[k]
    colour = COLOURS[state.kinds[k]]
    mode = mode_text(instant, k, sole, state.kinds[k])
    look = f"border-left:0.7em solid {colour};padding-left:0.3em"
    cells = (
        escape(sole.name),
        f'<span style="{look}" id="{FOOT_ID}{escape(sole.name)}">{mode}</span>',
        "-" if np.isnan(force) else f"{force:.0f} N",
        "-" if np.isnan(margin) else f"{round(margin) + 0.0:.0f} mm",
        _gauge(used),
    )
    return "<tr>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in cells) + "</tr>"


def _gauge(share: float) -> str:
    """Return a bar for the used friction; it is red from 90 % on."""
    if np.isnan(share):
        return "-"
    colour = FORCE_COLOUR if share < 0.9 else LIMIT_COLOUR
    width = 100.0 * min(1.0, max(0.0, share))
    return (
        f'<span style="display:inline-block;width:3.5em;height:0.6em;border:1px solid #999">'
        f'<span style="display:block;width:{width:.0f}%;height:100%;background:{colour}"></span></span> {share:.0%}'
    )


def body(instant: Instant, robot: Robot, state: DerivedState | None, link: str, joint: int) -> str:
    """Return the data of the body of ``joint``."""
    values = Signals(robot).values(instant, state)
    shown = [(row.name, row.text(values)) for row in body_rows(robot, link, joint)]
    cells = "".join(f"<tr><td style='{_CELL}'>{name}</td><td>{escape(text)}</td></tr>" for name, text in shown if text)
    return f'<div style="{STYLE}"><table id="{BODY_ID}">{cells}</table></div>'
