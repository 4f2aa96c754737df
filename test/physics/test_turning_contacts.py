"""Contacts whose normal turns: crossing edges, rims and corners on round bodies, a face on an edge or a ball.

A body of 1 kg is pressed with its weight on a fixed one with a mass of 1e9 kg, far above the ground.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from object_support import energy, run, world
from scipy.integrate import solve_ivp

from bipedsim.ground import Ground
from bipedsim.objects import World

G = 9.81
UP, WEIGHTLESS = np.array([0.0, 0.0, 50.0]), np.zeros(3)
EDGE, BALL = {"shape": "box", "size": (0.6, 0.1, 0.1)}, {"shape": "ball", "radius": 0.1}
ROUND, TOP = {"shape": "cylinder", "radius": 0.07, "length": 0.8}, 0.05 * np.sqrt(2.0)
DISC = {"shape": "cylinder", "radius": 0.1, "length": 0.04, "rpy": (0.0, 0.7, 0.0)}
ROD = {"shape": "cylinder", "radius": 0.04, "length": 0.4, "rpy": (0.0, np.pi / 2.0, 0.0)}
CRATE, PLATE = (
    {"shape": "box", "size": (0.2, 0.15, 0.1), "rpy": (0.5, 0.6, 0.2)},
    {"shape": "box", "size": (0.4, 0.2, 0.08)},
)


def on(
    h: float,
    body: dict[str, Any],
    low: Callable[[np.ndarray], np.ndarray],
    still: dict[str, Any],
    top: float,
    mu: float,
) -> World:
    """Put a body on one that stays where it is; ``low`` is its lowest point from its centre, for its attitude [m]."""
    held = {"mass": 1e9, "position": tuple(UP), "friction_static": mu}
    w = world(body | {"friction_static": mu}, still | held, h=h, g=WEIGHTLESS)
    w.bodies.position[0] = np.array([0.0, 0.0, UP[2] + top]) - low(w.bodies.R[0])
    return w


def start(w: World, low: np.ndarray, spin: tuple[float, float, float], slip: tuple[float, float, float]) -> None:
    """Give the first body an angular velocity, and its lowest point a velocity."""
    w.bodies.w[0] = spin
    w.bodies.v[0] = np.array(slip) - np.cross(spin, low)


def press(w: World, seconds: float, h: float) -> float:
    """Press the first body with its weight; return how deep it was [m]."""
    deepest = 0.0
    for _ in range(round(seconds / h)):
        w.bodies.force[0] = 0.0, 0.0, -G
        assert not w.step()
        gaps = w.contacts.gap[: w.contacts.points[0]]
        deepest = min(deepest, float(gaps.min()) if len(gaps) else 0.0)
    return deepest


def whole(w: World) -> float:
    """Return kinetic energy and that of the weight [J]."""
    return energy(w, WEIGHTLESS) + G * float(w.bodies.position[0, 2])


class Case(NamedTuple):
    """The bodies in contact, their motion, and the maximum energy error at 1 ms [J]."""

    body: dict[str, Any]
    low: Callable[[np.ndarray], np.ndarray]
    still: dict[str, Any]
    top: float
    mu: float
    spin: tuple[float, float, float]
    slip: tuple[float, float, float]
    most: float


def disc_low(R: np.ndarray) -> np.ndarray:
    return np.array(R @ [0.1, 0.0, -0.02])


def rod_low(R: np.ndarray) -> np.ndarray:
    return np.array([-0.01, 0.0, -0.04])


def crate_low(R: np.ndarray) -> np.ndarray:
    return np.array(R @ (-0.5 * np.array([0.2, 0.15, 0.1]) * np.sign(R[2])))


STILL = (0.0, 0.0, 0.0)
ACROSS = EDGE | {"rpy": (np.pi / 4.0, 0.0, 1.27)}
CASES = {
    "rim slides on an edge": Case(
        DISC, disc_low, EDGE | {"rpy": (np.pi / 4, 0.0, 0.3)}, TOP, 0.0, (1.0, 1.0, 3.0), (0.1, 0.0, 0.0), 1e-6
    ),
    "rim sticks to an edge": Case(
        DISC, disc_low, EDGE | {"rpy": (np.pi / 4, 0.0, 0.3)}, TOP, 50.0, (1.0, 1.0, 3.0), STILL, 1e-6
    ),
    "rim slides on a side": Case(
        DISC, disc_low, ROUND | {"rpy": (0.0, np.pi / 2, 0.3)}, 0.07, 0.0, (1.0, 1.0, 3.0), (0.1, 0.1, 0.0), 2e-6
    ),
    "rim sticks to a side": Case(
        DISC, disc_low, ROUND | {"rpy": (0.0, np.pi / 2, 0.3)}, 0.07, 50.0, (1.0, 1.0, 3.0), STILL, 1e-6
    ),
    "sides stick": Case(ROD, rod_low, ROUND | {"rpy": (0.0, np.pi / 2, 1.2)}, 0.07, 50.0, (1.0, 1.0, 1.0), STILL, 1e-6),
    "side sticks to an edge": Case(ROD, rod_low, ACROSS, TOP, 50.0, (1.0, 1.0, 3.0), STILL, 4e-6),
    "corner sticks to a side": Case(
        CRATE, crate_low, ROUND | {"rpy": (0.0, np.pi / 2, 0.3)}, 0.07, 50.0, (1.0, 1.0, 3.0), STILL, 1e-6
    ),
    "face sticks to an edge": Case(
        PLATE, rod_low, ACROSS, TOP, 50.0, (3.0 * np.cos(1.27), 3.0 * np.sin(1.27), 0.0), STILL, 1e-6
    ),
    "face sticks to a ball": Case(PLATE, rod_low, BALL, 0.1, 50.0, (0.5, 2.0, 1.0), STILL, 1e-6),
}


@pytest.mark.parametrize("name", CASES)
def test_a_contact_that_turns_keeps_energy_but_for_second_order(name: str) -> None:
    """Only the weight does work. A first-order method had errors of 1e-5 to 1e-3 J at any step size."""
    case = CASES[name]

    def off(h: float) -> tuple[float, float]:
        w = on(h, case.body, case.low, case.still, case.top, case.mu)
        start(w, case.low(w.bodies.R[0]), case.spin, case.slip)
        begun = whole(w)
        deepest = press(w, 0.1, h)
        assert np.any(w.contacts.force[: w.contacts.points[0], 2] > 0.0), "it is still in contact"
        return whole(w) - begun, deepest

    # The order shows at steps whose errors exceed the energy of the gap of 1 nm that coupled bodies keep.
    (coarse, _), (half, _), (fine, depth) = off(4e-3), off(2e-3), off(1e-3)
    assert abs(fine) < case.most
    assert abs(coarse) > 3.3 * abs(half)
    assert depth > -2e-7


def test_a_face_that_slides_over_a_ball_does_no_work() -> None:
    """Without friction; the normal of the begin of the step gave 9e-4 J, of first order."""

    def gained(h: float) -> float:
        w = on(h, PLATE, rod_low, BALL, 0.1, 0.0)
        start(w, rod_low(w.bodies.R[0]), (0.5, 2.0, 1.0), (0.1, 0.2, 0.0))
        begun = whole(w)
        assert press(w, 0.3, h) > -1e-7
        return whole(w) - begun

    coarse, fine = gained(2e-3), gained(1e-3)
    assert abs(fine) < 5e-6
    assert abs(coarse) > 3.5 * abs(fine)


def bar(h: float, mu: float, spin: float) -> World:
    """Put a bar, edge down, at right angles on a fixed one, edge up; it turns about the latter."""
    low = np.array([-0.01, 0.0, -0.04 * np.sqrt(2.0)])
    body = {"shape": "box", "size": (0.4, 0.08, 0.08), "rpy": (np.pi / 4.0, 0.0, 0.0)}
    w = on(h, body, lambda _: low, EDGE | {"rpy": (np.pi / 4.0, 0.0, np.pi / 2.0)}, TOP, mu)
    start(w, low, (0.0, spin, 0.0), STILL)
    return w


def pitch(w: World) -> float:
    """Return by how much the bar has turned about y [rad]."""
    return float(np.arctan2(-w.bodies.R[0, 2, 0], w.bodies.R[0, 0, 0]))


ACROSS_BAR, OFF, HIGH = (0.4**2 + 0.08**2) / 12.0, 0.01, 0.04 * np.sqrt(2.0)
"""Moment of inertia of the bar about y for 1 kg [m^2], and its centre from the point of contact at the start [m]."""


def test_a_bar_that_pivots_on_an_edge_is_a_physical_pendulum() -> None:
    """The bar is upside down, and its centre of mass begins next to the pivot."""
    arm, angle = np.hypot(OFF, HIGH), np.arctan2(OFF, HIGH)
    pull = G * arm / (ACROSS_BAR + arm * arm)
    exact = solve_ivp(lambda _, x: (x[1], pull * np.sin(x[0])), (0.0, 0.25), (angle, 1.0), rtol=1e-12, atol=1e-12)
    errors = []
    for h in (1e-3, 5e-4):
        w = bar(h, 50.0, 1.0)
        press(w, 0.25, h)
        errors.append(pitch(w) - (exact.y[0, -1] - angle))
    assert abs(errors[0]) < 2e-5
    assert abs(errors[0]) > 3.5 * abs(errors[1])


def test_a_bar_slides_over_an_edge_as_its_equations_say() -> None:
    """Without friction, in a plane: the edge presses at right angles to that of the bar, which passes through it."""

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        at, theta, v, omega = x[:2], x[2], x[3:5], x[5]
        n, t = np.array([np.sin(theta), np.cos(theta)]), np.array([np.cos(theta), -np.sin(theta)])
        arm = t @ at
        force = (G * n[1] - 2.0 * omega * (t @ v) + omega**2 * (n @ at)) / (1.0 + arm**2 / ACROSS_BAR)
        return np.concatenate([v, [omega], force * n + [0.0, -G], [force * arm / ACROSS_BAR]])

    spin, seconds = 2.0, 0.2
    begin = np.array([OFF, HIGH, 0.0, spin * HIGH, -spin * OFF, spin])
    exact = solve_ivp(rate, (0.0, seconds), begin, rtol=1e-12, atol=1e-12).y[:, -1]
    errors = []
    for h in (2e-3, 1e-3):
        w = bar(h, 0.0, spin)
        press(w, seconds, h)
        at = w.bodies.position[0] - UP - [0.0, 0.0, TOP]
        errors.append(max(abs(at[0] - exact[0]), abs(at[2] - exact[1]), 0.1 * abs(pitch(w) - exact[2])))
    assert errors[1] < 1e-6
    assert errors[0] > 3.5 * errors[1]


def test_a_cylinder_rolls_down_a_slope_at_two_thirds() -> None:
    slope = Ground.slope(0.1)
    n, down = slope.patches[0].normal_world, -slope.patches[0].rotation_world_patch[:, 0]
    across = {"shape": "cylinder", "radius": 0.1, "length": 0.3, "rpy": (np.pi / 2.0, 0.0, 0.0)}
    w = world(across | {"position": tuple(0.1 * n)}, ground=slope)
    run(w, 0.5)
    pull = 2.0 / 3.0 * G * np.sin(0.1)
    np.testing.assert_allclose(w.bodies.position[0] - 0.1 * n, 0.5 * pull * 0.25 * down, atol=1e-11)
    np.testing.assert_allclose(w.bodies.w[0], 0.5 * pull / 0.1 * np.cross(n, down), atol=1e-10)


def test_a_cylinder_rolls_on_a_box_as_on_the_ground() -> None:
    """A long cylinder on its side, slightly turned, rolls over a box that stays."""
    lying = {"shape": "cylinder", "radius": 0.05, "length": 0.1, "rpy": (np.pi / 2.0, 0.0, 0.0), "friction_static": 0.6}
    floor = {"shape": "box", "size": (2.0, 2.0, 0.1), "mass": 1e9, "position": (0.0, 0.0, 0.05), "friction_static": 0.6}
    motion = {"velocity": (1.0, 0.0, 0.0), "angular_velocity": (0.0, 20.0, 0.0)}
    w = world(lying | motion | {"position": (-0.3, 0.0, 0.15)}, floor)
    run(w, 0.5)
    np.testing.assert_allclose(w.bodies.position[0], [0.2, 0.0, 0.15], atol=1e-9)
    np.testing.assert_allclose(w.bodies.w[0], [0.0, 20.0, 0.0], atol=1e-7)
