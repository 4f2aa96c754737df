"""Checks of arrays that callers of a simulator pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.dynamics import Dynamics
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array

BEYOND_STOP = 1e-6
"""Largest angle [rad] by which a joint may start beyond its limit, since files round postures."""


def numbers(name: str, values: Any) -> Array:
    """Return ``values`` as an array of floating-point numbers.

    Raises:
        ConfigError: The values are not numbers.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError("is not an array of numbers", name, values) from error


def checked_vector(name: str, values: Any, size: int, robot: str) -> Array:
    """Return ``values`` as an array (size,) of finite numbers.

    Args:
        name: Name of the argument, for the message.
        values: The numbers.
        size: Number of values that ``robot`` needs.
        robot: Name of the robot, for the message.

    Raises:
        ConfigError: The values are not numbers, too few or too many, or not finite.
    """
    array = numbers(name, values)
    if array.shape != (size,):
        raise ConfigError(f"its shape {array.shape} must be ({size},) for {robot}", name)
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ConfigError("is not finite", f"{name}[{bad}]", array[bad])
    return array


def checked_state(robot: Robot, dynamics: Dynamics, q: Any, v: Any) -> tuple[Array, Array]:
    """Return the state (nq,), (nv,) as arrays.

    Raises:
        ConfigError: A size is wrong, a value is not finite, the quaternion is no rotation, a joint is beyond its limit,
            or a closed chain is open.
    """
    q = checked_vector("q", q, robot.model.nq, robot.name)
    v = checked_vector("v", v, robot.model.nv, robot.name)
    if robot.free_flyer and not np.linalg.norm(q[3:7]) > 0.5:
        raise ConfigError("is no rotation: a quaternion x y z w of length 1 is needed", "q[3:7]", q[3:7].tolist())
    stops = dynamics.stops
    angle = q[stops.idx_q]
    beyond = np.maximum(stops.lower - angle, angle - stops.upper)
    if len(beyond) and beyond.max() > BEYOND_STOP:
        worst = int(np.argmax(beyond))
        limits = f"[{stops.lower[worst]:.6g}, {stops.upper[worst]:.6g}]"
        raise ConfigError(
            f"is beyond the limits {limits}; start within them, or use hardware with joint_stops: false",
            f"joint {dynamics.stopped_joints[worst]!r}",
            angle[worst],
        )
    robot.check_closed(q)
    return q, v
