"""Compute the moving lines of the robot, its CoM and the contact forces for an animation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from bipedsim.analysis import complete_rows, recorded_configurations
from bipedsim.config import ProgressBar
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.model import Robot, Shape, drivers, lowest_point
from bipedsim.numerics import Array, Integers
from bipedsim.recording import Recording
from bipedsim.view.animation.outlines import moving_outlines
from bipedsim.view.animation.skeleton import Skeleton

LEVEL = 0.01
"""Height above the lowest point of a body up to which further points count as in contact [m]."""


@dataclass(frozen=True, eq=False)
class MotionFrames:
    """F frames of a run, in the world frame.

    Attributes:
        t: (F,) time of each frame [s].
        points: (F, P, 3) points of the skeleton [m].
        com: (F, 3) centre of mass [m].
        cop: (F, A, 3) points of action of A forces [m], NaN without a force: the centre of pressure of each foot, then
            the lowest point of each other body that has contacts in the run.
        force: (F, A, 3) ground reaction force on each foot, then the total contact force on each of these bodies [N];
            NaN without a contact or without recorded forces.
        note: Note for the user, or an empty text.
        outlines: Lines (F, P, 3) of free objects [m].
        objects: Names of these objects.
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
    """Return the times [s] of the frames: (stop - start) fps / speed frames, at least one.

    Args:
        recording: The run.
        fps: Frames per second of the animation.
        speed: Simulated seconds per second of the animation.
        start, stop: Interval of the run [s]; None for its begin or end.

    Raises:
        ConfigError: The interval is not within the run, or a rate is not positive.
        RecordingError: The recording is empty.
    """
    for name, value in (("fps", fps), ("speed", speed)):
        if not (np.isfinite(value) and value > 0.0):
            raise ConfigError("must be positive and finite", name, value)
    start, stop = interval(recording, start, stop)
    count = max(1, round((stop - start) * fps / speed))
    return np.asarray(start + np.arange(count) * (speed / fps), dtype=np.float64)


def interval(recording: Recording, start: float | None, stop: float | None) -> tuple[float, float]:
    """Return begin and end [s] of an interval of the run; None is replaced by the begin or end of the run.

    Raises:
        ConfigError: The interval is not within the run.
        RecordingError: The recording is empty.
    """
    if len(recording) == 0:
        raise RecordingError("no rows: there is nothing to draw", "the recording")
    first, last = float(recording.t[0]), float(recording.t[-1])
    start = first if start is None else start
    stop = last if stop is None else stop
    # A recording begins one tick after t = 0, but 0 is a valid start.
    tick = (last - first) / max(1, len(recording) - 1) * (1.0 + 1e-9)
    if not (first - tick <= start <= last + tick and first - tick <= stop <= last + tick and start <= stop):
        raise ConfigError(
            f"not a part of the run, which lasts from {first:g} to {last:g} s", f"from {start:g} to {stop:g} s"
        )
    return start, stop


def read_motion(
    recording: Recording, robot: Robot, skeleton: Skeleton, times: Array, progress: bool = False
) -> MotionFrames:
    """Return the frames at ``times`` (F,) [s], from the nearest rows with a complete configuration.

    The base pose is the ground truth, or the controller's estimate if the recording contains no ground truth.

    Args:
        recording: The run.
        robot: Robot of the run.
        skeleton: Skeleton of the robot.
        times: Times of the frames [s], increasing.
        progress: Whether to show progress bars on stderr.

    Raises:
        RecordingError: The recording belongs to another robot or lacks data for a configuration.
    """
    note = ""
    if robot.free_flyer and not np.isfinite(recording.base_pose).any() and np.isfinite(recording.odometry).any():
        recording = replace(recording, base_pose=recording.odometry)
        note = "base: estimate of the controller"
    recording = recording.in_order(robot.joint_names)
    rows = np.flatnonzero(complete_rows(recording, robot))
    # Without complete rows, recorded_configurations raises an error that names the missing data.
    known = recording.rows(np.asarray(rows)) if len(rows) else recording
    chosen = known.rows(_nearest(known.t, times))
    q = recorded_configurations(chosen, robot, progress)
    data = robot.model.createData()
    frames, feet = len(times), len(robot.soles)
    points = np.zeros((frames, len(skeleton.joints), 3))
    bodies, carried = _touched(chosen, robot)
    com, cop = np.zeros((frames, 3)), np.full((frames, feet + len(bodies), 3), np.nan)
    force = np.concatenate([np.full((frames, feet, 3), np.nan), carried], axis=1)
    for i in ProgressBar(range(frames), desc="postures", unit="frame", disable=not progress):
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
    return MotionFrames(chosen.t, points, com, cop, force, ", ".join(filter(None, (note, unknown))), lines, shown)


def _touched(recording: Recording, robot: Robot) -> tuple[list[list[Shape]], Array]:
    """Return the shapes of each body with contacts, except soles, and the forces on them (n, B, 3) [N]."""
    force = np.concatenate([recording.base_contact[:, None], np.nan_to_num(recording.link_contact)], axis=1)
    force[np.isnan(recording.base_contact[:, 0])] = 0.0
    force[~force.any(axis=2)] = np.nan
    driver = drivers(robot.model, robot.joint_names)
    bodies = [[shape for shape in robot.shapes.shapes if driver[shape.joint_id] == b] for b in range(force.shape[1])]
    touched = [b for b, shapes in enumerate(bodies) if shapes and np.isfinite(force[:, b]).any()]
    return [bodies[b] for b in touched], force[:, touched]


def bottom(shapes: Sequence[Shape], data: pin.Data) -> Array:
    """Return the mean (3,) of the lowest points of ``shapes``, because a body that lies has several contacts."""
    points = [
        lowest_point(data.oMi[shape.joint_id], point, shape.radius, shape.ring, shape.axis)
        for shape in shapes
        for point in shape.points
    ]
    heights = np.array(points)[:, 2]
    return np.asarray(np.mean(np.array(points)[heights < heights.min() + LEVEL], axis=0))


def _nearest(t: Array, times: Array) -> Integers:
    """Return the rows (F,) of increasing ``t`` (n,) that are nearest to ``times`` (F,)."""
    after = np.clip(np.searchsorted(t, times), 1, max(1, len(t) - 1))
    if len(t) == 1:
        return np.zeros(len(times), dtype=np.int64)
    return np.asarray(after - (times - t[after - 1] < t[after] - times), dtype=np.int64)
