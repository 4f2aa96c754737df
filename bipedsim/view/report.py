"""A run as one page that is sent to a colleague: HTML with its pictures in it, which asks nothing of the network."""

from __future__ import annotations

import base64
import io
import math
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.analysis import RunSummary, Step, gait_steps, summary_lines
from bipedsim.errors import BipedSimError, RecordingError
from bipedsim.recording import Recording
from bipedsim.view.panels import PANELS
from bipedsim.view.plots import Page
from bipedsim.view.sheet import drawn

STILL = 1e-3
"""Velocities [rad/s] below which joints, and accuracies [m] below which the base, have no news."""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "img{width:100%}table{border-collapse:collapse}td,th{padding:.15em .8em .15em 0;text-align:right}"
    "td:first-child,th:first-child{text-align:left}pre{background:#f4f4f2;padding:.7em;white-space:pre-wrap}"
    ".verdict{font-size:1.25em;font-weight:600}.bad{color:#b00020}.small{color:#666;font-size:.9em}"
)


def report(recording: Recording, path: Path | str, source: Path, view: Path | None = None) -> list[str]:
    """Write the page of a run, and return what was left out of it, a line each.

    Args:
        recording: The run.
        path: .html; folders that are missing are made.
        source: Where the recording is, for the command that repeats it.
        view: Page with the moving robot, which is linked to if it lies beside.

    Raises:
        RecordingError: The recording is empty, or the page cannot be written.
    """
    if len(recording) == 0:
        raise RecordingError("the recording has no rows: there is nothing to report")
    gathered = RunSummary()
    gathered.add(recording)
    figures = gathered.figures()
    pictures, left_out = _pictures(recording)
    path = Path(path)
    title = " · ".join(filter(None, (recording.robot or "unknown robot", recording.about.get("scenario", ""))))
    bad = figures.get("fell_at_s") is not None or figures.get("gave_up_at_s") is not None
    verdict = figures.get("verdict") or "no verdict: what became of the robot was not recorded"
    parts = [f'<h1>{escape(title)}</h1><p class="verdict{" bad" * bad}">{escape(str(verdict))}</p>']
    notes = [*gathered.notes, *(figures.get("warnings") or ()), *_warnings(figures)]
    parts += [_list("Warnings", notes)] if notes else []
    parts.append(_table("What was run", ("", ""), _what(recording).items()))
    steps = _steps(recording, left_out)
    # How far the feet of a robot that steps are from where they began says nothing.
    lines = summary_lines(figures, hidden=("foot_drift_m",) if steps else ())
    parts.append(f"<h2>Figures</h2><pre>{escape(chr(10).join(lines))}</pre>")
    parts.append(_gait(steps) if steps else "")
    for name, picture in pictures.items():
        parts.append(f'<h2 id="{name}">{name}</h2><img alt="{name}" src="data:image/png;base64,{picture}">')
    parts.append(_list("Left out", left_out) if left_out else "")
    parts.append(f"<h2>How to repeat it</h2><pre>{escape(chr(10).join(repeat_commands(recording, source)))}</pre>")
    if view is not None and view.exists():
        parts.append(f'<p><a href="{escape(view.name)}">The moving robot</a>, a file beside this one.</p>')
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><style>{_STYLE}</style></head>'
        f"<body>{''.join(parts)}</body></html>\n"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: the report cannot be written ({error.strerror})") from error
    return left_out


def _pictures(recording: Recording) -> tuple[dict[str, str], list[str]]:
    """Return the pictures with news, name to PNG in base64, and why the others were left out."""
    left_out, pictures = [], {}
    for name in PANELS:
        why = _no_news(recording, name)
        try:
            page = None if why else Page(recording, [name])
        except RecordingError as error:
            page, why = None, str(error)
        if page is None:
            left_out.append(f"{name}: {why}")
            continue
        buffer = io.BytesIO()
        with drawn(page.size, "") as figure:
            page.draw(figure)
            figure.savefig(buffer, dpi=80, format="png")
        pictures[name] = base64.b64encode(buffer.getvalue()).decode()
    return pictures, left_out


def _no_news(recording: Recording, panel: str) -> str:
    """Return why a panel would show nothing new, or an empty string."""
    velocity = recording.joint_velocity
    if panel in ("joints", "velocities") and np.nanmax(np.abs(velocity), initial=0.0) < STILL:
        return f"no joint was faster than {STILL:g} rad/s"
    if panel == "base" and np.isfinite(recording.base_pose).any():
        moved = np.nanmax(np.abs(recording.base_pose[:, :3] - recording.base_pose[0, :3]), initial=0.0)
        return f"the base stayed within {1e3 * STILL:g} mm" if moved < STILL else ""
    return ""


def _what(recording: Recording) -> dict[str, str]:
    said = {"robot": recording.robot, **recording.about, **(recording.run.get("settings") or {})}
    said["m g"] = f"{recording.weight:.1f} N" if math.isfinite(recording.weight) else ""
    return {name: str(value) for name, value in said.items() if value not in (None, "", {}, [])}


def _warnings(figures: Mapping[str, Any]) -> list[str]:
    """Return what of the figures a reader should not overlook."""
    beyond = [name for name, one in (figures.get("physics") or {}).items() if one["steps_beyond"]]
    said = [f"physics beyond what the contact model promises: {', '.join(beyond)}"] if beyond else []
    unresolved = figures.get("unresolved_steps")
    return said + ([f"{unresolved} steps that the contact model did not resolve"] if unresolved else [])


def _steps(recording: Recording, left_out: list[str]) -> list[Step]:
    """Return the steps; without any, say so in ``left_out``."""
    try:
        steps = gait_steps(recording)
    except BipedSimError as error:
        left_out.append(f"gait table: {error}")
        return []
    if not steps:
        left_out.append("gait table: no foot left the ground and came back")
    return steps


def _gait(steps: Sequence[Step]) -> str:
    head = ("came down [s]", "foot", "swing [s]", "stance [s]", "double support [s]")
    return _table("Steps", (*head, "length [m]", "width [m]", "speed [m/s]"), [_row(step) for step in steps])


def _row(step: Step) -> list[str]:
    numbers = (step.swing, step.stance, step.double_support, step.length, step.width, step.speed)
    return [f"{step.t:.3f}", step.foot, *("-" if math.isnan(number) else f"{number:.3f}" for number in numbers)]


def repeat_commands(recording: Recording, source: Path) -> list[str]:
    """Return the commands that make the run again: from its settings, and from its recorded torques."""
    lines = []
    settings = recording.run.get("settings")
    if settings:
        words = ["bipedsim", "run"]
        for name, value in settings.items():
            if value in (None, "", {}, []):
                continue
            option = {"controller_params": "--set", "contact_params": "--contact-set"}.get(name)
            if option is not None:
                for key, one in value.items():
                    words += [option, f"{key}={one}"]
            else:
                words += [f"--{name.replace('_', '-')}", str(value)]
        lines.append(shlex.join(words))
    return [*lines, shlex.join(["bipedsim", "replay", str(source)])]


def _table(title: str, head: Sequence[str], rows: Any) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    lines = [line(head, "th")] * any(head) + [line(row, "td") for row in rows]
    return f"<h2>{title}</h2><table>{''.join(lines)}</table>"


def _list(title: str, lines: Sequence[str]) -> str:
    return f'<h2>{title}</h2><ul class="small">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul>'
