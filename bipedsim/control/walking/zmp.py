"""Walking: footsteps from a velocity command, a DCM plan, whole-body inverse dynamics, wrenches shared by the feet."""

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
from bipedsim.control.walking.cadence import Timing
from bipedsim.control.walking.catching import LEAST_ERROR, Catch, CatchParams, best_landing, must_step
from bipedsim.control.walking.dcm import evaluate
from bipedsim.control.walking.distribution import Distribution, DistributionParams
from bipedsim.control.walking.gait import Build, Gait, GaitParams, farthest, yaw_of
from bipedsim.control.walking.kicking import KickParams, route_of
from bipedsim.control.walking.reference import Law, Moment, Reference, Soles, Walk, aim
from bipedsim.control.walking.shown_plan import ShownPlan
from bipedsim.control.walking.supervision import SupervisionParams, Supervisor
from bipedsim.control.walking.terrain import Terrain, TerrainParams
from bipedsim.control.walking.whole_body import STANCE, SWING, TaskParams, WholeBody
from bipedsim.errors import ConfigError
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

    com_height: float = param(0.0, "of the CoM over the soles; 0: as the robot stands", unit="m", low=0.0, high=3.0)
    ramp: float = param(1.0, "time to come from where the robot is to between the feet", unit="s", low=0.05, high=100.0)
    dcm_gain: float = param(1.5, "k of p = p_ref + (1 + k) (xi - xi_ref)", low=-1.0, high=20.0)
    height_stiffness: float = param(100.0, "position gain of the height of the CoM", unit="1/s^2", low=0.0)
    height_damping: float = param(20.0, "velocity gain of the height of the CoM", unit="1/s", low=0.0)
    touch_force: float = param(TOUCHES, "share of the weight at which a swinging foot has landed", low=0.0, high=1.0)
    touch_time: float = param(0.003, "for which it must be carried", unit="s", low=0.0, high=0.1)
    touch_after: float = param(0.55, "share of the step before which it has not landed", low=0.0, high=1.0)
    late_speed: float = param(0.15, "at which a foot goes on down that has not landed in time", unit="m/s", low=0.0)
    fall_error: float = param(0.35, "error of the DCM that is taken for a fall", unit="m", low=0.05)


_CONTACTS = {-1: (0, 1), 0: (1,), 1: (0,)}
"""The feet on the ground while one is in the air, or none."""
_LEAST_LOAD = 0.1
"""Share of the weight on the feet below which there is no ZMP."""
_ROOM = 0.4
"""Share of the narrowest half of a sole by which the planned ZMP may move to take over a new command."""

_CLEAR, _NARROWEST = 0.05, 2.0 / 3.0
"""Least distance [m] between the edges of two feet that walk abreast, and of their centres over that of standing."""
_ROLLS = 0.4
"""Share of the way to heel and toes by which the planned ZMP rolls over a foot."""
_UNEVEN_UNTIL = 0.75
"""``catch_until`` at most on uneven ground, where landings that are early or late look like pushes, and feet that hurry
fall, and of a robot that comes to a stop, whose steps keep their time."""
_LEVEL = 0.02
"""Rise or fall of a step [m] beyond which it lands as planned: legs at their limits are off the plan without a push."""
_EARLIER = 0.01
"""Change of when a foot lands [s] that is not worth it."""
_PAUSE = 0.05
"""For which a step keeps its course after its landing was given another time [s]: one sent to and fro comes late."""
_GAP = 0.01
"""Between soles that land side by side [m]."""
_STRAIGHT = 0.98
"""Share of the length of a straight leg that is used."""
_QUICKEST = 0.1
"""Shortest time of a step [s]."""
_NEAR, _APART = 0.4, 0.04
"""Shares of the height of the CoM: a foot so near to it is in reach, and how fine others are looked for."""


def _narrowest(robot: Robot) -> float:
    """Return the least distance [m] from the centre of a sole to its edge."""
    return min(float(sole.margin(sole.centre)) for sole in robot.soles)


def _shortest(robot: Robot) -> float:
    """Return the least distance [m] from the centre of a sole to its heel or toes."""
    return min(float(np.abs(sole.vertices[:, 0] - sole.centre[0]).min()) for sole in robot.soles)


def _narrow_width(robot: Robot, stance: float) -> float:
    """Return how far apart [m] the centres of the feet land at the largest velocity, if ``stance`` when it stands.

    The nearer the feet, the shorter the arm by which the leg that swings turns the foot under the other one.
    """
    wide = max(float(np.ptp(sole.vertices[:, 1])) for sole in robot.soles)
    return min(stance, max(wide + _CLEAR, _NARROWEST * stance))


