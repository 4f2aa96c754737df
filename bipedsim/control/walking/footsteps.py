"""Footsteps of a walk: where and when the feet touch down next, by a velocity or along a list, on the ground."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bipedsim.control.walking.cadence import StepTiming
from bipedsim.control.walking.stride import Stride
from bipedsim.control.walking.swing import WINDOW
from bipedsim.control.walking.terrain import MapFoothold, Terrain
from bipedsim.errors import ConfigError, warn_controller
from bipedsim.numerics import Array

HORIZON = 4
"""Number of planned steps; the effect of a fifth one would have decayed to a tenth of a millimetre."""
_LEVEL = np.array(WINDOW)
_LEANS = 0.1
"""Largest tilt [rad] of a foot that counts for the ground's normal; a foot on the edge of a tile tilts more."""


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


class WalkState(NamedTuple):
    """State of a walk between two steps, from which the next footsteps follow.

    Attributes:
        centre: Centre between the feet.
        velocity: (3,) ahead, to the left [m/s], and turn rate [rad/s].
        width: Distance between the feet [m].
    """

    centre: Heading
    velocity: Array
    width: float


class PlannedStep(NamedTuple):
    """A footstep, and the motion of foot and ZMP to it.

    Attributes:
        footstep: The touchdown.
        landing: Its position and heading.
        state: The walk after the step.
        timing: Times at this velocity on level ground.
        time: Duration of single support [s].
        window: See :class:`bipedsim.control.walking.swing.SwingStep`.
        displacement: (2,) of the foot [m].
        stance: (2,) position of the stance foot [m].
        stance_yaw: Its heading [rad].
        last: Whether the walk ends with this step.
    """

    footstep: Footstep
    landing: Heading
    state: WalkState
    timing: StepTiming
    time: float
    window: Array
    displacement: Array
    stance: Array
    stance_yaw: float
    last: bool

    @property
    def before(self) -> float:
        """Time from lift-off until the foot moves horizontally [s]."""
        return float(self.window[0]) * self.time

    @property
    def during(self) -> float:
        """Duration of the horizontal motion [s]."""
        return float(self.window[1] - self.window[0]) * self.time


class GaitGround:
    """The ground as a gait knows it: a map, or the plane of the last contacts, which continues.

    Args:
        terrain: The map; None for none.
        normal: (3,) estimated normal of the ground, updated by the gait.
        longest: Largest step length [m].

    Attributes:
        terrain: The map.
        normal: The argument.
    """

    def __init__(self, terrain: Terrain | None, normal: Array, longest: float) -> None:
        self.terrain = terrain
        self.normal = normal
        self._longest = longest
        self._blocked = ""

    def reset(self, R: Array) -> None:
        """Take the ground from the attitudes (2, 3, 3) of feet that stand on it."""
        self._blocked = ""
        normal = R[0, :, 2] + R[1, :, 2]
        self.normal[:] = normal / np.linalg.norm(normal)

    def touched(self, R: Array) -> None:
        """Update the plane with the attitude (3, 3) of a foot that has touched down."""
        turn = R[:, 2] - self.normal
        normal = self.normal + 0.5 * min(1.0, _LEANS / max(float(np.linalg.norm(turn)), 1e-9)) * turn
        self.normal[:] = normal / np.linalg.norm(normal)

    def height(self, point: Array, stance: Array) -> float:
        """Return the height [m] of the ground at ``point`` (2,), from that of the stance foot at ``stance`` (3,) [m].

        The difference comes from the map, or from the plane of the contacts if there is no map.
        """
        if self.terrain is not None:
            # Only the difference is used, because the drift of the estimated height is the same for both points.
            rise = self.terrain.height(point) - self.terrain.height(stance)
            if rise == rise:
                return float(stance[2] + rise)
        return float(stance[2] - (self.normal[:2] @ (point - stance[:2])) / self.normal[2])

    def level_at(self, landing: Heading) -> Array:
        """Return the attitude (3, 3) of a foot on the ground at ``landing``."""
        normal = self.normal if self.terrain is None else self.terrain.normal(landing.point)
        return level_with(normal, landing.yaw)

    def nearest(self, foot: int, target: Heading, own: Array, other: Array, onward: float = 0.0) -> MapFoothold:
        """Return the foothold of the map next to ``target``; see :meth:`Terrain.foothold`."""
        assert self.terrain is not None
        return self.terrain.foothold(foot, (target.x, target.y, target.yaw), own, other, onward, self._longest)

    def foothold(self, foot: int, landing: Heading, points: list[Array], stopping: bool) -> tuple[Heading, bool]:
        """Return the touchdown of ``foot`` near ``landing`` on the map, and whether there is a foothold.

        Without a foothold the foot closes the stance, the robot stops, and a warning gives the reason.
        """
        stance_point = points[1 - foot]
        c, s = math.cos(landing.yaw), math.sin(landing.yaw)
        onward = 0.0 if stopping else c * (landing.x - stance_point[0]) + s * (landing.y - stance_point[1])
        foothold = self.nearest(foot, landing, points[foot], stance_point, onward)
        if foothold.offset == foothold.offset:
            return landing.moved(foothold.offset, 0.0, 0.0), True
        assert self.terrain is not None
        reason = self.terrain.why_not(foothold)
        if reason != self._blocked:
            self._blocked = reason
            warn_controller(
                f"zmp: the robot stops before x = {landing.x:.2f}, y = {landing.y:.2f} m of its map: {reason}"
            )
        abreast = c * (stance_point[0] - landing.x) + s * (stance_point[1] - landing.y)
        return landing.moved(abreast, 0.0, 0.0), False


