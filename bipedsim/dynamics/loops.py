"""Closed kinematic chains: permanent constraints, eliminated before joint limits and contact (:mod:`.rows`).

A loop attaches a frame of one body to a frame of another body. Its error is the position of the second frame relative
to the first, e = R1^T (p2 - p1); a weld also has a rotation error. Its rows are the relative velocity of both bodies at
the same point, p2, along the axes of the first frame. Joints that carry both bodies therefore do not appear in the
rows, and the forces of a loop are exactly internal to the robot.

The velocities of a semi-implicit step have a lag of half a step. Positions follow the velocity after the step, so the
loops stay closed if e(q (+) h v+) = 0. The velocity is then tangent to the constraint at the midpoint of the
displacement. This is SHAKE (Ryckaert, Ciccotti and Berendsen, "Numerical integration of the cartesian equations of
motion of a system with constraints", J. Comput. Phys. 23, 1977), a leapfrog method. To second order the condition is
G v+ = -h/2 k, with k = G' v, the acceleration of the loop at constant joint velocities. The remaining error is of third
order in h. It is removed from the configuration alone, after the step, by Newton's method in the metric of the kinetic
energy.
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
"""Largest error [m or rad] of a loop after a step."""
ITERATIONS = 10
NOISE = 1e-13
"""A velocity that is at most this fraction of its terms counts as zero."""


class Loops(NamedTuple):
    """Store the closed chains of a robot: L loops with M rows in total, over nv velocities.

    Attributes:
        first, second: (L,) joints that carry the two frames, 0 for the world.
        first_R, first_p, second_R, second_p: (L, 3, 3), (L, 3) poses of the frames in these joints.
        size: (L,) rows of each, 3 or 6. The rotation of a weld comes first: if the bodies rotate about the attached
            point, its position rows are zero except for rounding.
        first_chain, second_chain: (L, D) velocities that move one of the bodies and not the other.
        first_length, second_length: (L,) number of these velocities.
        rows: (M, nv) rows g of the last part of a step; g v is the rate of the error.
        error: (M,) of the loops at the beginning of this part [m, rad]. bias: (M,) G' v [m/s^2, rad/s^2].
        impulse: (M,) of the loops on their second bodies in it, along the axes of the first frame [N.s, N.m.s].
        ahead: (1,) time from the beginning of the part until the velocity after it is tangent to the constraint [s].
        axes, other: (3, 3) work arrays.
        change: (nv,) change of the configuration that closes the loops.
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
        """Make the loops of a robot with this model."""
        chains = [[_moving(model, joint) for joint in loop.joints] for loop in loops]
        arrays = zeros_of(
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
                (arrays.first_chain, arrays.first_length, one, two),
                (arrays.second_chain, arrays.second_length, two, one),
            ):
                own = [i for i in mine if i not in other]
                chain[k, : len(own)] = own
                length[k] = len(own)
        return arrays


def _moving(model: pin.Model, joint: int) -> list[int]:
    """Return the indices of the velocities that move a joint of the model, from the root on."""
    return [i for j in model.supports[joint] if j for i in range(model.idx_vs[j], model.idx_vs[j] + model.nvs[j])]


@kernel
def _find_errors(o: Loops, poses: Array) -> None:
    """Fill the errors of all loops for bodies at ``poses`` (joints, 12)."""
    n = 0
    for k in range(o.size.shape[0]):
        first, second = poses[o.first[k]], poses[o.second[k]]
        place, other = act(first, o.first_p[k]), act(second, o.second_p[k])
        turn_axes(first, o.first_R[k], o.axes)
        if o.size[k] == 6:
            turn_axes(second, o.second_R[k], o.other)
            for a in range(3):
                # For small errors, the rotation vector is half the difference between the matrix and its transpose.
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
    """Add the motion of one body of loop ``k`` at the point ``at`` (3,) to its rows, which begin at ``n``."""
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
    """Fill the acceleration of loop ``k``, whose rows begin at ``n``, at constant joint velocities."""
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
    """Eliminate the loops, as the first rows of ``t``, from this part of a step; call after its projection.

    Args:
        o, t, p: See :class:`Loops`, :class:`Tree` and :class:`Projection`.
        v: (nv,) at the beginning of the part.
        part: Part of the step.
        aloft: Whether the previous step was in flight, so that this one probably is as well.
    """
    _find_errors(o, t.poses)
    # In an impact, the velocity belongs to the time of impact. In the rest of a step, with forces within the step and
    # in flight, it belongs to the end of the part. Otherwise it has a lag of half a step.
    at_end = part in (Part.WITHIN, Part.REST) or aloft
    fill_loops(o, t, v, 0.0 if part == Part.IMPACT else t.h if at_end else 0.5 * t.h)
    keep_whole(t, p)
    take_off(t, p, 0)


@kernel
def fill_loops(o: Loops, t: Tree, v: Array, ahead: float) -> None:
    """Fill the first rows of ``t`` with the loops, orthonormalised; call after :func:`bipedsim.dynamics.tree.factor`.

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
    """Read the impulses of the loops from the rows."""
    for m in range(o.impulse.shape[0]):
        o.impulse[m] = t.rows.impulse[m]


@kernel
def meet(o: Loops, t: Tree, wanted: Array, scale: float) -> None:
    """Fill ``change`` with the smallest x that satisfies G x = ``scale`` times ``wanted`` (M,).

    It is the smallest in the metric of the kinetic energy, and leaves joints at active limits unchanged. The rows are
    those of the last part of a step.
    """
    r, x = t.rows, o.change
    for i in range(x.shape[0]):
        x[i] = 0.0
    for n in range(r.used[0]):
        if r.R[n, n] == 0.0:
            r.shift[n] = 0.0
            continue
        deficit = scale * wanted[n] if n < wanted.shape[0] else 0.0
        for m in range(n):
            deficit -= r.R[m, n] * r.shift[m]
        r.shift[n] = deficit / r.R[n, n]
        for i in range(x.shape[0]):
            x[i] += r.Q[n, i] * r.shift[n]
    for i in range(x.shape[0]):
        total = x[i]
        for d in range(t.depth[i] - 1):
            total -= t.L[i, d] * x[t.ancestors[i, d]]
        x[i] = total * t.inverse[i]


@entry
def _fill_closing_change(loops: Any, tree: Any, poses: Array) -> float:
    """Fill ``change``, which closes the loops at ``poses`` (joints, 12); return the largest error [m or rad].

    The change is the smallest in the metric of the kinetic energy at the beginning of the last part of a step. It
    leaves joints at active limits unchanged.
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
    """Close the loops of a robot after each step.

    Args:
        model: Model of the robot.
        loops, tree: Loops and tree of its dynamics.

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
        """Return ``q`` (nq,), the configuration at the end of the last part of a step, with the loops closed.

        The error after a part is of third order in h. Newton's method with the rows of the beginning of the part
        therefore needs one or two iterations.
        """
        self.failed = True
        for _ in range(ITERATIONS):
            pin.forwardKinematics(self._model, self._data, q)
            if not _fill_closing_change(*self._boxes, self._poses) > SHUT:
                self.failed = False
                break
            q = pin.integrate(self._model, q, self._loops.change)
        return q
