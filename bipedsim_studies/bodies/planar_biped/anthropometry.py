"""Make robot.urdf of planar_biped: python -m bipedsim_studies.bodies.planar_biped.anthropometry > robot.urdf.

Structure: Hurmuzlu, Genot, Brogliato 2001, Fig. 5: a trunk, two thighs, two shanks and two feet in the sagittal plane.
Nine degrees of freedom: x, z and pitch of the trunk, and six joints. Each foot may touch the ground with heel and toe,
the points A and B of eq. 6. The paper gives no numbers: segments are those of biped14, whose tables
(bipedsim/robots/biped14/anthropometry.py) are those of a person of 70 kg.
Effort and velocity limits are those of biped14.
"""

from __future__ import annotations

from bipedsim.robots.biped14 import (
    ANKLE_HEIGHT,
    FOOT_LENGTH,
    FOOT_WIDTH,
    HEEL_TO_ANKLE,
    HIP_HALF_SPACING,
    SHANK_LENGTH,
    THIGH_LENGTH,
    base,
    document,
    fixed,
    foot,
    joint,
    link,
    shank,
    thigh,
)


def _leg(side: str) -> list[str]:
    s, sign = side[0], 1.0 if side == "left" else -1.0
    thigh_rod = f'<cylinder radius="0.06" length="{THIGH_LENGTH:.9g}"/>'
    shank_rod = f'<cylinder radius="0.045" length="{SHANK_LENGTH:.9g}"/>'
    block = f'<box size="{FOOT_LENGTH} {FOOT_WIDTH} {ANKLE_HEIGHT:.9g}"/>'
    # The legs are beside each other for the eye alone: nothing moves out of the plane.
    at_hip = [0.0, sign * HIP_HALF_SPACING, 0.0]
    at_knee, at_ankle = [0.0, 0.0, -THIGH_LENGTH], [0.0, 0.0, -SHANK_LENGTH]
    x_foot = FOOT_LENGTH / 2 - HEEL_TO_ANKLE
    return [
        link(f"{s}_thigh", thigh(), thigh_rod, (0.0, 0.0, -THIGH_LENGTH / 2)),
        joint(f"{s}_hip", "base_link", f"{s}_thigh", at_hip, "0 1 0", (-2.1, 0.7, 160.0, 5.8)),
        link(f"{s}_shank", shank(), shank_rod, (0.0, 0.0, -SHANK_LENGTH / 2)),
        joint(f"{s}_knee", f"{s}_thigh", f"{s}_shank", at_knee, "0 1 0", (0.0, 2.6, 300.0, 7.0)),
        link(f"{s}_foot", foot(), block, (x_foot, 0.0, -ANKLE_HEIGHT / 2)),
        joint(f"{s}_ankle", f"{s}_shank", f"{s}_foot", at_ankle, "0 1 0", (-1.3, 0.77, 160.0, 5.8)),
        fixed(f"{s}_sole", f"{s}_foot", [0.0, 0.0, -ANKLE_HEIGHT]),
    ]


def _passive(name: str, kind: str, parent: str, child: str, axis: str) -> str:
    return (
        f'  <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/></joint>'
    )


def make_urdf() -> str:
    """Return the text of ``robot.urdf``."""
    empty = [f'  <link name="{name}"/>' for name in ("world", "sledge", "lift")]
    x, z = _passive("x", "prismatic", "world", "sledge", "1 0 0"), _passive("z", "prismatic", "sledge", "lift", "0 0 1")
    pitch = _passive("pitch", "revolute", "lift", "base_link", "0 1 0")
    imu = fixed("imu_link", "base_link", [0.0, 0.0, 0.1])
    return document("planar_biped", __doc__, [*empty, x, z, base(), pitch, imu, *_leg("left"), *_leg("right")])


if __name__ == "__main__":
    print(make_urdf(), end="")
