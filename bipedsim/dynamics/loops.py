"""Closed chains: rows that are always there, eliminated before stops and contact act (:mod:`.rows`).

A loop holds a frame of one body to a frame of another one. Its error is where the second frame is as the first one sees
it, e = R1^T (p2 - p1), and of a weld its turn as well; its rows are the velocities of both bodies at one and the same
point, p2, along the axes of the first frame. So joints that carry both bodies have no part in it, and what holds a loop
together is internal to the robot, exactly.

Velocities of a semi-implicit step are those of half a step ago. A way that stays on the curve on which loops are
closed, as positions go with the velocity after the step, has e(q (+) h v+) = 0: the velocity is tangent in the middle
of the way, which is that of SHAKE (Ryckaert, Ciccotti and Berendsen, "Numerical integration of the cartesian equations
of motion of a system with constraints", J. Comput. Phys. 23, 1977), a leapfrog. To second order it is
G v+ = -h/2 k, with k = G' v, the acceleration of the loop at constant joint velocities. What is left, of third order in
h, is taken from the configuration alone, after the step, by Newton's method in the metric of the kinetic energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.dynamics.projection import Projection
from bipedsim.dynamics.protocol import Part
from bipedsim.dynamics.rows import orthonormalise
from bipedsim.dynamics.tree import Tree, keep_whole, reach_rows, take_off
from bipedsim.dynamics.views import live_poses
from bipedsim.model import Loop
from bipedsim.numerics import (
    Array,
    Integers,
    act,
    assign,
    box,
    entry,
    kernel,
    mul_t,
    point_acceleration,
    point_velocity,
    turn_axes,
    zeros_of,
)

SHUT = 1e-13
"""Largest error [m or rad] of a loop that is left after a step."""
ITERATIONS = 10
NOISE = 1e-13
"""A velocity that is such a share of the terms that it is made of is none."""


class Loops(NamedTuple):
    """The loops of a robot: L loops of M rows in all, over nv velocities.

    Attributes:
        first, second: (L,) joints that carry the two frames, 0 for the world.
        first_R, first_p, second_R, second_p: (L, 3, 3), (L, 3) the frames in them.
        size: (L,) rows of each, 3 or 6. The turn of a weld comes first: where bodies turn about the point that is held,
            its place says nothing, but for rounding.
        first_chain, second_chain: (L, D) velocities that move one of the bodies and not the other.
        first_length, second_length: (L,) how many these are.
        rows: (M, nv) g of the last part of a step, which change the error by g v in time.
        error: (M,) of the loops where it began [m, rad]. bias: (M,) G' v [m/s^2, rad/s^2].
        impulse: (M,) of the loops on their second bodies in it, along the axes of the first frame [N.s, N.m.s].
        ahead: (1,) time from where the part began to the moment at which the velocity after it is tangent [s].
        axes, other: (3, 3) work.
        change: (nv,) of the configuration that closes the loops.
    """

    first: Integers
    second: Integers
    first_R: Array  # noqa: N815 -- R is the rotation
    first_p: Array
    second_R: Array  # noqa: N815
    second_p: Array
    size: Integers
    first_chain: Annotated[Integers, "L", "D"]
    second_chain: Annotated[Integers, "L", "D"]
    first_length: Annotated[Integers, "L"]
    second_length: Annotated[Integers, "L"]
    rows: Annotated[Array, "M", "v"]
    error: Annotated[Array, "M"]
    bias: Annotated[Array, "M"]
    impulse: Annotated[Array, "M"]
    ahead: Annotated[Array, 1]
    axes: Annotated[Array, 3, 3]
    other: Annotated[Array, 3, 3]
    change: Annotated[Array, "v"]

    @classmethod
    def of_robot(cls, loops: Sequence[Loop], model: pin.Model) -> Loops:
        """Return the loops of a robot with this model."""
        chains = [[_moving(model, joint) for joint in loop.joints] for loop in loops]
        found = zeros_of(
            cls,
            {"L": len(loops), "M": sum(loop.size for loop in loops), "D": model.nv, "v": model.nv},
            first=np.array([loop.joints[0] for loop in loops], dtype=np.int64),
            second=np.array([loop.joints[1] for loop in loops], dtype=np.int64),
            first_R=np.array([loop.placements[0].rotation for loop in loops]).reshape(-1, 3, 3),
            first_p=np.array([loop.placements[0].translation for loop in loops]).reshape(-1, 3),
            second_R=np.array([loop.placements[1].rotation for loop in loops]).reshape(-1, 3, 3),
            second_p=np.array([loop.placements[1].translation for loop in loops]).reshape(-1, 3),
            size=np.array([loop.size for loop in loops], dtype=np.int64),
        )
        for k, (one, two) in enumerate(chains):
            for chain, length, mine, other in (
                (found.first_chain, found.first_length, one, two),
                (found.second_chain, found.second_length, two, one),
            ):
                own = [i for i in mine if i not in other]
                chain[k, : len(own)] = own
                length[k] = len(own)
        return found


def _moving(model: pin.Model, joint: int) -> list[int]:
    """Return the velocities (n,) that move a joint of the model, from the root on."""
    return [i for j in model.supports[joint] if j for i in range(model.idx_vs[j], model.idx_vs[j] + model.nvs[j])]


@kernel
def _find_errors(o: Loops, poses: Array) -> None:
    """Fill the errors of all loops, of bodies at ``poses`` (joints, 12)."""
    n = 0
    for k in range(o.size.shape[0]):
        first, second = poses[o.first[k]], poses[o.second[k]]
        place, other = act(first, o.first_p[k]), act(second, o.second_p[k])
        turn_axes(first, o.first_R[k], o.axes)
        if o.size[k] == 6:
            turn_axes(second, o.second_R[k], o.other)
            for a in range(3):
                # The turn of small errors: half of the difference between rotation and transpose.
                b, c = (a + 1) % 3, (a + 2) % 3
                total = 0.0
                for i in range(3):
                    total += o.axes[i, c] * o.other[i, b] - o.axes[i, b] * o.other[i, c]
                o.error[n + a] = 0.5 * total
            n += 3
        apart = mul_t(o.axes, (other[0] - place[0], other[1] - place[1], other[2] - place[2]))
        for a in range(3):
            o.error[n + a] = apart[a]
        n += 3


@kernel
def _fill_rows(o: Loops, k: int, n: int, chain: Array, length: int, sign: float, at: Array, J_rows: Array) -> None:
    """Add the motion of one of the bodies of loop ``k`` to its rows, from ``n`` on: at the point ``at`` (3,)."""
    for d in range(length):
        i, m = chain[d], n
        column = J_rows[i]
        if o.size[k] == 6:
            w = mul_t(o.axes, column[3:])
            for a in range(3):
                o.rows[m + a, i] = sign * w[a]
            m += 3
        terms = 0.0
        for a in range(3):
            terms += abs(column[a]) + abs(column[3 + a]) * (abs(at[0]) + abs(at[1]) + abs(at[2]))
        u = mul_t(o.axes, point_velocity(column, at))
        for a in range(3):
            o.rows[m + a, i] = sign * u[a] if abs(u[a]) > NOISE * terms else 0.0


@kernel
def _find_bias(o: Loops, k: int, n: int, t: Tree) -> None:
    """Fill how loop ``k``, whose rows begin at ``n``, is accelerated at constant joint velocities."""
    twist, rate = t.twists[o.first[k]], t.accelerations[o.first[k]]
    twist2, rate2 = t.twists[o.second[k]], t.accelerations[o.second[k]]
    if o.size[k] == 6:
        assign(o.bias[n:], mul_t(o.axes, (rate2[3] - rate[3], rate2[4] - rate[4], rate2[5] - rate[5])))
        n += 3
    place, other = act(t.poses[o.first[k]], o.first_p[k]), act(t.poses[o.second[k]], o.second_p[k])
    c = t.origin
    a = point_acceleration(twist, rate, (place[0] - c[0], place[1] - c[1], place[2] - c[2]))
    b = point_acceleration(twist2, rate2, (other[0] - c[0], other[1] - c[1], other[2] - c[2]))
    assign(o.bias[n:], mul_t(o.axes, (b[0] - a[0], b[1] - a[1], b[2] - a[2])))


@kernel
def hold_loops(o: Loops, t: Tree, p: Projection, v: Array, part: int, aloft: bool) -> None:
    """Eliminate the loops, as the first rows of ``t``, in this part of a step; after its projection.

    Args:
        o, t, p: See :class:`Loops`, :class:`Tree` and :class:`Projection`.
        v: (nv,) where the part begins.
        part: Of the step.
        aloft: Whether the robot was in flight in the step before, and so probably is in this one.
    """
    _find_errors(o, t.poses)
    # In an impact the velocity is that of its moment; in the rest after it, of forces within the step and in flight, it
    # is that of where the part ends, and not of half a step before.
    at_end = part in (Part.WITHIN, Part.REST) or aloft
    fill_loops(o, t, v, 0.0 if part == Part.IMPACT else t.h if at_end else 0.5 * t.h)
    keep_whole(t, p)
    take_off(t, p, 0)


@kernel
def fill_loops(o: Loops, t: Tree, v: Array, ahead: float) -> None:
    """Make the loops the first rows of ``t``, orthonormal ones; after :func:`bipedsim.dynamics.tree.factor`.

    Args:
        o, t: See :class:`Loops` and :class:`Tree`.
        v: (nv,) before the step.
        ahead: See :class:`Loops`.
    """
    r, n = t.rows, 0
    o.ahead[0] = ahead
    for k in range(o.size.shape[0]):
        turn_axes(t.poses[o.first[k]], o.first_R[k], o.axes)
        at = act(t.poses[o.second[k]], o.second_p[k])
        _fill_rows(o, k, n, o.first_chain[k], o.first_length[k], -1.0, at, t.J_rows)
        _fill_rows(o, k, n, o.second_chain[k], o.second_length[k], 1.0, at, t.J_rows)
        if ahead > 0.0:
            _find_bias(o, k, n, t)
        n += o.size[k]
    for m in range(n):
        for i in range(v.shape[0]):
            r.Q[m, i] = o.rows[m, i]
        r.goal[m] = -ahead * o.bias[m]
        r.goal_late[m] = -0.5 * ahead * o.bias[m]
    r.used[0] = n
    reach_rows(t, v, 0)
    n = 0
    for k in range(o.size.shape[0]):
        largest = 0.0
        for m in range(n, n + o.size[k]):
            largest = max(largest, r.size[m])
        for m in range(n, n + o.size[k]):
            r.size[m] = largest
        n += o.size[k]
    orthonormalise(r, 0)


@kernel
def read_loops(o: Loops, t: Tree) -> None:
    """Take in the impulses of the loops from the rows."""
    for m in range(o.impulse.shape[0]):
        o.impulse[m] = t.rows.impulse[m]


@kernel
def meet(o: Loops, t: Tree, wanted: Array, scale: float) -> None:
    """Fill ``change`` with the smallest x that has G x = ``scale`` times ``wanted`` (M,), and leaves stops that carry.

    It is the smallest in the metric of the kinetic energy. Rows are those of the last part of a step.
    """
    r, x = t.rows, o.change
    for i in range(x.shape[0]):
        x[i] = 0.0
    for n in range(r.used[0]):
        if r.R[n, n] == 0.0:
            r.shift[n] = 0.0
            continue
        lacks = scale * wanted[n] if n < wanted.shape[0] else 0.0
        for m in range(n):
            lacks -= r.R[m, n] * r.shift[m]
        r.shift[n] = lacks / r.R[n, n]
        for i in range(x.shape[0]):
            x[i] += r.Q[n, i] * r.shift[n]
    for i in range(x.shape[0]):
        total = x[i]
        for d in range(t.depth[i] - 1):
            total -= t.L[i, d] * x[t.ancestors[i, d]]
        x[i] = total * t.inverse[i]


@entry
def _shut(loops: Any, tree: Any, poses: Array) -> float:
    """Fill ``change``, which closes the loops at ``poses`` (joints, 12); return the largest error [m or rad].

    It is the least one in the metric of the kinetic energy where the last part of a step began, and leaves joints that
    stand at their stops.
    """
    o, t = loops.arrays, tree.arrays
    _find_errors(o, poses)
    largest = 0.0
    for m in range(o.error.shape[0]):
        largest = max(largest, abs(o.error[m]))
    if not largest > SHUT:
        return largest
    meet(o, t, o.error, -1.0)
    return largest


class Closing:
    """Closes the loops of a robot after its steps.

    Args:
        model: Of the robot.
        loops, tree: Of its dynamics.

    Attributes:
        failed: Whether the last call left a loop open.
    """

    def __init__(self, model: pin.Model, loops: Loops, tree: Tree) -> None:
        self._model, self._loops = model, loops
        self.failed = False
        self._boxes = box(loops), box(tree)
        self._data = model.createData()
        self._poses = live_poses(self._data, model.njoints)

    def closed(self, q: Array) -> Array:
        """Return ``q`` (nq,), which the last part of a step leads to, with the loops closed.

        A part has left less than the third power of the step; Newton's method with the rows of its beginning needs one
        or two iterations.
        """
        self.failed = True
        for _ in range(ITERATIONS):
            pin.forwardKinematics(self._model, self._data, q)
            if not _shut(*self._boxes, self._poses) > SHUT:
                self.failed = False
                break
            q = pin.integrate(self._model, q, self._loops.change)
        return q
