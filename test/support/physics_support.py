"""Small robots, and physical constants and checks that several tests share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pinocchio as pin
from paths import BODIES

from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.contact.selection.model import SelectionModel
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, Sole, load_robot
from bipedsim.numerics import Array

G = 9.81

loaded = lru_cache(load_robot)

# Models that find exact wrenches of rigid contact. test_conformance.py tests all others within their theory.
SELECTION_MODELS = [name for name, kind in CONTACT_MODELS.items() if issubclass(kind, SelectionModel)]

# Keys of every summary, of a run without and with recording.
SUMMARY_KEYS = {
    "robot",
    "duration_s",
    "rate_hz",
    "real_time_factor",
    "overruns",
    "missed_commands",
    "commands_dropped",
    "fz_mean_over_mg",
    "fz_max_error_N",
    "cop_inside_fraction",
    "state_changes",
    "round_trip_us",
}

BOX_URDF = """<robot name="box"><link name="body"><inertial><origin xyz="0 0 {height}"/><mass value="{mass}"/>
<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/></inertial></link></robot>"""

BOX_YAML = """name: box
description: a rigid box on one sole
urdf: box.urdf
joints: []
feet:
  sole:
    frame: body
    vertices: {vertices}
    friction_static: {mu_s}
    friction_dynamic: {mu_d}
imu: {{frame: body}}
"""


def box_robot(
    folder: Path,
    vertices: Sequence[Sequence[float]],
    mass: float = 2.0,
    height: float = 0.1,
    inertia: Sequence[float] = (0.02, 0.02, 0.02),
    mu_s: float = 0.5,
    mu_d: float = 0.4,
) -> Robot:
    """Return a rigid body with the frame in its sole, and the CoM ``height`` above it."""
    ixx, iyy, izz = inertia
    (folder / "box.urdf").write_text(BOX_URDF.format(mass=mass, height=height, ixx=ixx, iyy=iyy, izz=izz))
    rows = [[float(x) for x in row] for row in vertices]
    (folder / "robot.yaml").write_text(BOX_YAML.format(vertices=rows, mu_s=mu_s, mu_d=mu_d))
    return load_robot(folder / "robot.yaml")


def rigid_body(
    soles: Sequence[Array], mass: float, com: Sequence[float], inertia: Sequence[float], friction: float
) -> Robot:
    """Return one rigid body on several soles, (N, 2) each in the plane z = 0 of its frame, in which it stands."""
    template = loaded("ball_3d")
    model = pin.Model(template.model)
    model.inertias[1] = pin.Inertia(mass, np.array(com), np.diag(inertia))
    feet = [Sole(f"foot_{i}", "body", 1, pin.SE3.Identity(), sole, friction, friction) for i, sole in enumerate(soles)]
    return replace(
        template,
        model=model,
        soles=tuple(feet),
        ankle_joint_ids=(1,) * len(feet),
        placement_joint_ankle=(pin.SE3.Identity(),) * len(feet),
        q_nominal=np.eye(7)[6],
    )


def special_robot(name: str) -> Robot:
    """Return a robot of ``bipedsim/robots`` that is not in the table: bodies for experiments, not for controllers."""
    return load_robot(BODIES / name)


def rectangle(length: float, width: float) -> list[list[float]]:
    """Return the vertices of a rectangle about the origin, counter-clockwise."""
    x, y = 0.5 * length, 0.5 * width
    return [[x, y], [-x, y], [-x, -y], [x, -y]]


def regular_polygon(n: int, radius: float) -> list[list[float]]:
    """Return the vertices of a regular polygon about the origin, counter-clockwise."""
    angles = 2.0 * np.pi * np.arange(n) / n
    return [[radius * float(np.cos(a)), radius * float(np.sin(a))] for a in angles]


def slope(angle: float) -> Ground:
    """Return a plane through the origin that falls towards +x by ``angle`` [rad]."""
    return Ground.slope(-angle)


def pose_on(ground: Ground) -> np.ndarray:
    """Return q (7,) of a free body lying on the first patch of the ground at its point, with its axes."""
    patch = ground.patches[0]
    return pin.SE3ToXYZQUAT(pin.SE3(patch.rotation_world_patch, patch.point_world))


def standing_torque(robot: Robot) -> np.ndarray:
    """Return the joint torques (nu,) that hold the nominal posture with the least contact forces."""
    model = robot.model
    gravity = pin.computeGeneralizedGravity(model, model.createData(), robot.q_nominal)
    probe = pin.Model(model)
    rows = []
    for sole in robot.soles:
        frame = probe.addFrame(
            pin.Frame(f"probe_{sole.name}", sole.joint_id, 0, sole.placement_joint_sole, pin.FrameType.OP_FRAME), False
        )
        rows.append(
            pin.computeFrameJacobian(
                probe, probe.createData(), robot.q_nominal, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            )
        )
    J = np.vstack(rows)
    wrench = np.linalg.lstsq(J.T[:6], gravity[:6], rcond=None)[0]
    return np.asarray((gravity - J.T @ wrench)[robot.idx_v])


WHEEL_URDF = """<robot name="wheel"><link name="stand"/><link name="disc"><inertial><mass value="1"/>
<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="{inertia}"/></inertial></link>
<joint name="axle" type="revolute"><parent link="stand"/><child link="disc"/><origin xyz="0 0 9"/><axis xyz="{axis}"/>
<limit lower="-1000" upper="1000" effort="{effort}" velocity="{speed}"/></joint></robot>"""

WHEEL_YAML = """name: wheel
description: a disc about a vertical axle, which gravity leaves alone
urdf: wheel.urdf
root: fixed
feet: {point: {frame: disc, vertices: [[0.0, 0.0]]}}
"""


def wheel_robot(
    folder: Path, inertia: float, effort: float, speed: float, more: str = "", axis: str = "0 0 1"
) -> Robot:
    """Return a disc with a moment of inertia [kg.m^2], a drive with its limits [N.m], [rad/s], and more YAML."""
    (folder / "wheel.urdf").write_text(WHEEL_URDF.format(inertia=inertia, effort=effort, speed=speed, axis=axis))
    (folder / "robot.yaml").write_text(WHEEL_YAML + more)
    return load_robot(folder / "robot.yaml")
