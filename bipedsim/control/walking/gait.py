"""Footsteps of a walk: stance foot, swing foot and touchdowns, with the DCM plan over the next steps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.config import param
from bipedsim.control.walking.cadence import SLOWEST, Cadence, StepTiming
from bipedsim.control.walking.dcm import DcmPlan, add_line, add_swing, begin_at, lean_first, solve_backwards
from bipedsim.control.walking.reference import SwingStep
from bipedsim.control.walking.swing import EVEN, PEAK, WINDOW, path_to, rise_to
from bipedsim.control.walking.terrain import Terrain
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array

_SMALLEST_COMMAND = 1e-3
"""Velocity [m/s], [rad/s] below which a command means standing."""
_FAST = 0.3
"""Velocity [m/s] above which the robot slows down before it stops."""
_HORIZON = 4
"""Number of planned steps; the effect of a fifth one would have decayed to a tenth of a millimetre."""
_SINGLE = 3
"""Number of pieces of the plan for the current single support; the next piece shifts the weight."""
_NARROW, _WIDE = 0.75, 2.0
"""Default limits of the width of a step after a push, relative to the width of the gait."""
_ROLL = 0.1
"""Displacement of the ZMP from the foot's centre in single support, as a share of the step length.

The ZMP moves from behind the centre to ahead of it. This reduces the acceleration of the CoM, and with it the demand on
friction and hips."""
_CLEARANCE = 0.5
"""Minimum mid-swing clearance of a retimed step, as a share of ``step_height``."""
_ABREAST = 0.02
"""Maximum fore-aft distance between the feet in the final stance [m]."""
_UNEVEN, _LEANING = 0.008, 0.05
"""Deviation of height [m] and tilt [rad] of a foot from its planned touchdown, beyond which the ground is uneven.

It is twice the deviation that friction in the drives and sensor noise cause on level ground."""
WARY = 16
"""Number of level steps after which the gait returns to that of even ground."""
_LEANS = 0.1
"""Largest tilt [rad] of a foot that counts for the ground's normal; a foot on the edge of a tile tilts more."""
_HALVINGS = 4
"""How often a change of velocity is halved until the ZMP can follow; then the velocity stays constant for this step."""


@dataclass(frozen=True)
class GaitParams:
    """Shape and timing of the steps."""

    single_support: float = param(
        0.0, "time on one foot; 0: from the speed, shorter at a higher speed", unit="s", high=10.0
    )
    double_support: float = param(0.0, "time of double support; 0: 0.08 of single support", unit="s", high=10.0)
    start_hold: float = param(0.5, "time from the command to the first shift", unit="s", low=0.01, high=10.0)
    start_shift: float = param(0.3, "time of the first shift of the weight", unit="s", low=0.01, high=10.0)
    stop_shift: float = param(0.6, "time of the last shift, to between the feet", unit="s", low=0.01, high=10.0)
    walk_ratio: float = param(
        1.15, "length of a step over the height of the CoM, times omega T, if the speed sets T", low=0.1, high=5.0
    )
    uneven_period: float = param(
        1.7, "longest step on uneven ground, times omega, if the speed sets T", low=0.5, high=10.0
    )
    step_height: float = param(0.05, "rise of the swing foot", unit="m", low=0.0, high=0.5)
    step_width: float = param(
        0.0,
        "lateral distance between the feet; 0: that of the standing posture, smaller at speed",
        unit="m",
        low=0.0,
        high=1.0,
    )
    swing_inertia: float = param(
        -1.0, "kappa: shift of the ZMP per acceleration of the swing foot; -1: by its inertia", unit="s^2", high=0.1
    )
    zmp_forward: float = param(0.0, "planned ZMP ahead of the centre of the sole", unit="m", low=-0.2, high=0.2)
    zmp_inward: float = param(0.0, "planned ZMP inwards of the centre of the sole", unit="m", low=-0.1, high=0.1)
    max_forward: float = param(0.8, "largest forward velocity; half of it backward", unit="m/s", low=0.0, high=3.0)
    max_sideways: float = param(0.2, "largest lateral velocity", unit="m/s", low=0.0, high=2.0)
    max_turn: float = param(0.6, "largest rate of turning", unit="rad/s", low=0.0, high=3.0)
    acceleration: float = param(0.4, "largest change of the velocity per time", unit="m/s^2", low=0.01, high=10.0)

    def cadence(self, omega: float, g: float, slowest: float = SLOWEST) -> Cadence:
        """Make the choice of step times by speed.

        Args:
            omega: sqrt(g / h) of the pendulum [1/s].
            g: [m/s^2].
            slowest: omega T of the slowest steps.
        """
        return Cadence(self.single_support, self.double_support, self.walk_ratio, omega, g, slowest)

    def problems(self) -> Iterator[ConfigError]:
        """Yield a message for each invalid step time."""
        for name, minimum in (("single_support", 0.1), ("double_support", 0.01)):
            value = getattr(self, name)
            if value and value < minimum:
                yield ConfigError(f"s must be at least {minimum:g} s, or 0 to derive it from the speed", name, value)


