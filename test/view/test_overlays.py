"""Several runs in one figure: identity of the curves, content of the table, and left-out signals by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from recording_support import standing
from refusals import refusal

from bipedsim.analysis import RunSummary, difference_lines, differences
from bipedsim.cli.main import main
from bipedsim.config import RunConfig
from bipedsim.errors import RecordingError
from bipedsim.recording import Recording
from bipedsim.runs import run as simulate
from bipedsim.view.overlays import DASHES, Comparison, overlay, picture
from bipedsim.view.palette import foot_colour


def loaded(n: int, factor: float, seed: int = 3) -> Recording:
    """Return a run whose forces oscillate, with an amplitude in proportion to ``factor``."""
    run = standing(n)
    run.wrench[:, :, 2] *= 1.0 + 0.1 * factor * np.sin(5.0 * run.t)[:, None]
    run.joint_position[:] = factor * np.random.default_rng(seed).standard_normal(run.joint_position.shape)
    return run


def drawn(comparison: Comparison) -> Figure:
    """Return the figure of the panels."""
    figure = Figure(layout="constrained")
    comparison.draw(figure)
    return figure


def axes_of(figure: Figure, title: str) -> Axes:
    """Return the axes whose title ends with ``title``."""
    return next(ax for ax in figure.axes if ax.get_title().endswith(title))


def test_curves_keep_their_colours_and_have_the_dash_of_their_run() -> None:
    runs = {"one": loaded(400, 1.0), "two": loaded(400, 2.0), "three": loaded(400, 3.0)}
    figure = drawn(Comparison(runs, ["forces", "joints"]))
    ax = axes_of(figure, "f_z [N]")
    for k, foot in enumerate(runs["one"].feet):
        mine = [line for line in ax.lines if str(line.get_label()).lstrip("_").startswith(f"{foot} foot")]
        assert {line.get_color() for line in mine} == {foot_colour(k)}
        for line, run in zip(mine, runs.values(), strict=True):
            np.testing.assert_allclose(np.asarray(line.get_ydata()), run.wrench[:, k, 2], rtol=1e-12)
        for line, dash in zip(mine, DASHES, strict=False):
            like = Line2D([], [], linestyle=dash, linewidth=line.get_linewidth())
            assert vars(line)["_dash_pattern"] == vars(like)["_dash_pattern"]
    highest = max(float(run.wrench[:, :, 2].sum(axis=1).max()) for run in runs.values())
    assert ax.get_ylim()[1] >= highest
    names = [text.get_text() for part in figure.subfigs for legend in part.legends for text in legend.get_texts()]
    assert names[:3] == ["one", "two", "three"]


def test_the_peaks_of_each_run_that_are_cut_are_named_with_it() -> None:
    runs = {"one": loaded(400, 1.0), "two": loaded(400, 1.0), "three": loaded(400, 1.0)}
    runs["one"].wrench[100, 0, 2], runs["three"].wrench[200, 0, 2] = 1e5, 2e5
    total = {name: float(run.wrench[:, :, 2].sum(axis=1).max()) for name, run in runs.items()}
    ax = axes_of(drawn(Comparison(runs, ["forces"])), "f_z [N]")
    at = {"one": 0.1, "three": 0.2}
    said = [f"{name}: clipped: peak {total[name]:.0f} N at {t:.2f} s" for name, t in at.items()]
    assert ax.get_title("right").splitlines() == said


def test_the_table_is_the_difference_of_the_arrays() -> None:
    runs = [loaded(1000, 1.0), loaded(1000, 2.0)]
    summaries = []
    for run in runs:
        gathered = RunSummary()
        gathered.add(run)
        summaries.append(gathered.figures())
    found = {one.name: one for one in differences(summaries)}
    peaks = [float(run.wrench[:, :, 2].sum(axis=1)[run.t > 0.0].max()) for run in runs]
    assert found["fz_N.max"].values == pytest.approx(peaks, rel=1e-12)
    assert found["fz_N.max"].apart[0] == pytest.approx(peaks[1] - peaks[0], rel=1e-9)
    assert "ticks" not in found
    assert differences([summaries[0], summaries[0]]) == []
    at = [{"physics": {"depth_m": {"worst": 1e-12 * i, "at_s": float(i)}}} for i in range(2)]
    assert differences(at) == [], "when rounding was worst says nothing"
    (line,) = (line for line in difference_lines(list(found.values()), ["a", "b"]) if line.startswith("fz_N.max [N]"))
    assert [float(word) for word in line.split()[2:]] == pytest.approx([*peaks, peaks[1] - peaks[0]], rel=1e-5)


def test_text_and_what_one_lacks_have_no_difference() -> None:
    found = differences([{"verdict": "stood", "x_m": 1.0, "n": 3}, {"verdict": "fell", "x_m": 1.0 + 1e-9, "k_N": 2.0}])
    assert [(one.name, one.values, one.apart) for one in found] == [
        ("verdict", ("stood", "fell"), (None,)),
        ("n", (3, None), (None,)),
        ("k_N", (None, 2.0), (None,)),
    ]


def test_long_texts_stand_below_the_table_which_they_would_make_wide() -> None:
    verdicts = ["walked 1.45 m in 7 s, 7 steps, did not fall", "fell at 2 s"]
    found = differences([{"verdict": verdict, "n": 3 + k} for k, verdict in enumerate(verdicts)])
    lines = difference_lines(found, ["first", "second"])
    assert [line.split() for line in lines[:2]] == [["first", "second", "second", "-", "first"], ["n", "3", "4", "+1"]]
    assert lines[2:] == ["verdict", f"  first   {verdicts[0]}", f"  second  {verdicts[1]}"]
    assert difference_lines([one for one in found if one.name == "verdict"], ["first", "second"]) == lines[2:]


def test_the_table_stays_on_the_picture_however_long_its_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[float] = []

    @contextmanager
    def looked_at(*args: Any) -> Iterator[Figure]:
        with picture(*args) as figure:
            yield figure
            (text,) = figure.subfigs[1].texts
            seen.append(text.get_window_extent(figure.canvas.get_renderer()).x1 / figure.bbox.width)

    monkeypatch.setattr(sys.modules["bipedsim.view.overlays"], "picture", looked_at)
    runs = {f"a_run_with_a_name_as_long_as_this_one_{k}": loaded(100, 1.0 + k) for k in range(4)}
    figures = [{"n": k} for k in range(4)]
    overlay(runs, tmp_path / "runs.png", ["forces"], figures)
    assert 0.5 < seen[0] < 1.0


def test_only_the_common_time_is_drawn_and_what_differs_is_told() -> None:
    long, short = loaded(1000, 1.0), loaded(1000, 1.0).rows(slice(100, 601, 2))
    short.setpoint = np.zeros_like(short.setpoint)
    comparison = Comparison({"long": long, "short": short}, ["forces", "joints", "modes"])
    told = "\n".join(comparison.notes)
    for said in ("rates differ: long 1000 Hz, short 500 Hz", "lengths differ", "only in short: setpoint", "modes"):
        assert said in told
    ax = axes_of(drawn(comparison), "f_z [N]")
    for line in ax.lines:
        if line.get_transform() == ax.transData:
            times = np.asarray(line.get_xdata())
            assert short.t[0] <= times[0]
            assert times[-1] <= short.t[-1]


def test_other_robots_and_other_times_are_refused_by_name() -> None:
    one, two = loaded(100, 1.0), loaded(100, 1.0)
    two.robot = "talos"
    with refusal(RecordingError, place="a and b"):
        Comparison({"a": one, "b": two}, ["forces"])
    late = loaded(100, 1.0)
    late.t += 50.0
    with refusal(RecordingError, place="a and b"):
        Comparison({"a": one, "b": late}, ["forces"])


def test_the_command_prints_the_table_and_writes_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, factor in (("a", 1.0), ("b", 2.0)):
        loaded(500, factor).save(tmp_path / f"{name}.npz")
    assert main(["plot", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--panels", "forces"]) == 0
    out = capsys.readouterr().out
    assert "b - a" in out.splitlines()[0]
    assert "fz_N.max [N]" in out
    assert (tmp_path / "a_with_b.png").stat().st_size > 10_000
    assert main(["plot", str(tmp_path / "a.npz"), str(tmp_path / "a.npz")]) != 0
    assert "named twice" in capsys.readouterr().err


@pytest.mark.long
def test_figures_of_a_stretch_are_of_its_rows_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs that differ after one second have equal metrics before. Later counts are not included."""
    paths = []
    for name, duration in (("short", 1.2), ("long", 1.6)):
        recording, _ = simulate(RunConfig(scenario="squat", duration=duration))
        recording.save(tmp_path / f"{name}.npz")
        paths.append(str(tmp_path / f"{name}.npz"))
    words = ["plot", *paths, "--panels", "forces", "-o", str(tmp_path / "both.png")]
    assert main([*words, "--to", "1.0"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split() for line in told[:2]] == [["settings", "short", "long"], ["duration", "1.2", "s", "1.6", "s"]]
    assert told[2] == "all metrics are equal up to rounding"
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "duration_s [s]" in told
    assert "+0.4" in told
