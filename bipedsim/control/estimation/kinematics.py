"""Compiled kinematics of the estimator: attitude, feet relative to the IMU, sole wrenches, contacts."""

from __future__ import annotations

import math

from bipedsim.control.estimation.arrays import ANCHORS, FOOT_TIME, P_IMU, V_IMU, EstimatorArrays
from bipedsim.numerics import (
    accumulate,
    add_wrench,
    assign,
    cross,
    entry,
    exp3,
    from_quaternion,
    kernel,
    move_inside,
    mul,
    mul_t,
    product,
    turn,
    turn_axes,
)

POSITION, VELOCITY, ORIENTATION, GYRO, ACCELEROMETER, WRENCH = (1 << i for i in range(6))
"""Bits of invalid measurements."""
LOST = 0.1
"""Error of the attitude [rad] beyond which the measured attitude is adopted at once."""
SETTLING = 0.2
"""Time [s] after the start in which the attitude is the mean of the measurements and a prescribed heading is found."""
LEAST_SHARE = 0.01
"""Share of the weight below which a foot has no centre of pressure."""


@kernel
def _copy_if_finite(measured, held):
    """Copy a measurement (n,) if all of it is finite; return whether it is."""
    for i in range(len(measured)):
        if not math.isfinite(measured[i]):
            return False
    for i in range(len(measured)):
        held[i] = measured[i]
    return True


@entry
def take(estimation, position, velocity, quaternion, gyro, acceleration, wrench):
    """Store all valid measurements, the joints also in pinocchio's order; return the bits of invalid measurements."""
    e = estimation.arrays
    held = e.held
    bad = 0
    if not _copy_if_finite(position, held.joint_position):
        bad |= POSITION
    if not _copy_if_finite(velocity, held.joint_velocity):
        bad |= VELOCITY
    square = 0.0
    for i in range(4):
        square += quaternion[i] * quaternion[i]
    if 0.25 < square < 4.0:
        for i in range(4):
            held.imu_orientation[i] = quaternion[i] / math.sqrt(square)
    else:
        bad |= ORIENTATION
    if not _copy_if_finite(gyro, held.imu_angular_velocity):
        bad |= GYRO
    if not _copy_if_finite(acceleration, held.imu_linear_acceleration):
        bad |= ACCELEROMETER
    whole = True
    for k in range(len(wrench)):
        for i in range(6):
            whole = whole and math.isfinite(wrench[k, i])
    if whole:
        for k in range(len(wrench)):
            for i in range(6):
                held.foot_wrench[k, i] = wrench[k, i]
    else:
        bad |= WRENCH
    for j in range(len(e.shape.idx_q)):
        held.q[e.shape.idx_q[j]] = held.joint_position[j]
        held.v[e.shape.idx_v[j]] = held.joint_velocity[j]
    return bad


@kernel
def measured_attitude(e: EstimatorArrays, out):
    """Fill ``out`` (3, 3) with the measured orientation of the IMU in the estimator's world."""
    from_quaternion(e.held.imu_orientation, out)
    c, s = e.state.heading
    for j in range(3):
        first = out[0, j]
        out[0, j] = c * first - s * out[1, j]
        out[1, j] = s * first + c * out[1, j]


@kernel
def _turn_anchors(e: EstimatorArrays, R):
    """Rotate all anchors by ``R`` about the IMU, because they were placed with an attitude that is now corrected."""
    x, arm = e.state.x, e.work.a
    for row in range(ANCHORS, len(x)):
        for i in range(3):
            arm[i] = x[row, i] - x[P_IMU, i]
        assign(x[row], x[P_IMU])
        accumulate(x[row], mul(R, arm))


