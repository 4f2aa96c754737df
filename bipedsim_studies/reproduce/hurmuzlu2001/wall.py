"""Move a manipulator to a wall, let it rebound to rest, press and slide along the wall, and leave (Fig. 1e, eq. 43).

The phases of eq. 43 are: free motion and impacts, constrained motion, free motion, impacts, constrained motion. The
wall is the plane z = 0. The tip has the coordinates x along the wall and z away from it.

Computed torque decouples x and z, so the phases have closed forms. Towards the wall, the tip has a constant
acceleration and rebounds like a falling ball.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.complementarity import Motion, Rebound, System, Terms, motion
from bipedsim_studies.reproduce.common import MARK_COLOUR, Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import Mechanics, X, Z, mechanics, of_frames

RESTITUTION = 0.5
PULL = 4.0
"""Acceleration towards the wall before and between impacts [m/s^2]."""
START = np.array([0.6, 0.2])
"""Initial position of the tip (x, z) [m], at rest."""
AMPLITUDE, RATE, STIFFNESS, DAMPING = 0.08, 3.0, 100.0, 20.0
"""Target of x, 0.08 sin(3 t) [m], as amplitude and frequency; gains of its error [1/s^2], [1/s]."""
PUSH, SWELL = 20.0, 8.0
"""Force on the wall: mean and amplitude of the commanded sine [N]."""
LEAVE, BACK = 2.0, 2.5
"""Times at which the tip is commanded to leave the wall and to return to it [s]."""
END = 4.0
HELD = 0.15
"""Height to which the tip retracts [m]."""
ENGINE_STEP = 5e-4
"""Physics step of the simulator [s]."""
REST_SPEED = 1e-4
"""Normal velocity below which the tip does not rebound [m/s]."""
Phase = Literal["fall", "push", "leave"]
"""Task of the arm: fall to the wall and rebound, press on it, or leave it."""


def along(t: float) -> Array:
    """Return desired position, velocity and acceleration along the wall."""
    s, c = math.sin(RATE * t), math.cos(RATE * t)
    return AMPLITUDE * np.array([s, RATE * c, -(RATE**2) * s]) + np.array([START[0], 0.0, 0.0])


def force(t: float) -> float:
    """Return the desired force on the wall [N]."""
    return PUSH + SWELL * math.sin(2.0 * RATE * t)


def torque(t: float, state: Mechanics, v: Array, phase: Phase) -> Array:
    """Return the torques (2,) of a phase [N.m]."""
    rows = state.rows[0][[X, Z]]
    x = state.position[0, X]
    target, speed, acceleration = along(t)
    dx = float(rows[0] @ v)
    z, dz = float(state.position[0, Z]), float(rows[1] @ v)
    normal_acceleration = {"fall": -PULL, "push": 0.0, "leave": -STIFFNESS * (z - HELD) - DAMPING * dz}[phase]
    desired = np.array([acceleration - STIFFNESS * (x - target) - DAMPING * (dx - speed), normal_acceleration])
    tau = state.M @ np.linalg.solve(rows, desired - state.drift[0][[X, Z]]) + state.nle
    if phase == "push":
        tau = tau - force(t) * rows[1]
    return np.asarray(tau)


class WallTask:
    """Arm and its control law in the current phase."""

    def __init__(self) -> None:
        self.robot = body("arm")
        self.points = of_frames(self.robot, ["tip"])
        self.phase: Phase = "fall"

    def state(self, q: Array, v: Array) -> Mechanics:
        """Return the arm's mechanics at q (2,), v (2,)."""
        return mechanics(self.robot, q, v, self.points)

    def system(self) -> System:
        """Return the arm with the wall as a system with one contact."""

        def terms(t: float, q: Array, v: Array) -> Terms:
            state = self.state(q, v)
            h = torque(t, state, v, self.phase) - state.nle
            return Terms(state.M, h, state.rows[0, [Z]], state.drift[0, [Z]], state.position[0, [Z]])

        return terms

    def start(self) -> Array:
        """Return q (2,) with the tip at ``START``, by Newton's method."""
        q = self.robot.q_nominal.copy()
        for _ in range(50):
            state = self.state(q, np.zeros(2))
            q = q - np.linalg.solve(state.rows[0][[X, Z]], state.position[0][[X, Z]] - START)
        return q


