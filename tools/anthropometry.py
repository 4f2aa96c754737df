"""Generate robot.urdf of biped14, parallel_ankles and planar_biped from anthropometric tables.

python tools/anthropometry.py biped14 > bipedsim/robots/biped14/robot.urdf
python tools/anthropometry.py parallel_ankles > bipedsim/robots/parallel_ankles/robot.urdf
python tools/anthropometry.py planar_biped > bipedsim_studies/bodies/planar_biped/robot.urdf
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BIPED14 = """Made by tools/anthropometry.py from anthropometric tables.

Structure: Rengifo, Aoustin, Plestan, Chevallereau 2009, section III and Fig. 8: five rigid links (trunk, thighs,
    shanks) and two
rectangular feet connected by fourteen motorised joints. The text does not split the seven joints of a leg; here hip 3,
knee 1, ankle 3. Hip 3, knee 2 (flexion, then rotation about the shank), ankle 2 is the same kinematic chain: the
rotation about the shank only changes sides of the shank's mass.

Segments: D. A. Winter, Biomechanics and Motor Control of Human Movement, 4th ed. 2009, Table 4.1 (mass fractions,
    centres of
mass, radii of gyration about a transverse axis) and Fig. 4.1 (lengths as fractions of height, after Drillis and
Contini). Longitudinal radii of thigh and shank: P. de Leva, Adjustments to Zatsiorsky-Seluyanov's segment inertia
parameters, J. Biomechanics 29(9), 1996, Table 4, males.

Where three joints cross in one point, the two links between them are drive housings: spheres with honest mass. Their
    mass and inertia
are taken out of the segment they sit on, so that housing and segment together are exactly the tabulated segment.
Effort and velocity limits: the legs of PAL Robotics' Talos (talos_reduced.urdf of example-robot-data), an
adult-sized torque-controlled biped; the ankle yaw has those of the hip yaw.
"""
PLANAR_BIPED = """Made by tools/anthropometry.py from anthropometric tables.

Structure: Hurmuzlu, Genot, Brogliato 2001, Fig. 5: a trunk, two thighs, two shanks and two feet in the sagittal plane.
Nine degrees of freedom: x, z and pitch of the trunk, and six joints. Each foot may touch the ground with heel and toe,
the points A and B of eq. 6. The paper gives no numbers: segments are those of biped14, a person of
70 kg.
Effort and velocity limits are those of biped14.
"""

PARALLEL_ANKLES = """Made by tools/anthropometry.py from anthropometric tables.

The biped of biped14, a person of 70 kg, without ankle yaw and with ankles as many humanoids have them: pitch and roll
of the foot have no drive of their own. Two drives in the calf turn a crank each, and from either crank a rod with a
universal joint at its upper end goes down to a ball joint on the foot, behind the ankle: both cranks up or down pitch
the foot, one against the other rolls it. In the sagittal plane crank, rod, foot and shank are a parallelogram. The ball
joints close the chains: they are `loops` of robot.yaml.
Cranks and rods are design values; their mass and inertia are taken out of the shank.
"""

TOTAL_MASS = 70.0
LEG_LENGTH = 0.84
"""Hip to ankle [m]: thigh 0.245 H + shank 0.246 H (Winter Fig. 4.1) gives the height H below."""
HEIGHT = LEG_LENGTH / (0.245 + 0.246)
THIGH_LENGTH = 0.245 * HEIGHT
SHANK_LENGTH = 0.246 * HEIGHT
ANKLE_HEIGHT = 0.039 * HEIGHT
TRUNK_LENGTH = (0.818 - 0.530) * HEIGHT
"""Greater trochanter to glenohumeral joint [m]."""
SHOULDER_BREADTH = 0.259 * HEIGHT
TRUNK_DEPTH = 0.24
HIP_HALF_SPACING = 0.085
FOOT_LENGTH, FOOT_WIDTH, HEEL_TO_ANKLE = 0.24, 0.13, 0.08

TRUNK_FRACTION, THIGH_FRACTION, SHANK_FRACTION, FOOT_FRACTION = 0.678, 0.100, 0.0465, 0.0145
"""Fractions of the total mass. The trunk is Winter's HAT: head, arms and trunk."""

HIP_HOUSING_MASS, HIP_HOUSING_RADIUS = 0.5, 0.05
ANKLE_HOUSING_MASS, ANKLE_HOUSING_RADIUS = 0.2, 0.04

