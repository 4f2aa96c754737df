"""Read the sensors of a robot in addition to its main IMU and its ankle sensors: key ``sensors`` of robot.yaml."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pinocchio as pin

from bipedsim.config import together
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model.names import IMU, MAIN_IMU_TOPIC, SENSOR_TOPICS, SWITCH_THRESHOLD
from bipedsim.model.schema import SensorConfig

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TOPIC = re.compile(r"(/[A-Za-z_]\w*)+", re.ASCII)


@dataclass(frozen=True)
class Imu:
    """IMU in addition to the main one.

    Attributes:
        name, topic: Name in robot.yaml, and the topic of its messages.
        frame: URDF frame of its measurements.
        joint_id: pinocchio joint that carries it.
        placement_joint_imu: The frame in that joint.
    """

    name: str
    topic: str
    frame: str
    joint_id: int
    placement_joint_imu: pin.SE3


@dataclass(frozen=True)
class ContactSwitch:
    """Switch in the sole of a foot.

    Attributes:
        name, topic: Name in robot.yaml, and the topic of its messages.
        foot: Name of the foot.
        threshold: Normal force of the sole above which the switch is closed [N].
    """

    name: str
    topic: str
    foot: str
    threshold: float


def read_sensors(
    configs: Mapping[str, SensorConfig], frame_of: Callable[[str, str], pin.Frame], feet: Collection[str], source: str
) -> tuple[tuple[Imu, ...], tuple[ContactSwitch, ...]]:
    """Return the IMUs and the contact switches of the key ``sensors``, in its order.

    Args:
        configs: Name of each sensor to its keys.
        frame_of: Returns the frame with a name; the second argument is the place in the file, for its error.
        feet: Names of the feet.
        source: Name of the file.

    Raises:
        ConfigError: A frame or foot is unknown, or a name or topic is taken or has characters that no topic may have;
            a single error lists all problems.
    """
    faults: list[ConfigError] = []
    imus: list[Imu] = []
    switches: list[ContactSwitch] = []
    owners = {MAIN_IMU_TOPIC: "the main IMU"}
    for name, config in configs.items():
        place = f"sensors.{name}"
        try:
            topic = _checked_topic(name, config, owners, f"{source}: {place}")
            if config.type == IMU:
                frame = frame_of(config.frame, f"{place}.frame")
                imus.append(Imu(name, topic, frame.name, int(frame.parentJoint), frame.placement))
            elif config.foot not in feet:
                raise UnknownNameError("foot", config.foot, feet, f"{source}: {place}.foot")
            else:
                threshold = SWITCH_THRESHOLD if config.threshold is None else config.threshold
                switches.append(ContactSwitch(name, topic, config.foot, threshold))
        except ConfigError as error:
            faults.append(error)
    together(faults)
    return tuple(imus), tuple(switches)


def _checked_topic(name: str, config: SensorConfig, owners: dict[str, str], place: str) -> str:
    """Return the topic of a sensor, and add it to ``owners``, topic to the name of its sensor."""
    if not _NAME.fullmatch(name):
        raise ConfigError("becomes part of a topic name: letters, digits and _, starting with a letter", place, name)
    if config.topic and not _TOPIC.fullmatch(config.topic):
        raise ConfigError(
            "must be / and a name, such as /torso_imu/data: letters, digits and _, no part starting with a digit",
            f"{place}.topic",
            config.topic,
        )
    topic = config.topic or SENSOR_TOPICS[config.type].format(sensor=name)
    if topic in owners:
        raise ConfigError(f"is the topic of {owners[topic]}; set another one", f"{place}.topic", topic)
    owners[topic] = f"sensor {name!r}"
    return topic