@dataclass(frozen=True, eq=False)
class WallResult:
    """Motions of the task, event by event and by the simulator.

    Attributes:
        motions: Motions of the phases.
        tips: Paths (n, 2) of the tip in each phase, x and z [m].
        engine: Time (n,) [s], z (n,) [m] and force (n,) [N] of the simulator's run.
    """

    motions: list[Motion]
    tips: list[Array]
    engine: tuple[Array, Array, Array]


def measure(_progress: bool = False) -> WallResult:
    """Compute the task event by event and with the simulator."""
    task = WallTask()
    q, v, t = task.start(), np.zeros(2), 0.0
    motions, tips = [], []
    plan: tuple[tuple[Phase, float | None], ...]
    plan = ("fall", None), ("push", LEAVE), ("leave", BACK), ("fall", None), ("push", END)
    for task.phase, until in plan:
        if until is None:
            # The phase lasts as long as the rebounds of a falling ball. Force control starts then.
            until = t + rebounds(*task_height(task, q, v))[-1] + 0.02
        segment = motion(task.system(), q, v, until - t, start=t, rebound=Rebound(RESTITUTION, REST_SPEED))
        t, q, v = float(segment.t[-1]), segment.q[-1], segment.v[-1]
        motions.append(segment)
        tips.append(np.array([task.state(q, v).position[0][[X, Z]] for q, v in zip(segment.q, segment.v, strict=True)]))
    switch = float(motions[1].t[0]), float(motions[4].t[0])
    return WallResult(motions, tips, by_engine(switch))


def task_height(task: WallTask, q: Array, v: Array) -> tuple[float, float]:
    """Return height [m] and normal velocity [m/s] of the tip."""
    state = task.state(q, v)
    return float(state.position[0, Z]), float(state.rows[0, Z] @ v)


def rebounds(height: float, speed: float) -> Array:
    """Return the impact times [s] of a point that accelerates by ``PULL`` and rebounds until ``REST_SPEED``."""
    arrival = math.sqrt(speed**2 + 2.0 * PULL * height)
    times = [(speed + arrival) / PULL]
    while (arrival := arrival * RESTITUTION) > REST_SPEED:
        times.append(times[-1] + 2.0 * arrival / PULL)
    return np.array(times)


def by_engine(switches: tuple[float, float]) -> tuple[Array, Array, Array]:
    """Return time (n,) [s], height (n,) [m] and force (n,) [N] from the simulator with ``lcp`` and restitution."""
    task = WallTask()
    params = {"restitution": RESTITUTION, "rest_speed": 5e-3, "gamma": 1e-6}
    sim = Simulator(task.robot, contact="lcp", physics_dt=ENGINE_STEP, contact_params=params)
    sim.reset(task.start(), np.zeros(2))
    rows = []
    for k in range(round(END / ENGINE_STEP)):
        t = k * ENGINE_STEP
        pushes = switches[0] <= t < LEAVE or t >= switches[1]
        phase: Phase = "push" if pushes else "leave" if LEAVE <= t < BACK else "fall"
        contact = sim.advance(torque(t, task.state(sim.q, sim.v), sim.v, phase))
        if k % 2 == 0:
            rows.append((t + ENGINE_STEP, task.state(sim.q, sim.v).position[0, Z], contact.vertex_forces[0, 0, 2]))
    t, z, pushed = np.array(rows).T
    return t, z, pushed


