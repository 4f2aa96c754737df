"""Let a leg swing under its hip torque and hit the ball, with the inertia of both (beyond the paper).

The leg of the paper (0.5 kg, 1 m) starts behind its hip. A constant torque drives it until its toe is in contact with
the ball. Moreau's law with restitution then gives the velocities after the impact.

For comparison, the same torque acts for one step of the paper on a leg that is already in contact with the ball. The
result is table I for a leg with inertia.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, TOTAL_COLOUR
from bipedsim_studies.impacts import IMPACT_LAWS
from bipedsim_studies.reproduce.adubredu.kick import ANGLE, LENGTH, MASS, TABLE
from bipedsim_studies.reproduce.adubredu.planar import GRAVITY, RESTITUTION, STEP
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study

FINE = 1e-5
"""Step of the swing [s]; the toe moves at most 0.4 mm in it."""
AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class LegAndBall:
    """Leg and ball as one mechanism with velocities (hip; x, z, pitch of the ball), and their contact.

    Attributes:
        leg, ball: The two robots.
        at_rest: Configuration of the ball that the toe hits at 0.24 rad.
    """

    def __init__(self) -> None:
        self.leg: Robot = body("kicker")
        self.ball = body("ball", MASS)
        radius = self.ball.soles[0].radius
        self.at_rest = np.array([LENGTH * np.sin(ANGLE) + radius * np.cos(ANGLE), radius, 0.0])
        self._data = self.leg.model.createData(), self.ball.model.createData()
        self._toe = self.leg.model.getFrameId("toe")
        self._centre = self.ball.model.getFrameId("ball")

    def toe(self, q: Array) -> Array:
        """Return the position of the toe (3,) in the world [m], with the hip at ``q`` (1,)."""
        pin.framesForwardKinematics(self.leg.model, self._data[0], q)
        return np.array(self._data[0].oMf[self._toe].translation)

    def normal(self, q: Array) -> tuple[Array, float]:
        """Return the direction (3,) from the toe to the centre of the ball, and the gap between toe and ball [m]."""
        x, z = self.at_rest[:2]
        offset = np.array([x, 0.0, z]) - self.toe(q)
        distance = float(np.linalg.norm(offset))
        return offset / distance, distance - self.ball.soles[0].radius

    def mass_matrix(self, q: Array) -> Array:
        """Return the mass matrix M (4, 4) of leg and ball."""
        M = np.zeros((4, 4))
        M[:1, :1] = pin.crba(self.leg.model, self._data[0], q)
        ball = pin.crba(self.ball.model, self._data[1], self.at_rest)
        M[1:, 1:] = np.triu(ball) + np.triu(ball, 1).T
        return M

    def rows(self, q: Array) -> Array:
        """Return the Jacobian (3, 4) of the ball centre's velocity minus the toe's velocity, in the world."""
        toe = pin.computeFrameJacobian(self.leg.model, self._data[0], q, self._toe, AXES)[:3]
        centre = pin.computeFrameJacobian(self.ball.model, self._data[1], self.at_rest, self._centre, AXES)[:3]
        # For a single joint, pinocchio returns a column without its second dimension.
        return np.hstack([-toe.reshape(3, 1), centre])


@dataclass(frozen=True, eq=False)
class LegImpact:
    """Kick of the leg.

    Attributes:
        torque: Torque of the hip [N.m].
        t: Duration of the swing [s].
        angle: Angle of the hip at the impact [rad].
        normal: (3,) direction from the toe to the centre of the ball.
        M, J: (4, 4) mass matrix and (3, 4) Jacobian of leg and ball; see :class:`LegAndBall`.
        before, after: (4,) velocities before and after the impact.
        impulse: Impulse along the normal [N.s].
        pushed: (4,) velocities after one step of the paper with the torque, on a resting leg in contact with the ball.
    """

    torque: float
    t: float
    angle: float
    normal: Array
    M: Array
    J: Array
    before: Array
    after: Array
    impulse: float
    pushed: Array

    @property
    def speed(self) -> float:
        """Speed of the ball after the impact [m/s]."""
        return float(np.hypot(*self.after[1:3]))

    def energy_lost(self) -> float:
        """Return the kinetic energy lost in the impact [J]."""
        return float(0.5 * self.before @ self.M @ self.before - 0.5 * self.after @ self.M @ self.after)


def hit(torque: float, restitution: float = RESTITUTION) -> LegImpact:
    """Swing the leg under ``torque`` [N.m] against the resting ball."""
    mechanism = LegAndBall()
    sim = Simulator(mechanism.leg, physics_dt=FINE)
    tau = np.array([torque])
    while mechanism.normal(sim.q)[1] > 0.0:
        sim.advance(tau)
    q = sim.q.copy()
    normal, _ = mechanism.normal(q)
    M, J = mechanism.mass_matrix(q), mechanism.rows(q)
    before = np.array([*sim.v, 0.0, 0.0, 0.0])
    moreau = IMPACT_LAWS["moreau"]
    impact = moreau(M, (normal @ J)[None], before, restitution=restitution)
    push = np.linalg.solve(M, np.array([torque * STEP, 0.0, 0.0, 0.0]))
    pushed = moreau(M, (normal @ J)[None], push, restitution=0.0).v_after
    impulse = float(impact.impulse[0])
    return LegImpact(torque, sim.t, float(q[0]), normal, M, J, before, impact.v_after, impulse, pushed)


def swing_speed(leg: Robot, torque: float, start: float, end: float) -> float:
    """Return the leg's speed [rad/s] at angle ``end`` [rad], from the work of torque and gravity since ``start``."""
    limb = leg.model.inertias[1]
    arm = float(np.linalg.norm(limb.lever))
    about_hip = limb.inertia[1, 1] + limb.mass * arm**2
    work = torque * (end - start) + limb.mass * GRAVITY * arm * (np.cos(end) - np.cos(start))
    return float(np.sqrt(2.0 * work / about_hip))


