"""Changes that must not affect a motion: position, rotation, mirroring, order and division of a scene, and the number
of steps per tick.

The theory of the models does not depend on world axes, the origin, left and right, or the order of lists. Rounding
remains: 1e-14 m at a hundred metres, over a step of 1 ms, amplified by the model (``Theory.same``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from physics_support import BOX_URDF, G, box_robot, rectangle, standing_torque
from theory import MODELS, simulator, theory

from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array

NOTHING = np.zeros(0)
H = 1e-3
MASS, MU = 2.0, 0.45
SOLE = rectangle(0.3, 0.2)
# A brick that slides askew and spins, (v, w) in its own axes; it comes to rest within the run.
THROW = np.array([1.0, 0.4, 0.0, 0.0, 0.0, 4.0])
STEPS = 300
pytestmark = pytest.mark.parametrize("model", MODELS)


def brick(folder: Path, vertices: Sequence[Sequence[float]] = SOLE) -> Robot:
    return box_robot(folder, vertices, mass=MASS, mu_s=MU, mu_d=MU)


def thrown(
    robot: Robot, model: str, v: Array = THROW, pose: pin.SE3 | None = None, ground: Ground | None = None
) -> pin.SE3:
    """Return where a brick comes to rest that was thrown along the ground from ``pose``."""
    sim = simulator(robot, model, ground)
    sim.reset(pin.SE3ToXYZQUAT(pose or pin.SE3.Identity()), v)
    for _ in range(STEPS):
        sim.advance(NOTHING)
    return pin.XYZQUATToSE3(sim.q)


def assert_same(found: pin.SE3, expected: pin.SE3, tolerance: float) -> None:
    np.testing.assert_allclose(pin.log6(expected.actInv(found)).vector, 0.0, atol=tolerance)


@pytest.mark.parametrize("turn", [0.3927, 0.6458, 2.5])
def test_a_scene_turned_about_the_vertical_and_moved_far_away(model: str, turn: float, tmp_path: Path) -> None:
    moved = pin.SE3(pin.utils.rotate("z", turn), np.array([80.0, -60.0, 0.0]))
    robot = brick(tmp_path)
    assert_same(thrown(robot, model, pose=moved), moved * thrown(robot, model), theory(model).same)


def test_a_scene_in_the_mirror(model: str, tmp_path: Path) -> None:
    """The brick is its own mirror image, but the list of its vertices is not."""
    image = thrown(brick(tmp_path, [[x, -y] for x, y in reversed(SOLE)]), model, THROW * [1, -1, 1, -1, 1, -1])
    place = thrown(brick(tmp_path), model)
    flip = np.diag([1.0, -1.0, 1.0])
    assert_same(pin.SE3(flip @ image.rotation @ flip, flip @ image.translation), place, theory(model).same)


def test_a_list_of_vertices_that_begins_elsewhere(model: str, tmp_path: Path) -> None:
    expected = thrown(brick(tmp_path), model)
    for first in (1, 2, 3):
        assert_same(thrown(brick(tmp_path, SOLE[first:] + SOLE[:first]), model), expected, theory(model).same)


def test_everything_tilted_with_gravity(model: str, tmp_path: Path) -> None:
    robot = brick(tmp_path)
    tilt = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.4, 0.0), np.array([0.3, -0.2, 0.5]))
    tilted = robot.model.copy()
    tilted.gravity.linear = tilt.rotation @ robot.model.gravity.linear
    ground = Ground.plane(tilt.translation, tilt.rotation)
    found = thrown(dataclasses.replace(robot, model=tilted), model, pose=tilt, ground=ground)
    assert_same(found, tilt * thrown(robot, model), theory(model).same)


def test_feet_in_another_order(model: str) -> None:
    """biped14 lands on one side, feet slide and stick: joints do not know in which order its soles are listed."""
    robot = load_robot("biped14")
    ends = []
    for soles in (robot.soles, robot.soles[::-1]):
        sim = simulator(dataclasses.replace(robot, soles=soles), model)
        q = robot.q_nominal.copy()
        q[2] += 2e-3
        v = np.zeros(robot.model.nv)
        v[:6] = 0.3, 0.5, -0.1, 0.2, 0.0, 0.5
        sim.reset(q, v)
        for _ in range(60):
            sim.advance(standing_torque(robot))
        ends.append(sim.q.copy())
    np.testing.assert_allclose(ends[1], ends[0], atol=theory(model).same)


TWO_SOLES = """name: cut
description: a brick on two halves of its sole
urdf: box.urdf
joints: []
feet:
  heel: {{frame: body, vertices: {heel}, friction_static: 0.45, friction_dynamic: 0.45}}
  toe: {{frame: body, vertices: {toe}, friction_static: 0.45, friction_dynamic: 0.45}}
imu: {{frame: body}}
"""


def test_a_sole_cut_into_heel_and_toe_slides_as_far_and_sticks_as_well(model: str, tmp_path: Path) -> None:
    """In straight motion friction is mu N for any distribution of N.

    Compliant halves have twice the vertices and the stiffness, so that the brick pitches by other angles as it slides.
    """
    whole = brick(tmp_path)
    heel = [[0.0, 0.1], [-0.15, 0.1], [-0.15, -0.1], [0.0, -0.1]]
    (tmp_path / "box.urdf").write_text(BOX_URDF.format(mass=MASS, height=0.1, ixx=0.02, iyy=0.02, izz=0.02))
    (tmp_path / "cut.yaml").write_text(TWO_SOLES.format(heel=heel, toe=[[x + 0.15, y] for x, y in heel]))
    cut = load_robot(tmp_path / "cut.yaml")
    straight = np.array([0.8, 0.0, 0.0, 0.0, 0.0, 0.0])
    places = [thrown(robot, model, straight) for robot in (whole, cut)]
    assert_same(places[1], places[0], theory(model).same if theory(model).rigid else 1e-3)
    for robot in (whole, cut):
        sim = simulator(robot, model)
        sim.push(0.5 * MU * MASS * G * np.array([0.8, 0.6, 0.0, 0.0, 0.0, 0.0]))
        for _ in range(STEPS):
            sim.advance(NOTHING)
        assert np.linalg.norm(sim.q[:2]) < 1e-9 + theory(model).give(MASS * G)


def test_ticks_of_several_steps_and_snapshots_in_mid_slide(model: str, tmp_path: Path) -> None:
    """The result is equal to the bit, for any steps per tick and any simulator that restores the snapshot."""
    robot = brick(tmp_path)
    single, coarse, other = (simulator(robot, model, control_dt=dt) for dt in (H, 5 * H, H))
    for sim in (single, coarse):
        sim.reset(v=THROW)
    for tick in range(STEPS // 5):
        for _ in range(5):
            single.advance(NOTHING)
        coarse.advance(NOTHING)
        np.testing.assert_array_equal(coarse.q, single.q)
        np.testing.assert_array_equal(coarse.v, single.v)
        if tick == 10:
            other.restore(single.snapshot())
        elif tick > 10:
            for _ in range(5):
                other.advance(NOTHING)
            np.testing.assert_array_equal(other.q, single.q)
            np.testing.assert_array_equal(other.v, single.v)
