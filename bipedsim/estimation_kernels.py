"""The compiled side of :mod:`bipedsim.estimation`: contacts, anchors and the filter; see docs/estimation.md.

``x`` holds rows of three axes and ``P`` their common covariance: IMU position, IMU velocity, bias, then one per foot.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from bipedsim.estimation_arrays import Geometry
from bipedsim.sensors import _quaternion as to_quaternion

P_IMU, V_IMU, BIAS, ANCHORS = range(4)
"""Rows of the filter's state."""
LOST = 0.1
"""An attitude that is further off [rad] is taken over at once."""
LEAST_SHARE = 0.01
"""Share of the weight below which a foot counts no less."""


@njit(cache=True, error_model="numpy")
def _good(measured, held):
    """Copy a measurement if all of it is finite, and say so."""
    for value in measured.flat:
        if not math.isfinite(value):
            return False
    held[...] = measured
    return True


@njit(cache=True, error_model="numpy")
def take(idx_q, idx_v, held, position, velocity, quaternion, gyro, acceleration, wrench):
    """Hold all measurements that are finite, and return the bits of those that are not."""
    bad = 0
    if not _good(position, held.joint_position):
        bad |= 1
    if not _good(velocity, held.joint_velocity):
        bad |= 2
    square = 0.0
    for i in range(4):
        square += quaternion[i] * quaternion[i]
    if 0.25 < square < 4.0:
        for i in range(4):
            held.imu_orientation[i] = quaternion[i] / math.sqrt(square)
    else:
        bad |= 4
    if not _good(gyro, held.imu_angular_velocity):
        bad |= 8
    if not _good(acceleration, held.imu_linear_acceleration):
        bad |= 16
    if not _good(wrench, held.foot_wrench):
        bad |= 32
    for j in range(len(idx_q)):
        held.q[idx_q[j]] = held.joint_position[j]
        held.v[idx_v[j]] = held.joint_velocity[j]
    return bad


@njit(cache=True, error_model="numpy")
def _product(A, B, out):
    """Fill ``out`` with A B, all (3, 3) and apart."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@njit(cache=True, error_model="numpy")
def _turned(R, v, out):
    """Fill ``out`` with R v."""
    for i in range(3):
        out[i] = R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2]


@njit(cache=True, error_model="numpy")
def _turned_back(R, v, out):
    """Fill ``out`` with R^T v."""
    for i in range(3):
        out[i] = R[0, i] * v[0] + R[1, i] * v[1] + R[2, i] * v[2]


@njit(cache=True, error_model="numpy")
def _point_velocity(w, r, out):
    """Add w x r to ``out``."""
    out[0] += w[1] * r[2] - w[2] * r[1]
    out[1] += w[2] * r[0] - w[0] * r[2]
    out[2] += w[0] * r[1] - w[1] * r[0]


@njit(cache=True, error_model="numpy")
def _exponential(phi, out):
    """Fill ``out`` (3, 3) with the rotation by the vector ``phi`` [rad], by Rodrigues."""
    square = phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]
    angle = math.sqrt(square)
    if angle < 1e-4:
        a, b = 1.0 - square / 6.0, 0.5 - square / 24.0
    else:
        a, b = math.sin(angle) / angle, (1.0 - math.cos(angle)) / square
    for i in range(3):
        for j in range(3):
            out[i, j] = b * phi[i] * phi[j]
        out[i, i] += 1.0 - b * square
    out[0, 1] -= a * phi[2]
    out[1, 0] += a * phi[2]
    out[0, 2] += a * phi[1]
    out[2, 0] -= a * phi[1]
    out[1, 2] -= a * phi[0]
    out[2, 1] += a * phi[0]


@njit(cache=True, error_model="numpy")
def _measured_attitude(held, heading, out):
    """Fill ``out`` (3, 3) with the orientation of the IMU in the estimator's world, as measured."""
    x, y, z, w = held.imu_orientation
    R = np.empty((3, 3))
    R[0] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    R[1] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    R[2] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    c, s = heading
    for j in range(3):
        out[0, j] = c * R[0, j] - s * R[1, j]
        out[1, j] = s * R[0, j] + c * R[1, j]
        out[2, j] = R[2, j]


