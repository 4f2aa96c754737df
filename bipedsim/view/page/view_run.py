"""A run on a page, or in one file that plays it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from bipedsim.analysis import robot_of
from bipedsim.errors import RecordingError
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.view.animation import about_run, ground_of
from bipedsim.view.page.beside import Beside
from bipedsim.view.page.frames import RATE, Frames, frames_of, read_thinned
from bipedsim.view.page.page import Page, import_viser
from bipedsim.view.page.params import LOCAL, PORT
from bipedsim.view.page.replay import Replay

IN_FILE = 30_000
"""Triangles of a robot in a file at most: they are as much of its size as a minute of motion."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What it takes to show a run.

    Attributes:
        robot, ground, frames: What ran, on what, when.
        title: What it was.
    """

    robot: Robot
    ground: Ground
    frames: Frames
    title: str


def read_shown(
    path: Path | str,
    robot: Robot | None = None,
    ground: Ground | None = None,
    start: float | None = None,
    stop: float | None = None,
    progress: bool = False,
) -> Shown:
    """Read what a page shows of a run, thinned to what a screen can show.

    Args:
        path: See :func:`bipedsim.load_run`.
        robot: What ran; None takes the robot whose name the recording has.
        ground: What it ran on; None takes that of the recording, and z = 0 where it has none.
        start, stop: Stretch of the run [s]; None is its begin, its end.
        progress: Show a bar on stderr, where it takes long.

    Raises:
        RecordingError: Nothing readable is there, or it lacks what a configuration needs; the message says what.
        ConfigError: viser is not installed.
    """
    import_viser()
    recording = read_thinned(path, start=start, stop=stop)
    if robot is None:
        robot = robot_of(recording)
    frames = frames_of(recording, robot, progress)
    title = "   ".join(filter(None, (robot.name, about_run(recording))))
    return Shown(robot, ground or ground_of(recording), frames, title)


def open_replay(shown: Shown, host: str = LOCAL, port: int = PORT, speed: float = 1.0) -> tuple[Page, Replay]:
    """Return a page of the run, and what plays it: call its ``run``.

    Raises:
        ConfigError: No port is free.
    """
    page = Page(shown.robot, shown.ground, host, port, shown.frames.objects, shown.title)
    return page, Replay(page, shown.robot, shown.frames, speed)


def write_html(shown: Shown, path: Path, progress: bool = False) -> str:
    """Write a run as one file that plays in any browser, without a server and without anything from the network.

    Args:
        shown: The run.
        path: .html; folders that are missing are made.
        progress: Show a bar on stderr.

    Returns:
        What was simplified for it, and its size.

    Raises:
        RecordingError: The file cannot be written.
    """
    page = Page(shown.robot, shown.ground, LOCAL, 0, shown.frames.objects, shown.title, IN_FILE)
    try:
        beside, at = Beside(shown.robot, page.scene.bodies), 0.0
        recorder = page.server.get_scene_serializer()
        for i in tqdm(range(len(shown.frames)), desc="frames", unit="frame", disable=not progress, leave=False):
            instant = shown.frames.instant(i)
            beside.add(at, instant, page.scene.show(instant))
            after = float(shown.frames.t[min(i + 1, len(shown.frames) - 1)] - shown.frames.t[i])
            after = after if after > 0.0 else 1.0 / RATE
            recorder.insert_sleep(after)
            at += after
        text = recorder.as_html()
    finally:
        page.close()
    body = text.rindex("</body>")
    text = text[:body] + beside.html(shown.title, " ".join(shown.frames.notes)) + text[body:]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written ({error.strerror or error})") from error
    size = path.stat().st_size / 1e6
    return f"{len(shown.frames)} frames, {RATE:g} a second; {page.scene.detail}; {size:.1f} MB"
