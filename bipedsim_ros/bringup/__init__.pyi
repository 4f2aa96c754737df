from .bringup import argument_names as argument_names, plan as plan
from .external_node import ExternalNode as ExternalNode
from .launch_actions import describe as describe
from .processes import environment as environment, ros_arguments as ros_arguments, start_session as start_session
from .robot_bringup import ROBOT_ARGUMENTS as ROBOT_ARGUMENTS, plan_robot as plan_robot
