"""The estimator's compiled Kalman filter: the accelerometer predicts the IMU's motion, feet in contact correct it.

Rows of the state ``x`` are vectors of three axes with the common covariance ``P``: see docs/estimation.md.
"""

from __future__ import annotations

import math

from bipedsim.control.estimation.arrays import ANCHORS, BIAS, P_IMU, V_IMU, EstimatorArrays
from bipedsim.control.estimation.kinematics import (
    LEAST_SHARE,
    POSITION,
    VELOCITY,
    WRENCH,
    find_contacts,
    find_wrenches,
    measured_attitude,
    place_feet,
    place_imu,
    slide_feet,
    turn_attitude,
)
from bipedsim.numerics import (
    accumulate,
    assign,
    cross,
    entry,
    kernel,
    mul,
    mul_t,
    to_quaternion,
)

STARTLED = 1.0
"""Standard deviation of an unknown velocity [m/s], after a jump of time."""
AT_REST = 0.01
"""Standard deviation of the velocity [m/s] at the start of a robot at rest."""
LEVEL_AFTER = 0.02
"""Time [s] after an anchor has settled from which its height is used."""
LEVELLING = 0.1
"""Time constant [s] with which the ground is lowered to the height of the last foothold."""


@kernel
def _predict(e: EstimatorArrays, dt):
    """Predict velocity and position of the IMU after ``dt``; a time error of half a tick is within the noise."""
    x, P, R = e.state.x, e.state.P, e.state.R
    felt, a = e.work.a, e.work.b
    for i in range(3):
        felt[i] = e.held.imu_linear_acceleration[i] - x[BIAS, i]
    assign(a, mul(R, felt))
    a[2] -= e.shape.g
    for i in range(3):
        x[P_IMU, i] += dt * (x[V_IMU, i] + 0.5 * dt * a[i])
        x[V_IMU, i] += dt * a[i]
    n = len(x)
    # F P F^T: first the velocity row loses dt times the bias row, then the position row gains dt times the velocity.
    for j in range(n):
        P[V_IMU, j] -= dt * P[BIAS, j]
        P[P_IMU, j] += dt * P[V_IMU, j]
    for j in range(n):
        P[j, V_IMU] -= dt * P[j, BIAS]
        P[j, P_IMU] += dt * P[j, V_IMU]
    P[V_IMU, V_IMU] += e.tuning.acceleration_noise**2 * dt
    P[BIAS, BIAS] += e.tuning.bias_noise**2 * dt


@kernel
def _correct(e: EstimatorArrays, plus, minus, seen, sign, variance):
    """Correct the state by ``sign`` times ``seen`` (3,), a measurement of row ``plus`` less row ``minus``.

    A negative ``minus`` stands for no row.
    """
    x, P = e.state.x, e.state.P
    residual, in_imu, h = e.work.a, e.work.b, e.work.row
    n = len(x)
    for j in range(n):
        h[j] = P[plus, j] - (P[minus, j] if minus >= 0 else 0.0)
    spread = h[plus] - (h[minus] if minus >= 0 else 0.0) + variance
    for i in range(3):
        residual[i] = sign * seen[i] - x[plus, i] + (x[minus, i] if minus >= 0 else 0.0)
    assign(in_imu, mul_t(e.state.R, residual))
    for j in range(n):
        gain = h[j] / spread
        for i in range(3):
            x[j, i] += gain * (in_imu[i] if j == BIAS else residual[i])
        for i in range(n):
            P[j, i] -= gain * h[i]


@kernel
def _reset_anchor(e: EstimatorArrays, k):
    """Move the anchor of a foot to the measured position of the foot."""
    x, P = e.state.x, e.state.P
    row = ANCHORS + k
    for j in range(len(x)):
        P[row, j] = P[P_IMU, j]
        P[j, row] = P[row, j]
    P[row, row] = P[P_IMU, P_IMU] + e.tuning.position_noise**2
    for i in range(3):
        x[row, i] = x[P_IMU, i] + e.kinematics.sole[k, i]


@kernel
def _roll(e: EstimatorArrays, k):
    """Move the anchor of a foot that has turned about its pivot; ball feet roll on the ground."""
    old, new = e.state.feet_R[k], e.kinematics.feet_R[k]
    anchor = e.state.x[ANCHORS + k]
    x, y = e.state.pivot[k]
    radius = e.shape.radius[k]
    for i in range(3):
        anchor[i] -= (new[i, 0] - old[i, 0]) * x + (new[i, 1] - old[i, 1]) * y
    if radius > 0.0:
        # new old^T is a rotation by phi, to first order; the centre of the ball moves by phi x (radius z).
        for j in range(3):
            anchor[0] += 0.5 * radius * (new[0, j] * old[2, j] - new[2, j] * old[0, j])
            anchor[1] += 0.5 * radius * (new[1, j] * old[2, j] - new[2, j] * old[1, j])


