"""One-step constraint selection step by step, with a rigid box on the ground; see also test_closed_forms.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from motion_support import Bookkeeper, Judge
from physics_support import G, box_robot, rectangle

from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)
H = 1e-3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("boxes")


@pytest.fixture(scope="module")
def box(folder: Path) -> Robot:
    return box_robot(folder, rectangle(0.3, 0.2))


def run(sim: Simulator, steps: int) -> None:
    for _ in range(steps):
        sim.step(NOTHING)


def test_rest_carries_the_weight_at_the_centre(box: Robot) -> None:
    sim = Simulator(box)
    run(sim, 100)
    np.testing.assert_allclose(sim.contact.wrench[0], [0, 0, 2.0 * G, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(sim.contact.cop[0], 0.0, atol=1e-14)
    assert sim.contact.cop_margin[0] == pytest.approx(0.1)
    assert sim.contact.state_changes == 0
    np.testing.assert_allclose(sim.q, box.q_nominal, atol=1e-14)


@pytest.mark.parametrize(
    ("force", "torque", "expected"), [((0, 0), (0, 1.0), (0.05, 0)), ((0, 0), (1.0, 0), (0, -0.05))]
)
def test_cop_moves_to_the_side_that_is_pressed_down(
    box: Robot, force: tuple[float, float], torque: tuple[float, float], expected: tuple[float, float]
) -> None:
    """x_CoP = -tau_y / f_z and y_CoP = tau_x / f_z of the ground's wrench, which balances the push."""
    sim = Simulator(box)
    sim.push(np.array([*force, 0.0, *torque, 0.0]))
    run(sim, 10)
    np.testing.assert_allclose(sim.contact.cop[0], np.array(expected) / (2.0 * G) * 20.0, atol=1e-12)
    wrench = sim.contact.wrench[0]
    np.testing.assert_allclose(sim.contact.cop[0], [-wrench[4] / wrench[2], wrench[3] / wrench[2]], atol=1e-12)


def test_torsion_of_a_sticking_foot_is_limited(box: Robot) -> None:
    carried = 0.5 * 2.0 * G * np.hypot(0.15, 0.1)
    sim = Simulator(box)
    sim.push(np.array([0, 0, 0, 0, 0, 0.99 * carried]))
    run(sim, 50)
    assert not sim.contact.sliding[0]
    assert abs(sim.v[5]) < 1e-12
    sim.push(np.array([0, 0, 0, 0, 0, 1.01 * carried]))
    run(sim, 50)
    assert sim.contact.sliding[0]
    assert sim.v[5] > 0.1


def test_edge_is_taken_on_the_step_at_which_the_cop_reaches_it(box: Robot) -> None:
    """A growing torque walks the CoP to the front; the CoP never leaves the sole, and the mode never lags."""
    sim = Simulator(box)
    for i in range(500):
        torque = 0.01 * (i + 1)
        sim.push(np.array([0, 0, 0, 0, torque, 0]))
        sim.step(NOTHING)
        beyond = torque / (2.0 * G) > 0.15 + 1e-9
        assert sim.contact.mode[0] == (8 if beyond else 9)
        assert sim.contact.cop[0, 0] <= 0.15 + 1e-9
        if beyond:
            assert i > 100
            break
    else:
        pytest.fail("the torque never tipped the box")


def test_slow_lift_never_reclamps_and_never_pulls(box: Robot) -> None:
    sim = Simulator(box)
    modes = []
    for i in range(400):
        sim.push(np.array([0, 0, 2.0 * G * i / 200, 0, 0, 0]))
        sim.step(NOTHING)
        modes.append(int(sim.contact.mode[0]))
        assert sim.contact.wrench[0, 2] >= 0.0
    switch = modes.index(0)
    assert 195 < switch < 206
    assert set(modes[:switch]) == {9}
    assert set(modes[switch:]) == {0}


