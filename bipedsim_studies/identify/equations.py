"""Write the equations of motion of a robot between its ankle sensors and its IMU, and their derivatives.

All that enters is measured. The accelerometer gives the acceleration of the trunk against gravity, so that neither its
attitude nor its velocity is needed. The robot is cut at the ankle sensors, whose wrenches act on what is above them.
Friction and ground below do not enter. A foot in the air adds six equations: its sensor feels nothing but the foot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.lib.stride_tricks import sliding_window_view

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags, Indices
from bipedsim.sim import trunk_joint
from bipedsim_studies.identify.bodies import body_and_slope
from bipedsim_studies.identify.parameters import OF_JOINTS, Parameters
from bipedsim_studies.identify.signals import HANN, TAPS, Signals

FREE = 0.01
"""Distance from a position limit [rad] within which a joint may be in contact with it. The torque is not measured."""
SLIPS, MOVES = 0.9, 0.02
"""Share of the dry friction and speed [rad/s] from which a joint counts as slipping. The friction of a joint at rest,
or of one that creeps by less than encoders resolve, is not known."""


class Rows(NamedTuple):
    """Store equations at n times: R = nv + 6 K rows of nv equations of motion and six for each of K feet.

    Attributes:
        residual: (n, R) zero for true parameters and exact measurements [N.m], [N].
        slope: (n, R, p) its derivatives with respect to the parameters. Those of a foot leave out encoders and IMU, on
            which its weight hardly depends. Encoders between base and IMU leave out that they turn the IMU.
        noise: (n, R, 6 + nu + 6 K) with respect to accelerometer, angular and joint accelerations, and wrenches.
        used: (n, R) whether the equation holds at this time.
    """

    residual: Array
    slope: Array
    noise: Array
    used: Flags


class Equations:
    """Evaluate the equations of a robot.

    Args:
        robot: The robot as described; its base is free and no chain is closed.
        parameters: See :func:`bipedsim_studies.identify.parameters_of`.

    Raises:
        ConfigError: The robot has closed chains, joints without drives, a fixed base, no foot, or a foot of several
            bodies below its sensor.
    """

    def __init__(self, robot: Robot, parameters: Parameters) -> None:
        passive = robot.model.nv - robot.nu - 6 * robot.free_flyer
        if robot.loops or passive or not robot.free_flyer or not robot.soles:
            of_joints = "closed chains" if robot.loops else "joints without drives" if passive else ""
            what = of_joints or ("no feet" if robot.free_flyer else "a fixed base")
            raise ConfigError(
                f"has {what}; identification needs a tree of driven joints with a free base and feet", robot.name
            )
        self.robot, self.parameters = robot, parameters
        # Without gravity, which the accelerometer contains, and without rotors, which are parameters.
        self._model = pin.Model(robot.model)
        self._model.gravity.linear = np.zeros(3)
        self._model.armature = np.zeros(robot.model.nv)
        # A load cell in the sole has no mass below it.
        self._hangs = [not sole.load_cell for sole in robot.soles]
        ankles = [joint for joint, hangs in zip(robot.ankle_joint_ids, self._hangs, strict=True) if hangs]
        self._below = [not set(chain).isdisjoint(ankles) for chain in robot.model.supports]
        if sum(self._below) > len(ankles) or not set(robot.ankle_joint_ids) <= set(parameters.bodies):
            raise ConfigError("a foot has joints or no mass below its sensor, which is not supported yet", robot.name)
        limits = robot.model.lowerPositionLimit, robot.model.upperPositionLimit
        self._free = limits[0][robot.idx_q] + FREE, limits[1][robot.idx_q] - FREE
        # The force of a gantry is not measured. It acts on the trunk, and so on the joints between root and trunk.
        to_trunk = [robot.model.joints[joint] for joint in list(robot.model.supports[trunk_joint(robot)])[1:]]
        self._to_trunk = [joint.idx_v + i for joint in to_trunk for i in range(joint.nv)]
        self._sensor = [placement.toDualActionMatrix() for placement in robot.placement_joint_ankle]
        self.n_rows = robot.model.nv + 6 * len(robot.soles)

    def rows(self, signals: Signals, values: Array) -> Rows:
        """Return the equations for the parameters ``values`` (p,), through the second smoothing window."""
        n, nv, feet = len(signals), self._model.nv, len(self.robot.soles)
        columns = 6 + self.robot.nu + 6 * feet
        residual, slope = np.zeros((n, self.n_rows)), np.zeros((n, self.n_rows, len(values)))
        noise = np.zeros((n, self.n_rows, columns))
        at_time = _AtTime(self, values)
        for k in range(n):
            at_time.fill(signals, k, residual[k], slope[k], noise[k])
        used = np.ones((n, self.n_rows), dtype=bool)
        used[:, nv:] = np.repeat(signals.airborne & self._hangs, 6, axis=1) & ~signals.lacking.wrenches.ravel()
        free = (signals.q > self._free[0]) & (signals.q < self._free[1])
        used[:, self.robot.idx_v] = (np.abs(signals.dry) > SLIPS) & (np.abs(signals.v) > MOVES) & free
        used[:, self.robot.idx_v] &= ~signals.lacking.efforts
        used[np.ix_(signals.held, self._to_trunk)] = False
        middle = slice(TAPS // 2, n - TAPS // 2)
        return Rows(
            sliding_window_view(residual, TAPS, axis=0) @ HANN,
            sum(weight * slope[i : n - TAPS + 1 + i] for i, weight in enumerate(HANN)),
            noise[middle],
            np.all(sliding_window_view(used, TAPS, axis=0), axis=-1),
        )

    def feet(self, signals: Signals, values: Array) -> Iterator[tuple[pin.Data, Array, Array]]:
        """Yield the motion of the robot and the forces on its feet at each time, through the first smoothing window.

        Args:
            signals: Signals of a recording.
            values: (p,) parameters.

        Yields:
            Data with the placements, velocities and accelerations of all joints, which the next time overwrites. Its
            base is at the origin, has no linear velocity, and accelerates against gravity. Then the wrenches (K, 6) of
            the ground on the feet, in the frames of the joints that move them, and their derivatives (K, 6, 16) with
            respect to the numbers :attr:`of_feet`.
        """
        at_time = _AtTime(self, values)
        for k in range(len(signals)):
            yield at_time.feet(signals, k)

    @property
    def of_feet(self) -> Indices:
        """Indices (K, 16) of the offsets of each ankle sensor (6) and of the body of each foot (10)."""
        p = self.parameters
        bodies = [p.of_body[p.bodies.index(joint)] for joint in self.robot.ankle_joint_ids]
        return np.hstack([p.at["force_offset"], p.at["moment_offset"], np.stack(bodies)])


class _AtTime:
    """Fill the equations of one time for fixed parameters."""

    def __init__(self, equations: Equations, values: Array) -> None:
        self._e, self._values = equations, values
        robot, parameters, at = equations.robot, equations.parameters, equations.parameters.at
        self._bodies = [
            body_and_slope(robot.model.inertias[joint], values[columns])
            for joint, columns in zip(parameters.bodies, parameters.of_body, strict=True)
        ]
        self._upper = pin.Model(equations._model)
        for joint, (inertia, _) in zip(parameters.bodies, self._bodies, strict=True):
            self._upper.inertias[joint] = pin.Inertia.Zero() if equations._below[joint] else inertia
        self._data = self._upper.createData()
        self._forces = pin.StdVec_Force()
        self._forces.extend([pin.Force.Zero() for _ in range(robot.model.njoints)])
        self._q, self._v, self._a = pin.neutral(robot.model), np.zeros(robot.model.nv), np.zeros(robot.model.nv)
        self._of_joints = {kind: (at[kind][:, 0], values[at[kind][:, 0]]) for kind in OF_JOINTS}
        rotation = values[at["imu_rotation"][0]]
        self._turn = pin.exp3(rotation)
        self._turning = self._turn @ pin.Jexp3(rotation)
        self._offset = values[at["accelerometer_offset"][0]]
        self._imu_delay, self._effort_delay, self._wrench_delay = (
            float(values[at[name][0, 0]]) for name in ("imu_delay", "effort_delay", "wrench_delay")
        )
        self._damping = robot.joint_damping[robot.idx_v]

    def _move(self, signals: Signals, k: int) -> tuple[Array, Array, Array]:
        """Set q, v and a of the robot from its encoders and IMU; return axes (3, 3), measured accelerations."""
        robot, model, data = self._e.robot, self._upper, self._data
        q, v, a = self._q, self._v, self._a
        frame, joint = robot.placement_joint_imu, robot.imu_joint_id
        q[robot.idx_q] = signals.q[k] - self._of_joints["encoder_offset"][1]
        v[:6], a[:6] = 0.0, 0.0
        v[robot.idx_v], a[robot.idx_v] = signals.v[k], signals.a[k]
        turn, delay = self._turn, self._imu_delay
        gyro = turn @ (signals.gyro[k] + delay * signals.gyro_rate[k])
        gyro_rate = turn @ (signals.gyro_rate[k] + delay * signals.gyro_jerk[k])
        accelerometer = turn @ (signals.accelerometer[k] + delay * signals.accelerometer_rate[k])
        pin.forwardKinematics(model, data, q, v, a)
        axes = data.oMi[joint].rotation @ frame.rotation
        v[3:6] = axes @ (gyro - frame.actInv(data.v[joint]).angular)
        pin.forwardKinematics(model, data, q, v, a)
        a[3:6] = axes @ (gyro_rate - frame.actInv(data.a[joint]).angular)
        pin.forwardKinematics(model, data, q, v, a)
        velocity, acceleration = frame.actInv(data.v[joint]), frame.actInv(data.a[joint])
        classical = acceleration.linear + np.cross(velocity.angular, velocity.linear)
        a[:3] = axes @ (accelerometer - self._offset - classical)
        return axes, accelerometer, gyro_rate

    def fill(self, signals: Signals, k: int, residual: Array, slope: Array, noise: Array) -> None:
        """Fill residual (R,), slope (R, p) and noise (R, 6 + nu + 6 K) at time ``k``."""
        e, robot, model, data = self._e, self._e.robot, self._upper, self._data
        at, nv, iv, nu = e.parameters.at, model.nv, robot.idx_v, robot.nu
        axes, accelerometer, gyro_rate = self._move(signals, k)
        q, v, a = self._q, self._v, self._a
        wrenches = self._wrenches(signals, k)
        for joint, transform, wrench in zip(robot.ankle_joint_ids, e._sensor, wrenches, strict=True):
            self._forces[joint] = pin.Force(transform @ wrench)
        pin.computeRNEADerivatives(model, data, q, v, a, self._forces)
        residual[:nv] = data.tau
        slope[:nv, at["encoder_offset"][:, 0]] = -data.dtau_dq[:, iv]
        mass = np.triu(data.M) + np.triu(data.M, 1).T
        regressor = pin.computeJointTorqueRegressor(model, data, q, v, a)
        for joint, columns, (_, derivative) in zip(
            e.parameters.bodies, e.parameters.of_body, self._bodies, strict=True
        ):
            if not e._below[joint]:
                slope[:nv, columns] = regressor[:, 10 * (joint - 1) : 10 * joint] @ derivative
        self._drives(signals, k, residual, slope)
        linear, angular = mass[:, :3] @ axes, mass[:, 3:6] @ axes
        slope[:nv, at["accelerometer_offset"][0]] = -linear
        turned = linear @ pin.skew(accelerometer) + angular @ pin.skew(gyro_rate)
        slope[:nv, at["imu_rotation"][0]] = -turned @ self._turning
        changes = linear @ self._turn @ signals.accelerometer_rate[k] + angular @ self._turn @ signals.gyro_jerk[k]
        slope[:nv, at["imu_delay"][0, 0]] = changes
        noise[:nv, :3], noise[:nv, 3:6], noise[:nv, 6 : 6 + nu] = linear, angular, mass[:, iv]
        noise[iv, 6 + np.arange(nu)] += self._of_joints["armature"][1]
        pin.computeJointJacobians(model, data, q)
        for foot in range(len(wrenches)):
            self._foot(signals, k, foot, wrenches[foot], residual, slope, noise)

    def feet(self, signals: Signals, k: int) -> tuple[pin.Data, Array, Array]:
        """Return what :meth:`Equations.feet` yields, at time ``k``."""
        e, data = self._e, self._data
        self._move(signals, k)
        pin.forwardKinematics(self._upper, data, self._q, self._v, self._a)
        ground, slope = np.zeros((len(e._sensor), 6)), np.zeros((len(e._sensor), 6, 16))
        for foot, (joint, wrench) in enumerate(zip(e.robot.ankle_joint_ids, self._wrenches(signals, k), strict=True)):
            ground[foot], slope[foot, :, :6] = e._sensor[foot] @ wrench, -e._sensor[foot]
            if e._hangs[foot]:
                inertia, derivative = self._bodies[e.parameters.bodies.index(joint)]
                regressor = pin.bodyRegressor(data.v[joint], data.a[joint])
                ground[foot] += regressor @ inertia.toDynamicParameters()
                slope[foot, :, 6:] = regressor @ derivative
        return data, ground, slope

    def _wrenches(self, signals: Signals, k: int) -> Array:
        """Return the true wrenches (K, 6) of the ankle sensors."""
        at = self._e.parameters.at
        offsets = self._values[np.hstack([at["force_offset"], at["moment_offset"]])]
        return signals.wrench[k] + self._wrench_delay * signals.wrench_rate[k] - offsets

    def _drives(self, signals: Signals, k: int, residual: Array, slope: Array) -> None:
        """Add rotors, friction and efforts to the rows of the joints."""
        iv, joints = self._e.robot.idx_v, self._of_joints
        effort = signals.effort[k] + self._effort_delay * signals.effort_rate[k]
        v, a, dry = signals.v[k], signals.a[k], signals.dry[k]
        gain = joints["torque_gain"][1]
        residual[iv] += joints["armature"][1] * a + (self._damping + joints["viscous_friction"][1]) * v
        residual[iv] += joints["coulomb_friction"][1] * dry - gain * effort - joints["torque_offset"][1]
        derivatives = {"armature": a, "viscous_friction": v, "coulomb_friction": dry, "torque_gain": -effort}
        for kind, derivative in {**derivatives, "torque_offset": -1.0}.items():
            slope[iv, joints[kind][0]] = derivative
        slope[iv, self._e.parameters.at["effort_delay"][0, 0]] = -gain * signals.effort_rate[k]

    def _foot(
        self, signals: Signals, k: int, foot: int, wrench: Array, residual: Array, slope: Array, noise: Array
    ) -> None:
        """Fill the derivatives with respect to the sensor of a foot, and the equations of the foot in the air."""
        e, robot, data = self._e, self._e.robot, self._data
        at, nv, nu, joint = e.parameters.at, self._upper.nv, robot.nu, robot.ankle_joint_ids[foot]
        local = pin.getJointJacobian(self._upper, data, joint, pin.ReferenceFrame.LOCAL)
        lever = local.T @ e._sensor[foot]
        offsets = np.concatenate([at["force_offset"][foot], at["moment_offset"][foot]])
        rows, columns = slice(nv + 6 * foot, nv + 6 * foot + 6), slice(6 + nu + 6 * foot, 12 + nu + 6 * foot)
        delay = at["wrench_delay"][0, 0]
        slope[:nv, offsets], noise[:nv, columns] = lever, -lever
        slope[:nv, delay] -= lever @ signals.wrench_rate[k, foot]
        n = e.parameters.bodies.index(joint)
        inertia, derivative = self._bodies[n]
        to_sensor = np.linalg.inv(e._sensor[foot])
        regressor = to_sensor @ pin.bodyRegressor(data.v[joint], data.a[joint])
        residual[rows] = wrench + regressor @ inertia.toDynamicParameters()
        slope[rows, e.parameters.of_body[n]] = regressor @ derivative
        slope[rows, offsets], noise[rows, columns] = -np.eye(6), np.eye(6)
        slope[rows, delay] = signals.wrench_rate[k, foot]
