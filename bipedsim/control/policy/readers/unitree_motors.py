"""In which order Unitree numbers the motors of its humanoids, by the names of their URDFs.

Source: ``joint_sdk_names`` of unitreerobotics/unitree_rl_lab (assets/robots/unitree.py) for G1 and H1; for H1_2
``leg_joint2motor_idx`` and ``arm_waist_joint2motor_idx`` of unitree_rl_gym with the order of its h1_2.urdf.
"""

from __future__ import annotations

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


def motors_of(robot: Robot) -> tuple[str, ...]:
    """Return the joints of the machine that a robot is a model of, in the order of its motors; () if it is of none.

    The model may have fewer joints than the machine.
    """
    return next((motors for motors in (_G1, _H1_2, _H1) if set(robot.joint_names) <= set(motors)), ())
