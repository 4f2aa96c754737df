"""Show a recorded run on a page, or write a static HTML file that plays it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bipedsim.analysis import robot_of
from bipedsim.config import ProgressBar
from bipedsim.errors import RecordingError
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.view.animation import about_run, ground_of
from bipedsim.view.page.beside import SidePanel
from bipedsim.view.page.client import adapted
from bipedsim.view.page.frames import RATE, Frames, frames_of, read_thinned
from bipedsim.view.page.page import Page, import_viser
from bipedsim.view.page.params import LOCAL, PORT
from bipedsim.view.page.replay import Replay

IN_FILE = 30_000
"""Maximum number of triangles of a robot in a static file; they are as large as a minute of motion."""

MOVED = 10
"""Interval of the frames that are shown before a file is recorded."""


@dataclass(frozen=True, eq=False)
class ViewedRun:
    """Data needed to show a run.

    Attributes:
        robot, ground, frames: Robot, ground and instants of the run.
        title: Title of the run.
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
) -> ViewedRun:
    """Read the data of a run for a page, thinned to the frame rate of a screen.

    Args:
        path: See :func:`bipedsim.load_run`.
        robot: Robot of the run; None for the robot named in the recording.
        ground: Ground of the run; None for that of the recording, or z = 0 without one.
        start, stop: Interval of the run [s]; None for its begin or end.
        progress: Whether to show a progress bar on stderr if it takes long.

    Raises:
        RecordingError: The path contains no readable run, or the run lacks data for a configuration.
        ConfigError: viser is not installed.
    """
    import_viser()
    recording = read_thinned(path, start=start, stop=stop)
    if robot is None:
        robot = robot_of(recording)
    frames = frames_of(recording, robot, progress)
    title = " · ".join(filter(None, (robot.name, about_run(recording))))
    return ViewedRun(robot, ground or ground_of(recording), frames, title)


def open_replay(shown: ViewedRun, host: str = LOCAL, port: int = PORT, speed: float = 1.0) -> tuple[Page, Replay]:
    """Return a page of the run and its player; call the player's ``run``.

    Raises:
        ConfigError: No port is free.
    """
    page = Page(shown.robot, shown.ground, host, port, shown.frames.objects, shown.title)
    return page, Replay(page, shown.robot, shown.frames, speed)


def write_html(shown: ViewedRun, path: Path, progress: bool = False) -> str:
    """Write a run as a static HTML file that plays in any browser, without a server and without network access.

    Args:
        shown: The run.
        path: .html; missing folders are created.
        progress: Whether to show a progress bar on stderr.

    Returns:
        Number of frames, simplifications and size of the file, as a text.

    Raises:
        RecordingError: The file cannot be written.
    """
    page = Page(shown.robot, shown.ground, LOCAL, 0, shown.frames.objects, shown.title, IN_FILE)
    try:
        side_panel, at, count = SidePanel(shown.robot, page.scene.bodies), 0.0, len(shown.frames)
        # When the player begins again, it restores only values that the file contains. The scene is therefore moved
        # before the recording, so that the first frame contains all values that change.
        for i in (*range(0, count, MOVED), count - 1):
            page.scene.show(shown.frames.instant(i))
        recorder = page.server.get_scene_serializer()
        for i in ProgressBar(range(count), desc="frames", unit="frame", disable=not progress):
            instant = shown.frames.instant(i)
            side_panel.add(at, instant, page.scene.show(instant))
            after = float(shown.frames.t[min(i + 1, count - 1)] - shown.frames.t[i])
            after = after if after > 0.0 else 1.0 / RATE
            recorder.insert_sleep(after)
            at += after
        text = recorder.as_html()
    finally:
        page.close()
    text = adapted(text, shown.title, side_panel.html(shown.title, " ".join(shown.frames.notes)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"cannot be written ({error.strerror or error})", path) from error
    size = path.stat().st_size / 1e6
    return f"{len(shown.frames)} frames, {RATE:g} a second; {page.scene.detail}; {size:.1f} MB"
