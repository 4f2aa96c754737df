"""Simulate the force plates of section V: the sway on two plates, the squats on one.

The paper's plates have a resolution of about 1 N, followed by a Butterworth low-pass of order 5 at 20 Hz. The data of
its plots are not public. The readings are therefore compared with mechanics instead of the paper's curves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bipedsim.analysis import force_plate, low_pass, sample_rate
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR, time_axis
from bipedsim_studies.reproduce.common import MARK_COLOUR, Axes, Check, Figure, Trace, label, study
from bipedsim_studies.reproduce.moraud2008 import hip_sway, squats

RESOLUTION = 1.0
"""Resolution of a plate [N]."""
CUTOFF, ORDER = squats.CUTOFF, squats.ORDER
BORDER = np.array([0.06, 0.015])
"""Width of the drawn plate around the sole on it, forwards and sideways [m]."""
LAST = 0.5
"""Duration at the end of the sway in which the robot rests [s]."""
SIDEWAYS, AHEAD, UP = 1, 0, 2


@dataclass(frozen=True, eq=False)
class PlateReading:
    """Readings of plates.

    Attributes:
        t: (n,) times [s].
        steps: (n, K, 3) forces in steps of the resolution [N].
        force: (n, K, 3) filtered forces [N].
        cop: (n, K, 2) filtered centres of pressure of the exact forces [m].
        total_cop: (n, 2) centre of pressure of all plates together [m].
    """

    t: Array
    steps: Array
    force: Array
    cop: Array
    total_cop: Array

    @classmethod
    def of(cls, trace: Trace, together: bool = False) -> PlateReading:
        """Return the readings of one plate per foot, or of one plate for both feet ``together``."""
        t = trace.recording.t
        exact = force_plate(trace.recording)
        force = exact.total_force[:, None] if together else exact.force
        steps = RESOLUTION * np.round(force / RESOLUTION)
        smooth = force_plate(trace.recording, cutoff=CUTOFF)
        filtered = low_pass(steps, sample_rate(t), CUTOFF, ORDER)
        return cls(t, steps, filtered, smooth.cop, smooth.total_cop)


def gain(rate: float) -> float:
    """Return the largest amplification of errors by the filter: the sum of |impulse response|."""
    impulse = np.zeros(2 * int(rate) + 1)
    impulse[int(rate)] = 1.0
    return float(np.abs(low_pass(impulse, rate, CUTOFF, ORDER)).sum())


def inertial(trace: Trace, robot_name: str) -> Array:
    """Return the filtered m (g + a) of the centre of mass (n, 3) [N]."""
    robot = load_robot(robot_name)
    force = robot.mass * trace.a_com + np.array([0.0, 0.0, robot.weight])
    return low_pass(force, sample_rate(trace.recording.t), CUTOFF, ORDER)


@dataclass(frozen=True, eq=False)
class PlatesResult:
    """Sway and squats, with the readings of the plates for each."""

    sway: Trace
    squat: Trace
    pair: PlateReading
    single: PlateReading


def measure(progress: bool = False) -> PlatesResult:
    """Simulate both motions and their plates."""
    sway, squat = hip_sway.trace(progress), squats.trace(progress)
    return PlatesResult(sway, squat, PlateReading.of(sway), PlateReading.of(squat, together=True))


def overloads(result: PlatesResult) -> Array:
    """Return the excess of the plate's reading over the weight at the bottom of each squat (2,) [N]."""
    begins = squats.BEGIN + np.concatenate([[0.0], np.cumsum(squats.PERIODS)])
    bottoms = 0.5 * (begins[1:] + begins[:-1])
    readings: Array = np.interp(bottoms, result.single.t, result.single.force[:, 0, UP])
    return readings - result.squat.recording.weight


def checks(result: PlatesResult) -> Iterator[Check]:
    """Yield the comparisons of the readings with mechanics."""
    for name, trace, reading, robot in (
        ("sway", result.sway, result.pair, hip_sway.ROBOT),
        ("squats", result.squat, result.single, squats.ROBOT),
    ):
        plates = reading.force.shape[1]
        bound = 0.5 * RESOLUTION * plates * gain(sample_rate(reading.t)) + 0.1
        error = np.abs(reading.force.sum(axis=1) - inertial(trace, robot)).max()
        yield Check.at_most(f"{name}: |plates - m (g + a)|, filtered, x, y and z", error, bound, "N")
    pair, weight = result.pair, result.sway.recording.weight
    resting = pair.t > hip_sway.DURATION - LAST
    standing = (pair.t > 0.1) & (pair.t < hip_sway.DELAY)
    left, right = pair.force[:, 0], pair.force[:, 1]
    yield Check.near("sway: share of the left plate at the start", left[standing, UP].mean() / weight, 0.5, 0.06)
    yield Check.at_least("... at the end", left[resting, UP].mean() / weight, 0.95)
    sideways = np.abs(left[resting, SIDEWAYS] + right[resting, SIDEWAYS]).mean()
    yield Check.at_most("... |sideways, left + right| at the end", sideways, 2.0 * RESOLUTION, "N")
    lever = (pair.total_cop[resting, 1] - pair.cop[resting, 1, 1]) / (pair.cop[resting, 0, 1] - pair.cop[resting, 1, 1])
    left_share = left[resting, UP] / pair.force[resting, :, UP].sum(axis=1)
    yield Check.at_most("... |share of the left plate - levers of the CoPs|", np.abs(left_share - lever).max(), 2e-3)
    cop_error = np.abs(pair.total_cop[resting] - result.sway.com[resting, :2]).max()
    yield Check.at_most("... |CoP of both plates - point below the CoM|", cop_error, 2e-3, "m")
    mass = result.squat.recording.weight / 9.81
    for period, overload in zip(squats.PERIODS, overloads(result), strict=True):
        name = f"squat of {period:g} s: overload at its bottom / (24 m depth / T^2)"
        yield Check.near(name, overload / (24.0 * squats.DEPTH / period**2 * mass * _filtered(period)), 1.0, 0.05)
    first, second = overloads(result)
    yield Check.near("squats: ratio of both overloads", second / first, _ratio(), 0.05)


