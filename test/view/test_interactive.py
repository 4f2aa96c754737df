"""Figures as pages, in a real browser: all panels and curves, linked in time, without network access."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from browser_support import Tab, browser
from refusals import refusal

pytest.importorskip("bokeh", reason="bokeh, the extra `view`, is not installed")

from bipedsim import RunConfig, load_run, run
from bipedsim.cli.main import main
from bipedsim.errors import RecordingError
from bipedsim.view import picture
from bipedsim.view.interactive import RESET_ID
from bipedsim.view.plot_joints import shown_torques

PLOTS = "Bokeh.documents.flatMap(document => document.roots())"
TIMES = f"""{PLOTS}.filter(plot => plot.toolbar.tools.some(tool => tool.type == "CrosshairTool"))
    .map(plot => [plot.x_range.start, plot.x_range.end])"""
CURVES = f"""{PLOTS}.flatMap(plot => plot.renderers.filter(one => one.glyph.type == "Line").map(one =>
    [one.glyph.x.field, one.glyph.y.field].map(field => Array.from(one.data_source.get_array(field)))))"""
FRAMES = f"""{PLOTS}.filter(plot => parseFloat(plot.below[0].major_label_text_font_size) > 0).map(plot => {{
    const view = Bokeh.index.find_one(plot), box = view.el.getBoundingClientRect();
    return [box.x + view.frame.bbox.right, box.y + view.frame.bbox.bottom]
}})"""
"""Lower right corners [px] of the areas between the axes of plots whose x axis has labels."""
# At once: a mouse that rests for 300 ms after it went down drags nothing, and messages to a busy browser take longer.
DRAG = """([from, to, y]) => {
    let target = document.elementFromPoint(from, y)
    while (target.shadowRoot?.elementFromPoint(from, y)) target = target.shadowRoot.elementFromPoint(from, y)
    for (const [kind, x] of [["down", from], ["move", 0.5 * (from + to)], ["move", to], ["up", to]])
        target.dispatchEvent(new PointerEvent(`pointer${kind}`, {bubbles: true, composed: true, pointerId: 1,
            isPrimary: true, pointerType: "mouse", button: 0, buttons: kind == "up" ? 0 : 1, clientX: x, clientY: y}))
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Callable[[str], Tab]]:
    with browser() as open_tab:
        yield open_tab


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the files of a squat under two contact models."""
    folder = tmp_path_factory.mktemp("runs")
    for name, model in (("first", "one_step"), ("second", "feedback_linearised")):
        recording, _ = run(RunConfig(scenario="squat", duration=0.4, contact_model=model))
        recording.save(folder / f"{name}.npz")
    return [folder / "first.npz", folder / "second.npz"]


def drawn(tab: Tab, panels: int) -> None:
    tab.wait(lambda: tab.page.locator(".bk-Figure").count() >= panels, "all panels are drawn")
    tab.wait(lambda: bool(tab.page.evaluate(f"{PLOTS}.length")), "the document is there")


@pytest.mark.long
def test_page_has_the_curves_and_zooms_together(
    chromium: Callable[[str], Tab], runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    page = runs[0].with_name("first_plot.html")
    assert main(["plot", str(runs[0]), "-o", str(page), "--panels", "forces,modes,cop,torques"]) == 0
    assert f"wrote {page}" in capsys.readouterr().out
    tab = chromium(page.as_uri())
    recording = load_run(runs[0])
    pairs = len(shown_torques(recording)[0])
    # Three axes of forces, modes, CoP, and a pair of joints each.
    drawn(tab, 3 + 1 + 1 + pairs)
    curves = [(np.array(x), np.array(y)) for x, y in tab.page.evaluate(CURVES)]
    for wanted in recording.wrench[:, :, 2].T:
        assert any(
            len(y) == len(wanted) and (x == recording.t).all() and (y == wanted.astype(np.float32)).all()
            for x, y in curves
        )
    spans = tab.page.evaluate(TIMES)
    assert len(spans) == 3 + 1 + pairs
    assert spans == [[recording.t[0], recording.t[-1]]] * len(spans)
    box = tab.page.locator(".bk-Figure").first.bounding_box()
    assert box is not None
    # A drag over the upper axes zooms all that are over time.
    mouse, height = tab.page.mouse, box["y"] + 0.6 * box["height"]
    mouse.move(box["x"] + 0.4 * box["width"], height)
    tab.page.evaluate(DRAG, [box["x"] + 0.4 * box["width"], box["x"] + 0.6 * box["width"], height])
    tab.wait(lambda: tab.page.evaluate(TIMES)[0] != spans[0], "the axes zoom")
    low, high = tab.page.evaluate(TIMES)[0]
    assert tab.page.evaluate(TIMES) == [[low, high]] * len(spans)
    assert 0.1 < low < 0.2 < high < 0.3

    def pointed_at(said: str) -> bool:
        mouse.move(box["x"] + 0.45 * box["width"], height)
        mouse.move(box["x"] + 0.5 * box["width"], height)
        # The text of a tooltip is in a shadow tree, which locators search.
        return tab.page.locator(".bk-Tooltip").get_by_text(said).count() > 0

    tab.wait(lambda: pointed_at("left foot"), "curves say their values")
    tab.page.locator(f"#{RESET_ID}").dispatch_event("click")
    tab.wait(lambda: tab.page.evaluate(TIMES) == spans, "everything is shown again")
    assert tab.errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in tab.requests), tab.requests


@pytest.mark.long
def test_runs_lie_over_each_other(chromium: Callable[[str], Tab], runs: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "both.html"
    assert main(["plot", *map(str, runs), "-o", str(page), "--panels", "torques"]) == 0
    tab = chromium(page.as_uri())
    recordings = [load_run(path) for path in runs]
    groups = shown_torques(recordings[0])[0]
    drawn(tab, len(groups))
    curves = [np.array(y) for _, y in tab.page.evaluate(CURVES)]
    for recording in recordings:
        for wanted in recording.joint_effort[:, [joint for pair in groups.values() for joint in pair]].T:
            assert any((y == wanted.astype(np.float32)).all() for y in curves)
    for name in ("first", "second"):
        assert name in tab.page.inner_text("body")
    assert tab.errors == []


@pytest.mark.long
def test_the_last_label_of_time_is_whole(chromium: Callable[[str], Tab], runs: list[Path], tmp_path: Path) -> None:
    """Also where it reaches into the room of the next plot."""
    page = tmp_path / "velocities.html"
    assert main(["plot", str(runs[0]), "-o", str(page), "--panels", "velocities"]) == 0
    tab = chromium(page.as_uri())
    drawn(tab, 7)
    tab.page.set_viewport_size({"width": 1000, "height": 700})

    def whole() -> bool:
        corners, picture = tab.page.evaluate(FRAMES), tab.picture()
        assert len(corners) == 4, "the lowest axes of each column"
        found = []
        for right, bottom in corners:
            at = round(right)
            label = picture[round(bottom) + 8 : round(bottom) + 24, at - 16 : at + 16].min(axis=(0, 2)) < 0.7
            left, beyond = np.flatnonzero(label[:16]), np.flatnonzero(label[16:])
            # "0.4" is in the middle below the end of the axis.
            found.append(len(left) > 3 and len(beyond) > 0 and abs(beyond.max() - (15 - left.min())) <= 2)
        return all(found)

    # The axes follow the window, and are painted, in a moment of their own, however long that takes.
    tab.wait(whole, "the last label of each column is whole")


@pytest.mark.long
def test_other_kinds_are_refused_with_the_way_out(runs: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    with refusal(RecordingError, place="AxesImage"), picture(page, (3.0, 2.0), "") as figure:
        figure.subplots().imshow(np.eye(2))
    assert not page.exists()