@njit(cache=True, error_model="numpy")
def _attitude(held, state, time, dt, jumped):
    """Turn the attitude by the gyro, and towards what the IMU says within ``time`` [s]."""
    measured = np.empty((3, 3))
    _measured_attitude(held, state.heading, measured)
    phi = dt * held.imu_angular_velocity
    turn = np.empty((3, 3))
    _exponential(phi, turn)
    predicted = np.empty((3, 3))
    _product(state.R, turn, predicted)
    # measured predicted^T turns from one to the other; to first order it is 1 + [phi]x, and second order is symmetric.
    error = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            error[i, j] = 0.0
            for k in range(3):
                error[i, j] += measured[i, k] * predicted[j, k]
    phi[0] = 0.5 * (error[2, 1] - error[1, 2])
    phi[1] = 0.5 * (error[0, 2] - error[2, 0])
    phi[2] = 0.5 * (error[1, 0] - error[0, 1])
    far = error[0, 0] + error[1, 1] + error[2, 2] < 1.0 + 2.0 * math.cos(LOST)
    if jumped or far or time < dt:
        state.R[...] = measured
        return
    _exponential(dt / time * phi, turn)
    _product(turn, predicted, state.R)


@njit(cache=True, error_model="numpy")
def _geometry(shape, held, R, pivot):
    """Return the :class:`Geometry` of this tick, with the IMU turned as ``R`` says and the feet's ``pivot`` (K, 2)."""
    feet = len(shape.foot_joint)
    joint_R = np.empty((3, 3))
    g = Geometry(
        np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.zeros(3), np.zeros(3),
        np.empty((feet, 3, 3)), np.empty((feet, 3)), np.empty((feet, 3)),
    )  # fmt: skip
    pose, twist = shape.poses[shape.imu_joint], shape.motions[shape.imu_joint]
    for x in range(3):
        for y in range(3):
            joint_R[x, y] = pose[3 * y + x]
    _product(joint_R, shape.imu_R, g.imu_R)
    _turned(joint_R, shape.imu_p, g.imu_p)
    local = twist[:3].copy()
    _point_velocity(twist[3:], shape.imu_p, local)
    _turned(joint_R, local, g.imu_v)
    w_joint = np.empty(3)
    _turned(joint_R, twist[3:], w_joint)
    _turned(g.imu_R, held.imu_angular_velocity, g.w)
    for i in range(3):
        g.imu_p[i] += pose[9 + i]
        g.w[i] -= w_joint[i]
        for j in range(3):
            g.base_R[i, j] = R[i, 0] * g.imu_R[j, 0] + R[i, 1] * g.imu_R[j, 1] + R[i, 2] * g.imu_R[j, 2]
    sole_R, arm, contact, seen = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(3)
    for k in range(feet):
        pose, twist = shape.poses[shape.foot_joint[k]], shape.motions[shape.foot_joint[k]]
        for x in range(3):
            for y in range(3):
                joint_R[x, y] = pose[3 * y + x]
        _product(joint_R, shape.sole_R[k], sole_R)
        _product(g.base_R, sole_R, g.feet_R[k])
        _turned(joint_R, shape.sole_p[k], arm)
        for i in range(3):
            seen[i] = arm[i] + pose[9 + i] - g.imu_p[i]
        _turned(g.base_R, seen, g.s[k])
        # The point that touches the ground, seen from the joint; balls touch it a radius below their centre.
        for i in range(3):
            contact[i] = arm[i] + sole_R[i, 0] * pivot[k, 0] + sole_R[i, 1] * pivot[k, 1]
            contact[i] -= shape.radius[k] * g.base_R[2, i]
            seen[i] = contact[i] + pose[9 + i] - g.imu_p[i]
        _turned(joint_R, twist[:3], local)
        _turned(joint_R, twist[3:], w_joint)
        _point_velocity(w_joint, contact, local)
        for i in range(3):
            local[i] -= g.imu_v[i]
        _point_velocity(g.w, seen, local)
        _turned(g.base_R, local, g.u[k])
    return g


