"""A small biped of our own as others would describe it, in URDF and in MJCF, with room for every oddity."""

from __future__ import annotations

from collections.abc import Mapping

BOX = '<geometry><box size="0.2 0.1 0.02"/></geometry>'
"""Of a foot: its underside is 0.05 m below the ankle, when placed by FOOT."""
FOOT = "0.03 0 -0.04"
LEG = (
    ("hip_roll", "1 0 0"),
    ("hip_pitch", "0 1 0"),
    ("knee", "0 1 0"),
    ("ankle_pitch", "0 1 0"),
    ("ankle_roll", "1 0 0"),
)
DROPS = {"hip_roll": 0.0, "hip_pitch": 0.0, "knee": 0.35, "ankle_pitch": 0.35, "ankle_roll": 0.0}
LINKS = ("hip", "thigh", "shank", "ankle", "foot")
MASSES = {"hip": 0.5, "thigh": 3.0, "shank": 2.0, "ankle": 0.2, "foot": 0.8}
INERTIA = (0.02, 0.018, 0.008)


def inertial(mass: float, moments: tuple[float, float, float] = INERTIA, at: str = "0 0 -0.1") -> str:
    """Return an <inertial> of a URDF."""
    xx, yy, zz = moments
    tensor = f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
    return f'<inertial><origin xyz="{at}"/><mass value="{mass}"/>{tensor}</inertial>'


def small_urdf(
    foot: str = f'<collision><origin xyz="{FOOT}"/>{BOX}</collision>',
    sides: tuple[str, str] = ("left", "right"),
    limit: str = '<limit lower="-2" upper="2" effort="60" velocity="8"/>',
    inertias: Mapping[str, tuple[float, float, float]] | None = None,
    more: str = "",
    kind: str = "revolute",
    knee: str = '<limit lower="-0.1" upper="2" effort="60" velocity="8"/>',
) -> str:
    """Return the URDF of two legs of five joints under a pelvis of 10 kg, the soles 0.75 m below its middle.

    Args:
        foot: Content of the link of the foot, in addition to its inertia.
        sides: Names of the sides, that at positive y first.
        limit: Of all joints except the knees.
        inertias: Link to other principal moments.
        more: Further elements.
        kind: Type of all joints except the knees.
        knee: Limit of the knees.
    """
    inertias = inertias or {}
    text = ['<robot name="small">', f'<link name="pelvis">{inertial(10.0, (0.1, 0.1, 0.1), "0 0 0.1")}</link>']
    for side, y in zip(sides, (0.1, -0.1), strict=True):
        parent = "pelvis"
        for (joint, axis), link in zip(LEG, LINKS, strict=True):
            name, drop = f"{side}_{link}", DROPS[joint]
            is_knee = joint == "knee"
            at = f"0 {y} 0" if parent == "pelvis" else f"0 0 {-drop}"
            text.append(
                f'<joint name="{side}_{joint}" type="{"revolute" if is_knee else kind}"><parent link="{parent}"/>'
                f'<child link="{name}"/><origin xyz="{at}"/><axis xyz="{axis}"/>{knee if is_knee else limit}</joint>'
            )
            shape = foot if link == "foot" else ""
            moments = inertias.get(name, tuple(MASSES[link] * m for m in INERTIA))
            at = "0.03 0 -0.03" if link in ("ankle", "foot") else "0 0 -0.1"
            text.append(f'<link name="{name}">{inertial(MASSES[link], moments, at)}{shape}</link>')
            parent = name
    return "".join([*text, more, "</robot>"])


def small_mjcf(floor: str = "", foot: str = "", behind: str = "", base: str = "<freejoint/>") -> str:
    """Return the same robot in MJCF; hips of two joints in one body, so that the URDF needs a link between them.

    Args:
        floor: Further elements of the world.
        foot: Shapes of the foot; by default the box.
        behind: Elements after the world.
        base: The joint of the pelvis.
    """
    foot = foot or f'<geom type="box" size="0.1 0.05 0.01" pos="{FOOT}" friction="0.7 0.01 0.001"/>'
    legs = []
    for side, y in (("left", 0.1), ("right", -0.1)):
        legs.append(
            f"""<body name="{side}_thigh" pos="0 {y} 0"><joint name="{side}_hip_roll" axis="1 0 0"/>
            <joint name="{side}_hip_pitch" axis="0 1 0"/><geom class="link" fromto="0 0 0 0 0 -0.35"/>
            <body name="{side}_shank" pos="0 0 -0.35"><joint name="{side}_knee" axis="0 1 0" range="-5 120"/>
            <geom class="link" fromto="0 0 0 0 0 -0.25"/>
            <body name="{side}_ankle" pos="0 0 -0.35"><joint name="{side}_ankle_pitch" axis="0 1 0"/>
            <inertial pos="0 0 0" mass="0.2" diaginertia="0.001 0.001 0.001"/>
            <body name="{side}_foot"><joint name="{side}_ankle_roll" axis="1 0 0"/>
            {foot}</body></body></body></body>"""
        )
    motors = "".join(
        f'<motor joint="{side}_{joint}" gear="2" ctrlrange="-30 30"/>' for side in ("left", "right") for joint, _ in LEG
    )
    return f"""<mujoco model="small"><compiler angle="degree"/>
    <default><joint range="-115 115" damping="0.4" armature="0.01" frictionloss="0.2"/>
    <default class="link"><geom type="capsule" size="0.03" mass="2"/></default></default>
    <worldbody>{floor}<body name="pelvis" pos="0 0 0.75">{base}
    <geom type="box" size="0.1 0.15 0.1" pos="0 0 0.1" mass="10"/><site name="imu" pos="0 0 0.1"/>{"".join(legs)}</body>
    </worldbody><actuator>{motors}</actuator>{behind}</mujoco>"""
