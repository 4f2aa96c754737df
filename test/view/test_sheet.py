"""Output of figures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from bipedsim.view.sheet import fit_titles, picture, small_title, without_metrics, write_png


def drawing() -> Figure:
    """Return a figure whose axes move during layout, because of titles, labels, a legend and its own scale."""
    figure = Figure(figsize=(6.0, 3.0), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("a title", x=0.01, ha="left")
    left, right = figure.subplots(1, 2)
    left.plot(np.linspace(0.0, 1e4, 200), np.sin(np.arange(200.0)), label="sine")
    left.set_title("a title that is too long for the part of the figure that it stands above", loc="left")
    left.set_ylabel("force [N]")
    left.legend()
    figure.colorbar(right.imshow(np.arange(12.0).reshape(3, 4)))
    fit_titles(figure)
    return figure


@pytest.mark.parametrize("dpi", [80, 120])
def test_a_picture_is_the_one_of_savefig_to_the_byte(dpi: int) -> None:
    ours, theirs = io.BytesIO(), io.BytesIO()
    write_png(drawing(), ours, dpi)
    drawing().savefig(theirs, dpi=dpi, format="png")
    assert ours.getvalue() == theirs.getvalue()


def test_a_picture_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    draw = Figure.draw

    def counted(figure: Figure, renderer: Any) -> None:
        drawn.append(figure)
        draw(figure, renderer)

    with picture(tmp_path / "one.png", (4.0, 3.0), "") as figure:
        figure.subplots().plot([0.0, 1.0])
        monkeypatch.setattr(Figure, "draw", counted)
    assert len(drawn) == 1
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_metrics_in_a_title_are_known_as_such_and_brackets_of_a_name_are_none() -> None:
    named, measured = Figure().subplots(1, 2)
    small_title(named, "l_knee   (old)")
    small_title(measured, "l_knee", "peak 3, limit 4")
    assert without_metrics(named) == named.get_title() == "l_knee   (old)"
    assert without_metrics(measured) == "l_knee"
    assert "peak 3, limit 4" in measured.get_title()
    small_title(measured, "r_knee")
    assert without_metrics(measured) == measured.get_title() == "r_knee"
