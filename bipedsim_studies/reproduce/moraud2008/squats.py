"""Fig. 11: two squats one after the other, 1.25 s and 1 s, open-loop joint trajectories under PD."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from bipedsim.analysis import low_pass
from bipedsim.control.posture import Postures
from bipedsim.model import Robot, load_robot
from bipedsim.sim import Command, Observation, Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import Check, Outcome, Trace, at_most, equal, shown, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

ROBOT = "biped14"
PERIODS = (1.25, 1.0)
"""Times of the two squats [s]."""
BEGIN = 1.5
"""When the first one begins [s]: the robot has sagged into its PD by then."""
END = 1.0
"""Time after the last one [s]."""
KP, KD, DT = 8000.0, 160.0, 5e-4
"""Gains of every joint [N.m/rad], [N.m.s/rad], as stiff as position-controlled drives, and their period [s]."""
CUTOFF, ORDER = 20.0, 5
"""Butterworth low-pass of the paper [Hz]."""
DEPTH = 0.08
"""Lowering of the CoM [m]."""
DURATION = BEGIN + sum(PERIODS) + END


def lowering(t: float) -> tuple[float, float, float]:
    """Return the lowering of the CoM [m] at ``t`` [s] with its two derivatives: 64 x^3 (1 - x)^3 for each squat."""
    start = BEGIN
    for period in PERIODS:
        x = (t - start) / period
        if 0.0 < x < 1.0:
            u, slope = x * (1.0 - x), (1.0 - 2.0 * x) / period
            bend = slope * slope - u / (period * period)
            return 64.0 * DEPTH * u**3, 192.0 * DEPTH * u * u * slope, 384.0 * DEPTH * u * bend
        start += period
    return 0.0, 0.0, 0.0


class JointTrajectory:
    """PD along joint trajectories that know nothing of the CoM, of gravity or of the ground."""

    def __init__(self, robot: Robot) -> None:
        s, joints = Postures(robot, robot.posture).squat(DEPTH)
        self._joints = CubicSpline(s, joints)
        self._rates = self._joints.derivative()
        self._command = Command(np.zeros(robot.nu))

    def reset(self, observation: Observation) -> None:
        """There is nothing to remember."""

    def update(self, observation: Observation) -> Command:
        """Return the torques of one tick."""
        s, ds, _ = lowering(observation.t)
        position, velocity = self._joints(s), self._rates(s) * ds
        self._command.tau_joint[:] = KP * (position - observation.joint_position)
        self._command.tau_joint += KD * (velocity - observation.joint_velocity)
        return self._command


def trace(progress: bool = False) -> Trace:
    """Simulate the two squats."""
    robot = load_robot(ROBOT)
    return simulate(Simulator(robot, physics_dt=DT), JointTrajectory(robot), DURATION, "fig11", progress)


def filtered(values: Array, rate: float) -> Array:
    """Return ``values`` (n,) as a force plate's software would have shown them."""
    return low_pass(values, rate, CUTOFF, ORDER)


def curves(run: Trace) -> dict[str, Array]:
    """Return the filtered vertical forces [N]: measured, of the CoM's acceleration, and of the planned one."""
    robot = load_robot(ROBOT)
    g = robot.weight / robot.mass
    rate = 1.0 / float(np.median(np.diff(run.recording.t)))
    planned = np.array([-lowering(t)[2] for t in run.recording.t])
    return {
        "f_z": filtered(run.recording.wrench[:, :, 2].sum(axis=1), rate),
        "m (g + a_com)": filtered(robot.mass * (g + run.a_com[:, 2]), rate),
        "planned": filtered(robot.mass * (g + planned), rate),
    }


def moving(t: Array) -> NDArray[np.bool_]:
    """Return the rows from shortly before the first squat to shortly after the second."""
    return np.asarray((t > BEGIN - 0.25) & (t < BEGIN + sum(PERIODS) + 0.5))


