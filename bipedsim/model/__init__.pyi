from .hardware import differs, perturbed, read_hardware
from .load import load_robot
from .names import ROBOTS
from .posture import reach, sole_placements
from .presets import IDEAL, PRESETS, REALISTIC, ActuatorParams, HardwareParams, NoiseParams, StopParams
from .robot import Robot, inverse_inertia, stability_ratio, standing_torque
from .schema import read_robot_config
from .sole import Sole, checked_polygon, padded_vertices

__all__ = [
    "IDEAL",
    "PRESETS",
    "REALISTIC",
    "ROBOTS",
    "ActuatorParams",
    "HardwareParams",
    "NoiseParams",
    "Robot",
    "Sole",
    "StopParams",
    "checked_polygon",
    "differs",
    "inverse_inertia",
    "load_robot",
    "padded_vertices",
    "perturbed",
    "reach",
    "read_hardware",
    "read_robot_config",
    "sole_placements",
    "stability_ratio",
    "standing_torque",
]
