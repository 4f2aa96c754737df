from . import teleop_node as teleop_node, view_node as view_node
from .node_main import NodeProgram as NodeProgram, run_node as run_node
from .parameters import Parameters as Parameters
from .start import ENDING as ENDING, PARENT as PARENT, RECORDING as RECORDING, end_with_parent as end_with_parent
