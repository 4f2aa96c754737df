"""Closed chains for tests: a four-bar linkage, its mechanics with one coordinate, and loops of other robots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from bipedsim.model import CONNECT, Loop, LoopEquations, Robot, load_robot
from bipedsim.numerics import Array

CRANK, ROD, ROCKER, BASE = 0.2, 0.4, 0.3, 0.35
"""Lengths of the linkage [m]; the base is between the two hinges at the ceiling."""
TOP = 2.0

_LINK = """<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>
<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/></inertial></link>"""
_JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{at}"/><axis xyz="0 1 0"/><limit lower="{lower}" upper="{upper}" effort="100" velocity="50"/></joint>"""


def _link(name: str, com: str, mass: float, iyy: float) -> str:
    return _LINK.format(name=name, com=com, mass=mass, ixx=0.6 * iyy, iyy=iyy, izz=0.6 * iyy)


def linkage(
    folder: Path,
    lengths: tuple[float, float, float, float] = (CRANK, ROD, ROCKER, BASE),
    rocker_limits: tuple[float, float] = (-9.0, 9.0),
    gravity: float = 9.81,
    kind: str = CONNECT,
    **changes: Any,
) -> Robot:
    """Return a four-bar linkage in the x-z plane, hanging from a ceiling: crank ``a``, rod ``b``, rocker ``c``."""
    crank, rod, rocker, base = lengths
    lower, upper = rocker_limits
    parts = [
        '<robot name="linkage"><link name="ceiling"/>',
        _link("crank", f"0 0 {-0.5 * crank}", 1.0, 0.01),
        _link("rod", f"{0.5 * rod} 0 0", 2.0, 0.03),
        _link("rocker", f"0 0 {-0.5 * rocker}", 1.5, 0.02),
        _JOINT.format(name="a", parent="ceiling", child="crank", at=f"0 0 {TOP}", lower=-9, upper=9),
        _JOINT.format(name="b", parent="crank", child="rod", at=f"0 0 {-crank}", lower=-9, upper=9),
        _JOINT.format(name="c", parent="ceiling", child="rocker", at=f"{base} 0 {TOP}", lower=lower, upper=upper),
        "</robot>",
    ]
    (folder / "linkage.urdf").write_text("\n".join(parts))
    config: Mapping[str, Any] = {
        "name": "linkage",
        "urdf": "linkage.urdf",
        "root": "fixed",
        "gravity": gravity,
        "joints": ["a"],
        "passive": ["b", "c"],
        "loops": {
            "pin": {
                "type": kind,
                "frame1": "rod",
                "placement1": {"xyz": [rod, 0.0, 0.0]},
                "frame2": "rocker",
                "placement2": {"xyz": [0.0, 0.0, -rocker]},
            }
        },
        "posture": {"a": 0.5, "c": 0.5},
        "feet": {"tip": {"frame": "rod", "vertices": [[0.0, 0.0]]}},
        **changes,
    }
    (folder / "robot.yaml").write_text(yaml.safe_dump(dict(config)))
    return load_robot(folder / "robot.yaml")


def rocker_angle(crank: float, lengths: tuple[float, float, float, float] = (CRANK, ROD, ROCKER, BASE)) -> float:
    """Return the angle of the rocker over that of the crank, in closed form: two circles meet (Freudenstein)."""
    a, b, c, d = lengths
    # Joints turn about +y: an arm that hangs down is at (-sin, -cos).
    x, z = -a * np.sin(crank), -a * np.cos(crank)
    # |(d - c sin, -c cos) - (x, z)| = b, so that A cos + B sin = C.
    A, B = 2.0 * c * z, -2.0 * c * (d - x)
    C = b * b - c * c - (d - x) ** 2 - z * z
    return float(np.arctan2(B, A) + np.arccos(C / np.hypot(A, B)))


def with_loops(robot: Robot, q: Array, seed: int, count: int, kind: str) -> Robot:
    """Return ``robot`` with random loops between its bodies, which are closed at ``q`` (nq,)."""
    rng = np.random.default_rng(seed)
    model, data = robot.model, robot.model.createData()
    pin.forwardKinematics(model, data, q)
    loops = []
    for k in range(count):
        first, second = (int(j) for j in rng.choice(np.arange(1, model.njoints), 2, replace=False))
        place = pin.SE3(pin.exp3(rng.normal(size=3)), 0.2 * rng.normal(size=3))
        other = data.oMi[second].actInv(data.oMi[first] * place)
        loops.append(Loop(f"loop{k}", kind, (first, second), (place, other)))
    return replace(robot, loops=tuple(loops), q_nominal=q)


def bias(robot: Robot, q: Array, v: Array) -> Array:
    """Return G' v (m,) of the loops by differences of pinocchio's Jacobian."""
    equations, e = LoopEquations(robot.model, robot.loops), 1e-6
    ahead, behind = (equations.at(pin.integrate(robot.model, q, s * e * v))[1].copy() for s in (1.0, -1.0))
    return np.asarray((ahead - behind) @ v / (2.0 * e))
