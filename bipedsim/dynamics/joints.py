"""Kinematic tree in flat arrays: poses, velocities and accelerations of its bodies.

The model is copied from pinocchio once, joint by joint. Compiled code then calls no library during a step.

Motions, forces and inertias of all bodies refer to one common point and to the world axes. Those of neighbouring
bodies therefore add without a transformation (Featherstone, "Rigid Body Dynamics Algorithms", 2008, section 5.3, in
absolute coordinates). The common point is the current position of the root. With the world origin instead, a robot
that has walked a hundred metres would lose four digits.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Integers, Three, act, assign, cross, entry, kernel, turn, zeros_of

FLOATS, TURNS_X, TURNS_Y, TURNS_Z, TURNS, SLIDES = range(6)
"""Kinds of joints: free-flyer; revolute about the x, y or z axis of its frame, or about any other axis; prismatic."""
UNIVERSE = 0
_EPSILON = float(np.finfo(np.float64).eps)
_SMALL = _EPSILON**0.25
"""Angle [rad], and square of an angle, below which pinocchio uses series."""
_ALIGNED = {"X": TURNS_X, "Y": TURNS_Y, "Z": TURNS_Z}
_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}


class Joints(NamedTuple):
    """Store the joints j of a model and their bodies, with nv velocities in total; joint 0 is the world.

    Attributes:
        order: (n,) joints whose motion is evaluated, each after its parent.
        parent, kind, idx_q, idx_v: (joints,) parent, kind, and first index in q and in v of each joint.
        axis: (joints, 3) axes of revolute and prismatic joints, in the joint frames.
        placement: (joints, 12) pose of the joint frame in its parent's frame at zero joint position: rotation, column
            after column, then translation [m].
        mass, lever, inertia: (joints,), (joints, 3), (joints, 6) of the bodies: mass [kg], centre of mass in the joint
            frame [m], and inertia about it along the axes of that frame, xx xy yy xz yz zz [kg.m^2].
        gravity: (3,) [m/s^2].
        poses: (joints, 12) of the joints in the world, in the format of ``placement``.
        origin: (3,) reference point of all motions, in the world [m].
        S: (nv, 6) motion axis of each velocity, linear first.
        placed: (nq,) configuration of ``poses``, ``origin`` and ``S``; NaN before the first.
        twists, accelerations: (joints, 6) velocity, and spatial acceleration minus gravity, linear first.
    """

    order: Integers
    parent: Integers
    kind: Integers
    idx_q: Integers
    idx_v: Integers
    axis: Annotated[Array, "J", 3]
    placement: Annotated[Array, "J", 12]
    mass: Annotated[Array, "J"]
    lever: Annotated[Array, "J", 3]
    inertia: Annotated[Array, "J", 6]
    gravity: Array
    poses: Annotated[Array, "J", 12]
    origin: Annotated[Array, 3]
    S: Annotated[Array, "v", 6]
    placed: Array
    twists: Annotated[Array, "J", 6]
    accelerations: Annotated[Array, "J", 6]

    @classmethod
    def of_model(cls, model: pin.Model, needed: Collection[int] | None = None) -> Joints:
        """Copy the joints of a model with its current values.

        Args:
            model: Its joints may be free-flyers, revolute or prismatic.
            needed: Joints whose motion is evaluated, together with their ancestors; all by default.

        Raises:
            ConfigError: A joint is of another kind.
        """
        which = range(1, model.njoints) if needed is None else {j for i in needed for j in model.supports[i] if j}
        joints: Joints = zeros_of(
            cls,
            {"J": model.njoints, "v": model.nv},
            order=np.array(sorted(which), dtype=np.int64),
            parent=np.array(list(model.parents), dtype=np.int64),
            kind=np.zeros(model.njoints, dtype=np.int64),
            idx_q=np.array(list(model.idx_qs), dtype=np.int64),
            idx_v=np.array(list(model.idx_vs), dtype=np.int64),
            gravity=np.array(model.gravity.linear),
            placed=np.full(model.nq, np.nan),
        )
        joints.poses[UNIVERSE, [0, 4, 8]] = 1.0
        joints.accelerations[UNIVERSE, :3] = -joints.gravity
        for j in range(1, model.njoints):
            joints.kind[j], joints.axis[j] = _read(model, j)
            place, body = model.jointPlacements[j], model.inertias[j]
            joints.placement[j, :9], joints.placement[j, 9:] = place.rotation.T.reshape(-1), place.translation
            joints.mass[j], joints.lever[j] = body.mass, body.lever
            joints.inertia[j] = body.inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        return joints


def _read(model: pin.Model, j: int) -> tuple[int, tuple[float, float, float]]:
    """Return the kind of joint ``j`` and its axis."""
    name = model.joints[j].shortname().removeprefix("JointModel")
    if name == "FreeFlyer":
        return FLOATS, (0.0, 0.0, 0.0)
    if name[:1] in "RP" and name[1:] in _AXES:
        return _ALIGNED[name[1]] if name[0] == "R" else SLIDES, _AXES[name[1]]
    if name in ("RevoluteUnaligned", "PrismaticUnaligned"):
        # The motion subspace S of such a joint is its axis.
        data = model.joints[j].createData()
        model.joints[j].calc(data, np.zeros(model.nq), np.zeros(model.nv))
        x, y, z = np.asarray(data.S).reshape(6)[3:] if name[0] == "R" else np.asarray(data.S).reshape(6)[:3]
        return TURNS if name[0] == "R" else SLIDES, (x, y, z)
    raise ConfigError(
        f"{model.joints[j].shortname()}; free-flyers, revolute and prismatic joints are supported. Compose it of them",
        f"joint {model.names[j]!r}",
    )


@kernel
def locate(s: Joints, j: int, q: Array) -> None:
    """Fill the world pose of joint ``j`` at ``q`` (nq,); the pose of its parent must be filled already."""
    above, place, pose, kind = s.poses[s.parent[j]], s.placement[j], s.poses[j], s.kind[j]
    x = turn(above, (place[0], place[1], place[2]))
    y = turn(above, (place[3], place[4], place[5]))
    z = turn(above, (place[6], place[7], place[8]))
    p = act(above, (place[9], place[10], place[11]))
    i = s.idx_q[j]
    if kind == FLOATS:
        p = _along(x, y, z, p, (q[i], q[i + 1], q[i + 2]))
        a, b, c, d = q[i + 3], q[i + 4], q[i + 5], q[i + 6]
        nothing = (0.0, 0.0, 0.0)
        x, y, z = (
            _along(x, y, z, nothing, (1.0 - 2.0 * (b * b + c * c), 2.0 * (a * b + d * c), 2.0 * (a * c - d * b))),
            _along(x, y, z, nothing, (2.0 * (a * b - d * c), 1.0 - 2.0 * (a * a + c * c), 2.0 * (b * c + d * a))),
            _along(x, y, z, nothing, (2.0 * (a * c + d * b), 2.0 * (b * c - d * a), 1.0 - 2.0 * (a * a + b * b))),
        )
    elif kind == SLIDES:
        u = s.axis[j]
        p = _along(x, y, z, p, (q[i] * u[0], q[i] * u[1], q[i] * u[2]))
    else:
        cosine, sine = math.cos(q[i]), math.sin(q[i])
        if kind == TURNS_X:
            y, z = _swing(y, z, cosine, sine)
        elif kind == TURNS_Y:
            z, x = _swing(z, x, cosine, sine)
        elif kind == TURNS_Z:
            x, y = _swing(x, y, cosine, sine)
        else:
            u = s.axis[j]
            axis = _along(x, y, z, (0.0, 0.0, 0.0), (u[0], u[1], u[2]))
            x = _about(axis, x, u[0], cosine, sine)
            y = _about(axis, y, u[1], cosine, sine)
            z = _about(axis, z, u[2], cosine, sine)
    pose[0], pose[1], pose[2] = x
    pose[3], pose[4], pose[5] = y
    pose[6], pose[7], pose[8] = z
    pose[9], pose[10], pose[11] = p


@kernel
def _along(x: Three, y: Three, z: Three, p: Three, r: Three) -> Three:
    """Return p + r[0] x + r[1] y + r[2] z."""
    return (
        p[0] + r[0] * x[0] + r[1] * y[0] + r[2] * z[0],
        p[1] + r[0] * x[1] + r[1] * y[1] + r[2] * z[1],
        p[2] + r[0] * x[2] + r[1] * y[2] + r[2] * z[2],
    )


@kernel
def _swing(a: Three, b: Three, cosine: float, sine: float) -> tuple[Three, Three]:
    """Return two axes after a rotation from the first towards the second."""
    return (
        (cosine * a[0] + sine * b[0], cosine * a[1] + sine * b[1], cosine * a[2] + sine * b[2]),
        (cosine * b[0] - sine * a[0], cosine * b[1] - sine * a[1], cosine * b[2] - sine * a[2]),
    )


@kernel
def _about(axis: Three, a: Three, part: float, cosine: float, sine: float) -> Three:
    """Return vector ``a`` after a rotation about ``axis`` (Rodrigues); ``part`` is the component of a along it."""
    b, rest = cross(axis, a), (1.0 - cosine) * part
    return (
        cosine * a[0] + sine * b[0] + rest * axis[0],
        cosine * a[1] + sine * b[1] + rest * axis[1],
        cosine * a[2] + sine * b[2] + rest * axis[2],
    )


@kernel
def place(s: Joints, q: Array) -> None:
    """Fill the poses of all joints, ``origin`` and ``S`` at ``q`` (nq,), unless they are those of ``q`` already."""
    placed = True
    for i in range(q.shape[0]):
        placed = placed and s.placed[i] == q[i]
    if placed:
        return
    for j in range(1, s.parent.shape[0]):
        locate(s, j, q)
    for a in range(3):
        s.origin[a] = s.poses[1, 9 + a]
    for j in range(1, s.parent.shape[0]):
        _span(s, j)
    for i in range(q.shape[0]):
        s.placed[i] = q[i]


@kernel
def integrate(s: Joints, q: Array, step: Array, out: Array) -> None:
    """Fill ``out`` (nq,) with ``q`` (nq,) moved by the displacement ``step`` (nv,): pinocchio's integrate, to the bit.

    The base moves along a screw. The order of the operations is that of pinocchio and Eigen.
    """
    for j in range(1, s.parent.shape[0]):
        i, k = s.idx_q[j], s.idx_v[j]
        if s.kind[j] == FLOATS:
            _integrate_base(q[i:], step[k:], out[i:])
        else:
            out[i] = q[i] + step[k]


@kernel
def _integrate_base(q: Array, step: Array, out: Array) -> None:
    """Fill ``out`` (7,) with the pose ``q`` (7,) of a free-flyer moved by ``step`` (6,)."""
    v, w, axis, d = (step[0], step[1], step[2]), (step[3], step[4], step[5]), (q[3], q[4], q[5]), q[6]
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    t2 = square + _EPSILON * _EPSILON
    t = math.sqrt(t2)
    if t < _SMALL:
        swing, lag = 0.5 - t2 / 24.0, 1.0 / 6.0 - t2 / 120.0
    else:
        inverse = 1.0 / t2
        swing, lag = (1.0 - math.cos(t)) * inverse, (t - math.sin(t)) * inverse / t
    if square > _SMALL:
        half = math.sin(0.5 * t)
        x, y, z, c = half * (w[0] / t), half * (w[1] / t), half * (w[2] / t), math.cos(0.5 * t)
    else:
        quarter = square / 4.0
        half = 0.5 * (1.0 - quarter / 6.0 + quarter * quarter / 120.0)
        x, y, z, c = half * w[0], half * w[1], half * w[2], 1.0 - quarter / 2.0 + quarter * quarter / 24.0
    a = cross(w, v)
    b = cross(w, a)
    p = (
        v[0] + swing * a[0] + lag * b[0],
        v[1] + swing * a[1] + lag * b[1],
        v[2] + swing * a[2] + lag * b[2],
    )
    u = cross(axis, p)
    u = (u[0] + u[0], u[1] + u[1], u[2] + u[2])
    turned = cross(axis, u)
    for i in range(3):
        out[i] = p[i] + d * u[i] + turned[i] + q[i]
    x, y, z, c = (
        (d * x + axis[1] * z) - (axis[2] * y - axis[0] * c),
        (d * y + axis[1] * c) + (axis[2] * x - axis[0] * z),
        (d * z - axis[1] * x) + (axis[2] * c + axis[0] * y),
        (d * c - axis[1] * y) - (axis[2] * z + axis[0] * x),
    )
    sign = -1.0 if (x * axis[0] + z * axis[2]) + (y * axis[1] + c * d) < 0.0 else 1.0
    scale = sign * ((3.0 - ((x * x + z * z) + (y * y + c * c))) / 2.0)
    out[3], out[4], out[5], out[6] = x * scale, y * scale, z * scale, c * scale


@entry
def place_joints(joints: Any, q: Array) -> None:
    """Call :func:`place` for a packed argument struct of joints."""
    place(joints.arrays, q)


@kernel
def _span(s: Joints, j: int) -> None:
    """Fill the motion axes ``S`` of the velocities of joint ``j``; its pose must be filled already."""
    pose, i = s.poses[j], s.idx_v[j]
    p = (pose[9] - s.origin[0], pose[10] - s.origin[1], pose[11] - s.origin[2])
    if s.kind[j] == FLOATS:
        for a in range(3):
            u = (pose[3 * a], pose[3 * a + 1], pose[3 * a + 2])
            assign(s.S[i + a], u)
            assign(s.S[i + 3 + a], cross(p, u))
            assign(s.S[i + 3 + a, 3:], u)
        return
    u = turn(pose, s.axis[j])
    if s.kind[j] == SLIDES:
        assign(s.S[i], u)
        return
    assign(s.S[i], cross(p, u))
    assign(s.S[i, 3:], u)


@kernel
def move(s: Joints, j: int, v: Array) -> None:
    """Fill the twist and the acceleration of joint ``j`` at constant joint velocities ``v`` (nv,)."""
    above, twist, acceleration = s.parent[j], s.twists[j], s.accelerations[j]
    ux = uy = uz = wx = wy = wz = 0.0
    for i in range(s.idx_v[j], s.idx_v[j] + (6 if s.kind[j] == FLOATS else 1)):
        S, speed = s.S[i], v[i]
        ux += S[0] * speed
        uy += S[1] * speed
        uz += S[2] * speed
        wx += S[3] * speed
        wy += S[4] * speed
        wz += S[5] * speed
    u, w = (ux, uy, uz), (wx, wy, wz)
    before = s.twists[above]
    # The motion axis is fixed in the body and rotates with it, hence the velocity product terms.
    w_cross_u, v_cross_w = cross(before[3:], u), cross(before, w)
    w_cross_w = cross(before[3:], w)
    for a in range(3):
        twist[a] = before[a] + u[a]
        twist[3 + a] = before[3 + a] + w[a]
        acceleration[a] = s.accelerations[above, a] + w_cross_u[a] + v_cross_w[a]
        acceleration[3 + a] = s.accelerations[above, 3 + a] + w_cross_w[a]


@kernel
def accelerate(s: Joints, j: int, a: Array) -> None:
    """Add the contribution of the joint accelerations ``a`` (nv,) of joint ``j`` to its spatial acceleration."""
    acceleration = s.accelerations[j]
    for i in range(s.idx_v[j], s.idx_v[j] + (6 if s.kind[j] == FLOATS else 1)):
        for r in range(6):
            acceleration[r] += s.S[i, r] * a[i]