CRANK_LENGTH, CRANK_MASS, CRANK_RADIUS = 0.05, 0.25, 0.03
ROD_LENGTH, ROD_MASS, ROD_RADIUS, ROD_HALF_SPACING = 0.2, 0.1, 0.006, 0.045


@dataclass(frozen=True)
class Body:
    """Rigid body: mass [kg], centre of mass (3,) [m], and inertia (3, 3) about the centre of mass [kg.m^2]."""

    mass: float
    centre: Array
    inertia: Array

    def about(self, point: Array) -> Array:
        """Return the inertia (3, 3) about ``point`` (3,) [kg.m^2]."""
        r = self.centre - point
        return self.inertia + self.mass * (r @ r * np.eye(3) - np.outer(r, r))


def minus(whole: Body, part: Body) -> Body:
    """Return the body ``whole`` without ``part``, both in the same frame."""
    mass = whole.mass - part.mass
    centre = (whole.mass * whole.centre - part.mass * part.centre) / mass
    remaining = Body(mass, centre, np.zeros((3, 3)))
    return Body(mass, centre, whole.about(centre) - part.about(centre) - remaining.about(centre))


def sphere(mass: float, radius: float, centre: tuple[float, float, float]) -> Body:
    """Return a homogeneous sphere."""
    return Body(mass, np.array(centre), 0.4 * mass * radius**2 * np.eye(3))


def trunk() -> Body:
    """Return Winter's HAT above the hips. An elliptic cylinder gives its yaw inertia and a correction of roll."""
    mass = TRUNK_FRACTION * TOTAL_MASS
    pitch = mass * (0.496 * TRUNK_LENGTH) ** 2
    half_breadth, half_depth = SHOULDER_BREADTH / 2, TRUNK_DEPTH / 2
    roll = pitch + mass * (half_breadth**2 - half_depth**2) / 4
    yaw = mass * (half_breadth**2 + half_depth**2) / 4
    return Body(mass, np.array([0.0, 0.0, 0.626 * TRUNK_LENGTH]), np.diag([roll, pitch, yaw]))


def limb(fraction: float, length: float, transverse: float, longitudinal: float) -> Body:
    """Return a limb segment below its proximal joint. Thigh and shank both have their CoM at 0.433 of the length."""
    mass = fraction * TOTAL_MASS
    transverse_inertia, longitudinal_inertia = mass * (transverse * length) ** 2, mass * (longitudinal * length) ** 2
    return Body(
        mass,
        np.array([0.0, 0.0, -0.433 * length]),
        np.diag([transverse_inertia, transverse_inertia, longitudinal_inertia]),
    )


def thigh() -> Body:
    """Return the complete thigh in the hip frame."""
    return limb(THIGH_FRACTION, THIGH_LENGTH, 0.323, 0.149)


def shank() -> Body:
    """Return the complete shank in the knee frame."""
    return limb(SHANK_FRACTION, SHANK_LENGTH, 0.302, 0.103)


def foot() -> Body:
    """Return the foot in the ankle frame, as a homogeneous box below the ankle."""
    mass = FOOT_FRACTION * TOTAL_MASS
    x, y, z = FOOT_LENGTH, FOOT_WIDTH, ANKLE_HEIGHT
    inertia = np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) * mass / 12
    return Body(mass, np.array([FOOT_LENGTH / 2 - HEEL_TO_ANKLE, 0.0, -ANKLE_HEIGHT / 2]), inertia)


def _numbers(values: Array | list[float]) -> str:
    return " ".join(f"{v:.9g}" for v in np.asarray(values) + 0.0)