@kernel
def turn_attitude(e: EstimatorArrays, dt, bad, jumped):
    """Integrate the gyro into the attitude, and correct it towards the measured attitude within ``attitude_time``."""
    state = e.state
    R, measured, predicted, work = state.R, e.work.A, e.work.B, e.work.C
    phi = e.work.a
    exp3(e.held.imu_angular_velocity, dt, work)
    product(R, work, predicted)
    measured_attitude(e, measured)
    # measured predicted^T is the rotation between the two; up to third order its odd part is the rotation vector.
    trace = 0.0
    for i in range(3):
        for j in range(3):
            work[i, j] = measured[i, 0] * predicted[j, 0] + measured[i, 1] * predicted[j, 1]
            work[i, j] += measured[i, 2] * predicted[j, 2]
        trace += work[i, i]
    phi[0] = 0.5 * (work[2, 1] - work[1, 2])
    phi[1] = 0.5 * (work[0, 2] - work[2, 0])
    phi[2] = 0.5 * (work[1, 0] - work[0, 1])
    state.since[0] += dt
    # At the start the mean of all ticks is better than a constant gain.
    gain = dt / min(max(e.tuning.attitude_time, dt), state.since[0] + dt)
    if bad & ORIENTATION:
        gain = 0.0
    elif state.since[1] > 0.0 and state.since[0] < SETTLING:
        # The start prescribed the heading, so the measured yaw is aligned with it.
        c, s = state.heading
        yaw = -phi[2] * dt / (state.since[0] + dt)
        state.heading[0] = c * math.cos(yaw) - s * math.sin(yaw)
        state.heading[1] = s * math.cos(yaw) + c * math.sin(yaw)
        phi[2] = 0.0
    elif jumped or bad & GYRO or trace < 1.0 + 2.0 * math.cos(LOST):
        gain = 1.0
    if gain == 1.0:
        for i in range(3):
            for j in range(3):
                R[i, j] = measured[i, j]
        return
    exp3(phi, gain, work)
    product(work, predicted, R)
    if state.since[0] < SETTLING:
        _turn_anchors(e, work)


@kernel
def place_imu(e: EstimatorArrays):
    """Fill the pose and velocity of the IMU in the base, and the orientation and angular velocity of the base."""
    shape, kin = e.shape, e.kinematics
    pose, twist = shape.poses[shape.imu_joint], shape.motions[shape.imu_joint]
    a = e.work.a
    turn_axes(pose, shape.imu_R, kin.imu_R)
    assign(kin.imu_p, turn(pose, shape.imu_p))
    accumulate(kin.imu_p, pose[9:])
    assign(a, twist)
    accumulate(a, cross(twist[3:], shape.imu_p))
    assign(kin.imu_v, turn(pose, a))
    # The angular velocity of the base is the gyro's, less the contribution of the joints between base and IMU.
    assign(a, turn(pose, twist[3:]))
    assign(kin.w, mul(kin.imu_R, e.held.imu_angular_velocity))
    R = e.state.R
    for i in range(3):
        kin.w[i] -= a[i]
        for j in range(3):
            kin.base_R[i, j] = R[i, 0] * kin.imu_R[j, 0] + R[i, 1] * kin.imu_R[j, 1] + R[i, 2] * kin.imu_R[j, 2]


@kernel
def place_feet(e: EstimatorArrays):
    """Fill positions and orientations of the soles; call :func:`place_imu` first."""
    shape, kin = e.shape, e.kinematics
    sole_R, a, b = e.work.A, e.work.a, e.work.b
    for k in range(len(shape.foot_joint)):
        pose = shape.poses[shape.foot_joint[k]]
        turn_axes(pose, shape.sole_R[k], sole_R)
        product(kin.base_R, sole_R, kin.feet_R[k])
        assign(a, turn(pose, shape.sole_p[k]))
        for i in range(3):
            b[i] = a[i] + pose[9 + i] - kin.imu_p[i]
        assign(kin.sole[k], mul(kin.base_R, b))


