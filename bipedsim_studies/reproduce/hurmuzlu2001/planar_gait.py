"""Let a planar biped walk under computed torque, from standing to standing and with a push (Fig. 5, section 5.2.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pinocchio as pin

from bipedsim.config import RunConfig
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Flags
from bipedsim.recording import Recording
from bipedsim.runs import run
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, TOTAL_COLOUR, time_axis
from bipedsim_studies.gait_modes import GaitReport, report_recording
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z

ROBOT = "planar_biped"
N_STEPS = 20
STRIDE = 1.2
"""Duration of two steps of the default gait [s]."""
BEGIN = 1.1
"""Time of the first lift-off, after standing and the first weight shift [s]."""
PUSH_AT, PUSH, PUSH_TIME = 1.9, 5.0, 0.05
"""Forward push of the trunk in single support [s, N.s, s]; its run ends one stride later."""
SETTLED = 0.02
"""Time after an impact in which the CoP margin is not evaluated [s]."""
FIRM = 0.1
"""Fraction of the weight above which the CoP margin of a foot is evaluated; below, it lifts off or touches down."""
FIGURES = 13
"""Number of stick figures per stride."""


@dataclass(eq=False)
class PushObserver:
    """Record the configurations of a run and apply the push.

    Attributes:
        impulse: Impulse of the push [N.s], 0 for none.
        q: Configurations (nq,), one per tick.
    """

    impulse: float = 0.0
    q: list[Array] = field(default_factory=list)

    def start(self, sim: Simulator, readouts: Mapping[str, float]) -> None:
        """Store the simulator."""
        self._sim = sim

    def tick(self, tau_joint: Array, seconds: float) -> None:
        """Store the configuration, and start the push at its time."""
        sim = self._sim
        self.q.append(sim.q.copy())
        if self.impulse and len(self.q) == round(PUSH_AT / sim.control_dt):
            sim.push(np.array([self.impulse / PUSH_TIME, 0.0, 0.0, 0.0, 0.0, 0.0]), "base_link", PUSH_TIME)


@dataclass(frozen=True, eq=False)
class PlanarGaitResult:
    """Walk without and with a push.

    Attributes:
        robot: The biped.
        recording: Recording of the walk without a push.
        q: (n, 9) configurations of this walk.
        pushed: (m, 9) configurations of the walk with the push.
        impulse: Impulse of the push [N.s].
    """

    robot: Robot
    recording: Recording
    q: Array
    pushed: Array
    impulse: float

    @cached_property
    def report(self) -> GaitReport:
        """Gait report of the recording."""
        return report_recording(self.recording)[1]

    @property
    def quiet(self) -> Flags:
        """(n,) True for rows that are not within ``SETTLED`` after an impact."""
        t = self.recording.t
        hits = t[(np.abs(self.recording.impact[..., Z]) > 0.0).any(axis=1)]
        after = t - hits[np.maximum(np.searchsorted(hits, t, "right") - 1, 0)]
        quiet: Flags = (after < 0.0) | (after > SETTLED)
        return quiet

    @property
    def margins(self) -> Array:
        """(n, 2) distance of the CoP from the edge of each loaded foot [m]; NaN otherwise and after impacts."""
        carries = self.recording.wrench[..., Z] > FIRM * self.robot.weight
        margins: Array = np.where(carries & self.quiet[:, None], self.recording.cop_margin, np.nan)
        return margins

    @property
    def aside(self) -> Array:
        """(m,) largest change of trunk height, pitch or a joint due to the push [m, rad]."""
        n = len(self.pushed)
        deviation: Array = np.abs(self.pushed[:, 1:] - self.q[:n, 1:]).max(axis=1)
        return deviation


def measure(progress: bool = False) -> PlanarGaitResult:
    """Simulate both walks of the biped."""
    robot = load_robot(ROBOT)

    def walked(duration: float, watch: PushObserver) -> tuple[Recording, Array]:
        params = {"mode": "walk", "n_steps": N_STEPS}
        settings = RunConfig(ROBOT, "computed_torque", duration=duration, controller_params=params)
        return run(settings, progress, watch)[0], np.array(watch.q)

    recording, q = walked(BEGIN + 0.5 * N_STEPS * STRIDE + 0.7, PushObserver())
    return PlanarGaitResult(robot, recording, q, walked(PUSH_AT + STRIDE, PushObserver(PUSH))[1], PUSH)


def checks(result: PlanarGaitResult) -> Iterator[Check]:
    """Yield the checks of the walk."""
    recording, report, robot = result.recording, result.report, result.robot
    t, middle = recording.t, slice(*np.searchsorted(recording.t, [BEGIN + 2.0 * STRIDE, BEGIN + 8.0 * STRIDE]))
    walk = next((segment for segment in report.stretches if "walking" in segment.gaits), None)
    cycle = walk.cycle if walk is not None else None
    stride = round(STRIDE / (t[1] - t[0]))
    repeated = np.abs(result.q[middle, 1:] - result.q[middle.start + stride : middle.stop + stride, 1:]).max()
    speed = np.ptp(result.q[[middle.start, middle.stop], X]) / np.ptp(t[[middle.start, middle.stop]])
    torque = np.abs(recording.joint_effort) / robot.effort_limit
    yield Check.equal("steps of a walk", walk.steps if walk is not None else 0, N_STEPS)
    yield Check.equal("states of its cycle, which is two steps", len(cycle.states) if cycle is not None else 0, 6)
    yield Check.near("period of the cycle", cycle.period if cycle is not None else np.nan, STRIDE, 5e-3, "s")
    yield Check.at_least("speed", speed, 0.3, "m/s")
    yield Check.at_most("largest torque over its limit", torque.max(), 0.9)
    yield Check.at_most("largest error of a joint", np.nanmax(recording.readouts["tracking_error"]), 0.01, "rad")
    yield Check.at_most("|joint, height, pitch - that of a stride later|", repeated, 1e-3, "m, rad")
    yield Check.at_least(
        "least distance of the CoP from the edge of a foot that carries", np.nanmin(result.margins), 0.05, "m"
    )
    yield Check.at_most("largest pitch of the trunk", np.abs(result.q[:, 2]).max(), 0.01, "rad")
    yield Check.shown("share of the friction used, without impacts", np.nanmax(_friction(result)))
    yield Check.shown("largest impulse of a landing", np.abs(recording.impact[..., Z]).max(), "N.s")
    yield Check.shown(f"pushed by {result.impulse:g} N.s: largest deviation", result.aside.max(), "m, rad")
    yield Check.at_most("... deviation a stride later", result.aside[-1], 1e-3, "m, rad")


def _friction(result: PlanarGaitResult) -> Array:
    """Return the friction utilisation (n, 2) where the CoP margin is evaluated."""
    used: Array = np.where(np.isfinite(result.margins), result.recording.friction_used, np.nan)
    return used


def sticks(robot: Robot, q: Array) -> list[Array]:
    """Return polylines (k, 3) of a posture: the trunk, then hip, knee, ankle, toe and heel of each leg."""
    model, data = robot.model, robot.model.createData()
    pin.forwardKinematics(model, data, q)
    trunk = data.oMi[model.getJointId("pitch")]
    lines = [np.array([trunk.translation, trunk.act(np.array([0.0, 0.0, 0.5]))])]
    for sole in robot.soles:
        ankle = sole.joint_id
        knee = model.parents[ankle]
        joints = [data.oMi[i].translation for i in (model.parents[knee], knee, ankle)]
        toe, heel = (data.oMi[ankle].act(vertex) for vertex in sole.vertices_joint)
        lines.append(np.array([*joints, toe, heel, joints[-1]]))
    return lines


def draw(figure: Figure, result: PlanarGaitResult) -> None:
    """Draw a stride, its centre of pressure and loads, and the recovery from the push."""
    recording, robot = result.recording, result.robot
    t = recording.t
    posture, pressed, loads, recovery = figure.subplots(1, 4, width_ratios=[0.8, 1.0, 1.0, 1.0])
    begin = BEGIN + 2.0 * STRIDE
    rows = np.searchsorted(t, np.linspace(begin, begin + STRIDE, FIGURES))
    for row in rows:
        trunk, *legs = sticks(robot, result.q[row])
        posture.plot(trunk[:, X], trunk[:, Z], color=TOTAL_COLOUR, linewidth=0.8)
        for leg, colour in zip(legs, FOOT_COLOURS, strict=False):
            posture.plot(leg[:, X], leg[:, Z], color=colour, linewidth=0.9)
    label(posture, "one stride", x="x (m)", y="z (m)", aspect="equal")
    span = slice(*np.searchsorted(t, [begin - STRIDE, begin + STRIDE]))
    for k, name in enumerate(recording.feet):
        poses = recording.sole_poses[span, k]
        flat = np.where(recording.wrench[span, k, Z] > 0.0, poses[:, X], np.nan)
        x = robot.soles[k].vertices[:, X]
        look = {"color": FOOT_COLOURS[k], "linewidth": 0.0}
        pressed.fill_between(t[span], flat + x.min(), flat + x.max(), alpha=0.2, label=f"sole, {name}", **look)
        loads.plot(t[span], recording.wrench[span, k, Z], color=FOOT_COLOURS[k], label=name)
    pressed.plot(t[span], recording.cop_world[span, X], color=TOTAL_COLOUR, label="CoP")
    label(pressed, y="x (m)", legend="best")
    label(loads, y="normal force (N)", legend="best", ylim=(-20.0, 1.5 * robot.weight))
    recovery.semilogy(t[: len(result.pushed)], np.maximum(result.aside, 1e-9), color=TOTAL_COLOUR)
    label(recovery, y="deviation by the push (m, rad)", xlim=(PUSH_AT - 0.2, t[len(result.pushed) - 1]))
    for ax in (pressed, loads, recovery):
        time_axis(ax, text="t (s)")


case = study(measure, checks, draw, (15.0, 5.0))
