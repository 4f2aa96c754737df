"""Walking from step to step: stance foot, swing foot and touchdowns, with the DCM plan over the next steps."""

from __future__ import annotations

import math

import numpy as np

from bipedsim.control.walking.footsteps import (
    Footstep,
    FootstepPlanner,
    GaitGround,
    Heading,
    PlannedStep,
    WalkState,
    level_with,
)
from bipedsim.control.walking.stride import GaitBuild, GaitParams, Stride
from bipedsim.control.walking.swing import SwingStep
from bipedsim.control.walking.terrain import Terrain
from bipedsim.control.walking.zmp_plan import ZmpPlan
from bipedsim.numerics import Array

_SMALLEST_COMMAND = 1e-3
"""Velocity [m/s], [rad/s] below which a command means standing."""
_FAST = 0.3
"""Velocity [m/s] above which the robot slows down before it stops."""
_CLEARANCE = 0.5
"""Minimum mid-swing clearance of a retimed step, as a share of ``step_height``."""
_ABREAST = 0.02
"""Maximum fore-aft distance between the feet in the final stance [m]."""
_HALVINGS = 4
"""How often a change of velocity is halved until the ZMP can follow; then the velocity stays constant for this step."""


class WalkGait:
    """Walk step by step as velocity commands ask: from standing to double support, to single support, and so on.

    The newest command at lift-off determines the touchdown. :class:`FootstepPlanner` chooses the footsteps,
    :class:`ZmpPlan` plans the ZMP through them, and :class:`SwingStep` is the path of the swing foot.

    Args:
        params: See :class:`GaitParams`.
        build: Properties of the robot.
        terrain: Map of the ground; by default the plane of the last contacts continues.

    Attributes:
        stride: Choice of times, length and width of steps.
        planner: Choice of footsteps.
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
        state: The walk after the current step.
        footsteps: Planned footsteps, the current one first, or the next one in double support. Their heights assume
            that the ground continues as found so far.
        changes: Number of changes of ``footsteps``.
    """

    def __init__(self, params: GaitParams, build: GaitBuild, terrain: Terrain | None = None) -> None:
        self._params = params
        self._build = build
        self.stride = Stride(params, build)
        self.step = SwingStep.on_the_spot()
        self._ground = GaitGround(terrain, self.step.normal, self.stride.longest)
        self.planner = FootstepPlanner(self.stride, self._ground)
        self._zmp = ZmpPlan(params, self.stride)
        self.plan = self._zmp.dcm
        self._passing = self.stride.timing(np.zeros(3)).double
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
        self.stride.wary = 0
        self._stepped = False
        self.lifted = self.lowers = self.due = t
        self.kicking = False
        self._route: Array | None = None
        self._show([])
        self.swing = -1
        self.phase = "stand"
        self.begin, self.end = t, t + ramp
        self.state = WalkState(_centre(p, R), np.zeros(3), self._build.width)
        self._stopping = False
        self._queue: list[Heading] = []
        self.step.route[:] = 0.0
        self._ground.reset(R)
        self._zmp.stand(t, ramp, com, p, R)

    def _show(self, footsteps: list[Footstep]) -> None:
        self.footsteps = footsteps
        self.changes += 1

    def start(self, t: float, xi: Array, p: Array, R: Array, command: Array) -> None:
        """Begin to walk with ``command`` (3,), from standing with the DCM at ``xi`` (2,) [m]."""
        wanted = self.stride.limited(command)
        lead = wanted[1] if abs(wanted[1]) > _SMALLEST_COMMAND else wanted[2]
        self._leave_standing(t, xi, p, R, wanted, lead > 0.0)

    def follow(self, t: float, xi: Array, p: Array, R: Array, footsteps: Array) -> None:
        """Begin to walk along ``footsteps`` (n, 3), with the DCM at ``xi`` (2,) [m].

        :meth:`FootstepPlanner.check` checks them.
        """
        centre = _centre(p, R)
        self._queue = [centre.moved(x, y, yaw) for x, y, yaw in footsteps]
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
        yaw = _centre(p, R).yaw
        ahead, left = np.array([np.cos(yaw), np.sin(yaw)]), route[:, 2:3]
        over = route[:, 1:2] * ahead + left * np.array([-ahead[1], ahead[0]])
        self._route = np.column_stack([route[:, 0], over, route[:, 3]])
        self._leave_standing(t, xi, p, R, np.zeros(3), foot == self._build.left)

    def _leave_standing(self, t: float, xi: Array, p: Array, R: Array, wanted: Array, left_first: bool) -> None:
        params = self._params
        self._stepped = False
        self.swing = self._build.left if left_first else 1 - self._build.left
        self.phase = "double"
        self.begin, self.end = t, t + params.start_hold + params.start_shift
        self.state = self.state._replace(centre=_centre(p, R), velocity=np.zeros(3))
        stance = 1 - self.swing
        self._zmp.shift_weight(t, stance, p, R)
        if self._route is None:
            self._add_steps(self.swing, p, R, wanted, False)
        else:
            self._zmp.add_route(self._route, stance, p, R)
        self._zmp.lean(xi)

    def _add_steps(
        self, foot: int, p: Array, R: Array, wanted: Array, stopping: bool, duration: float = 0.0
    ) -> PlannedStep:
        """Add the next steps, beginning with one of ``foot``, to the plan, and return the first one."""
        if self._queue:
            steps = self.planner.along(self._queue, foot, p, R, self.state)
        else:
            steps = self.planner.towards(wanted, stopping, foot, p, R, self.state, duration)
        self._zmp.add_steps(steps, self.state.velocity)
        self._show([step.footstep for step in steps])
        return steps[0]

    def step_out(self, t: float, xi: Array, p: Array, R: Array, foot: int, duration: float) -> None:
        """Step at once from standing, as after a push, and then stop.

        Args:
            t: Time [s].
            xi: (2,) measured DCM [m].
            p, R: (2, 3), (2, 3, 3) poses of the feet.
            foot: The foot with the smaller load.
            duration: Duration of the step [s].
        """
        self.state = self.state._replace(centre=_centre(p, R), velocity=np.zeros(3))
        self.swing = foot
        self._stopping = False
        self._begin_step(t, xi, p, R, np.zeros(3), duration)

    def lift_off(self, t: float, xi: Array, p: Array, R: Array, command: Array) -> None:
        """Begin the step of ``swing`` with the DCM at ``xi`` (2,) [m] and fix its touchdown, or begin the kick."""
        if self._route is not None:
            self._begin_kick(self._route, t, xi, p, R)
            return
        if self._stepped and self._ground.terrain is None:
            step, foot = self.step, 1 - self.swing
            tilt_error = float(np.linalg.norm(R[foot, :, 2] - step.land_R[:, 2]))
            self.stride.landed(abs(float(p[foot, 2] - step.land_p[2])), tilt_error)
        wanted = self.stride.limited(command)
        idle = not np.abs(wanted).max() > _SMALLEST_COMMAND and not np.abs(self.state.velocity[:2]).max() > _FAST
        self._stopping = len(self._queue) == 1 if self._queue else idle
        self._begin_step(t, xi, p, R, wanted)

    def _begin_kick(self, route: Array, t: float, xi: Array, p: Array, R: Array) -> None:
        self._route, self.kicking, self._stopping = None, True, True
        self.phase = "single"
        self.begin, self.end = t, t + route[-1, 0]
        self.lifted, self.lowers = t, t + route[-2, 0]
        self._zmp.restart(t)
        self._zmp.add_route(route, 1 - self.swing, p, R)
        self._zmp.begin_at(xi, len(route) - 1)
        self.step.begin_route(route, p[self.swing], R[self.swing])

    def _begin_step(self, t: float, xi: Array, p: Array, R: Array, wanted: Array, duration: float = 0.0) -> None:
        foot, stance, step = self.swing, 1 - self.swing, self.step
        self.phase = "single"
        self.begin = t
        self.lifted = self.lowers = t
        self.steps += 1
        first = self._take_over(t, xi, p, R, wanted, duration)
        landing = self._first = first.landing
        self.state, self._passing = first.state, first.timing.double
        step.time[0], step.window[:], step.knee[:] = first.time, first.window, self._zmp.knee_shift(first)
        self.end = self.due = t + float(step.time[0])
        height = self._ground.height(landing.point, p[stance])
        step.begin(p[foot], R[foot], np.append(landing.point, height), self._ground.level_at(landing))
        if self._ground.terrain is not None:
            step.lift[0] = self._ground.terrain.lift(foot, step.start_p, step.land_p, landing.yaw, step.window)

    def _take_over(self, t: float, xi: Array, p: Array, R: Array, wanted: Array, duration: float) -> PlannedStep:
        """Plan from the DCM ``xi`` (2,), towards the velocity ``wanted`` (3,) as far as the ZMP can follow.

        The next touchdown determines the present DCM. A deviation from the previous plan must be corrected by the ZMP
        under the stance foot, which can move only a little. A sudden command is therefore applied over several steps,
        and the last step waits until the robot is slow enough. A stop that the map requires cannot wait.

        Returns:
            The current step.
        """
        before = self.state.velocity
        may_wait = self._stopping
        share = 1.0
        halved = 0
        while True:
            self._zmp.restart(t)
            goal = before + share * (self.stride.next_velocity(before, wanted) - before)
            first = self._add_steps(self.swing, p, R, goal, self._stopping, duration)
            self._stopping = self._stopping or (first.last and not self._queue)
            room = 2.0 * self._build.room if self._stopping else self._build.room
            if self._zmp.needed_shift(t, xi) <= room or self._queue or halved == _HALVINGS:
                break
            if may_wait:
                self._stopping = may_wait = False
                continue
            halved += 1
            share = 0.5 * share if halved < _HALVINGS else 0.0
        self._zmp.begin_at(xi)
        self._queue = self._queue[1:]
        return first

    def touch_down(self, t: float, R: Array) -> None:
        """End the step: shift the weight to the other foot, or come to rest."""
        self.begin = t
        self.kicking = False
        self._show(self.footsteps[1:])
        self.phase = "double"
        self._ground.touched(R[self.swing])
        if self._stopping:
            self.end = t + self._params.stop_shift
            self.phase = "stand"
            self.swing = -1
        else:
            self.end = t + self._passing
            self.swing = 1 - self.swing
            self._stepped = True

    def rise(self, p: Array, R: Array) -> float:
        """Return the height [m] of the current touchdown above the plane of the stance foot."""
        if self._ground.terrain is None:
            return 0.0
        stance = p[1 - self.swing]
        n = R[1 - self.swing, :, 2]
        step_vector = self.step.land_p - stance
        return float(step_vector @ n / n[2])

    def box(self) -> tuple[Array, Array]:
        """Return the limits (2,) [m] of a touchdown, ahead of the stance foot and to its side."""
        longest, (narrow, wide) = self.stride.longest, self.stride.widths
        return np.array([-longest, narrow]), np.array([longest, wide])

    def axes(self, yaw: float) -> Array:
        """Return the axes (2, 2) of :meth:`box` as rows: ahead, and from the stance foot to the other one.

        Args:
            yaw: Heading of the stance foot [rad].
        """
        c, s, side = math.cos(yaw), math.sin(yaw), self.stride.side(self.swing)
        return np.array([[c, s], [-side * s, side * c]])

    def planned_landing(self) -> tuple[Array, Array]:
        """Return the planned touchdown (2,) of the swing foot, and the planned DCM (2,) at that time [m]."""
        return self.step.land_p[:2], self._zmp.landing_dcm

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
        step = self.step
        axes, (low, high) = self.axes(yaw), self.box()
        away = stance[:2] + np.clip(axes @ (land - stance[:2]), low, high) @ axes - self._first.point
        land = self._first.point + min(1.0, most / max(np.hypot(*away), 1e-9)) * away
        if self._ground.terrain is not None:
            target = Heading(float(land[0]), float(land[1]), self._first.yaw)
            foothold = self._ground.nearest(self.swing, target, step.start_p[:2], stance[:2])
            if foothold.offset != foothold.offset:
                return
            land = target.moved(foothold.offset, 0.0, 0.0).point
        moved = land - step.land_p[:2]
        if np.hypot(*moved) < 1e-3 and end == self.end:
            return
        step.land_p[:] = *land, self._ground.height(land, stance)
        step.time[0] = end - self.lifted
        p, v, a, R = swing
        step.redirect(t - self.lifted, p, v, a)
        opens = self._stopping and abs(axes[0] @ (land - stance[:2])) > _ABREAST
        if end != self.end or step.retimed[0] or opens:
            step.rise_again(_CLEARANCE * self._params.step_height, p, v, a, R)
            self._zmp.retime(t, end, step.path, step.path_time[1])
            self.end = end
        dx, dy = moved.tolist()
        centre = self.state.centre
        self.state = self.state._replace(centre=Heading(centre.x + dx, centre.y + dy, centre.yaw))
        self._show([footstep._replace(x=footstep.x + dx, y=footstep.y + dy) for footstep in self.footsteps])
        if opens:
            self._close_up(stance, yaw)
        else:
            # The weight shifts to between the feet if the robot stops, else to the foot that touches down.
            self._zmp.move_landing(moved, 0.5 * moved if self._stopping else moved)

    def _close_up(self, stance: Array, yaw: float) -> None:
        """Plan one more step that closes the stance, because the current step was to be the last one."""
        step, foot = self.step, self.swing
        self._stopping = False
        p, R = np.empty((2, 3)), np.empty((2, 3, 3))
        p[foot], R[foot] = step.land_p, step.land_R
        p[1 - foot], R[1 - foot] = stance, level_with(step.normal, yaw)
        self._zmp.replace_rest(self._passing, foot, p, R)
        landing = self.footsteps[:1]
        self._add_steps(1 - foot, p, R, np.zeros(3), True)
        self._show(landing + self.footsteps)


def _centre(p: Array, R: Array) -> Heading:
    """Return the centre between the feet."""
    middle = 0.5 * (p[0] + p[1])
    ahead = R[0, :, 0] + R[1, :, 0]
    return Heading(middle[0], middle[1], math.atan2(ahead[1], ahead[0]))