@kernel
def slide_feet(e: EstimatorArrays):
    """Fill the velocity of each foot's contact point relative to the IMU; the pivots must be up to date."""
    shape, kin = e.shape, e.kinematics
    point, w, v = e.work.a, e.work.b, e.work.c
    for k in range(len(shape.foot_joint)):
        pose, twist = shape.poses[shape.foot_joint[k]], shape.motions[shape.foot_joint[k]]
        # The vector from the joint to the contact point, in the base; that of a ball is a radius below its centre.
        x, y = e.state.pivot[k]
        for i in range(3):
            w[i] = shape.sole_p[k, i] + shape.sole_R[k, i, 0] * x + shape.sole_R[k, i, 1] * y
        assign(point, turn(pose, w))
        for i in range(3):
            point[i] -= shape.radius[k] * kin.base_R[2, i]
        assign(v, turn(pose, twist))
        accumulate(v, cross(turn(pose, twist[3:]), point))
        for i in range(3):
            point[i] += pose[9 + i] - kin.imu_p[i]
            v[i] -= kin.imu_v[i]
        accumulate(v, cross(kin.w, point))
        assign(kin.slide[k], mul(kin.base_R, v))


@kernel
def find_wrenches(e: EstimatorArrays, dt):
    """Fill the ground reaction wrench on every sole: the ankle's, transformed, plus the wrench for the foot's own mass.

    A foot in contact needs its weight; a foot in the air also needs its acceleration. Rotational inertia is neglected.
    """
    shape, kin, wrench = e.shape, e.kinematics, e.result.wrench
    a, b, force = e.work.a, e.work.b, e.work.c
    needs = e.work.row
    for k in range(len(wrench)):
        for r in range(6):
            wrench[k, r] = 0.0
            for c in range(6):
                wrench[k, r] += shape.ankle_to_sole[k, r, c] * e.held.foot_wrench[k, c]
        for i in range(3):
            lag = e.state.x[V_IMU, i] + kin.slide[k, i] - e.state.smooth[k, i]
            b[i] = 0.0 if e.result.contact[k] else lag / FOOT_TIME
            e.state.smooth[k, i] += min(dt / FOOT_TIME, 1.0) * lag
        b[2] += shape.g
        assign(needs, mul_t(kin.feet_R[k], b))
        origin = shape.poses[shape.foot_joint[k]]
        for n in range(shape.bodies.shape[1]):
            body = shape.bodies[k, n]
            if body < 0:
                break
            pose = shape.poses[body]
            for i in range(3):
                a[i] = pose[9 + i] - origin[9 + i]
                for c in range(3):
                    a[i] += pose[3 * c + i] * shape.lever[body, c] - origin[3 * c + i] * shape.sole_p[k, c]
            # The lever is transformed from the base to the world, and from there to the sole.
            assign(a, mul_t(kin.feet_R[k], mul(kin.base_R, a)))
            for i in range(3):
                force[i] = shape.mass[body] * needs[i]
            add_wrench(wrench[k], force, a)


@kernel
def find_contacts(e: EstimatorArrays, dt):
    """Update contacts, their ages and their pivots."""
    state, result, tuning = e.state, e.result, e.tuning
    for k in range(len(result.contact)):
        fz = result.wrench[k, 2]
        result.normal_force[k] = fz
        share = fz / e.shape.weight
        touching = result.contact[k]
        changing = share < tuning.contact_off if touching else share > tuning.contact_on
        state.beyond[k] = state.beyond[k] + dt if changing else 0.0
        # Half a tick of tolerance is needed because time stamps are rounded.
        if changing and state.beyond[k] > tuning.debounce - 0.5 * dt:
            result.contact[k] = not touching
            state.beyond[k] = 0.0
        state.age[k] = state.age[k] + dt if result.contact[k] else 0.0
        if share > max(tuning.contact_off, LEAST_SHARE):
            state.pivot[k, 0] = -result.wrench[k, 4] / fz
            state.pivot[k, 1] = result.wrench[k, 3] / fz
            move_inside(e.shape.vertices[k], e.shape.n_vertices[k], state.pivot[k])
