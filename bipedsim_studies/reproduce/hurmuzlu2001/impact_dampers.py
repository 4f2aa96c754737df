"""Simulate a pendulum and a mass, each damped by a ball that moves to and fro inside it (Fig. 1b and 1c).

Under a harmonic force, the mass has a motion with two impacts per period. In terms of eq. 42, this motion is one
invariant set of impacts. Masri and Caughey (1966) give its closed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.complementarity import Motion, Rebound, motion
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import between_stops, mass_matrix

WALLS = np.array([[0.0, 1.0], [0.0, -1.0]])
"""Gradients of the two gaps of a coordinate between two stops."""
STIFFNESS, DAMPING, FORCE = (2.0 * math.pi) ** 2, 0.25, 1.0
"""Properties of the mass: stiffness [N/m], damping [N.s/m] and amplitude of the force at resonance [N]."""
RATE = 2.0 * math.pi
PLAY = 0.3
"""Travel of the ball from wall to wall [m]."""
MASS_E = 0.4
PERIODS = 50
SWING, SLOT, PENDULUM_E, SWINGING = 0.6, 0.2, 0.6, 20.0
"""Initial angle of the pendulum [rad], travel of its ball [m], restitution and duration [s]."""
REST = -0.5 * 9.81 - 0.2 * 9.81
"""Energy of the pendulum hanging at rest [J]."""
COMPARED = 8
"""Number of impacts of the pendulum that are compared one by one."""


@dataclass(frozen=True)
class TwoImpacts:
    """Closed form of the motion with two impacts per period.

    Attributes:
        place, after: Position [m] and velocity [m/s] of the main mass just after the ball hits its front wall.
        ball: Velocity of the ball after that impact [m/s].
        phase: Phase of the force at that impact [rad].
    """

    place: float
    after: float
    ball: float
    phase: float

    def path(self, since: Array) -> Array:
        """Return the position of the main mass ``since`` (n,) [s] after that impact, until the next one."""
        swing, flow = _response()
        steady = swing * np.sin(RATE * since + self.phase - flow)
        x = self.place - swing * math.sin(self.phase - flow)
        v = self.after - swing * RATE * math.cos(self.phase - flow)
        c, s = _free(since)
        position: Array = steady + x * c[0] + v * s[0]
        return position


def _response() -> tuple[float, float]:
    """Return the amplitude [m] and phase lag [rad] of the main mass without the ball."""
    lack = complex(STIFFNESS - RATE**2, DAMPING * RATE)
    return FORCE / abs(lack), math.atan2(lack.imag, lack.real)


def _free(t: Array) -> tuple[Array, Array]:
    """Return the free responses (2, n) of the main mass to unit position and to unit velocity.

    The rows are position and velocity.
    """
    decay = 0.5 * DAMPING
    w = math.sqrt(STIFFNESS - decay**2)
    decayed, c, s = np.exp(-decay * t), np.cos(w * t), np.sin(w * t)
    from_place = np.array([decayed * (c + decay / w * s), -decayed * STIFFNESS / w * s])
    from_speed = np.array([decayed * s / w, decayed * (c - decay / w * s)])
    return from_place, from_speed


def by_hand(ratio: float) -> list[TwoImpacts]:
    """Return the symmetric motions with two impacts per period, for a ball of ``ratio`` times the main mass.

    Half a period later all signs are reversed and the ball is at the rear wall. The ball therefore moves at
    -(2 x + play) rate / pi, where x is the position of the main mass at the front wall. Newton's law and the
    conservation of momentum give the velocities of the main mass.

    The sign reversal of position and velocity yields two equations. They are linear in the sine and the cosine of the
    phase, given x. The sum of their squares is one, which yields a quadratic equation for x.
    """
    half = math.pi / RATE
    c, s = (column[:, 0] for column in _free(np.array([half])))
    swing, flow = _response()
    # S and C are the forced response in position and velocity at the impact. Their signs reverse after half a period.
    e = MASS_E
    turn = np.array([-(1.0 + c[0]), -(1.0 + s[1])])

    def sine_and_cosine(x: float) -> Array:
        ball = -(2.0 * x + PLAY) * RATE / math.pi
        after = ball * (1.0 - e - 2.0 * ratio * e) / (1.0 + e)
        before = ball * (1.0 + 2.0 * ratio - e) / (1.0 + e)
        # Position: -x = -S + (x - S) c0 + (after - C) s0. Velocity: -before = -C + (x - S) c1 + (after - C) s1.
        A = np.array([[turn[0], -s[0]], [-c[1], turn[1]]])
        b = np.array([-x - x * c[0] - after * s[0], -before - x * c[1] - after * s[1]])
        sine_cosine: Array = np.linalg.solve(A, b) / np.array([swing, swing * RATE])
        return sine_cosine

    constant = sine_and_cosine(0.0)
    slope = sine_and_cosine(1.0) - constant
    roots = np.roots([slope @ slope, 2.0 * slope @ constant, constant @ constant - 1.0])
    motions = []
    for x in roots[np.isreal(roots)].real:
        ball = -(2.0 * x + PLAY) * RATE / math.pi
        sine, cosine = sine_and_cosine(float(x))
        phase = (math.atan2(sine, cosine) + flow) % (2.0 * math.pi)
        motions.append(TwoImpacts(float(x), ball * (1.0 - e - 2.0 * ratio * e) / (1.0 + e), ball, phase))
    return motions


@dataclass(frozen=True, eq=False)
class ImpactDampersResult:
    """Motions of both systems and the values that they are compared with.

    Attributes:
        mass: Motion of the mass from rest.
        alone: Amplitude of the mass without the ball [m].
        expected: Closed form that is nearest to the final motion of the mass.
        pendulum: Motion of the pendulum from a deflected start.
        pendulum_times: (k,) first impacts of the pendulum from its own equations of motion [s].
        energy: (n,) energy of the pendulum [J].
        lost: Energy lost in each impact of the pendulum (k,), and the loss by Newton's law (k,) [J].
    """

    mass: Motion
    alone: float
    expected: TwoImpacts
    pendulum: Motion
    pendulum_times: Array
    energy: Array
    lost: tuple[Array, Array]


def swinging(duration: float = SWINGING) -> Motion:
    """Return the motion of the pendulum, event by event."""
    system = between_stops(body("pendulum_damper"), WALLS, [0.5 * SLOT] * 2, lambda _t, _q, v: np.zeros_like(v))
    rebound = Rebound(PENDULUM_E, 1e-5, "pfeiffer_glocker")
    return motion(system, [SWING, 0.0], [0.0, 0.0], duration, rebound=rebound)


def swinging_by_hand(count: int) -> Array:
    """Return the first ``count`` impacts [s] of the pendulum from its Lagrangian (rod of 1 kg, ball of 0.2 kg)."""
    ball, hinge_inertia, g = 0.2, 1.0 / 3.0, 9.81

    def rate(_t: float, y: Array) -> list[float]:
        a, s, da, ds = y
        M = np.array([[hinge_inertia + ball * (1.0 + s * s), ball], [ball, ball]])
        forces = [
            -2.0 * ball * s * ds * da - 0.5 * g * math.sin(a) - ball * g * (math.sin(a) + s * math.cos(a)),
            ball * s * da * da - ball * g * math.sin(a),
        ]
        return [da, ds, *np.linalg.solve(M, forces)]

    def wall(_t: float, y: Array) -> float:
        return 0.5 * SLOT - abs(float(y[1]))

    wall.terminal, wall.direction = True, -1.0  # type: ignore[attr-defined]
    t, y, times = 0.0, np.array([SWING, 0.0, 0.0, 0.0]), []
    for _ in range(count):
        solution = solve_ivp(rate, (t, t + 10.0), y, "Radau", events=wall, rtol=1e-11, atol=1e-12, first_step=1e-6)
        t, y = float(solution.t[-1]), solution.y[:, -1].copy()
        times.append(t)
        # The impulse acts on the ball along the slot. Its reaction acts on the rod, 1 m from the hinge.
        response = np.linalg.solve([[hinge_inertia + ball * (1.0 + y[1] ** 2), ball], [ball, ball]], [0.0, 1.0])
        y[2:] -= (1.0 + PENDULUM_E) * y[3] / response[1] * response
    return np.array(times)


def measure(_progress: bool = False) -> ImpactDampersResult:
    """Simulate the mass and the pendulum."""
    mass_damper = body("mass_damper")
    ratio = mass_damper.model.inertias[2].mass / mass_damper.model.inertias[1].mass

    def forces(t: float, q: Array, v: Array) -> Array:
        return np.array([FORCE * math.sin(RATE * t) - STIFFNESS * q[0] - DAMPING * v[0], 0.0])

    system = between_stops(mass_damper, [[1.0, -1.0], [-1.0, 1.0]], [0.5 * PLAY] * 2, forces)
    mass = motion(system, [0.0, 0.0], [0.0, 0.3], PERIODS * 2.0 * math.pi / RATE, rebound=Rebound(MASS_E))
    front = next(impact for impact in reversed(mass.impacts) if impact.impulse[0] > 0.0)
    expected = min(by_hand(ratio), key=lambda each: abs(each.place - front.q[0]))
    pendulum = swinging()
    robot = body("pendulum_damper")
    energy, lost = [], []
    data = robot.model.createData()
    for q, v in zip(pendulum.q, pendulum.v, strict=True):
        energy.append(pin.computeMechanicalEnergy(robot.model, data, q, v))
    for impact in pendulum.impacts:
        pin.computeAllTerms(robot.model, data, impact.q, impact.before)
        M = mass_matrix(data)
        kinetic = [0.5 * v @ M @ v for v in (impact.before, impact.after)]
        effective = 1.0 / np.linalg.inv(M)[1, 1]
        lost.append((kinetic[0] - kinetic[1], 0.5 * (1.0 - PENDULUM_E**2) * effective * impact.before[1] ** 2))
    taken, newton = np.array(lost).T
    return ImpactDampersResult(
        mass, _response()[0], expected, pendulum, swinging_by_hand(COMPARED), np.array(energy), (taken, newton)
    )


def checks(result: ImpactDampersResult) -> Iterator[Check]:
    """Yield the checks of both systems."""
    expected, mass = result.expected, result.mass
    last_impacts = mass.impacts[-8:]
    front = next(impact for impact in reversed(mass.impacts) if impact.impulse[0] > 0.0)
    elapsed = mass.t - front.t
    half = (elapsed >= 0.0) & (elapsed <= math.pi / RATE)
    yield Check.near(
        "mass: time between impacts, half a period", float(np.diff(mass.times)[-8:].mean()), 0.5, 1e-7, "s"
    )
    yield Check.near("... phase of the force at the front wall", front.t * RATE % (2.0 * math.pi), expected.phase, 1e-6)
    yield Check.near("... where that is", float(front.q[0]), expected.place, 1e-7, "m")
    yield Check.near("... velocity of the mass after it", float(front.after[0]), expected.after, 1e-6, "m/s")
    yield Check.near("... of the ball", float(front.after[1]), expected.ball, 1e-6, "m/s")
    yield Check.at_most(
        "... |path of the mass until the next impact - closed form|",
        float(np.abs(mass.q[half, 0] - expected.path(elapsed[half])).max()),
        1e-6,
        "m",
    )
    yield Check.at_most(
        "... |sum of momenta before - after| of any impact",
        max(abs(float(np.array([1.0, 0.2]) @ (i.after - i.before))) for i in last_impacts),
        1e-12,
        "N.s",
    )
    reached = float(np.abs(mass.q[mass.t > mass.t[-1] - 2.0, 0]).max())
    yield Check.shown("... its amplitude over that without the ball", reached / result.alone)
    taken, newton = result.lost
    times = result.pendulum.times
    yield Check.at_most(
        f"pendulum: |first {COMPARED} impacts - those of its own equations|",
        float(np.abs(times[:COMPARED] - result.pendulum_times).max()),
        1e-7,
        "s",
    )
    yield Check.at_most("... |energy taken by an impact - Newton's|", float(np.abs(taken - newton).max()), 1e-10, "J")
    yield Check.at_most("... change of energy between impacts", drift(result), 1e-7, "J")
    yield Check.shown(
        "... share of its energy that is left", float((result.energy[-1] - REST) / (result.energy[0] - REST))
    )


def drift(result: ImpactDampersResult) -> float:
    """Return the largest change of the pendulum's energy between two impacts [J]."""
    cuts = np.searchsorted(result.pendulum.t, result.pendulum.times, side="right") - 1
    pieces = np.split(result.energy, cuts)
    return float(max(np.ptp(piece) for piece in pieces if len(piece)))


