"""Motions of the posture controller: postures along a path of the CoM, solved once, and the time laws along it.

A motion consists of one scalar s(t) and the joint angles over s as cubics. s is a length [m] or the phase of a gait.
The kinematics of :mod:`bipedsim.model.posture` give the postures. At run time only the compiled :func:`targets` is
evaluated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import pinocchio as pin
import scipy  # it imports its submodules at their first use

from bipedsim.errors import ConfigError
from bipedsim.model import Robot, reach, sole_placements
from bipedsim.numerics import Array, entry, kernel, quintic

MODES = ("stand", "squat", "sway", "shift", "toe_fall", "jump", "steps")
SQUAT, SWAY, ONCE, JUMP, STEPS = range(5)

KNOTS = 17
"""Number of postures solved from standing to the end of a motion."""
ROLL_BEGINS = 0.9
"""Share of a shift after which the unloaded foot starts to roll."""
BEYOND_TOES = 0.01
"""Distance [m] in front of the front edges of the soles to which a toe fall leads the CoM."""
CLEARANCE = 1.5
"""Height of the feet over the ground, as a multiple of the CoM's rise in flight."""
STRETCH = 0.32
"""Largest extension of the legs beyond standing, as a share of the CoM's rise in flight.

It is -min(64 CLEARANCE u^3 - 4 u) with u = x (1 - x)."""


class TimeLawParams(NamedTuple):
    """Parameters of a time law: size [m], time [s], delay [s], ramp [s], height of a jump [m].

    For STEPS they are the number of phases, the time of double support, delay, ramp, and the time of single support.
    """

    size: float
    time: float
    delay: float
    ramp: float
    height: float


@dataclass(frozen=True, eq=False)
class PostureMotion:
    """A time law and joint angles over its scalar s, for :func:`targets`.

    Attributes:
        law: Time law: SQUAT, SWAY, ONCE, JUMP or STEPS.
        numbers: Parameters of that law.
        knots: (n,) equidistant values of s.
        coefficients: (4, n - 1, nu) cubics of the joint angles over s - knot, highest power first [rad]. For STEPS
            (4, n - 1, 2 nu + 3): then x and y of the CoM [m], share of the weight on the second foot, and torques [N.m]
            for the inertia of the limbs.
        start: (nu,) joint angles at s = 0 [rad].
    """

    law: int
    numbers: TimeLawParams
    knots: Array
    coefficients: Array
    start: Array


@entry
def push_off_time(depth: float, speed: float, g: float) -> float:
    """Return the duration [s] of a push-off from rest at ``depth`` [m] below standing that never goes deeper."""
    return (math.sqrt(16.0 * speed * speed + 19.0 * g * depth) - 4.0 * speed) / g


@entry
def _push_off(t: float, depth: float, speed: float, g: float) -> tuple[float, float, float]:
    """Return the height [m] of the CoM over standing, its velocity and acceleration, during the push-off.

    The height is the quintic from rest at -depth to take-off at 0, with velocity ``speed`` and acceleration -g.
    """
    duration = push_off_time(depth, speed, g)
    x = t / duration
    v = speed * duration
    a = -g * duration * duration
    c3 = 10.0 * depth - 4.0 * v + 0.5 * a
    c4 = -15.0 * depth + 7.0 * v - a
    c5 = 6.0 * depth - 3.0 * v + 0.5 * a
    z = x * x * x * (c3 + x * (c4 + x * c5)) - depth
    dz = x * x * (3.0 * c3 + x * (4.0 * c4 + x * 5.0 * c5)) / duration
    return z, dz, x * (6.0 * c3 + x * (12.0 * c4 + x * 20.0 * c5)) / (duration * duration)