@kernel
def _level(e: EstimatorArrays, k):
    """Compare the height of a new foothold with the last one; a rise within the tilt error counts as level ground.

    The IMU's tilt has an error of some milliradians. Without this correction the estimate would climb or sink while the
    robot walks.
    """
    last = e.state.foothold
    point = e.work.a
    R, pivot = e.kinematics.feet_R[k], e.state.pivot[k]
    for i in range(3):
        point[i] = e.state.x[ANCHORS + k, i] + R[i, 0] * pivot[0] + R[i, 1] * pivot[1]
    point[2] -= e.shape.radius[k]
    rise = point[2] - last[2]
    distance = math.hypot(point[0] - last[0], point[1] - last[1])
    if e.tuning.level_slope > 0.0 and abs(rise) < e.tuning.level_slope * distance + 3.0 * e.tuning.position_noise:
        last[3] += rise
    for i in range(3):
        last[i] = point[i]


@kernel
def _lower(e: EstimatorArrays, dt):
    """Lower robot, anchors and last foothold together, smoothly."""
    last = e.state.foothold
    step = last[3] * min(dt / LEVELLING, 1.0)
    last[3] -= step
    last[2] -= step
    for j in range(len(e.state.x)):
        if j != V_IMU and j != BIAS:
            e.state.x[j, 2] -= step


@kernel
def _slides(e: EstimatorArrays, k):
    """Return whether the contact point of a foot moves faster than that of a foot at rest."""
    square = 0.0
    for i in range(3):
        square += (e.state.x[V_IMU, i] + e.kinematics.slide[k, i]) ** 2
    return square > e.tuning.rest_speed**2


@kernel
def _correct_by_foot(e: EstimatorArrays, k, dt, bad):
    """Correct the state by a foot that has been in contact for longer than the settle time."""
    tuning = e.tuning
    share = e.result.normal_force[k] / e.shape.weight
    if share < tuning.contact_off or bad & (POSITION | WRENCH):
        return
    _roll(e, k)
    row = ANCHORS + k
    uncertainty = max(1.0, tuning.full_load / max(share, LEAST_SHARE)) ** 2
    e.state.P[row, row] += tuning.anchor_noise**2 * uncertainty * dt
    _correct(e, row, P_IMU, e.kinematics.sole[k], 1.0, tuning.position_noise**2 * uncertainty)
    if not bad & VELOCITY:
        _correct(e, V_IMU, -1, e.kinematics.slide[k], -1.0, tuning.velocity_noise**2 * uncertainty)


@kernel
def _write(e: EstimatorArrays):
    """Fill q and v of the result."""
    q, v = e.result.q, e.result.v
    kin, held = e.kinematics, e.held
    rate = e.work.a
    for j in range(len(e.shape.idx_q)):
        q[e.shape.idx_q[j]] = held.joint_position[j]
        v[e.shape.idx_v[j]] = held.joint_velocity[j]
    arm = mul(kin.base_R, kin.imu_p)
    local = mul_t(kin.base_R, e.state.x[V_IMU])
    assign(rate, kin.imu_v)
    accumulate(rate, cross(kin.w, kin.imu_p))
    for i in range(3):
        q[i] = e.state.x[P_IMU, i] - arm[i]
        v[i] = local[i] - rate[i]
        v[3 + i] = kin.w[i]
    quaternion = e.work.row
    to_quaternion(kin.base_R, quaternion)
    # The sign of the quaternion follows the last one, because its derivative must not jump.
    near = quaternion[0] * q[3] + quaternion[1] * q[4] + quaternion[2] * q[5] + quaternion[3] * q[6]
    sign = 1.0 if near >= 0.0 else -1.0
    for i in range(4):
        q[3 + i] = sign * quaternion[i]


@kernel
def _find_first_contacts(e: EstimatorArrays):
    """Find the feet in contact at the start (all if no foot is loaded), and the velocity that follows from them."""
    feet = len(e.result.contact)
    threshold = e.tuning.contact_on * e.shape.weight
    loaded = False
    for k in range(feet):
        e.result.normal_force[k] = e.result.wrench[k, 2]
        loaded = loaded or e.result.wrench[k, 2] > threshold
    standing = 0
    for k in range(feet):
        e.result.contact[k] = not loaded or e.result.wrench[k, 2] > threshold
        e.state.age[k] = e.tuning.settle_time if e.result.contact[k] else 0.0
        e.state.beyond[k] = 0.0
        standing += e.result.contact[k]
    speed = 0.0
    for i in range(3):
        e.state.x[V_IMU, i] = 0.0
        for k in range(feet):
            if e.result.contact[k]:
                e.state.x[V_IMU, i] -= e.kinematics.slide[k, i] / standing
        speed += e.state.x[V_IMU, i] ** 2
    # Nearly all robots start at rest, so a velocity within the noise is set to zero.
    moving = speed > (3.0 * e.tuning.velocity_noise) ** 2
    for i in range(3):
        if not moving:
            e.state.x[V_IMU, i] = 0.0
    e.state.P[V_IMU, V_IMU] = e.tuning.velocity_noise**2 if moving else AT_REST**2


