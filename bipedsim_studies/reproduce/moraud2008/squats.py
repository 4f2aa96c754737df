"""Perform two squats of 1.25 s and 1 s with open-loop joint trajectories under PD control (Fig. 11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from bipedsim.analysis import low_pass
from bipedsim.control.posture import Postures
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Command, Observation, Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import MARK_COLOUR, Check, Figure, Trace, label, simulate, study

ROBOT = "biped14"
PERIODS = (1.25, 1.0)
"""Durations of the two squats [s]."""
BEGIN = 1.5
"""Start of the first squat [s], after the robot has settled under its PD control."""
END = 1.0
"""Time after the last squat [s]."""
KP, KD, DT = 8000.0, 160.0, 5e-4
"""Gains of each joint [N.m/rad], [N.m.s/rad], as stiff as position-controlled drives, and control period [s]."""
CUTOFF, ORDER = 20.0, 5
"""Cutoff frequency [Hz] and order of the paper's Butterworth low-pass."""
DEPTH = 0.08
"""Depth of the squats: lowering of the CoM [m]."""
DURATION = BEGIN + sum(PERIODS) + END


def lowering(t: float) -> tuple[float, float, float]:
    """Return the lowering of the CoM [m] at ``t`` [s] and two derivatives: 64 x^3 (1 - x)^3 in each squat."""
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
    """PD control along joint trajectories that are independent of CoM, gravity and ground."""

    def __init__(self, robot: Robot) -> None:
        s, joints = Postures(robot, robot.posture).squat(DEPTH)
        self._joints = CubicSpline(s, joints)
        self._rates = self._joints.derivative()
        self._command = Command(np.zeros(robot.nu))

    def reset(self, observation: Observation) -> None:
        """Do nothing, because the controller has no state."""

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


def curves(run: Trace) -> dict[str, Array]:
    """Return filtered vertical forces [N]: measured, from the simulated CoM acceleration, and from the planned one.

    The filter is that of a force plate's software.
    """
    robot = load_robot(ROBOT)
    g = robot.weight / robot.mass
    rate = 1.0 / float(np.median(np.diff(run.recording.t)))
    planned = np.array([-lowering(t)[2] for t in run.recording.t])
    forces = {
        "f_z": run.recording.wrench[:, :, 2].sum(axis=1),
        "m (g + a_com)": robot.mass * (g + run.a_com[:, 2]),
        "planned": robot.mass * (g + planned),
    }
    return {name: low_pass(force, rate, CUTOFF, ORDER) for name, force in forces.items()}


def moving(t: Array) -> Flags:
    """Return the rows from shortly before the first squat until shortly after the second."""
    return np.asarray((t > BEGIN - 0.25) & (t < BEGIN + sum(PERIODS) + 0.5))


def checks(run: Trace) -> Iterator[Check]:
    """Yield the checks of Fig. 11."""
    lines = curves(run)
    rows = moving(run.recording.t)
    mean = lines["f_z"][rows].mean() / run.recording.weight
    error = np.abs(lines["f_z"] - lines["m (g + a_com)"]).max()
    plan_error = np.abs(lines["f_z"] - lines["planned"])[rows].max()
    span = np.ptp(lines["planned"])
    yield Check.at_most("filtered |f_z - m (g + a_com)|, largest", error, 0.1, "N")
    yield Check.shown("span of the planned force", span, "N")
    yield Check.shown("filtered |f_z - m (g + planned a)|, largest", plan_error, "N")
    yield Check.at_most("the same over the span", plan_error / span, 0.05)
    yield Check.at_most("|mean f_z / (m g) - 1| over both squats", abs(mean - 1.0), 1e-3)
    yield Check.equal("state changes", run.summary["state_changes"], 0)
    yield Check.equal("unresolved steps", run.summary["unresolved_steps"], 0)


def draw(figure: Figure, run: Trace) -> None:
    """Draw the forces as in the paper, with the height of the CoM above them."""
    t = run.recording.t
    force, of_com, planned = curves(run).values()
    axes = figure.subplots(3, 1, sharex=True, height_ratios=[1.0, 2.2, 0.8])
    height = run.com[:, 2] - run.com[np.searchsorted(t, BEGIN) - 1, 2]
    dotted: dict[str, Any] = {"color": TOTAL_COLOUR, "linestyle": ":"}
    axes[0].plot(t, -1e3 * np.array([lowering(x)[0] for x in t]), label="planned", **dotted)
    axes[0].plot(t, 1e3 * height, color=FOOT_COLOURS[2], label="CoM")
    axes[1].plot(t, planned, label="m (g + a) as planned", **dotted)
    axes[1].plot(t, of_com, color=FOOT_COLOURS[1], linewidth=2.4, label="sum m (g + a_com)")
    axes[1].plot(t, force, color=FOOT_COLOURS[0], linewidth=0.9, label="f_z under both feet")
    axes[1].axhline(run.recording.weight, color=LIMIT_COLOUR, linestyle="--", linewidth=0.8, label="m g")
    axes[2].plot(t, force - planned, label="f_z - planned", **dotted)
    axes[2].plot(t, force - of_com, color=FOOT_COLOURS[1], label="f_z - sum m (g + a_com)")
    rows = moving(t)
    low, high = force[rows].min(), force[rows].max()
    worst = np.abs(force - planned)[rows].max()
    start = BEGIN
    for period, alpha in zip(PERIODS, (0.06, 0.13), strict=True):
        for ax in axes:
            ax.axvspan(start, start + period, color=MARK_COLOUR, alpha=alpha, linewidth=0)
        axes[1].text(start + 0.5 * period, high + 0.1 * (high - low), f"squat of {period:g} s", ha="center")
        start += period
    label(axes[0], "height of the CoM over standing [mm]", legend="above")
    force_title = f"vertical force [N], low-pass {CUTOFF:g} Hz, order {ORDER}"
    label(axes[1], force_title, legend="above", ylim=(low - 0.1 * (high - low), high + 0.2 * (high - low)))
    label(axes[2], "differences [N]", time="time [s]", legend="above", ylim=(-1.1 * worst, 1.1 * worst))
    axes[2].set_xlim(BEGIN - 0.25, BEGIN + sum(PERIODS) + 0.5)


case = study(trace, checks, draw, (10.0, 7.5))
