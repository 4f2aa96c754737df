"""Steps of a recorded walk: times of lift-off and touchdown, length, width and speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.analysis.loads import CARRIES, SHORTEST_SWING
from bipedsim.analysis.plates import force_plate, rotate
from bipedsim.model import split_side
from bipedsim.numerics import Array, Flags, true_runs
from bipedsim.recording import Recording


@dataclass(frozen=True)
class Step:
    """A touchdown of a foot after a swing.

    Attributes:
        t: Time of touchdown [s].
        foot: Name of the foot.
        swing: Duration of the swing before [s].
        stance: Duration of the stance after; NaN if the run ended first [s].
        double_support: From the touchdown until the next lift-off; NaN if there is none [s].
        length, width: From the other foot to this one, along the mean heading of both soles, and across it: to the
            right of a right foot, else to the left [m]; NaN for robots without two feet.
        speed: Length divided by the time since the touchdown before; NaN for the first step [m/s].
    """

    t: float
    foot: str
    swing: float
    stance: float
    double_support: float
    length: float
    width: float
    speed: float


def gait_steps(recording: Recording) -> list[Step]:
    """Return the steps of a run in order of time.

    Args:
        recording: The run, with sole poses and a known weight.

    Raises:
        ConfigError: The recording has no sole poses.
    """
    t, poses = recording.t, recording.sole_poses
    force = force_plate(recording).force[:, :, 2]
    changes: list[tuple[float, int, bool, int]] = []
    loaded = without_bounces(t, force > CARRIES * recording.weight, SHORTEST_SWING)
    for k in range(len(recording.feet)):
        rows = np.flatnonzero(np.diff(loaded[:, k].astype(np.int8))) + 1
        changes += [(float(t[row]), k, bool(loaded[row, k]), int(row)) for row in rows]
    changes.sort()
    lifts = [(time, k) for time, k, down, _ in changes if not down]
    steps: list[Step] = []
    for time, k, down, row in changes:
        lifted = [when for when, foot in lifts if foot == k and when < time]
        # The first touchdown of a foot that started in the air is no step.
        if not down or not lifted:
            continue
        stance = next((when - time for when, foot in lifts if foot == k and when > time), np.nan)
        double = next((when - time for when, foot in lifts if when > time), np.nan)
        length, width = _from_other(poses[row], k)
        width = -width if split_side(recording.feet[k])[0] == "right" else width
        speed = length / (time - steps[-1].t) if steps and time > steps[-1].t else np.nan
        steps.append(Step(time, recording.feet[k], time - lifted[-1], stance, double, length, width, speed))
    return steps


def without_bounces(t: Array, contact: Flags, bounce: float) -> Flags:
    """Return the contact (n, K) of each foot after closing all gaps between contacts shorter than ``bounce`` [s]."""
    closed = contact.copy()
    for k in range(contact.shape[1]):
        for begin, end in true_runs(~contact[:, k]):
            if begin > 0 and end < len(contact) and t[end] - t[begin] < bounce:
                closed[begin:end, k] = True
    return closed


def _from_other(poses: Array, k: int) -> tuple[float, float]:
    """Return how far foot ``k`` is ahead of the other one and to its left [m], for poses (K, 7)."""
    if len(poses) != 2:
        return np.nan, np.nan
    ahead = rotate(poses[:, 3:], np.array([1.0, 0.0, 0.0]))[:, :2].sum(axis=0)
    ahead /= max(float(np.linalg.norm(ahead)), 1e-12)
    x, y = poses[k, :2] - poses[1 - k, :2]
    return float(x * ahead[0] + y * ahead[1]), float(y * ahead[0] - x * ahead[1])