def draw(figure: Figure, result: ImpactDampersResult) -> None:
    """Draw both motions over time."""
    upper, lower = figure.subplots(2, 2, width_ratios=[1.6, 1.0])
    mass, pendulum = result.mass, result.pendulum
    ax = upper[0]
    ax.plot(mass.t, mass.q[:, 0], color=FOOT_COLOURS[0], label="mass")
    ax.plot(mass.t, mass.q[:, 1], color=FOOT_COLOURS[1], linewidth=0.8, label="ball")
    for side in (1.0, -1.0):
        ax.plot(mass.t, mass.q[:, 0] + side * 0.5 * PLAY, color="#777777", linewidth=0.6)
    title = "mass (c): from rest to two impacts in a period"
    label(ax, title, time="time [s]", y="x [m]", legend="above", xlim=(0.0, 20.0))
    ax = upper[1]
    rows = mass.t > mass.t[-1] - 2.0
    ax.plot(mass.q[rows, 0], mass.v[rows, 0], color=FOOT_COLOURS[0], label="motion")
    since = np.linspace(0.0, math.pi / RATE, 200)
    path = result.expected.path(since)
    for sign in (1.0, -1.0):
        ax.plot(
            sign * path,
            sign * np.gradient(path, since),
            "--",
            color=LIMIT_COLOUR,
            label="closed form" if sign > 0 else None,
        )
    label(ax, "mass, in the end", x="x [m]", y="dx/dt [m/s]", legend="best")
    ax = lower[0]
    ax.plot(pendulum.t, pendulum.q[:, 0], color=FOOT_COLOURS[0], label="pendulum [rad]")
    ax.plot(pendulum.t, pendulum.q[:, 1], color=FOOT_COLOURS[1], linewidth=0.8, label="ball in its slot [m]")
    ax.plot(pendulum.times, [i.q[1] for i in pendulum.impacts], ".", color=LIMIT_COLOUR, markersize=3, label="impacts")
    label(ax, "pendulum (b)", time="time [s]", y="angle, place", legend="above")
    ax = lower[1]
    ax.plot(pendulum.t, result.energy - REST, color=FOOT_COLOURS[0])
    label(ax, "its energy: lost at impacts alone", time="time [s]", y="energy [J]", ylim=(0.0, None))


case = study(measure, checks, draw, (12.0, 7.5))