def checks(result: WallResult) -> Iterator[Check]:
    """Yield the comparison of the phases with their closed forms."""
    first, pressed, away, _, _ = result.motions
    times = rebounds(START[1], 0.0)
    yield Check.equal("impacts until it rests", len(first.impacts), len(times))
    yield Check.at_most("|impacts - those of a ball|", float(np.abs(first.times - times).max()), 1e-6, "s")
    lack = [pushed - force(t) for t, pushed in zip(pressed.t, pressed.force[:, 0], strict=True)]
    yield Check.at_most("constrained: |force - wanted|", float(np.abs(lack).max()), 1e-6, "N")
    yield Check.at_most("... |distance from the wall|", float(np.abs(result.tips[1][:, 1]).max()), 1e-7, "m")
    errors = [abs(float(tip[0] - along(t)[0])) for t, tip in zip(pressed.t, result.tips[1], strict=True)]
    yield Check.at_most("... error along it at the end", errors[-1], 1e-4, "m")
    elapsed = away.t - away.t[0]
    w = math.sqrt(STIFFNESS)
    closed = HELD * (1.0 - (1.0 + w * elapsed) * np.exp(-w * elapsed))
    yield Check.at_most("free: |distance - closed form|", float(np.abs(result.tips[2][:, 1] - closed).max()), 1e-7, "m")
    pushed = np.concatenate([m.force[:, 0] for m in result.motions])
    yield Check.at_least("least force, any phase", float(pushed.min()), -1e-9, "N")
    t, z, engine = result.engine
    settled = (t > pressed.t[0] + 0.05) & (t < LEAVE - 0.01)
    expected = np.array([force(time) for time in t[settled]])
    yield Check.at_most(
        "engine: |force - wanted|, constrained", float(np.abs(engine[settled] - expected).max()), 0.1, "N"
    )
    before = t < LEAVE
    height = np.interp(t[before], np.concatenate([m.t for m in result.motions]), np.concatenate(result.tips)[:, 1])
    yield Check.at_most("... |distance - event by event|", float(np.abs(z[before] - height).max()), 2e-3, "m")


def draw(figure: Figure, result: WallResult) -> None:
    """Draw the tip and the force over time."""
    above, along_wall, below = figure.subplots(3, 1, sharex=True)
    t = np.concatenate([m.t for m in result.motions])
    tip = np.concatenate(result.tips)
    above.plot(t, tip[:, 1], color=FOOT_COLOURS[0], label="event by event")
    above.plot(result.engine[0], result.engine[1], ":", color=FOOT_COLOURS[1], label="engine, lcp")
    label(above, "distance from the wall", y="z [m]", legend="above")
    along_wall.plot(t, tip[:, 0], color=FOOT_COLOURS[0], label="tip")
    along_wall.plot(t, [along(time)[0] for time in t], "--", color=LIMIT_COLOUR, label="wanted")
    label(along_wall, "along the wall", y="x [m]", legend="above")
    below.plot(result.engine[0], result.engine[2], color=FOOT_COLOURS[1], linewidth=0.7, label="engine, lcp")
    below.plot(t, np.concatenate([m.force[:, 0] for m in result.motions]), color=FOOT_COLOURS[0], label="force")
    below.plot(t, [force(time) for time in t], "--", color=LIMIT_COLOUR, linewidth=0.8, label="wanted")
    label(below, "force on the wall", time="time [s]", y="f [N]", legend="above", ylim=(-2.0, 45.0))
    names = ["$\\Omega_0$  $I_0$", "$\\Omega_1$", "$\\Omega_2$", "$I_1$", "$\\Omega_3$"]
    for segment, name in zip(result.motions, names, strict=True):
        for ax in (above, along_wall, below):
            ax.axvline(segment.t[0], color=MARK_COLOUR, linewidth=0.8)
        above.text(0.5 * (segment.t[0] + segment.t[-1]), 0.21, name, ha="center")
    above.set_ylim(-0.01, 0.24)


case = study(measure, checks, draw, (11.0, 8.0))
