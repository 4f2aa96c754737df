"""Remove the rounding errors of planar closed chains, which would otherwise block them or leave them open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin

from bipedsim.config import together
from bipedsim.errors import ConfigError, some
from bipedsim.model.loops import WELD, Loop
from bipedsim.numerics import Array

LARGEST_TURN = np.deg2rad(0.1)
"""Largest angle between axes that count as parallel [rad]."""
LARGEST_SHIFT = 1e-3
"""Largest displacement of a frame of a loop [m]."""
EXACT = 1e-13
"""Deviation that needs no correction [m or rad]."""
MEETING = 1e-7
"""Distance between two frames, with all joints at 0, below which they coincide [m]."""
TOLD = 1e-9
"""Deviation from which a correction is reported [m or rad]."""


def straighten(model: pin.Model, loops: Sequence[Loop], source: str) -> tuple[tuple[Loop, ...], list[str]]:
    """Make the nearly planar loops of a model exactly planar.

    The hinges of a planar chain are parallel. A constraint along their common axis then has no effect. If the axes
    deviate by the last digits of a CAD export, the same constraint blocks the chain, or no posture fulfils it.
    Therefore, the axes of these hinges become parallel, and the frames of the loop coincide along them. Two loops
    between the same bodies are made consistent with each other.

    Args:
        model: The model; its ``jointPlacements`` change.
        loops: The loops.
        source: robot.yaml, for messages.

    Returns:
        The loops, and a note on the size of the corrections if they are larger than ``TOLD``.

    Raises:
        ConfigError: A correction would be larger than ``LARGEST_SHIFT`` or ``LARGEST_TURN``; the message lists all.
    """
    parallel: set[int] = set()
    turns, shifts = {"": 0.0}, {"": 0.0}
    result: list[Loop] = []
    faults: list[ConfigError] = []
    for loop in loops:
        cycle = sorted(set(model.supports[loop.joints[0]]) ^ set(model.supports[loop.joints[1]]))
        normal = _common_axis(model, cycle, parallel)
        if normal is None:
            result.append(loop)
            continue
        for joint in cycle:
            if joint not in parallel:
                turns[model.names[joint]] = _turn(model, joint, normal)
        parallel.update(cycle)
        before = next((other for other in result if other.joints == loop.joints and other.kind != WELD), None)
        flat, turn, shift = _flattened(model, loop, normal, before)
        turns[loop.name], shifts[loop.name] = turn, shift
        where = f"{source}: loops.{loop.name}"
        if shift > LARGEST_SHIFT:
            faults.append(ConfigError("m is the distance between its frames. Correct its placements", where, shift))
        if turn > LARGEST_TURN:
            faults.append(ConfigError("rad is the angle between its frames. Correct its placements", where, turn))
        result.append(flat)
    together(faults)
    largest_turn, largest_shift = max(turns.values()), max(shifts.values())
    if max(largest_turn, largest_shift) < TOLD:
        return tuple(result), []
    names = some([name for name in {**turns, **shifts} if max(turns.get(name, 0.0), shifts.get(name, 0.0)) >= TOLD])
    note = (
        f"{source}: loops: axes were turned by up to {largest_turn:.2g} rad and frames moved by up to "
        f"{largest_shift:.2g} m, so that planar chains close: {names}"
    )
    return tuple(result), [note]


def _axis(model: pin.Model, data: pin.Data, joint: int) -> Array | None:
    """Return the axis (3,) of a hinge in the world, for all joints at 0; None for another joint."""
    if model.joints[joint].nv != 1:
        return None
    pin.computeJointJacobians(model, data, pin.neutral(model))
    column = pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED)[:, model.joints[joint].idx_v]
    return np.array(column[3:]) if np.linalg.norm(column[3:]) > 0.5 else None


def _common_axis(model: pin.Model, cycle: Sequence[int], parallel: set[int]) -> Array | None:
    """Return the axis (3,) to which the hinges of a cycle are parallel, or None for a spatial chain."""
    data = model.createData()
    axes = {joint: axis for joint in cycle if (axis := _axis(model, data, joint)) is not None}
    if not cycle or len(axes) < len(cycle):
        return None
    normal = axes[next((joint for joint in cycle if joint in parallel), cycle[0])]
    across = max(float(np.linalg.norm(np.cross(axis, normal))) for axis in axes.values())
    return normal if across <= LARGEST_TURN else None


def _turn(model: pin.Model, joint: int, normal: Array) -> float:
    """Turn a joint so that its axis is parallel to ``normal``; return the angle [rad]."""
    data = model.createData()
    axis = _axis(model, data, joint)
    assert axis is not None
    target = normal if axis @ normal > 0.0 else -normal
    angle = float(np.linalg.norm(np.cross(axis, target)))
    if angle < EXACT:
        return 0.0
    parent = data.oMi[model.parents[joint]].rotation
    turn = parent.T @ pin.Quaternion.FromTwoVectors(axis, target).toRotationMatrix() @ parent
    model.jointPlacements[joint].rotation = turn @ model.jointPlacements[joint].rotation
    return angle


def _flattened(model: pin.Model, loop: Loop, normal: Array, before: Loop | None) -> tuple[Loop, float, float]:
    """Return a loop whose second frame is consistent with its planar chain, with the angle and distance it was moved.

    Args:
        model: The model, whose axes are parallel to ``normal`` (3,) in the world.
        loop: The loop.
        normal: Common axis of its hinges for all joints at 0. It is constant in every body of the chain.
        before: Another loop between the same bodies, or None.
    """
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    bodies = [data.oMi[joint] for joint in loop.joints]
    first, second = (body * placement for body, placement in zip(bodies, loop.placements, strict=True))
    rotation, turn = second.rotation, 0.0
    if loop.kind == WELD:
        ends = first.rotation @ rotation.T @ normal
        turn = float(np.linalg.norm(np.cross(ends, normal)))
        if turn >= EXACT:
            rotation = pin.Quaternion.FromTwoVectors(normal, ends).toRotationMatrix() @ rotation
    place = second.translation - normal * (normal @ (second.translation - first.translation))
    anchor = first.translation
    if np.linalg.norm(place - anchor) < MEETING:
        # A rigid triangle has no joint that could close this distance.
        place = anchor
    if before is not None:
        # The vectors between both loops have the same length in both bodies. It is zero for two points of one hinge.
        ends = [body.act(placement.translation) for body, placement in zip(bodies, before.placements, strict=True)]
        apart = [_in_plane(point - end, normal) for point, end in zip((anchor, place), ends, strict=True)]
        lengths = [float(np.linalg.norm(vector)) for vector in apart]
        if max(lengths) < LARGEST_SHIFT:
            anchor, place = anchor - apart[0], place - apart[1]
        elif abs(lengths[0] - lengths[1]) < LARGEST_SHIFT:
            place = place + apart[1] * (lengths[0] / lengths[1] - 1.0)
    shift = max(float(np.linalg.norm(place - second.translation)), float(np.linalg.norm(anchor - first.translation)))
    if shift < EXACT and turn < EXACT:
        return loop, 0.0, 0.0
    poses = pin.SE3(first.rotation, anchor), pin.SE3(rotation, place)
    placements = tuple(body.actInv(pose) for body, pose in zip(bodies, poses, strict=True))
    return replace(loop, placements=(placements[0], placements[1])), turn, shift


def _in_plane(vector: Array, normal: Array) -> Array:
    return vector - normal * (normal @ vector)