@dataclass
class Heading:
    """A position on the ground with a direction: x, y [m] and yaw [rad]."""

    x: float
    y: float
    yaw: float

    def moved(self, ahead: float, left: float, turn: float) -> Heading:
        """Return the pose after a displacement ahead and to the left [m], and then a turn [rad]."""
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return Heading(self.x + c * ahead - s * left, self.y + s * ahead + c * left, self.yaw + turn)

    @property
    def point(self) -> Array:
        """(2,) position [m]."""
        return np.array([self.x, self.y])


class Footstep(NamedTuple):
    """A planned touchdown: centre of the sole [m], heading [rad], and index of the foot."""

    x: float
    y: float
    z: float
    yaw: float
    foot: int


def yaw_of(R: Array) -> float:
    """Return the heading [rad] of the x axis of R (3, 3) in the horizontal plane."""
    return math.atan2(R[1, 0], R[0, 0])


def level_with(normal: Array, yaw: float) -> Array:
    """Return the rotation (3, 3) with z axis ``normal`` and the x axis heading to ``yaw`` [rad]."""
    ahead = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    x = ahead - (ahead @ normal) * normal
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(normal, x), normal])


def farthest(timing: StepTiming, omega: float) -> float:
    """Return the largest distance of a stance foot from the CoM in a steady walk, as a share of the step length.

    The pendulum has a constant ZMP in single support, and a ZMP at constant speed in double support. The share is one
    half for short double support. It is one if the CoM is over the other foot before the first foot lifts off.
    """
    double, single = 0.5 * omega * timing.double, math.tanh(0.5 * omega * timing.single)
    return 1.0 - single / (2.0 * double * (1.0 + single / math.tanh(double)))


class GaitBuild(NamedTuple):
    """Properties of a robot that shape its steps.

    Attributes:
        narrow: Width of steps [m] at ``max_forward``; 0 for the width at rest.
        rolls: Largest displacement [m] of the planned ZMP from the centre of a foot towards heel and toes.
        knee_inertia: mu [s^2/m] of :meth:`bipedsim.control.walking.whole_body.WholeBody.knee_inertia`.
        g: [m/s^2].
    """

    narrow: float = 0.0
    rolls: float = 0.0
    knee_inertia: float = 0.0
    g: float = 9.81


PLAIN = GaitBuild()
"""A robot with constant step width, feet loaded at their centres, and legs without inertia."""


