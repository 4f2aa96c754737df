"""Self-collision of the links that robot.yaml lists: pairs of capsules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.dynamics.bodies import PASSES
from bipedsim.dynamics.tree import Tree
from bipedsim.errors import ConfigError
from bipedsim.model import Robot, Shape
from bipedsim.numerics import Array, Flags, Integers, act, kernel, point_velocity, zeros_of

Point = tuple[float, float, float]
ROUND = ("sphere", "capsule", "cylinder")
"""Kinds of shapes that are capsules or contain one."""


class Pairs(NamedTuple):
    """Store P pairs of capsules.

    Attributes:
        joint: (P, 2) joint of each capsule. ends: (P, 2, 2, 3) end points of the axes in the frames of these joints
            [m]. radius: (P, 2) [m].
        shape: (P, 2) indices of the shapes.
        reach: Largest distance [m] at which two capsules count as near. near: (P,) whether the pair is near in this
            part of a step.
    """

    joint: Annotated[Integers, "P", 2]
    ends: Annotated[Array, "P", 2, 2, 3]
    radius: Annotated[Array, "P", 2]
    shape: Annotated[Integers, "P", 2]
    reach: float
    near: Annotated[Flags, "P"]

    @classmethod
    def of_robot(cls, robot: Robot, shapes: Sequence[Shape], reach: float) -> Pairs:
        """Make the pairs that robot.yaml lists under ``self_collision``; there are none without ``shapes``.

        Raises:
            ConfigError: A link has no shape that is a capsule.
        """
        shape_pairs: list[tuple[int, int]] = []
        for first, second in robot.self_collision if shapes else ():
            sides = []
            for link in (first, second):
                side = [i for i, s in enumerate(shapes) if s.name == link and s.kind in ROUND]
                if not side:
                    raise ConfigError(
                        "has no sphere, capsule or cylinder; give it one under `bodies`",
                        f"{robot.source}: self_collision: link",
                        link,
                    )
                sides.append(side)
            shape_pairs += [(i, j) for i in sides[0] for j in sides[1]]
        pairs: Pairs = zeros_of(cls, {"P": len(shape_pairs)}, reach=reach)
        for p, chosen in enumerate(shape_pairs):
            for k, i in enumerate(chosen):
                shape = shapes[i]
                pairs.joint[p, k], pairs.shape[p, k] = shape.joint_id, i
                pairs.ends[p, k, 0], pairs.ends[p, k, 1] = shape.points[0], shape.points[-1]
                pairs.radius[p, k] = shape.radius + shape.ring
                if shape.ring > 0.0:
                    # A cylinder is replaced by the largest capsule inside it, if it is longer than wide.
                    middle = 0.5 * (shape.points[0] + shape.points[1])
                    half = 0.5 * float(np.linalg.norm(shape.points[0] - shape.points[1]))
                    share = max(1.0 - shape.ring / half, 0.0)
                    pairs.ends[p, k] = middle + share * (shape.points - middle)
        return pairs


@kernel
def closest(pairs: Pairs, t: Tree, p: int) -> tuple[Point, Point, float]:
    """Return the closest points on the two axes of pair ``p``, in the world, and the gap of the capsules [m].

    The method is that of Ericson, Real-Time Collision Detection (2005), section 5.1.9.
    """
    one, two = t.poses[pairs.joint[p, 0]], t.poses[pairs.joint[p, 1]]
    a, b = act(one, pairs.ends[p, 0, 0]), act(one, pairs.ends[p, 0, 1])
    c, d = act(two, pairs.ends[p, 1, 0]), act(two, pairs.ends[p, 1, 1])
    u = (b[0] - a[0], b[1] - a[1], b[2] - a[2])
    v = (d[0] - c[0], d[1] - c[1], d[2] - c[2])
    w = (a[0] - c[0], a[1] - c[1], a[2] - c[2])
    uu = u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    vv = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    uv = u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
    uw = u[0] * w[0] + u[1] * w[1] + u[2] * w[2]
    vw = v[0] * w[0] + v[1] * w[1] + v[2] * w[2]
    wide = uu * vv - uv * uv
    x = min(max((uv * vw - uw * vv) / wide, 0.0), 1.0) if wide > 1e-12 * uu * vv else 0.0
    y = (uv * x + vw) / vv if vv > 0.0 else 0.0
    if y < 0.0 or y > 1.0:
        y = min(max(y, 0.0), 1.0)
        x = min(max((uv * y - uw) / uu, 0.0), 1.0) if uu > 0.0 else 0.0
    elif uu > 0.0 and not wide > 1e-12 * uu * vv:
        x = min(max((uv * y - uw) / uu, 0.0), 1.0)
    on_a = (a[0] + x * u[0], a[1] + x * u[1], a[2] + x * u[2])
    on_b = (c[0] + y * v[0], c[1] + y * v[1], c[2] + y * v[2])
    e = (on_a[0] - on_b[0], on_a[1] - on_b[1], on_a[2] - on_b[2])
    return on_a, on_b, np.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2]) - pairs.radius[p, 0] - pairs.radius[p, 1]


@kernel
def any_pair_near(pairs: Pairs, t: Tree) -> bool:
    """Mark the pairs that are near each other in ``pairs.near``; return whether there is any."""
    near = False
    for p in range(pairs.near.shape[0]):
        pairs.near[p] = closest(pairs, t, p)[2] < pairs.reach
        near = near or pairs.near[p]
    return near


@kernel
def approach(pairs: Pairs, t: Tree, leaf: Integers, p: int, v: Array, x: Array) -> tuple[float, float]:
    """Return the gap of pair ``p`` [m] and the speed [m/s] at which it grows under the velocity v + x (nv,)."""
    on_a, on_b, gap = closest(pairs, t, p)
    n = (on_a[0] - on_b[0], on_a[1] - on_b[1], on_a[2] - on_b[2])
    length = max(np.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]), 1e-12)
    speed = 0.0
    for side in range(2):
        sign, point = (1.0, on_a) if side == 0 else (-1.0, on_b)
        last = leaf[pairs.joint[p, side]]
        for k in range(t.depth[last]):
            i = t.ancestors[last, k]
            u = point_velocity(t.J_rows[i], point)
            speed += sign * (n[0] * u[0] + n[1] * u[1] + n[2] * u[2]) / length * (v[i] + x[i])
    return gap, speed


@kernel
def any_pair_touches(pairs: Pairs, t: Tree, leaf: Integers, v: Array, span: float) -> bool:
    """Return whether a near pair would overlap after ``span`` [s] with the velocity v + t.x of the step."""
    for p in range(pairs.near.shape[0]):
        if pairs.near[p]:
            gap, speed = approach(pairs, t, leaf, p, v, t.x)
            if gap + span * speed < -PASSES:
                return True
    return False
