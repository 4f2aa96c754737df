from .chains import Chains
from .gains import PD_DAMPING, PD_STIFFNESS, drive_gains, joint_gains
from .hardware import differs, perturbed, read_hardware
from .load import load_robot
from .loops import CONNECT, WELD, Loop, LoopEquations
from .names import ROBOTS
from .posture import reach, sole_placements
from .presets import IDEAL, PRESETS, REALISTIC, ActuatorParams, HardwareParams, NoiseParams, StopParams
from .robot import Robot, drivers, inverse_inertia, passive_columns, stability_ratio, standing_torque
from .schema import read_robot_config
from .shapes import Shape, Shapes, lowest_point, read_shapes
from .sole import Sole, checked_polygon, padded_vertices

__all__ = [
    "CONNECT",
    "IDEAL",
    "PD_DAMPING",
    "PD_STIFFNESS",
    "PRESETS",
    "REALISTIC",
    "ROBOTS",
    "WELD",
    "ActuatorParams",
    "Chains",
    "HardwareParams",
    "Loop",
    "LoopEquations",
    "NoiseParams",
    "Robot",
    "Shape",
    "Shapes",
    "Sole",
    "StopParams",
    "checked_polygon",
    "differs",
    "drive_gains",
    "drivers",
    "inverse_inertia",
    "joint_gains",
    "load_robot",
    "lowest_point",
    "padded_vertices",
    "passive_columns",
    "perturbed",
    "reach",
    "read_hardware",
    "read_robot_config",
    "read_shapes",
    "sole_placements",
    "stability_ratio",
    "standing_torque",
]
