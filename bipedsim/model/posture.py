"""Compute standing configurations on flat ground: base pose for given joints, and suitable joint angles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pinocchio as pin

from bipedsim.model.loops import Loop, LoopEquations
from bipedsim.model.sole import Sole
from bipedsim.numerics import Array

Residual = Callable[[Array], tuple[Array, Array]]
"""Function from a configuration (nq,) to equality residuals (m,) and their Jacobian (m, nv)."""

CLOSED = 1e-12
"""Largest residual of a solved posture [m or rad]."""
ROUNDED = 1e-8
"""Largest error of a posture at which the search cannot improve it [m or rad]."""
TILT_WEIGHT = 100.0
"""Cost of the trunk's squared tilt relative to a squared joint angle, so that the ankles bend first."""
IDLE_WEIGHT = 1e-3
"""Cost of the squared angle of an undriven joint relative to a driven one."""
NEAREST = 1e-7
"""Last step of the search for the nearest posture [rad]; it converges linearly."""
MAX_ITERATIONS = 100
WHOLE_STEPS = 25
"""Number of iterations with full steps; later steps are halved, which stops oscillations far from the solution."""


def sole_placements(model: pin.Model, data: pin.Data, soles: Sequence[Sole], q: Array) -> list[pin.SE3]:
    """Return the pose of each sole frame in the world."""
    pin.forwardKinematics(model, data, q)
    return [data.oMi[s.joint_id] * s.placement_joint_sole for s in soles]


def place_base(model: pin.Model, soles: Sequence[Sole], q: Array) -> Array:
    """Return ``q`` with the free-flyer base moved so that the sole vertices are on z = 0 by least squares.

    The best-fit plane of all vertices becomes the ground, the mean heading of the soles becomes +x, and the mean of the
    sole centres becomes the origin. With a single point, the sole's normal defines the attitude; with points on one
    line, it defines the roll. The contact point of a ball is one radius below its vertex along the ground normal.
    """
    data = model.createData()
    q = q.copy()
    q[:7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    placements = sole_placements(model, data, soles, q)
    vertices = np.vstack(
        [s.vertices_joint @ data.oMi[s.joint_id].rotation.T + data.oMi[s.joint_id].translation for s in soles]
    )
    radii = np.concatenate([np.full(s.n_vertices, s.radius) for s in soles])[:, None]
    up = np.sum([m.rotation[:, 2] for m in placements], axis=0)
    heading = np.sum([m.rotation[:, 0] for m in placements], axis=0)
    z = up / np.linalg.norm(up)
    for _ in range(MAX_ITERATIONS):
        before, z = z, _normal(vertices - radii * z, up)
        # Balls of different sizes change the plane, but only by the square of its previous error.
        if np.abs(z - before).max() < CLOSED:
            break
    points = vertices - radii * z
    x = heading - z * (z @ heading)
    x /= np.linalg.norm(x)
    rotation = np.vstack([x, np.cross(z, x), z])
    centres = [m.act(np.append(s.centre, 0.0)) for m, s in zip(placements, soles, strict=True)]
    origin = np.mean(centres, axis=0)
    origin -= z * (z @ (origin - points.mean(axis=0)))
    q[:7] = pin.SE3ToXYZQUAT(pin.SE3(rotation, -rotation @ origin))
    return q


def _normal(points: Array, up: Array) -> Array:
    """Return the unit normal (3,) of the best-fit plane of ``points`` (n, 3), on the side of ``up``."""
    spread, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=True)[1:]
    extent = np.append(spread, np.zeros(3))
    if extent[1] > 1e-9:
        normal = axes[2] * (1.0 if axes[2] @ up >= 0.0 else -1.0)
    elif extent[0] > 1e-9:
        normal = up - axes[0] * (axes[0] @ up)
    else:
        normal = up
    return np.asarray(normal / np.linalg.norm(normal))


