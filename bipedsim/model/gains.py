"""Gains of joints that fit a robot of any size: from the inertia that its joints show."""

from __future__ import annotations

import numpy as np

from bipedsim.model.robot import Robot, inverse_inertia
from bipedsim.numerics import Array

PD_DAMPING, PD_STIFFNESS = 0.25, 50.0
"""Gains of :func:`joint_gains` by default: a quarter of what is stable by far, and kp / kd [1/s]."""
HELD = 1e-9
"""Mobility of a joint over that of the freest one below which nothing moves it."""


def joint_gains(
    robot: Robot, h: float, damping: float = PD_DAMPING, stiffness: float = PD_STIFFNESS
) -> tuple[Array, Array]:
    """Return kp [N.m/rad] and kd [N.m.s/rad] (nu,) of an explicit PD that is answered every ``h`` [s].

    kd is in proportion to I_eff = 1 / (M^-1)_ii at the nominal posture, the base free. Held joints have none.

    Args:
        robot: The robot.
        h: Period of the loop [s].
        damping: Largest eigenvalue of h M^-1 Kd; 2 is unstable.
        stiffness: kp / kd [1/s].
    """
    inverse = inverse_inertia(robot)
    # Joints act on each other, so that all at once are 1.8 to 2.7 times as stiff as one alone.
    mobility = np.diag(inverse)
    free = mobility > HELD * mobility.max(initial=0.0)
    inverse, mobility = inverse[np.ix_(free, free)], mobility[free]
    together = float(np.abs(np.linalg.eigvals(inverse / mobility)).max(initial=0.0))
    kd = np.zeros(len(free))
    kd[free] = damping / (mobility * h * together)
    return stiffness * kd, kd


def drive_gains(robot: Robot, h: float) -> tuple[Array, Array]:
    """Return the gains kp [N.m/rad], kd [N.m.s/rad] (nu,) by which the robot's own drives keep a position.

    They are those of robot.yaml (``drive_stiffness``, ``drive_damping``); a joint without has those of
    :func:`joint_gains` for drives that close their loops every ``h`` [s].
    """
    kp, kd = joint_gains(robot, h)
    for gains, given in ((kp, robot.drive_stiffness), (kd, robot.drive_damping)):
        for joint, value in given.items():
            gains[robot.joint_names.index(joint)] = value
    return kp, kd
