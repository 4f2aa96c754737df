"""Walking controller: footsteps, DCM plan, whole-body inverse dynamics, and wrenches distributed over the feet."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.config import param, part_of
from bipedsim.control.base import fitting, refuse_loops
from bipedsim.control.estimation import Estimator, EstimatorParams
from bipedsim.control.loads import TOUCHES
from bipedsim.control.walking.ankle_limits import sole_polygons
from bipedsim.control.walking.cadence import StepTiming
from bipedsim.control.walking.catching import LEAST_ERROR, CatchParams, CatchStep, best_landing, must_step
from bipedsim.control.walking.dcm import evaluate
from bipedsim.control.walking.distribution import Distribution, DistributionParams
from bipedsim.control.walking.footsteps import yaw_of
from bipedsim.control.walking.gait import WalkGait
from bipedsim.control.walking.kicking import KickParams, route_of
from bipedsim.control.walking.reference import Reference, SolePolygons, TickScalars, WalkArrays, WalkLaw, aim
from bipedsim.control.walking.shown_plan import ShownPlan
from bipedsim.control.walking.stride import GaitBuild, GaitParams, farthest
from bipedsim.control.walking.supervision import SupervisionParams, Supervisor
from bipedsim.control.walking.terrain import Terrain, TerrainParams
from bipedsim.control.walking.whole_body import STANCE, SWING, TaskParams, WholeBody
from bipedsim.errors import ConfigError, warn_controller
from bipedsim.ground import get_ground
from bipedsim.model import Robot, reach, sole_placements
from bipedsim.numerics import Array, box, quintic, zeros_of
from bipedsim.sim import Command, Observation


@dataclass(frozen=True)
class ZmpParams(
    GaitParams,
    TerrainParams,
    SupervisionParams,
    CatchParams,
    KickParams,
    TaskParams,
    DistributionParams,
    EstimatorParams,
):
    """Parameters of :class:`ZmpController`."""

    com_height: float = param(
        0.0, "height of the CoM above the soles; 0: that of the standing posture", unit="m", low=0.0, high=3.0
    )
    ramp: float = param(
        1.0, "time in which the CoM moves to between the feet at the start", unit="s", low=0.05, high=100.0
    )
    dcm_gain: float = param(1.5, "k of p = p_ref + (1 + k) (xi - xi_ref)", low=-1.0, high=20.0, live=True)
    height_stiffness: float = param(100.0, "position gain of the height of the CoM", unit="1/s^2", low=0.0, live=True)
    height_damping: float = param(20.0, "velocity gain of the height of the CoM", unit="1/s", low=0.0, live=True)
    touch_force: float = param(TOUCHES, "load over weight above which a swing foot has landed", low=0.0, high=1.0)
    touch_time: float = param(0.003, "minimum time of this load", unit="s", low=0.0, high=0.1)
    touch_after: float = param(0.55, "fraction of the step before which a touchdown is ignored", low=0.0, high=1.0)
    late_speed: float = param(0.15, "downward velocity of a foot that is late to land", unit="m/s", low=0.0)
    fall_error: float = param(0.35, "error of the DCM above which the robot falls", unit="m", low=0.05)


_CONTACTS = {-1: (0, 1), 0: (1,), 1: (0,)}
"""The feet on the ground, for each swing foot or none."""
_LEAST_LOAD = 0.1
"""Minimum load of the feet for a ZMP, as a share of the weight."""
_ROOM = 0.4
"""Largest shift of the planned ZMP for a new command, as a share of the smallest distance from centre to edge."""

_CLEAR, _NARROWEST = 0.05, 2.0 / 3.0
"""Minimum distance [m] between the edges of the feet, and of their centres relative to that in standing."""
_ROLLS = 0.4
"""Share of the distance to heel and toes by which the planned ZMP moves over a foot."""
_UNEVEN_UNTIL = 0.75
"""Upper limit of ``catch_until`` on uneven ground, and while the robot comes to a stop.

