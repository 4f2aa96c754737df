"""Write a report of runs as one HTML file with embedded plots, without network access."""

from __future__ import annotations

import io
import math
import shlex
import tempfile
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
from bipedsim.errors import BipedSimError, RecordingError
from bipedsim.recording import Recording
from bipedsim.view.animation import animate
from bipedsim.view.html_page import html_table, image, preformatted, text_list, write_page
from bipedsim.view.overlays import Comparison, NothingCommonError
from bipedsim.view.panels import PANELS
from bipedsim.view.plots import PanelPlot
from bipedsim.view.settings import differing_settings, settings_of
from bipedsim.view.sheet import drawn, write_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STILL = 1e-3
"""Velocity [rad/s] below which joint panels, and displacement [m] below which the base panel, are omitted."""
_FEET = (
    f'<p class="small">Friction and CoP are of feet that carry more than {CARRIES:.0%} of m g, what lasted for '
    f"{BRIEF:g} s: where a foot lands or lifts off it slides for a moment, on an edge.</p>"
)
POSTURES = 7
"""Number of postures in the figure of the robot."""


def report(
    recording: Recording, path: Path | str, source: Path, view: Path | None = None, whole: bool = True
) -> list[str]:
    """Write the report of a run; return notes on omissions, one per line.

    Args:
        recording: The run.
        path: .html; missing folders are created.
        source: Path of the recording, for the command that repeats the run.
        view: Page with the animated robot, which is linked if it is in the same folder.
        whole: Whether the recording contains all rows of the run; see :class:`RunSummary`.

    Raises:
        RecordingError: The recording is empty, or the report cannot be written.
    """
    if len(recording) == 0:
        raise RecordingError("no rows: there is nothing to report", "the recording")
    summary = RunSummary(whole)
    summary.add(recording)
    figures = summary.figures()
    plots, left_out = _plots(recording)
    title = " · ".join(filter(None, (recording.robot or "unknown robot", recording.about.get("scenario", ""))))
    verdict = f'<p class="verdict{" bad" * _bad(figures)}">{escape(_verdict(figures))}</p>'
    parts = [f"<header><h1>{escape(title)}</h1>{verdict}{_postures(recording, left_out)}</header>"]
    notes = [*summary.notes, *(figures.get("warnings") or ()), *_warnings(figures)]
    parts += [text_list("Warnings", notes, "warnings")] if notes else []
    parts.append(_two_columns("Settings", settings_of(recording)))
    steps = _steps(recording, left_out)
    # The drift of the feet is meaningless for a robot that steps.
    lines = summary_lines(figures, hidden=("foot_drift_m",) if steps else ())
    parts.append(preformatted("Metrics", lines))
    near = [_limit_row(entry) for entry in near_limits(recording)]
    head = ("closest to its limit", "of", "time [s]", "value", "limit", "share")
    parts.append(html_table("Limits", head, near) + _FEET if near else "")
    parts.append(_gait_table(steps) if steps else "")
    parts += _plot_sections(plots)
    parts.append(text_list("Left out", left_out) if left_out else "")
    parts.append(preformatted("Commands that repeat the run", repeat_commands(recording, source)))
    if view is not None and view.exists():
        parts.append(f"<p>{_link(view)}, a file next to this one.</p>")
    write_page(Path(path), title, parts)
    return left_out