@entry
def start(estimation, pose):
    """Initialise with ``pose`` (4,) of the base: x, y, z [m] and yaw [rad], or NaN for feet about the origin."""
    e = estimation.arrays
    state, shape, kin, x = e.state, e.shape, e.kinematics, e.state.x
    feet = len(e.result.contact)
    prescribed = not math.isnan(pose[0])
    state.since[0] = 0.0
    state.since[1] = 1.0 if prescribed else 0.0
    state.foothold[:3] = math.nan
    state.foothold[3] = 0.0
    state.heading[0], state.heading[1] = 1.0, 0.0
    measured_attitude(e, state.R)
    place_imu(e)
    if prescribed:
        yaw = pose[3] - math.atan2(kin.base_R[1, 0], kin.base_R[0, 0])
        state.heading[0], state.heading[1] = math.cos(yaw), math.sin(yaw)
        measured_attitude(e, state.R)
        place_imu(e)
    place_feet(e)
    for k in range(feet):
        for i in range(2):
            state.pivot[k, i] = 0.0
            for n in range(shape.n_vertices[k]):
                state.pivot[k, i] += shape.vertices[k, n, i] / shape.n_vertices[k]
    slide_feet(e)
    # Contacts are still unknown, and the wrenches are computed as if all feet were in contact.
    for k in range(feet):
        e.result.contact[k] = True
    find_wrenches(e, 0.0)
    for i in range(len(x)):
        for j in range(len(x)):
            state.P[i, j] = 0.0
    _find_first_contacts(e)
    arm = mul(kin.base_R, kin.imu_p)
    for i in range(3):
        x[P_IMU, i] = pose[i] + arm[i] if prescribed else 0.0
        x[BIAS, i] = 0.0
        for k in range(feet):
            if not prescribed:
                # The origin is midway between the feet, on the ground.
                centre = kin.feet_R[k, i, 0] * state.pivot[k, 0] + kin.feet_R[k, i, 1] * state.pivot[k, 1]
                x[P_IMU, i] -= (kin.sole[k, i] + centre - (shape.radius[k] if i == 2 else 0.0)) / feet
    for k in range(feet):
        for i in range(3):
            state.smooth[k, i] = x[V_IMU, i] + kin.slide[k, i]
    state.P[BIAS, BIAS] = e.tuning.bias_initial**2
    _reset_anchors(e, True)
    _write(e)


@kernel
def _reset_anchors(e: EstimatorArrays, all_feet):
    """Move the anchors of all feet, or of feet that are not settled, to the measured feet; store the orientations."""
    for k in range(len(e.result.contact)):
        if all_feet or not e.result.contact[k] or e.state.age[k] < e.tuning.settle_time:
            _reset_anchor(e, k)
        for i in range(3):
            for j in range(3):
                e.state.feet_R[k, i, j] = e.kinematics.feet_R[k, i, j]


@entry
def estimate(estimation, dt, bad, jumped):
    """Process one tick of ``dt`` [s] without the measurements ``bad``; after a jump of time the filter starts anew."""
    e = estimation.arrays
    turn_attitude(e, dt, bad, jumped)
    place_imu(e)
    place_feet(e)
    slide_feet(e)
    if not jumped:
        _predict(e, dt)
    if not bad & WRENCH:
        find_wrenches(e, 0.0 if jumped or bad & VELOCITY else dt)
        find_contacts(e, dt)
        # The pivots have changed, so the velocities are computed again.
        slide_feet(e)
    if jumped:
        P = e.state.P
        for j in range(len(P)):
            P[V_IMU, j] = P[j, V_IMU] = 0.0
        P[V_IMU, V_IMU] = STARTLED**2
        _reset_anchors(e, True)
    for k in range(len(e.result.contact)):
        age = e.state.age[k]
        if not e.result.contact[k] or age < e.tuning.settle_time:
            continue
        if _slides(e, k):
            e.state.age[k] = 0.0
            continue
        _correct_by_foot(e, k, dt, bad)
        if age - dt < e.tuning.settle_time + LEVEL_AFTER <= age:
            _level(e, k)
    _reset_anchors(e, False)
    _lower(e, dt)
    _write(e)
