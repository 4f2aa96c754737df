from .base import Controller as Controller, checked_torque as checked_torque
from .controllers import (
    CONTROLLERS as CONTROLLERS,
    construct as construct,
    controller_params as controller_params,
    find_controller as find_controller,
    make_controller as make_controller,
    robot_params as robot_params,
)
from .loads import RELIEVED as RELIEVED
from .monitor import FALL_TILT as FALL_TILT, Guard as Guard, joint_damping as joint_damping
from .raised import (
    ControllerError as ControllerError,
    controller_traceback as controller_traceback,
    is_library as is_library,
    raised_line as raised_line,
    raising_controller as raising_controller,
)
from .stop import StopKind as StopKind, StopReason as StopReason
from .tuning import Tuning as Tuning
from .walking.ankle_limits import ankles_limit_soles as ankles_limit_soles
from .walking.cadence import DOUBLE_SUPPORT as DOUBLE_SUPPORT
