"""Gains of the drives of a robot, as parameters that can change while they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from bipedsim.config import param
from bipedsim.errors import UnknownNameError
from bipedsim.model import Robot, drive_gains
from bipedsim.numerics import Array

_BY_DEFAULT = "default: that of robot.yaml, or else from the inertia of the joint"


@dataclass(frozen=True)
class DriveParams:
    """Gains of the position loops in the drives, for commands that contain no gains."""

    drive_stiffness: Mapping[str, float] = param(
        {}, f"stiffness of the position loop in the drive of a joint; {_BY_DEFAULT}", unit="N.m/rad", low=0.0, live=True
    )
    drive_damping: Mapping[str, float] = param(
        {}, f"damping of this position loop; {_BY_DEFAULT}", unit="N.m.s/rad", low=0.0, live=True
    )

    @classmethod
    def of_robot(cls, robot: Robot, h: float) -> DriveParams:
        """Return the gains of a robot's drives with a loop period of ``h`` [s]."""
        gains = (dict(zip(robot.joint_names, row.tolist(), strict=True)) for row in drive_gains(robot, h))
        return cls(*gains)

    def refuse_unknown(self, robot: Robot, where: str) -> None:
        """Raise an error for a gain of a joint that the robot does not have.

        Raises:
            UnknownNameError: The message lists the joints.
        """
        for field in fields(self):
            for joint in getattr(self, field.name):
                if joint not in robot.joint_names:
                    raise UnknownNameError("joint", joint, robot.joint_names, f"{where}: {field.name}")

    def of_joints(self, robot: Robot) -> Array:
        """Return stiffness [N.m/rad] and damping [N.m.s/rad] in the order of the robot's joints (2, nu)."""
        return np.array([[gains[joint] for joint in robot.joint_names] for gains in vars(self).values()])