@entry
def _jump(t: float, depth: float, time: float, height: float, g: float) -> tuple[float, float, float, float]:
    """Return s, its derivatives and the vertical acceleration of the CoM: crouch, push off, fly, absorb, rise.

    s is the height of the feet over the ground less the height of the CoM over standing. The feet are at rest at
    take-off and at touchdown. The absorption is the push-off mirrored in time.
    """
    speed = math.sqrt(2.0 * g * height)
    push = push_off_time(depth, speed, g)
    flight = 2.0 * speed / g
    take_off = 0.5 * time + push
    landing = take_off + flight
    if t < 0.5 * time:
        value, rate, bend = quintic(t, 0.5 * time)
        return depth * value, depth * rate, depth * bend, -depth * bend
    if t < take_off:
        z, dz, ddz = _push_off(t - 0.5 * time, depth, speed, g)
        return -z, -dz, -ddz, ddz
    if t < landing:
        tau = t - take_off
        x = tau / flight
        u = x * (1.0 - x)
        slope = (1.0 - 2.0 * x) / flight
        clear = 64.0 * CLEARANCE * height * u * u * u
        d_clear = 192.0 * CLEARANCE * height * u * u * slope
        dd_clear = 384.0 * CLEARANCE * height * u * (slope * slope - u / (flight * flight))
        return clear - tau * (speed - 0.5 * g * tau), d_clear - speed + g * tau, dd_clear + g, -g
    if t < landing + push:
        z, dz, ddz = _push_off(landing + push - t, depth, speed, g)
        return -z, dz, -ddz, ddz
    value, rate, bend = quintic(t - landing - push, 0.5 * time)
    return depth * (1.0 - value), -depth * rate, -depth * bend, depth * bend


@entry
def _phase(t: float, phases: float, double: float, single: float) -> tuple[float, float]:
    """Return the phase of a gait, from 0 to ``phases``, and its rate; double and single support alternate.

    The first and the last phase take twice the time ``double``, see :class:`bipedsim.control.posture.steps.Gait`.
    """
    if t < 2.0 * double:
        return max(0.5 * t / double, 0.0), (0.5 / double if t > 0.0 else 0.0)
    pair = math.floor((t - double) / (double + single))
    since = t - double - pair * (double + single)
    if 2.0 * pair > phases - 1.5:
        s = phases - 1.0 + 0.5 * (t - double - 0.5 * (phases - 1.0) * (double + single)) / double
        return min(s, phases), (0.5 / double if s < phases else 0.0)
    if since < double:
        return 2.0 * pair + since / double, 1.0 / double
    return 2.0 * pair + 1.0 + (since - double) / single, 1.0 / single


@entry
def path(law: int, t: float, numbers, g: float):  # type: ignore[no-untyped-def]
    """Return s(t) [m], its first two derivatives and the vertical acceleration of the CoM [m/s^2]."""
    size, time, delay, ramp, height = numbers.size, numbers.time, numbers.delay, numbers.ramp, numbers.height
    after = t - delay
    if law == SQUAT:
        grown, growth, bend = quintic(after, ramp)
        w = 2.0 * math.pi / time
        wave = 0.5 * size * (1.0 - math.cos(w * after))
        d_wave = 0.5 * size * w * math.sin(w * after)
        dd_wave = 0.5 * size * w * w * math.cos(w * after)
        s = grown * wave
        ds = growth * wave + grown * d_wave
        dds = bend * wave + 2.0 * growth * d_wave + grown * dd_wave
        return s, ds, dds, -dds
    if law == SWAY:
        grown, growth, bend = quintic(after, 0.5 * time)
        w = 2.0 * math.pi / time
        wave = size * math.sin(w * after)
        d_wave = size * w * math.cos(w * after)
        ds = growth * wave + grown * d_wave
        return grown * wave, ds, bend * wave + 2.0 * growth * d_wave - grown * w * w * wave, 0.0
    if law == ONCE:
        value, rate, bend = quintic(after, time)
        return size * value, size * rate, size * bend, 0.0
    if law == STEPS:
        return *_phase(after, size, time, height), 0.0, 0.0
    return _jump(max(after, 0.0), size, time, height, g)


@entry
def _cubic(coefficients: Array, k: int, i: int, h: float) -> float:
    """Evaluate the cubic of column ``i`` at the distance ``h`` beyond knot ``k``."""
    a, b, c, d = coefficients[0, k, i], coefficients[1, k, i], coefficients[2, k, i], coefficients[3, k, i]
    value: float = ((a * h + b) * h + c) * h + d
    return value


class MotionTargets(NamedTuple):
    """Arguments and results of :func:`targets` for nu joints.

    Attributes:
        motion: See :class:`PostureMotion`.
        ramp: Time [s] over which ``offset`` fades out.
        g: Gravity [m/s^2].
        plan: (5,) filled for motions with a plan, see :meth:`bipedsim.control.posture.StaticSupport.torque`.
        offset: (nu,) from the start of the motion to the measured posture at reset [rad].
        q_goal, v_goal: (nu,) joint targets [rad], [rad/s].
        tau: (nu,) planned torques [N.m] of motions with a plan.
    """

    motion: PostureMotion
    ramp: float
    g: float
    plan: Array
    offset: Annotated[Array, "nu"]
    q_goal: Annotated[Array, "nu"]
    v_goal: Annotated[Array, "nu"]
    tau: Annotated[Array, "nu"]


