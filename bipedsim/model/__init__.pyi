from .chains import Chains as Chains
from .content import robot_content as robot_content
from .gains import (
    HELD as HELD,
    PD_DAMPING as PD_DAMPING,
    PD_STIFFNESS as PD_STIFFNESS,
    drive_gains as drive_gains,
    joint_gains as joint_gains,
)
from .hardware import (
    body_links as body_links,
    differs as differs,
    hardware_mapping as hardware_mapping,
    joint_values as joint_values,
    perturbed as perturbed,
    read_hardware as read_hardware,
)
from .inertia import inertia_problem as inertia_problem, nearest_inertia as nearest_inertia
from .kinematics import (
    at_posture as at_posture,
    com_position as com_position,
    foot_poses as foot_poses,
    inverse_kinematics as inverse_kinematics,
    standing_posture as standing_posture,
)
from .limits import effort_and_velocity_limits as effort_and_velocity_limits
from .load import RobotReader as RobotReader, load_robot as load_robot
from .loops import CONNECT as CONNECT, WELD as WELD, Loop as Loop, LoopEquations as LoopEquations
from .names import (
    CONTACT_SWITCH as CONTACT_SWITCH,
    DESCRIPTIONS as DESCRIPTIONS,
    IMU as IMU,
    MAIN_IMU_TOPIC as MAIN_IMU_TOPIC,
    ROBOTS as ROBOTS,
    SENSOR_TOPICS as SENSOR_TOPICS,
    robot_file as robot_file,
)
from .posture import (
    place_base as place_base,
    reach as reach,
    sole_placements as sole_placements,
    stand as stand,
    stand_apart as stand_apart,
    stand_upright as stand_upright,
)
from .presets import (
    IDEAL as IDEAL,
    PRESETS as PRESETS,
    REALISTIC as REALISTIC,
    ActuatorParams as ActuatorParams,
    HardwareParams as HardwareParams,
    NoiseParams as NoiseParams,
    OffsetParams as OffsetParams,
    StopParams as StopParams,
)
from .robot import (
    Robot as Robot,
    drivers as drivers,
    inverse_inertia as inverse_inertia,
    passive_columns as passive_columns,
    stability_ratio as stability_ratio,
    standing_torque as standing_torque,
)
from .schema import read_robot_config as read_robot_config
from .sensors import ContactSwitch as ContactSwitch, Imu as Imu
from .shapes import (
    Shape as Shape,
    ShapeFault as ShapeFault,
    Shapes as Shapes,
    ShapeWarning as ShapeWarning,
    check_shapes as check_shapes,
    collada_up_axis as collada_up_axis,
    located as located,
    lowest_point as lowest_point,
    mesh_path as mesh_path,
    mesh_triangles as mesh_triangles,
    read_shapes as read_shapes,
)
from .sides import SIDES as SIDES, split_side as split_side
from .sole import Sole as Sole, checked_polygon as checked_polygon, padded_vertices as padded_vertices
from .start import STANDING as STANDING, start_configuration as start_configuration
from .urdf import (
    check_urdf as check_urdf,
    inertia_matrix as inertia_matrix,
    inertia_values as inertia_values,
    read_urdf as read_urdf,
    welded as welded,
)
