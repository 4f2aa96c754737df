from .hardware import IDEAL, PRESETS, ActuatorParams, NoiseParams, differs, perturbed, read_hardware
from .posture import reach, sole_placements, standing_torque
from .robot import ROBOTS, Robot, inverse_inertia, load_robot
from .schema import number, numbers_per_joint, read_robot_config
from .sole import Sole, checked_polygon, padded_vertices

__all__ = [
    "IDEAL",
    "PRESETS",
    "ROBOTS",
    "ActuatorParams",
    "NoiseParams",
    "Robot",
    "Sole",
    "checked_polygon",
    "differs",
    "inverse_inertia",
    "load_robot",
    "number",
    "numbers_per_joint",
    "padded_vertices",
    "perturbed",
    "reach",
    "read_hardware",
    "read_robot_config",
    "sole_placements",
    "standing_torque",
]
