"""The contract: which topics a controller needs of a robot, and how."""

from __future__ import annotations

from dataclasses import dataclass, field

from bipedsim.model import Robot
from bipedsim.recording.bag import Qos


@dataclass(frozen=True)
class ExpectedTopic:
    """One topic of the contract.

    Attributes:
        name: Where the controller expects it.
        found_as: Where the robot has it; the same without remapping.
        msgtype: Type, such as ``sensor_msgs/msg/Imu``.
        controller: Quality of service of the controller's end: what it requests, or offers on the command topic.
        frame: ``frame_id`` of the header; empty if the controller does not care.
    """

    name: str
    found_as: str
    msgtype: str
    controller: Qos
    frame: str = ""


@dataclass(frozen=True, eq=False)
class Contract:
    """All of it.

    Attributes:
        robot: What the controller knows of the robot.
        rate: States per second [Hz].
        ft_sign: 1 if the controller takes ankle wrenches as the ground on the foot, -1 if it takes the reverse.
        command_joints: Order of the torques in a command.
        joints, imu, commands: Topics.
        wrenches: Topic of each foot.
        takes: Kind of the commands, one of :data:`bipedsim_ros.contract.robot_contract.TAKES`.
    """

    robot: Robot
    rate: float
    ft_sign: float
    command_joints: tuple[str, ...]
    joints: ExpectedTopic
    imu: ExpectedTopic
    wrenches: tuple[ExpectedTopic, ...]
    commands: ExpectedTopic
    takes: str = "effort"
    sensors: tuple[ExpectedTopic, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensors", (self.joints, self.imu, *self.wrenches))
