"""Predict measurements from many starts, and collect the errors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bipedsim.config import ProgressBar
from bipedsim.errors import ConfigError, DivergenceError, RecordingError
from bipedsim.numerics import Array
from bipedsim_studies.gap.floor import noise, unshaken_noise
from bipedsim_studies.gap.models import GapModel
from bipedsim_studies.gap.recorded import CommandSource, RobotRun
from bipedsim_studies.gap.signals import SHAKEN, channel_names, channels, errors_at
from bipedsim_studies.gap.starts import StartStates, estimate_starts
from bipedsim_studies.gap.trivial import trivial_errors

HORIZONS = (0.010, 0.050, 0.200, 1.000)
"""Times from the start to the predicted measurement [s]."""
SPACING, MOST = 0.05, 400
"""Minimum time between two starts [s], and maximum number of starts."""
PAST = 0.02
"""Time before a start over which the drives of the model process the recorded commands and joint motion [s]."""


@dataclass(frozen=True, eq=False)
class Gap:
    """Store the errors of one model: W windows, H horizons.

    Attributes:
        label: Name of the model.
        source: Origin of the commands.
        starts: (W,) times of the starts [s].
        times: (W, H) times of the predicted measurements [s]; NaN after the end of the run.
        measured: Quantity to the measurements (W, H, m) of its m channels; NaN where nothing was measured.
        errors: Quantity to the errors (W, H, m) of the predictions; NaN where nothing was measured or predicted.
        trivial: The same for the simple rules, by their name.
        floor: Quantity to the noise (m,) of its measured channels.
        channels: Quantity to the names of its m channels.
        skipped: Reason to the number of starts that were left out.
        diverged: Number of windows whose simulation left the finite numbers; later horizons have no errors.
    """

    label: str
    source: CommandSource
    starts: Array
    times: Array
    measured: Mapping[str, Array]
    errors: Mapping[str, Array]
    trivial: Mapping[str, Mapping[str, Array]]
    floor: Mapping[str, Array]
    channels: Mapping[str, tuple[str, ...]]
    skipped: Mapping[str, int]
    diverged: int


def measure_gap(run: RobotRun, model: GapModel, progress: bool = False) -> Gap:
    """Predict the measurements of a run from many of its rows.

    Args:
        run: The measurements and commands.
        model: The model.
        progress: Whether to show a progress bar on stderr.

    Raises:
        RecordingError: No prediction can start.
        ConfigError: The state of the robot cannot be estimated.
    """
    ticks = [max(1, round(horizon / run.dt)) for horizon in HORIZONS]
    windows = _GapWindows(run, model, ticks)
    candidates = start_rows(run)
    rows, found = [], []
    for row in ProgressBar(candidates, desc=f"predictions of {model.label}", unit="window", disable=not progress):
        if windows.begin(row):
            rows.append(row)
            found.append(windows.errors(row))
    if not rows:
        why = "; ".join(f"{count} of {len(candidates)}: {reason}" for reason, count in windows.skipped.items())
        raise RecordingError(f"no prediction can start ({why or 'it is too short'})")
    measured = channels(run)
    ends = np.array(rows)[:, None] + model.late + np.array(ticks)
    inside = np.minimum(ends, len(run) - 1)
    missing = ends >= len(run)
    return Gap(
        model.label,
        run.source,
        run.t[rows],
        np.where(missing, np.nan, run.t[inside]),
        {name: np.where(missing[:, :, None], np.nan, values[inside]) for name, values in measured.items()},
        {name: np.array([errors[name] for errors in found]) for name in measured},
        trivial_errors(run, [row + model.late for row in rows], ticks),
        {name: unshaken_noise(x, run.effort) if name in SHAKEN else noise(x) for name, x in measured.items()},
        channel_names(model.plant),
        windows.skipped,
        windows.diverged,
    )


def start_rows(run: RobotRun) -> Sequence[int]:
    """Return the rows from which predictions may start: the same for all models."""
    spacing = max(1, round(SPACING / run.dt), -(-len(run) // MOST))
    # Starts and measurements of a sensor with a half, a third or a fifth of the rate must coincide now and then.
    while math.gcd(spacing, 30) > 1:
        spacing += 1
    return range(0, len(run), spacing)


class _GapWindows:
    """Simulate from single rows of a run.

    Args:
        run, model: See :func:`measure_gap`.
        ticks: Horizons in rows, increasing.

    Attributes:
        skipped, diverged: See :class:`Gap`.
    """

    def __init__(self, run: RobotRun, model: GapModel, ticks: Sequence[int]) -> None:
        self._run, self._model, self._ticks = run, model, ticks
        self._starts: StartStates = estimate_starts(run, model)
        sim = model.sim
        # A measured torque arrives as late as the other measurements; a command is recorded when it is sent.
        self._shift = model.late if run.source is CommandSource.EFFORT else 0
        self._past = max(round(PAST / run.dt), round(sim.hardware.command_delay / run.dt))
        self._steps = round(run.dt / sim.physics_dt)
        form = errors_at(run, 0, run.observation(0))
        self._empty = {name: np.full((len(ticks), len(values)), np.nan) for name, values in form.items()}
        self.skipped: Counter[str] = Counter()
        self.diverged = 0

    def begin(self, row: int) -> bool:
        """Set the simulator to the state of ``row`` and return True; if there is none, count the reason."""
        reason = ""
        first, last = row - self._past, row + self._ticks[0] + self._model.late
        if first < 0 or last >= len(self._run):
            reason = "too close to the begin or end"
        elif not self._run.is_whole(first, last):
            reason = "rows or commands are missing"
        elif not self._starts.known(first, row):
            reason = "the state is unknown"
        else:
            try:
                self._model.sim.reset(*self._starts.at(row))
            except ConfigError:
                reason = "the simulator refuses the state"
        if reason:
            self.skipped[reason] += 1
            return False
        self._fill_drives(row)
        return True

    def errors(self, row: int) -> dict[str, Array]:
        """Return the errors (H, m) of all quantities in the window that has begun at ``row``."""
        run, sim = self._run, self._model.sim
        result = {name: values.copy() for name, values in self._empty.items()}
        reached = 0
        for i, ticks in enumerate(self._ticks):
            last = row + ticks + self._model.late
            if not run.is_whole(row + reached, last):
                break
            try:
                for tick in range(reached, ticks):
                    predicted = sim.step(run.command(row + tick + 1 + self._shift))
            except DivergenceError:
                self.diverged += 1
                break
            reached = ticks
            for name, error in errors_at(run, last, predicted).items():
                result[name][i] = error
        return result

    def _fill_drives(self, row: int) -> None:
        """Let the drives process the commands and the joint motion before ``row``, for their delay and friction."""
        drives, starts = self._model.sim.drives, self._starts
        for before in range(row - self._past, row):
            drives.take(self._run.command(before + 1 + self._shift))
            for _ in range(self._steps):
                drives.drive(starts.q[before], starts.v[before])
