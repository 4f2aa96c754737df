"""What the page says in words and numbers: of an instant, and of a body that somebody has clicked on."""

from __future__ import annotations

from html import escape

import numpy as np

from bipedsim.model import Robot, drivers
from bipedsim.numerics import Array
from bipedsim.recording import without_plan
from bipedsim.view.animation import FORCE_COLOUR
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.marks import CAPTURE_COLOUR, PLAN_COLOUR, PUSH_COLOUR, SUPPORT_COLOUR
from bipedsim.view.page.soles import COLOURS, COP_COLOUR
from bipedsim.view.page.state import UNKNOWN, State, mode_text
from bipedsim.view.sheet import LIMIT_COLOUR, TOTAL_COLOUR

TIME_ID, FOOT_ID, BODY_ID = "bipedsim-time", "bipedsim-foot-", "bipedsim-body"
"""Ids of elements of the page, for who reads it by machine; that of a foot ends with its name."""
_STYLE = "font-size:0.8em;line-height:1.5;padding:0 0.6em"
_CELL = "padding:0 0.6em 0 0;text-align:left;white-space:nowrap"


def legend() -> str:
    """Return what the colours of the scene are, as HTML."""
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
    return f'<div style="{_STYLE}">{swatches}</div>'


def now(instant: Instant, robot: Robot, state: State | None) -> str:
    """Return time, contact of each foot and what else there is to say of an instant, as HTML."""
    rows = [f'<div><b id="{TIME_ID}">t = {instant.t:.3f} s</b></div>']
    said = list(instant.notes)
    if state is None:
        said.append("the robot is nowhere: its base is not known")
    elif instant.estimated:
        said.append("base: estimate of the controller")
    if state is not None and robot.soles:
        head = "".join(f"<th style='{_CELL}'>{text}</th>" for text in ("foot", "contact", "f_z", "margin", "friction"))
        feet = "".join(_foot(instant, k, robot, state) for k in range(len(robot.soles)))
        rows.append(f"<table style='border-collapse:collapse'><tr>{head}</tr>{feet}</table>")
    shown = [f"{name} {_number(value)}" for name, value in without_plan(instant.readouts).items() if np.isfinite(value)]
    rows += [f"<div>{escape(text)}</div>" for text in (", ".join(shown), "; ".join(said)) if text]
    return f'<div style="{_STYLE}">{"".join(rows)}</div>'


def _foot(instant: Instant, k: int, robot: Robot, state: State) -> str:
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
        "-" if np.isnan(margin) else f"{margin:.0f} mm",
        _gauge(used),
    )
    return "<tr>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in cells) + "</tr>"


def _gauge(share: float) -> str:
    """Return a bar that is full, and red, where all of the friction is used."""
    if np.isnan(share):
        return "-"
    colour = FORCE_COLOUR if share < 0.9 else LIMIT_COLOUR
    width = 100.0 * min(1.0, max(0.0, share))
    return (
        f'<span style="display:inline-block;width:3.5em;height:0.6em;border:1px solid #999">'
        f'<span style="display:block;width:{width:.0f}%;height:100%;background:{colour}"></span></span> {share:.0%}'
    )


def body(instant: Instant, robot: Robot, state: State | None, link: str, joint: int) -> str:
    """Return the figures of the body that ``joint`` carries, as HTML."""
    model = robot.model
    inertia = model.inertias[joint]
    rows = [("link", escape(link)), ("joint", escape(model.names[joint])), ("mass", f"{inertia.mass:.3g} kg")]
    if model.names[joint] in robot.joint_names:
        i = robot.joint_names.index(model.names[joint])
        turns = model.joints[joint].shortname().startswith("JointModelR")
        angle, rate = _of(instant.joint_position, i), _of(instant.joint_velocity, i)
        if turns:
            low, high = np.rad2deg([robot.position_lower[i], robot.position_upper[i]])
            rows.append(("position", f"{np.rad2deg(angle):.1f} deg ({low:.0f} to {high:.0f})"))
            rows.append(("velocity", f"{rate:.2f} rad/s (at most {robot.velocity_limit[i]:.1f})"))
        else:
            low, high = robot.position_lower[i], robot.position_upper[i]
            rows.append(("position", f"{angle:.3f} m ({low:.3g} to {high:.3g})"))
            rows.append(("velocity", f"{rate:.2f} m/s (at most {robot.velocity_limit[i]:.2g})"))
        unit, limit = "N.m" if turns else "N", robot.effort_limit[i]
        for name, values in (("effort", instant.joint_effort), ("asked for", instant.joint_command)):
            value = _of(values, i)
            if np.isfinite(value):
                rows.append((name, f"{value:.1f} {unit}, {abs(value) / limit:.0%} of {limit:.0f}"))
    if state is not None:
        centre = state.data.oMi[joint].act(inertia.lever)
        rows.append(("centre of mass", ", ".join(f"{value:.3f}" for value in centre) + " m"))
    for k, sole in enumerate(robot.soles):
        if sole.joint_id == joint and instant.wrench is not None:
            force, torque = instant.wrench[k, :3], instant.wrench[k, 3:]
            rows.append(("force on the sole", ", ".join(f"{value:.1f}" for value in force) + " N"))
            rows.append(("torque", ", ".join(f"{value:.1f}" for value in torque) + " N.m"))
    if instant.body_forces is not None:
        force = instant.body_forces[drivers(model, robot.joint_names)[joint]]
        if np.isfinite(force).all() and force.any():
            rows.append(("other contact", ", ".join(f"{value:.1f}" for value in force) + " N"))
    cells = "".join(f"<tr><td style='{_CELL}'>{name}</td><td>{text}</td></tr>" for name, text in rows)
    return f'<div style="{_STYLE}"><table id="{BODY_ID}">{cells}</table></div>'


def _of(values: Array | None, i: int) -> float:
    return float("nan") if values is None else float(values[i])


def _number(value: float) -> str:
    return f"{value:.3g}"
