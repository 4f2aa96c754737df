from . import teleop_node
from .node_main import run_node
from .parameters import Parameters
from .start import PARENT
from .steering import HELP, TeleopParams

__all__ = ["HELP", "PARENT", "Parameters", "TeleopParams", "run_node", "teleop_node"]
