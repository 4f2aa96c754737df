"""Assign the motors of a machine to the joints of a robot, from a YAML file for each machine in ``machines/``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from bipedsim.config import from_file, param
from bipedsim.control.policy import UNITREE_MOTORS, disorder
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Indices
from bipedsim_ros.interfaces.unitree.layout import FAMILIES, HG, Family

_FOLDER = Path(__file__).with_name("machines")


@dataclass(frozen=True)
class MachineFile:
    """Content of a machine's file."""

    name: str = param("", "what messages call it", required=True)
    motors: tuple[str, ...] = param(
        (),
        "joint that each motor turns, in the order of the messages, empty where there is no motor; by default those of "
        "bipedsim.control.policy.UNITREE_MOTORS under the name",
    )
    messages: str = param(HG.name, "family of its messages", choices=tuple(FAMILIES))
    imu: str = param("", "joint that carries its IMU; empty for the root link")
    mode_machine: int = param(0, "what the machine calls its build in rt/lowstate", low=0, high=255)
    mode_machine_by_joints: Mapping[str, int] = param({}, "the same of builds with this many joints")

    def problems(self) -> Iterator[ConfigError]:
        """Yield an error message for each inconsistency between the fields."""
        maximum = FAMILIES[self.messages].n
        if len(self.motors) > maximum:
            yield ConfigError(f"there are {len(self.motors)}, and at most {maximum} in a message", "motors")
        joints = [name for name in self.motors if name]
        if len(set(joints)) < len(joints):
            yield ConfigError("a joint is there twice", "motors")


@dataclass(frozen=True)
class Machine:
    """A machine, reduced to the joints of a robot.

    Attributes:
        name: Name of the machine.
        family: Family of its messages.
        used: Indices of its motors.
        motor: (nu,) motor of each joint of the robot.
        missing: Joints of the machine that the robot lacks; their motors are reported as at rest at zero.
        mode_machine: Identifier of the machine's build.
        imu: Joint whose body carries the IMU; empty for the root link.
    """

    name: str
    family: Family
    used: tuple[int, ...]
    motor: Indices
    missing: tuple[str, ...]
    mode_machine: int
    imu: str


@cache
def machine_files() -> tuple[MachineFile, ...]:
    """Return all machines.

    Raises:
        ConfigError: A file is invalid.
    """
    files = (from_file(MachineFile, path) for path in sorted(_FOLDER.glob("*.yaml")))
    return tuple(file if file.motors else replace(file, motors=UNITREE_MOTORS[file.name]) for file in files)


def machine_for(joint_names: Sequence[str], pairs: Sequence[tuple[str, str]] = ()) -> Machine:
    """Return the machine that has all joints of a robot.

    Args:
        joint_names: Joints of the robot.
        pairs: Joints, each with its child joint. Among machines with the same joint names, they select the machine
            that numbers parents before children.

    Raises:
        ConfigError: There is no such machine; the message names the joints that the nearest machine lacks.
    """
    files = machine_files()
    missing = [[name for name in joint_names if name not in file.motors] for file in files]
    nearest = min(range(len(files)), key=lambda k: (len(missing[k]), disorder(files[k].motors, pairs)))
    file = files[nearest]
    if missing[nearest]:
        known = ", ".join(candidate.name for candidate in files)
        raise ConfigError(
            f"no motor of {file.name} turns them, nor another of {known}: name them as Unitree's own URDF does, "
            "or add the machine as a file in bipedsim_ros/interfaces/unitree/machines",
            f"joints {', '.join(missing[nearest])}",
        )
    number = {name: motor for motor, name in enumerate(file.motors)}
    return Machine(
        file.name,
        FAMILIES[file.messages],
        tuple(motor for motor, name in enumerate(file.motors) if name),
        np.array([number[name] for name in joint_names], dtype=np.intp),
        tuple(name for name in file.motors if name and name not in joint_names),
        file.mode_machine_by_joints.get(str(len(joint_names)), file.mode_machine),
        file.imu,
    )


def misplaced_imu(machine: Machine, robot: Robot) -> str:
    """Return a warning if the IMU of a robot is on another body than the machine's IMU; else an empty text."""
    names = robot.model.names
    carrier = names[robot.imu_joint_id] if robot.imu_joint_id > 1 else ""
    if carrier == (machine.imu if machine.imu in names else ""):
        return ""
    bodies = [f"the body of {name}" if name else "the root link" for name in (carrier, machine.imu)]
    return (
        f"the IMU of this robot is on {bodies[0]}, that of {machine.name} on {bodies[1]}: programs take its attitude "
        "for that of the other one; name a frame there as `imu: {frame: NAME}` in robot.yaml"
    )
