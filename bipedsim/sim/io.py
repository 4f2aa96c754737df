"""What a controller receives and what it returns, the same on a robot and on the simulator."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import numpy as np

from bipedsim.numerics import Array, zeros_of

LARGEST_PUSH = 1e9
"""What a push may be at most [N, N.m]: the weight of a hundred thousand tonnes. More is a slip of the hand."""


@dataclass(slots=True, eq=False)
class Observation:
    """Measurements of one control tick: nothing in here needs ground truth.

    The producer owns the arrays and overwrites them at the next tick; ``copy()`` what must last.

    Attributes:
        t: Time stamp of the measurements [s].
        joint_position: (nu,) [rad], in the order of ``Robot.joint_names``.
        joint_velocity: (nu,) [rad/s].
        joint_effort: (nu,) [N.m], torque applied over the step that led here.
        imu_orientation: (4,) quaternion x y z w of the IMU frame in the world.
        imu_angular_velocity: (3,) [rad/s], in the IMU frame.
        imu_linear_acceleration: (3,) [m/s^2], specific force in the IMU frame: +g along the upward axis at rest
            (REP-145).
        foot_wrench: (n_feet, 6) force [N] then torque [N.m] of the ground on the foot as the ankle sensor feels it,
            in the ankle frame: standing gives sum f_z = weight above the ankles.
    """

    t: float
    joint_position: Annotated[Array, "nu"]
    joint_velocity: Annotated[Array, "nu"]
    joint_effort: Annotated[Array, "nu"]
    imu_orientation: Annotated[Array, 4]
    imu_angular_velocity: Annotated[Array, 3]
    imu_linear_acceleration: Annotated[Array, 3]
    foot_wrench: Annotated[Array, "K", 6]

    @classmethod
    def zeros(cls, nu: int, n_feet: int) -> Observation:
        """Return an observation at rest: zeros, and the identity quaternion."""
        return zeros_of(cls, {"nu": nu, "K": n_feet}, t=0.0, imu_orientation=np.array([0.0, 0.0, 0.0, 1.0]))

    def copy(self) -> Observation:
        """Return an independent copy."""
        return Observation(self.t, *(getattr(self, name).copy() for name in MEASURED))

    def take(self, other: Observation) -> Observation:
        """Become what ``other`` is, in the arrays of this one, and return this one."""
        self.t = other.t
        for name in MEASURED:
            np.copyto(getattr(self, name), getattr(other, name))
        return self


MEASURED = tuple(field.name for field in fields(Observation) if field.name != "t")
"""The arrays of an observation."""


@dataclass(slots=True, eq=False)
class Command:
    """What a controller asks of the joints.

    Attributes:
        tau_joint: (nu,) torque [N.m], in the order of ``Robot.joint_names``.
    """

    tau_joint: Array
