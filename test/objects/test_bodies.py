"""The motion of a body with an impact within a step: displacement and rotation belong to one time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.model import Robot, load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator

RAM_URDF = """<robot name="ram"><link name="rail"/><link name="ram"><inertial><origin xyz="0 0 0"/><mass value="3"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="slides" type="prismatic"><parent link="rail"/><child link="ram"/><origin xyz="0 0 1"/>
<axis xyz="1 0 0"/><limit lower="-5" upper="5" effort="1" velocity="50"/></joint></robot>"""
RAM_YAML = """name: ram
urdf: ram.urdf
root: fixed
gravity: 0
joints: [slides]
posture: {slides: -2.0}
feet: {tip: {frame: ram, vertices: [[0.0, 0.0]], placement: {xyz: [0.0, 0.0, 0.9]}}}
imu: {frame: ram}
"""


def ram(folder: Path) -> Robot:
    """Return a ball of 3 kg that slides along x, without weight."""
    (folder / "ram.urdf").write_text(RAM_URDF)
    (folder / "robot.yaml").write_text(RAM_YAML)
    return load_robot(folder / "robot.yaml")


@pytest.mark.parametrize("restitution", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("gap", [0.1e-3, 1.3e-3, 1.9e-3])
def test_a_brick_that_a_link_hits_off_centre_moves_and_turns_from_one_moment_on(
    tmp_path: Path, restitution: float, gap: float
) -> None:
    """It was at rest: how far it has moved over its new velocity is the time that it has turned, too."""
    brick = ObjectConfig(
        name="brick", shape="box", mass=1.0, size=(0.2, 0.5, 0.3), position=(0.2, 0.12, 1.0), restitution=restitution
    )
    sim = Simulator(ram(tmp_path), objects=[brick], hardware={"body_restitution": restitution, "body_friction": 0.0})
    assert sim.objects is not None
    sim.reset(np.array([-gap]), np.array([2.0]))
    begun = sim.objects.poses()[0]
    while not sim.objects.world.bodies.v[0].any():
        sim.advance(np.zeros(1))
    pose, b = sim.objects.poses()[0], sim.objects.world.bodies
    moved = pose[:3] - begun[:3]
    turned = pin.log3(pin.Quaternion(pose[3:]).toRotationMatrix())
    since = moved[0] / b.v[0, 0]
    assert 0.0 < since <= sim.physics_dt * (1.0 + 1e-9)
    assert abs(b.w[0, 2]) > 0.1
    np.testing.assert_allclose(turned, since * b.w[0], atol=1e-9)
    # The ball is at the face that it has hit or left. A turn moves a point off its tangent by a little.
    ball = b.R[0].T @ (np.array([sim.q[0], 0.0, 1.0]) - pose[:3])
    apart = -ball[0] - 0.1 - 0.1
    assert apart > -5e-6
    assert apart < 5e-6 or restitution > 0.0
