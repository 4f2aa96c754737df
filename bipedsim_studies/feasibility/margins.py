"""Compute how close each foot of a run is to slipping, tipping and lifting, and the tolerable error of the torques."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.config import ProgressBar
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.recording import Recording
from bipedsim_studies.feasibility.conditions import held_vertices
from bipedsim_studies.feasibility.states import States, recorded_states
from bipedsim_studies.feasibility.sticking import sticking_conditions
from bipedsim_studies.feasibility.support import TOUCHES, SupportReader
from bipedsim_studies.feasibility.torques import weakest


@dataclass(frozen=True, eq=False)
class RunMargins:
    """Margins over a run of n rows and K feet; NaN if a foot is not held or a row lacks data.

    Attributes:
        t: (n,) time of the state [s].
        feet: Names of the feet.
        force: (n, K) normal force [N].
        cop: (n, K) distance of the CoP from the edge of the held vertices [m]; NaN for single vertices, too.
        friction: (n, K) unused friction, 1 - used / (mu f_z), including torsion.
        torque: (n,) tolerable error of the torques [N.m], see :func:`weakest`.
        first: (n,) name of the condition that is closest to failure.
        predicted: (n,) whether all conditions are satisfied.
        happened: (n,) whether the contacts of the row equal those of the next row and none slides.
    """

    t: Array
    feet: tuple[str, ...]
    force: Array
    cop: Array
    friction: Array
    torque: Array
    first: tuple[str, ...]
    predicted: Flags
    happened: Flags

    @property
    def judged(self) -> Flags:
        """(n,) rows with conditions."""
        return np.asarray(~np.isnan(self.torque))

    @property
    def agreement(self) -> float:
        """Fraction of the rows with conditions in which prediction and run agree; NaN if there are none."""
        rows = self.judged
        return float((self.predicted == self.happened)[rows].mean()) if rows.any() else float("nan")


def run_margins(
    recording: Recording,
    robot: Robot,
    ground: Ground,
    every: int = 10,
    *,
    states: States | None = None,
    progress: bool = False,
) -> RunMargins:
    """Return the margins of a run: its states and torques under the conditions of eq. 72.

    The conditions of a row require that all its contacts stick. The torques are those of the following tick. A
    recording contains no pushes, so the margins are those of a robot without pushes.

    Args:
        recording: Run of a simulator.
        robot, ground: Robot and ground of the run.
        every: Evaluate one row in this number; a row takes about a millisecond.
        states: States of the run, if already computed.
        progress: Whether to show a progress bar on stderr.

    Raises:
        RecordingError: See :func:`recorded_states`; or no contact modes are recorded.
        ConfigError: ``every`` is less than 1.
    """
    if every < 1:
        raise ConfigError("must be at least 1", "every", every)
    states = states or recorded_states(recording, robot)
    if (recording.mode < 0).all():
        raise RecordingError("the run has none: record it with a simulator, under a selection model", "contact modes")
    rows = range(1, len(recording) - 1, every)
    reader = SupportReader(robot, ground)
    n, K = len(rows), len(robot.soles)
    force, cop, friction = (np.full((n, K), np.nan) for _ in range(3))
    torque = np.full(n, np.nan)
    predicted, happened = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    first = [""] * n
    for j, i in enumerate(ProgressBar(rows, desc="margins", unit="row", disable=not progress)):
        mode, after = recording.mode[i], recording.mode[i + 1]
        u = recording.joint_effort[i + 1]
        if not (np.isfinite(states.v[i]).all() and np.isfinite(u).all() and (mode >= 0).all() and mode.any()):
            continue
        support = reader.at(states.q[i], states.v[i])
        if any(m and f.n_vertices != c for m, f, c in zip(mode, support.feet, recording.n_vertices[i], strict=True)):
            continue
        keep = {f.name: held_vertices(int(m), f.n_vertices) for f, m in zip(support.feet, mode, strict=True) if m}
        high = max(float(support.feet[support.index(name)].heights[list(held)].max()) for name, held in keep.items())
        conditions = sticking_conditions(support, keep, touches=max(high, TOUCHES))
        for name, wrench in zip(conditions.held, conditions.wrench(u), strict=True):
            k, rule = support.index(name), conditions.rule(name)
            force[j, k] = wrench[2]
            if wrench[2] > 0.0:
                friction[j, k] = rule.friction(wrench) / (rule.mu * wrench[2]) if rule.mu > 0.0 else -np.inf
                if len(rule.rows) > 1:
                    cop[j, k] = float((rule.rows[1:] @ wrench).min() / wrench[2])
        torque[j], first[j] = weakest(conditions, u)
        predicted[j] = conditions.holds(u)
        happened[j] = bool((mode == after).all() and not recording.sliding[i + 1].any())
    return RunMargins(
        t=recording.t[list(rows)],
        feet=recording.feet,
        force=force,
        cop=cop,
        friction=friction,
        torque=torque,
        first=tuple(first),
        predicted=predicted,
        happened=happened,
    )
