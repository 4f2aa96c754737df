"""The page in a real browser: requests, texts, and positions of the drawn elements."""

from __future__ import annotations

import os
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from browser_support import SMALL, Tab, browser, project, share_of

pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from bipedsim.config import RunConfig
from bipedsim.runs import run
from bipedsim.view.page import Instant, Page, Replay, ViewedRun, open_replay, read_shown, write_html
from bipedsim.view.page.figures import BODY_ID, FOOT_ID, TIME_ID
from bipedsim.view.page.signals import axis
from bipedsim.view.palette import COP_COLOUR, FORCE_COLOUR, foot_colour

EYE, TARGET, FOV = np.array([1.5, -1.9, 1.1]), np.array([0.0, 0.0, 0.35]), 0.8
CAMERA = (
    f"?initialCameraPosition={EYE[0]},{EYE[1]},{EYE[2]}"
    f"&initialCameraLookAt={TARGET[0]},{TARGET[1]},{TARGET[2]}&initialCameraFov={FOV}"
)
SLOWLY = 0.02
"""Speed of the replay: a browser that draws in software on a busy machine must not miss it."""


LOOKS: list[bool] = []
"""Results of the player's polls whether to play."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Callable[[str], Tab]]:
    with browser() as open_tab:
        yield open_tab


@pytest.fixture
def opened(chromium: Callable[[str], Tab]) -> Iterator[Callable[[str], Tab]]:
    """Open tabs that are closed again: they draw as long as they are there."""
    tabs: list[Tab] = []

    def opens(address: str) -> Tab:
        tabs.append(chromium(address))
        return tabs[-1]

    yield opens
    for tab in tabs:
        tab.page.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> ViewedRun:
    """biped14 takes its first steps."""
    path = tmp_path_factory.mktemp("runs") / "walk.npz"
    recording, _ = run(RunConfig(scenario="walk", duration=3.0))
    recording.save(path)
    return read_shown(path)


@pytest.fixture
def played(shown: ViewedRun) -> Iterator[tuple[Page, Replay]]:
    page, replay = open_replay(shown, port=0, speed=SLOWLY)
    wait = replay._playing.wait

    def waits(seconds: float) -> bool:
        LOOKS.append(wait(seconds))
        return LOOKS[-1]

    replay._playing.wait = waits  # type: ignore[method-assign]
    thread = threading.Thread(target=replay.run)
    thread.start()
    yield page, replay
    replay.stop()
    thread.join()
    page.close()


def player_looks(times: int, playing: bool) -> None:
    """Wait until the player has looked so many times whether it is to play, and found that it is, or is not."""
    end = len(LOOKS) + times
    while len(LOOKS) < end or LOOKS[-1] != playing:
        time.sleep(0.01)


def local(tab: Tab, address: str) -> bool:
    return all(url.startswith((address, "blob:", "data:")) for url in tab.requests)


def press(tab: Tab, name: str) -> None:
    """Press a button; without waiting for the frames that Playwright would have it stand still for."""
    button = tab.page.locator("button, label", has_text=re.compile(f"^{name}$")).first
    button.dispatch_event("click")


def foot_points(shown: ViewedRun, instant: Instant, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return CoP and force of foot ``k`` in the world, by pinocchio alone."""
    robot = shown.robot
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, instant.q)
    sole = robot.soles[k]
    pose = data.oMi[sole.joint_id] * sole.placement_joint_sole
    assert instant.cop is not None
    assert instant.wrench is not None
    return pose.act(np.array([*instant.cop[k], 0.0])), pose.rotation @ instant.wrench[k, :3]


@pytest.mark.long
def test_nothing_is_played_before_a_browser_is_there(played: tuple[Page, Replay]) -> None:
    page, replay = played
    first = replay.now
    replay.play_when_seen()
    player_looks(2, playing=False)
    # A plain HTTP client does not count as a browser.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(page.address, timeout=60) as answer:
        assert b"<html" in answer.read()
    player_looks(2, playing=False)
    assert replay.now == first
    with browser(SMALL) as opened:
        tab = opened(page.address)
        tab.wait(lambda: replay.now > first, "it plays")
        replay.pause()
        now, before = replay.now, set(page.server.get_clients())
        tab.page.reload(wait_until="commit")
        tab.wait(lambda: bool(set(page.server.get_clients()) - before), "it is there again")
        player_looks(2, playing=False)
        assert replay.now == now, "who comes later does not set going what was paused"


