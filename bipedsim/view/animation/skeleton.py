"""Represent the robot as lines between the joint frames of its kinematic tree, and to the corners of the soles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.model import SIDES, Robot, split_side
from bipedsim.numerics import Array, Integers

TRUNK = -1
"""Side of lines that belong to no leg and no arm."""
SHORT = 1e-3
"""Minimum length of a line [m]; shorter lines connect joints at the same position."""
TRUNK_WIDTH, LIMB_WIDTH, FOOT_WIDTH = 5.0, 3.0, 1.2
"""Widths of lines [pt]."""
APART = 0.01
"""Maximum distance [m] between the joint of one limb and the mirrored joint of the other; descriptions are rounded."""
BLADE = 2
"""Feet with at most this number of vertices are drawn like limbs, because they are the only visible part of a leg."""


@dataclass(frozen=True, eq=False)
class Skeleton:
    """P points fixed to the bodies of a robot, L lines between them, and the outlines of K soles.

    Attributes:
        joints: (P,) pinocchio joint of each point; the first points are the origins of the joints.
        local: (P, 3) points in the frame of their joint [m].
        lines: (L, 2) indices of the points at the ends of each line.
        sides: (L,) index of the foot whose colour the line has, or :data:`TRUNK`.
        widths: (L,) [pt].
        soles: Indices of the points at the vertices of each foot, in order.
    """

    joints: Integers
    local: Array
    lines: Integers
    sides: Integers
    widths: Array
    soles: tuple[Integers, ...]

    @classmethod
    def of(cls, robot: Robot) -> Skeleton:
        """Return the skeleton of ``robot``.

        The lines begin at the trunk, the first body with a mass. A line connects the frame of each joint with those of
        its children. Some bodies get an additional line from their joint through their CoM: ends of a chain without a
        sole, and a trunk with only legs. It ends where a rod with the same second moment in this direction would end.
        The lines of left and right limbs are mirror images, see :func:`_mirrored`.
        """
        model = robot.model
        trunk = next(j for j in range(1, model.njoints) if model.inertias[j].mass > 0.0)
        bodies = [j for j in range(trunk, model.njoints) if j == trunk or trunk in list(model.supports[j])]
        feet = [[k for k, sole in enumerate(robot.soles) if j in list(model.supports[sole.joint_id])] for j in bodies]
        children_of = {j: [child for child in bodies if model.parents[child] == j] for j in bodies}
        ends = {}
        for j in bodies:
            legs_only = j == trunk and all(feet[bodies.index(child)] for child in children_of[j])
            if not any(sole.joint_id == j for sole in robot.soles) and (legs_only or not children_of[j]):
                end = _far_end(model.inertias[j])
                if end is not None:
                    ends[j] = end
        ends = _mirrored(robot, trunk, ends)
        build = _Builder(bodies)
        for j, carried in zip(bodies, feet, strict=True):
            side_name = split_side(model.names[j])[0]
            side = SIDES.index(side_name) if side_name and j != trunk else TRUNK
            side = carried[0] if len(carried) == 1 and j != trunk else side
            width = TRUNK_WIDTH if side == TRUNK else LIMB_WIDTH
            for child in children_of[j]:
                build.line(build.origin(j), build.point(j, model.jointPlacements[child].translation), side, width)
            if j in ends:
                build.line(build.origin(j), build.point(j, ends[j]), side, width)
        soles = []
        for k, sole in enumerate(robot.soles):
            corners = [build.point(sole.joint_id, vertex) for vertex in sole.vertices_joint]
            width = LIMB_WIDTH if len(corners) <= BLADE else FOOT_WIDTH
            for corner in corners:
                build.line(build.origin(sole.joint_id), corner, k, width)
            soles.append(np.array(corners, dtype=np.int64))
        return build.skeleton(tuple(soles))

    def points(self, data: pin.Data) -> Array:
        """Return the points (P, 3) in the world [m], from the joint placements in ``data``."""
        rotation = np.array([data.oMi[int(j)].rotation for j in self.joints])
        translation = np.array([data.oMi[int(j)].translation for j in self.joints])
        return np.asarray(np.einsum("pij,pj->pi", rotation, self.local) + translation)


class _Builder:
    def __init__(self, bodies: list[int]) -> None:
        self._bodies = bodies
        self._joints = list(bodies)
        self._local = [np.zeros(3) for _ in bodies]
        self._lines: list[tuple[int, int, int, float]] = []

    def origin(self, joint: int) -> int:
        return self._bodies.index(joint)

    def point(self, joint: int, local: Array) -> int:
        self._joints.append(joint)
        self._local.append(np.asarray(local, dtype=np.float64))
        return len(self._joints) - 1

    def line(self, a: int, b: int, side: int, width: float) -> None:
        if np.linalg.norm(self._local[a] - self._local[b]) > SHORT:
            self._lines.append((a, b, side, width))

    def skeleton(self, soles: tuple[Integers, ...]) -> Skeleton:
        columns: Any = tuple(zip(*self._lines, strict=True)) or ((), (), (), ())
        return Skeleton(
            joints=np.array(self._joints, dtype=np.int64),
            local=np.array(self._local),
            lines=np.array(columns[:2], dtype=np.int64).T.reshape(-1, 2),
            sides=np.array(columns[2], dtype=np.int64),
            widths=np.array(columns[3], dtype=np.float64),
            soles=soles,
        )


def _far_end(body: pin.Inertia) -> Array | None:
    """Return the far end (3,) [m] of a body beyond its CoM, or None if joint and CoM coincide.

    A rod of half length a along u has the second moment m a^2 / 3 in this direction.
    """
    reach = float(np.linalg.norm(body.lever))
    if body.mass <= 0.0 or reach < 10.0 * SHORT:
        return None
    u = body.lever / reach
    second = 0.5 * np.trace(body.inertia) - u @ body.inertia @ u
    return np.asarray((reach + np.sqrt(3.0 * max(0.0, second) / body.mass)) * u)


def _mirrored(robot: Robot, trunk: int, ends: Mapping[int, Array]) -> dict[int, Array]:
    """Return ``ends``, each (3,) in the frame of its joint [m], with mirror images for left and right limbs.

    Two joints may be mirror images in the frame of the trunk of the standing robot. The ends of their bodies then
    become the mean of one end and the mirrored other end. A robot often has the same gripper, rotated by 180 degrees,
    as both hands. Its CoM is then ahead of one joint and behind the other.
    """
    model, result = robot.model, dict(ends)
    data = model.createData()
    pin.forwardKinematics(model, data, robot.q_nominal)
    named = {split_side(model.names[j]): j for j in ends}
    flip = np.array([1.0, -1.0, 1.0])
    for (side, rest), left in named.items():
        right = named.get((SIDES[1], rest))
        if side != SIDES[0] or right is None:
            continue
        left_placement, right_placement = (data.oMi[trunk].actInv(data.oMi[j]) for j in (left, right))
        if np.linalg.norm(left_placement.translation - flip * right_placement.translation) <= APART:
            end = 0.5 * (left_placement.act(ends[left]) + flip * right_placement.act(ends[right]))
            result[left], result[right] = left_placement.actInv(end), right_placement.actInv(flip * end)
    return result
