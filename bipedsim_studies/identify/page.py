"""Write an estimate as a page: the predictions before and after, all numbers, and what the model does not explain."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from bipedsim.view import html_table, image, preformatted, text_list, write_page
from bipedsim_studies import gap
from bipedsim_studies.identify.contact import Contact
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.judgement import HEADS, HORIZON, LOST, Judgement
from bipedsim_studies.identify.parameters import KINDS
from bipedsim_studies.identify.report import half_widths, plot, unexplained

NUMBERS = ("number", "unit", "described", "identified", "95 % interval, +-", "")
"""Heads of the table of numbers."""


def write_estimate(
    path: Path, title: str, result: Estimate, judgements: Sequence[Judgement], notes: Sequence[str], contact: Contact
) -> None:
    """Write the page.

    Args:
        path: .html.
        title: Title of the page.
        result: The estimate.
        judgements: Predictions of recordings.
        notes: Notes for the reader, such as the command delay.
        contact: Contact of feet and ground.

    Raises:
        RecordingError: The page or its figures cannot be written.
    """
    counts = f"{int(result.identified.sum())} of {int(result.parameters.estimated.sum())} numbers are identified"
    converged = "" if result.converged else "; the estimate has not converged"
    style = f"verdict{' bad' * (not result.converged)}"
    parts = [f'<header><h1>{escape(title)}</h1><p class="{style}">{counts}{converged}</p></header>']
    parts += [text_list("Notes", notes, "warnings")] if notes else []
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, "picture.png")
        for judgement in judgements:
            parts += _predictions(judgement, picture)
        plot(result, "Described and identified numbers", picture)
        figure = image(picture.read_bytes(), "described and identified numbers with their intervals")
    parts += [
        html_table("Numbers that are identified", NUMBERS, _numbers(result, True)),
        f"<section><h2>Described and identified</h2>{figure}</section>",
        preformatted("Contact with the ground", contact.text()),
        preformatted("Unexplained torques", unexplained(result)),
        html_table("Numbers that are not identified", NUMBERS, _numbers(result, False)),
    ]
    write_page(path, title, parts)


def _predictions(judgement: Judgement, picture: Path) -> Iterator[str]:
    heading = f"Predictions of {judgement.heading}, rms errors after {1e3 * HORIZON:g} ms"
    yield html_table(heading, HEADS, judgement.rows())
    yield text_list("Notes on these predictions", [*judgement.notes, f"Changes {LOST}."])
    gap.plot(judgement.gaps, "Errors over the horizon, and the joints with the largest ones", picture)
    yield image(picture.read_bytes(), "errors of the predictions, and measured and predicted angles")


def _numbers(result: Estimate, identified: bool) -> Iterator[Sequence[str]]:
    """Yield a row for each number that is, or is not, identified."""
    p = result.parameters
    described, values, half = p.in_units(p.start), p.in_units(result.values), half_widths(result)
    for i in range(len(p)):
        if bool(result.identified[i]) == identified:
            numbers = f"{described[i]:.4g}", f"{values[i]:.4g}", f"{half[i]:.2g}"
            yield p.label(i), KINDS[p.kinds[i]].unit, *numbers, "" if p.estimated[i] else "as described"
