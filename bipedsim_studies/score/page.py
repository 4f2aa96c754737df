"""Write a score as text, as a figure and as a self-contained HTML page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from bipedsim.analysis import aligned
from bipedsim.view import FOOT_COLOURS, STYLE, picture
from bipedsim_studies.score.battery import Battery
from bipedsim_studies.score.score import MissedFigure, PairedDifference, ScoreLine
from bipedsim_studies.study import write_whole

HEADS = ("test", "trials", "success", "95 %", "velocity error", "cost of transport", "remarks")
DIFFERENCE_HEADS = ("this less the other", "trials", "this", "other", "only this", "only other", "difference, 95 %")


def table(lines: Sequence[ScoreLine], paired_differences: Sequence[PairedDifference] = ()) -> list[str]:
    """Return the score as lines of text, followed by the differences from another score if given."""
    text = aligned([HEADS, *map(_cells, lines)])
    if paired_differences:
        text += ["", *aligned([DIFFERENCE_HEADS, *map(_difference_cells, paired_differences)])]
    return text


def _cells(line: ScoreLine) -> tuple[str, ...]:
    name = line.name if line.group else line.name.upper()
    figures = (line.figures["velocity_error"], line.figures["cost_of_transport"])
    remarks = [f"{count} {kind}" for kind, count in sorted(line.failures.items())]
    remarks += map(_missed, line.missed)
    if line.beyond:
        remarks.append(f"physics beyond its bounds in {line.beyond}")
    return (
        name,
        str(line.trials),
        f"{line.share:.1%}",
        "" if line.low is None else f"{line.low:.1%} to {line.high:.1%}",
        *("" if value is None else f"{value:.3g}" for value in figures),
        ", ".join(remarks),
    )


def _missed(missed: MissedFigure) -> str:
    """Return a metric with its range over the trials that missed, and the limits."""
    values = [value for value in missed.values if value is not None]
    if not isinstance(missed.limits, list):
        return f"{missed.name} {', '.join(map(str, missed.values))} instead of {missed.limits}"
    low, high = missed.limits
    limit = " and ".join(
        f"{side} {value:g}" for side, value in (("at least", low), ("at most", high)) if value is not None
    )
    found = " to ".join(f"{value:.3g}" for value in sorted({min(values), max(values)})) if values else "unknown"
    return f"{missed.name} {found}, must be {limit}"


def _difference_cells(difference: PairedDifference) -> tuple[str, ...]:
    share = (difference.first - difference.second) / difference.trials
    numbers = (difference.trials, difference.first, difference.second, difference.only_first, difference.only_second)
    return (difference.name, *map(str, numbers), f"{share:+.1%} ({difference.low:+.1%} to {difference.high:+.1%})")


def plot(title: str, lines: Sequence[ScoreLine], path: Path) -> None:
    """Draw success rates and their intervals, with a bar for each test in the colour of its group.

    Raises:
        RecordingError: The figure cannot be written.
    """
    tests = [line for line in lines if line.group]
    groups = list(dict.fromkeys(line.group for line in tests))
    with picture(path, (8.0, 1.2 + 0.26 * len(tests)), title, STYLE) as figure:
        axes = figure.add_subplot()
        for i, line in enumerate(tests):
            colour = FOOT_COLOURS[groups.index(line.group) % len(FOOT_COLOURS)]
            label = line.group if line.group not in [previous.group for previous in tests[:i]] else None
            axes.barh(i, line.share, color=colour, alpha=0.75, height=0.7, label=label)
            if line.low is not None and line.high is not None:
                errors = [[max(0.0, line.share - line.low)], [max(0.0, line.high - line.share)]]
                axes.errorbar(line.share, i, xerr=errors, color="#333333", capsize=2, linewidth=1.0)
        axes.set_yticks(range(len(tests)), [line.name for line in tests], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel("share of trials with success, 95 % by Wilson")
        figure.legend(loc="outside lower center", ncols=len(groups), fontsize=8)


def write_page(
    folder: Path,
    battery: Battery,
    lines: Sequence[ScoreLine],
    paired_differences: Sequence[PairedDifference],
    other_folder: str,
    remarks: Sequence[str] = (),
) -> Path:
    """Write score.png and score.html into a folder. Return the path of the page.

    Args:
        folder: Folder for both files.
        battery: The battery.
        lines: The score.
        paired_differences: Differences from another score.
        other_folder: Folder of the other score.
        remarks: Errors and warnings.

    Raises:
        RecordingError: The files cannot be written to the disk.
    """
    plan = battery.plan
    title = f"Battery {battery.version}: {plan.description}"
    plot(title, lines, folder / "score.png")
    picture_data = base64.b64encode((folder / "score.png").read_bytes()).decode()
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>bipedsim {escape(plan.version)}, {len(plan.trials)} trials, repeated to the bit by the same command.</p>",
        _html_table([HEADS, *map(_cells, lines)]),
        f'<img alt="shares of success" src="data:image/png;base64,{picture_data}">',
    ]
    if paired_differences:
        parts += [
            f"<h2>Compared with {escape(other_folder)}, with the same seeds</h2>",
            _html_table([DIFFERENCE_HEADS, *map(_difference_cells, paired_differences)]),
        ]
    if remarks:
        parts += ["<h2>Remarks</h2>", f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in remarks)}</ul>"]
    if battery.left_out:
        parts += ["<h2>Left out</h2>", _html_table([("test", "why"), *battery.left_out.items()])]
    page = folder / "score.html"
    write_whole(page, f"{_HEAD.format(title=escape(title))}{''.join(parts)}</body></html>\n".encode())
    return page


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    lines = []
    for i, row in enumerate(rows):
        kind = "td" if i else "th"
        lines.append("".join(f"<{kind}>{escape(text)}</{kind}>" for text in row))
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; color: #222; }}
table {{ border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums; }}

th, td {{ text-align: left; padding: 0.2em 0.9em 0.2em 0; border-bottom: 1px solid #ddd; }}
img {{ max-width: 100%; }}
</style></head><body>"""
