from . import teleop_node, view_node
from .node_main import run_node
from .parameters import Parameters
from .start import PARENT

__all__ = ["PARENT", "Parameters", "run_node", "teleop_node", "view_node"]