def checks(hits: dict[float, LegImpact]) -> Iterator[Check]:
    """Yield the checks of the impact, and its comparison with the table."""
    mechanism = LegAndBall()
    start = float(mechanism.leg.q_nominal[0])
    swing, newton, momentum, lost, slips, directions = [], [], [], [], [], []
    for torque, h in hits.items():
        swing.append(h.before[0] / swing_speed(mechanism.leg, torque, start, h.angle) - 1.0)
        closing, opening = h.normal @ h.J @ h.before, h.normal @ h.J @ h.after
        newton.append(opening + RESTITUTION * closing)
        centre = np.array([0.0, 0.0, mechanism.leg.model.jointPlacements[1].translation[2]])
        arm = np.array([mechanism.at_rest[0], 0.0, mechanism.at_rest[1]]) - centre
        # Angular momentum about the hip: the leg's part against the y axis, and the part of the ball's linear momentum.
        moment = [h.M[0, 0] * v[0] + MASS * np.cross([v[1], 0.0, v[2]], arm)[1] for v in (h.before, h.after)]
        momentum.append(moment[1] - moment[0])
        reduced = 1.0 / float(h.normal @ h.J @ np.linalg.solve(h.M, h.J.T @ h.normal))
        lost.append(h.energy_lost() - 0.5 * reduced * (1.0 - RESTITUTION**2) * closing**2)
        slip = h.J @ h.before - closing * h.normal
        slips.append(np.linalg.norm(slip) / abs(closing))
        directions.append(np.arctan2(h.after[2], h.after[1]))
    torques = np.array([*hits])
    exponent = float(np.polyfit(np.log(torques), np.log([h.speed for h in hits.values()]), 1)[0])
    table_speeds = np.array([np.hypot(*TABLE[t]) for t in hits])
    pushed = np.array([np.hypot(*h.pushed[1:3]) for h in hits.values()])
    inertia = hits[max(hits)].M[0, 0]
    # The paper's force moves only the ball. A leg also accelerates itself, with the effective mass inertia / length^2.
    expected_share, pushed_share = MASS / (MASS + inertia / LENGTH**2), float((pushed / table_speeds).mean())
    ratios = [h.speed / v for h, v in zip(hits.values(), table_speeds, strict=True)]
    yield Check.at_most("|speed of the swing / that by work and energy - 1|", float(np.abs(swing).max()), 1e-3)
    yield Check.at_most("|Newton's law at the contact|", float(np.abs(newton).max()), 1e-10, "m/s")
    yield Check.at_most("|change of angular momentum about the hip|", float(np.abs(momentum).max()), 1e-10, "N.m.s")
    yield Check.at_most("|energy lost - m_r (1 - e^2) u^2 / 2|", float(np.abs(lost).max()), 1e-10, "J")
    yield Check.at_most("slip at the contact over closing speed: a central hit", float(max(slips)), 1e-2)
    yield Check.near("direction of the ball", float(np.mean(directions)), ANGLE, 2e-3, "rad")
    yield Check.near("speed of the ball grows with the torque to the power of", exponent, 0.5, 0.02)
    yield Check.near(
        "torque for 10 ms on a leg that touches: share of the table's speed", pushed_share, expected_share, 2e-3
    )
    yield Check.shown("swinging leg over table, 30 N.m", ratios[0])
    yield Check.shown("swinging leg over table, 100 N.m", ratios[-1])