@njit(cache=True, error_model="numpy")
def _wrenches(shape, held, base_R, feet_R, wrench):
    """Fill the wrench of the ground on every sole: the ankle's, moved, and what bears the foot's own weight."""
    local, arm = np.empty(3), np.empty(3)
    for k in range(len(wrench)):
        for r in range(6):
            wrench[k, r] = 0.0
            for c in range(6):
                wrench[k, r] += shape.ankle_to_sole[k, r, c] * held.foot_wrench[k, c]
        origin = shape.poses[shape.foot_joint[k]]
        for j in shape.bodies[k]:
            if j < 0:
                break
            pose = shape.poses[j]
            for i in range(3):
                local[i] = pose[9 + i] - origin[9 + i]
                for c in range(3):
                    local[i] += pose[3 * c + i] * shape.lever[j, c] - origin[3 * c + i] * shape.sole_p[k, c]
            # From the base to the world, and from there to the sole.
            _turned(base_R, local, arm)
            _turned_back(feet_R[k], arm, local)
            force = shape.mass[j] * shape.g * feet_R[k, 2]
            wrench[k, :3] += force
            _point_velocity(local, force, wrench[k, 3:])


@njit(cache=True, error_model="numpy")
def _place_pivot(vertices, n, pivot):
    """Move ``pivot`` (2,) to the nearest point of a convex polygon, blade or point with ``n`` vertices."""
    nearest = math.inf
    inside = n > 2
    x, y = pivot
    for a in range(n):
        b = a + 1 if a + 1 < n else 0
        ex = vertices[b, 0] - vertices[a, 0]
        ey = vertices[b, 1] - vertices[a, 1]
        dx = x - vertices[a, 0]
        dy = y - vertices[a, 1]
        if ex * dy - ey * dx < 0.0:
            inside = False
        t = min(max((dx * ex + dy * ey) / max(ex * ex + ey * ey, 1e-300), 0.0), 1.0)
        gap = math.hypot(dx - t * ex, dy - t * ey)
        if gap < nearest:
            nearest = gap
            pivot[0] = vertices[a, 0] + t * ex
            pivot[1] = vertices[a, 1] + t * ey
    if inside:
        pivot[0] = x
        pivot[1] = y


@njit(cache=True, error_model="numpy")
def _contacts(shape, state, result, tuning, dt):
    """Bring contacts, their ages and their pivots up to date."""
    for k in range(len(result.contact)):
        fz = result.wrench[k, 2]
        result.normal_force[k] = fz
        share = fz / shape.weight
        touching = result.contact[k]
        changing = share < tuning.contact_off if touching else share > tuning.contact_on
        state.beyond[k] = state.beyond[k] + dt if changing else 0.0
        # Half a tick of slack: stamps are rounded.
        if state.beyond[k] > tuning.debounce - 0.5 * dt and changing:
            result.contact[k] = not touching
            state.beyond[k] = 0.0
        state.age[k] = state.age[k] + dt if result.contact[k] else 0.0
        if share > tuning.contact_off and share > LEAST_SHARE:
            state.pivot[k, 0] = -result.wrench[k, 4] / fz
            state.pivot[k, 1] = result.wrench[k, 3] / fz
            _place_pivot(shape.vertices[k], shape.n_vertices[k], state.pivot[k])


@njit(cache=True, error_model="numpy")
def _predict(held, state, tuning, g, dt):
    """Move position and velocity of the IMU on by ``dt``."""
    x, P, R = state.x, state.P, state.R
    force = np.empty(3)
    a = np.empty(3)
    for i in range(3):
        force[i] = held.imu_linear_acceleration[i] - x[BIAS, i]
    _turned(R, force, a)
    a[2] -= g
    for i in range(3):
        x[P_IMU, i] += dt * (x[V_IMU, i] + 0.5 * dt * a[i])
        x[V_IMU, i] += dt * a[i]
    n = len(x)
    # F P F^T with F = 1 + dt on (p, v), -dt on (v, b), -dt^2 / 2 on (p, b).
    half = 0.5 * dt * dt
    for j in range(n):
        P[P_IMU, j] += dt * P[V_IMU, j] - half * P[BIAS, j]
        P[V_IMU, j] -= dt * P[BIAS, j]
    for j in range(n):
        P[j, P_IMU] += dt * P[j, V_IMU] - half * P[j, BIAS]
        P[j, V_IMU] -= dt * P[j, BIAS]
    P[V_IMU, V_IMU] += tuning.acceleration_noise**2 * dt
    P[BIAS, BIAS] += tuning.bias_noise**2 * dt


