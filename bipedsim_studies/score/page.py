"""Write a score as text, as a figure and as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from bipedsim.analysis import aligned
from bipedsim.view import FOOT_COLOURS, STYLE, html_table, image, picture, text_list, write_page
from bipedsim_studies.score.battery import Battery
from bipedsim_studies.score.score import MissedFigure, PairedDifference, ScoreLine

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


def write_score(
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
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>bipedsim {escape(plan.version)}, {len(plan.trials)} trials, repeated to the bit by the same command.</p>",
        html_table("", HEADS, map(_cells, lines)),
        image((folder / "score.png").read_bytes(), "shares of success"),
    ]
    if paired_differences:
        heading = f"Compared with {other_folder}, with the same seeds"
        parts.append(html_table(heading, DIFFERENCE_HEADS, map(_difference_cells, paired_differences)))
    parts += [text_list("Remarks", remarks)] if remarks else []
    parts += [html_table("Left out", ("test", "why"), battery.left_out.items())] if battery.left_out else []
    page = folder / "score.html"
    write_page(page, title, parts)
    return page
