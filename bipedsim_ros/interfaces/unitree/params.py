"""Define the parameters of unitree_node. This module needs neither ROS nor DDS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bipedsim.config import RunConfig, check_all, from_mapping, like, param
from bipedsim.control.policy import pairs_along
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim_ros.interfaces.unitree.machine import machine_for
from bipedsim_ros.interfaces.unitree.remote import BUTTONS, read_script
from bipedsim_ros.loop import SimParams
from bipedsim_ros.wire import NetworkParams


@dataclass(frozen=True)
class UnitreeParams:
    """Parameters of unitree_node."""

    robot: str = like(RunConfig, "robot", "g1")
    gantry: str = like(SimParams, "gantry")
    domain: int = param(0, "DDS domain of rt/lowstate and rt/lowcmd", low=0, high=230)
    nic: str = param(
        "",
        "network interface that they are on; by default lo, this machine alone, and with network = subnet the one that "
        "cyclonedds finds",
    )
    network: str = like(NetworkParams, "network")
    state_rate: float = param(500.0, "rt/lowstate per second of the robot's time", unit="Hz", low=1.0, high=1000.0)
    remote: tuple[str, ...] = param(
        (),
        "script of the remote control, 'TIME WORDS' in s since the first rt/lowcmd: '1 start', '5 A', '6 ly=0.6'",
    )
    begin: str = param(
        "",
        "button of the remote control before which time stays at t = 0; by default it begins with the first command "
        "that has a stiffness, a damping or a torque, and in a gantry with the first one",
        choices=("", *BUTTONS),
    )
    stick_speed: tuple[float, float, float] = param(
        (0.8, 0.5, 1.57), "velocity ahead, to the left and turning, on /cmd_vel, at which a stick is at its end"
    )
    priority: int = like(SimParams, "priority", 0)

    def problems(self) -> Iterator[ConfigError]:
        """Yield an error message for each invalid field."""
        if min(self.stick_speed) <= 0.0:
            yield ConfigError("must be above 0", "stick_speed", self.stick_speed)
        for text in self.remote:
            try:
                read_script([text])
            except ConfigError as error:
                yield error


def check(robot: Robot, parameters: Mapping[str, Any]) -> None:
    """Check the parameters of the node for a robot, before a launch.

    Raises:
        ConfigError: The robot is not one of the vendor's machines, or parameters are invalid; all errors at once.
    """
    check_all(
        [
            lambda: machine_for(robot.joint_names, pairs_along(robot)),
            lambda: from_mapping(UnitreeParams, parameters, "parameters of unitree_node"),
        ]
    )