def test_nothing_moves_after_a_pause(played: tuple[Page, Replay]) -> None:
    _, replay = played
    with replay._lock:
        # Another browser controls the page. The player, asked to continue, waits for its turn.
        replay.play()
        player_looks(1, playing=True)
        replay.pause()
        now = replay.now
    player_looks(2, playing=False)
    assert replay.now == now


@pytest.mark.slow
def test_replay_follows_the_reader(opened: Callable[[str], Tab], shown: ViewedRun, played: tuple[Page, Replay]) -> None:
    page, replay = played
    tab = opened(page.address + CAMERA)
    assert tab.text(TIME_ID) == f"t = {shown.frames.t[0]:.3f} s"
    # In its first second both feet stand, later one swings.
    single = next(i for i in range(len(shown.frames)) if (shown.frames.recording.mode[i] == 0).any())
    time = float(shown.frames.t[single])
    box = tab.page.locator("input[type='text']").first
    box.fill(f"{time:.3f}")
    box.press("Enter")
    tab.wait(lambda: abs(replay.now - time) < 0.02, "the slider moves the replay")
    tab.wait(lambda: tab.text(TIME_ID) == f"t = {replay.now:.3f} s", "the text says the time of the slider")
    instant = shown.frames.instant(shown.frames.nearest(replay.now))
    assert instant.mode is not None
    for sole, mode in zip(shown.robot.soles, instant.mode, strict=True):
        said = tab.text(f"{FOOT_ID}{sole.name}")
        assert (said == "in the air") == (mode == 0)
        assert mode == 0 or "stick" in said or "slide" in said
    before = tab.frames
    press(tab, "Play")
    tab.wait(lambda: tab.frames > before + 10, "frames arrive")
    tab.wait(lambda: replay.now > time + 0.01, "time goes on")
    press(tab, "Pause")
    tab.wait(lambda: tab.text(TIME_ID) == f"t = {replay.now:.3f} s", "the page stays where the replay does")
    # By keyboard alone: a part of a name, and the space bar on the button.
    assert page.plots is not None
    plots, signal = page.plots.names, tab.page.get_by_label("signal").first
    signal.fill("zmp")
    tab.page.get_by_role("option").first.wait_for(state="attached")
    signal.press("ArrowDown")
    signal.press("Enter")
    tab.wait(lambda: signal.input_value() == "zmp_margin [m]", "the signal")
    tab.page.get_by_role("button", name="new plot", exact=True).press(" ")
    tab.wait(lambda: page.plots is not None and page.plots.names == [*plots, ["zmp_margin [m]"]], "its plot")
    now = replay.now
    press(tab, "back")
    tab.wait(lambda: replay.now < now, "one step back")
    assert now - replay.now < 0.07
    assert tab.errors == []
    assert local(tab, page.address), tab.requests


@pytest.mark.slow
def test_arrow_and_cop_are_where_they_must_be(
    opened: Callable[[str], Tab], shown: ViewedRun, played: tuple[Page, Replay]
) -> None:
    page, replay = played
    modes = shown.frames.recording.mode
    single = next(i for i in range(len(shown.frames)) if (modes[i] == 0).any())
    stance = int(np.flatnonzero(modes[single] != 0)[0])
    # Elements that may hide the CoP.
    for name in ("robot", "com", "capture", "plan"):
        page.scene.layers[name].switch(False)
    replay.go(float(shown.frames.t[single]))
    instant = shown.frames.instant(single)
    cop, force = foot_points(shown, instant, stance)
    swing, _ = foot_points(shown, shown.frames.instant(0), 1 - stance)
    # Halfway up an arrow that is 0.35 times as long as the robot is high for its weight.
    middle = cop + 0.5 * 0.35 * page.scene.size * force / shown.robot.weight
    tab = opened(page.address + CAMERA)
    width = tab.canvas_width()
    at = project(np.array([cop, middle, swing]) + page.scene.offset, EYE, TARGET, FOV, width)
    tab.wait(lambda: share_of(tab.picture(), at[1], FORCE_COLOUR) > 0.3, "the arrow is at the stance foot")
    picture = tab.picture()
    assert share_of(picture, at[0], COP_COLOUR) > 0.15
    assert share_of(picture, at[2], COP_COLOUR) == 0.0
    # As both feet stand there is an arrow on the other one, too.
    replay.go(float(shown.frames.t[0]))
    cop, _ = foot_points(shown, shown.frames.instant(0), 1 - stance)
    there = project(cop[None] + page.scene.offset, EYE, TARGET, FOV, width)[0]
    tab.wait(lambda: share_of(tab.picture(), there, COP_COLOUR) > 0.15, "the other CoP, as both feet stand")
    assert tab.errors == []