def link(name: str, body: Body, visual: str = "", at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> str:
    """Return a URDF link with the geometry ``visual``, whose centre is at ``at`` (3,) [m]."""
    i = body.inertia
    lines = [
        f'  <link name="{name}">',
        "    <inertial>",
        f'      <origin xyz="{_numbers(body.centre)}" rpy="0 0 0"/>',
        f'      <mass value="{body.mass:.9g}"/>',
        f'      <inertia ixx="{i[0, 0]:.9g}" ixy="0" ixz="0" iyy="{i[1, 1]:.9g}" iyz="0" izz="{i[2, 2]:.9g}"/>',
        "    </inertial>",
    ]
    if visual:
        shape = f"<geometry>{visual}</geometry>"
        origin = f'<origin xyz="{_numbers(list(at))}" rpy="0 0 0"/>'
        lines += [f'    <visual>{origin}{shape}<material name="{"light" if "foot" in name else "dark"}"/></visual>']
        lines += [f"    <collision>{origin}{shape}</collision>"]
    return "\n".join([*lines, "  </link>"])


def joint(
    name: str, parent: str, child: str, xyz: list[float], axis: str, limit: tuple[float, float, float, float]
) -> str:
    """Return a revolute joint; ``limit`` is lower and upper [rad], effort [N.m] and velocity [rad/s]."""
    lower, upper, effort, velocity = limit
    return (
        f'  <joint name="{name}" type="revolute">\n    <parent link="{parent}"/>\n    <child link="{child}"/>\n'
        f'    <origin xyz="{_numbers(xyz)}" rpy="0 0 0"/>\n    <axis xyz="{axis}"/>\n'
        f'    <limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="{velocity}"/>\n  </joint>'
    )


def fixed(name: str, parent: str, xyz: list[float]) -> str:
    """Return an empty link with a fixed joint to ``parent`` at ``xyz`` [m]."""
    return (
        f'  <link name="{name}"/>\n'
        f'  <joint name="{name}_fixed" type="fixed"><parent link="{parent}"/><child link="{name}"/>'
        f'<origin xyz="{_numbers(xyz)}" rpy="0 0 0"/></joint>'
    )


def _thigh_and_shank(side: str, shank_rest: Body) -> list[str]:
    """Return hip, thigh and knee of a leg; ``shank_rest`` is the shank without drive housings or mechanism."""
    left = side == "left"
    sign, s = (1.0, "l") if left else (-1.0, "r")
    hip = sphere(HIP_HOUSING_MASS, HIP_HOUSING_RADIUS, (0.0, 0.0, 0.0))
    thigh_rest = minus(minus(thigh(), hip), hip)
    hip_ball = f'<sphere radius="{HIP_HOUSING_RADIUS}"/>'
    thigh_rod = f'<cylinder radius="0.06" length="{THIGH_LENGTH:.9g}"/>'
    shank_rod = f'<cylinder radius="0.045" length="{SHANK_LENGTH:.9g}"/>'
    roll = (-0.35, 0.6) if left else (-0.6, 0.35)
    return [
        link(f"{s}_hip_yaw_link", hip, hip_ball),
        joint(
            f"{s}_hip_yaw",
            "base_link",
            f"{s}_hip_yaw_link",
            [0.0, sign * HIP_HALF_SPACING, 0.0],
            "0 0 1",
            (*_yaw(side), 100.0, 3.87),
        ),
        link(f"{s}_hip_roll_link", hip),
        joint(f"{s}_hip_roll", f"{s}_hip_yaw_link", f"{s}_hip_roll_link", [0.0] * 3, "1 0 0", (*roll, 160.0, 5.8)),
        link(f"{s}_thigh", thigh_rest, thigh_rod, (0.0, 0.0, -THIGH_LENGTH / 2)),
        joint(f"{s}_hip_pitch", f"{s}_hip_roll_link", f"{s}_thigh", [0.0] * 3, "0 1 0", (-2.1, 0.7, 160.0, 5.8)),
        link(f"{s}_shank", shank_rest, shank_rod, (0.0, 0.0, -SHANK_LENGTH / 2)),
        joint(f"{s}_knee", f"{s}_thigh", f"{s}_shank", [0.0, 0.0, -THIGH_LENGTH], "0 1 0", (0.0, 2.6, 300.0, 7.0)),
    ]


def _yaw(side: str) -> tuple[float, float]:
    inward, outward = 0.4, 0.8
    return (-inward, outward) if side == "left" else (-outward, inward)


def _foot(s: str) -> list[str]:
    """Return the link of a foot, and its ankle and sole frames."""
    block = f'<box size="{FOOT_LENGTH} {FOOT_WIDTH} {ANKLE_HEIGHT:.9g}"/>'
    x_foot = FOOT_LENGTH / 2 - HEEL_TO_ANKLE
    return [
        link(f"{s}_foot", foot(), block, (x_foot, 0.0, -ANKLE_HEIGHT / 2)),
        fixed(f"{s}_ankle", f"{s}_foot", [0.0] * 3),
        fixed(f"{s}_sole", f"{s}_foot", [0.0, 0.0, -ANKLE_HEIGHT]),
    ]


def _leg(side: str) -> list[str]:
    s = side[0]
    ankle = sphere(ANKLE_HOUSING_MASS, ANKLE_HOUSING_RADIUS, (0.0, 0.0, 0.0))
    ankle_of_shank = sphere(ANKLE_HOUSING_MASS, ANKLE_HOUSING_RADIUS, (0.0, 0.0, -SHANK_LENGTH))
    shank_rest = minus(minus(shank(), ankle_of_shank), ankle_of_shank)
    ankle_ball = f'<sphere radius="{ANKLE_HOUSING_RADIUS}"/>'
    tilt = (-0.5, 0.5)
    foot_link, *frames = _foot(s)
    return [
        *_thigh_and_shank(side, shank_rest),
        link(f"{s}_ankle_yaw_link", ankle, ankle_ball),
        joint(
            f"{s}_ankle_yaw",
            f"{s}_shank",
            f"{s}_ankle_yaw_link",
            [0.0, 0.0, -SHANK_LENGTH],
            "0 0 1",
            (*_yaw(side), 100.0, 3.87),
        ),
        link(f"{s}_ankle_pitch_link", ankle),
        joint(
            f"{s}_ankle_pitch",
            f"{s}_ankle_yaw_link",
            f"{s}_ankle_pitch_link",
            [0.0] * 3,
            "0 1 0",
            (-1.3, 0.77, 160.0, 5.8),
        ),
        foot_link,
        joint(f"{s}_ankle_roll", f"{s}_ankle_pitch_link", f"{s}_foot", [0.0] * 3, "1 0 0", (*tilt, 100.0, 4.8)),
        *frames,
    ]


def crank() -> Body:
    """Return a crank in the frame of its axis: a disc with its arm behind it."""
    inertia = np.diag([0.25, 0.5, 0.25]) * CRANK_MASS * CRANK_RADIUS**2
    return Body(CRANK_MASS, np.array([-0.2 * CRANK_LENGTH, 0.0, 0.0]), inertia)


def rod() -> Body:
    """Return a vertical rod in the frame of its upper end."""
    transverse_inertia, longitudinal_inertia = ROD_MASS * ROD_LENGTH**2 / 12, ROD_MASS * ROD_RADIUS**2 / 2
    return Body(
        ROD_MASS,
        np.array([0.0, 0.0, -ROD_LENGTH / 2]),
        np.diag([transverse_inertia, transverse_inertia, longitudinal_inertia]),
    )


def translated(body: Body, offset: Array) -> Body:
    """Return a body in a frame in which the body's own frame is at ``offset`` (3,) [m]."""
    return Body(body.mass, body.centre + offset, body.inertia)


def _parallel_leg(side: str) -> list[str]:
    s, outer = side[0], 1.0 if side == "left" else -1.0
    ankle = sphere(ANKLE_HOUSING_MASS, ANKLE_HOUSING_RADIUS, (0.0, 0.0, 0.0))
    shank_rest = minus(shank(), translated(ankle, np.array([0.0, 0.0, -SHANK_LENGTH])))
    disc = f'<sphere radius="{CRANK_RADIUS}"/>'
    bar = f'<cylinder radius="{ROD_RADIUS}" length="{ROD_LENGTH}"/>'
    parts, frames = [], []
    for crank_side, sign in (("outer", outer), ("inner", -outer)):
        y = sign * ROD_HALF_SPACING
        axis, arm = [0.0, y, ROD_LENGTH - SHANK_LENGTH], [-CRANK_LENGTH, 0.0, 0.0]
        for part, position in ((crank(), np.array(axis)), (rod(), np.add(axis, arm))):
            shank_rest = minus(shank_rest, translated(part, position))
        crank_link, cross, rod_link = (
            f"{s}_crank_{crank_side}_link",
            f"{s}_rod_{crank_side}_cross",
            f"{s}_rod_{crank_side}",
        )
        parts += [
            link(crank_link, crank(), disc),
            joint(f"{s}_crank_{crank_side}", f"{s}_shank", crank_link, axis, "0 1 0", (-1.3, 1.0, 100.0, 7.0)),
            f'  <link name="{cross}"/>',
            _passive(f"{rod_link}_pitch", "revolute", crank_link, cross, "0 1 0", arm),
            link(rod_link, rod(), bar, (0.0, 0.0, -ROD_LENGTH / 2)),
            _passive(f"{rod_link}_roll", "revolute", cross, rod_link, "1 0 0"),
            fixed(f"{rod_link}_end", rod_link, [0.0, 0.0, -ROD_LENGTH]),
        ]
        frames.append(fixed(f"{s}_lever_{crank_side}", f"{s}_foot", [-CRANK_LENGTH, y, 0.0]))
    foot_link, *foot_frames = _foot(s)
    pitch, roll = (-1.2, 0.77, 0.0, 5.8), (-0.5, 0.5, 0.0, 4.8)
    return [
        *_thigh_and_shank(side, shank_rest),
        link(f"{s}_ankle_link", ankle, f'<sphere radius="{ANKLE_HOUSING_RADIUS}"/>'),
        joint(f"{s}_ankle_pitch", f"{s}_shank", f"{s}_ankle_link", [0.0, 0.0, -SHANK_LENGTH], "0 1 0", pitch),
        foot_link,
        joint(f"{s}_ankle_roll", f"{s}_ankle_link", f"{s}_foot", [0.0] * 3, "1 0 0", roll),
        *foot_frames,
        *frames,
        *parts,
    ]


def base() -> str:
    """Return the link of the trunk."""
    block = f'<box size="{TRUNK_DEPTH} {SHOULDER_BREADTH:.9g} {TRUNK_LENGTH:.9g}"/>'
    return link("base_link", trunk(), block, (0.0, 0.0, TRUNK_LENGTH / 2))


def document(name: str, about: str, parts: list[str]) -> str:
    """Return a generated URDF with the description ``about`` in its heading."""
    heading = "\n".join(f"  {line}".rstrip() for line in about.strip().splitlines()).replace("--", "-")
    return "\n".join([
        '<?xml version="1.0"?>',
        "<!-- Generated, do not edit.",
        heading,
        "-->",
        f'<robot name="{name}">',
        '  <material name="dark"><color rgba="0.25 0.3 0.4 1"/></material>',
        '  <material name="light"><color rgba="0.8 0.8 0.75 1"/></material>',
        *parts,
        "</robot>",
        "",
    ])  # fmt: skip


def biped14() -> str:
    """Return the text of ``robot.urdf`` of biped14."""
    imu = fixed("imu_link", "base_link", [0.0, 0.0, 0.1])
    return document("biped14", BIPED14, [base(), imu, *_leg("left"), *_leg("right")])


def parallel_ankles() -> str:
    """Return the text of ``robot.urdf`` of parallel_ankles."""
    imu = fixed("imu_link", "base_link", [0.0, 0.0, 0.1])
    parts = [base(), imu, *_parallel_leg("left"), *_parallel_leg("right")]
    return document("parallel_ankles", PARALLEL_ANKLES, parts)


def _planar_leg(side: str) -> list[str]:
    s, sign = side[0], 1.0 if side == "left" else -1.0
    thigh_rod = f'<cylinder radius="0.06" length="{THIGH_LENGTH:.9g}"/>'
    shank_rod = f'<cylinder radius="0.045" length="{SHANK_LENGTH:.9g}"/>'
    block = f'<box size="{FOOT_LENGTH} {FOOT_WIDTH} {ANKLE_HEIGHT:.9g}"/>'
    # The lateral offset is only visual, because nothing moves out of the plane.
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


def _passive(name: str, kind: str, parent: str, child: str, axis: str, at: list[float] | None = None) -> str:
    origin = f'<origin xyz="{_numbers(at)}" rpy="0 0 0"/>' if at else ""
    return (
        f'  <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{origin}'
        f'<axis xyz="{axis}"/></joint>'
    )


def planar_biped() -> str:
    """Return the text of ``robot.urdf`` of planar_biped."""
    empty = [f'  <link name="{name}"/>' for name in ("world", "sledge", "lift")]
    x, z = _passive("x", "prismatic", "world", "sledge", "1 0 0"), _passive("z", "prismatic", "sledge", "lift", "0 0 1")
    pitch = _passive("pitch", "revolute", "lift", "base_link", "0 1 0")
    imu = fixed("imu_link", "base_link", [0.0, 0.0, 0.1])
    parts = [*empty, x, z, base(), pitch, imu, *_planar_leg("left"), *_planar_leg("right")]
    return document("planar_biped", PLANAR_BIPED, parts)


if __name__ == "__main__":
    print({"biped14": biped14, "parallel_ankles": parallel_ankles, "planar_biped": planar_biped}[sys.argv[1]](), end="")
