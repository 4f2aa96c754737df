"""Measure the delay from a command to the effort that answers it."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array
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
        Delay [s] and share (1 at most). None without torque commands, or if they explain less than ``EXPLAINED``.
    """
    commands, efforts = recording.joint_command, recording.joint_effort
    joints = np.isfinite(commands).all(axis=0) & np.isfinite(efforts).all(axis=0)
    if not joints.any():
        return None
    commands, efforts, t = commands[:, joints], efforts[:, joints], recording.t
    # The changes weigh what moves: an offset or a gain of a drive does not shift the optimum.
    begin = int(np.searchsorted(t, t[0] + LONGEST + (t[1] - t[0])))
    answers = np.diff(efforts, axis=0)[begin:]

    def unexplained(delay: float) -> float:
        delayed = np.stack([np.interp(t - delay, t, column) for column in commands.T], axis=1)
        return float(np.sum((answers - np.diff(delayed, axis=0)[begin:]) ** 2))

    delays = np.arange(0.0, LONGEST, _GRID)
    errors: Array = np.array([unexplained(delay) for delay in delays])
    best = int(np.argmin(errors))
    share = 1.0 - float(errors[best]) / max(float(np.sum(answers**2)), 1e-12)
    return (float(delays[best]), share) if share >= EXPLAINED else None
