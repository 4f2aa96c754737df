"""Walking: footsteps from a velocity command, a DCM plan, whole-body inverse dynamics, wrenches shared by the feet."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numba import njit
from numpy.typing import NDArray

from bipedsim.controllers.motions import quintic
from bipedsim.errors import ConfigError
from bipedsim.estimation import Estimator, EstimatorParams
from bipedsim.params import param
from bipedsim.robot import Robot
from bipedsim.robot_io import Command, Observation
from bipedsim.walking.dcm import evaluate
from bipedsim.walking.distribution import Distribution, DistributionParams
from bipedsim.walking.gait import Gait, GaitParams, yaw_of
from bipedsim.walking.polygon import clamp, convex_hull, margin
from bipedsim.walking.supervision import SupervisionParams, Supervisor, measured_zmp
from bipedsim.walking.swing import forward, height
from bipedsim.walking.whole_body import STANCE, SWING, Body, Feet, Targets, TaskParams, WholeBody

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ZmpParams(GaitParams, SupervisionParams, TaskParams, DistributionParams, EstimatorParams):
    """Parameters of :class:`ZmpController`."""

    com_height: float = param(0.0, "of the CoM over the soles; 0: as the robot stands", unit="m", low=0.0, high=3.0)
    ramp: float = param(1.0, "time to come from where the robot is to between the feet", unit="s", low=0.05, high=100.0)
    dcm_gain: float = param(1.5, "k of p = p_ref + (1 + k) (xi - xi_ref)", low=-1.0, high=20.0)
    height_stiffness: float = param(100.0, "position gain of the height of the CoM", unit="1/s^2", low=0.0)
    height_damping: float = param(20.0, "velocity gain of the height of the CoM", unit="1/s", low=0.0)
    touch_force: float = param(0.06, "share of the weight at which a swinging foot has landed", low=0.0, high=1.0)
    touch_time: float = param(0.003, "for which it must be carried", unit="s", low=0.0, high=0.1)
    touch_after: float = param(0.55, "share of the step before which it has not landed", low=0.0, high=1.0)
    late_speed: float = param(0.15, "at which a foot goes on down that has not landed in time", unit="m/s", low=0.0)
    fall_error: float = param(0.35, "error of the DCM that is taken for a fall", unit="m", low=0.05)


def _numbers(kind: type[Any], params: Any) -> Any:
    """Return the parameters of one part out of all."""
    return kind(**{f.name: getattr(params, f.name) for f in fields(kind)})


_ROOM = 0.4
"""Share of the narrowest half of a sole by which the planned ZMP may move to take over a new command."""


def _narrowest(robot: Robot) -> float:
    """Return the least distance [m] from the centre of a sole to its edge."""
    return min(float(sole.margin(sole.centre)) for sole in robot.soles)


class _Tick(NamedTuple):
    """What one tick works out; all arrays are overwritten by the next one.

    Attributes:
        zmp, xi: (2,) of the plan [m]. xi_now: (2,) measured. zmp_goal: (2,) of all forces, commanded.
        hull: (N, 2) polygon of support. corners: (N, 2) scratch.
        swing: (9,) height, its derivatives, share of the way over the ground and its derivatives; scratch.
    """

    zmp: Array
    xi: Array
    xi_now: Array
    zmp_goal: Array
    hull: Array
    corners: Array


@njit(cache=True)
def _support(feet: Feet, standing, vertices, counts, corners, hull) -> int:  # type: ignore[no-untyped-def]
    """Fill ``hull`` with the polygon of support of the feet that stand, over the ground; return its corners."""
    n = 0
    for k in range(standing.shape[0]):
        if standing[k] == STANCE:
            for i in range(counts[k]):
                for x in range(2):
                    corners[n, x] = (
                        feet.p[k, x] + feet.R[k, x, 0] * vertices[k, i, 0] + feet.R[k, x, 1] * vertices[k, i, 1]
                    )
                n += 1
    return convex_hull(corners, n, hull) if n else 0


@njit(cache=True)
def _swing_target(t, duration, begin, land, turn, start_R, apex, late, goal: Targets, k):  # type: ignore[no-untyped-def]
    """Fill the target of the swing foot ``k`` at ``t`` of ``duration`` [s]; afterwards it goes on down at ``late``."""
    x, v, a = forward(t, duration)
    for i in range(2):
        way = land[i] - begin[i]
        goal.p[k, i] = begin[i] + x * way
        goal.twist[k, i] = v * way
        goal.acceleration[k, i] = a * way
    z, vz, az = height(t, duration, begin[2], max(begin[2], land[2]) + apex, land[2])
    if t > duration:
        z -= late * (t - duration)
        vz = -late
    goal.p[k, 2] = z
    goal.twist[k, 2] = vz
    goal.acceleration[k, 2] = az
    angle = np.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
    axis = turn / angle if angle > 1e-9 else np.zeros(3)
    c = np.cos(angle * x)
    s = np.sin(angle * x)
    for col in range(3):
        r = start_R[:, col]
        along = axis[0] * r[0] + axis[1] * r[1] + axis[2] * r[2]
        goal.R[k, 0, col] = c * r[0] + s * (axis[1] * r[2] - axis[2] * r[1]) + (1.0 - c) * along * axis[0]
        goal.R[k, 1, col] = c * r[1] + s * (axis[2] * r[0] - axis[0] * r[2]) + (1.0 - c) * along * axis[1]
        goal.R[k, 2, col] = c * r[2] + s * (axis[0] * r[1] - axis[1] * r[0]) + (1.0 - c) * along * axis[2]
    for i in range(3):
        goal.twist[k, 3 + i] = v * turn[i]
        goal.acceleration[k, 3 + i] = a * turn[i]


@njit(cache=True)
def _stabilise(body: Body, goal: Targets, tick: _Tick, corners: int, swing_shift, numbers, ground) -> None:  # type: ignore[no-untyped-def]
    """Fill the commanded acceleration of the CoM from the plan and the measured DCM.

    Args:
        body, goal, tick: See the classes; ``tick.zmp`` and ``tick.xi`` hold the plan.
        corners: Of the polygon of support.
        swing_shift: (2,) kappa times the planned acceleration of the swing foot [m].
        numbers: omega, dcm_gain, edge, height_stiffness, height_damping.
        ground: Height [m] and velocity [m/s] that the CoM is to have.
    """
    omega, gain, edge, k_z, d_z = numbers
    for i in range(2):
        tick.xi_now[i] = body.com[i] + body.v_com[i] / omega
        tick.zmp_goal[i] = tick.zmp[i] + (1.0 + gain) * (tick.xi_now[i] - tick.xi[i]) + swing_shift[i]
    if corners:
        clamp(tick.hull, corners, edge, tick.zmp_goal)
    for i in range(2):
        goal.com[i] = omega * omega * (body.com[i] - (tick.zmp_goal[i] - swing_shift[i]))
    goal.com[2] = k_z * (ground[0] - body.com[2]) + d_z * (ground[1] - body.v_com[2])


class ZmpController:
    """Walks, turns, side-steps and stands from joint states, IMU and ankle wrenches.

    Args:
        robot: Free-flying, with two feet that are polygons.
        params: See :class:`ZmpParams`.
        dt: Control period [s].

    Attributes:
        estimate: Where the robot believes to be; see :class:`bipedsim.estimation.BaseEstimate`.
        readouts: Updated in place: ``zmp_margin`` [m] of the measured ZMP to the edge of the polygon of support,
            negative outside; ``dcm_error`` [m].
        fallen: Whether it has given up.

    Raises:
        ConfigError: The robot has not two such feet.
    """

    Params = ZmpParams

    def __init__(self, robot: Robot, params: ZmpParams, dt: float) -> None:
        if not robot.free_flyer or len(robot.soles) != 2 or min(s.n_vertices for s in robot.soles) < 3:
            raise ConfigError(f"controller 'zmp' needs a free-flying robot with two flat feet, {robot.name!r} has not")
        self._robot = robot
        self._estimator = Estimator(robot, _numbers(EstimatorParams, params), dt)
        self._whole = whole = WholeBody(robot, _numbers(TaskParams, params))
        self._distribution = Distribution(robot, _numbers(DistributionParams, params))
        if params.swing_inertia < 0.0:
            params = replace(params, swing_inertia=whole.swing_inertia(robot.q_nominal, 0))
        self._params = params
        whole.update(robot.q_nominal, np.zeros(robot.model.nv))
        feet = whole.feet
        left = int(np.argmax(feet.p[:, 1]))
        width = params.step_width or float(abs(feet.p[0, 1] - feet.p[1, 1]))
        stands = float(whole.body.com[2] - feet.p[:, 2].mean())
        self._height = params.com_height or stands
        self._omega = float(np.sqrt(whole.body.g / self._height))
        self._gait = Gait(_numbers(GaitParams, params), width, self._omega, left, _ROOM * _narrowest(robot))
        most = max(s.n_vertices for s in robot.soles)
        self._vertices = np.zeros((2, most, 2))
        for row, sole in zip(self._vertices, robot.soles, strict=True):
            row[: sole.n_vertices] = sole.vertices - sole.centre
        self._centres = np.array([s.centre for s in robot.soles])
        self._counts = np.array([s.n_vertices for s in robot.soles], dtype=np.int64)
        corners = np.zeros((2, 2 * most, 2))
        self._tick = _Tick(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2), *corners)
        self._numbers = (
            self._omega,
            params.dcm_gain,
            params.edge,
            params.height_stiffness,
            params.height_damping,
        )
        self._supervisor = Supervisor(_numbers(SupervisionParams, params), dt)
        self._shift = np.zeros(2)
        self._zmp = np.zeros(2)
        self._velocity = np.zeros(3)
        self._footsteps = np.zeros((0, 3))
        self._command = Command(np.zeros(robot.nu))
        self._dt = dt
        self.readouts = {"zmp_margin": 0.0, "dcm_error": 0.0}
        self.fallen = False
        self.estimate: Any = None
        self._warm_up()

    def _warm_up(self) -> None:
        """Load or compile what the first steps need, so that they cost what the others do."""
        observation = Observation.zeros(self._robot.nu, 2)
        observation.joint_position[:] = self._robot.posture
        observation.imu_linear_acceleration[2] = self._whole.body.g
        self.reset(observation)
        self.update(observation)
        gait, feet = self._gait, self._whole.feet
        xi, ahead = self._tick.xi.copy(), np.array([0.1, 0.0, 0.0])
        gait.start(0.0, xi, feet.p, feet.R, ahead)
        gait.lift_off(0.0, xi, feet.p, feet.R, ahead)
        self._whole.goal.foot[gait.swing] = SWING
        self.update(observation)
        self.reset(observation)

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        """Walk ahead and to the left [m/s] and turn to the left [rad/s] at this rate; zeros stop."""
        self._velocity[:] = vx, vy, wz

    def set_footsteps(self, steps: Array) -> None:
        """Take these steps once the robot stands, and stand again.

        Args:
            steps: (n, 3) x, y [m] and yaw [rad] of the centres of the soles, left and right in turn, in the frame
                midway between the feet as they stand then. The first one is of the left foot if its y is positive.

        Raises:
            ConfigError: Wrong shape, not finite, or a step that is too long or crosses the other foot.
        """
        self._gait.check_footsteps(steps)
        self._footsteps = np.array(steps, dtype=np.float64)

    @property
    def steps(self) -> int:
        """Steps begun since :meth:`reset`."""
        return self._gait.steps

    def reset(self, observation: Observation) -> None:
        """Stand where the robot is; the CoM is led to between the feet."""
        self._estimator.reset(observation)
        estimate = self._estimator.update(observation)
        self.estimate = estimate
        whole, gait = self._whole, self._gait
        whole.update(estimate.q, estimate.v)
        feet = whole.feet
        gait.reset(observation.t, whole.body.com[:2].copy(), feet.p, feet.R, self._params.ramp)
        whole.goal.foot[:] = STANCE
        self._standing = whole.goal.foot
        self._t0 = observation.t
        self._height0 = float(whole.body.com[2] - feet.p[:, 2].mean())
        R = np.asarray(pin.Quaternion(estimate.q[3:7]).toRotationMatrix())
        upright = pin.rpy.rpyToMatrix(0.0, 0.0, yaw_of(R))
        self._tilt = pin.log3(upright.T @ R)
        self._supervisor.reset()
        self._touch = 0.0
        self._swung = 0
        self._anchor = [float(feet.p[:, 2].mean())] * 2
        self.fallen = False

    def update(self, observation: Observation) -> Command:
        """Return the torques of one tick; the arrays are reused by the next one."""
        t = observation.t
        self.estimate = estimate = self._estimator.update(observation)
        q, v = estimate.q, estimate.v
        whole = self._whole
        whole.update(q, v)
        self._advance(t, estimate.normal_force)
        self._aim(t)
        try:
            a = whole.accelerations(q, v)
        except ArithmeticError:
            self.fallen = True
            return self._command
        contact = np.flatnonzero(whole.goal.foot == STANCE)
        if not self._distribution.solve(whole.body, whole.feet, a, contact):
            self.fallen = True
            return self._command
        whole.torques(a, self._distribution.wrench, self._command.tau_joint)
        limit = self._robot.effort_limit
        np.clip(self._command.tau_joint, -limit, limit, out=self._command.tau_joint)
        error = float(np.hypot(*(self._tick.xi_now - self._tick.xi)))
        self.readouts["dcm_error"] = error
        if error > self._params.fall_error:
            self.fallen = True
        return self._command

    def _moving(self) -> bool:
        """Whether the command asks to move."""
        x, y, turn = self._velocity
        return bool(max(abs(x), abs(y), abs(turn)) > 1e-3)

    def _advance(self, t: float, force: Array) -> None:
        """Go from phase to phase, by the clock and by what the feet feel."""
        gait, goal, feet, params = self._gait, self._whole.goal, self._whole.feet, self._params
        evaluate(gait.plan, self._omega, t, self._tick.zmp, self._tick.xi)
        if SWING in goal.foot:
            foot = int(np.argmax(goal.foot == SWING))
            if t > gait.lifted + params.touch_after * params.single_support:
                heavy = force[foot] > params.touch_force * self._robot.weight
                self._touch = self._touch + self._dt if heavy else 0.0
                if heavy:
                    self._supervisor.touched_down(t)
                if self._touch >= params.touch_time - 0.5 * self._dt:
                    goal.foot[foot] = STANCE
        if t < gait.end - 0.5 * self._dt:
            return
        if gait.phase == "single":
            gait.touch_down(t, feet.R)
            self._anchor = [float(feet.p[1 - self._swung, 2]), float(feet.p[self._swung, 2])]
        elif gait.phase == "double":
            self._swung = foot = gait.swing
            self._supervisor.step_begun()
            gait.lift_off(t, self._tick.xi, feet.p, feet.R, self._supervisor.share * self._velocity)
            self._anchor = [float(feet.p[1 - foot, 2])] * 2
            goal.foot[:] = STANCE
            goal.foot[foot] = SWING
            self._touch = 0.0
            evaluate(gait.plan, self._omega, t, self._tick.zmp, self._tick.xi)
        elif len(self._footsteps):
            gait.follow(t, self._tick.xi, feet.p, feet.R, self._footsteps)
            self._footsteps = self._footsteps[:0]
            evaluate(gait.plan, self._omega, t, self._tick.zmp, self._tick.xi)
        elif self._moving() and self._supervisor.share > 0.0:
            gait.start(t, self._tick.xi, feet.p, feet.R, self._velocity)
            evaluate(gait.plan, self._omega, t, self._tick.zmp, self._tick.xi)

    def _aim(self, t: float) -> None:
        """Fill the targets of all tasks."""
        gait, whole, params, tick = self._gait, self._whole, self._params, self._tick
        goal, feet, body = whole.goal, whole.feet, whole.body
        self._shift[:] = 0.0
        yaw = [yaw_of(feet.R[0]), yaw_of(feet.R[1])]
        turning = 0.0
        if SWING in goal.foot:
            foot = int(np.argmax(goal.foot == SWING))
            _swing_target(
                t - gait.lifted,
                params.single_support,
                gait.start_p,
                gait.land_p,
                gait.turn,
                gait.start_R,
                params.step_height,
                params.late_speed,
                goal,
                foot,
            )
            self._shift[:] = params.swing_inertia * goal.acceleration[foot, :2]
            yaw[foot] = yaw_of(goal.R[foot])
            turning = 0.5 * goal.twist[foot, 5]
        difference = np.arctan2(np.sin(yaw[1] - yaw[0]), np.cos(yaw[1] - yaw[0]))
        heading = yaw[0] + 0.5 * difference
        blend = 1.0 - quintic(t - self._t0, params.ramp)[0]
        goal.R_base[:] = pin.rpy.rpyToMatrix(0.0, 0.0, heading)
        if blend > 0.0:
            goal.R_base[:] = goal.R_base @ pin.exp3(blend * self._tilt)
        goal.w_base[2] = turning
        share = 1.0 if gait.phase == "single" else min((t - gait.begin) / (gait.end - gait.begin), 1.0)
        ground = self._anchor[0] + share * (self._anchor[1] - self._anchor[0])
        nx, ny, nz = gait.normal
        ground -= (nx * (body.com[0] - tick.zmp[0]) + ny * (body.com[1] - tick.zmp[1])) / nz
        rate = -(nx * body.v_com[0] + ny * body.v_com[1]) / nz
        lift = self._height + blend * (self._height0 - self._height)
        corners = _support(feet, goal.foot, self._vertices, self._counts, tick.corners, tick.hull)
        _stabilise(body, goal, tick, corners, self._shift, self._numbers, (ground + lift, rate))
        if corners and measured_zmp(feet, self.estimate.wrench, self._centres, 0.1 * self._robot.weight, self._zmp):
            found = margin(tick.hull, corners, self._zmp[0], self._zmp[1])
            self.readouts["zmp_margin"] = found
            self._supervisor.watch(t, found, self._moving())
