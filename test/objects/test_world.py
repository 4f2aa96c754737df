"""Poses, velocities and pushes of the bodies of a world, in turned frames away from the centre of mass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from object_support import momentum, world

from bipedsim.objects import World

CLUB = """<robot name="club"><link name="club"><inertial><origin xyz="0.1 0.02 -0.05"/><mass value="2"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>
<collision><geometry><sphere radius="0.05"/></geometry></collision></link></robot>"""
TURNED = (0.4, -0.7, 1.9)


def club(folder: Path, **keys: Any) -> World:
    """Return a world without weight with one body of 2 kg, turned, and its centre of mass 0.11 m from its frame."""
    (folder / "club.urdf").write_text(CLUB)
    body = {"shape": "urdf", "urdf": str(folder / "club.urdf"), "mass": None, "rpy": TURNED}
    return world(body | {"position": (0.3, -0.2, 5.0)} | keys, g=np.zeros(3), h=1e-5)


def test_velocities_are_the_rates_of_the_poses(tmp_path: Path) -> None:
    """In the axes of the body, by the logarithm of the motion from one pose to the next."""
    w = club(tmp_path, velocity=(0.5, -1.0, 0.3), angular_velocity=(1.0, 2.0, -1.5))
    before, begun = pin.XYZQUATToSE3(w.poses()[0]), w.twists()[0]
    w.step()
    motion = pin.log6(before.actInv(pin.XYZQUATToSE3(w.poses()[0]))).vector / 1e-5
    np.testing.assert_allclose(0.5 * (begun + w.twists()[0]), motion, atol=1e-8)


@pytest.mark.parametrize("wrench", np.eye(6))
def test_a_push_adds_its_momentum_about_the_frame(tmp_path: Path, wrench: np.ndarray) -> None:
    """Force and torque in axes of the world, at the origin of the frame."""
    w = club(tmp_path)
    at = w.poses()[0, :3]
    w.push(0, wrench)
    w.step()
    expected = np.concatenate([wrench[:3], np.cross(at, wrench[:3]) + wrench[3:]])
    np.testing.assert_allclose(momentum(w), 1e-5 * expected, atol=1e-10)
