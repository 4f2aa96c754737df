"""Let the walker approach the ball under PFL and kick it with its hip, in one simulation (figures 1, 2, table I).

After three steps under partial feedback linearisation, the hip applies the torque of the table until the swing leg hits
the ball. The ball then flies, touches down and bounces. Leg and ball are two bodies of the simulation, so the ball
receives the impulse of the leg. In the table, a force acts on the ball alone for 10 ms (see ``kick``).

The whole simulation has the gravity of the paper's ball. The paper's walker has 1 m/s^2; here its gait is the same, in
1 / sqrt(9.81) of the time. Its feet are points as in the paper's equations, or rectangles as in its text.
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
from bipedsim_studies.reproduce.adubredu.ideal_walker import SLOPE, WALKER
from bipedsim_studies.reproduce.adubredu.kick import ANGLE, LENGTH, MASS, TABLE
from bipedsim_studies.reproduce.adubredu.planar import GRAVITY, RESTITUTION
from bipedsim_studies.reproduce.adubredu.walker import START
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study

FEET = {"points": "kicking_walker", "rectangles": "kicking_walker_feet"}
"""Kinds of feet, and the robots with these feet."""
STEPS = 3
"""Number of steps before the kick."""
PLACE = 1.12
"""Initial position of the ball [m]; it rolls on by 4 cm, because the floor slopes by 0.01 rad."""
RADIUS, FRICTION = 0.2, 0.3
HIT = 1.0
"""Speed of the ball [m/s] above which it counts as hit; it rolls with less than 0.1."""
AFTER = 1.5
"""Simulated time after the hit [s], as in the paper's figure."""
DT = 2.5e-4
"""Physics and control step [s], which corresponds to 0.8 ms of the gait under 1 m/s^2."""
FRAME = 0.01
"""Time between two stored positions [s]."""
LONGEST = 4.0


class BallFlight(NamedTuple):
    """First flight of the ball, until it touches down.

    Attributes:
        duration: Duration [s].
        length: Length along the floor [m].
        top: Largest height of the ball above its initial position [m].
        bounce: Normal velocity after the touchdown over the velocity before it.
    """

    duration: float
    length: float
    top: float
    bounce: float


class WalkerKick(NamedTuple):
    """Walk with a kick and the motion of the ball after it.

    Attributes:
        t: Time of the hit [s].
        touch_downs: Times of the touchdowns before it [s].
        velocity: (2,) velocity of the ball after the hit, x and z [m/s].
        leg: Angle of the swing leg from the vertical [rad].
        unbalanced: Momentum that the ball gains and the walker does not lose in the hit [N.s].
        flight: First flight in the simulation.
        legs, ball: (n, 3, 2) toe, hip, toe, and (n, 2) position x, z of the ball, every ``FRAME``.
    """

    t: float
    touch_downs: tuple[float, ...]
    velocity: Array
    leg: float
    unbalanced: float
    flight: BallFlight
    legs: Array
    ball: Array


class BallImpact(NamedTuple):
    """Data of the step in which the ball is hit; see :class:`Kick`."""

    t: float
    velocity: Array
    leg: float
    unbalanced: float


def kick(torque: float, feet: str = "points", contact: str = "one_step", after: float = AFTER) -> WalkerKick:
    """Walk to the ball, and kick it with ``torque`` [N.m].

    Args:
        torque: Torque of the hip.
        feet: Kind of feet, one of ``FEET``.
        contact: Contact model of the feet.
        after: Simulated time after the hit [s].

    Raises:
        ArithmeticError: The ball is not hit.
    """
    robot, ground = body(FEET[feet]), get_ground("downhill")
    normal = ground.patches[0].normal_world
    ball_position = np.array([PLACE, 0.0, ground.height(PLACE, 0.0)]) + RADIUS * normal
    football = ObjectConfig(
        name="football",
        shape="ball",
        mass=MASS,
        radius=RADIUS,
        position=(float(ball_position[0]), float(ball_position[1]), float(ball_position[2])),
        friction_static=FRICTION,
        restitution=RESTITUTION,
    )
    sim = Simulator(robot, ground, contact=contact, physics_dt=DT, control_dt=DT, objects=[football])
    assert sim.objects is not None
    assert sim.reactions.touching is not None
    ball = sim.objects.world.bodies
    q, v = WALKER.robot_state(START)
    # The stance leg is tilted back and stands on the edge of its foot.
    q[1] += -robot.soles[0].vertices[:, 0].min() * np.sin(START[0])
    observation = sim.reset(q, np.sqrt(GRAVITY) * v)
    controller = make_controller("pfl", robot, dt=DT)
    controller.reset(observation)
    stance, touchdown_times, legs, path = 0, list[float](), [], []
    hit: BallImpact | None = None
    flown: list[Array] = []
    while sim.t < LONGEST and (hit is None or sim.t < hit.t + after):
        load = sim.contact.wrench[:, 2]
        if load[1 - stance] > load[stance]:
            stance = 1 - stance
            touchdown_times.append(sim.t)
        if len(touchdown_times) < STEPS:
            tau = controller.update(observation).tau_joint
        else:
            tau = np.array([torque if stance == 0 else -torque]) if hit is None else np.zeros(1)
        leg = float(sim.q[2] + (sim.q[3] if stance == 0 else 0.0))
        before = ball.v[0].copy()
        observation = sim.step(tau)
        if hit is None and np.hypot(ball.v[0, 0], ball.v[0, 2]) > HIT:
            gained = MASS * (ball.v[0] - before - DT * robot.model.gravity.linear)
            on_floor = gained + np.array([sim.reactions.touching.force[0], 0.0, sim.reactions.touching.force[1]])
            # The floor also supports the ball in the step of the hit.
            along = on_floor - (on_floor @ normal) * normal
            hit = BallImpact(sim.t, ball.v[0, [0, 2]].copy(), leg, float(np.abs(along).max()))
        if hit is not None:
            flown.append(np.array([sim.t - hit.t, *ball.position[0], *ball.v[0]]))
        if round(sim.t / DT) % round(FRAME / DT) == 0:
            x, z, pitch, hip = sim.q
            toes = [[x + LENGTH * np.sin(a), z - LENGTH * np.cos(a)] for a in (pitch, pitch + hip)]
            legs.append([toes[0], [x, z], toes[1]])
            path.append(ball.position[0, [0, 2]].tolist())
    if hit is None:
        raise ArithmeticError(f"with {torque:g} N.m the ball was not hit within {LONGEST:g} s")
    flight = _first_flight(np.array(flown), normal)
    steps = tuple(touchdown_times[:STEPS])
    return WalkerKick(hit.t, steps, hit.velocity, hit.leg, hit.unbalanced, flight, np.array(legs), np.array(path))