def report_runs(
    runs: Mapping[str, Recording],
    path: Path | str,
    sources: Sequence[Path],
    views: Sequence[Path | None] = (),
    whole: bool = True,
) -> list[str]:
    """Write a report that compares several runs of one robot; return notes on omissions and differences, one per line.

    Args:
        runs: Name to run, two to five runs.
        path: .html; missing folders are created.
        sources: Paths of the recordings, for the commands that repeat the runs.
        views: Pages with the animated robot of each run, which are linked if they are in the same folder.
        whole: See :func:`report`.

    Raises:
        RecordingError: A recording is empty, the runs are of different robots or have no time in common, or the report
            cannot be written.
    """
    plots, left_out = _comparison_plots(runs)
    summaries = {name: RunSummary(whole) for name in runs}
    for name, run in runs.items():
        summaries[name].add(run)
    figures = {name: summary.figures() for name, summary in summaries.items()}
    robot = next(iter(runs.values())).robot or "unknown robot"
    title = " · ".join((robot, *runs))
    verdicts = [
        f'<tr><td>{escape(name)}</td><td class="said{" bad" * _bad(metrics)}">{escape(_verdict(metrics))}</td></tr>'
        for name, metrics in figures.items()
    ]
    of_runs = f'<div class="wide"><table class="verdicts">{"".join(verdicts)}</table></div>'
    first = next(iter(runs.values()))
    parts = [f"<header><h1>{escape(title)}</h1>{of_runs}{_postures(first, left_out)}</header>"]
    notes = [
        f"{name}: {note}"
        for name, metrics in figures.items()
        for note in (*summaries[name].notes, *(metrics.get("warnings") or ()), *_warnings(metrics))
    ]
    parts += [text_list("Warnings", notes, "warnings")] if notes else []
    differing = differing_settings(runs)
    if differing:
        parts.append(
            html_table("Settings that differ", ("setting", *runs), [(k, *row) for k, row in differing.items()])
        )
    common = {name: text for name, text in settings_of(first).items() if name not in differing}
    parts.append(_two_columns("Common settings", common))
    lines = difference_lines(differences(list(figures.values())), list(runs))
    parts.append(preformatted("Metrics that differ", lines))
    parts += _plot_sections(plots)
    parts.append(text_list("Omissions and notes", left_out) if left_out else "")
    lines = [line for run, source in zip(runs.values(), sources, strict=True) for line in repeat_commands(run, source)]
    parts.append(preformatted("Commands that repeat the runs", lines))
    links = [
        f"{escape(name)}: {_link(view)}" for name, view in zip(runs, views, strict=False) if view and view.exists()
    ]
    parts.append(f"<p>{'<br>'.join(links)}</p>" if links else "")
    write_page(Path(path), title, parts)
    return left_out


def _verdict(figures: Mapping[str, Any]) -> str:
    return str(figures.get("verdict") or "no outcome: the recording does not contain it")


def _bad(figures: Mapping[str, Any]) -> bool:
    return figures.get("fell_at_s") is not None or figures.get("gave_up_at_s") is not None


def _link(view: Path) -> str:
    return f'<a href="{escape(quote(view.name))}">Animated robot</a>'


def _plot_sections(plots: Mapping[str, bytes]) -> list[str]:
    return [f'<section><h2 id="{name}">{name}</h2>{image(png, name)}</section>' for name, png in plots.items()]


def _comparison_plots(runs: Mapping[str, Recording]) -> tuple[dict[str, bytes], list[str]]:
    """Return the plots of runs over each other, name to PNG, and notes on omissions."""
    left_out: dict[str, None] = {}
    plots, error_of_last = {}, None
    for name in _panels(*runs.values()):
        reasons = [reason for run in runs.values() if (reason := _no_news(run, name))]
        if len(reasons) == len(runs):
            left_out[f"without {name}: {reasons[0]}"] = None
            continue
        try:
            comparison = Comparison(runs, [name])
        except RecordingError as error:
            error_of_last = error
            left_out.update(dict.fromkeys(error.notes if isinstance(error, NothingCommonError) else [str(error)]))
            continue
        left_out.update(dict.fromkeys(comparison.notes))
        with drawn(comparison.size, "") as figure:
            comparison.draw(figure)
            plots[name] = _png(figure)
    if error_of_last is not None and not plots:
        # Without any plot, the runs probably do not belong together.
        raise error_of_last
    return plots, list(left_out)


def _png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    buffer = io.BytesIO()
    write_png(figure, buffer, 80)
    return buffer.getvalue()


def _plots(recording: Recording) -> tuple[dict[str, bytes], list[str]]:
    """Return the plots worth showing, name to PNG, and reasons for the omission of the others."""
    left_out, plots = [], {}
    for name in _panels(recording):
        reason = _no_news(recording, name)
        try:
            page = None if reason else PanelPlot(recording, [name])
        except RecordingError as error:
            page, reason = None, str(error)
        if page is None:
            left_out.append(f"{name}: {reason}")
            continue
        with drawn(page.size, "") as figure:
            page.draw(figure)
            plots[name] = _png(figure)
    return plots, left_out


def _panels(*recordings: Recording) -> list[str]:
    """Return the panels to plot or to list as omitted, without those of objects and sensors that no run has."""
    absent = {
        "objects": not any(recording.objects for recording in recordings),
        "sensors": not any(recording.imu_names or recording.switch_names for recording in recordings),
    }
    return [name for name in PANELS if not absent.get(name)]