KNEE = "r_knee"


@pytest.mark.slow
def test_a_file_plays_without_a_server(opened: Callable[[str], Tab], shown: ViewedRun, tmp_path: Path) -> None:
    path = tmp_path / "walk.html"
    said = write_html(shown, path)
    assert f"{len(shown.frames)} frames" in said
    assert path.stat().st_size < 2e6
    tab = opened(path.as_uri())
    # The player's box for the time is the only text input there is.
    clock = tab.page.locator("input[type='text'], input:not([type])").first

    def seconds() -> float:
        return float(clock.input_value().split()[0])

    first = seconds()
    tab.wait(lambda: seconds() != first, "the player plays")
    tab.wait(lambda: float(np.ptp(tab.picture(), axis=2).max()) > 0.3, "it draws in colours")

    recording, t = shown.frames.recording, shown.frames.t
    # The box takes tenths of a second.
    tenths = np.searchsorted(t - t[0], 0.1 * np.arange(1, 10 * int(t[-1])) + 1e-6) - 1
    single = next(int(i) for i in tenths if (recording.mode[i] == 0).any())
    seconds_of = f"{t[single] - t[0] + 0.01:.1f}"

    def at(i: int) -> Callable[[], bool]:
        return lambda: tab.text(TIME_ID) == f"t = {t[i]:.3f} s"

    clock.fill(seconds_of)
    tab.wait(at(single), "the figures are those of the time")
    for sole, mode in zip(shown.robot.soles, recording.mode[single], strict=True):
        assert (tab.text(f"{FOOT_ID}{sole.name}") == "in the air") == (mode == 0)
    force = tab.page.locator(".bipedsim-title").first.locator("b").all_inner_texts()
    assert [float(text) for text in force] == pytest.approx(recording.wrench[single, :, 2].tolist(), abs=0.6)
    # The curve of the stance foot meets the line of the time, three quarters along, where its force is.
    stance = int(np.flatnonzero(recording.mode[single] != 0)[0])
    box = tab.page.locator("#bipedsim-curves canvas").first.bounding_box()
    assert box is not None
    left, width = box["x"] + 40, box["width"] - 46
    low, high = axis(0.0, float(recording.wrench[:, :, 2].max()), 1.0)
    share = (recording.wrench[single, stance, 2] - low) / (high - low)
    meets = np.array([left + 0.75 * width - 3, box["y"] + 4 + (box["height"] - 22) * (1.0 - share)])
    tab.wait(lambda: share_of(tab.picture(), meets, foot_colour(stance)) > 0.1, "the curve at the time")
    # A click on a curve goes to its time.
    tab.page.mouse.click(left + (0.75 - 0.25 / 4.0) * width, box["y"] + 0.5 * box["height"])
    before = int(np.searchsorted(t, t[single] - 0.25))
    tab.wait(lambda: any(at(i)() for i in range(before - 1, before + 1)), "a quarter of a second before")

    clock.fill(seconds_of)
    tab.wait(at(single), "the same again")
    joint, number = shown.robot.joint_names.index(KNEE), shown.robot.model.getJointId(KNEE)

    def clicked() -> bool:
        tab.page.mouse.click(*tab.body_at(number))
        tab.page.wait_for_timeout(200)
        return tab.page.locator(f"#{BODY_ID}").count() > 0

    tab.wait(clicked, "the figures of the body that was clicked")
    figures = dict(row.split("\t") for row in tab.text(BODY_ID).splitlines())
    assert figures["joint"] == KNEE
    angle = float(np.rad2deg(recording.joint_position[single, joint]))
    assert float(figures["position"].split()[0]) == pytest.approx(angle, abs=0.06)
    effort = float(recording.joint_effort[single, joint])
    assert float(figures["effort"].split()[0]) == pytest.approx(effort, abs=0.06)

    def followed() -> float:
        return float(tab.page.evaluate("window.__viserMutable.nodeRefFromName['/world'].position.x"))

    # When the player goes back, values of the end must not remain.
    clock.fill(f"{t[-1] - t[0]:.1f}")
    tab.wait(lambda: abs(followed()) > 0.1, "the world has moved with the robot")
    clock.fill("0.1")
    tab.wait(lambda: abs(followed()) < 1e-3, "the world is where it was")
    assert tab.errors == []
    assert local(tab, path.as_uri()), tab.requests


