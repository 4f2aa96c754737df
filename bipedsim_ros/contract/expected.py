"""Define the contract: the topics that a controller needs from a robot, and their properties."""

from __future__ import annotations

from dataclasses import dataclass, field

from bipedsim.model import Robot
from bipedsim.recording.bag import Qos


@dataclass(frozen=True)
class ExpectedTopic:
    """One topic of the contract.

    Attributes:
        name: Name that the controller expects.
        found_as: Name that the robot uses; the same without remapping.
        msgtype: Type, such as ``sensor_msgs/msg/Imu``.
        controller: Quality of service of the controller: requested, or offered for the command topic.
        frame: ``frame_id`` of the header; empty if the controller does not use it.
    """

    name: str
    found_as: str
    msgtype: str
    controller: Qos
    frame: str = ""


@dataclass(frozen=True, eq=False)
class Contract:
    """All topics and parameters that a controller expects.

    Attributes:
        robot: The controller's model of the robot.
        rate: States per second [Hz].
        ft_sign: Sign of the ankle wrenches: 1 for the ground on the foot, -1 for the reverse.
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
