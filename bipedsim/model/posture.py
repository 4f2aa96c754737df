"""Standing on flat ground: the base pose for given joints, and the joints that make standing possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pinocchio as pin

from bipedsim.model.loops import Loop, LoopEquations
from bipedsim.model.sole import Sole
from bipedsim.numerics import Array

Residual = Callable[[Array], tuple[Array, Array]]
"""Configuration (nq,) to equalities (m,) and their Jacobian (m, nv)."""

CLOSED = 1e-12
"""Largest residual [m or rad] of a solved posture."""
TILT_WEIGHT = 100.0
"""Tilting the trunk by an angle costs as much as ten times that angle in a joint: people bend the ankles first."""
IDLE_WEIGHT = 1e-3
"""What an angle of a joint without a drive costs of what it costs in one with."""
NEAREST = 1e-7
"""Last step [rad] of the search for the nearest of the solved postures; it closes in linearly."""
MAX_ITERATIONS = 100
WHOLE_STEPS = 25
"""Iterations with whole steps; from then on half of them, which ends the swinging to and fro of postures far away."""


def sole_placements(model: pin.Model, data: pin.Data, soles: Sequence[Sole], q: Array) -> list[pin.SE3]:
    """Return the pose of each sole frame in the world."""
    pin.forwardKinematics(model, data, q)
    return [data.oMi[s.joint_id] * s.placement_joint_sole for s in soles]


def place_base(model: pin.Model, soles: Sequence[Sole], q: Array) -> Array:
    """Return ``q`` with the free-flyer base moved so that the sole vertices lie on z = 0, in the least-squares sense.

    The plane of least squared distances to all vertices becomes the ground, the mean heading of the soles becomes +x
    and the mean of the sole centres the origin. One point leaves the attitude to the sole's normal, points on one line
    leave the roll to it. A ball touches a radius below its vertex, along the normal that is looked for.
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
        # Balls of different sizes turn the plane, by the square of what it was off.
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
    """Return the unit normal (3,) of the plane of least squares through ``points`` (n, 3), on the side of ``up``."""
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


def _flat(model: pin.Model, data: pin.Data, soles: Sequence[Sole], q: Array) -> tuple[Array, Array]:
    """Height and tilt of each sole, then the CoM over the support centre, with their Jacobian in the tangent space."""
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
        # A polygon is level along two directions, a blade along one, a point along none.
        span = np.linalg.svd(sole.vertices - sole.centre)[2][: min(sole.n_vertices - 1, 2)]
        for direction in span:
            axis = m.rotation[:, :2] @ direction
            values.append(axis[2])
            rows.append(axis[1] * angular[0] - axis[0] * angular[1])
    return np.concatenate([values, offset]), np.vstack([*rows, j_offset])


def _fixed(
    model: pin.Model, data: pin.Data, soles: Sequence[Sole], targets: Sequence[pin.SE3], com: Array, q: Array
) -> tuple[Array, Array]:
    """Displacement of each sole from its target and of the CoM from ``com``, with their Jacobian (m, nv).

    A blade may roll about its line, and a point turn as it likes.
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
        turned = pin.log3(m.rotation @ target.rotation.T)
        if sole.n_vertices == 2:
            x, y = sole.vertices[1] - sole.vertices[0]
            across = np.array([[-y, x, 0.0], [0.0, 0.0, np.hypot(x, y)]]) / np.hypot(x, y) @ target.rotation.T
            turned, angular = across @ turned, across @ angular
        values += [turned]
        rows += [angular]
    return np.concatenate(values), np.vstack(rows)


def _nearest(
    model: pin.Model, wanted: Array, start: Array, residual: Residual, idle: Sequence[int] = ()
) -> Array | None:
    """Return the configuration nearest to ``wanted`` with zero ``residual`` and joints in their limits, or None.

    Minimises the squared joint angles from ``wanted`` and the tilt of the base from where ``wanted`` has it, by Newton
    steps on the KKT system from ``start``; joints that leave their limits are pinned there one after the other. The
    angles of ``idle`` joints, by their columns of the velocity, count next to nothing.
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
            away = np.concatenate([np.zeros(3), tilt, q[7:] - wanted[7:]])
            m = len(value)
            kkt = np.block([[weight, jacobian.T], [jacobian, np.zeros((m, m))]])
            step = np.linalg.lstsq(kkt, -np.concatenate([weight @ away, value]), rcond=1e-13)[0][:nv]
            longest = float(np.abs(step).max())
            share = 1.0 if iteration < WHOLE_STEPS else 0.5
            q = pin.integrate(model, q, step * min(share, 0.3 / max(longest, 1e-12)))
            if longest < NEAREST and np.abs(value).max() < CLOSED:
                break
        else:
            return None
        outside = np.maximum(lower - q[7:], q[7:] - upper)
        worst = int(np.argmax(outside))
        if outside[worst] <= 1e-12:
            return q
        pinned[worst] = float(lower[worst] if q[7 + worst] < lower[worst] else upper[worst])
    return None


