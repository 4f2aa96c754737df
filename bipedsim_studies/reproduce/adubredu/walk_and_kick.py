"""Figure 1 and table I from one simulation: the walker walks up to the ball under PFL and kicks it with its hip.

After three steps under partial feedback linearisation the hip gives the torque of the table until the swinging leg has
hit the ball. Leg and ball are two bodies of the simulation: what the ball gets is what the leg brings. The table is a
force on the ball alone for 10 ms (see ``kick``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bipedsim.control import make_controller
from bipedsim.ground import get_ground
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, TOTAL_COLOUR
from bipedsim_studies.reproduce.adubredu.ideal_walker import WALKER
from bipedsim_studies.reproduce.adubredu.kick import ANGLE, LENGTH, MASS, TABLE
from bipedsim_studies.reproduce.adubredu.planar import RESTITUTION
from bipedsim_studies.reproduce.adubredu.walker import START
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study

STEPS = 3
"""Steps before the kick."""
PLACE = 1.1
"""Where the ball lies at first [m]; it rolls on by 4 cm, as the floor slopes by 0.01 rad."""
RADIUS, FRICTION = 0.2, 0.3
HIT = 0.5
"""Speed of the ball [m/s] from which on it has been hit; it rolls with less than 0.03."""
AFTER = 0.15
"""Time that is shown after the hit [s]."""
DT = 1e-3
LONGEST = 10.0


class Kick(NamedTuple):
    """One walk and its kick.

    Attributes:
        t: When the ball was hit [s]. touch_downs: Of the steps before [s].
        velocity: (2,) of the ball after the hit, x and z [m/s]. leg: Angle of the swinging leg from the vertical [rad].
        unbalanced: What the momentum of the ball gained and the walker did not lose in the hit [N.s].
        legs, ball: (n, 5, 2), (n, 3) toe, hip, toe, and x, z, pitch of the ball, every 10 ms.
    """

    t: float
    touch_downs: tuple[float, ...]
    velocity: Array
    leg: float
    unbalanced: float
    legs: Array
    ball: Array


def kick(torque: float, contact: str = "one_step") -> Kick:
    """Walk, and kick with ``torque`` [N.m].

    Raises:
        ArithmeticError: The ball was not hit.
    """
    robot, ground = body("kicking_walker"), get_ground("downhill")
    at = np.array([PLACE, 0.0, ground.height(PLACE, 0.0)]) + RADIUS * ground.patches[0].normal_world
    football = ObjectConfig(
        name="football",
        shape="ball",
        mass=MASS,
        radius=RADIUS,
        position=(float(at[0]), float(at[1]), float(at[2])),
        friction_static=FRICTION,
        restitution=RESTITUTION,
    )
    sim = Simulator(robot, ground, contact=contact, physics_dt=DT, objects=[football])
    assert sim.objects is not None
    assert sim.touching is not None
    ball = sim.objects.world.bodies
    observation = sim.reset(*WALKER.robot_state(START))
    controller = make_controller("pfl", robot, dt=DT)
    controller.reset(observation)
    stance, downs, legs, path = 0, list[float](), [], []
    hit: tuple[float, Array, float, float] | None = None
    while sim.t < LONGEST and (hit is None or sim.t < hit[0] + AFTER):
        tau = controller.update(observation).tau_joint
        load = sim.contact.wrench[:, 2]
        if load[1 - stance] > load[stance]:
            stance = 1 - stance
            downs.append(sim.t)
        if len(downs) >= STEPS:
            tau = np.array([torque if stance == 0 else -torque]) if hit is None else np.zeros(1)
        leg = float(sim.q[2] + (sim.q[3] if stance == 0 else 0.0))
        before = ball.v[0].copy()
        observation = sim.step(tau)
        if hit is None and np.hypot(ball.v[0, 0], ball.v[0, 2]) > HIT:
            gained = MASS * (ball.v[0] - before - DT * robot.model.gravity.linear)
            lost = np.array([sim.touching.force[0], 0.0, sim.touching.force[1]])
            on_ground = gained + lost
            # The floor carries the ball in the step of the hit, too.
            normal = ground.patches[0].normal_world
            along = on_ground - (on_ground @ normal) * normal
            hit = sim.t, ball.v[0, [0, 2]].copy(), leg, float(np.abs(along).max())
        if round(sim.t / DT) % 10 == 0:
            x, z, pitch, hip = sim.q
            toes = [[x + LENGTH * np.sin(a), z - LENGTH * np.cos(a)] for a in (pitch, pitch + hip)]
            legs.append([toes[0], [x, z], toes[1]])
            path.append(ball.position[0, [0, 2]].tolist())
    if hit is None:
        raise ArithmeticError(f"with {torque:g} N.m the ball was not hit within {LONGEST:g} s")
    return Kick(hit[0], tuple(downs[:STEPS]), hit[1], hit[2], hit[3], np.array(legs), np.array(path))


def measure(_progress: bool = False) -> dict[float, Kick]:
    """Kick with every torque of the table."""
    return {torque: kick(torque) for torque in TABLE}


def checks(kicks: dict[float, Kick]) -> Iterator[Check]:
    """Return the figures, and how near the table they come."""
    torques = np.array([*kicks])
    speeds = np.array([np.hypot(*k.velocity) for k in kicks.values()])
    angles = np.array([np.arctan2(k.velocity[1], k.velocity[0]) for k in kicks.values()])
    legs = np.array([k.leg for k in kicks.values()])
    exponent = float(np.polyfit(np.log(torques), np.log(speeds), 1)[0])
    yield Check.at_most("|momentum that leg and ball exchange, along the floor|", _worst(kicks), 1e-6, "N.s")
    yield Check.at_most("|direction of the ball - angle of the leg|", float(np.abs(angles - legs).max()), 0.05, "rad")
    yield Check.near("direction of the ball, mean over the torques", float(angles.mean()), ANGLE, 0.03, "rad")
    yield Check.near("speed of the ball grows with the torque to the power of", exponent, 0.5, 0.05)
    for torque, k in kicks.items():
        yield Check.shown(f"v_x over that of table I, {torque:g} N.m", float(k.velocity[0] / TABLE[torque][0]))


def _worst(kicks: dict[float, Kick]) -> float:
    return max(k.unbalanced for k in kicks.values())


def text(kicks: dict[float, Kick]) -> str:
    """Return the table of velocities."""
    lines = ["  torque   table I v_x, v_z   in one simulation v_x, v_z   (of the ball [m/s])"]
    for torque, k in kicks.items():
        x, z = TABLE[torque]
        lines.append(f"  {torque:4.0f}   {x:10.2f} {z:6.2f}   {k.velocity[0]:19.2f} {k.velocity[1]:6.2f}")
    return "\n".join(lines)


def draw(figure: Figure, kicks: dict[float, Kick]) -> None:
    """Draw the walk and the kick with the least torque, and the velocities over the torque."""
    from matplotlib.patches import Circle

    above, below = figure.subplots(2, 1, height_ratios=[1.2, 1.0])
    shown = kicks[min(kicks)]
    for i in range(0, len(shown.legs), 12):
        shade = 0.25 + 0.75 * i / len(shown.legs)
        above.plot(*shown.legs[i, :2].T, color=FOOT_COLOURS[0], alpha=shade, linewidth=1.5)
        above.plot(*shown.legs[i, 1:].T, color=FOOT_COLOURS[1], alpha=shade, linewidth=1.5)
    for i in (0, *range(len(shown.ball) - 12, len(shown.ball), 4)):
        above.add_patch(Circle(tuple(shown.ball[i]), RADIUS, fill=False, color=TOTAL_COLOUR, linewidth=0.8))
    above.axhline(0.0, color=TOTAL_COLOUR, linewidth=0.8)
    above.set_xlim(-0.4, 2.6)
    label(above, "three steps under PFL, and the kick with 30 N.m", "x [m]", "z [m]", aspect="equal")
    torques = [*kicks]
    for axis, name in enumerate(("v_x", "v_z")):
        colour = FOOT_COLOURS[axis]
        below.plot(torques, [TABLE[t][axis] for t in torques], "o--", color=colour, label=f"{name}, table I")
        below.plot(torques, [k.velocity[axis] for k in kicks.values()], "s-", color=colour, label=f"{name}, simulated")
    below.set_ylim(bottom=0.0)
    label(below, "velocity of the ball after the kick", "torque of the hip [N.m]", "velocity [m/s]", "best")


case = study(measure, checks, draw, (10.0, 8.0), text)