def _first_flight(rows: Array, normal: Array) -> BallFlight:
    """Return the first flight in ``rows`` (n, 7) of time, position and velocity; NaN if there is no touchdown."""
    t, position, velocity = rows[:, 0], rows[:, 1:4], rows[:, 4:]
    normal_velocity = velocity @ normal
    tangent = np.array([normal[2], 0.0, -normal[0]])
    landed = np.flatnonzero((normal_velocity[1:] > 0.0) & (normal_velocity[:-1] < 0.0))
    if not len(landed):
        return BallFlight(np.nan, np.nan, float(position[:, 2].max() - position[0, 2]), np.nan)
    i = int(landed[0])
    length = float((position[i + 1] - position[0]) @ tangent)
    top = float((position[: i + 2, 2]).max() - position[0, 2])
    return BallFlight(float(t[i + 1]), length, top, float(-normal_velocity[i + 1] / normal_velocity[i]))


def parabola(velocity: Array) -> BallFlight:
    """Return the first flight, in closed form, of a ball that leaves the floor with ``velocity`` (2,), x and z."""
    c, s = np.cos(SLOPE), np.sin(SLOPE)
    along, up = c * velocity[0] - s * velocity[1], s * velocity[0] + c * velocity[1]
    t = 2.0 * up / (c * GRAVITY)
    return BallFlight(t, along * t + 0.5 * s * GRAVITY * t**2, 0.5 * velocity[1] ** 2 / GRAVITY, RESTITUTION)


Kicks = dict[str, dict[float, WalkerKick]]


def measure(_progress: bool = False) -> Kicks:
    """Kick with each torque of the table, on both kinds of feet."""
    return {feet: {torque: kick(torque, feet) for torque in TABLE} for feet in FEET}


def nearness(kicks: dict[float, WalkerKick]) -> Array:
    """Return the speed of each ball over the speed of table I."""
    return np.array([np.hypot(*k.velocity) / np.hypot(*TABLE[torque]) for torque, k in kicks.items()])


def checks(kicks: Kicks) -> Iterator[Check]:
    """Yield the checks, and the comparison with the table."""
    every = [k for of_feet in kicks.values() for k in of_feet.values()]
    angles = np.array([np.arctan2(k.velocity[1], k.velocity[0]) for k in every])
    legs = np.array([k.leg for k in every])
    worst = max(k.unbalanced for k in every)
    yield Check.at_most("|momentum that leg and ball exchange, along the floor|", worst, 1e-6, "N.s")
    yield Check.at_most("|direction of the ball - angle of the leg|", float(np.abs(angles - legs).max()), 0.05, "rad")
    yield Check.near("direction of the ball, mean over all kicks", float(angles.mean()), ANGLE, 0.03, "rad")
    for feet, of_feet in kicks.items():
        torques = np.array([*of_feet])
        speeds = np.array([np.hypot(*k.velocity) for k in of_feet.values()])
        exponent = float(np.polyfit(np.log(torques), np.log(speeds), 1)[0])
        yield Check.near(f"{feet}: speed of the ball grows with the torque to the power of", exponent, 0.5, 0.02)
        law = nearness(of_feet) * np.sqrt(torques)
        spread = float(np.abs(law / law.mean() - 1.0).max())
        quantity = f"{feet}: |speed over the table's - {law.mean():.2f} / sqrt(torque)|, relative"
        yield Check.at_most(quantity, spread, 0.02)
    flights = [(k.flight, parabola(k.velocity)) for k in every]
    landed = [(a, b) for a, b in flights if np.isfinite(a.duration)]
    yield Check.equal("balls that land and bounce", len(landed), len(flights))
    duration_error = max(abs(a.duration - b.duration) for a, b in landed)
    length_error = max(abs(a.length - b.length) / b.length for a, b in landed)
    top_error = max(abs(a.top - b.top) for a, b in landed)
    bounce_error = max(abs(a.bounce - b.bounce) for a, b in landed)
    yield Check.at_most("first flight: |duration - that of the parabola|, two steps", duration_error, 2.0 * DT, "s")
    yield Check.at_most("first flight: |length over that of the parabola - 1|", length_error, 1e-3)
    yield Check.at_most("first flight: |top - that of the parabola|", top_error, 1e-4, "m")
    yield Check.at_most("|restitution at the floor - 0.5|, gravity in a step", bounce_error, 2e-3)