def stand(model: pin.Model, soles: Sequence[Sole], q: Array, loops: Sequence[Loop] = ()) -> Array | None:
    """Return the standing posture nearest to ``q``: soles flat on z = 0, CoM over their centre, joints in their limits.

    Args:
        model, soles, loops: The robot.
        q: (nq,) with its loops closed.

    Returns:
        The configuration (nq,), or None where there is no such posture near ``q``.
    """
    data = model.createData()
    start = place_base(model, soles, q)
    standing = _nearest(model, start, start, _with_loops(model, loops, partial(_flat, model, data, soles)))
    return None if standing is None else place_base(model, soles, standing)


def stand_upright(
    model: pin.Model, soles: Sequence[Sole], q: Array, loops: Sequence[Loop] = (), idle: Sequence[int] = ()
) -> Array | None:
    """Return the posture nearest to ``q`` with the base upright, points and blades on z = 0 and the CoM over them.

    :func:`stand` takes the attitude of the base from the normals of the soles, which mean nothing on points, and on
    blades only along their lines. Here the base stays as it is, and the joints make the soles reach the ground.

    Args:
        model, soles, loops: The robot.
        q: (nq,) with its loops closed.
        idle: Columns of the velocity of joints without a drive, which go where loops put them.

    Returns:
        The configuration (nq,), or None where there is no such posture near ``q``.
    """
    data = model.createData()
    start = q.copy()
    start[:7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    placements = sole_placements(model, data, soles, start)
    centres = [m.act(np.append(s.centre, -s.radius)) for m, s in zip(placements, soles, strict=True)]
    start[:3] = -np.mean(centres, axis=0)
    flat = partial(_flat, model, data, soles)

    def residual(q: Array) -> tuple[Array, Array]:
        value, jacobian = flat(q)
        # Upwards in the axes of the base, which turns below it.
        x, y, z = pin.XYZQUATToSE3(q[:7]).rotation[2]
        rows = np.zeros((2, model.nv))
        rows[:, 3:6] = [[0.0, -z, y], [z, 0.0, -x]]
        return np.append(value, (x, y)), np.vstack([jacobian, rows])

    return _nearest(model, start, start, _with_loops(model, loops, residual), idle)


def _with_loops(model: pin.Model, loops: Sequence[Loop], residual: Residual) -> Residual:
    """Return ``residual`` with the errors of the loops, if there are any."""
    if not loops:
        return residual
    equations = LoopEquations(model, loops)

    def closed(q: Array) -> tuple[Array, Array]:
        (value, jacobian), (open_by, rows) = residual(q), equations.at(q)
        return np.concatenate([value, open_by]), np.vstack([jacobian, rows])

    return closed


def _without_pitching(
    model: pin.Model, data: pin.Data, before: Array, residual: Residual, q: Array
) -> tuple[Array, Array]:
    """Add to ``residual`` the angular momentum about the y axis through the CoM of going from ``before`` to ``q``.

    Over the moment of inertia of the whole robot, so that it is the angle [rad] that the robot would turn.
    """
    value, jacobian = residual(q)
    halfway = pin.interpolate(model, before, q, 0.5)
    momentum = pin.computeCentroidalMap(model, data, halfway)[4]
    pin.ccrba(model, data, halfway, np.zeros(model.nv))
    momentum = momentum / data.Ig.inertia[1, 1]
    # The derivative of the difference is the identity but for the square of the step.
    turned = momentum @ pin.difference(model, before, q)
    return np.append(value, turned), np.vstack([jacobian, momentum])


def reach(
    model: pin.Model,
    soles: Sequence[Sole],
    q: Array,
    com: Array,
    feet: Sequence[Sequence[pin.SE3]],
    no_pitching: bool = False,
    loops: Sequence[Loop] = (),
) -> list[Array]:
    """Return postures with the CoM and the soles where they are wanted, one after the other along a path.

    Args:
        model, soles: The robot.
        q: (nq,) where the first posture starts from; all postures stay near it.
        com: (n, 3) CoM in the world [m], beginning near that of ``q``.
        feet: n times the pose of every sole in the world.
        no_pitching: Whether the path has no angular momentum about the y axis, so that a robot in flight moves along
            it without turning.
        loops: Of the robot, which stay closed.

    Returns:
        The configurations (nq,); fewer than n where the robot cannot follow further.
    """
    data = model.createData()
    found: list[Array] = []
    for wanted, placements in zip(com, feet, strict=True):
        residual = _with_loops(model, loops, partial(_fixed, model, data, soles, placements, wanted))
        if no_pitching:
            residual = partial(_without_pitching, model, model.createData(), found[-1] if found else q, residual)
        posture = _nearest(model, q, found[-1] if found else q, residual)
        if posture is None:
            break
        found.append(posture)
    return found
