"""What an animation shows, in numbers: where the lines of the robot, its CoM and the contact forces are over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from tqdm import tqdm

from bipedsim.analysis import complete_rows, recorded_configurations
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.model import Robot, Shape, drivers, lowest_point
from bipedsim.numerics import Array, Integers
from bipedsim.recording import Recording
from bipedsim.view.animation.outlines import moving_outlines
from bipedsim.view.animation.skeleton import Skeleton

LEVEL = 0.01
"""Points of a body that are no higher above its lowest one [m] are touched with it."""


@dataclass(frozen=True, eq=False)
class Motion:
    """F frames of a run, all in the world.

    Attributes:
        t: (F,) time of each frame [s].
        points: (F, P, 3) points of the skeleton [m].
        com: (F, 3) [m].
        cop: (F, A, 3) where A forces act [m], NaN where they do not: first the centre of pressure of each foot, then,
            of each body that anything else ever touches, where it is lowest.
        force: (F, A, 3) of the ground on each foot, and of all that touches each of these bodies [N], NaN where nothing
            does or it was not recorded.
        note: What a reader should know, or empty.
        outlines: Lines (F, P, 3) of free objects [m]. objects: Names of the latter.
    """

    t: Array
    points: Array
    com: Array
    cop: Array
    force: Array
    note: str = ""
    outlines: Sequence[Array] = ()
    objects: tuple[str, ...] = ()


def frame_times(
    recording: Recording, fps: float, speed: float, start: float | None = None, stop: float | None = None
) -> Array:
    """Return the times [s] of the frames: (stop - start) fps / speed of them, at least one.

    Args:
        recording: The run.
        fps: Frames per second of what is shown.
        speed: Simulated seconds per shown second.
        start, stop: Stretch of the run [s]; None is its begin, its end.

    Raises:
        ConfigError: The stretch is not in the run, or a rate is not positive.
        RecordingError: The recording is empty.
    """
    for name, value in (("fps", fps), ("speed", speed)):
        if not (np.isfinite(value) and value > 0.0):
            raise ConfigError(f"{name} = {value} must be positive and finite")
    start, stop = stretch(recording, start, stop)
    count = max(1, round((stop - start) * fps / speed))
    return np.asarray(start + np.arange(count) * (speed / fps), dtype=np.float64)


def stretch(recording: Recording, start: float | None, stop: float | None) -> tuple[float, float]:
    """Return begin and end [s] of a stretch of the run; None is its own begin, its own end.

    Raises:
        ConfigError: The stretch is not in the run.
        RecordingError: The recording is empty.
    """
    if len(recording) == 0:
        raise RecordingError("the recording has no rows: there is nothing to draw")
    first, last = float(recording.t[0]), float(recording.t[-1])
    start = first if start is None else start
    stop = last if stop is None else stop
    # A run begins a tick after t = 0, which is a fair time to ask for.
    tick = (last - first) / max(1, len(recording) - 1) * (1.0 + 1e-9)
    if not (first - tick <= start <= last + tick and first - tick <= stop <= last + tick and start <= stop):
        raise ConfigError(
            f"from {start:g} to {stop:g} s is no stretch of the run, which lasts from {first:g} to {last:g} s"
        )
    return start, stop


def read_motion(recording: Recording, robot: Robot, skeleton: Skeleton, times: Array, progress: bool = False) -> Motion:
    """Return what is to be drawn at ``times`` (F,) [s], from the nearest rows that hold a configuration.

    The base is where it was in truth; where the recording lacks that it is where the controller took it to be.

    Args:
        recording: The run.
        robot: What ran.
        skeleton: Of the robot.
        times: When [s], rising.
        progress: Show bars on stderr.

    Raises:
        RecordingError: The recording is another robot's or lacks what a configuration needs; the message says what.
    """
    note = ""
    if robot.free_flyer and not np.isfinite(recording.base_pose).any() and np.isfinite(recording.odometry).any():
        recording = replace(recording, base_pose=recording.odometry)
        note = "base: estimate of the controller"
    recording = recording.in_order(robot.joint_names)
    rows = np.flatnonzero(complete_rows(recording, robot))
    # Without any, the reader of configurations says what is missing.
    known = recording.rows(np.asarray(rows)) if len(rows) else recording
    chosen = known.rows(_nearest(known.t, times))
    q = recorded_configurations(chosen, robot, progress)
    data = robot.model.createData()
    frames, feet = len(times), len(robot.soles)
    points = np.zeros((frames, len(skeleton.joints), 3))
    bodies, carried = _touched(chosen, robot)
    com, cop = np.zeros((frames, 3)), np.full((frames, feet + len(bodies), 3), np.nan)
    force = np.concatenate([np.full((frames, feet, 3), np.nan), carried], axis=1)
    for i in tqdm(range(frames), desc="postures", unit="frame", disable=not progress, leave=False):
        com[i] = pin.centerOfMass(robot.model, data, q[i])
        points[i] = skeleton.points(data)
        for k, sole in enumerate(robot.soles):
            if np.isfinite(chosen.cop[i, k]).all() and np.isfinite(chosen.wrench[i, k, :3]).all():
                placement = data.oMi[sole.joint_id] * sole.placement_joint_sole
                cop[i, k] = placement.act(np.array([*chosen.cop[i, k], 0.0]))
                force[i, k] = placement.rotation @ chosen.wrench[i, k, :3]
        for k, shapes in enumerate(bodies):
            if np.isfinite(carried[i, k]).all():
                cop[i, feet + k] = bottom(shapes, data)
    lines, shown, unknown = moving_outlines(chosen)
    return Motion(chosen.t, points, com, cop, force, ", ".join(filter(None, (note, unknown))), lines, shown)


def _touched(recording: Recording, robot: Robot) -> tuple[list[list[Shape]], Array]:
    """Return the shapes of each body, soles aside, that is ever touched, and the forces on them (n, B, 3) [N]."""
    force = np.concatenate([recording.base_contact[:, None], np.nan_to_num(recording.link_contact)], axis=1)
    force[np.isnan(recording.base_contact[:, 0])] = 0.0
    force[~force.any(axis=2)] = np.nan
    driver = drivers(robot.model, robot.joint_names)
    bodies = [[shape for shape in robot.shapes.shapes if driver[shape.joint_id] == b] for b in range(force.shape[1])]
    touched = [b for b, shapes in enumerate(bodies) if shapes and np.isfinite(force[:, b]).any()]
    return [bodies[b] for b in touched], force[:, touched]


def bottom(shapes: Sequence[Shape], data: pin.Data) -> Array:
    """Return the middle of the points of ``shapes`` that are lowest (3,), as a body that lies is touched at several."""
    points = [
        lowest_point(data.oMi[shape.joint_id], point, shape.radius, shape.ring, shape.axis)
        for shape in shapes
        for point in shape.points
    ]
    heights = np.array(points)[:, 2]
    return np.asarray(np.mean(np.array(points)[heights < heights.min() + LEVEL], axis=0))


def _nearest(t: Array, times: Array) -> Integers:
    """Return the rows (F,) of rising ``t`` (n,) that are nearest to ``times`` (F,)."""
    after = np.clip(np.searchsorted(t, times), 1, max(1, len(t) - 1))
    if len(t) == 1:
        return np.zeros(len(times), dtype=np.int64)
    return np.asarray(after - (times - t[after - 1] < t[after] - times), dtype=np.int64)
