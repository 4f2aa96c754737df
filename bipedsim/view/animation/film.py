"""Write the animation of a recording to a file: .gif, .mp4, or a strip of postures as .png."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import robot_of
from bipedsim.config import ProgressBar
from bipedsim.errors import ConfigError, RecordingError, UnknownNameError
from bipedsim.ground import GROUNDS, Ground, get_ground
from bipedsim.model import Robot
from bipedsim.recording import Recording
from bipedsim.view.animation.camera import VIEWS
from bipedsim.view.animation.motion import frame_times, interval, read_motion
from bipedsim.view.animation.skeleton import Skeleton
from bipedsim.view.sheet import no_half, write_png

if TYPE_CHECKING:
    from PIL import Image

    from bipedsim.view.animation.figure import Film


FPS = 25.0
"""Default frames per second."""
FASTEST_GIF = 50.0
"""Maximum frame rate of a GIF [Hz]: viewers slow down frames that last less than 20 ms."""
POSTURES = 8
"""Default number of postures in a strip."""
NEARLY_WHITE = 245
"""Red, green and blue values above which a colour becomes white in a GIF."""
SUFFIXES = (".gif", ".mp4", ".png")


def check_output(path: Path, fps: float = FPS) -> None:
    """Check whether :func:`animate` can write ``path``.

    Raises:
        ConfigError: The suffix is unknown, a GIF is too fast, or ffmpeg is missing for an .mp4.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"an animation is one of {', '.join(SUFFIXES)} (.png: a strip of postures)", path)
    if path.suffix == ".gif" and fps > FASTEST_GIF:
        raise ConfigError(
            f"is more than the {FASTEST_GIF:g} of a GIF; reduce the speed instead, or write .mp4", f"{path}: fps", fps
        )
    if path.suffix == ".mp4":
        from matplotlib.animation import FFMpegWriter

        if not FFMpegWriter.isAvailable():
            raise ConfigError(".mp4 needs ffmpeg, which is missing (apt install ffmpeg). Or write a .gif", path)


