"""Runs as one page that is sent to a colleague: HTML with its pictures in it, which asks nothing of the network."""

from __future__ import annotations

import base64
import dataclasses
import io
import math
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from bipedsim.analysis import (
    BRIEF,
    CARRIES,
    NearLimit,
    RunSummary,
    Step,
    difference_lines,
    differences,
    gait_steps,
    near_limits,
    summary_lines,
)
from bipedsim.config import RunConfig
from bipedsim.errors import BipedSimError, RecordingError
from bipedsim.recording import Recording
from bipedsim.view.overlay import Comparison, NothingCommonError
from bipedsim.view.panels import PANELS
from bipedsim.view.plots import Page
from bipedsim.view.sheet import drawn, write_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STILL = 1e-3
"""Velocities [rad/s] below which joints, and accuracies [m] below which the base, have no news."""
_UNITS = {one.name: one.metadata.get("unit", "") for one in dataclasses.fields(RunConfig)} | {"m_g": "N"}
"""Of settings."""
_FEET = (
    f'<p class="small">Friction and CoP are of feet that carry more than {CARRIES:.0%} of m g, what lasted for '
    f"{BRIEF:g} s: where a foot lands or lifts off it slides for a moment, on an edge.</p>"
)
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "img{width:100%}table{border-collapse:collapse}td,th{padding:.15em .8em .15em 0;text-align:right}"
    "td:first-child,th:first-child{text-align:left}pre{background:#f4f4f2;padding:.7em;white-space:pre-wrap}"
    ".verdicts{font-size:1.15em}.verdicts .said{text-align:left;font-weight:600}"
    ".verdict{font-size:1.25em;font-weight:600}.bad{color:#b00020}.small{color:#666;font-size:.9em}"
)


def report(
    recording: Recording, path: Path | str, source: Path, view: Path | None = None, whole: bool = True
) -> list[str]:
    """Write the page of a run, and return what was left out of it, a line each.

    Args:
        recording: The run.
        path: .html; folders that are missing are made.
        source: Where the recording is, for the command that repeats it.
        view: Page with the moving robot, which is linked to if it lies beside.
        whole: Whether these are all rows of the run; see :class:`RunSummary`.

    Raises:
        RecordingError: The recording is empty, or the page cannot be written.
    """
    if len(recording) == 0:
        raise RecordingError("the recording has no rows: there is nothing to report")
    gathered = RunSummary(whole)
    gathered.add(recording)
    figures = gathered.figures()
    pictures, left_out = _pictures(recording)
    title = " · ".join(filter(None, (recording.robot or "unknown robot", recording.about.get("scenario", ""))))
    parts = [f'<h1>{escape(title)}</h1><p class="verdict{" bad" * _bad(figures)}">{escape(_verdict(figures))}</p>']
    notes = [*gathered.notes, *(figures.get("warnings") or ()), *_warnings(figures)]
    parts += [_list("Warnings", notes)] if notes else []
    parts.append(_table("What was run", ("", ""), _what(recording).items()))
    steps = _steps(recording, left_out)
    # How far the feet of a robot that steps are from where they began says nothing.
    lines = summary_lines(figures, hidden=("foot_drift_m",) if steps else ())
    parts.append(f"<h2>Figures</h2><pre>{escape(chr(10).join(lines))}</pre>")
    near = [_near(one) for one in near_limits(recording)]
    head = ("nearest to its limit", "", "at [s]", "was", "limit", "that is")
    parts.append(_table("Limits", head, near) + _FEET if near else "")
    parts.append(_gait(steps) if steps else "")
    parts += _drawn(pictures)
    parts.append(_list("Left out", left_out) if left_out else "")
    parts.append(f"<h2>How to repeat it</h2><pre>{escape(chr(10).join(repeat_commands(recording, source)))}</pre>")
    if view is not None and view.exists():
        parts.append(f"<p>{_link(view)}, a file beside this one.</p>")
    _write(Path(path), title, parts)
    return left_out


def report_runs(
    runs: Mapping[str, Recording],
    path: Path | str,
    sources: Sequence[Path],
    views: Sequence[Path | None] = (),
    whole: bool = True,
) -> list[str]:
    """Write a page of several runs of one robot beside each other; return what was left out or differs, a line each.

    Args:
        runs: Name to run, two to five.
        path: .html; folders that are missing are made.
        sources: Where the recordings are, for the commands that repeat them.
        views: Pages with the moving robot of each, which are linked to if they lie beside.
        whole: As in :func:`report`.

    Raises:
        RecordingError: A recording is empty, the runs are of different robots or have no time in common, or the page
            cannot be written.
    """
    pictures, left_out = _pictures_over(runs)
    gathered = {name: RunSummary(whole) for name in runs}
    for name, run in runs.items():
        gathered[name].add(run)
    figures = {name: one.figures() for name, one in gathered.items()}
    robot = next(iter(runs.values())).robot or "unknown robot"
    title = " · ".join((robot, *runs))
    verdicts = [
        f'<tr><td>{escape(name)}</td><td class="said{" bad" * _bad(one)}">{escape(_verdict(one))}</td></tr>'
        for name, one in figures.items()
    ]
    parts = [f'<h1>{escape(title)}</h1><table class="verdicts">{"".join(verdicts)}</table>']
    notes = [
        f"{name}: {note}"
        for name, one in figures.items()
        for note in (*gathered[name].notes, *(one.get("warnings") or ()), *_warnings(one))
    ]
    parts += [_list("Warnings", notes)] if notes else []
    said = {name: _what(run) for name, run in runs.items()}
    keys = dict.fromkeys(key for one in said.values() for key in one)
    rows = [(key, *(one.get(key, "-") for one in said.values())) for key in keys]
    parts.append(_table("What was run", ("", *runs), rows))
    table = difference_lines(differences(list(figures.values())), list(runs))
    parts.append(f"<h2>Figures that differ</h2><pre>{escape(chr(10).join(table))}</pre>")
    parts += _drawn(pictures)
    parts.append(_list("Left out, and noted", left_out) if left_out else "")
    lines = [line for run, source in zip(runs.values(), sources, strict=True) for line in repeat_commands(run, source)]
    parts.append(f"<h2>How to repeat them</h2><pre>{escape(chr(10).join(lines))}</pre>")
    links = [
        f"{escape(name)}: {_link(view)}" for name, view in zip(runs, views, strict=False) if view and view.exists()
    ]
    parts.append(f"<p>{'<br>'.join(links)}</p>" if links else "")
    _write(Path(path), title, parts)
    return left_out