@njit(cache=True, error_model="numpy")
def _forget(state, row, like, variance):
    """Let ``row`` of the state be known as well as row ``like``, apart from ``variance``; -1: apart from all."""
    P = state.P
    for j in range(len(P)):
        P[row, j] = P[like, j] if like >= 0 else 0.0
        P[j, row] = P[row, j]
    P[row, row] = variance + (P[like, like] if like >= 0 else 0.0)


@njit(cache=True, error_model="numpy")
def _correct(state, plus, minus, seen, variance):
    """Correct the state by the measurement ``seen`` (3,) of row ``plus`` less row ``minus``, or of ``plus`` alone."""
    x, P = state.x, state.P
    n = len(x)
    h = np.empty(n)
    for j in range(n):
        h[j] = P[plus, j] - (P[minus, j] if minus >= 0 else 0.0)
    spread = h[plus] - (h[minus] if minus >= 0 else 0.0) + variance
    residual, bias = np.empty(3), np.empty(3)
    for i in range(3):
        residual[i] = seen[i] - x[plus, i] + (x[minus, i] if minus >= 0 else 0.0)
    _turned_back(state.R, residual, bias)
    for j in range(n):
        gain = h[j] / spread
        for i in range(3):
            x[j, i] += gain * (bias[i] if j == BIAS else residual[i])
        for i in range(n):
            P[i, j] -= gain * h[i]


@njit(cache=True, error_model="numpy")
def _roll(shape, state, feet_R, k):
    """Move the anchor of a foot that has turned about its pivot; balls roll on the ground."""
    old, new = state.feet_R[k], feet_R[k]
    x, y = state.pivot[k]
    anchor = state.x[ANCHORS + k]
    for i in range(3):
        anchor[i] -= (new[i, 0] - old[i, 0]) * x + (new[i, 1] - old[i, 1]) * y
    if shape.radius[k] > 0.0:
        # new old^T turns by phi, to first order; a ball goes on by phi x (radius z).
        for j in range(3):
            anchor[0] += 0.5 * shape.radius[k] * (new[0, j] * old[2, j] - new[2, j] * old[0, j])
            anchor[1] += 0.5 * shape.radius[k] * (new[1, j] * old[2, j] - new[2, j] * old[1, j])


@njit(cache=True, error_model="numpy")
def _write(shape, held, state, g, result):
    """Fill q and v of the result."""
    q, v = result.q, result.v
    for j in range(len(shape.idx_q)):
        q[shape.idx_q[j]] = held.joint_position[j]
        v[shape.idx_v[j]] = held.joint_velocity[j]
    arm = np.empty(3)
    _turned(g.base_R, g.imu_p, arm)
    rate = g.imu_v.copy()
    _point_velocity(g.w, g.imu_p, rate)
    local = np.empty(3)
    _turned_back(g.base_R, state.x[V_IMU], local)
    for i in range(3):
        q[i] = state.x[P_IMU, i] - arm[i]
        v[i] = local[i] - rate[i]
        v[3 + i] = g.w[i]
    quaternion = np.empty(4)
    to_quaternion(g.base_R, quaternion)
    # Of the two quaternions of a rotation the one near the last: what is differentiated must not jump.
    near = quaternion[0] * q[3] + quaternion[1] * q[4] + quaternion[2] * q[5] + quaternion[3] * q[6]
    q[3:7] = quaternion if near >= 0.0 else -quaternion


