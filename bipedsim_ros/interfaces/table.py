"""The table of vendors' interfaces: a folder and a row each. Nothing here needs ROS, or what a vendor's topics need."""

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
    """A row of the table.

    Attributes:
        executable: Name of the node that speaks it; it publishes commands of joints, so that no controller of ours runs
            beside it.
        module: Module with the ``main()`` of that node.
        needs: Package without which it cannot run.
        extra: What to install where that is missing, such as ``bipedsim[unitree]``.
        check: ``module:function`` that is called with the robot and the parameters of the node before anything starts,
            and raises :class:`ConfigError` where the node would refuse them.
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
"""All of them by name, those of other packages too."""


def get_interface(name: str) -> Interface:
    """Return a row whose package is installed.

    Raises:
        UnknownNameError: There is no such interface.
        ConfigError: What it needs is not installed.
    """
    if name not in INTERFACES:
        raise UnknownNameError("interface", name, INTERFACES, "bring-up")
    row = INTERFACES[name]
    if not isinstance(row, Interface):
        raise ConfigError(f"interface {name!r} is {row!r}; it must be a bipedsim_ros.interfaces.Interface")
    if row.needs and importlib.util.find_spec(row.needs) is None:
        raise ConfigError(f"interface = {name!r} needs {row.needs}, which is not installed: {install(row.extra)}")
    return row


def check_interface(name: str, robot: Robot, parameters: Mapping[str, Any]) -> None:
    """Check a robot and the parameters of an interface's node before anything starts.

    Raises:
        ConfigError: The node would refuse them.
    """
    module, _, function = get_interface(name).check.partition(":")
    if module:
        getattr(importlib.import_module(module), function)(robot, parameters)


def node_module(executable: str) -> str:
    """Return the module of the node of an interface by the name of its executable; empty if it is none."""
    rows = (INTERFACES[name] for name in INTERFACES)
    return next((row.module for row in rows if row.executable == executable), "")