def _verdict(figures: Mapping[str, Any]) -> str:
    return str(figures.get("verdict") or "no verdict: what became of the robot was not recorded")


def _bad(figures: Mapping[str, Any]) -> bool:
    return figures.get("fell_at_s") is not None or figures.get("gave_up_at_s") is not None


def _link(view: Path) -> str:
    return f'<a href="{escape(quote(view.name))}">The moving robot</a>'


def _drawn(pictures: Mapping[str, str]) -> list[str]:
    return [
        f'<h2 id="{name}">{name}</h2><img alt="{name}" src="data:image/png;base64,{picture}">'
        for name, picture in pictures.items()
    ]


def _write(path: Path, title: str, parts: Sequence[str]) -> None:
    """Write a page.

    Raises:
        RecordingError: It cannot be written.
    """
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


def _pictures_over(runs: Mapping[str, Recording]) -> tuple[dict[str, str], list[str]]:
    """Return the pictures of runs over each other, name to PNG in base64, and what was left out of them."""
    left_out: dict[str, None] = {}
    pictures, wrong = {}, None
    for name in _panels(*runs.values()):
        whys = [why for run in runs.values() if (why := _no_news(run, name))]
        if len(whys) == len(runs):
            left_out[f"without {name}: {whys[0]}"] = None
            continue
        try:
            comparison = Comparison(runs, [name])
        except RecordingError as error:
            wrong = error
            left_out.update(dict.fromkeys(error.notes if isinstance(error, NothingCommonError) else [str(error)]))
            continue
        left_out.update(dict.fromkeys(comparison.notes))
        with drawn(comparison.size, "") as figure:
            comparison.draw(figure)
            pictures[name] = _png(figure)
    if wrong is not None and not pictures:
        # No panel can be drawn of runs that do not belong together.
        raise wrong
    return pictures, list(left_out)


def _png(figure: Figure) -> str:
    """Return a figure as PNG in base64."""
    buffer = io.BytesIO()
    write_png(figure, buffer, 80)
    return base64.b64encode(buffer.getvalue()).decode()


def _pictures(recording: Recording) -> tuple[dict[str, str], list[str]]:
    """Return the pictures with news, name to PNG in base64, and why the others were left out."""
    left_out, pictures = [], {}
    for name in _panels(recording):
        why = _no_news(recording, name)
        try:
            page = None if why else Page(recording, [name])
        except RecordingError as error:
            page, why = None, str(error)
        if page is None:
            left_out.append(f"{name}: {why}")
            continue
        with drawn(page.size, "") as figure:
            page.draw(figure)
            pictures[name] = _png(figure)
    return pictures, left_out


def _panels(*recordings: Recording) -> list[str]:
    """Return the panels to draw, or to say why not: objects that were never there are nothing to speak of."""
    return [name for name in PANELS if name != "objects" or any(recording.objects for recording in recordings)]


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
    said: dict[str, Any] = {"robot": recording.robot, **recording.about, **(recording.run.get("settings") or {})}
    if math.isfinite(recording.weight):
        said["m_g"] = round(recording.weight, 1)
    return {
        name.replace("_", " "): f"{value:g} {_UNITS.get(name, '')}".rstrip() if isinstance(value, float) else f"{value}"
        for name, value in said.items()
        if value not in (None, "", {}, [])
    }


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


def _near(one: NearLimit) -> list[str]:
    """Return a row of the table of limits."""
    unit = f" {one.unit}" * bool(one.unit)
    left, where = abs(one.limit - one.worst), "beyond" if one.beyond else "away"
    away = "at it" + ", as it was from the start" * one.begins if one.at_it else f"{left:.3g}{unit} {where}"
    # Rounding about 0 is 0, and no negative one.
    worst = 0.0 if one.at_it and abs(one.limit) == 0.0 else one.worst
    return [
        *(one.quantity, one.of, f"{one.t:.3f}", f"{worst:.4g}{unit}", f"{one.limit:.4g}{unit}"),
        away if math.isnan(one.share) else f"{100 * one.share:.3g} %",
    ]


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
