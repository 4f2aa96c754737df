"""Which motor of a machine turns which joint of a robot: a YAML file for each machine in ``machines/``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bipedsim.config import from_file, param
from bipedsim.errors import ConfigError
from bipedsim.numerics import Indices
from bipedsim_ros.interfaces.unitree.layout import N_MOTORS

_FOLDER = Path(__file__).with_name("machines")


@dataclass(frozen=True)
class MachineFile:
    """A machine as its file says it."""

    name: str = param("", "what messages call it", required=True)
    motors: tuple[str, ...] = param((), "joint that each motor turns, in the order of the messages", required=True)
    mode_machine: int = param(0, "what the machine calls its build in rt/lowstate", low=0, high=255)
    mode_machine_by_joints: Mapping[str, int] = param({}, "the same of builds with this many joints")

    def problems(self) -> Iterator[str]:
        """Yield what is wrong between the fields."""
        if len(self.motors) > N_MOTORS:
            yield f"motors: there are {len(self.motors)}, and at most {N_MOTORS} in a message"
        if len(set(self.motors)) < len(self.motors):
            yield "motors: a joint is there twice"


@dataclass(frozen=True)
class Machine:
    """A machine as far as a robot is one.

    Attributes:
        name: Of the machine.
        n: How many motors it has.
        motor: (nu,) motor of each joint of the robot.
        missing: Joints of the machine that the robot lacks, whose motors are reported as held at zero.
        mode_machine: What the machine calls its build.
    """

    name: str
    n: int
    motor: Indices
    missing: tuple[str, ...]
    mode_machine: int


@cache
def machine_files() -> tuple[MachineFile, ...]:
    """Return all machines.

    Raises:
        ConfigError: A file is wrong.
    """
    return tuple(from_file(MachineFile, path) for path in sorted(_FOLDER.glob("*.yaml")))


def machine_for(joint_names: Sequence[str]) -> Machine:
    """Return the machine that has all joints of a robot, and the fewest beside them.

    Raises:
        ConfigError: There is none; the message names the joints that the nearest one lacks.
    """
    files = machine_files()
    lacks = [[name for name in joint_names if name not in file.motors] for file in files]
    nearest = min(range(len(files)), key=lambda k: (len(lacks[k]), len(files[k].motors)))
    file = files[nearest]
    if lacks[nearest]:
        known = ", ".join(one.name for one in files)
        raise ConfigError(
            f"interface = 'unitree' knows {known}, and no motor of {file.name} turns {', '.join(lacks[nearest])}: name "
            "the joints as Unitree's own URDF does, or add the machine as a file in bipedsim_ros/interfaces/unitree/"
            "machines"
        )
    number = {name: motor for motor, name in enumerate(file.motors)}
    return Machine(
        file.name,
        len(file.motors),
        np.array([number[name] for name in joint_names], dtype=np.intp),
        tuple(name for name in file.motors if name not in joint_names),
        file.mode_machine_by_joints.get(str(len(joint_names)), file.mode_machine),
    )
