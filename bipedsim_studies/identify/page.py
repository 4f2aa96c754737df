"""Write an estimate as a page: its predictions, all numbers, and the torques that the model does not explain."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np

from bipedsim.numerics import Flags
from bipedsim.view import folded, html_table, image, preformatted, text_list, write_page
from bipedsim_studies import gap
from bipedsim_studies.identify.contact import Contact
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.judgement import DESCRIBED, HEADS, HORIZON, LOST, Judgement
from bipedsim_studies.identify.parameters import KINDS
from bipedsim_studies.identify.report import changed, coupled, intervals, plot, unexplained

NUMBERS = ("number", "unit", DESCRIBED, "estimated", "95 % interval", "", "coupled with")
"""Heads of the table of numbers."""
LINES = (
    "described, identified: simulations with the numbers of the description and of this page",
    "held: the rule that nothing changes; constant velocity: the rule that all velocities stay",
    "noise: standard deviation of the sensors; no prediction can have a smaller error",
)
"""Meaning of the lines in the figure of predictions."""
READING = (
    "identified: the interval is narrow enough to be of use",
    "not identified: the number may have any value in its interval",
    "changed: the described value is outside the interval",
    "coupled with: a number with a similar effect in these recordings",
)
"""Meaning of the words in the tables of numbers."""


def write_estimate(
    path: Path,
    title: str,
    result: Estimate,
    judgements: Sequence[Judgement],
    warnings: Sequence[str],
    notes: Sequence[str],
    contact: Contact | None,
) -> None:
    """Write the page.

    Args:
        path: .html.
        title: Title of the page.
        result: The estimate.
        judgements: Predictions of recordings.
        warnings: Parts of the page that are missing, with the reasons.
        notes: Further results for the reader, such as the command delay.
        contact: Contact of feet and ground; None if unknown.

    Raises:
        RecordingError: The page or its figures cannot be written.
    """
    estimated, moved = int(result.parameters.estimated.sum()), int(changed(result).sum())
    counts = f"{int(result.identified.sum())} of {estimated} numbers are identified, {moved} have changed"
    converged = "" if result.converged else "; the estimate has not converged"
    style = f"verdict{' bad' * (not result.converged)}"
    parts = [f'<header><h1>{escape(title)}</h1><p class="{style}">{counts}{converged}</p></header>']
    parts += [text_list("Warnings", warnings, "warnings")] if warnings else []
    parts += [text_list("Notes", [*notes, *READING])]
    new, known = changed(result), result.identified & ~changed(result)
    rest = ~(new | known)
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, "picture.png")
        plot(result, "Described and identified numbers, with 95 % intervals", picture)
        figure = image(picture.read_bytes(), "described and identified numbers with their intervals")
        parts += [
            html_table("Numbers that differ from the description", NUMBERS, _numbers(result, new)),
            folded(
                f"{int(known.sum())} numbers that agree with the description, in narrow intervals",
                html_table("", NUMBERS, _numbers(result, known)),
            ),
            folded(
                f"{int(rest.sum())} numbers that are not identified, or not estimated",
                html_table("", NUMBERS, _numbers(result, rest)),
            ),
            f"<section><h2>Described and identified</h2>{figure}</section>",
        ]
        if contact is not None:
            parts.append(preformatted("Contact with the ground", contact.text()))
        for judgement in judgements:
            parts += _predictions(judgement, picture)
    write_page(path, title, [*parts, preformatted("Unexplained torques", unexplained(result))])


def _predictions(judgement: Judgement, picture: Path) -> Iterator[str]:
    heading = f"Predictions of {judgement.heading}, rms errors after {1e3 * HORIZON:g} ms"
    yield html_table(heading, HEADS, judgement.rows())
    gap.plot(judgement.gaps, "Errors over the horizon, and the joints with the largest ones", picture)
    yield image(picture.read_bytes(), "errors of the predictions, and measured and predicted angles")
    yield text_list("How to read these predictions", [*LINES, *judgement.notes, f"Changes {LOST}."])


def _numbers(result: Estimate, chosen: Flags) -> Iterator[Sequence[str]]:
    """Yield a row for each of the ``chosen`` numbers (p,)."""
    p, moved = result.parameters, changed(result)
    described, values, (low, high) = p.in_units(p.start), p.in_units(result.values), intervals(result)
    for i in map(int, np.flatnonzero(chosen)):
        words = [word for word, yes in (("identified", result.identified[i]), ("changed", moved[i])) if yes]
        state = ", ".join(words) if p.estimated[i] else "as described"
        numbers = f"{described[i]:.4g}", f"{values[i]:.4g}", f"{low[i]:.4g} to {high[i]:.4g}"
        partner = coupled(result, i) if p.estimated[i] and not result.identified[i] else ""
        yield p.label(i), KINDS[p.kinds[i]].unit, *numbers, state, partner