class _Feet:
    """Feet during the planned steps: positions (2,) [m], heights [m] and headings [rad] of both.

    Args:
        p, R: (2, 3), (2, 3, 3) poses before the first step.
    """

    def __init__(self, p: Array, R: Array) -> None:
        self.points = [p[0, :2], p[1, :2]]
        self.heights = [float(p[0, 2]), float(p[1, 2])]
        self.yaws = [yaw_of(R[0]), yaw_of(R[1])]
        self.start = p


class FootstepPlanner:
    """Choose the next footsteps.

    The centre between the feet follows the velocity step by step. Feet touch down half a step width to its left and
    right. When the robot moves or turns to a side, the foot on this side steps first and twice as far. The other foot
    follows, so that the feet never collide.

    Args:
        stride: Times, length and width of steps.
        ground: The ground.
    """

    def __init__(self, stride: Stride, ground: GaitGround) -> None:
        self._stride = stride
        self._ground = ground

    def along(self, footsteps: Sequence[Heading], foot: int, p: Array, R: Array, now: WalkState) -> list[PlannedStep]:
        """Return the next steps along ``footsteps``, of which ``foot`` takes the first one; see :meth:`towards`."""
        stride, width, feet = self._stride, self._stride.build.width, _Feet(p, R)
        steps: list[PlannedStep] = []
        for i, landing in enumerate(footsteps[:HORIZON]):
            centre = landing.moved(0.0, -0.5 * width * stride.side(foot), 0.0)
            length = math.hypot(centre.x - now.centre.x, centre.y - now.centre.y)
            now, cadence = WalkState(centre, now.velocity, width), stride.cadence()
            timing = cadence.timing(cadence.speed(length))
            steps.append(self._step(foot, feet, landing, now, timing, timing.single, i == len(footsteps) - 1))
            foot = 1 - foot
        return steps

    def towards(
        self, wanted: Array, stopping: bool, foot: int, p: Array, R: Array, now: WalkState, duration: float = 0.0
    ) -> list[PlannedStep]:
        """Return the next steps to reach a velocity.

        Args:
            wanted: (3,) velocity ahead, to the left [m/s], and turn rate [rad/s].
            stopping: Whether the first step is the last one, and closes the stance.
            foot: The foot that steps first.
            p, R: (2, 3), (2, 3, 3) poses of the feet.
            now: The walk before the first step.
            duration: Duration of the first step [s]; 0 for that of the velocity.
        """
        stride, feet = self._stride, _Feet(p, R)
        steps: list[PlannedStep] = []
        last = False
        while not last and len(steps) < HORIZON:
            velocity = np.zeros(3) if stopping else stride.next_velocity(now.velocity, wanted)
            width, side = stride.width_at(velocity), stride.side(foot)
            centre, last = self._advance(now.centre, foot, velocity), stopping
            if stopping:
                # The stance foot touched down closer to the centre than it has to be in the final stance.
                centre = centre.moved(0.0, 0.5 * (width - now.width) * side, 0.0)
            landing = centre.moved(0.0, 0.5 * width * side, 0.0)
            if self._ground.terrain is not None:
                landing, has_foothold = self._ground.foothold(foot, landing, feet.points, stopping)
                if not has_foothold:
                    velocity, last = np.zeros(3), True
                centre = landing.moved(0.0, -0.5 * width * side, 0.0)
            now, timing = WalkState(centre, velocity, width), stride.timing(velocity)
            single = timing.single if steps or not duration else duration
            steps.append(self._step(foot, feet, landing, now, timing, single, last))
            foot = 1 - foot
        return steps

    def _advance(self, centre: Heading, foot: int, velocity: Array) -> Heading:
        """Return the centre of the feet after a step of ``foot``."""
        time = self._stride.timing(velocity).period
        side = self._stride.side(foot)
        left = 2.0 * velocity[1] * time if side * velocity[1] > 0.0 else 0.0
        turn = 2.0 * velocity[2] * time if side * velocity[2] > 0.0 else 0.0
        return centre.moved(velocity[0] * time, left, turn)

    def _step(
        self, foot: int, feet: _Feet, landing: Heading, state: WalkState, timing: StepTiming, time: float, last: bool
    ) -> PlannedStep:
        """Return the step of ``foot`` to ``landing``, and move it there in ``feet``."""
        stance, terrain = 1 - foot, self._ground.terrain
        height, window = self._ground.height(landing.point, feet.start[stance]), _LEVEL
        if terrain is not None:
            time += terrain.extra_time(feet.heights[foot], feet.heights[stance], height)
            window = terrain.window(feet.heights[foot], height, window)
        footstep = Footstep(float(landing.x), float(landing.y), height, landing.yaw, foot)
        motion = time, window, landing.point - feet.points[foot], feet.points[stance], feet.yaws[stance]
        feet.points[foot], feet.yaws[foot], feet.heights[foot] = landing.point, landing.yaw, height
        return PlannedStep(footstep, landing, state, timing, *motion, last)

    def check(self, footsteps: Array) -> None:
        """Raise an error if the robot cannot take ``footsteps`` from standing.

        Args:
            footsteps: (n, 3) x, y [m] and yaw [rad] of alternating feet, in the frame midway between the feet.

        Raises:
            ConfigError: The shape is wrong, a value is not finite, or a step is too long or crosses the other foot.
        """
        steps, width, longest = np.asarray(footsteps, dtype=np.float64), self._stride.build.width, self._stride.longest
        if steps.ndim != 2 or steps.shape[1] != 3 or not len(steps) or not np.isfinite(steps).all():
            raise ConfigError(f"shape {steps.shape} must be (n, 3): x, y [m] and yaw [rad], all finite", "footsteps")
        side = 1.0 if steps[0, 1] > 0.0 else -1.0
        stance = Heading(0.0, -0.5 * width * side, 0.0)
        for i, (x, y, yaw) in enumerate(steps):
            c, s = math.cos(stance.yaw), math.sin(stance.yaw)
            dx, dy = x - stance.x, y - stance.y
            ahead, apart = c * dx + s * dy, side * (c * dy - s * dx)
            if abs(ahead) > longest or not 0.7 * width <= apart <= 2.0 * width:
                raise ConfigError(
                    f"is {ahead:.3g} m ahead and {apart:.3g} m outside of the other foot; it must be within "
                    f"{longest:.3g} m ahead and back, and {0.7 * width:.3g} to {2.0 * width:.3g} m outside",
                    f"footsteps[{i}]",
                    [x, y, yaw],
                )
            stance, side = Heading(x, y, yaw), -side