@pytest.mark.long
@settings(max_examples=25)
@given(
    tilt=st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)),
    spin=st.tuples(*[st.floats(-3.0, 3.0)] * 3),
    speed=st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.floats(-2.0, 0.0)),
)
def test_contact_of_a_tumbling_box_never_adds_energy_and_never_penetrates(
    box: Robot, tilt: tuple[float, float], spin: tuple[float, float, float], speed: tuple[float, float, float]
) -> None:
    """Plastic impacts and friction: kinetic energy with contact never exceeds that of the same step without contact.

    The exception is the energy that raises the box out of the ground. The curved path of an edge leads slightly into
    it.
    """
    sim = Simulator(box)
    judge = Judge(sim, Bookkeeper(box))
    pose = pin.SE3(pin.exp3(np.array([*tilt, 0.3])), np.zeros(3))
    q = pin.SE3ToXYZQUAT(pose)
    corners = np.column_stack([box.soles[0].vertices, np.zeros(4)])
    q[2] = 0.05 - (corners @ pose.rotation.T)[:, 2].min()
    sim.reset(q, np.array([*(pose.rotation.T @ speed), *spin]))
    depth = 0.0
    for _ in range(1000):
        sim.step(NOTHING)
        assert max(judge.gains) <= 2.0 * G * depth + 1e-12
        judge.gains.clear()
        pose = pin.XYZQUATToSE3(sim.q)
        depth = max(-(corners @ pose.rotation.T)[:, 2].min() - sim.q[2], 0.0)
        assert depth < 1e-4
    if pose.rotation[2, 2] > 0.9:
        assert sim.contact.mode[0] == 9
        np.testing.assert_allclose(sim.v, 0.0, atol=1e-6)


@settings(max_examples=30)
@given(yaw=st.floats(-3.0, 3.0), pitch=st.floats(-0.3, 0.3), roll=st.floats(-0.3, 0.3), direction=st.floats(-3.0, 3.0))
def test_no_direction_is_special(box: Robot, yaw: float, pitch: float, roll: float, direction: float) -> None:
    """Turning the world, gravity included, turns the motion: friction is isotropic and the normal is not world z."""
    turn = pin.rpy.rpyToMatrix(roll, pitch, yaw)
    slide = np.array([np.cos(direction), np.sin(direction), 0.0, 0.1, -0.2, 0.7])
    plain = Simulator(box)
    plain.reset(v=slide)
    gravity = box.model.gravity.linear.copy()
    try:
        run(plain, 200)
        box.model.gravity.linear = turn @ gravity
        # A simulator uses the model with the parameters at its creation.
        turned = Simulator(box, Ground.plane(np.array([0.3, -0.2, 0.5]), turn))
        turned.reset(pin.SE3ToXYZQUAT(pin.SE3(turn, np.array([0.3, -0.2, 0.5]))), slide)
        run(turned, 200)
    finally:
        box.model.gravity.linear = gravity
    expected = turn @ plain.q[:3] + [0.3, -0.2, 0.5]
    np.testing.assert_allclose(turned.q[:3], expected, atol=1e-9)
    np.testing.assert_allclose(turned.v, plain.v, atol=1e-8)
    np.testing.assert_allclose(turned.contact.wrench, plain.contact.wrench, atol=1e-6)


CHAIR = """name: chair
description: a rigid body on four points
urdf: box.urdf
joints: []
feet:
"""


def test_four_points_of_one_body_brake_as_under_exact(folder: Path) -> None:
    """Each vertex is unloaded repeatedly in the search of its slip, and gets a direction when it is loaded again."""
    text = box_robot(folder, rectangle(0.3, 0.2), mass=5.0).source.read_text()
    feet = "".join(
        f"  foot{i}: {{frame: body, vertices: [[{x}, {y}]], friction_static: 0.45, friction_dynamic: 0.45}}\n"
        for i, (x, y) in enumerate(rectangle(0.4, 0.4))
    )
    (folder / "chair.yaml").write_text(CHAIR + feet + text[text.index("imu:") :])
    robot = load_robot(folder / "chair.yaml")
    ends = []
    for model in ("one_step", "exact"):
        sim = Simulator(robot, contact=model)
        sim.reset(None, np.array([0.6, 0.2, 0.0, 0.0, 0.0, 3.0]))
        for _ in range(300):
            sim.advance(NOTHING)
        assert sim.contact.unresolved == 0
        ends.append(sim.q.copy())
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)