def animate(  # noqa: PLR0913 -- the keywords are the options of `bipedsim animate`, and all have a default
    recording: Recording,
    path: Path | str,
    *,
    robot: Robot | None = None,
    ground: Ground | None = None,
    view: str = "side",
    fps: float = FPS,
    speed: float = 1.0,
    start: float | None = None,
    stop: float | None = None,
    postures: int = POSTURES,
    progress: bool = False,
) -> int:
    """Animate the robot of a recording in a file.

    The lines connect the joint frames of the kinematic tree, which pinocchio computes from the recorded base pose and
    joints. Joints without drives follow from the soles. Arrows are the ground reaction forces at the centres of
    pressure. A bar shows the length of the weight; arrows end at three times this length. The circle is the CoM, and
    the cross is its vertical projection.

    Args:
        recording: The run.
        path: .gif; .mp4, which needs ffmpeg; or .png, a strip of ``postures`` next to each other.
        robot: Robot of the run; None for the robot named in the recording.
        ground: Ground of the run; None for the ground named in the recording, or z = 0 without a name.
        view: ``side`` (from the right of world x), ``front`` (from ahead), ``both``, or ``3d``; all are orthographic.
        fps: Frames per second.
        speed: Simulated seconds per second of the animation.
        start, stop: Interval of the run [s]; None for its begin or end.
        postures: Number of postures in a strip, at equal distances including both ends of the interval. A strip does
            not use ``fps`` and ``speed``.
        progress: Whether to show progress bars on stderr.

    Returns:
        Number of frames or postures.

    Raises:
        ConfigError: An option is invalid, or ffmpeg is missing.
        RecordingError: The recording lacks data for a configuration or belongs to another robot, or the file cannot be
            written.
    """
    if view not in VIEWS:
        raise UnknownNameError("view", view, VIEWS)
    if postures < 1:
        raise ConfigError("must be at least 1", "postures", postures)
    path = Path(path)
    check_output(path, fps)
    times = frame_times(recording, fps, speed, start, stop)
    if path.suffix == ".png":
        times = np.linspace(*interval(recording, start, stop), postures)
    ground = ground or ground_of(recording)
    if robot is None:
        robot = robot_of(recording)
    from bipedsim.view.animation.figure import STRIP_DPI, Film, draw_strip
    from bipedsim.view.animation.scene import Stage

    skeleton = Skeleton.of(robot)
    motion = read_motion(recording, robot, skeleton, times, progress)
    stage = Stage(motion, skeleton, ground, robot.weight, strip=path.suffix == ".png")
    title = "   ·   ".join(filter(None, (robot.name, about_run(recording), motion.note)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".png":
            strip = draw_strip(stage, view, title, recording.feet)
            with no_half(path):
                write_png(strip, path, STRIP_DPI)
            return len(times)
        film = Film(stage, view, title, recording.feet, speed)
        shown = ProgressBar(range(len(times)), desc="frames", unit="frame", disable=not progress)
        with no_half(path):
            if path.suffix == ".gif":
                _write_gif(film, shown, path, fps)
            else:
                _write_mp4(film, shown, path, fps)
    except OSError as error:
        raise RecordingError(f"the animation cannot be written ({error.strerror or error})", path) from error
    return len(times)


def ground_of(recording: Recording) -> Ground:
    """Return the ground that the recording contains or names.

    Raises:
        RecordingError: The ground was a user's file, of which the recording contains only the name.
    """
    if "ground" in recording.run:
        return Ground.of_saved(recording.run["ground"])
    name = recording.about.get("ground")
    if not name:
        return Ground.flat()
    if name not in GROUNDS and not name.startswith("{"):
        raise RecordingError(
            f"of the run is not one of {', '.join(GROUNDS)}. Pass its file with --ground", "ground", name
        )
    return get_ground(name)


def about_run(recording: Recording) -> str:
    """Return scenario and ground as a text, without unknown and default values."""
    scenario, ground = recording.about.get("scenario", ""), recording.about.get("ground", "flat")
    return f"{scenario} on {ground}".strip() if ground not in ("flat", scenario) else scenario


def _write_gif(film: Film, shown: Any, path: Path, fps: float) -> None:
    from PIL import Image

    # One palette for all frames avoids flicker, and static areas are stored only once.
    palette = _palette(film, len(film.stage.motion.t))

    def pictures() -> Iterator[Image.Image]:
        for i in shown:
            film.show(i)
            yield _picture(film).quantize(palette=palette, dither=Image.Dither.NONE)

    # GIF durations are hundredths of a second. Rounding the end times prevents accumulated errors.
    ends = np.round(100.0 / fps * np.arange(1, len(film.stage.motion.t) + 1)).astype(int)
    durations = (10 * np.diff(ends, prepend=0)).tolist()
    first, *others = pictures()
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, disposal=1)


def _picture(film: Film) -> Image.Image:
    """Return the present frame as an RGB image without transparency."""
    from PIL import Image

    return Image.fromarray(film.pixels()).convert("RGB")


def _palette(film: Film, frames: int) -> Any:
    """Return an image with a palette for the colours of the first, the middle and the last frame."""
    from PIL import Image

    samples = []
    for i in sorted({0, frames // 2, frames - 1}):
        film.show(i)
        samples.append(np.asarray(_picture(film)))
    image = Image.fromarray(np.vstack(samples)).quantize(colors=128, method=Image.Quantize.MEDIANCUT)
    colours = np.array(image.getpalette()).reshape(-1, 3)
    # Nearly white colours would be visible on a white page.
    colours[colours.min(axis=1) > NEARLY_WHITE] = 255
    image.putpalette(colours.ravel().tolist())
    return image


def _write_mp4(film: Film, shown: Any, path: Path, fps: float) -> None:
    from matplotlib.animation import FFMpegWriter

    writer = FFMpegWriter(fps=fps)  # type: ignore[arg-type]  # ffmpeg takes fractions
    with writer.saving(film.figure, str(path), film.figure.dpi):
        for i in shown:
            film.show(i)
            writer.grab_frame()