def text(kicks: Kicks) -> str:
    """Return the table of velocities and first flights."""
    points, rectangles = kicks["points"], kicks["rectangles"]
    speed_ratios = {feet: nearness(of_feet) for feet, of_feet in kicks.items()}
    lines = [
        "           table I       feet: points          rectangles            first flight: length, top [m]",
        "  torque   v_x    v_z    v_x    v_z    over    v_x    v_z    over    of table I      of points",
    ]
    for i, (torque, (x, z)) in enumerate(TABLE.items()):
        a, b = points[torque], rectangles[torque]
        table_flight = parabola(np.array([x, z]))
        lines.append(
            f"  {torque:4.0f}   {x:5.2f}  {z:5.2f}"
            f"  {a.velocity[0]:5.2f}  {a.velocity[1]:5.2f}  {speed_ratios['points'][i]:6.3f}"
            f"  {b.velocity[0]:5.2f}  {b.velocity[1]:5.2f}  {speed_ratios['rectangles'][i]:6.3f}"
            f"  {table_flight.length:7.2f} {table_flight.top:5.2f}   {a.flight.length:7.2f} {a.flight.top:5.2f}"
        )
    return "\n".join([*lines, "  velocities of the ball after the kick [m/s], and its speed over that of table I"])


def draw(figure: Figure, kicks: Kicks) -> None:
    """Draw walk and kick with the smallest torque, the velocities over the torque, and the flights of all balls."""
    from matplotlib.patches import Circle

    points, rectangles = kicks["points"], kicks["rectangles"]
    above, middle, below = figure.subplots(3, 1, height_ratios=[1.2, 1.0, 1.0])
    shown = points[min(points)]
    end = int((shown.t + 0.06) / FRAME)
    for i in (*range(0, end - 12, 4), end - 4):
        shade = 0.25 + 0.75 * i / end
        above.plot(*shown.legs[i, :2].T, color=FOOT_COLOURS[0], alpha=shade, linewidth=1.5)
        above.plot(*shown.legs[i, 1:].T, color=FOOT_COLOURS[1], alpha=shade, linewidth=1.5)
    for i in (0, *range(end - 6, end + 6, 3)):
        above.add_patch(Circle(tuple(shown.ball[i]), RADIUS, fill=False, color=TOTAL_COLOUR, linewidth=0.8))
    above.annotate("ball", tuple(shown.ball[0]), ha="center", va="center", fontsize="small")
    above.axhline(0.0, color=TOTAL_COLOUR, linewidth=0.8)
    above.set_xlim(-0.4, 2.6)
    label(above, "figure 1: three steps under PFL, and the kick with 30 N.m", "x [m]", "z [m]", aspect="equal")
    torques = [*points]
    for axis, name in enumerate(("v_x", "v_z")):
        colour = FOOT_COLOURS[axis]
        middle.plot(torques, [TABLE[t][axis] for t in torques], "o--", color=colour, label=f"{name}, table I")
        middle.plot(torques, [k.velocity[axis] for k in points.values()], "s-", color=colour, label=f"{name}, points")
        rectangle_velocities = [k.velocity[axis] for k in rectangles.values()]
        middle.plot(torques, rectangle_velocities, "^:", color=colour, label=f"{name}, rectangles")
    middle.set_ylim(bottom=0.0)
    label(middle, "velocity of the ball after the kick", "torque of the hip [N.m]", "velocity [m/s]", "best")
    for torque, k in points.items():
        path = k.ball[int(k.t / FRAME) :]
        below.plot(path[:, 0], path[:, 1], linewidth=1.0, label=f"{torque:g} N.m")
    floor = np.array([0.0, max(k.ball[-1, 0] for k in points.values())])
    below.plot(floor, RADIUS - floor * np.tan(SLOPE), color=TOTAL_COLOUR, linewidth=0.8, label="on the floor")
    title = f"figure 2: centre of the ball in the {AFTER:g} s after the kick, feet: points"
    label(below, title, "x [m]", "z [m]", "upper left")


case = study(measure, checks, draw, (10.0, 11.0), text)
