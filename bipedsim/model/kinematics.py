"""Postures that stand, and postures whose feet and centre of mass are where they are wanted."""

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
"""Largest steps [m], [rad] of the way from one posture to the next one, whose solution it begins with."""


def foot_poses(robot: Robot, q: ArrayLike) -> dict[str, pin.SE3]:
    """Return where each sole frame is in the world, by name of the foot, in the configuration ``q`` (nq,)."""
    q = _checked(robot, q)
    placements = sole_placements(robot.model, robot.model.createData(), robot.soles, q)
    return {sole.name: pose for sole, pose in zip(robot.soles, placements, strict=True)}


def com_position(robot: Robot, q: ArrayLike) -> Array:
    """Return the centre of mass (3,) in the world [m] in the configuration ``q`` (nq,)."""
    return np.array(pin.centerOfMass(robot.model, robot.model.createData(), _checked(robot, q)))


def standing_posture(robot: Robot, height: float | None = None, shift: ArrayLike = (0.0, 0.0)) -> Array:
    """Return a posture (nq,) with both feet where the robot has them as it stands, on z = 0.

    Args:
        robot: The robot.
        height: Of the centre of mass over the ground [m]; that of ``robot.q_nominal`` by default.
        shift: (2,) of the centre of mass from there, ahead and to the left [m].

    Returns:
        The configuration, joints within their limits, nearest to the nominal one.

    Raises:
        ConfigError: The robot cannot stand so; the message says how far it comes, and which joints are at their limits.
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
    """Return the posture (nq,) nearest to ``start`` with soles and centre of mass where they are wanted.

    All joints and the base may move: the squares of joint angles and of the tilt of the base are least, under the
    conditions; Newton's method on the way from ``start``, in steps of 2 cm and 0.1 rad at most. A blade may roll about
    its line, and a point turn as it likes.

    Args:
        robot: The robot, with a free base and feet.
        feet: Name of a foot to the pose of its sole frame in the world: a pinocchio SE3, (7,) position [m] and
            quaternion x y z w, or (3,) the position, turned as in ``start``. Others stay where they are.
        com: (3,) centre of mass in the world [m]; by default it keeps its place to the mean of the feet.
        start: (nq,) configuration to begin with; ``robot.q_nominal`` by default.

    Raises:
        UnknownNameError: There is no such foot.
        ConfigError: The robot has no free base or no feet, something has the wrong size or is not finite, or it cannot
            reach that far; the message says how far it comes, and which joints are at their limits.
    """
    if not robot.free_flyer or not robot.soles:
        raise ConfigError(f"inverse kinematics: {robot.name} needs a free base and feet")
    q = robot.q_nominal.copy() if start is None else _checked(robot, start)
    begin = foot_poses(robot, q)
    end = dict(begin)
    for name, wanted in (feet or {}).items():
        if name not in begin:
            raise UnknownNameError("foot", name, list(begin), robot.name)
        end[name] = _pose(wanted, begin[name], f"feet[{name!r}]")
    from_com = com_position(robot, q)
    if com is None:
        moved = np.mean([end[name].translation - begin[name].translation for name in begin], axis=0)
        to_com = from_com + moved
    else:
        to_com = np.asarray(com, dtype=np.float64)
        if to_com.shape != (3,) or not np.isfinite(to_com).all():
            raise ConfigError(f"com = {com!r} must be three finite numbers [m]")
    twists = {name: pin.log6(begin[name].actInv(end[name])) for name in begin}
    longest = max(
        float(np.linalg.norm(to_com - from_com)) / STEP,
        *(float(np.linalg.norm(twist.linear)) / STEP for twist in twists.values()),
        *(float(np.linalg.norm(twist.angular)) / TURN for twist in twists.values()),
    )
    shares = np.linspace(0.0, 1.0, max(2, math.ceil(longest) + 1))[1:]
    path = [from_com + share * (to_com - from_com) for share in shares]
    # To the last place itself: rounding in the twist is not what was asked for.
    placements = [
        [end[name] if share == 1.0 else begin[name] * pin.exp6(share * twists[name]) for name in begin]
        for share in shares
    ]
    found = reach(robot.model, robot.soles, q, np.array(path), placements, loops=robot.loops)
    if len(found) < len(shares):
        raise ConfigError(_too_far(robot, [q, *found], shares, len(found)))
    return found[-1]


def at_posture(robot: Robot, q: ArrayLike) -> Robot:
    """Return the robot as one that stands in the configuration ``q`` (nq,): its ``q_nominal`` and ``posture``."""
    q = _checked(robot, q)
    return replace(robot, q_nominal=q, posture=q[robot.idx_q])


def _checked(robot: Robot, q: ArrayLike) -> Array:
    values = np.array(q, dtype=np.float64)
    if values.shape != (robot.model.nq,) or not np.isfinite(values).all():
        raise ConfigError(f"q has shape {values.shape}; {robot.name} needs ({robot.model.nq},) finite numbers")
    return values


def _pose(wanted: pin.SE3 | ArrayLike, begin: pin.SE3, where: str) -> pin.SE3:
    """Return a pose as it was given."""
    if isinstance(wanted, pin.SE3):
        return wanted
    values = np.asarray(wanted, dtype=np.float64)
    if values.shape not in ((3,), (7,)) or not np.isfinite(values).all():
        raise ConfigError(f"{where} = {wanted!r} must be an SE3, or 3 or 7 finite numbers")
    if values.shape == (3,):
        return pin.SE3(begin.rotation, values)
    length = np.linalg.norm(values[3:])
    if not length > 0.5:
        raise ConfigError(f"{where}: {values[3:].tolist()} is no quaternion x y z w")
    return pin.XYZQUATToSE3(np.concatenate([values[:3], values[3:] / length]))


def _too_far(robot: Robot, found: list[Array], shares: Array, n: int) -> str:
    """Return what to say of a way of which only the first ``n`` steps were made."""
    q, share = found[-1], float(shares[n - 1]) if n else 0.0
    angles = q[robot.idx_q]
    room = np.minimum(angles - robot.position_lower, robot.position_upper - angles)
    at_limits = [name for name, left in zip(robot.joint_names, room, strict=True) if left < TURN]
    near = f"; near their limits there: {', '.join(at_limits)}" if at_limits else ""
    com = ", ".join(f"{x:.3f}" for x in com_position(robot, q))
    return f"{robot.name} cannot reach that posture: it comes {share:.0%} of the way, to a CoM at ({com}) m{near}"
