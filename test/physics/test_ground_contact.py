"""Feet on patches, through the whole simulator: noses of steps, ice, treads, snapshots."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from physics_support import SELECTION_MODELS, G, box_robot, rectangle

from bipedsim.control.controllers import make_controller
from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch
from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)
H = 1e-3


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return box_robot(tmp_path_factory.mktemp("box"), rectangle(0.3, 0.2), mu_s=0.5, mu_d=0.4)


def table(friction: float | None = None) -> Ground:
    """Return a floor and a table 0.5 m above it that ends at x = 0."""
    region = np.array([[-2.0, -1.0], [0.0, -1.0], [0.0, 1.0], [-2.0, 1.0]])
    top = Patch(np.array([0.0, 0.0, 0.5]), region=region, name="table", friction_static=friction)
    return Ground((Patch(name="floor"), top))


def at(x: float, z: float) -> np.ndarray:
    return np.array([x, 0.0, z, 0.0, 0.0, 0.0, 1.0])


@pytest.mark.parametrize("model", SELECTION_MODELS)
@pytest.mark.parametrize("overhang", [-0.02, 0.02])
def test_a_box_over_a_nose_tips_when_its_centre_is_beyond_it(box: Robot, overhang: float, model: str) -> None:
    """The supported part ends at the nose: the CoP reaches it, and not the sole's own edge."""
    sim = Simulator(box, table(), contact=model)
    sim.reset(at(overhang, 0.5))
    for _ in range(100):
        contact = sim.advance(NOTHING)
        if contact.wrench[0, 2] > 0.0:
            assert contact.cop[0, 0] <= -overhang + 1e-6
    if overhang < 0.0:
        np.testing.assert_allclose(sim.q, at(overhang, 0.5), atol=1e-12)
        np.testing.assert_allclose(contact.cop[0], 0.0, atol=1e-9)
        assert contact.cop_margin[0] == pytest.approx(-overhang)
        assert contact.wrench[0, 2] == pytest.approx(2.0 * G)
    else:
        # About the nose, for small angles: I w' = m g (d + h angle), I that of the body about a line through the nose.
        height = 0.1
        rate = np.sqrt(2.0 * G * height / (0.02 + 2.0 * (height**2 + overhang**2)))
        assert sim.v[4] == pytest.approx(overhang / height * rate * np.sinh(rate * sim.t), rel=5e-3)


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_box_slides_off_a_table_and_comes_to_rest_on_the_floor(box: Robot, model: str) -> None:
    sim = Simulator(box, table(), contact=model)
    sim.reset(at(-0.4, 0.5), np.array([3.0, 0, 0, 0, 0, 0]))
    model_, data = box.model, box.model.createData()
    energy = np.inf
    for _ in range(3000):
        sim.advance(NOTHING)
        pin.computeMechanicalEnergy(model_, data, sim.q, sim.v)
        # Semi-implicit Euler alone gains (g h)^2 m / 2 a step in free fall.
        assert data.mechanical_energy <= energy + 1e-4
        energy = data.mechanical_energy
        corners = (
            sim.q[:3]
            + pin.Quaternion(sim.q[3:7]).matrix().dot(np.column_stack([box.soles[0].vertices, np.zeros(4)]).T).T
        )
        assert corners[:, 2].min() > -1e-4
    assert sim.q[0] > 0.15


def test_ice_brakes_less_than_the_floor(box: Robot) -> None:
    """Friction is that of the patch under the middle of the sole."""
    region = np.array([[1.0, -1.0], [9.0, -1.0], [9.0, 1.0], [1.0, 1.0]])
    ice = Patch(region=region, name="ice", friction_static=0.08, friction_dynamic=0.05)
    sim = Simulator(box, Ground((Patch(name="floor"), ice)))
    sim.reset(v=np.array([4.0, 0, 0, 0, 0, 0]))
    braking = []
    for _ in range(400):
        before = sim.v[0]
        contact = sim.advance(NOTHING)
        braking.append((sim.q[0], (before - sim.v[0]) / H))
        assert contact.mode[0] == 9
        assert contact.state_changes == 0
    x, a = np.array(braking).T
    np.testing.assert_allclose(a[x < 0.99], 0.4 * G, rtol=1e-9)
    np.testing.assert_allclose(a[x > 1.01], 0.05 * G, rtol=1e-9)


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_robot_stands_on_a_tread(model: str) -> None:
    robot = load_robot("biped14")
    ground = Ground.stairs(rise=0.15, run=0.4, steps=3, start=0.5)
    sim = Simulator(robot, ground, contact=model)
    controller = make_controller("posture", robot, None, H)
    observation = sim.reset(ground.place(robot.q_nominal, x=0.5 + 0.4 + 0.2))
    assert sim.q[2] == pytest.approx(robot.q_nominal[2] + 0.3)
    controller.reset(observation)
    for _ in range(1000):
        observation = sim.step(controller.update(observation).tau_joint)
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-6)
    assert sim.contact.state_changes == 0
    assert sim.contact.unresolved == 0


def test_half_a_foot_on_a_tread_bears_on_that_half() -> None:
    """The heels hang over the nose: the CoP stays on the tread, and the contact counts the clipped polygon."""
    robot = load_robot("biped14")
    ground = Ground.stairs(rise=0.15, run=0.6, steps=1, start=0.0)
    sim = Simulator(robot, ground)
    heel = min(float(sole.vertices[:, 0].min()) for sole in robot.soles)
    q = ground.place(robot.q_nominal, x=0.3)
    foot_x = sim.ground_truth().pose_world_sole[0, 0]
    q[0] = -foot_x - 0.5 * heel
    controller = make_controller("posture", robot, None, H)
    observation = sim.reset(q)
    controller.reset(observation)
    for _ in range(300):
        observation = sim.step(controller.update(observation).tau_joint)
        poses = sim.ground_truth().pose_world_sole
        for k in range(2):
            if sim.contact.wrench[k, 2] > 0.0:
                assert poses[k, 0] + sim.contact.cop[k, 0] > -1e-6
    assert (sim.contact.n_vertices == 4).all()
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-3)


def test_a_snapshot_holds_what_the_foot_stands_on(box: Robot) -> None:
    sim = Simulator(box, table())
    sim.reset(at(-0.4, 0.5), np.array([3.0, 0, 0, 0, 0, 0]))
    for _ in range(110):
        sim.advance(NOTHING)
    snapshot = sim.snapshot()
    first = [sim.advance(NOTHING).wrench.copy() for _ in range(300)]
    sim.restore(snapshot)
    again = [sim.advance(NOTHING).wrench.copy() for _ in range(300)]
    np.testing.assert_array_equal(first, again)


def test_over_nothing_a_foot_falls(box: Robot) -> None:
    region = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    sim = Simulator(box, Ground((Patch(region=region),)))
    sim.reset(at(5.0, 0.0))
    for _ in range(100):
        contact = sim.advance(NOTHING)
    assert contact.n_vertices[0] == 0
    assert contact.mode[0] == 0
    assert sim.v[2] == pytest.approx(-G * sim.t)
