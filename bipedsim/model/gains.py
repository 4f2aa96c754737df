"""Compute joint gains for a robot of any size from the effective inertia of its joints."""

from __future__ import annotations

import numpy as np

from bipedsim.model.robot import Robot, inverse_inertia
from bipedsim.numerics import Array

PD_DAMPING, PD_STIFFNESS = 0.25, 50.0
"""Default gains of :func:`joint_gains`: damping far below the stability limit, and kp / kd [1/s]."""
HELD = 1e-9
"""Mobility of a joint divided by the largest mobility, below which the joint is blocked."""


def joint_gains(
    robot: Robot, h: float, damping: float = PD_DAMPING, stiffness: float = PD_STIFFNESS
) -> tuple[Array, Array]:
    """Return kp [N.m/rad] and kd [N.m.s/rad] (nu,) of an explicit PD controller with period ``h`` [s].

    kd is proportional to I_eff = 1 / (M^-1)_ii in the nominal configuration with a free base. Blocked joints get 0.

    Args:
        robot: The robot.
        h: Period of the control loop [s].
        damping: Largest eigenvalue of h M^-1 Kd; 2 is unstable.
        stiffness: kp / kd [1/s].
    """
    inverse = inverse_inertia(robot)
    # Coupling between the joints makes all gains together 1.8 to 2.7 times as stiff as one gain alone.
    mobility = np.diag(inverse)
    free = mobility > HELD * mobility.max(initial=0.0)
    inverse, mobility = inverse[np.ix_(free, free)], mobility[free]
    coupling = float(np.abs(np.linalg.eigvals(inverse / mobility)).max(initial=0.0))
    kd = np.zeros(len(free))
    kd[free] = damping / (mobility * h * coupling)
    return stiffness * kd, kd


def drive_gains(robot: Robot, h: float) -> tuple[Array, Array]:
    """Return the gains kp [N.m/rad], kd [N.m.s/rad] (nu,) of the position loops in the robot's drives.

    robot.yaml defines them (``drive_stiffness``, ``drive_damping``). Other joints get the gains of :func:`joint_gains`
    for drives with a loop period of ``h`` [s].
    """
    kp, kd = joint_gains(robot, h)
    for gains, overrides in ((kp, robot.drive_stiffness), (kd, robot.drive_damping)):
        for joint, value in overrides.items():
            gains[robot.joint_names.index(joint)] = value
    return kp, kd
