"""One-step constraint selection against closed forms, with a rigid box on the ground."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_support import G, box_robot, pose_on, rectangle, regular_polygon, slope

from bipedsim.ground import Ground
from bipedsim.robot import Robot
from bipedsim.simulator import Simulator

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


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64])
def test_any_convex_sole_carries_its_load(folder: Path, n: int) -> None:
    vertices = {1: [[0.0, 0.0]], 2: [[0.1, 0.0], [-0.1, 0.0]]}.get(n) or regular_polygon(n, 0.1)
    sim = Simulator(box_robot(folder, vertices, height=0.0))
    run(sim, 100)
    assert sim.contact.wrench[0, 2] == pytest.approx(2.0 * G)
    assert sim.contact.clamped[0] == 2 ** min(n, 63) - 1
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)


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


def test_ramp_sticks_below_the_angle_of_static_friction(box: Robot) -> None:
    ground = slope(np.arctan(0.4999))
    sim = Simulator(box, ground)
    sim.reset(pose_on(ground))
    run(sim, 2000)
    assert not sim.contact.sliding[0]
    np.testing.assert_allclose(sim.q[:3], 0.0, atol=1e-12)
    assert sim.contact.friction_used[0] == pytest.approx(0.4999 / 0.5)


def test_ramp_slides_above_it_with_dynamic_friction(box: Robot) -> None:
    angle = np.arctan(0.5001)
    ground = slope(angle)
    sim = Simulator(box, ground)
    sim.reset(pose_on(ground))
    run(sim, 500)
    assert sim.contact.sliding[0]
    expected = G * (np.sin(angle) - 0.4 * np.cos(angle))
    assert sim.v[0] / sim.t == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(sim.v[1:], 0.0, atol=1e-12)
    fx, fy, fz = sim.contact.wrench[0, :3]
    assert np.hypot(fx, fy) == pytest.approx(0.4 * fz, rel=1e-12)


def test_sliding_box_stops_where_friction_ends_its_energy(folder: Path) -> None:
    robot = box_robot(folder, rectangle(0.3, 0.2), mu_s=0.4, mu_d=0.4)
    distances = {}
    for h in (1e-3, 5e-4, 2.5e-4):
        sim = Simulator(robot, physics_dt=h)
        sim.reset(v=np.array([1.2, 0.9, 0, 0, 0, 0]))
        run(sim, round(0.6 / h))
        assert not sim.contact.sliding[0]
        np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)
        distances[h] = float(np.linalg.norm(sim.q[:2]))
    exact = 1.5**2 / (2 * 0.4 * G)
    errors = [abs(distances[h] - exact) for h in sorted(distances, reverse=True)]
    # Semi-implicit: the first step brakes before it moves, v h / 2 short in all.
    assert errors[0] == pytest.approx(1.5 * 1e-3 / 2, rel=0.05)
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.1)


def test_spinning_disc_stops_in_the_time_of_coulomb_torsion(folder: Path) -> None:
    radius, inertia, spin = 0.15, 0.03, 5.0
    disc = regular_polygon(64, radius)
    sim = Simulator(box_robot(folder, disc, height=0.01, inertia=(0.02, 0.02, inertia), mu_s=0.4, mu_d=0.4))
    sim.reset(v=np.array([0, 0, 0, 0, 0, spin]))
    expected = inertia * spin / (0.4 * 2.0 * G * radius)
    run(sim, int(0.99 * expected / H))
    assert sim.contact.sliding[0]
    run(sim, int(0.02 * expected / H) + 1)
    assert not sim.contact.sliding[0]
    assert sim.v[5] == pytest.approx(0.0, abs=1e-9)


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


@pytest.mark.parametrize("share", [0.999, 1.001])
def test_box_tips_over_its_edge_at_the_right_push(folder: Path, share: float) -> None:
    height, half = 0.1, 0.05
    sim = Simulator(box_robot(folder, rectangle(2 * half, 0.2), height=height, mu_s=0.9, mu_d=0.9))
    force = share * 2.0 * G * half / height
    sim.push(np.array([force, 0, 0, 0, force * height, 0]))
    sim.step(NOTHING)
    front_edge = 8
    assert sim.contact.mode[0] == (9 if share < 1 else front_edge)
    run(sim, 100)
    assert (sim.q[4] > 1e-5) == (share > 1)
    assert sim.contact.cop[0, 0] == pytest.approx(min(share, 1.0) * half, rel=1e-9)


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


@settings(max_examples=25)
@given(
    tilt=st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)),
    spin=st.tuples(*[st.floats(-3.0, 3.0)] * 3),
    speed=st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.floats(-2.0, 0.0)),
)
def test_contact_of_a_tumbling_box_never_adds_energy_and_never_penetrates(
    box: Robot, tilt: tuple[float, float], spin: tuple[float, float, float], speed: tuple[float, float, float]
) -> None:
    """Plastic impacts and friction: kinetic energy with contact never exceeds that of the same step without."""
    model, data = box.model, box.model.createData()
    sim = Simulator(box)
    pose = pin.SE3(pin.exp3(np.array([*tilt, 0.3])), np.zeros(3))
    q = pin.SE3ToXYZQUAT(pose)
    corners = np.column_stack([box.soles[0].vertices, np.zeros(4)])
    q[2] = 0.05 - (corners @ pose.rotation.T)[:, 2].min()
    sim.reset(q, np.array([*(pose.rotation.T @ speed), *spin]))
    for _ in range(1000):
        q, v = sim.q.copy(), sim.v.copy()
        sim.step(NOTHING)
        fall = -pin.nonLinearEffects(model, data, q, v)
        free = v + H * np.linalg.solve(pin.crba(model, data, q), fall)
        with_contact = pin.computeKineticEnergy(model, data, q, sim.v)
        assert with_contact <= pin.computeKineticEnergy(model, data, q, free) + 1e-12
        pose = pin.XYZQUATToSE3(sim.q)
        assert (corners @ pose.rotation.T)[:, 2].min() + sim.q[2] > -1e-4
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
    turned = Simulator(box, Ground.plane(np.array([0.3, -0.2, 0.5]), turn))
    gravity = box.model.gravity.linear.copy()
    try:
        run(plain, 200)
        box.model.gravity.linear = turn @ gravity
        turned.reset(pin.SE3ToXYZQUAT(pin.SE3(turn, np.array([0.3, -0.2, 0.5]))), slide)
        run(turned, 200)
    finally:
        box.model.gravity.linear = gravity
    expected = turn @ plain.q[:3] + [0.3, -0.2, 0.5]
    np.testing.assert_allclose(turned.q[:3], expected, atol=1e-9)
    np.testing.assert_allclose(turned.v, plain.v, atol=1e-8)
    np.testing.assert_allclose(turned.contact.wrench, plain.contact.wrench, atol=1e-6)
