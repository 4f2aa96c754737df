"""Simulate the compass walker: its passive gait, and its return to the gait under PFL after a disturbance.

The paper shows the walker in figures. The initial state and the disturbance are from its code. The passive gait is that
of Bhounsule's walker, on which the paper is based. Touchdowns are impacts of the simulator's contact model, and the
controller detects them by the load cells in the feet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bipedsim.control import make_controller
from bipedsim.ground import get_ground
from bipedsim.model import load_robot
from bipedsim.numerics import Array, Indices
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.adubredu.ideal_walker import SLOPE, TARGET, WALKER, strides
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.stability import Stride

PASSIVE = np.array([0.16259783, -0.23186964, -0.32519567, 0.03797847])
"""State of the passive gait after a heel strike."""
PASSIVE_PERIOD = 2.468579
START = np.array([0.14282, -0.326813112785275, -0.28564, 0.068243824367047])
"""Initial state of the controlled walk, and its disturbance [rad, rad/s]."""
DISTURBANCE = np.array([0.0, 0.05, -0.1, 0.2])
REST = np.array([-0.04, 0.0, -0.2, 0.0])
"""Initial posture of the robot, about to fall forwards; its first step has no mid-stance."""
STEPS = 20
PASSIVE_STEPS = 20
CONTROL_DT = 4e-3


class CompassWalk(NamedTuple):
    """Walk of the simulator.

    Attributes:
        t: (n,) times [s].
        leg, leg_rate: (n,) angle of the stance leg from the slope's normal [rad], and its rate [rad/s].
        swing: (n,) angle of the swing leg from the stance leg [rad].
        torque: (n,) torque of the hip [N.m].
        touch_downs: (m,) times of the touchdowns [s].
        mid_speeds: (m,) theta_1' when the stance leg is normal to the slope [rad/s].
    """

    t: Array
    leg: Array
    leg_rate: Array
    swing: Array
    torque: Array
    touch_downs: Array
    mid_speeds: Array


def walk(
    state: Array | None, steps: int, controlled: bool, physics_dt: float = 1e-3, contact: str = "one_step"
) -> CompassWalk:
    """Walk ``steps`` steps from a state of the paper, or from rest in the robot's own posture if it is None.

    The controller acts, and the walk is sampled, at every ``CONTROL_DT``.

    Raises:
        ArithmeticError: The walker falls before the last step.
    """
    robot = load_robot("compass")
    sim = Simulator(robot, get_ground("downhill"), contact=contact, physics_dt=physics_dt, control_dt=CONTROL_DT)
    observation = sim.reset() if state is None else sim.reset(*WALKER.robot_state(state))
    controller = make_controller("pfl", robot, dt=CONTROL_DT) if controlled else None
    if controller is not None:
        controller.reset(observation)
    rows: list[tuple[float, ...]] = []
    touch_downs: list[float] = []
    speeds: list[float] = []
    stance = 0
    torque = np.zeros(1)
    while len(touch_downs) < steps:
        if controller is not None:
            torque = controller.update(observation).tau_joint
        observation = sim.step(torque)
        load = sim.contact.wrench[:, 2]
        if load[1 - stance] > load[stance]:
            stance = 1 - stance
            touch_downs.append(sim.t)
        angle, rate = sim.q[2] + SLOPE, sim.v[2]
        relative, relative_rate = sim.q[3], sim.v[3]
        if stance == 1:
            angle, rate, relative = angle + relative, rate + relative_rate, -relative
        if abs(angle) > 1.0:
            raise ArithmeticError(f"the walker has fallen at t = {sim.t:.3f} s, after {len(touch_downs)} steps")
        if rows and rows[-1][1] > 0.0 >= angle:
            fraction = rows[-1][1] / (rows[-1][1] - angle)
            speeds.append(float((1.0 - fraction) * rows[-1][2] + fraction * rate))
        rows.append((sim.t, float(angle), float(rate), float(relative), float(torque[0])))
    t, leg, leg_rate, swing, torques = np.array(rows).T
    return CompassWalk(t, leg, leg_rate, swing, torques, np.array(touch_downs), np.array(speeds))


class CompassRuns(NamedTuple):
    """All runs of the case."""

    passive: CompassWalk
    finer: CompassWalk
    disturbed: CompassWalk
    from_rest: CompassWalk
    ideal: list[Stride]
    ideal_from_rest: list[Stride]


def measure(_progress: bool = False) -> CompassRuns:
    """Simulate passive walks with two step sizes and walks under PFL, and compute the same from event to event."""
    return CompassRuns(
        walk(PASSIVE, PASSIVE_STEPS, False),
        walk(PASSIVE, PASSIVE_STEPS, False, physics_dt=2.5e-4),
        walk(START + DISTURBANCE, STEPS, True),
        walk(None, STEPS, True),
        strides(START + DISTURBANCE, STEPS, True),
        strides(REST, STEPS + 1, True),
    )


def period(run: CompassWalk, last: int = 10) -> float:
    """Return the mean duration of the last steps [s]."""
    return float((run.touch_downs[-1] - run.touch_downs[-1 - last]) / last)


def checks(runs: CompassRuns) -> Iterator[Check]:
    """Yield the checks of the walks."""
    ideal = np.array([step.mid_speed for step in runs.ideal])
    speeds = runs.disturbed.mid_speeds
    gait, ideal_gait = float(speeds[-8:].mean()), float(ideal[-1])
    ideal_from_rest = np.array([step.mid_speed for step in runs.ideal_from_rest[1:]])
    difference = float(np.abs(runs.from_rest.mid_speeds[: STEPS - 1] - ideal_from_rest[: STEPS - 1]).max())
    torque = max(float(np.abs(run.torque).max()) for run in (runs.disturbed, runs.from_rest))
    target = float(np.abs(np.abs(runs.disturbed.swing[_ends(runs.disturbed)]) - TARGET).max())
    yield Check.equal("steps without a motor", len(runs.passive.touch_downs), PASSIVE_STEPS)
    yield Check.near("period without a motor, h = 1 ms", period(runs.passive), PASSIVE_PERIOD, 1.5e-3, "s")
    yield Check.near("the same, h = 0.25 ms", period(runs.finer), PASSIVE_PERIOD, 6e-4, "s")
    yield Check.equal("steps under PFL from the disturbed start", len(runs.disturbed.touch_downs), STEPS)
    yield Check.equal("steps under PFL from rest", len(runs.from_rest.touch_downs), STEPS)
    yield Check.near(
        "speed at mid-stance of the gait, h = 1 ms, against that by events", gait, ideal_gait, 5e-3, "rad/s"
    )
    yield Check.near("from rest: the same gait", float(runs.from_rest.mid_speeds[-8:].mean()), gait, 2e-3, "rad/s")
    yield Check.at_most(
        "change of that speed from the second step on", float(np.abs(speeds[1:] - gait).max()), 2e-3, "rad/s"
    )
    yield Check.at_most("from rest: speeds at mid-stance against those by events", difference, 5e-3, "rad/s")
    yield Check.near("period of the gait, by events", runs.ideal[-1].duration, period(runs.disturbed), 0.025, "s")
    yield Check.at_most("|theta_2 - 0.28564| at touch-downs", target, 5e-3, "rad")
    yield Check.shown("largest torque of the hip", torque, "N.m")


def _ends(run: CompassWalk) -> Indices:
    """Return the last rows before touchdowns, without the first one, which ends a disturbed step."""
    return np.searchsorted(run.t, run.touch_downs[1:]) - 1


def return_table(runs: CompassRuns) -> str:
    """Return a table of the disturbed walk's return to the gait, step by step."""
    lines = ["  step  engine: period [s]  mid-stance [rad/s]   by events: period [s]  mid-stance [rad/s]"]
    periods = np.diff(np.concatenate([[0.0], runs.disturbed.touch_downs]))
    for i in (0, 1, 2, 3, 4, 6, 8, 12, 16, STEPS - 1):
        simulated, ideal = (periods[i], runs.disturbed.mid_speeds[i]), runs.ideal[i]
        lines.append(
            f"  {i + 1:4}  {simulated[0]:18.3f}  {simulated[1]:18.4f}   {ideal.duration:21.3f}  {ideal.mid_speed:18.4f}"
        )
    return "\n".join(lines)


