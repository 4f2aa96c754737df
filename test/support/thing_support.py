"""A rigid body with one shape, and a point as its only foot, where a test wants it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot, load_robot

MASS, INERTIA = 2.0, 0.01
URDF = """<robot name="thing"><link name="body"><inertial><origin xyz="0 0 0"/><mass value="2"/>
<inertia ixx="{i}" ixy="0" ixz="0" iyy="{i}" iyz="0" izz="{i}"/></inertial>
<collision><origin xyz="{x} 0 0"/><geometry>{shape}</geometry></collision></link></robot>"""
YAML = """name: thing
description: a rigid body whose only sole is a point
urdf: thing.urdf
joints: []
feet: {{top: {{frame: body, vertices: [[0.0, 0.0]], placement: {{xyz: {foot}, rpy: [{roll}, 0.0, 0.0]}},
  friction_static: 0.5,
  friction_dynamic: 0.5}}}}
imu: {{frame: body}}
"""
ON_TOP = (0.0, 0.0, 0.9)
"""Where the foot is out of the way; it points up there."""


def thing(folder: Path, shape: str, x: float = 0.0, foot: tuple[float, float, float] = ON_TOP) -> Robot:
    """Return a body of 2 kg; ``x`` is how far its only shape is ahead of its centre of mass [m]."""
    (folder / "thing.urdf").write_text(URDF.format(shape=shape, i=INERTIA, x=x))
    roll = np.pi if foot[2] > 0.0 else 0.0
    (folder / "robot.yaml").write_text(YAML.format(foot=list(foot), roll=roll))
    return load_robot(folder / "robot.yaml")


def placed(height: float, rotation: np.ndarray | None = None) -> np.ndarray:
    """Return q (7,) of an object with its centre of mass at this height [m]."""
    turned = pin.Quaternion(np.eye(3) if rotation is None else rotation)
    return np.array([0.0, 0.0, height, *turned.coeffs()])
