from .chains import Chains
from .content import robot_content
from .gains import HELD, PD_DAMPING, PD_STIFFNESS, drive_gains, joint_gains
from .hardware import differs, perturbed, read_hardware
from .inertia import inertia_problem, nearest_inertia
from .kinematics import at_posture, com_position, foot_poses, inverse_kinematics, standing_posture
from .load import RobotReader, load_robot
from .loops import CONNECT, WELD, Loop, LoopEquations
from .names import DESCRIPTIONS, ROBOTS, robot_file
from .posture import place_base, reach, sole_placements, stand, stand_upright
from .presets import IDEAL, PRESETS, REALISTIC, ActuatorParams, HardwareParams, NoiseParams, StopParams
from .robot import Robot, drivers, inverse_inertia, passive_columns, stability_ratio, standing_torque
from .schema import read_robot_config
from .shapes import Shape, Shapes, collada_up_axis, located, lowest_point, mesh_path, mesh_triangles, read_shapes
from .sides import SIDES, split_side
from .sole import Sole, checked_polygon, padded_vertices
from .start import STANDING, start_configuration
from .urdf import check_numbers, inertia_matrix, inertia_values, read_urdf, welded

__all__ = [
    "CONNECT",
    "DESCRIPTIONS",
    "HELD",
    "IDEAL",
    "PD_DAMPING",
    "PD_STIFFNESS",
    "PRESETS",
    "REALISTIC",
    "ROBOTS",
    "SIDES",
    "STANDING",
    "WELD",
    "ActuatorParams",
    "Chains",
    "HardwareParams",
    "Loop",
    "LoopEquations",
    "NoiseParams",
    "Robot",
    "RobotReader",
    "Shape",
    "Shapes",
    "Sole",
    "StopParams",
    "at_posture",
    "check_numbers",
    "checked_polygon",
    "collada_up_axis",
    "com_position",
    "differs",
    "drive_gains",
    "drivers",
    "foot_poses",
    "inertia_matrix",
    "inertia_problem",
    "inertia_values",
    "inverse_inertia",
    "inverse_kinematics",
    "joint_gains",
    "load_robot",
    "located",
    "lowest_point",
    "mesh_path",
    "mesh_triangles",
    "nearest_inertia",
    "padded_vertices",
    "passive_columns",
    "perturbed",
    "place_base",
    "reach",
    "read_hardware",
    "read_robot_config",
    "read_shapes",
    "read_urdf",
    "robot_content",
    "robot_file",
    "sole_placements",
    "split_side",
    "stability_ratio",
    "stand",
    "stand_upright",
    "standing_posture",
    "standing_torque",
    "start_configuration",
    "welded",
]
