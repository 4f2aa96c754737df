"""Contacts at the beginning of a step: all bodies and joints that come within reach in it, and their friction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from thing_support import placed, thing

from bipedsim.ground import Ground
from bipedsim.model import Robot, load_robot, lowest_point
from bipedsim.sim import Simulator

RESTITUTION = 0.8
RAILS_URDF = """<robot name="rails"><link name="rail"/>{}</robot>"""
BALL = """<link name="{name}"><inertial><origin xyz="0 0 0"/><mass value="1"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
<joint name="of_{name}" type="prismatic"><parent link="rail"/><child link="{name}"/><origin xyz="0 0 1"/>
<axis xyz="1 0 0"/><limit lower="-5" upper="5" effort="1" velocity="50"/></joint>"""
RAILS_YAML = """name: rails
urdf: rails.urdf
root: fixed
joints: [of_one, of_two]
posture: {{of_one: 1.0}}
feet: {{tip: {{frame: one, vertices: [[0.0, 0.0]]}}}}
imu: {{frame: one}}
bodies: {{one: [{one}], two: [{two}]}}
self_collision: [[one, two]]
"""
SPHERE = "{kind: sphere, radius: 0.1}"


def on_rails(folder: Path, one: str = SPHERE, two: str = SPHERE) -> Robot:
    """Return two bodies of 1 kg, by default balls, that slide along one level line."""
    (folder / "rails.urdf").write_text(RAILS_URDF.format("".join(BALL.format(name=name) for name in ("one", "two"))))
    (folder / "robot.yaml").write_text(RAILS_YAML.format(one=one, two=two))
    return load_robot(folder / "robot.yaml")


@pytest.fixture(scope="module")
def lying() -> np.ndarray:
    """Return q (nq,) of a robot on its back."""
    robot = load_robot("biped14")
    sim, q = Simulator(robot), robot.q_nominal.copy()
    q[2], q[3:7] = 0.15, (0.0, -np.sqrt(0.5), 0.0, np.sqrt(0.5))
    q[robot.idx_q] = np.clip(0.0, robot.position_lower + 0.1, robot.position_upper - 0.1)
    sim.reset(q)
    for _ in range(400):
        sim.step(-5.0 * sim.v[robot.idx_v])
    assert sim.reactions.touching is not None
    assert sim.reactions.touching.carries
    return sim.q.copy()


@pytest.mark.parametrize("name", ["r_hip_roll", "l_knee"])
def test_one_fast_joint_of_a_robot_that_lies_rebounds_from_its_stop(lying: np.ndarray, name: str) -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot, hardware={"stop_restitution": RESTITUTION})
    j = robot.joint_names.index(name)
    q, v = lying.copy(), np.zeros(robot.model.nv)
    q[robot.idx_q[j]], v[robot.idx_v[j]] = robot.position_lower[j] + 0.012, -5.0
    sim.reset(q, v)
    speeds = []
    for _ in range(5):
        sim.step(np.zeros(robot.nu))
        assert sim.reactions.touching is not None
        assert sim.reactions.touching.carries
        speeds.append(float(sim.v[robot.idx_v[j]]))
    assert min(speeds) < -4.8
    # Gravity and the ground change it by a little in these milliseconds.
    assert max(speeds) == pytest.approx(-RESTITUTION * min(speeds), rel=0.02)


@pytest.mark.parametrize("speed", [1.0, 5.0, 28.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.95])
def test_a_body_that_falls_fast_is_never_in_the_ground(tmp_path: Path, speed: float, share: float) -> None:
    """It meets the ground within a step, from however far it comes in that step."""
    sim = Simulator(thing(tmp_path, '<sphere radius="0.1"/>'))
    sim.reset(placed(0.1 + share * speed * sim.physics_dt), np.array([0.0, 0.0, -speed, 0.0, 0.0, 0.0]))
    for _ in range(3):
        sim.advance(np.zeros(0))
        assert sim.q[2] > 0.1 - 1e-9
    assert abs(sim.v[2]) < 1e-9


@pytest.mark.parametrize("speed", [1.0, 20.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.95])
def test_links_that_meet_fast_are_never_in_each_other(tmp_path: Path, speed: float, share: float) -> None:
    """Two balls on rails. One starts at the distance that it covers in a sub-step; after that, both have one speed."""
    robot = on_rails(tmp_path)
    sim = Simulator(robot)
    sim.reset(np.array([0.2 + share * speed * sim.physics_dt, 0.0]), np.array([-speed, 0.0]))
    for _ in range(3):
        sim.advance(np.zeros(2))
        assert sim.q[0] - sim.q[1] > 0.2 - 1e-9
    np.testing.assert_allclose(sim.v, -0.5 * speed, rtol=1e-9)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("up", [-0.25, -0.1, 0.0, 0.25])
def test_a_ball_meets_a_shaft_anywhere_along_it(tmp_path: Path, up: float, swapped: bool) -> None:
    """A capsule across the path, as either one of the pair: contact begins at the sum of the radii.

    Both speeds are then equal.
    """
    shaft = f"{{kind: capsule, radius: 0.05, length: 0.6, placement: {{xyz: [0.0, 0.0, {up}]}}}}"
    robot = on_rails(tmp_path, *((shaft, SPHERE) if swapped else (SPHERE, shaft)))
    sim = Simulator(robot, hardware={"body_friction": 0.0})
    sim.reset(np.array([0.1532, 0.0]), np.array([-1.0, 0.0]))
    closest = np.inf
    for _ in range(8):
        sim.advance(np.zeros(2))
        closest = min(closest, float(sim.q[0] - sim.q[1]))
    assert closest == pytest.approx(0.15, abs=1e-9)
    np.testing.assert_allclose(sim.v, -0.5, rtol=1e-9)


@pytest.mark.parametrize(("patch", "body", "expected"), [(0.2, 0.6, 0.2), (0.6, 0.2, 0.6), (None, 0.4, 0.4)])
def test_a_body_slides_with_the_friction_of_the_patch_if_that_has_one(
    tmp_path: Path, patch: float | None, body: float, expected: float
) -> None:
    """Coulomb's deceleration mu g; a patch without friction has that of the hardware."""
    ground = Ground.flat() if patch is None else Ground.flat(friction_static=0.9, friction_dynamic=patch)
    robot = thing(tmp_path, '<box size="0.4 0.4 0.1"/>')
    sim = Simulator(robot, ground, hardware={"body_friction": body})
    sim.reset(placed(0.05), np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    for _ in range(100):
        sim.advance(np.zeros(0))
    assert sim.v[0] == pytest.approx(2.0 - expected * 9.81 * sim.t, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", ["biped14", "g1"])
def test_no_point_that_may_touch_the_ground_is_left_out(name: str) -> None:
    """All points of all bodies, one by one with pinocchio, in random attitudes near the ground and at random speeds."""
    robot = load_robot(name)
    sim = Simulator(robot)
    touching, bodies, h = sim.reactions.touching, sim.dynamics.bodies, sim.physics_dt
    assert touching is not None
    model, data, rng = robot.model, robot.model.createData(), np.random.default_rng(0)
    seen = 0
    for _ in range(60):
        q, v = pin.integrate(model, robot.q_nominal, rng.normal(size=model.nv)), rng.normal(size=model.nv)
        pin.forwardKinematics(model, data, q, v)
        lowest = []
        for body, joint in enumerate(bodies.joint):
            points = slice(bodies.begin[body], bodies.end[body])
            shape = bodies.point[points], bodies.ball[points], bodies.ring[points], bodies.axis[points]
            lowest += [(int(joint), *place) for place in lowest_point(data.oMi[int(joint)], *shape)]
        # The lowest point is from 2 mm above the ground to 1 mm in it.
        lift = rng.uniform(-0.001, 0.002) - min(place[3] for place in lowest)
        q[2] += lift
        expected = []
        for joint, x, y, z in lowest:
            twist = pin.getVelocity(model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            arm = np.array([x, y, z]) - data.oMi[joint].translation
            speed = (twist.linear + np.cross(twist.angular, arm))[2]
            if z + lift <= 1e-3 - 2.0 * h * min(speed, 0.0):
                expected.append((joint, z + lift))
        sim.dynamics.project(q, v, np.zeros(robot.nu))
        touching.find(q, v)
        c = touching.contacts
        on_bodies = range(int(touching._feet.first[0]))
        found = [(int(c.a[m]), float(c.gap[m])) for m in on_bodies if c.b[m] == 0 and c.a[m] < model.njoints]
        assert [joint for joint, _ in sorted(found)] == [joint for joint, _ in sorted(expected)]
        np.testing.assert_allclose(
            [gap for _, gap in sorted(found)], [gap for _, gap in sorted(expected)], rtol=0.0, atol=1e-12
        )
        seen += len(found)
    assert seen > 40