@njit(cache=True, error_model="numpy")
def start(shape, held, state, result, tuning, pose):
    """Begin at rest or in motion as the feet say: ``pose`` (4,) of the base, x, y, z [m], yaw [rad], or NaN."""
    feet = len(result.contact)
    state.heading[:] = 1.0, 0.0
    _measured_attitude(held, state.heading, state.R)
    for k in range(feet):
        state.pivot[k] = 0.0
        for i in range(shape.n_vertices[k]):
            state.pivot[k] += shape.vertices[k, i] / shape.n_vertices[k]
    g = _geometry(shape, held, state.R, state.pivot)
    if not math.isnan(pose[3]):
        turn = pose[3] - math.atan2(g.base_R[1, 0], g.base_R[0, 0])
        state.heading[:] = math.cos(turn), math.sin(turn)
        _measured_attitude(held, state.heading, state.R)
        g = _geometry(shape, held, state.R, state.pivot)
    _wrenches(shape, held, g.base_R, g.feet_R, result.wrench)
    loaded = False
    for k in range(feet):
        loaded = loaded or result.wrench[k, 2] > tuning.contact_on * shape.weight
    standing = 0
    state.x[...] = 0.0
    for k in range(feet):
        fz = result.wrench[k, 2]
        result.normal_force[k] = fz
        result.contact[k] = not loaded or fz > tuning.contact_on * shape.weight
        state.age[k] = tuning.settle if result.contact[k] else 0.0
        state.beyond[k] = 0.0
        standing += result.contact[k]
    arm = np.empty(3)
    _turned(g.base_R, g.imu_p, arm)
    for k in range(feet):
        for i in range(3):
            if math.isnan(pose[3]):
                centre = g.feet_R[k, i, 0] * state.pivot[k, 0] + g.feet_R[k, i, 1] * state.pivot[k, 1]
                state.x[P_IMU, i] -= (g.s[k, i] + centre) / feet
            if result.contact[k]:
                state.x[V_IMU, i] -= g.u[k, i] / standing
        if math.isnan(pose[3]):
            state.x[P_IMU, 2] += shape.radius[k] / feet
    if not math.isnan(pose[3]):
        for i in range(3):
            state.x[P_IMU, i] = pose[i] + arm[i]
    state.P[...] = 0.0
    state.P[V_IMU, V_IMU] = tuning.velocity_noise**2
    state.P[BIAS, BIAS] = tuning.bias_initial**2
    _place_feet(state, g, tuning)
    _write(shape, held, state, g, result)


@njit(cache=True, error_model="numpy")
def _place_feet(state, g, tuning):
    """Put all anchors where the feet are seen."""
    for k in range(len(g.s)):
        _place_foot(state, g, k, tuning)


@njit(cache=True, error_model="numpy")
def _place_foot(state, g, k, tuning):
    """Put the anchor of a foot where it is seen."""
    state.x[ANCHORS + k] = state.x[P_IMU] + g.s[k]
    _forget(state, ANCHORS + k, P_IMU, tuning.position_noise**2)
    state.feet_R[k] = g.feet_R[k]


@njit(cache=True, error_model="numpy")
def estimate(shape, held, state, result, tuning, dt, jumped):
    """Take one tick of ``dt`` [s]; after a jump of time, all but pose and bias starts anew."""
    _attitude(held, state, tuning.attitude_time, dt, jumped)
    g = _geometry(shape, held, state.R, state.pivot)
    _wrenches(shape, held, g.base_R, g.feet_R, result.wrench)
    _contacts(shape, state, result, tuning, dt)
    g = _geometry(shape, held, state.R, state.pivot)
    if jumped:
        _forget(state, V_IMU, -1, 1.0)
        _place_feet(state, g, tuning)
    else:
        _predict(held, state, tuning, shape.g, dt)
    for k in range(len(g.s)):
        row = ANCHORS + k
        if not result.contact[k] or state.age[k] < tuning.settle:
            _place_foot(state, g, k, tuning)
            continue
        share = result.normal_force[k] / shape.weight
        if share > tuning.contact_off:
            _roll(shape, state, g.feet_R, k)
            doubt = max(1.0, tuning.full_load / max(share, LEAST_SHARE)) ** 2
            state.P[row, row] += tuning.anchor_noise**2 * doubt * dt
            _correct(state, row, P_IMU, g.s[k], tuning.position_noise**2 * doubt)
            _correct(state, V_IMU, -1, -g.u[k], tuning.velocity_noise**2 * doubt)
        state.feet_R[k] = g.feet_R[k]
    _write(shape, held, state, g, result)