def _sole_rows(model: pin.Model, data: pin.Data, sole: Sole) -> tuple[pin.SE3, Array, Array, Array]:
    """Return the sole's placement, its centre, and the linear and angular Jacobian (3, nv) there, in world axes."""
    joint = data.oMi[sole.joint_id]
    m = joint * sole.placement_joint_sole
    centre = m.act(np.append(sole.centre, 0.0))
    jacobian = pin.getJointJacobian(model, data, sole.joint_id, pin.LOCAL_WORLD_ALIGNED)
    return m, centre, jacobian[:3] - pin.skew(centre - joint.translation) @ jacobian[3:], jacobian[3:]


def _standing_residual(model: pin.Model, data: pin.Data, soles: Sequence[Sole], q: Array) -> tuple[Array, Array]:
    """Return height and tilt of each sole and the CoM offset from the support centre, with their Jacobian (m, nv)."""
    pin.computeJointJacobians(model, data, q)
    offset = pin.centerOfMass(model, data, q)[:2].copy()
    j_offset = pin.jacobianCenterOfMass(model, data, q)[:2].copy()
    values: list[float] = []
    rows: list[Array] = []
    for sole in soles:
        m, centre, linear, angular = _sole_rows(model, data, sole)
        offset -= centre[:2] / len(soles)
        j_offset -= linear[:2] / len(soles)
        values.append(centre[2] - sole.radius)
        rows.append(linear[2])
        # The tilt of a polygon has two directions, that of a line foot one, and that of a point foot none.
        span = np.linalg.svd(sole.vertices - sole.centre)[2][: min(sole.n_vertices - 1, 2)]
        for direction in span:
            axis = m.rotation[:, :2] @ direction
            values.append(axis[2])
            rows.append(axis[1] * angular[0] - axis[0] * angular[1])
    return np.concatenate([values, offset]), np.vstack([*rows, j_offset])


def _target_residual(
    model: pin.Model, data: pin.Data, soles: Sequence[Sole], targets: Sequence[pin.SE3], com: Array, q: Array
) -> tuple[Array, Array]:
    """Return the displacements of soles and CoM from their targets, with their Jacobian (m, nv).

    A line foot may roll about its line, and a point foot may have any orientation.
    """
    pin.computeJointJacobians(model, data, q)
    values = [pin.centerOfMass(model, data, q) - com]
    rows = [pin.jacobianCenterOfMass(model, data, q).copy()]
    for sole, target in zip(soles, targets, strict=True):
        m, centre, linear, angular = _sole_rows(model, data, sole)
        values += [centre - target.act(np.append(sole.centre, 0.0))]
        rows += [linear]
        if sole.n_vertices == 1:
            continue
        rotation_error = pin.log3(m.rotation @ target.rotation.T)
        if sole.n_vertices == 2:
            x, y = sole.vertices[1] - sole.vertices[0]
            constrained_axes = np.array([[-y, x, 0.0], [0.0, 0.0, np.hypot(x, y)]]) / np.hypot(x, y) @ target.rotation.T
            rotation_error, angular = constrained_axes @ rotation_error, constrained_axes @ angular
        values += [rotation_error]
        rows += [angular]
    return np.concatenate(values), np.vstack(rows)


