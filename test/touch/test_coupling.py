"""Body contacts next to those of feet and in closed chains: motion after a step, and its energy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from loop_support import CRANK, TOP, linkage
from thing_support import placed, thing

from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator


@pytest.mark.parametrize("speed", [3.0, -20.0])
def test_a_ball_that_a_linkage_hits_leaves_with_its_speed(tmp_path: Path, speed: float) -> None:
    """A smooth plastic impact on the end of the crank while the chain turns: both have one velocity along its way."""
    angle, radius, step = 0.5, 0.05, 1e-4
    bodies = {"rod": [{"kind": "sphere", "radius": radius}], "crank": [], "rocker": [], "ceiling": []}
    robot = linkage(tmp_path, gravity=0.0, bodies=bodies)
    # How the end of the crank moves where that turns by 1 rad/s.
    moves = np.array([-CRANK * np.cos(angle), 0.0, CRANK * np.sin(angle)])
    normal = np.sign(speed) * moves / CRANK
    end = np.array([-CRANK * np.sin(angle), 0.0, TOP - CRANK * np.cos(angle)])
    place = tuple(end + 2.0 * radius * normal)
    ball = ObjectConfig(name="ball", shape="ball", radius=radius, mass=0.5, friction_static=0.0, position=place)
    sim = Simulator(robot, objects=[ball], hardware={"body_friction": 0.0})
    rates = (robot.settle([angle + step]) - robot.settle([angle - step])) / (2.0 * step)
    sim.reset(robot.settle([angle]), speed * rates)
    sim.advance(np.zeros(1))
    assert sim.objects is not None
    after = float(sim.objects.twists()[0, :3] @ normal)
    assert 0.2 * abs(speed) * CRANK < after < abs(speed) * CRANK
    assert after == pytest.approx(sim.v[0] * moves @ normal, abs=1e-10)


@pytest.mark.parametrize("slide", [(0.0, 0.0), (0.5, 0.2), (-0.3, 0.0)])
def test_the_energy_of_contacts_beside_a_foot_is_what_is_left_of_the_balance(
    tmp_path: Path, slide: tuple[float, float]
) -> None:
    """A body on a ball and a foot: kinetic energy minus that of the step without contact, minus the work of the foot.

    The work of a force that is constant over a step is that at the mean velocity.
    """
    robot = thing(tmp_path, '<sphere radius="0.1"/>', x=-0.2, foot=(0.3, 0.0, -0.2))
    sim = Simulator(robot, hardware={"body_friction": 0.3})
    # The foot is farther below the body than the ball. Where both are in contact with the ground, the body tilts
    # backwards.
    pitch = np.arcsin(0.1 / np.hypot(0.5, 0.2)) - np.arctan2(0.2, 0.5)
    rotation = pin.rpy.rpyToMatrix(0.0, pitch, 0.0)
    v = np.concatenate([rotation.T @ [*slide, 0.0], np.zeros(3)])
    sim.reset(placed(0.1 - 0.2 * np.sin(pitch), rotation), v)
    q, h = sim.q.copy(), sim.physics_dt
    sim.advance(np.zeros(0))
    model, sole = robot.model, robot.soles[0]
    frame = model.addFrame(pin.Frame("sole", sole.joint_id, 0, sole.placement_joint_sole, pin.FrameType.OP_FRAME))
    data = model.createData()
    M = pin.crba(model, data, q)
    J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
    free = v - h * np.linalg.solve(M, pin.nonLinearEffects(model, data, q, v))
    f = sim.contact.impulse[0]
    without_foot = sim.v - np.linalg.solve(M, J.T @ f)
    kinetic = [0.5 * float(u @ M @ u) for u in (sim.v, free)]
    expected = kinetic[0] - kinetic[1] - 0.5 * float(f @ J @ (without_foot + sim.v))
    touching = sim.reactions.touching
    assert touching is not None
    assert touching.carries
    assert f[2] > 0.0
    # The ball helps the foot to carry, by a part of this that counts.
    assert abs(f @ J @ (without_foot - free)) > 0.1 * abs(expected)
    assert touching.gained[0] == pytest.approx(expected, rel=1e-9)


BESIDE_URDF = """<robot name="beside"><link name="base"><inertial><origin xyz="0 0 0.2"/><mass value="50"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<link name="ball"><inertial><origin xyz="0 0 0"/><mass value="2"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="rail" type="prismatic"><parent link="base"/><child link="ball"/><origin xyz="1 0 0.1"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="5" effort="1" velocity="50"/></joint></robot>"""
BESIDE_YAML = """name: beside
urdf: beside.urdf
joints: []
passive: [rail]
feet: {sole: {frame: base, vertices: [[0.3, 0.3], [-0.3, 0.3], [-0.3, -0.3], [0.3, -0.3]]}}
imu: {frame: base}
"""


@pytest.mark.parametrize("stands", [True, False])
@pytest.mark.parametrize("height", [0.05, 0.0525, 0.055, 0.06])
def test_a_body_rebounds_at_the_moment_of_contact(tmp_path: Path, stands: bool, height: float) -> None:
    """A ball on a rail of a standing robot, or alone: its speeds follow from its positions before and after.

    Each two positions on a parabola give the speed at both, as gravity is known.
    """
    e, g, h = 0.7, 9.81, 1e-3
    if stands:
        (tmp_path / "beside.urdf").write_text(BESIDE_URDF)
        (tmp_path / "robot.yaml").write_text(BESIDE_YAML)
        sim = Simulator(load_robot(tmp_path / "robot.yaml"), hardware={"body_restitution": e})
        q = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, height])
        at, level = 7, 0.0
    else:
        sim = Simulator(thing(tmp_path, '<sphere radius="0.1"/>'), hardware={"body_restitution": e})
        q, at, level = placed(0.1 + height), 2, 0.1
    sim.reset(q)
    i = 6 if stands else 2
    z, rising = [height], 0
    while rising < 6:
        sim.advance(np.zeros(0))
        z.append(float(sim.q[at]) - level)
        rising += bool(sim.v[i] > 0.0)
        assert (sim.contact.impulse[0, 2] > 0.0) == stands
    # The ball bounces between z[-7] and z[-6].
    down = (z[-7] - z[-8]) / h - 0.5 * g * h
    arrives = np.sqrt(down**2 + 2.0 * g * z[-7])
    since = 5.0 * h - (arrives + down) / g
    up = (z[-1] - z[-2]) / h + 0.5 * g * h
    assert 4.0 * h < since < 5.0 * h
    assert up == pytest.approx(e * arrives - g * since, abs=1e-9)