def text(hits: dict[float, LegImpact]) -> str:
    """Return the table of speeds."""
    lines = ["  torque   table I   leg pushes for 10 ms   leg swings and hits  (speed of the ball [m/s])"]
    for torque, h in hits.items():
        pushed = np.hypot(*h.pushed[1:3])
        lines.append(f"  {torque:4.0f}   {np.hypot(*TABLE[torque]):9.2f}   {pushed:20.2f}   {h.speed:19.2f}")
    return "\n".join(lines)


def measure(_progress: bool = False) -> dict[float, LegImpact]:
    """Kick with each torque of the table."""
    return {torque: hit(torque) for torque in TABLE}


def draw(figure: Figure, hits: dict[float, LegImpact]) -> None:
    """Draw the leg at the impact, and the speeds over the torque."""
    from matplotlib.patches import Circle

    left, right = figure.subplots(1, 2)
    mechanism = LegAndBall()
    last = hits[max(hits)]
    hip = mechanism.leg.model.jointPlacements[1].translation[[0, 2]]
    for angle, shade in zip(
        np.linspace(mechanism.leg.q_nominal[0], last.angle, 6), np.linspace(0.2, 1.0, 6), strict=True
    ):
        toe = mechanism.toe(np.array([angle]))[[0, 2]]
        left.plot(*np.column_stack([hip, toe]), color=FOOT_COLOURS[0], alpha=shade, linewidth=2.0)
    centre = mechanism.at_rest[:2]
    left.add_patch(Circle(tuple(centre), mechanism.ball.soles[0].radius, fill=False, color=FOOT_COLOURS[1]))
    arrow = {"arrowstyle": "->", "color": TOTAL_COLOUR}
    left.annotate("", centre + 0.35 * last.normal[[0, 2]], centre, arrowprops=arrow)
    left.set_xlim(-0.6, 0.9)
    left.axhline(0.0, color=TOTAL_COLOUR)
    label(left, "the leg meets the ball along its own path", x="x [m]", y="z [m]", aspect="equal")
    torques = [*hits]
    right.plot(torques, [np.hypot(*TABLE[t]) for t in torques], "o-", color=TOTAL_COLOUR, label="table I")
    speeds = [h.speed for h in hits.values()]
    right.plot(torques, speeds, "s-", color=FOOT_COLOURS[0], label="leg swings 0.74 rad and hits")
    pushes = [np.hypot(*h.pushed[1:3]) for h in hits.values()]
    right.plot(torques, pushes, "^-", color=FOOT_COLOURS[1], label="leg touches and pushes for 10 ms")
    right.set_ylim(bottom=0.0)
    label(right, "speed of the ball after the kick", "torque of the hip [N.m]", "speed of the ball [m/s]", "best")


case = study(measure, checks, draw, (11.0, 4.5), text)