def checks(run: Trace) -> tuple[Check, ...]:
    """Return the figures of Fig. 11."""
    lines = curves(run)
    rows = moving(run.recording.t)
    weight = run.recording.weight
    off = np.abs(lines["f_z"] - lines["m (g + a_com)"]).max()
    plan_off = np.abs(lines["f_z"] - lines["planned"])[rows].max()
    span = np.ptp(lines["planned"])
    return (
        at_most("filtered |f_z - m (g + a_com)|, largest", off, 0.1, "N"),
        shown("span of the planned force", span, "N"),
        shown("filtered |f_z - m (g + planned a)|, largest", plan_off, "N"),
        at_most("the same over the span", plan_off / span, 0.05),
        at_most("|mean f_z / (m g) - 1| over both squats", abs(lines["f_z"][rows].mean() / weight - 1.0), 1e-3),
        equal("state changes", run.summary["state_changes"], 0),
        equal("unresolved steps", run.summary["unresolved_steps"], 0),
    )


def draw(figure: Figure, run: Trace) -> None:
    """Draw the forces, as in the paper, and the CoM's height above them."""
    t = run.recording.t
    lines = curves(run)
    axes = figure.subplots(3, 1, sharex=True, height_ratios=[1.0, 2.2, 0.8])
    height = run.com[:, 2] - run.com[np.searchsorted(t, BEGIN) - 1, 2]
    axes[0].plot(t, -1e3 * np.array([lowering(x)[0] for x in t]), color=TOTAL_COLOUR, linestyle=":", label="planned")
    axes[0].plot(t, 1e3 * height, color=FOOT_COLOURS[2], label="CoM")
    axes[0].set_title("height of the CoM over standing [mm]", pad=3)
    axes[1].plot(t, lines["planned"], color=TOTAL_COLOUR, linestyle=":", label="m (g + a) as planned")
    axes[1].plot(t, lines["m (g + a_com)"], color=FOOT_COLOURS[1], linewidth=2.4, label="sum m (g + a_com)")
    axes[1].plot(t, lines["f_z"], color=FOOT_COLOURS[0], linewidth=0.9, label="f_z under both feet")
    axes[1].axhline(run.recording.weight, color=LIMIT_COLOUR, linestyle="--", linewidth=0.8, label="m g")
    axes[1].set_title(f"vertical force [N], low-pass {CUTOFF:g} Hz, order {ORDER}", pad=3)
    axes[2].plot(t, lines["f_z"] - lines["planned"], color=TOTAL_COLOUR, linestyle=":", label="f_z - planned")
    axes[2].plot(t, lines["f_z"] - lines["m (g + a_com)"], color=FOOT_COLOURS[1], label="f_z - sum m (g + a_com)")
    axes[2].set_title("differences [N]", pad=3)
    for ax in axes:
        ax.legend(ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        start = BEGIN
        for period in PERIODS:
            ax.axvspan(
                start, start + period, color="#777777", alpha=0.06 if period == PERIODS[0] else 0.13, linewidth=0
            )
            start += period
    rows = moving(t)
    low, high = lines["f_z"][rows].min(), lines["f_z"][rows].max()
    axes[1].set_ylim(low - 0.1 * (high - low), high + 0.2 * (high - low))
    worst = np.abs(lines["f_z"] - lines["planned"])[rows].max()
    axes[2].set_ylim(-1.1 * worst, 1.1 * worst)
    start = BEGIN
    for period in PERIODS:
        axes[1].text(start + 0.5 * period, high + 0.1 * (high - low), f"squat of {period:g} s", ha="center")
        start += period
    axes[2].set_xlabel("time [s]")
    axes[2].set_xlim(BEGIN - 0.25, BEGIN + sum(PERIODS) + 0.5)


def case(progress: bool) -> Outcome:
    """Run Fig. 11."""
    run = trace(progress)
    return Outcome(checks(run), lambda figure: draw(figure, run), (10.0, 7.5))