def _filtered(period: float) -> float:
    """Return the fraction of the overload at the bottom of a squat of ``period`` [s] that passes the filter."""
    t = np.arange(-0.5, 0.5 + 1e-9, squats.DT)
    x = t / period + 0.5
    u = x * (1.0 - x)
    shape = np.where((x > 0.0) & (x < 1.0), -16.0 * u * ((1.0 - 2.0 * x) ** 2 - u), 0.0)
    return float(low_pass(shape, 1.0 / squats.DT, CUTOFF, ORDER)[len(t) // 2])


def _ratio() -> float:
    """Return the ratio of the overloads, from the squared periods and the effect of the filter."""
    slow, fast = squats.PERIODS
    return (slow / fast) ** 2 * _filtered(fast) / _filtered(slow)


def draw(figure: Figure, result: PlatesResult) -> None:
    """Draw the readings and CoP paths of the sway, and the squats."""
    grid = figure.add_gridspec(3, 3, width_ratios=[1.25, 0.8, 1.25], height_ratios=[1.0, 1.0, 1.5])
    pair, weight = result.pair, result.sway.recording.weight
    feet = result.sway.recording.feet
    sway = [figure.add_subplot(grid[row, 0]) for row in range(3)]
    for row, (axis, name) in enumerate(((SIDEWAYS, "sideways"), (AHEAD, "forward"), (UP, "vertical"))):
        ax = sway[row]
        for k, foot in enumerate(feet):
            ax.plot(pair.t, pair.steps[:, k, axis], color=FOOT_COLOURS[k], linewidth=0.5, alpha=0.35)
            ax.plot(pair.t, pair.force[:, k, axis], color=FOOT_COLOURS[k], label=f"{foot} plate")
        label(ax, f"sway, {name} [N]", legend="above" if row == 0 else "")
    time_axis(*sway)
    sway[-1].axhline(weight, color=LIMIT_COLOUR, linestyle="--", linewidth=0.8)
    above = figure.add_subplot(grid[:, 1])
    recording = result.sway.recording
    for k, vertices in enumerate(recording.sole_vertices):
        # In the figure, sideways points across the page and forwards points up the page.
        corners = recording.sole_poses[0, k, :2] + np.asarray(vertices)
        outline = np.vstack([corners, corners[:1]])
        above.fill(-outline[:, 1], outline[:, 0], color=FOOT_COLOURS[k], alpha=0.15)
        low, high = corners.min(axis=0) - BORDER, corners.max(axis=0) + BORDER
        x, y = low[0], -low[1]
        above.plot([y, -high[1], -high[1], y, y], [x, x, high[0], high[0], x], color=MARK_COLOUR, linewidth=1.0)
        above.plot(-pair.cop[:, k, 1], pair.cop[:, k, 0], color=FOOT_COLOURS[k], linewidth=1.6)
    above.plot(-pair.total_cop[:, 1], pair.total_cop[:, 0], color=TOTAL_COLOUR, linewidth=1.6)
    above.plot(-pair.total_cop[0, 1], pair.total_cop[0, 0], "o", color=TOTAL_COLOUR)
    label(above, "CoP of each plate; black: both", x="to the right [m]", y="forward [m]", aspect="equal")
    draw_squats(figure.add_subplot(grid[:2, 2]), figure.add_subplot(grid[2, 2]), result)


def draw_squats(whole: Axes, close: Axes, result: PlatesResult) -> None:
    """Draw the squats, and an enlarged view of the plate's steps."""
    single, weight = result.single, result.squat.recording.weight
    ends = squats.BEGIN + np.concatenate([[0.0], np.cumsum(squats.PERIODS)])
    read = f"read, steps of {RESOLUTION:g} N"
    for ax in (whole, close):
        ax.plot(single.t, single.steps[:, 0, UP], color=MARK_COLOUR, linewidth=0.6, label=read)
        ax.plot(single.t, single.force[:, 0, UP], color=FOOT_COLOURS[0], label=f"filtered, {CUTOFF:g} Hz")
    whole.axhline(weight, color=LIMIT_COLOUR, linestyle="--", linewidth=0.8, label="m g")
    bottoms = 0.5 * (ends[1:] + ends[:-1])
    expected = [weight / 9.81 * (9.81 + 24.0 * squats.DEPTH / T**2) for T in squats.PERIODS]
    whole.plot(bottoms, expected, "o", color=TOTAL_COLOUR, markerfacecolor="none", label="m (g + 24 depth / T²)")
    rows = single.t > ends[0] - 0.25
    limits = single.force[rows, 0, UP].min() - 30.0, single.force[rows, 0, UP].max() + 30.0
    span = (ends[0] - 0.25, ends[-1] + 0.5)
    label(whole, "two squats, vertical [N]", legend="upper left", xlim=span, ylim=limits)
    top = float(np.interp(bottoms[1], single.t, single.force[:, 0, UP]))
    span = (bottoms[1] - 0.06, bottoms[1] + 0.06)
    label(close, "the bottom of the second, from near [N]", time="time [s]", xlim=span, ylim=(top - 14.0, top + 3.0))


case = study(measure, checks, draw, (14.0, 8.0))
