"""Define the table of vendor bridges. This module needs neither ROS nor the packages of the vendors."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bipedsim.config import Table
from bipedsim.errors import ConfigError, UnknownNameError, install
from bipedsim.model import Robot


@dataclass(frozen=True)
class Interface:
    """Entry of the table of vendor bridges.

    Attributes:
        executable: Name of the bridge's node. It publishes joint commands, so it runs instead of controller_node.
        module: Module with the ``main()`` of the node.
        needs: Package that the node requires.
        extra: Requirement to install if the package is missing, such as ``bipedsim[unitree]``.
        check: ``module:function`` that is called before the start with the robot and the parameters of the node, and
            raises :class:`ConfigError` if the node would refuse them.
    """

    executable: str
    module: str
    needs: str = ""
    extra: str = ""
    check: str = ""


INTERFACES = Table(
    "interface",
    "bipedsim.interfaces",
    {
        "unitree": Interface(
            executable="unitree_node",
            module="bipedsim_ros.interfaces.unitree.node",
            needs="cyclonedds",
            extra="bipedsim[unitree]",
            check="bipedsim_ros.interfaces.unitree.params:check",
        )
    },
)
"""All vendor bridges by name, including those of third-party packages."""


def get_interface(name: str) -> Interface:
    """Return an entry whose required package is installed.

    Raises:
        UnknownNameError: There is no such vendor bridge.
        ConfigError: The required package is not installed.
    """
    if name not in INTERFACES:
        raise UnknownNameError("interface", name, INTERFACES, "bring-up")
    row = INTERFACES[name]
    if not isinstance(row, Interface):
        raise ConfigError("must be a bipedsim_ros.interfaces.Interface", f"interface {name!r}", row)
    if row.needs and importlib.util.find_spec(row.needs) is None:
        raise ConfigError(f"needs {row.needs}, which is not installed: {install(row.extra)}", "interface", name)
    return row


def check_interface(name: str, robot: Robot, parameters: Mapping[str, Any]) -> None:
    """Check the robot and the parameters of a vendor bridge's node before the start.

    Raises:
        ConfigError: The node would refuse them.
    """
    module, _, function = get_interface(name).check.partition(":")
    if module:
        getattr(importlib.import_module(module), function)(robot, parameters)


def node_module(executable: str) -> str:
    """Return the module of the vendor bridge with this executable; empty if there is none."""
    rows = (INTERFACES[name] for name in INTERFACES)
    return next((row.module for row in rows if row.executable == executable), "")