def _apart(robot: Robot, width: float, height: float) -> tuple[float, float]:
    """Return the least and largest width [m] of a step that catches the robot: soles side by side, and legs in reach.

    With the pelvis midway, each leg goes half of the way that a straight one has to spare beside its hip.

    Args:
        robot: The robot.
        width: Of the gait [m].
        height: Of the CoM over the soles [m].
    """
    model, q = robot.model, robot.q_nominal
    data = model.createData()
    places = sole_placements(model, data, robot.soles, q)
    across = max(float(np.ptp(sole.vertices[:, 1])) for sole in robot.soles)
    stands = float(pin.centerOfMass(model, data, q)[2]) - float(np.mean([place.translation[2] for place in places]))
    spare = []
    for sole, place in zip(robot.soles, places, strict=True):
        leg = list(model.supports[sole.joint_id])[2:]
        points = [data.oMi[j].translation for j in leg] + [place.translation]
        straight = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(points))
        hip = points[0][2] - place.translation[2] - stands + height
        spare.append(math.sqrt(max((_STRAIGHT * straight) ** 2 - hip**2, 0.0)))
    return min(width, across + _GAP), width + min(spare)


def _longest_step(robot: Robot, timing: Timing, speed: float, height: float, omega: float) -> float:
    """Return the longest step [m] that leaves no flat foot out of reach of its leg, infinite if the gait has none.

    Args:
        robot: The robot.
        timing: Of steps at the largest ``speed`` [m/s].
        height: Of the CoM over the soles [m].
        omega: sqrt(g / z) of the pendulum [1/s].
    """
    share = farthest(timing, omega)
    away = share * speed * timing.period
    if away <= _NEAR * height:
        return math.inf
    places = sole_placements(robot.model, robot.model.createData(), robot.soles, robot.q_nominal)
    stands = places[0].act(np.append(robot.soles[0].centre, 0.0))
    way = np.linspace(0.0, away, math.ceil(away / (_APART * height)) + 1)
    com = np.tile([stands[0], 0.0, stands[2] + height], (len(way), 1))
    least = len(way)
    for ahead in (1.0, -1.0):
        feet = [[places[0], pin.SE3(np.eye(3), np.array([ahead * s, 0.0, 0.0])) * places[1]] for s in way[:least]]
        least = min(least, len(reach(robot.model, robot.soles, robot.q_nominal, com[:least], feet)))
    # Where not even a foot beside the other one is found, nothing can be said.
    return math.inf if least in (0, len(way)) else float(way[least - 1]) / share