On uneven ground, early or late touchdowns look like pushes, and quick feet fall. Steps of a stop keep their time."""
_LEVEL = 0.02
"""Rise or fall of a step [m] beyond which its touchdown is fixed: legs at their limits deviate without a push."""
_EARLIER = 0.01
"""Minimum change of the time of a touchdown [s]."""
_PAUSE = 0.05
"""Time after a change of the touchdown's time in which it stays fixed [s]; repeated changes make a step late."""
_GAP = 0.01
"""Minimum gap between soles that touch down side by side [m]."""
_STRAIGHT = 0.98
"""Largest leg length, as a share of the length of the straight leg."""
_QUICKEST = 0.1
"""Shortest time of a step [s]."""
_LIMITED = 5e-3
"""Reduction of a velocity command that is reported [m/s, rad/s]."""
_NEAR, _APART = 0.4, 0.04
"""Distance below which a foot is in reach, and resolution of the search beyond it, as shares of the CoM's height."""


def _narrowest(robot: Robot) -> float:
    """Return the smallest distance [m] from the centre of a sole to its edge."""
    return min(float(sole.margin(sole.centre)) for sole in robot.soles)


def _shortest(robot: Robot) -> float:
    """Return the smallest distance [m] from the centre of a sole to its heel or toes."""
    return min(float(np.abs(sole.vertices[:, 0] - sole.centre[0]).min()) for sole in robot.soles)


def _narrow_width(robot: Robot, stance: float) -> float:
    """Return the step width [m] at the largest velocity, for the width ``stance`` in standing.

    The closer the feet, the shorter the lever arm with which the swing leg turns the stance foot.
    """
    wide = max(float(np.ptp(sole.vertices[:, 1])) for sole in robot.soles)
    return min(stance, max(wide + _CLEAR, _NARROWEST * stance))


def _step_widths(robot: Robot, width: float, height: float) -> tuple[float, float]:
    """Return the limits of the width [m] of a step after a push: the soles do not overlap, and the legs are in reach.

    The pelvis is midway between the feet. Beyond the width of the gait, each leg moves sideways by half of the distance
    that a straight leg could reach next to its hip.

    Args:
        robot: The robot.
        width: Width of the gait [m].
        height: Height of the CoM over the soles [m].
    """
    model, q = robot.model, robot.q_nominal
    data = model.createData()
    places = sole_placements(model, data, robot.soles, q)
    across = max(float(np.ptp(sole.vertices[:, 1])) for sole in robot.soles)
    com_height = float(pin.centerOfMass(model, data, q)[2]) - float(np.mean([place.translation[2] for place in places]))
    spare = []
    for sole, place in zip(robot.soles, places, strict=True):
        leg = list(model.supports[sole.joint_id])[2:]
        points = [data.oMi[j].translation for j in leg] + [place.translation]
        straight = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(points))
        hip = points[0][2] - place.translation[2] - com_height + height
        spare.append(math.sqrt(max((_STRAIGHT * straight) ** 2 - hip**2, 0.0)))
    return min(width, across + _GAP), width + min(spare)


def _longest_step(robot: Robot, timing: StepTiming, speed: float, height: float, omega: float) -> float:
    """Return the longest step [m] that keeps both flat feet within reach of the legs; infinite if there is no limit.

    Args:
        robot: The robot.
        timing: Timing of steps at the largest ``speed`` [m/s].
        speed: Largest speed [m/s].
        height: Height of the CoM over the soles [m].
        omega: sqrt(g / z) of the pendulum [1/s].
    """
    share = farthest(timing, omega)
    away = share * speed * timing.period
    if away <= _NEAR * height:
        return math.inf
    places = sole_placements(robot.model, robot.model.createData(), robot.soles, robot.q_nominal)
    sole_centre = places[0].act(np.append(robot.soles[0].centre, 0.0))
    distances = np.linspace(0.0, away, math.ceil(away / (_APART * height)) + 1)
    com = np.tile([sole_centre[0], 0.0, sole_centre[2] + height], (len(distances), 1))
    n_solved = len(distances)
    for ahead in (1.0, -1.0):
        feet = [
            [places[0], pin.SE3(np.eye(3), np.array([ahead * s, 0.0, 0.0])) * places[1]] for s in distances[:n_solved]
        ]
        n_solved = min(n_solved, len(reach(robot.model, robot.soles, robot.q_nominal, com[:n_solved], feet)))
    # If even the posture with the feet side by side has no solution, the search gives no limit.
    return math.inf if n_solved in (0, len(distances)) else float(distances[n_solved - 1]) / share