PIXELS = """title => {
    const plot = [...document.querySelectorAll(".uplot")].find(one => (one.ariaLabel || "").includes(title));
    const canvas = plot.querySelector("canvas"), over = plot.querySelector(".u-over");
    const [inner, outer] = [over.getBoundingClientRect(), canvas.getBoundingClientRect()];
    const scale = canvas.width / outer.width;
    const box = [inner.x - outer.x, inner.y - outer.y, inner.width, inner.height].map(x => Math.round(scale * x));
    return [box[2], [...canvas.getContext("2d").getImageData(...box).data]];
}"""
"""Width [px] and RGBA of the area inside the axes of a plot."""


@pytest.mark.slow
def test_a_foot_in_the_air_has_no_curve_of_its_cop(
    opened: Callable[[str], Tab], shown: ViewedRun, played: tuple[Page, Replay]
) -> None:
    page, replay = played
    replay.go(float(shown.frames.t[-1]))
    tab = opened(page.address + CAMERA)
    tab.wait(lambda: tab.text(TIME_ID) == f"t = {replay.now:.3f} s", "the end of the run")
    width, data = tab.page.evaluate(PIXELS, "CoP to edge")
    picture = np.array(data).reshape(-1, width, 4)[:, :, :3]
    t, modes = shown.frames.t, shown.frames.recording.mode
    column = np.rint((width - 1) * (t - t[0]) / (t[-1] - t[0])).astype(int)
    for k in range(len(shown.robot.soles)):
        colour = np.array([int(foot_colour(k)[i : i + 2], 16) for i in (1, 3, 5)])
        near = np.abs(picture - colour).max(axis=2) < 40
        drawn = near.any(axis=0)
        steps = [slice(a - 3, b + 4) for a, b in pairwise(column)]
        air = [steps[i] for i in range(1, len(t) - 2) if (modes[i - 1 : i + 3, k] == 0).all()]
        ground = [steps[i] for i in range(1, len(t) - 2) if (modes[i - 1 : i + 3, k] != 0).all()]
        assert len(air) > 5
        assert not any(drawn[one].any() for one in air), f"foot {k} is in the air"
        assert np.mean([drawn[one].any() for one in ground]) > 0.9, f"foot {k} is on the ground"


AXE = next((path for path in (Path(os.environ.get("AXE_CORE", "")),) if path.is_file()), None)
"""axe.min.js of the npm package axe-core, which the environment variable AXE_CORE names."""


@pytest.mark.slow
@pytest.mark.skipif(AXE is None, reason="AXE_CORE does not name axe.min.js of the npm package axe-core")
@pytest.mark.parametrize("kind", ["page", "file"])
def test_axe_finds_nothing_serious(
    opened: Callable[[str], Tab], shown: ViewedRun, played: tuple[Page, Replay], tmp_path: Path, kind: str
) -> None:
    assert AXE is not None
    write_html(shown, tmp_path / "walk.html")
    tab = opened(played[0].address if kind == "page" else (tmp_path / "walk.html").as_uri())
    tab.wait(lambda: tab.page.locator("[role=slider][aria-label='time [s]']").count() > 0, "the controls have names")
    tab.wait(lambda: "t = " in tab.page.locator(f"#{TIME_ID}").inner_text(), "the time")
    tab.page.evaluate(AXE.read_text(encoding="utf-8"))
    report = tab.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    found = {
        one["id"]: one["nodes"][0]["html"] for one in report["violations"] if one["impact"] in ("serious", "critical")
    }
    assert found == {}
