"""A run on a page, or in one file that plays it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from tqdm import tqdm

from bipedsim.errors import RecordingError
from bipedsim.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.recording import Recording
from bipedsim.view.animation import about_run, ground_of
from bipedsim.view.page import figures
from bipedsim.view.page.frames import RATE, Frames, frames_of, read_thinned
from bipedsim.view.page.page import LOCAL, PORT, Page, import_viser
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
        robot = load_robot(_robot_of(recording))
    frames = frames_of(recording, robot, progress)
    title = "   ".join(filter(None, (robot.name, about_run(recording))))
    return Shown(robot, ground or ground_of(recording), frames, title)


def _robot_of(recording: Recording) -> str:
    """Return name or file of the robot.

    Raises:
        RecordingError: The recording does not say.
    """
    name = recording.about.get("robot") or recording.robot
    if not name:
        raise RecordingError("the recording does not say which robot it is of: give its name or robot.yaml (--robot)")
    return name


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
        page.scene.layers["caption"].switch(True)
        recorder = page.server.get_scene_serializer()
        for i in tqdm(range(len(shown.frames)), desc="frames", unit="frame", disable=not progress, leave=False):
            page.scene.show(shown.frames.instant(i))
            after = shown.frames.t[min(i + 1, len(shown.frames) - 1)] - shown.frames.t[i]
            recorder.insert_sleep(float(after) if after > 0.0 else 1.0 / RATE)
        text = recorder.as_html()
    finally:
        page.close()
    notes = " ".join(shown.frames.notes)
    box = (
        '<div style="position:fixed;left:8px;top:8px;max-width:21em;background:#ffffffcc;border-radius:4px;padding:6px;'
        f'font-family:sans-serif;pointer-events:none;z-index:10"><b>{escape(shown.title)}</b>'
        f"{figures.legend()}<small>{escape(notes)}</small></div>"
    )
    body = text.rindex("</body>")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text[:body] + box + text[body:], encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written ({error.strerror or error})") from error
    size = path.stat().st_size / 1e6
    return f"{len(shown.frames)} frames, {RATE:g} a second; {page.scene.detail}; {size:.1f} MB"
