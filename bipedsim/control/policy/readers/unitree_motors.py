"""The order in which Unitree numbers the motors of its humanoids, with the joint names of their URDFs.

Source for G1 and H1: ``joint_sdk_names`` of unitreerobotics/unitree_rl_lab (assets/robots/unitree.py). Source for H1_2:
``leg_joint2motor_idx`` and ``arm_waist_joint2motor_idx`` of unitree_rl_gym, with the order of its h1_2.urdf.
"""

from __future__ import annotations

from collections.abc import Sequence

from bipedsim.model import Robot


def _sides(*names: str) -> tuple[str, ...]:
    return tuple(f"{side}_{name}_joint" for side in ("left", "right") for name in names)


_G1 = (
    *_sides("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll"),
    *(f"waist_{axis}_joint" for axis in ("yaw", "roll", "pitch")),
    *_sides("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw"),
)
_H1_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")
_H1 = (
    *(f"right_{name}_joint" for name in ("hip_roll", "hip_pitch", "knee")),
    *(f"left_{name}_joint" for name in ("hip_roll", "hip_pitch", "knee")),
    "torso_joint",
    "left_hip_yaw_joint",
    "right_hip_yaw_joint",
    "",  # number 9 has no motor
    "left_ankle_joint",
    "right_ankle_joint",
    *(f"right_{name}_joint" for name in _H1_ARM),
    *(f"left_{name}_joint" for name in _H1_ARM),
)
_H1_2 = (
    *_sides("hip_yaw", "hip_pitch", "hip_roll", "knee", "ankle_pitch", "ankle_roll"),
    "torso_joint",
    *_sides("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow_pitch", "elbow_roll", "wrist_pitch", "wrist_yaw"),
)


UNITREE_MOTORS = {"g1": _G1, "h1": _H1, "h1_2": _H1_2}
"""Joint of each motor of a robot model, in the order of its messages; empty where there is no motor."""


def pairs_along(robot: Robot) -> tuple[tuple[str, str], ...]:
    """Return pairs of driven joints: each joint with the next driven joint below it."""
    model, pairs = robot.model, []
    for name in robot.joint_names:
        above = model.parents[model.getJointId(name)]
        while above > 0 and model.names[above] not in robot.joint_names:
            above = model.parents[above]
        if above > 0:
            pairs.append((model.names[above], name))
    return tuple(pairs)


def disorder(motors: Sequence[str], pairs: Sequence[tuple[str, str]]) -> int:
    """Count the ``pairs`` whose motors are numbered from below; the legs of G1 and H1_2 differ only in this order."""
    return sum(motors.index(above) > motors.index(below) for above, below in pairs if {above, below} <= set(motors))


def motors_of(robot: Robot) -> tuple[str, ...]:
    """Return the joints of the matching Unitree robot in the order of its motors, or () if none matches.

    The model may have fewer joints than the real robot.
    """
    fitting = [motors for motors in UNITREE_MOTORS.values() if set(robot.joint_names) <= set(motors)]
    pairs = pairs_along(robot)
    return min(fitting, key=lambda motors: disorder(motors, pairs), default=())
