from .table import INTERFACES, Interface, check_interface, get_interface, node_module

__all__ = [
    "INTERFACES",
    "Interface",
    "check_interface",
    "get_interface",
    "node_module",
]
