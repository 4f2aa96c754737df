from .node_main import run_node
from .parameters import Parameters
from .teleop_node import main

__all__ = ["Parameters", "main", "run_node"]
