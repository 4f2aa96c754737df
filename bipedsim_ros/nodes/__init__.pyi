from .node_main import run_node
from .parameters import Parameters

__all__ = ["Parameters", "run_node"]