def _nearest(
    model: pin.Model, wanted: Array, start: Array, residual: Residual, idle: Sequence[int] = ()
) -> Array | None:
    """Return the configuration nearest to ``wanted`` with zero ``residual`` and joints within their limits, or None.

    The cost is the sum of squared joint angles relative to ``wanted`` and of the squared tilt of the base. Newton steps
    on the KKT system start from ``start``. Joints that leave their limits are fixed there one by one. The joints in
    ``idle`` (velocity indices) have a very small cost.
    """
    base, nv = 6, model.nv
    lower, upper = model.lowerPositionLimit[7:], model.upperPositionLimit[7:]
    weight = np.diag(np.concatenate([np.zeros(3), np.full(3, TILT_WEIGHT), np.ones(nv - base)]))
    weight[idle, idle] = IDLE_WEIGHT
    attitude = pin.XYZQUATToSE3(wanted[:7]).rotation
    pinned: dict[int, float] = {}
    for _ in range(nv - base + 1):
        q = start.copy()
        for iteration in range(MAX_ITERATIONS):
            value, jacobian = residual(q)
            if pinned:
                value = np.append(value, [q[7 + i] - target for i, target in pinned.items()])
                jacobian = np.vstack([jacobian, np.eye(nv)[[base + i for i in pinned]]])
            tilt = pin.log3(attitude.T @ pin.XYZQUATToSE3(q[:7]).rotation)
            deviation = np.concatenate([np.zeros(3), tilt, q[7:] - wanted[7:]])
            m = len(value)
            kkt = np.block([[weight, jacobian.T], [jacobian, np.zeros((m, m))]])
            step = np.linalg.lstsq(kkt, -np.concatenate([weight @ deviation, value]), rcond=1e-13)[0][:nv]
            largest = float(np.abs(step).max())
            share = 1.0 if iteration < WHOLE_STEPS else 0.5
            q = pin.integrate(model, q, step * min(share, 0.3 / max(largest, 1e-12)))
            if largest < NEAREST and np.abs(value).max() < CLOSED:
                break
        else:
            # Redundant loops, such as two parallel rods, have an error that rounding does not let vanish.
            if largest >= CLOSED or np.abs(value).max() >= ROUNDED:
                return None
        outside = np.maximum(lower - q[7:], q[7:] - upper)
        worst = int(np.argmax(outside))
        if outside[worst] <= 1e-12:
            return q
        pinned[worst] = float(lower[worst] if q[7 + worst] < lower[worst] else upper[worst])
    return None


def stand(model: pin.Model, soles: Sequence[Sole], q: Array, loops: Sequence[Loop] = ()) -> Array | None:
    """Return the nearest standing posture: soles flat on z = 0, CoM above their centre, joints within their limits.

    Args:
        model, soles, loops: The robot.
        q: (nq,) initial configuration with closed loops.

    Returns:
        The configuration (nq,), or None if there is no such posture near ``q``.
    """
    data = model.createData()
    start = place_base(model, soles, q)
    standing = _nearest(model, start, start, _with_loops(model, loops, partial(_standing_residual, model, data, soles)))
    return None if standing is None else place_base(model, soles, standing)


