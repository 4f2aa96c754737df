"""Compute standing postures, and postures with desired positions of feet and centre of mass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model.posture import reach, sole_placements
from bipedsim.model.robot import Robot
from bipedsim.numerics import Array

STEP, TURN = 0.02, 0.1
"""Largest steps [m], [rad] along the path between two postures; each solution starts from the previous one."""


def foot_poses(robot: Robot, q: ArrayLike) -> dict[str, pin.SE3]:
    """Return the pose of each sole frame in the world, by name of the foot, for ``q`` (nq,)."""
    q = _checked_configuration(robot, q)
    placements = sole_placements(robot.model, robot.model.createData(), robot.soles, q)
    return {sole.name: pose for sole, pose in zip(robot.soles, placements, strict=True)}


def com_position(robot: Robot, q: ArrayLike) -> Array:
    """Return the centre of mass (3,) in the world [m] for ``q`` (nq,)."""
    return np.array(pin.centerOfMass(robot.model, robot.model.createData(), _checked_configuration(robot, q)))


def standing_posture(robot: Robot, height: float | None = None, shift: ArrayLike = (0.0, 0.0)) -> Array:
    """Return a posture (nq,) with both feet at their nominal positions on z = 0.

    Args:
        robot: The robot.
        height: Height of the centre of mass above the ground [m]; by default that of ``robot.q_nominal``.
        shift: (2,) shift of the centre of mass from its nominal position, forward and to the left [m].

    Returns:
        The configuration closest to the nominal one, with joints within their limits.

    Raises:
        ConfigError: The posture is not reachable; the message says how far the robot gets, and which joints are near
            their limits.
    """
    com = com_position(robot, robot.q_nominal)
    com[:2] += np.asarray(shift, dtype=np.float64)
    if height is not None:
        com[2] = height
    return inverse_kinematics(robot, com=com)


def inverse_kinematics(
    robot: Robot,
    feet: Mapping[str, pin.SE3 | ArrayLike] | None = None,
    com: ArrayLike | None = None,
    start: ArrayLike | None = None,
) -> Array:
    """Return the posture (nq,) nearest to ``start`` with soles and centre of mass at their targets.

    All joints and the base may move. The posture minimises the sum of squares of joint angles and of the tilt of the
    base. Newton's method follows a path from ``start`` in steps of at most 2 cm and 0.1 rad. A line foot may roll about
    its line, and a point foot may have any orientation.

    Args:
        robot: The robot, with a free base and feet.
        feet: Name of a foot to the pose of its sole frame in the world: a pinocchio SE3, (7,) position [m] and
            quaternion x y z w, or (3,) position with the orientation of ``start``. Other feet do not move.
        com: (3,) centre of mass in the world [m]; by default its offset from the mean of the feet is constant.
        start: (nq,) initial configuration; ``robot.q_nominal`` by default.

    Raises:
        UnknownNameError: The foot does not exist.
        ConfigError: The robot has no free base or no feet, an input has the wrong size or is not finite, or the posture
            is not reachable. The message says how far the robot gets, and which joints are near their limits.
    """
    if not robot.free_flyer or not robot.soles:
        raise ConfigError("inverse kinematics needs a free base and feet", robot.name)
    q = robot.q_nominal.copy() if start is None else _checked_configuration(robot, start)
    begin = foot_poses(robot, q)
    end = dict(begin)
    for name, target in (feet or {}).items():
        if name not in begin:
            raise UnknownNameError("foot", name, list(begin), robot.name)
        end[name] = _pose(target, begin[name], f"feet[{name!r}]")
    from_com = com_position(robot, q)
    if com is None:
        feet_shift = np.mean([end[name].translation - begin[name].translation for name in begin], axis=0)
        to_com = from_com + feet_shift
    else:
        to_com = np.asarray(com, dtype=np.float64)
        if to_com.shape != (3,) or not np.isfinite(to_com).all():
            raise ConfigError("must be three finite numbers [m]", "com", com)
    twists = {name: pin.log6(begin[name].actInv(end[name])) for name in begin}
    longest = max(
        float(np.linalg.norm(to_com - from_com)) / STEP,
        *(float(np.linalg.norm(twist.linear)) / STEP for twist in twists.values()),
        *(float(np.linalg.norm(twist.angular)) / TURN for twist in twists.values()),
    )
    shares = np.linspace(0.0, 1.0, max(2, math.ceil(longest) + 1))[1:]
    path = [from_com + share * (to_com - from_com) for share in shares]
    # The last pose is exact, because the twist has rounding errors.
    placements = [
        [end[name] if share == 1.0 else begin[name] * pin.exp6(share * twists[name]) for name in begin]
        for share in shares
    ]
    postures = reach(robot.model, robot.soles, q, np.array(path), placements, loops=robot.loops)
    if len(postures) < len(shares):
        raise ConfigError(_unreachable_message(robot, [q, *postures], shares, len(postures)), f"{robot.name}: posture")
    return postures[-1]


def at_posture(robot: Robot, q: ArrayLike) -> Robot:
    """Return a copy of the robot whose standing configuration (``q_nominal``, ``posture``) is ``q`` (nq,)."""
    q = _checked_configuration(robot, q)
    return replace(robot, q_nominal=q, posture=q[robot.idx_q])


def _checked_configuration(robot: Robot, q: ArrayLike) -> Array:
    values = np.array(q, dtype=np.float64)
    if values.shape != (robot.model.nq,) or not np.isfinite(values).all():
        raise ConfigError(
            f"its shape {values.shape} must be ({robot.model.nq},), of finite numbers", f"{robot.name}: q"
        )
    return values


def _pose(target: pin.SE3 | ArrayLike, begin: pin.SE3, where: str) -> pin.SE3:
    """Convert a target to a pose; a position keeps the orientation of ``begin``."""
    if isinstance(target, pin.SE3):
        return target
    values = np.asarray(target, dtype=np.float64)
    if values.shape not in ((3,), (7,)) or not np.isfinite(values).all():
        raise ConfigError("must be an SE3, or 3 or 7 finite numbers", where, target)
    if values.shape == (3,):
        return pin.SE3(begin.rotation, values)
    length = np.linalg.norm(values[3:])
    if not length > 0.5:
        raise ConfigError("is no quaternion x y z w", f"{where}[3:]", values[3:])
    return pin.XYZQUATToSE3(np.concatenate([values[:3], values[3:] / length]))


def _unreachable_message(robot: Robot, postures: list[Array], shares: Array, n: int) -> str:
    """Return the error message for a path of which only the first ``n`` steps were reachable."""
    q, share = postures[-1], float(shares[n - 1]) if n else 0.0
    angles = q[robot.idx_q]
    margin = np.minimum(angles - robot.position_lower, robot.position_upper - angles)
    at_limits = [name for name, distance in zip(robot.joint_names, margin, strict=True) if distance < TURN]
    near = f"; near their limits there: {', '.join(at_limits)}" if at_limits else ""
    com = ", ".join(f"{x:.3f}" for x in com_position(robot, q))
    return f"cannot be reached; the robot gets {share:.0%} of the way, to a CoM at ({com}) m{near}"
