from . import teleop_node, view_node
from .node_main import run_node
from .parameters import Parameters
from .start import ENDING, PARENT, end_with_parent

__all__ = ["ENDING", "PARENT", "Parameters", "end_with_parent", "run_node", "teleop_node", "view_node"]