def draw(figure: Figure, runs: CompassRuns) -> None:
    """Draw the return to the gait in the phase plane and by step, the swings, and the passive gait."""
    (phase, steps), (swing, passive) = figure.subplots(2, 2)
    run = runs.disturbed
    phase.plot(run.leg, run.leg_rate, color=FOOT_COLOURS[0], linewidth=0.6, label="engine, one_step, h = 1 ms")
    path = runs.ideal[-1].path
    phase.plot(path[:, 0], path[:, 1], color=LIMIT_COLOUR, linestyle="--", label="gait by events")
    phase.plot(run.leg[0], run.leg_rate[0], "o", color=FOOT_COLOURS[0], markersize=4)
    label(phase, x="stance leg from the slope's normal [rad]", y="its rate [rad/s]", legend="best")
    for first, name, speeds, colour, mark in (
        (1, "engine, disturbed", run.mid_speeds, FOOT_COLOURS[0], "o"),
        (2, "engine, from rest", runs.from_rest.mid_speeds, FOOT_COLOURS[1], "s"),
        (1, "by events", [step.mid_speed for step in runs.ideal], LIMIT_COLOUR, "x"),
        (1, None, [step.mid_speed for step in runs.ideal_from_rest], LIMIT_COLOUR, "x"),
    ):
        steps.plot(np.arange(first, first + len(speeds)), speeds, mark, color=colour, markersize=3, label=name)
    label(steps, x="step", y="rate of the stance leg at mid-stance [rad/s]", legend="best")
    shown_until = run.t < run.touch_downs[3]
    swing.plot(run.t[shown_until], run.swing[shown_until], color=FOOT_COLOURS[0], label="swinging leg from stance leg")
    swing.axhline(TARGET, color=LIMIT_COLOUR, linestyle="--", linewidth=0.8, label="target")
    swing.plot(run.t[shown_until], run.torque[shown_until], color=FOOT_COLOURS[1], label="torque of the hip [N.m]")
    label(swing, time="time [s]", y="angle [rad]", legend="best")
    passive.plot(runs.finer.leg, runs.finer.leg_rate, color=TOTAL_COLOUR, linewidth=0.6, label="engine, h = 0.25 ms")
    passive.plot(*PASSIVE[:2], "x", color=LIMIT_COLOUR, label="fixed point")
    label(passive, "without a motor", x="stance leg from the slope's normal [rad]", y="its rate [rad/s]", legend="best")


case = study(measure, checks, draw, (11.0, 8.0), return_table)