class ZmpController:
    """Walk, turn, side-step and stand from joint states, IMU and ankle wrenches.

    Args:
        robot: The robot; free-flying, with two feet whose soles are polygons.
        params: See :class:`ZmpParams`.
        dt: Control period [s].

    Attributes:
        estimate: Estimated state; see :class:`bipedsim.control.estimation.BaseEstimate`.
        readouts: Updated in place:

            * ``zmp_margin`` [m]: distance of the measured ZMP from the edge of the support polygon, negative outside.
              For a short time after a touchdown it holds its last value.
            * ``dcm_error`` [m].
            * ``command_share``: share of the velocity command that is applied, 0 to 1.
            * ``plan_...``: the plan, for viewers; see :class:`bipedsim.control.walking.shown_plan.ShownPlan`.
        fallen: Whether the controller has given up.

    Raises:
        ConfigError: The robot does not have two such feet, or ``catch_time`` is too short for a step.
    """

    Params = ZmpParams

    def __init__(self, robot: Robot, params: ZmpParams, dt: float) -> None:
        if not robot.free_flyer or len(robot.soles) != 2 or min(s.n_vertices for s in robot.soles) < 3:
            raise ConfigError(
                f"it needs a free-flying robot with two flat feet, {robot.name!r} has not{fitting(robot, 'zmp')}",
                "controller 'zmp'",
            )
        refuse_loops(robot, "zmp")
        if 0.0 < params.catch_time < _QUICKEST:
            raise ConfigError(
                f"s is shorter than any step; 0 for none, {_QUICKEST:g} s at least",
                "zmp: catch_time",
                params.catch_time,
            )
        self._robot = robot
        self._estimator = Estimator(robot, part_of(EstimatorParams, params), dt)
        self._whole = whole = WholeBody(robot, part_of(TaskParams, params))
        polygons = sole_polygons(robot, params.ankle_share)
        limits = part_of(DistributionParams, params)
        self._distribution = Distribution(robot, limits, whole.body, whole.feet, polygons)
        self._weight = robot.weight
        whole.update(robot.q_nominal, np.zeros(robot.model.nv))
        feet = whole.feet
        left = int(np.argmax(feet.p[:, 1]))
        stance = float(abs(feet.p[0, 1] - feet.p[1, 1]))
        narrow = params.step_width or _narrow_width(robot, stance)
        standing_height = float(whole.body.com[2] - feet.p[:, 2].mean())
        terrain_params = part_of(TerrainParams, params)
        ground = get_ground(terrain_params.terrain) if terrain_params.terrain else None
        climbs = ground is not None and len(np.unique(ground.arrays().plane)) > 1
        self._height = (climbs and terrain_params.climb_height) or params.com_height or standing_height
        passing = whole.passing(robot.q_nominal, 0, params.step_height, standing_height - self._height)
        if params.swing_inertia < 0.0:
            params = replace(params, swing_inertia=whole.swing_inertia(passing, 0))
        bends = whole.knee_inertia(passing, 0)
        whole.update(robot.q_nominal, np.zeros(robot.model.nv))
        self._params = params
        self._omega = float(np.sqrt(whole.body.g / self._height))
        timing = part_of(GaitParams, params)
        quickest = timing.cadence(self._omega, whole.body.g).timing(timing.max_forward)
        longest = _longest_step(robot, quickest, timing.max_forward, self._height, self._omega)
        terrain = Terrain(ground, robot.soles, terrain_params, params.step_height) if ground is not None else None
        self._mapped = terrain is not None
        width, rolls = params.step_width or stance, _ROLLS * _shortest(robot)
        room, apart = _ROOM * _narrowest(robot), _step_widths(robot, width, self._height)
        build = GaitBuild(width, self._omega, left, room, longest, apart, narrow, rolls, bends, whole.body.g)
        self._gait = WalkGait(timing, build, terrain)
        self._kicks = {"none": -1, "left": left, "right": 1 - left}[params.kick_foot]
        self._route = route_of(part_of(KickParams, params))
        soles = SolePolygons.of(robot.soles, polygons)
        corners = 2 * soles.vertices.shape[1]
        self._ref = zeros_of(Reference, {"N": corners, "H": corners + 1})
        self._now = np.zeros(len(TickScalars._fields))
        self._tilt = np.zeros(3)
        law = part_of(WalkLaw, params, omega=self._omega)
        gait = self._gait
        self._arrays = WalkArrays(whole.body, feet, whole.goal, self._ref, gait.plan, gait.step, soles, self._tilt, law)
        self._walk = box(self._arrays)
        self._supervisor = Supervisor(part_of(SupervisionParams, params), dt)
        self._velocity = np.zeros(3)
        self._beyond = False
        self._footsteps = np.zeros((0, 3))
        self._command = Command(np.zeros(robot.nu))
        self._dt = dt
        self._shown = ShownPlan(self._omega, soles.centres)
        self.readouts = {"zmp_margin": 0.0, "dcm_error": 0.0, "command_share": 1.0, **self._shown.readouts}
        self.fallen = False
        self.estimate: Any = None
        self._warm_up()

    def _warm_up(self) -> None:
        """Load or compile all kernels of the first steps, so that those take no longer than later ones."""
        observation = Observation.zeros(self._robot.nu, 2)
        observation.joint_position[:] = self._robot.posture
        observation.imu_linear_acceleration[2] = self._whole.body.g
        self.reset(observation)
        self.update(observation)
        gait, feet = self._gait, self._whole.feet
        xi, ahead = self._ref.xi.copy(), np.array([0.1, 0.0, 0.0])
        gait.start(0.0, self._dcm(0.0), feet.p, feet.R, ahead)
        gait.lift_off(0.0, xi, feet.p, feet.R, ahead)
        self._start_swing(gait.swing)
        self.update(observation)
        self.reset(observation)

    def tune(self, params: ZmpParams) -> None:
        """Take the gains of ``params`` between two updates; nothing else changes."""
        # A negative value stands for that of the robot, which hardly depends on the gains.
        self._params = params = replace(params, swing_inertia=self._params.swing_inertia)
        self._whole.tune(part_of(TaskParams, params))
        self._walk = box(self._arrays._replace(law=part_of(WalkLaw, params, omega=self._omega)))

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        """Set the velocity ahead and to the left [m/s] and the turn rate to the left [rad/s]; zeros stop the robot.

        A warning says what the robot walks instead, if the velocity exceeds the limits.
        """
        self._velocity[:] = vx, vy, wz
        walked = self._gait.stride.limited(self._velocity)
        beyond = not np.abs(walked - self._velocity).max() < _LIMITED
        # A velocity is often sent many times a second, so only the first one beyond the limits is reported.
        if beyond and not self._beyond:
            ahead, sideways, turn = self._gait.stride.limits
            asked, given = (", ".join(f"{value:.3g}" for value in each) for each in (self._velocity, walked))
            warn_controller(
                f"zmp: velocity ({asked}) is limited to ({given}): at most {ahead:.3g} m/s ahead (max_forward), "
                f"{sideways:.3g} m/s sideways (max_sideways), {turn:.3g} rad/s (max_turn), and less together"
            )
        self._beyond = beyond

    def set_footsteps(self, steps: Array) -> None:
        """Set footsteps to take when the robot stands; after them it stands again.

        Args:
            steps: (n, 3) x, y [m] and yaw [rad] of the centres of alternating soles, in the frame midway between the
                feet at that time. The left foot steps first if the first y is positive.

        Raises:
            ConfigError: The shape is wrong, a value is not finite, or a step is too long or crosses the other foot.
        """
        self._gait.planner.check(steps)
        self._footsteps = np.array(steps, dtype=np.float64)

    @property
    def steps(self) -> int:
        """Number of steps begun since :meth:`reset`."""
        return self._gait.steps

    def reset(self, observation: Observation) -> None:
        """Stand in the measured posture without a command, and move the CoM to between the feet."""
        self._estimator.reset(observation)
        estimate = self._estimator.update(observation)
        self.estimate = estimate
        whole, gait = self._whole, self._gait
        whole.update(estimate.q, estimate.v)
        feet = whole.feet
        gait.reset(observation.t, whole.body.com[:2].copy(), feet.p, feet.R, self._params.ramp)
        self._flying = -1
        whole.goal.foot[:] = STANCE
        self._t0 = observation.t
        self._height0 = float(whole.body.com[2] - feet.p[:, 2].mean())
        R = np.asarray(pin.Quaternion(estimate.q[3:7]).toRotationMatrix())
        upright = pin.rpy.rpyToMatrix(0.0, 0.0, yaw_of(R))
        self._tilt[:] = pin.log3(upright.T @ R)
        self._supervisor.reset()
        # Before the first measured load there is no margin.
        self.readouts.update(self._shown.readouts, zmp_margin=np.nan, dcm_error=np.nan, command_share=1.0)
        self._shown.reset(observation.t, *whole.body.com[:2].tolist())
        self._velocity[:] = 0.0
        self._beyond = False
        self._footsteps = self._footsteps[:0]
        self._touch = 0.0
        self._settled = -math.inf
        self._ground = (float(feet.p[:, 2].mean()),) * 2
        self._climbed = 0.0
        self._kicked = False
        self.fallen = False

    def update(self, observation: Observation) -> Command:
        """Return the torques of one tick; the next call overwrites the arrays."""
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
        if not self._distribution.solve(a, _CONTACTS[self._flying]):
            self.fallen = True
            return self._command
        whole.torques(a, self._distribution.wrench, self._command.tau_joint)
        return self._command

    def _start_swing(self, foot: int) -> None:
        """Make ``foot`` the swing foot; -1 for none."""
        self._flying = foot
        self._whole.goal.foot[:] = STANCE
        if foot >= 0:
            self._whole.goal.foot[foot] = SWING
        self._touch = 0.0
        self._settled = -math.inf

    def _moving(self) -> bool:
        """Whether the command asks to move."""
        x, y, turn = self._velocity.tolist()
        return max(abs(x), abs(y), abs(turn)) > 1e-3

    def _advance(self, t: float, force: Array) -> None:
        """Proceed to the next phase, by time or by a detected touchdown."""
        gait, feet, params = self._gait, self._whole.feet, self._params
        foot = self._flying
        way_down = gait.lifted + gait.step.time[0] - gait.lowers
        if foot >= 0 and t > gait.lowers + params.touch_after * way_down:
            if force[foot] > params.touch_force * self._weight:
                self._touch += self._dt
                self._supervisor.touched_down(t)
            else:
                self._touch = 0.0
            if self._touch >= params.touch_time - 0.5 * self._dt:
                self._start_swing(-1)
        if t < gait.end - 0.5 * self._dt:
            return
        if gait.phase == "single":
            swung = gait.swing
            self._climbed = gait.rise(feet.p, feet.R)
            gait.touch_down(t, feet.R)
            before, after = float(feet.p[1 - swung, 2]), float(feet.p[swung, 2])
            # The CoM's height follows the lower foot while the legs are furthest apart.
            self._ground = (before + min(0.0, self._climbed), after - max(0.0, self._climbed))
        elif gait.phase == "double":
            self._supervisor.step_begun()
            gait.lift_off(t, self._dcm(t), feet.p, feet.R, self._supervisor.share * self._velocity)
            self._climb_with_step()
            self._start_swing(gait.swing)
        elif self._kicks >= 0 and not self._kicked and t >= self._t0 + params.kick_at:
            self._kicked = True
            gait.stand_on_one(t, self._dcm(t), feet.p, feet.R, self._kicks, self._route)
        elif len(self._footsteps):
            gait.follow(t, self._dcm(t), feet.p, feet.R, self._footsteps)
            self._footsteps = self._footsteps[:0]
        elif self._moving() and self._supervisor.share > 0.0:
            gait.start(t, self._dcm(t), feet.p, feet.R, self._supervisor.share * self._velocity)

    def _climb_with_step(self) -> None:
        """Plan the CoM's height over the lower foot before and after the step, so that it changes in single support."""
        gait, feet = self._gait, self._whole.feet
        level = float(feet.p[1 - gait.swing, 2])
        self._ground = (level - max(0.0, self._climbed), level + min(0.0, gait.rise(feet.p, feet.R)))

    def _dcm(self, t: float) -> Array:
        """Return the planned DCM (2,) [m] at ``t``."""
        evaluate(self._gait.plan, self._omega, t, self._ref.zmp, self._ref.xi)
        return self._ref.xi

    def _aim(self, t: float) -> None:
        """Fill the targets of all tasks, and monitor the ZMP and the error of the DCM."""
        gait, ref = self._gait, self._ref
        tilted = 1.0 - quintic(t - self._t0, self._params.ramp)[0]
        height = self._height + tilted * (self._height0 - self._height)
        share, rate, bend = min((t - gait.begin) / (gait.end - gait.begin), 1.0), 0.0, 0.0
        if gait.phase == "single":
            share = 1.0
            if self._mapped:
                share, rate, bend = quintic(t - gait.begin, gait.end - gait.begin)
        min_load = _LEAST_LOAD * self._weight
        counter = 1.0
        if gait.phase == "stand":
            counter -= quintic(t - gait.begin, gait.end - gait.begin)[0]
        scalars = (share, rate, bend, tilted, counter, min_load)
        self._now[:] = TickScalars(t, t - gait.lifted, self._flying, height, *self._ground, *scalars)
        aim(self._walk, self.estimate.wrench, self._now)
        if t >= self._shown.due:
            before, after = self._ground
            self._shown.update(t, ref, before + share * (after - before), height, gait, self.readouts)
        error, margin = float(ref.error[0]), float(ref.margin[0])
        self.readouts["dcm_error"] = error
        self.fallen = self.fallen or error > self._params.fall_error
        if margin == margin and self._supervisor.watch(t, margin, self._moving(), gait.phase == "stand"):
            self.readouts["zmp_margin"] = margin
        self.readouts["command_share"] = self._supervisor.share
        if error > LEAST_ERROR and self._params.catch_most > 0.0:
            if self._flying >= 0 and gait.phase == "single" and not gait.kicking:
                self._catch(t)
            elif gait.phase == "stand" and tilted == 0.0:
                self._step_out(t)

    def _step_out(self, t: float) -> None:
        """Begin a step from standing if the feet cannot balance a push."""
        params, gait, ref, feet = self._params, self._gait, self._ref, self._whole.feet
        yaw = yaw_of(feet.R[0])
        hull = ref.hull[: ref.n[0]]
        if not params.catch_time or not must_step(ref.xi_now - ref.xi, ref.zmp, hull, yaw):
            return
        # The foot closer to the direction of the fall becomes the stance foot.
        aside = np.array([-np.sin(yaw), np.cos(yaw)])
        foot = int(np.argmax(np.abs((feet.p[:, :2] - ref.xi_now) @ aside)))
        gait.step_out(t, ref.xi_now, feet.p, feet.R, foot, params.catch_time)
        self._climb_with_step()
        self._start_swing(foot)

    def _catch(self, t: float) -> None:
        """Adapt position and time of the touchdown after a push."""
        params, gait, ref, goal = self._params, self._gait, self._ref, self._whole.goal
        sure = self._moving() and not gait.stride.wary
        until = params.catch_until if sure else min(params.catch_until, _UNEVEN_UNTIL)
        if t - gait.lifted > until * gait.step.time[0] or t < self._settled:
            return
        feet, k = self._whole.feet, self._flying
        if abs(gait.rise(feet.p, feet.R)) > _LEVEL:
            return
        stance, yaw = feet.p[1 - k], yaw_of(feet.R[1 - k])
        land, end = gait.planned_landing()
        remaining = gait.end - t
        # A step from standing keeps its planned time, because faster ones would exceed the available torque.
        times = (
            (params.catch_quickest, gait.due + params.catch_longer - t) if self._moving() else (remaining, remaining)
        )
        geometry = (gait.axes(yaw), *gait.box(), goal.p[k, :2], remaining, *times)
        step = CatchStep(ref.xi_now, ref.xi, end, land, ref.hull[: ref.n[0]], stance[:2], *geometry)
        landing = best_landing(step, self._omega, params)
        sooner = abs(t + landing.left - gait.end) > _EARLIER
        if sooner:
            self._settled = t + _PAUSE
        if np.hypot(*(landing.place - land)) < params.catch_least and not sooner:
            return
        swing = goal.p[k].copy(), goal.twist[k].copy(), goal.acceleration[k].copy(), goal.R[k].copy()
        gait.catch(t, landing.place, t + landing.left if sooner else gait.end, params.catch_most, stance, yaw, swing)
