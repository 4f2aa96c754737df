"""Quantities derived from a frame: capture point, bodies in contact, and the support polygon."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.contact.modes import face_mode, mode_masks
from bipedsim.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.view.page import Instant
from bipedsim.view.page.marks import support_polygon
from bipedsim.view.page.state import UNKNOWN, DerivedState, mode_text, state_of

GRAVITY = 9.81


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def at(robot: Robot, instant: Instant, ground: Ground | None = None) -> DerivedState:
    return state_of(robot, ground or Ground.flat(), robot.model.createData(), instant)


def test_a_robot_that_stands_is_captured_below_its_com(robot: Robot) -> None:
    state = at(robot, Instant(t=0.0, q=robot.q_nominal, v=np.zeros(robot.model.nv)))
    np.testing.assert_allclose(state.capture[:2], state.com[:2], atol=1e-12)
    assert state.capture[2] == 0.0


@pytest.mark.parametrize("height", [0.0, -0.3])
def test_the_capture_point_is_where_a_pendulum_comes_to_rest(robot: Robot, height: float) -> None:
    v = np.zeros(robot.model.nv)
    v[:2] = 0.4, -0.2
    state = at(robot, Instant(t=0.0, q=robot.q_nominal, v=v), Ground.flat(height))
    # Of the linear inverted pendulum c'' = g/z (c - p), stepped to rest with p where we say.
    c, rate, p = state.com[:2].copy(), v[:2].copy(), state.capture[:2]
    h, stiffness = 1e-4, GRAVITY / (state.com[2] - height)
    for _ in range(20_000):
        middle = c + 0.5 * h * rate
        rate = rate + h * stiffness * (middle - p)
        c = middle + 0.5 * h * rate
    np.testing.assert_allclose(c, p, atol=2e-3)
    assert state.capture[2] == height


def test_without_velocities_there_is_no_capture_point(robot: Robot) -> None:
    assert np.isnan(at(robot, Instant(t=0.0, q=robot.q_nominal)).capture).all()


def test_every_mode_says_which_vertices_touch(robot: Robot) -> None:
    masks = mode_masks(4)
    for mode, mask in enumerate(masks):
        bits = sum(int(held) << i for i, held in enumerate(mask))
        state = at(
            robot,
            Instant(
                t=0.0,
                q=robot.q_nominal,
                mode=np.array([mode, 0]),
                clamped=np.array([bits, 0]),
                sliding=np.array([False, False]),
                n_vertices=np.array([4, 4]),
            ),
        )
        np.testing.assert_array_equal(state.touching[0], mask.astype(bool))
        assert not state.touching[1].any()
        assert state.kinds[0] == {0: "in the air", 1: "vertex", 2: "edge", 4: "face"}[int(mask.sum())]
        assert state.kinds[1] == "in the air"


def test_a_robot_that_knows_no_modes_stands_where_it_is_loaded(robot: Robot) -> None:
    wrench = np.zeros((2, 6))
    wrench[1, 2] = robot.weight
    instant = Instant(t=0.0, q=robot.q_nominal, wrench=wrench, mode=np.array([-1, -1]))
    state = at(robot, instant)
    assert [mode_text(instant, k, sole, state.kinds[k]) for k, sole in enumerate(robot.soles)] == ["in the air", "down"]
    assert [touching.all() for touching in state.touching] == [False, True]
    nothing = at(robot, Instant(t=0.0, q=robot.q_nominal))
    assert nothing.kinds == (UNKNOWN, UNKNOWN)


def test_the_support_polygon_is_the_hull_of_what_touches(robot: Robot) -> None:
    face = face_mode(4)
    both = Instant(t=0.0, q=robot.q_nominal, mode=np.array([face, face]), clamped=np.array([15, 15]))
    state = at(robot, both)
    edges = support_polygon(robot, state)
    corners = np.concatenate(
        [
            [pose.act(np.array([*vertex, 0.0])) for vertex in sole.vertices]
            for sole, pose in zip(robot.soles, state.soles, strict=True)
        ]
    )
    # Both soles are parallel rectangles next to each other.
    np.testing.assert_allclose(edges[:, 0, :2].min(axis=0), corners[:, :2].min(axis=0), atol=1e-9)
    np.testing.assert_allclose(edges[:, 0, :2].max(axis=0), corners[:, :2].max(axis=0), atol=1e-9)
    np.testing.assert_array_equal(edges[:, 1], np.roll(edges[:, 0], -1, axis=0))
    area = 0.5 * np.sum(edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 1, 0] * edges[:, 0, 1])
    assert area == pytest.approx(float(np.prod(np.ptp(corners[:, :2], axis=0))))
    line = Instant(t=0.0, q=robot.q_nominal, mode=np.array([5, 0]), clamped=np.array([3, 0]))
    assert len(support_polygon(robot, at(robot, line))) == 2
    air = Instant(t=0.0, q=robot.q_nominal, mode=np.array([0, 0]), clamped=np.array([0, 0]))
    assert len(support_polygon(robot, at(robot, air))) == 0


def test_com_and_soles_are_where_pinocchio_has_them(robot: Robot) -> None:
    rng = np.random.default_rng(3)
    q = pin.integrate(robot.model, robot.q_nominal, rng.uniform(-0.5, 0.5, robot.model.nv))
    state = at(robot, Instant(t=0.0, q=q))
    data = robot.model.createData()
    np.testing.assert_allclose(state.com, pin.centerOfMass(robot.model, data, q))
    for sole, pose in zip(robot.soles, state.soles, strict=True):
        expected = data.oMi[sole.joint_id] * sole.placement_joint_sole
        np.testing.assert_allclose(pose.homogeneous, expected.homogeneous, atol=1e-12)