class WalkGait:
    """Plan steps from velocity commands.

    The centre between the feet follows the command step by step. Feet touch down half a step width to its left and
    right. When the robot moves or turns to a side, the foot on this side steps first and twice as far. The other foot
    follows, so that the feet never collide. The newest command at lift-off determines the touchdown.

    Args:
        params: See :class:`GaitParams`.
        width: Distance between the centres of the feet in standing [m].
        omega: sqrt(g / z) of the pendulum [1/s].
        left: Index of the left foot.
        room: Largest shift [m] of the ZMP by which a new plan continues from the DCM of the old one.
        longest: Upper limit of the step length [m], if that of ``max_forward`` is larger.
        apart: Limits of the width of a step after a push [m]; by default they follow from the width of the gait.
        terrain: Map of the ground; by default the plane of the last contacts continues.
        build: Properties of the robot.

    Attributes:
        plan: ZMP and DCM.
        phase: ``stand``, ``double`` or ``single``.
        swing: Index of the swing foot, or of the next one; -1 for none.
        begin, end: Beginning and end of the phase [s].
        lifted: Time of the last lift-off [s].
        lowers: Earliest time at which the swing foot begins to move down [s].
        due: Planned end of the last step, at its lift-off [s].
        kicking: Whether the swing foot kicks instead of stepping.
        step: Path of the swing foot.
        steps: Number of steps begun since :meth:`reset`.
        footsteps: Planned footsteps, the current one first, or the next one in double support. Their heights assume
            that the ground continues as found so far.
        changes: Number of changes of ``footsteps``.
    """

    def __init__(
        self,
        params: GaitParams,
        width: float,
        omega: float,
        left: int,
        room: float,
        longest: float = math.inf,
        terrain: Terrain | None = None,
        apart: tuple[float, float] | None = None,
        build: GaitBuild = PLAIN,
    ) -> None:
        self._params = params
        self._usual_cadence = cadence = params.cadence(omega, build.g)
        self._quick_cadence = params.cadence(omega, build.g, min(params.uneven_period, SLOWEST))
        self._fastest = params.max_forward
        self._longest = self._fastest * cadence.timing(self._fastest).period
        if longest < self._longest:
            self._longest, self._fastest = longest, cadence.speed(longest)
        self._room = room
        self._build = build
        self._terrain = terrain
        self._blocked = ""
        self._width = width
        self._widths = apart or (_NARROW * width, _WIDE * width)
        self._single = _SINGLE
        self._omega = omega
        self._left = left
        self.plan = DcmPlan.empty(4 * _HORIZON + 8)
        self.step = SwingStep.on_the_spot()
        self._level = np.array(WINDOW)
        self._duration = 0.0
        self._passing = cadence.timing(0.0).double
        self._feet = (np.zeros(2), np.zeros(2))
        self._begin = np.zeros(2)
        self.changes = 0
        self.reset(0.0, np.zeros(2), np.zeros((2, 3)), np.tile(np.eye(3), (2, 1, 1)), 1.0)

    def reset(self, t: float, com: Array, p: Array, R: Array, ramp: float) -> None:
        """Stand on both feet, and move the CoM from ``com`` (2,) to between the feet.

        Args:
            t: Time [s].
            com: (2,) horizontal position [m].
            p, R: (2, 3), (2, 3, 3) poses of the feet.
            ramp: Duration of the motion [s].
        """
        self.steps = 0
        self._blocked = ""
        self._wary = 0
        self._stepped = False
        self.lifted = self.lowers = self.due = t
        self.kicking = False
        self._route: Array | None = None
        self._plan_steps([])
        self.swing = -1
        self.phase = "stand"
        self.begin, self.end = t, t + ramp
        self.velocity = np.zeros(3)
        self._apart = self._width
        self._stopping = False
        self._queue: list[Heading] = []
        self.step.route[:] = 0.0
        normal = R[0, :, 2] + R[1, :, 2]
        self.step.normal[:] = normal / np.linalg.norm(normal)
        self._recentre(p, R)
        self._restart_plan(t)
        add_line(self.plan, ramp, com, self._middle(p, R))
        self._finish_plan(self._middle(p, R))

    def _recentre(self, p: Array, R: Array) -> None:
        middle = 0.5 * (p[0] + p[1])
        ahead = R[0, :, 0] + R[1, :, 0]
        self.centre = Heading(middle[0], middle[1], math.atan2(ahead[1], ahead[0]))

    def _plan_steps(self, footsteps: list[Footstep]) -> None:
        self.footsteps = footsteps
        self.changes += 1

    def _side(self, foot: int) -> float:
        return 1.0 if foot == self._left else -1.0

    def _zmp(self, foot: int, point: Array, yaw: float) -> Array:
        """Return the planned ZMP (2,) under a foot whose centre is at ``point``."""
        c, s = math.cos(yaw), math.sin(yaw)
        ahead, left = self._params.zmp_forward, -self._side(foot) * self._params.zmp_inward
        return np.array([point[0] + c * ahead - s * left, point[1] + s * ahead + c * left])

    def _middle(self, p: Array, R: Array) -> Array:
        zmps = [self._zmp(k, p[k], yaw_of(R[k])) for k in (0, 1)]
        return 0.5 * (zmps[0] + zmps[1])

    def _restart_plan(self, t: float) -> None:
        self.plan.n[0] = 0
        self.plan.knots[0] = t

    def _finish_plan(self, end: Array) -> None:
        solve_backwards(self.plan, self._omega, end, self._begin)

    def _limited(self, command: Array) -> Array:
        p = self._params
        if not np.isfinite(command).all():
            return np.zeros(3)
        ahead = min(max(command[0], -0.5 * self._fastest), self._fastest)
        side = min(max(command[1], -p.max_sideways), p.max_sideways)
        turn = min(max(command[2], -p.max_turn), p.max_turn)
        # Each component alone may reach its limit. Together they would require too large a step of one foot.
        limits = ((ahead, self._fastest), (side, p.max_sideways), (turn, p.max_turn))
        share = math.sqrt(sum((value / limit) ** 2 for value, limit in limits if limit > 0.0))
        return np.array([ahead, side, turn]) / max(share, 1.0)

    @property
    def wary(self) -> bool:
        """Whether a recent touchdown was off its planned height or tilt, so that the ground counts as uneven."""
        return self._wary > 0

    def _cadence(self) -> Cadence:
        return self._quick_cadence if self._wary else self._usual_cadence

    def _timing(self, velocity: Array) -> StepTiming:
        """Return the times of a step at ``velocity`` (3,); sideways, every other step is twice as long."""
        return self._cadence().timing(math.hypot(velocity[0], 2.0 * velocity[1]))

    def _next_velocity(self, velocity: Array, wanted: Array) -> Array:
        max_change = self._params.acceleration * self._timing(velocity).period
        change = wanted - velocity
        size = float(np.hypot(change[0], change[1]))
        if size > max_change:
            change[:2] *= max_change / size
        return np.asarray(velocity + change)

    def _roll(self, velocity: Array, time: float, yaw: float) -> Array:
        """Return the displacement (2,) [m] of the ZMP ahead of the centre of a foot with heading ``yaw`` [rad]."""
        ahead = min(max(_ROLL * float(velocity[0]) * time, -self._build.rolls), self._build.rolls)
        return np.array([math.cos(yaw) * ahead, math.sin(yaw) * ahead])

    def _knee_shift(self, displacement: Array, during: float, period: float, yaw: float) -> Array:
        """Return the ZMP shift (2,) [m] due to the bending of the leg, at both ends of the swing.

        Args:
            displacement: (2,) of the foot [m] within ``during`` [s] of the ``period`` [s].
            yaw: Direction of the knees [rad].
        """
        c, s = math.cos(yaw), math.sin(yaw)
        # This is the speed in mid-swing relative to the hips, which advance half as far as the foot in a step.
        speed = (c * displacement[0] + s * displacement[1]) * (PEAK / during - 0.5 / period)
        return np.array([c, s]) * (2.0 * self._build.knee_inertia * speed * speed)

    def _advance(self, centre: Heading, foot: int, velocity: Array) -> Heading:
        """Return the centre of the feet after a step of ``foot``."""
        time = self._timing(velocity).period
        side = self._side(foot)
        left = 2.0 * velocity[1] * time if side * velocity[1] > 0.0 else 0.0
        turn = 2.0 * velocity[2] * time if side * velocity[2] > 0.0 else 0.0
        return centre.moved(velocity[0] * time, left, turn)

    def _width_at(self, velocity: Array) -> float:
        """Return the step width [m] at ``velocity`` (3,)."""
        share = min(abs(float(velocity[0])) / self._fastest, 1.0) if self._fastest else 0.0
        return self._width - share * (self._width - (self._build.narrow or self._width))

    def start(self, t: float, xi: Array, p: Array, R: Array, command: Array) -> None:
        """Begin to walk with ``command`` (3,), from standing with the DCM at ``xi`` (2,) [m]."""
        wanted = self._limited(command)
        lead = wanted[1] if abs(wanted[1]) > _SMALLEST_COMMAND else wanted[2]
        self._leave_standing(t, xi, p, R, wanted, lead > 0.0)

    def follow(self, t: float, xi: Array, p: Array, R: Array, footsteps: Array) -> None:
        """Begin to walk along ``footsteps`` (n, 3), with the DCM at ``xi`` (2,) [m]; see :meth:`check_footsteps`."""
        self._recentre(p, R)
        self._queue = [self.centre.moved(x, y, yaw) for x, y, yaw in footsteps]
        self._leave_standing(t, xi, p, R, np.zeros(3), footsteps[0, 1] > 0.0)

    def stand_on_one(self, t: float, xi: Array, p: Array, R: Array, foot: int, route: Array) -> None:
        """Stand on one leg while ``foot`` moves along ``route`` (POINTS, 4), and then on both feet again.

        Args:
            t: Time [s].
            xi: (2,) DCM [m].
            p, R: (2, 3), (2, 3, 3) poses of the feet.
            foot: The foot that lifts off.
            route: See :func:`bipedsim.control.walking.kicking.route_of`.
        """
        self._recentre(p, R)
        ahead, left = np.array([np.cos(self.centre.yaw), np.sin(self.centre.yaw)]), route[:, 2:3]
        over = route[:, 1:2] * ahead + left * np.array([-ahead[1], ahead[0]])
        self._route = np.column_stack([route[:, 0], over, route[:, 3]])
        self._leave_standing(t, xi, p, R, np.zeros(3), foot == self._left)

    def check_footsteps(self, footsteps: Array) -> None:
        """Raise an error if the robot cannot take ``footsteps``.

        Args:
            footsteps: (n, 3) x, y [m] and yaw [rad] of alternating feet, in the frame midway between the feet.

        Raises:
            ConfigError: The shape is wrong, a value is not finite, or a step is too long or crosses the other foot.
        """
        steps = np.asarray(footsteps, dtype=np.float64)
        if steps.ndim != 2 or steps.shape[1] != 3 or not len(steps) or not np.isfinite(steps).all():
            raise ConfigError(f"shape {steps.shape} must be (n, 3): x, y [m] and yaw [rad], all finite", "footsteps")
        side = 1.0 if steps[0, 1] > 0.0 else -1.0
        stance = Heading(0.0, -0.5 * self._width * side, 0.0)
        longest = self._longest
        for i, (x, y, yaw) in enumerate(steps):
            c, s = math.cos(stance.yaw), math.sin(stance.yaw)
            dx, dy = x - stance.x, y - stance.y
            ahead, apart = c * dx + s * dy, side * (c * dy - s * dx)
            if abs(ahead) > longest or not 0.7 * self._width <= apart <= 2.0 * self._width:
                raise ConfigError(
                    f"is {ahead:.3g} m ahead and {apart:.3g} m outside of the other foot; it must be within "
                    f"{longest:.3g} m ahead and back, and {0.7 * self._width:.3g} to {2.0 * self._width:.3g} m outside",
                    f"footsteps[{i}]",
                    [x, y, yaw],
                )
            stance, side = Heading(x, y, yaw), -side

    def _leave_standing(self, t: float, xi: Array, p: Array, R: Array, wanted: Array, left_first: bool) -> None:
        params = self._params
        self._stepped = False
        self.swing = self._left if left_first else 1 - self._left
        self.phase = "double"
        self.begin, self.end = t, t + params.start_hold + params.start_shift
        self._recentre(p, R)
        self.velocity[:] = 0.0
        stance = 1 - self.swing
        middle, under = self._middle(p, R), self._zmp(stance, p[stance], yaw_of(R[stance]))
        self._restart_plan(t)
        add_line(self.plan, params.start_hold, middle, middle)
        add_line(self.plan, params.start_shift, middle, under)
        if self._route is None:
            self._add_steps(self.swing, p, R, wanted, False)
        else:
            self._add_route(self._route, p, R)
        lean_first(self.plan, self._omega, self._begin, xi)

    def _add_route(self, route: Array, p: Array, R: Array) -> None:
        """Add the swing along ``route``, in the axes of the world, and the shift back to the middle."""
        stance = 1 - self.swing
        under = self._zmp(stance, p[stance], yaw_of(R[stance]))
        for duration, *displacement in np.diff(route[:, :3], axis=0):
            add_swing(
                self.plan, duration, under, under, self._params.swing_inertia * np.array(displacement), np.zeros(2), 0.0
            )
        middle = self._middle(p, R)
        add_line(self.plan, self._params.stop_shift, under, middle)
        self._finish_plan(middle)

    def step_out(self, t: float, xi: Array, p: Array, R: Array, foot: int, duration: float) -> None:
        """Step at once from standing, as after a push, and then stop.

        Args:
            t: Time [s].
            xi: (2,) measured DCM [m].
            p, R: (2, 3), (2, 3, 3) poses of the feet.
            foot: The foot with the smaller load.
            duration: Duration of the step [s].
        """
        self._recentre(p, R)
        self.velocity[:] = 0.0
        self.swing = foot
        self._begin_step(t, xi, p, R, np.zeros(3), duration, False)

    def lift_off(self, t: float, xi: Array, p: Array, R: Array, command: Array) -> None:
        """Begin the step of ``swing`` with the DCM at ``xi`` (2,) [m] and fix its touchdown, or begin the kick."""
        if self._route is not None:
            self._lift_along(self._route, t, xi, p, R)
            return
        if self._stepped and self._terrain is None:
            self._judge_landing(p, R)
        wanted = self._limited(command)
        idle = not np.abs(wanted).max() > _SMALLEST_COMMAND and not np.abs(self.velocity[:2]).max() > _FAST
        stops = len(self._queue) == 1 if self._queue else idle
        self._begin_step(t, xi, p, R, wanted, 0.0, stops)

    def _judge_landing(self, p: Array, R: Array) -> None:
        """Switch to quick steps for a while if the last touchdown was off its planned height or tilt.

        The error of the DCM that a touchdown causes grows with e^(omega T) until the next one.
        """
        foot, step = 1 - self.swing, self.step
        height_error = abs(float(p[foot, 2] - step.land_p[2]))
        tilt_error = float(np.linalg.norm(R[foot, :, 2] - step.land_R[:, 2]))
        if height_error > _UNEVEN or tilt_error > _LEANING:
            self._wary = WARY
        else:
            self._wary = max(0, self._wary - 1)

    def _lift_along(self, route: Array, t: float, xi: Array, p: Array, R: Array) -> None:
        step, foot = self.step, self.swing
        self._route, self.kicking, self._stopping = None, True, True
        self.phase = "single"
        step.time[0] = route[-1, 0]
        self.begin, self.end = t, t + route[-1, 0]
        self.lifted, self.lowers = t, t + route[-2, 0]
        self._restart_plan(t)
        self._add_route(route, p, R)
        begin_at(self.plan, self._omega, len(route) - 1, self._begin, xi, 2.0 * self._room)
        step.route[:] = route
        step.path_time[:] = step.turn[:] = step.knee[:] = 0.0
        step.retimed[0] = 0
        step.start_p[:] = step.land_p[:] = p[foot]
        step.start_R[:] = step.land_R[:] = R[foot]

    def _begin_step(self, t: float, xi: Array, p: Array, R: Array, wanted: Array, duration: float, stops: bool) -> None:
        foot, stance = self.swing, 1 - self.swing
        self.phase = "single"
        self.begin = t
        self.lifted = self.lowers = t
        self._single = _SINGLE
        self.steps += 1
        self._stopping = stops
        self._duration = duration
        self._take_over(t, xi, p, R, wanted)
        self._under = self.plan.zmp[0, :, 0].copy()
        step, landing = self.step, self._first
        self.end = self.due = t + float(step.time[0])
        step.start_p[:], step.start_R[:] = p[foot], R[foot]
        step.path_time[:] = 0.0
        step.retimed[0] = 0
        step.route[:] = 0.0
        self._land_at(landing.point, p[stance])
        step.land_R[:] = level_with(self._normal_at(landing.point), landing.yaw)
        if self._terrain is not None:
            step.lift[0] = self._terrain.lift(foot, step.start_p, step.land_p, landing.yaw, step.window)
        step.turn[:] = step.start_R @ pin.log3(step.start_R.T @ step.land_R)

    def _land_at(self, point: Array, stance: Array) -> None:
        """Set the touchdown to ``point`` (2,), at a height relative to the stance foot at ``stance`` (3,) [m]."""
        self.step.land_p[:2] = point
        self.step.land_p[2] = self._height_at(point, stance)

    def _height_at(self, point: Array, stance: Array) -> float:
        """Return the height [m] of the ground at ``point`` (2,), from that of the stance foot at ``stance`` (3,) [m].

        The difference comes from the map, or from the plane of the contacts if there is no map.
        """
        normal = self.step.normal
        if self._terrain is not None:
            # Only the difference is used, because the drift of the estimated height is the same for both points.
            rise = self._terrain.height(point) - self._terrain.height(stance)
            if rise == rise:
                return float(stance[2] + rise)
        return float(stance[2] - (normal[:2] @ (point - stance[:2])) / normal[2])

    def _normal_at(self, point: Array) -> Array:
        """Return the normal (3,) of the ground at a touchdown at ``point`` (2,) [m]."""
        return self.step.normal if self._terrain is None else self._terrain.normal(point)

    def rise(self, p: Array, R: Array) -> float:
        """Return the height [m] of the current touchdown above the plane of the stance foot."""
        if self._terrain is None:
            return 0.0
        stance = p[1 - self.swing]
        n = R[1 - self.swing, :, 2]
        step_vector = self.step.land_p - stance
        return float(step_vector @ n / n[2])

    def box(self) -> tuple[Array, Array]:
        """Return the limits (2,) [m] of a touchdown, ahead of the stance foot and to its side."""
        narrow, wide = self._widths
        return np.array([-self._longest, narrow]), np.array([self._longest, wide])

    def axes(self, yaw: float) -> Array:
        """Return the axes (2, 2) of :meth:`box` as rows: ahead, and from the stance foot to the other one.

        Args:
            yaw: Heading of the stance foot [rad].
        """
        c, s, side = math.cos(yaw), math.sin(yaw), self._side(self.swing)
        return np.array([[c, s], [-side * s, side * c]])

    def planned_landing(self) -> tuple[Array, Array]:
        """Return the planned touchdown (2,) of the swing foot, and the planned DCM (2,) at that time [m]."""
        return self.step.land_p[:2], self.plan.end[self._single - 1]

    def catch(
        self, t: float, land: Array, end: float, most: float, stance: Array, yaw: float, swing: tuple[Array, ...]
    ) -> None:
        """Move the current touchdown to ``land`` (2,) [m] and ``end`` [s] within reach, and adapt the following plan.

        A step may be as long as the longest step of the gait, and as narrow and wide as legs and soles allow.

        Args:
            t: Time [s], early enough in single support.
            land: Desired position.
            end: Desired time [s]; if it does not change, the height of the foot stays as planned.
            most: Largest distance from the touchdown planned at lift-off [m].
            stance: (3,) position of the stance foot [m].
            yaw: Heading of the stance foot [rad].
            swing: Position (3,), velocity and acceleration (>= 3,) of the swing foot, and its attitude (3, 3).
        """
        step, plan = self.step, self.plan
        axes, (low, high) = self.axes(yaw), self.box()
        away = stance[:2] + np.clip(axes @ (land - stance[:2]), low, high) @ axes - self._first.point
        land = self._first.point + min(1.0, most / max(np.hypot(*away), 1e-9)) * away
        if self._terrain is not None:
            target = Heading(float(land[0]), float(land[1]), self._first.yaw)
            start = step.start_p[:2]
            foothold = self._terrain.foothold(
                self.swing, (target.x, target.y, target.yaw), start, stance[:2], 0.0, self._longest
            )
            if foothold.offset != foothold.offset:
                return
            land = target.moved(foothold.offset, 0.0, 0.0).point
        moved = land - step.land_p[:2]
        if np.hypot(*moved) < 1e-3 and end == self.end:
            return
        self._land_at(land, stance)
        begin = t - self.lifted
        step.time[0] = end - self.lifted
        p, v, a, R = swing
        step.path_time[:] = begin, step.window[1] * step.time[0] - begin
        step.path[:] = path_to(p[:2], v[:2], a[:2], land, step.path_time[1])
        opens = self._stopping and abs(axes[0] @ (land - stance[:2])) > _ABREAST
        if end != self.end or step.retimed[0] or opens:
            self._rise(p, v, a, R)
            self._retime(t, end)
        self.centre = Heading(self.centre.x + moved[0], self.centre.y + moved[1], self.centre.yaw)
        dx, dy = moved.tolist()
        self._plan_steps([footstep._replace(x=footstep.x + dx, y=footstep.y + dy) for footstep in self.footsteps])
        if opens:
            self._close_up(stance, yaw)
            return
        # The weight shifts to between the feet if the robot stops, else to the foot that touches down.
        last, single = int(plan.n[0]) - 1, self._single
        over = 0.5 * moved if self._stopping else moved
        plan.zmp[single, :, 1] += over / (plan.knots[single + 1] - plan.knots[single])
        plan.zmp[single + 1 : last + 1, :, 0] += moved
        self._finish_plan(plan.end[last] + over)

    def _close_up(self, stance: Array, yaw: float) -> None:
        """Plan one more step that closes the stance, because the current step was to be the last one."""
        plan, step, foot = self.plan, self.step, self.swing
        self._stopping = False
        under = self._last_zmp()
        plan.n[0] = self._single
        add_line(plan, self._passing, under, self._zmp(foot, step.land_p[:2], yaw_of(step.land_R)))
        feet, attitudes = np.empty((2, 3)), np.empty((2, 3, 3))
        feet[foot], attitudes[foot] = step.land_p, step.land_R
        feet[1 - foot], attitudes[1 - foot] = stance, level_with(step.normal, yaw)
        landing, self.phase = self.footsteps[:1], "double"
        self._add_steps(1 - foot, feet, attitudes, np.zeros(3), True)
        self.phase = "single"
        self._plan_steps(landing + self.footsteps)

    def _last_zmp(self) -> Array:
        """Return the planned ZMP (2,) [m] at the end of the current single support."""
        plan, last = self.plan, self._single - 1
        duration = plan.knots[last + 1] - plan.knots[last]
        return plan.zmp[last] @ duration ** np.arange(4)

    def _rise(self, p: Array, v: Array, a: Array, R: Array) -> None:
        """Plan height and rotation of the swing foot from its state, (3,) each and R (3, 3), to the touchdown."""
        step = self.step
        top = max(step.start_p[2], step.land_p[2]) + _CLEARANCE * self._params.step_height
        step.rise[:] = rise_to(p[2], v[2], a[2], step.land_p[2], top, step.path_time[1])
        step.start_R[:] = R
        step.turn[:] = R @ pin.log3(R.T @ step.land_R)
        step.retimed[0] = 1

    def _retime(self, t: float, end: float) -> None:
        """Restart the plan at ``t``, with the current single support until ``end`` [s], followed by the rest."""
        plan, step, single, last = self.plan, self.step, self._single, int(self.plan.n[0])
        last_under, since = self._last_zmp(), (t - plan.knots[0]) / (plan.knots[single] - plan.knots[0])
        # This is the present ZMP under the stance foot, without the shift for the motion of the leg.
        under = self._under + since * (last_under - self._under)
        after, durations = plan.zmp[single:last].copy(), np.diff(plan.knots[single : last + 1])
        finish = plan.end[last - 1].copy()
        self._restart_plan(t)
        lands = under + step.path_time[1] / (end - t) * (last_under - under)
        add_line(plan, step.path_time[1], under, lands)
        # The inertia of the leg shifts the ZMP along the new path.
        path = step.path
        plan.zmp[0] -= self._params.swing_inertia * path[:, 2:] * np.array([2.0, 6.0, 12.0, 20.0])
        add_line(plan, end - t - step.path_time[1], lands, last_under)
        step.knee[:] = 0.0
        self._under = under
        for duration, zmp in zip(durations, after, strict=True):
            add_line(plan, duration, under, under)
            plan.zmp[plan.n[0] - 1] = zmp
        self._single, self.end = 2, end
        plan.end[plan.n[0] - 1] = finish

    def _take_over(self, t: float, xi: Array, p: Array, R: Array, wanted: Array) -> None:
        """Plan from the DCM ``xi`` (2,), towards the velocity ``wanted`` (3,) as far as the ZMP can follow.

        The next touchdown determines the present DCM. A deviation from the previous plan must be corrected by the ZMP
        under the stance foot, which can move only a little. A sudden command is therefore applied over several steps,
        and the last step waits until the robot is slow enough. A stop that the map requires cannot wait.
        """
        centre, before, apart = self.centre, self.velocity, self._apart
        may_wait = self._stopping
        share = 1.0
        halved = 0
        while True:
            self.centre, self.velocity, self._apart = centre, before, apart
            self._restart_plan(t)
            goal = before + share * (self._next_velocity(before, wanted) - before)
            self._add_steps(self.swing, p, R, goal, self._stopping)
            time = self.plan.knots[_SINGLE] - t
            needed = float(np.hypot(*(xi - self._begin))) / (1.0 - math.exp(-self._omega * time))
            room = 2.0 * self._room if self._stopping else self._room
            if needed <= room or self._queue or halved == _HALVINGS:
                break
            if may_wait:
                self._stopping = may_wait = False
                continue
            halved += 1
            share = 0.5 * share if halved < _HALVINGS else 0.0
        begin_at(self.plan, self._omega, _SINGLE, self._begin, xi, 2.0 * self._room)
        self._queue = self._queue[1:]

    def touch_down(self, t: float, R: Array) -> None:
        """End the step: shift the weight to the other foot, or come to rest."""
        params = self._params
        self.begin = t
        self.kicking = False
        self._plan_steps(self.footsteps[1:])
        self.phase = "double"
        turn = R[self.swing, :, 2] - self.step.normal
        normal = self.step.normal + 0.5 * min(1.0, _LEANS / max(float(np.linalg.norm(turn)), 1e-9)) * turn
        self.step.normal[:] = normal / np.linalg.norm(normal)
        if self._stopping:
            self.end = t + params.stop_shift
            self.phase = "stand"
            self.swing = -1
        else:
            self.end = t + self._passing
            self.swing = 1 - self.swing
            self._stepped = True

    def _add_steps(self, foot: int, p: Array, R: Array, wanted: Array, stopping: bool) -> None:
        """Add the step of ``foot`` and the next ones to the plan, and advance centre and velocity by the first one."""
        params = self._params
        stance = 1 - foot
        points = [p[0, :2], p[1, :2]]
        heights = [float(p[0, 2]), float(p[1, 2])]
        yaws = [yaw_of(R[0]), yaw_of(R[1])]
        centre, velocity = self.centre, self.velocity
        moving, apart = self.phase == "single", self._apart
        under = self._zmp(stance, points[stance], yaws[stance])
        backward = self._roll(velocity, self._timing(velocity).period, yaws[stance])
        footsteps: list[Footstep] = []
        for i in range(_HORIZON):
            width = self._width
            if self._queue:
                landing, ends = self._queue[i], i == len(self._queue) - 1
                goes = landing.moved(0.0, -0.5 * width * self._side(foot), 0.0)
                length = math.hypot(goes.x - centre.x, goes.y - centre.y)
                centre, timing = goes, self._cadence().timing(self._cadence().speed(length))
            else:
                velocity = np.zeros(3) if stopping else self._next_velocity(velocity, wanted)
                centre, ends = self._advance(centre, foot, velocity), stopping
                width = self._width_at(velocity)
                if stopping:
                    # The stance foot touched down closer to the centre than it has to be in the final stance.
                    centre = centre.moved(0.0, 0.5 * (width - apart) * self._side(foot), 0.0)
                landing = centre.moved(0.0, 0.5 * width * self._side(foot), 0.0)
                if self._terrain is not None:
                    landing, met = self._foothold(foot, landing, points, stopping)
                    if not met:
                        velocity, ends = np.zeros(3), True
                    centre = landing.moved(0.0, -0.5 * width * self._side(foot), 0.0)
                timing = self._timing(velocity)
            if i == 0 and moving:
                self._first, self.centre, self.velocity = landing, centre, velocity
                self._stopping = self._stopping or (self._terrain is not None and ends and not self._queue)
            time = self._duration if i == 0 and moving and self._duration else timing.single
            ground_height = self._height_at(landing.point, p[stance])
            window = self._level
            if self._terrain is not None:
                time += self._terrain.extra_time(heights[foot], heights[1 - foot], ground_height)
                window = self._terrain.window(heights[foot], ground_height, window)
            if i == 0 and moving:
                self.step.time[0], self.step.window[:] = time, window
                self._passing, self._apart = timing.double, width
            before, during = float(window[0]) * time, float(window[1] - window[0]) * time
            displacement = landing.point - points[foot]
            points[foot], yaws[foot], heights[foot] = landing.point, landing.yaw, ground_height
            footsteps.append(Footstep(float(landing.x), float(landing.y), ground_height, landing.yaw, foot))
            onward = self._roll(velocity, timing.period, yaws[stance])
            first, rate = under - backward, (onward + backward) / time
            lifts, lands, last = first + before * rate, first + (before + during) * rate, under + onward
            add_line(self.plan, before, first, lifts)
            knee = self._knee_shift(displacement, during, timing.period, yaws[stance])
            if i == 0 and moving:
                self.step.knee[:] = knee
            add_swing(self.plan, during, lifts, lands, params.swing_inertia * displacement, knee, EVEN)
            add_line(self.plan, time - before - during, lands, last)
            following = self._zmp(foot, landing.point, landing.yaw)
            if ends:
                add_line(self.plan, params.stop_shift, last, 0.5 * (under + following))
                under = 0.5 * (under + following)
                break
            backward = self._roll(velocity, timing.period, yaws[foot])
            add_line(self.plan, timing.double, last, following - backward)
            under, stance, foot = following, foot, stance
        self._finish_plan(under)
        self._plan_steps(footsteps)

    def _foothold(self, foot: int, landing: Heading, points: list[Array], stopping: bool) -> tuple[Heading, bool]:
        """Return the touchdown of ``foot`` near ``landing`` on the map, and whether there is a foothold.

        Without a foothold the foot closes the stance, the robot stops, and a warning gives the reason.
        """
        terrain, stance_point = self._terrain, points[1 - foot]
        assert terrain is not None
        c, s = math.cos(landing.yaw), math.sin(landing.yaw)
        onward = 0.0 if stopping else c * (landing.x - stance_point[0]) + s * (landing.y - stance_point[1])
        target = (landing.x, landing.y, landing.yaw)
        foothold = terrain.foothold(foot, target, points[foot], stance_point, onward, self._longest)
        if foothold.offset == foothold.offset:
            return landing.moved(foothold.offset, 0.0, 0.0), True
        reason = terrain.why_not(foothold)
        if reason != self._blocked:
            self._blocked = reason
            warnings.warn(
                f"zmp: the robot stops before x = {landing.x:.2f}, y = {landing.y:.2f} m of its map: {reason}",
                stacklevel=2,
            )
        abreast = c * (stance_point[0] - landing.x) + s * (stance_point[1] - landing.y)
        return landing.moved(abreast, 0.0, 0.0), False
