from . import teleop_node
from .node_main import run_node
from .parameters import Parameters
from .steering import HELP, TeleopParams

__all__ = ["HELP", "Parameters", "TeleopParams", "run_node", "teleop_node"]
