"""Define the table of interfaces: ways in which third-party programs control the robot.

This module needs neither ROS nor the packages of the vendors.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bipedsim.config import Table
from bipedsim.errors import ConfigError, UnknownNameError, install
from bipedsim.model import Robot
from bipedsim_ros.wire import topics


@dataclass(frozen=True)
class Interface:
    """Entry of the table of interfaces.

    Attributes:
        executable: Name of the node that publishes joint commands, so that it runs instead of controller_node. Empty if
            the programs publish topics of sim_node themselves; lock step is then possible.
        module: Module with the ``main()`` of the node.
        needs: Package that the node requires.
        extra: Requirement to install if the package is missing, such as ``bipedsim[unitree]``.
        simulator: Parameters of sim_node, unless a parameter file has others.
        remap: Other names of topics, as in the argument ``remap``.
        check: ``module:function`` that is called before the start with the robot and the parameters of the node, and
            raises :class:`ConfigError` if the node would refuse them.
    """

    executable: str = ""
    module: str = ""
    needs: str = ""
    extra: str = ""
    simulator: Mapping[str, Any] = field(default_factory=dict)
    remap: str = ""
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
        ),
        # The hardware interface reads this topic by default; /joint_states is that of joint_state_broadcaster. It sends
        # nothing while commands equal states, so the robot must stand until then.
        "topic_based": Interface(
            simulator={"command_interface": "topic_based", "start": "hold_position"},
            remap=f"{topics.JOINT_STATES.name[1:]}:={topics.ROBOT_JOINT_STATES[1:]}",
        ),
    },
)
"""All interfaces by name, including those of third-party packages."""


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
    return next((row.module for row in rows if executable and row.executable == executable), "")