@kernel
def targets(aim: MotionTargets, t):  # type: ignore[no-untyped-def]
    """Fill the joint targets at ``t`` [s] since reset and return the vertical acceleration of the CoM [m/s^2]."""
    knots, coefficients, offset, plan = aim.motion.knots, aim.motion.coefficients, aim.offset, aim.plan
    blend, rate, _ = quintic(t, aim.ramp)
    s, ds, _, a_up = path(aim.motion.law, t, aim.motion.numbers, aim.g)
    first = knots[0]
    step = knots[1] - first
    k = min(max(int((s - first) / step), 0), len(knots) - 2)
    h = s - knots[k]
    nu = len(offset)
    if coefficients.shape[2] > nu:
        plan[0] = min(max(_cubic(coefficients, k, nu + 2, h), 0.0), 1.0)
        for i in range(2):
            a = coefficients[0, k, nu + i]
            b = coefficients[1, k, nu + i]
            plan[1 + i] = ((3.0 * a * h + 2.0 * b) * h + coefficients[2, k, nu + i]) * ds
            plan[3 + i] = (6.0 * a * h + 2.0 * b) * ds * ds
        for i in range(nu):
            aim.tau[i] = _cubic(coefficients, k, nu + 3 + i, h)
    for i in range(nu):
        a = coefficients[0, k, i]
        b = coefficients[1, k, i]
        c = coefficients[2, k, i]
        aim.q_goal[i] = _cubic(coefficients, k, i, h) + (1.0 - blend) * offset[i]
        aim.v_goal[i] = ((3.0 * a * h + 2.0 * b) * h + c) * ds - rate * offset[i]
    return a_up


def still(goal: Array, ramp: float) -> PostureMotion:
    """Make the motion that holds ``goal`` (nu,)."""
    coefficients = np.zeros((4, 1, len(goal)))
    coefficients[3, 0] = goal
    return PostureMotion(SQUAT, TimeLawParams(0.0, 1.0, 0.0, ramp, 0.0), np.array([0.0, 1.0]), coefficients, goal)


