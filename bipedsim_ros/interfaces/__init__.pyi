from .table import (
    INTERFACES as INTERFACES,
    Interface as Interface,
    check_interface as check_interface,
    get_interface as get_interface,
    node_module as node_module,
)
