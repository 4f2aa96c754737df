"""Measure the delay from a command to the effort that answers it."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array, true_runs
from bipedsim.recording import Recording

LONGEST = 0.05
"""Longest delay that is searched for [s]."""
_GRID = 1e-4
EXPLAINED = 0.5
"""Least share of the changes of the efforts that delayed commands must explain."""


def command_delay(recording: Recording) -> tuple[float, float] | None:
    """Return the delay from torque commands to measured efforts, and the share of changes that it explains.

    The delay includes the age of the measurement, because only their sum can be seen.

    Returns:
        Delay [s] and share (1 at most), in the longest part with commands of all joints that get any. None if it is
        shorter than 2 ``LONGEST``, if they explain less than ``EXPLAINED``, or if the delay is not below ``LONGEST``.
    """
    pairs = np.stack([recording.joint_command, recording.joint_effort])
    # A controller may begin after the recording, and a joint may get no commands.
    joints = np.isfinite(pairs).all(axis=0).any(axis=0)
    stretches = true_runs(np.asarray(np.isfinite(pairs[:, :, joints]).all(axis=(0, 2))))
    first, last = max(stretches, key=lambda rows: rows[1] - rows[0], default=(0, 0))
    t = recording.t[first:last]
    if not joints.any() or last - first < 2 or t[-1] - t[0] < 2.0 * LONGEST:
        return None
    commands, efforts = pairs[:, first:last, joints]
    begin = int(np.searchsorted(t, t[0] + LONGEST + (t[1] - t[0])))
    answers = np.diff(efforts, axis=0)[begin:]

    def explained(delay: float) -> float:
        """Return the sum of squares that the delayed commands explain, with a gain of each drive."""
        delayed = np.diff(np.stack([np.interp(t - delay, t, column) for column in commands.T], axis=1), axis=0)[begin:]
        common = np.maximum(np.sum(answers * delayed, axis=0), 0.0)
        return float(np.sum(common**2 / np.maximum(np.sum(delayed**2, axis=0), 1e-12)))

    delays = np.arange(0.0, LONGEST, _GRID)
    sums: Array = np.array([explained(delay) for delay in delays])
    best = int(np.argmax(sums))
    share = float(sums[best]) / max(float(np.sum(answers**2)), 1e-12)
    return (float(delays[best]), share) if share >= EXPLAINED and best < len(delays) - 1 else None
