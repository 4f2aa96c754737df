"""Provide the contract of docs/ros_interface.md as data, for ``bipedsim check-robot``. Does not need ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.recording.bag import Qos
from bipedsim_ros.wire import Topic, topics

TAKES = {"effort": topics.COMMANDS, "impedance": topics.IMPEDANCE, "position": topics.POSITIONS}
"""Topics for the kinds of commands for all joints."""


@dataclass(frozen=True)
class ExpectedTopic:
    """One topic of the contract.

    Attributes:
        name: Name that the controller expects.
        found_as: Name that the robot uses; the same without remapping.
        msgtype: Type, such as ``sensor_msgs/msg/Imu``.
        controller: Quality of service of the controller: requested, or offered for the command topic.
        frame: ``frame_id`` of the header; empty if the controller does not use it.
        stamped: Whether the messages have a stamp.
    """

    name: str
    found_as: str
    msgtype: str
    controller: Qos
    frame: str = ""
    stamped: bool = True


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
        takes: Kind of the commands, one of :data:`TAKES`.
        imus, switches: Topics of the additional IMUs and of the contact switches, in the order of robot.yaml.
        sensors: Topics with stamped measurements.
        measured: Topics with measurements.
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
    imus: tuple[ExpectedTopic, ...] = ()
    switches: tuple[ExpectedTopic, ...] = ()
    sensors: tuple[ExpectedTopic, ...] = field(init=False)
    measured: tuple[ExpectedTopic, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensors", (self.joints, self.imu, *self.wrenches, *self.imus))
        object.__setattr__(self, "measured", (*self.sensors, *self.switches))


def robot_contract(
    robot: Robot,
    rate: float = 1000.0,
    ft_sign: float = 1.0,
    joints: Sequence[str] = (),
    remappings: Mapping[str, str] | None = None,
    takes: str = "effort",
    namespace: str = "",
) -> Contract:
    """Return the contract of a controller_node with these parameters.

    Args:
        robot: The robot.
        rate, ft_sign, joints: Parameters of controller_node.
        remappings: Name in the contract to the robot's name of the topic.
        takes: Kind of commands that the robot accepts, one of :data:`TAKES`.
        namespace: Namespace of the robot's topics.

    Raises:
        ConfigError: A remapped topic is not in the contract, ``joints`` are not the robot's, or a sensor of the robot
            has the topic of another quantity.
    """
    robot_names = dict(remappings or {})

    def topic(row: Topic, foot: str = "", frame: str = "") -> ExpectedTopic:
        name = row.of(foot)
        sends = row in TAKES.values()
        qos = row.offered if sends or row.requested is None else row.requested
        inside = f"/{namespace.strip('/')}{name}" if namespace.strip("/") else name
        stamped = row.msgtype != topics.SWITCH.msgtype
        return ExpectedTopic(name, robot_names.get(name, inside), row.msgtype, qos, frame, stamped)

    named = topics.of_sensors(robot)
    result = Contract(
        robot=robot,
        rate=rate,
        ft_sign=ft_sign,
        command_joints=tuple(joints) or robot.joint_names,
        joints=topic(topics.JOINT_STATES),
        imu=topic(topics.IMU, frame=topics.IMU.frame_of(imu=robot.imu_frame)),
        wrenches=tuple(
            topic(topics.ANKLE_WRENCH, sole.name, topics.ANKLE_WRENCH.frame_of(sole.name)) for sole in robot.soles
        ),
        commands=topic(TAKES[takes]),
        takes=takes,
        imus=tuple(topic(named[imu.name], frame=imu.frame) for imu in robot.imus),
        switches=tuple(topic(named[switch.name]) for switch in robot.contact_switches),
    )
    known = [t.name for t in (*result.measured, result.commands)]
    for name in robot_names:
        if name not in known:
            raise ConfigError(f"--remap {name}:=...: the controller has no such topic; it has {', '.join(known)}")
    if sorted(result.command_joints) != sorted(robot.joint_names):
        raise ConfigError(f"joints must hold every joint of {robot.name} once: {', '.join(robot.joint_names)}")
    return result