def stand_upright(
    model: pin.Model, soles: Sequence[Sole], q: Array, loops: Sequence[Loop] = (), idle: Sequence[int] = ()
) -> Array | None:
    """Return the nearest posture with an upright base, point or line feet on z = 0, and the CoM above them.

    :func:`stand` derives the attitude of the base from the normals of the soles. These are undefined for point feet,
    and for line feet about their lines. Here the base stays upright, and the joints move the soles to the ground.

    Args:
        model, soles, loops: The robot.
        q: (nq,) initial configuration with closed loops.
        idle: Velocity indices of the undriven joints, which follow from the loops.

    Returns:
        The configuration (nq,), or None if there is no such posture near ``q``.
    """
    data = model.createData()
    start = q.copy()
    start[:7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    placements = sole_placements(model, data, soles, start)
    centres = [m.act(np.append(s.centre, -s.radius)) for m, s in zip(placements, soles, strict=True)]
    start[:3] = -np.mean(centres, axis=0)
    residual = partial(_upright_residual, model, data, soles)
    return _nearest(model, start, start, _with_loops(model, loops, residual), idle)


def _upright_residual(model: pin.Model, data: pin.Data, soles: Sequence[Sole], q: Array) -> tuple[Array, Array]:
    """Add the tilt of the base to the standing residual."""
    value, jacobian = _standing_residual(model, data, soles, q)
    # (x, y, z) is the vertical in the axes of the base; the base may tilt during the search.
    x, y, z = pin.XYZQUATToSE3(q[:7]).rotation[2]
    rows = np.zeros((2, model.nv))
    rows[:, 3:6] = [[0.0, -z, y], [z, 0.0, -x]]
    return np.append(value, (x, y)), np.vstack([jacobian, rows])


def stand_apart(
    model: pin.Model,
    soles: Sequence[Sole],
    q: Array,
    width: float,
    height: float,
    loops: Sequence[Loop] = (),
    idle: Sequence[int] = (),
) -> Array | None:
    """Return the nearest posture with an upright base on two flat soles side by side that point ahead (+x).

    Args:
        model, soles, loops: The robot; the left sole is the first one.
        q: (nq,) initial configuration. The base has an upright attitude, from which its heading is free to change.
        width: Lateral distance between the centres of the soles [m].
        height: Height of the CoM above the ground [m].
        idle: Velocity indices of the undriven joints.

    Returns:
        The configuration (nq,), or None if there is no such posture near ``q``.
    """
    data = model.createData()

    def residual(q: Array) -> tuple[Array, Array]:
        value, jacobian = _upright_residual(model, data, soles, q)
        left, right = (_sole_rows(model, data, sole) for sole in soles)
        apart = left[1] - right[1]
        yaws = [m.rotation[1, 0] for m, *_ in (left, right)]
        turns = [np.array([-m.rotation[2, 0], 0.0, m.rotation[0, 0]]) @ angular for m, _, _, angular in (left, right)]
        more = [apart[0], apart[1] - width, *yaws, data.com[0][2] - height]
        return np.append(value, more), np.vstack([jacobian, (left[2] - right[2])[:2], *turns, data.Jcom[2]])

    standing = _nearest(model, q, q, _with_loops(model, loops, residual), idle)
    return None if standing is None else place_base(model, soles, standing)


def _with_loops(model: pin.Model, loops: Sequence[Loop], residual: Residual) -> Residual:
    """Add the errors of the loops to ``residual``, if there are loops."""
    if not loops:
        return residual
    equations = LoopEquations(model, loops)

    def closed(q: Array) -> tuple[Array, Array]:
        (value, jacobian), (loop_error, rows) = residual(q), equations.at(q)
        return np.concatenate([value, loop_error]), np.vstack([jacobian, rows])

    return closed


def _with_zero_pitch(
    model: pin.Model, data: pin.Data, before: Array, residual: Residual, q: Array
) -> tuple[Array, Array]:
    """Add the angular momentum about the CoM's y axis between ``before`` and ``q`` to ``residual``.

    It is divided by the moment of inertia of the whole robot, which gives the resulting pitch angle [rad].
    """
    value, jacobian = residual(q)
    halfway = pin.interpolate(model, before, q, 0.5)
    momentum = pin.computeCentroidalMap(model, data, halfway)[4]
    pin.ccrba(model, data, halfway, np.zeros(model.nv))
    momentum = momentum / data.Ig.inertia[1, 1]
    # The derivative of the difference is the identity, up to second order in the step.
    pitch = momentum @ pin.difference(model, before, q)
    return np.append(value, pitch), np.vstack([jacobian, momentum])


def reach(
    model: pin.Model,
    soles: Sequence[Sole],
    q: Array,
    com: Array,
    feet: Sequence[Sequence[pin.SE3]],
    no_pitching: bool = False,
    loops: Sequence[Loop] = (),
) -> list[Array]:
    """Return postures along a path of CoM positions and sole poses.

    Args:
        model, soles: The robot.
        q: (nq,) initial configuration; all postures stay near it.
        com: (n, 3) CoM in the world [m], starting near that of ``q``.
        feet: n lists with the pose of every sole in the world.
        no_pitching: Require zero angular momentum about the y axis along the path, so that an airborne robot can follow
            it without rotating.
        loops: Closed kinematic chains of the robot.

    Returns:
        The configurations (nq,); fewer than n if the robot cannot follow the whole path.
    """
    data = model.createData()
    postures: list[Array] = []
    for com_target, placements in zip(com, feet, strict=True):
        residual = _with_loops(model, loops, partial(_target_residual, model, data, soles, placements, com_target))
        if no_pitching:
            residual = partial(_with_zero_pitch, model, model.createData(), postures[-1] if postures else q, residual)
        posture = _nearest(model, q, postures[-1] if postures else q, residual)
        if posture is None:
            break
        postures.append(posture)
    return postures