class ZmpController:
    """Walks, turns, side-steps and stands from joint states, IMU and ankle wrenches.

    Args:
        robot: Free-flying, with two feet that are polygons.
        params: See :class:`ZmpParams`.
        dt: Control period [s].

    Attributes:
        estimate: Where the robot believes to be; see :class:`bipedsim.control.estimation.BaseEstimate`.
        readouts: Updated in place: ``zmp_margin`` [m] of the measured ZMP to the edge of the polygon of support,
            negative outside, as it was before the last touch-down for a moment after it; ``dcm_error`` [m];
            ``command_share``, 0 to 1, of the velocity command that is obeyed; and the plan, ``plan_...``, for viewers:
            see :class:`bipedsim.control.walking.shown_plan.ShownPlan`.
        fallen: Whether it has given up.

    Raises:
        ConfigError: The robot has not two such feet, or no leg steps in ``catch_time``.
    """

    Params = ZmpParams

    def __init__(self, robot: Robot, params: ZmpParams, dt: float) -> None:
        if not robot.free_flyer or len(robot.soles) != 2 or min(s.n_vertices for s in robot.soles) < 3:
            raise ConfigError(
                f"controller 'zmp' needs a free-flying robot with two flat feet, {robot.name!r} has not"
                f"{fitting(robot, 'zmp')}"
            )
        refuse_loops(robot, "zmp")
        if 0.0 < params.catch_time < _QUICKEST:
            raise ConfigError(
                f"zmp: catch_time = {params.catch_time:g} s is shorter than any step; 0 for none, "
                f"{_QUICKEST:g} s at least"
            )
        self._robot = robot
        self._estimator = Estimator(robot, part_of(EstimatorParams, params), dt)
        self._whole = whole = WholeBody(robot, part_of(TaskParams, params))
        self._distribution = Distribution(robot, part_of(DistributionParams, params), whole.body, whole.feet)
        self._weight = robot.weight
        whole.update(robot.q_nominal, np.zeros(robot.model.nv))
        feet = whole.feet
        left = int(np.argmax(feet.p[:, 1]))
        stance = float(abs(feet.p[0, 1] - feet.p[1, 1]))
        narrow = params.step_width or _narrow_width(robot, stance)
        stands = float(whole.body.com[2] - feet.p[:, 2].mean())
        told = part_of(TerrainParams, params)
        ground = get_ground(told.terrain) if told.terrain else None
        climbs = ground is not None and len(np.unique(ground.arrays().plane)) > 1
        self._height = (climbs and told.climb_height) or params.com_height or stands
        passing = whole.passing(robot.q_nominal, 0, params.step_height, stands - self._height)
        if params.swing_inertia < 0.0:
            params = replace(params, swing_inertia=whole.swing_inertia(passing, 0))
        bends = whole.knee_inertia(passing, 0)
        whole.update(robot.q_nominal, np.zeros(robot.model.nv))
        self._params = params
        self._omega = float(np.sqrt(whole.body.g / self._height))
        timing = part_of(GaitParams, params)
        quickest = timing.cadence(self._omega, whole.body.g).timing(timing.max_forward)
        longest = _longest_step(robot, quickest, timing.max_forward, self._height, self._omega)
        terrain = Terrain(ground, robot.soles, told, params.step_height) if ground is not None else None
        self._mapped = terrain is not None
        build = Build(narrow, _ROLLS * _shortest(robot), bends, whole.body.g)
        width, room = params.step_width or stance, _ROOM * _narrowest(robot)
        apart = _apart(robot, width, self._height)
        self._gait = Gait(timing, width, self._omega, left, room, longest, terrain, apart, build)
        self._kicks = {"none": -1, "left": left, "right": 1 - left}[params.kick_foot]
        self._route = route_of(part_of(KickParams, params))
        soles = Soles.of(robot.soles)
        corners = 2 * soles.vertices.shape[1]
        self._ref = zeros_of(Reference, {"N": corners, "H": corners + 1})
        self._now = np.zeros(len(Moment._fields))
        self._tilt = np.zeros(3)
        law = part_of(Law, params, omega=self._omega)
        gait = self._gait
        walk = Walk(whole.body, feet, whole.goal, self._ref, gait.plan, gait.step, soles, self._tilt, law)
        self._walk = box(walk)
        self._supervisor = Supervisor(part_of(SupervisionParams, params), dt)
        self._velocity = np.zeros(3)
        self._footsteps = np.zeros((0, 3))
        self._command = Command(np.zeros(robot.nu))
        self._dt = dt
        self._shown = ShownPlan(self._omega, soles.centres)
        self.readouts = {"zmp_margin": 0.0, "dcm_error": 0.0, "command_share": 1.0, **self._shown.readouts}
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
        xi, ahead = self._ref.xi.copy(), np.array([0.1, 0.0, 0.0])
        gait.start(0.0, self._dcm(0.0), feet.p, feet.R, ahead)
        gait.lift_off(0.0, xi, feet.p, feet.R, ahead)
        self._fly(gait.swing)
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
        """Stand where the robot is, without a command; the CoM is led to between the feet."""
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
        # Until the feet were felt there is no margin to show.
        self.readouts.update(self._shown.readouts, zmp_margin=np.nan, dcm_error=np.nan, command_share=1.0)
        self._shown.reset(observation.t, *whole.body.com[:2].tolist())
        self._velocity[:] = 0.0
        self._footsteps = self._footsteps[:0]
        self._touch = 0.0
        self._settled = -math.inf
        self._ground = (float(feet.p[:, 2].mean()),) * 2
        self._climbed = 0.0
        self._kicked = False
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
        if not self._distribution.solve(a, _CONTACTS[self._flying]):
            self.fallen = True
            return self._command
        whole.torques(a, self._distribution.wrench, self._command.tau_joint)
        return self._command

    def _fly(self, foot: int) -> None:
        """Take ``foot`` off the ground; -1 for none."""
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
        """Go from phase to phase, by the clock and by what the feet feel."""
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
                self._fly(-1)
        if t < gait.end - 0.5 * self._dt:
            return
        if gait.phase == "single":
            swung = gait.swing
            self._climbed = gait.rise(feet.p, feet.R)
            gait.touch_down(t, feet.R)
            before, after = float(feet.p[1 - swung, 2]), float(feet.p[swung, 2])
            # Over the lower foot, while the legs are furthest apart.
            self._ground = (before + min(0.0, self._climbed), after - max(0.0, self._climbed))
        elif gait.phase == "double":
            self._supervisor.step_begun()
            gait.lift_off(t, self._dcm(t), feet.p, feet.R, self._supervisor.share * self._velocity)
            self._climb_with_step()
            self._fly(gait.swing)
        elif self._kicks >= 0 and not self._kicked and t >= self._t0 + params.kick_at:
            self._kicked = True
            gait.stand_on_one(t, self._dcm(t), feet.p, feet.R, self._kicks, self._route)
        elif len(self._footsteps):
            gait.follow(t, self._dcm(t), feet.p, feet.R, self._footsteps)
            self._footsteps = self._footsteps[:0]
        elif self._moving() and self._supervisor.share > 0.0:
            gait.start(t, self._dcm(t), feet.p, feet.R, self._supervisor.share * self._velocity)

    def _climb_with_step(self) -> None:
        """Lead the CoM from over the lower foot to over the lower foot: up or down while one foot is in the air."""
        gait, feet = self._gait, self._whole.feet
        level = float(feet.p[1 - gait.swing, 2])
        self._ground = (level - max(0.0, self._climbed), level + min(0.0, gait.rise(feet.p, feet.R)))

    def _dcm(self, t: float) -> Array:
        """Return the planned DCM (2,) [m] at ``t``."""
        evaluate(self._gait.plan, self._omega, t, self._ref.zmp, self._ref.xi)
        return self._ref.xi

    def _aim(self, t: float) -> None:
        """Fill the targets of all tasks, and watch the ZMP."""
        gait, ref = self._gait, self._ref
        tilted = 1.0 - quintic(t - self._t0, self._params.ramp)[0]
        height = self._height + tilted * (self._height0 - self._height)
        share, rate, bend = min((t - gait.begin) / (gait.end - gait.begin), 1.0), 0.0, 0.0
        if gait.phase == "single":
            share = 1.0
            if self._mapped:
                share, rate, bend = quintic(t - gait.begin, gait.end - gait.begin)
        least = _LEAST_LOAD * self._weight
        counter = 1.0
        if gait.phase == "stand":
            counter -= quintic(t - gait.begin, gait.end - gait.begin)[0]
        turned = (share, rate, bend, tilted, counter, least)
        self._now[:] = Moment(t, t - gait.lifted, self._flying, height, *self._ground, *turned)
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
        """Let a robot that stands step after a push, if its feet cannot take it."""
        params, gait, ref, feet = self._params, self._gait, self._ref, self._whole.feet
        yaw = yaw_of(feet.R[0])
        hull = ref.hull[: ref.n[0]]
        if not params.catch_time or not must_step(ref.xi_now - ref.xi, ref.zmp, hull, yaw):
            return
        # The foot that is nearer to where the robot falls carries it.
        aside = np.array([-np.sin(yaw), np.cos(yaw)])
        foot = int(np.argmax(np.abs((feet.p[:, :2] - ref.xi_now) @ aside)))
        gait.step_out(t, ref.xi_now, feet.p, feet.R, foot, params.catch_time)
        self._climb_with_step()
        self._fly(foot)

    def _catch(self, t: float) -> None:
        """Let the foot in the air land where the robot will need it after a push."""
        params, gait, ref, goal = self._params, self._gait, self._ref, self._whole.goal
        sure = self._moving() and not gait.wary
        until = params.catch_until if sure else min(params.catch_until, _UNEVEN_UNTIL)
        if t - gait.lifted > until * gait.step.time[0] or t < self._settled:
            return
        feet, k = self._whole.feet, self._flying
        if abs(gait.rise(feet.p, feet.R)) > _LEVEL:
            return
        stance, yaw = feet.p[1 - k], yaw_of(feet.R[1 - k])
        land, end = gait.planned_landing()
        left = gait.end - t
        # A step from standing takes the time that it was given: faster ones ask for more torque than is there.
        times = (params.catch_quickest, gait.due + params.catch_longer - t) if self._moving() else (left, left)
        place = (gait.axes(yaw), *gait.box(), goal.p[k, :2], left, *times)
        step = Catch(ref.xi_now, ref.xi, end, land, ref.hull[: ref.n[0]], stance[:2], *place)
        found = best_landing(step, self._omega, params)
        sooner = abs(t + found.left - gait.end) > _EARLIER
        if sooner:
            self._settled = t + _PAUSE
        if np.hypot(*(found.place - land)) < params.catch_least and not sooner:
            return
        swing = goal.p[k].copy(), goal.twist[k].copy(), goal.acceleration[k].copy(), goal.R[k].copy()
        gait.catch(t, found.place, t + found.left if sooner else gait.end, params.catch_most, stance, yaw, swing)