def _no_news(recording: Recording, panel: str) -> str:
    """Return why a panel is not worth showing, or an empty text."""
    velocity = recording.joint_velocity
    if panel in ("joints", "velocities") and np.nanmax(np.abs(velocity), initial=0.0) < STILL:
        return f"no joint was faster than {STILL:g} rad/s"
    if panel == "base" and np.isfinite(recording.base_pose).any():
        moved = np.nanmax(np.abs(recording.base_pose[:, :3] - recording.base_pose[0, :3]), initial=0.0)
        return f"the base stayed within {1e3 * STILL:g} mm" if moved < STILL else ""
    return ""


def _warnings(figures: Mapping[str, Any]) -> list[str]:
    """Return warnings that follow from the metrics."""
    beyond = [name for name, monitor in (figures.get("physics") or {}).items() if monitor["steps_beyond"]]
    warnings = [f"physics beyond the limits of the contact model: {', '.join(beyond)}"] if beyond else []
    unresolved = figures.get("unresolved_steps")
    return warnings + ([f"{unresolved} unresolved steps of the contact model"] if unresolved else [])


def _steps(recording: Recording, left_out: list[str]) -> list[Step]:
    """Return the steps of a walk; append a note to ``left_out`` if there are none."""
    try:
        steps = gait_steps(recording)
    except BipedSimError as error:
        left_out.append(f"gait table: {error}")
        return []
    if not steps:
        left_out.append("gait table: no foot completed a step")
    return steps


def _limit_row(entry: NearLimit) -> list[str]:
    """Return a row of the table of limits."""
    unit = f" {entry.unit}" * bool(entry.unit)
    distance, side = abs(entry.limit - entry.worst), "beyond" if entry.beyond else "away"
    away = "at it" + ", as it was from the start" * entry.begins if entry.at_it else f"{distance:.3g}{unit} {side}"
    # A value that is 0 except for rounding must not be printed as negative zero.
    worst = 0.0 if entry.at_it and abs(entry.limit) == 0.0 else entry.worst
    return [
        *(entry.quantity, entry.of, f"{entry.t:.3f}", f"{worst:.4g}{unit}", f"{entry.limit:.4g}{unit}"),
        away if math.isnan(entry.share) else f"{100 * entry.share:.3g} %",
    ]


def _gait_table(steps: Sequence[Step]) -> str:
    head = ("came down [s]", "foot", "swing [s]", "stance [s]", "double support [s]")
    return html_table("Steps", (*head, "length [m]", "width [m]", "speed [m/s]"), [_row(step) for step in steps])


def _row(step: Step) -> list[str]:
    numbers = (step.swing, step.stance, step.double_support, step.length, step.width, step.speed)
    return [f"{step.t:.3f}", step.foot, *("-" if math.isnan(number) else f"{number:.3f}" for number in numbers)]


_WITHOUT_OPTION = ("posture", "faults", "gantry")
"""Parameters of a run from Python that `bipedsim run` takes from a scenario file only."""


def repeat_commands(recording: Recording, source: Path) -> list[str]:
    """Return the commands that repeat the run: from its settings, and from its recorded torques."""
    lines = []
    settings = recording.run.get("settings")
    if settings:
        words = ["bipedsim", "run"]
        prefixes = {"controller_params": "", "contact_params": f"{settings['contact_model']}."}
        for name, value in settings.items():
            if value in (None, "", {}, []):
                continue
            if name in prefixes:
                for key, parameter in value.items():
                    words += ["--set", f"{prefixes[name]}{key}={parameter}"]
            else:
                words += [f"--{name.replace('_', '-')}", str(value)]
        if not any(settings.get(name) for name in _WITHOUT_OPTION):
            lines.append(shlex.join(words))
    return [*lines, shlex.join(["bipedsim", "replay", str(source)])]


def _two_columns(title: str, settings: Mapping[str, str]) -> str:
    """Return a table of settings in two columns, if there is enough space."""
    rows = [f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in settings.items()]
    half = (len(rows) + 1) // 2
    tables = "".join(f"<table>{''.join(part)}</table>" for part in (rows[:half], rows[half:]) if part)
    return f'<section><h2>{title}</h2><div class="columns">{tables}</div></section>'


def _postures(recording: Recording, left_out: list[str]) -> str:
    """Return a figure with postures during the run; append a note to ``left_out`` if it is not possible."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "postures.png")
        try:
            animate(recording, path, postures=POSTURES)
        except BipedSimError as error:
            left_out.append(f"figure of the robot: {error}")
            return ""
        picture = image(path.read_bytes(), f"{POSTURES} postures of the robot during the run")
    return f'<div class="postures">{picture}</div>'