class Postures:
    """Solve the postures of a robot's motions, from the standing posture with the joints at ``goal`` (nu,)."""

    def __init__(self, robot: Robot, goal: Array) -> None:
        self._robot = robot
        self._q = robot.settle(goal)
        data = robot.model.createData()
        self._com: Array = pin.centerOfMass(robot.model, data, self._q).copy()
        self._targets = sole_placements(robot.model, data, robot.soles, self._q)
        self._centres = np.array(
            [m.act(np.append(s.centre, 0.0)) for m, s in zip(self._targets, robot.soles, strict=True)]
        )

    def squat(self, depth: float) -> tuple[Array, Array]:
        """Return s (n,) and joints (n, nu) with the CoM lowered by s up to ``depth`` [m] and the feet in place."""
        s: Array = np.linspace(0.0, depth, KNOTS, dtype=np.float64)
        return s, self._solved("squat_depth", s, self._lowered(s))

    def jump(self, depth: float, height: float) -> tuple[Array, Array]:
        """Return s (n,) and joints (n, nu) with the CoM lowered by s; s < 0 stretches for a jump of ``height`` [m]."""
        s: Array = np.linspace(-STRETCH * height, depth, 2 * KNOTS - 1, dtype=np.float64)
        # The solver starts at standing and proceeds outwards in both directions.
        up, down = s[s < 0.0][::-1], s[s >= 0.0]
        stretched = self._solved("jump_height", up, self._lowered(up), no_pitching=True)
        bent = self._solved("squat_depth", down, self._lowered(down), no_pitching=True)
        return s, np.vstack([stretched[::-1], bent])

    def sway(self, amplitude: float) -> tuple[Array, Array]:
        """Return s (n,) and joints (n, nu) with the CoM moved to the left by s and the feet in place.

        Args:
            amplitude: Largest s, as a share of the distance from the middle to the left foot.
        """
        reach_left = amplitude * self._half_stance()
        s: Array = np.linspace(0.0, reach_left, KNOTS, dtype=np.float64)
        to_left = self._solved("sway_amplitude", s, self._aside(s))
        to_right = self._solved("sway_amplitude", s, self._aside(-s))
        return np.concatenate([-s[:0:-1], s]), np.vstack([to_right[:0:-1], to_left])

    def shift(self, amplitude: float, roll: float) -> tuple[Array, Array]:
        """Return s (n,) and joints (n, nu) with the CoM moved to the left by s; the right foot rolls at the end.

        Args:
            amplitude: Largest s, as a share of the distance from the middle to the left foot.
            roll: Roll of the right foot about its inner edge at the end [rad].
        """
        size = amplitude * self._half_stance()
        s: Array = np.linspace(0.0, size, 2 * KNOTS - 1, dtype=np.float64)
        right = int(np.argmin(self._centres[:, 1]))
        feet = []
        for value in s:
            angle = roll * quintic(value / size - ROLL_BEGINS, 1.0 - ROLL_BEGINS)[0] if size > 0.0 else 0.0
            placements = list(self._targets)
            placements[right] = self._rolled(right, angle)
            feet.append(placements)
        return s, self._solved("sway_amplitude", s, self._aside(s), feet)

    def toe_fall(self) -> tuple[Array, Array]:
        """Return s (n,) and joints (n, nu) with the CoM moved forwards by s on a circle, to in front of the toes."""
        fronts = [
            float(np.max(sole.vertices @ m.rotation[0, :2]) + m.translation[0])
            for sole, m in zip(self._robot.soles, self._targets, strict=True)
        ]
        end = max(fronts) - self._com[0] + BEYOND_TOES
        s: Array = np.linspace(0.0, end, KNOTS, dtype=np.float64)
        height = self._com[2]
        drop = np.sqrt(height * height - s * s) - height
        return s, self._solved("mode toe_fall", s, self._com + np.column_stack([s, np.zeros_like(s), drop]))

    def _half_stance(self) -> float:
        if len(self._centres) != 2:
            raise ConfigError(f"two feet are needed, {self._robot.name!r} has {len(self._centres)}", "posture: sway")
        return 0.5 * float(np.ptp(self._centres[:, 1]))

    def _lowered(self, s: Array) -> Array:
        return self._com - np.column_stack([np.zeros_like(s), np.zeros_like(s), s])

    def _aside(self, s: Array) -> Array:
        return self._com + np.column_stack([np.zeros_like(s), s, np.zeros_like(s)])

    def _rolled(self, foot: int, angle: float) -> pin.SE3:
        """Return the placement of a sole rolled to the left by ``angle`` [rad] about its leftmost edge."""
        sole, placement = self._robot.soles[foot], self._targets[foot]
        points = np.column_stack([sole.vertices, np.zeros(sole.n_vertices)]) @ placement.rotation.T
        points += placement.translation
        following = np.roll(points, -1, axis=0)
        edge = int(np.argmax(points[:, 1] + following[:, 1]))
        axis = points[edge] - following[edge]
        axis *= np.sign(axis[0]) / np.linalg.norm(axis)
        turn = pin.exp3(-angle * axis)
        return pin.SE3(turn, points[edge] - turn @ points[edge]) * placement

    def _solved(
        self, name: str, s: Array, com: Array, feet: list[list[pin.SE3]] | None = None, no_pitching: bool = False
    ) -> Array:
        """Solve the joints (n, nu) of the postures with the CoM at ``com`` (n, 3) [m].

        Raises:
            ConfigError: The robot cannot take one of the postures; the message says how far it can go.
        """
        robot = self._robot
        feet = feet or [self._targets] * len(com)
        postures = reach(robot.model, robot.soles, self._q, com, feet, no_pitching, robot.loops)
        if len(postures) < len(s):
            largest = s[len(postures) - 1] if postures else 0.0
            requested = f"{name} = {s[-1]:g} m" if name == "squat_depth" else name
            raise ConfigError(
                f"more than {robot.name} can with flat feet and joints in their limits: the CoM moves by {s[-1]:g} m, "
                f"and {largest:.3f} m is possible",
                f"posture: {requested}",
            )
        return np.array(postures)[:, robot.idx_q]


def motion(law: int, numbers: TimeLawParams, postures: tuple[Array, Array]) -> PostureMotion:
    """Make the motion along ``postures``, a pair of s (n,) and joints (n, nu); see :class:`PostureMotion`."""
    knots, joints = postures
    spline = scipy.interpolate.CubicSpline(knots, joints, bc_type="natural")
    return PostureMotion(law, numbers, knots, np.ascontiguousarray(spline.c), spline(0.0))
