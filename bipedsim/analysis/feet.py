"""Motion of the soles in a recorded run: depth in the ground, drift and drift rate."""

from __future__ import annotations

import numpy as np

from bipedsim.analysis.loads import PRESSES
from bipedsim.analysis.plates import force_plate, rotate
from bipedsim.ground import UNDERSIDE, Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.recording import Recording


def settled_rows(recording: Recording, settle: float) -> Flags:
    """Return a mask (n,) of the rows after the first ``settle`` seconds, which are at most half of the run."""
    return np.asarray(recording.t - recording.t[0] >= min(settle, 0.5 * recording.duration))


def sole_depth(recording: Recording, robot: Robot, ground: Ground) -> Array:
    """Return the depth (n,) of the deepest vertex of all soles in the ground [m]; 0 if no vertex is in it.

    For a ball foot, this is the depth of the lowest point.
    """
    depth = np.zeros(len(recording))
    for k, sole in enumerate(robot.soles):
        pose = recording.sole_poses[:, None, k]
        corners = np.column_stack([sole.vertices, np.zeros(sole.n_vertices)])
        points = pose[..., :3] + rotate(pose[..., 3:], corners)
        depth = np.fmax(depth, ground.depth(points, UNDERSIDE).max(axis=1) + sole.radius)
    return depth


def sole_drift(recording: Recording, settle: float) -> float:
    """Return the largest distance [m] of a sole from its settled position; lifting and walking count as drift."""
    positions = recording.sole_poses[settled_rows(recording, settle), :, :3]
    return float(np.linalg.norm(positions - positions[0], axis=2).max())


def lifts(recording: Recording, settle: float) -> bool:
    """Return whether a foot was off the ground after the run had settled, as in a walk, steps or a jump."""
    return bool((np.nan_to_num(recording.wrench[settled_rows(recording, settle), :, 2]) <= 0.0).any())


def creep_rate(recording: Recording, settle: float) -> float | None:
    """Return the drift speed [m/s] of the fastest foot while it is on the ground; None if no foot ever is.

    For each foot, the displacements of the sole's origin are added as vectors, and divided by the time of these ticks.
    A tick counts after settling, if the foot carries more than ``PRESSES`` of the weight at its beginning and its end.
    Vibration therefore cancels, and swings do not count. A foot that rolls over its edge moves its origin and counts.
    """
    rows = settled_rows(recording, settle)
    t, position = recording.t[rows], recording.sole_poses[rows, :, :3]
    loaded = force_plate(recording).force[rows, :, 2] > PRESSES * recording.weight
    loaded_ticks = loaded[1:] & loaded[:-1]
    moved = np.where(loaded_ticks[..., None], np.diff(position, axis=0), 0.0).sum(axis=0)
    time = np.where(loaded_ticks, np.diff(t)[:, None], 0.0).sum(axis=0)
    standing = time > 0.0
    return float((np.linalg.norm(moved[standing], axis=1) / time[standing]).max()) if standing.any() else None
