"""Interface of a controller, the same on a robot and in the simulator: observations in, commands out."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, zeros_of

if TYPE_CHECKING:
    from bipedsim.model import Robot

LARGEST_PUSH = 1e9
"""Largest external wrench accepted [N, N.m]. Anything larger is treated as an input error."""


@dataclass(slots=True, eq=False)
class Observation:
    """Store the measurements of one control tick; none of them needs ground truth.

    The producer owns the arrays and overwrites them at the next tick. Call ``copy()`` to keep them.

    Attributes:
        t: Time stamp of the measurements [s].
        joint_position: (nu,) [rad], in the order of ``Robot.joint_names``.
        joint_velocity: (nu,) [rad/s].
        joint_effort: (nu,) [N.m], torque that the drives report for the step that led here.
        imu_orientation: (4,) quaternion x y z w of the IMU frame in the world.
        imu_angular_velocity: (3,) [rad/s], in the IMU frame.
        imu_linear_acceleration: (3,) [m/s^2], specific force in the IMU frame: +g along the upward axis at rest
            (REP-145).
        foot_wrench: (n_feet, 6) force [N] then torque [N.m] of the ground on the foot as measured by the ankle sensor,
            in the ankle frame: in stance, sum f_z = weight above the ankles.
        height_scan: (S,) height of the base above the ground at the points of the sensor [m], ``inf`` where there is
            no ground; empty unless the simulation was asked for it (:class:`bipedsim.sim.Simulator`).
        scan_up: (3,) vertical in the axes of the base at the time of ``height_scan``, without which a scan has no
            points in the base frame (:func:`bipedsim.sim.scan_points`); empty without a scan. ``controller_node``
            computes it from IMU and joints, with their errors.
        imus: (M, 10) of each IMU in ``Robot.imus``: orientation, angular velocity and specific force, as above, in its
            own frame.
        contact_switches: (W,) 1 if the switch of ``Robot.contact_switches`` is closed, 0 if it is open, NaN before its
            first message.
    """

    t: float
    joint_position: Annotated[Array, "nu"]
    joint_velocity: Annotated[Array, "nu"]
    joint_effort: Annotated[Array, "nu"]
    imu_orientation: Annotated[Array, 4]
    imu_angular_velocity: Annotated[Array, 3]
    imu_linear_acceleration: Annotated[Array, 3]
    foot_wrench: Annotated[Array, "K", 6]
    height_scan: Annotated[Array, "S"] = field(default_factory=lambda: np.zeros(0))
    scan_up: Annotated[Array, "U"] = field(default_factory=lambda: np.zeros(0))
    imus: Annotated[Array, "M", 10] = field(default_factory=lambda: np.zeros((0, 10)))
    contact_switches: Annotated[Array, "W"] = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def zeros(cls, nu: int, n_feet: int, n_imus: int = 0, n_switches: int = 0) -> Observation:
        """Return an observation at rest without a height scan: zeros, and identity quaternions."""
        sizes = {"nu": nu, "K": n_feet, "S": 0, "U": 0, "M": n_imus, "W": n_switches}
        at_rest = zeros_of(cls, sizes, t=0.0, imu_orientation=np.array([0.0, 0.0, 0.0, 1.0]))
        at_rest.imus[:, 3] = 1.0
        return at_rest

    @classmethod
    def of_robot(cls, robot: Robot) -> Observation:
        """Return an observation at rest, without a height scan, for all sensors of ``robot``."""
        return cls.zeros(robot.nu, len(robot.soles), len(robot.imus), len(robot.contact_switches))

    def copy(self) -> Observation:
        """Return an independent copy."""
        return Observation(self.t, *(getattr(self, name).copy() for name in MEASURED))

    def take(self, other: Observation) -> Observation:
        """Copy ``other`` into the arrays of this observation, and return this observation."""
        self.t = other.t
        for name in MEASURED:
            np.copyto(getattr(self, name), getattr(other, name))
        return self


MEASURED = tuple(each.name for each in fields(Observation) if each.name != "t")
"""The arrays of an observation."""


SETPOINT = ("position", "velocity", "effort", "stiffness", "damping", "limit")
"""Quantities of a drive's closed loop: a packed command (6, nu) has one row for each, in this order."""
POSITION, VELOCITY, EFFORT, STIFFNESS, DAMPING, LIMIT = range(len(SETPOINT))


@dataclass(slots=True, eq=False)
class Command:
    """Store the output of a controller: joint torques, or an impedance that the drives realise.

    With a stiffness or a damping, each drive closes its loop at every physics step with the state of its own joint.
    It continues until the next command::

        tau = tau_joint + stiffness (position - q) + damping (velocity - v)

    within the effort limit. All arrays are (nu,), in the order of ``Robot.joint_names``.

    Attributes:
        tau_joint: Torque [N.m]; with an impedance, the feed-forward torque.
        position: q above [rad]; needed where there is a stiffness.
        velocity: v above [rad/s]; zero by default.
        stiffness: kp [N.m/rad], at least 0; none by default.
        damping: kd [N.m.s/rad], at least 0; none by default.
    """

    tau_joint: Array
    position: Array | None = None
    velocity: Array | None = None
    stiffness: Array | None = None
    damping: Array | None = None

    @property
    def closes_loop(self) -> bool:
        """Whether the command makes the drives close their loops."""
        return self.stiffness is not None or self.damping is not None

    def packed(self, limit: Array) -> Array:
        """Return the packed command of the drives (6, nu), rows as in ``SETPOINT``.

        Args:
            limit: (nu,) largest torque of each drive [N.m].

        Raises:
            ConfigError: A stiffness has no position, or an array has another size.
        """
        if self.stiffness is not None and self.position is None:
            raise ConfigError("it needs a position, about which it acts", "command: stiffness")
        rows = np.zeros((len(SETPOINT), len(limit)))
        parts = (self.position, self.velocity, self.tau_joint, self.stiffness, self.damping, limit)
        for name, row, values in zip(SETPOINT, rows, parts, strict=True):
            if values is not None:
                try:
                    row[:] = values
                except (TypeError, ValueError) as error:
                    message = f"must be {len(limit)} numbers, one for each joint"
                    raise ConfigError(message, f"command: {name}", values) from error
        return rows


@dataclass(slots=True, eq=False)
class Asked:
    """Store the command that the drives received in a control tick.

    Attributes:
        tau_joint: (nu,) torque [N.m]; for drives that close their loops, the torque of the last physics step.
        setpoint: (nu, 6) their setpoint, columns as in ``SETPOINT``; None while commands are only torques.
    """

    tau_joint: Array
    setpoint: Array | None = None

    @property
    def closes_loop(self) -> bool:
        """Whether the drives close their loops."""
        return self.setpoint is not None
