"""A planar gait in x z: upright trunk, flat feet, and the centre of pressure in the middle of the stance foot.

On a flat foot a planar biped has as many drives as degrees of freedom. If the joints follow a plan, the robot follows
it too, as long as the centre of pressure that the plan needs is inside the sole (hurmuzlu2001, section 5.2.1). The hips
therefore move such that the inverse dynamics of the whole robot gives the desired centre of pressure. It is in the
middle of the stance foot in single support, and moves from one foot to the other in double support.

From step to step the robot is a linear inverted pendulum with a periodic centre of pressure. An iteration corrects for
the dynamics of legs and trunk, as in Kajita et al. 2003, "Biped walking pattern generation by using preview control of
zero-moment point".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy  # it imports its submodules at their first use

from bipedsim.control.output.planar_body import PlanarBody, PlanarFeet
from bipedsim.control.walking import TOP, height
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags, quintic

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline, PPoly

KNOT = 5e-3
"""Approximate time between two solved postures [s]."""
REFINED = 1e-5
"""Error of the periodic centre of pressure at which the iteration ends [m]."""
PASSES = 30
LEAD = 2
"""Steps from standing into the stride, and back; the pendulum's deviation from the stride decays as exp(-omega t)."""
SHAPE = 0.06
"""Time between the knots of the splines that are added to the trunk's quintic in these steps [s]."""
FORWARD = (0.05, 0.9)
"""Shares of single support between which the foot moves ahead, so that it touches down vertically."""
DEPTH = 5e-4
"""Depth [m] below the ground to which a foot is led, so that it touches down before it takes load; then it returns."""
COMING = 0.8
"""Share of single support after which contact of the swing foot counts as touchdown."""


@dataclass(frozen=True)
class PlanarGait:
    """Describe a planar gait.

    Attributes:
        n_steps: Number of steps, the second foot first; the last one closes the stance. 0 for no end.
        step_length, step_height: From one foot to the next, and rise of a foot [m].
        step_duration, step_shift: Times of single and double support [s].
        walk_begin: Time from standing to the first step, and from the last one to standing [s].
        walk_drop: Distance by which the hips are lower than in standing [m].
    """

    n_steps: int
    step_length: float
    step_height: float
    step_duration: float
    step_shift: float
    walk_begin: float
    walk_drop: float

    @property
    def period(self) -> float:
        """Duration of a step with its double support [s]."""
        return self.step_duration + self.step_shift


@dataclass(frozen=True)
class GaitPhase:
    """A phase of the gait: the weight shifts, or a foot swings.

    Attributes:
        duration: [s].
        feet: Forward displacement of both feet at the beginning [m].
        share: Share of the weight on the second foot at the beginning and at the end.
        foot: The swing foot, or the foot that has touched down if ``way`` is 0; -1 for none.
        way: Length of the swing [m].
    """

    duration: float
    feet: tuple[float, float]
    share: tuple[float, float]
    foot: int = -1
    way: float = 0.0


class GaitSegment:
    """Consecutive phases of the gait.

    Args:
        phases: The phases, at least one.
        rise: Height of a swing foot [m].
    """

    def __init__(self, phases: Sequence[GaitPhase], rise: float) -> None:
        self._phases, self._rise = phases, rise
        self.ends = np.concatenate([[0.0], np.cumsum([phase.duration for phase in phases])])
        self.duration = float(self.ends[-1])
        count = int(np.ceil(self.duration / KNOT))
        self.times: Array = np.linspace(0.0, self.duration, count + 1)

    def share(self, t: float) -> Array:
        """Return the shares (2,) of the weight at ``t`` [s]."""
        k = self._at(t)
        phase = self._phases[k]
        before, after = phase.share
        second = before + (after - before) * quintic(t - self.ends[k], phase.duration)[0]
        return np.array([1.0 - second, second])

    def coming(self, t: float) -> int:
        """Return the foot that may touch down at ``t`` [s], -1 for none."""
        k = self._at(t)
        phase = self._phases[k]
        late = phase.way > 0.0 and t - self.ends[k] > COMING * phase.duration
        return phase.foot if late else -1

    def feet(self, t: float) -> PlanarFeet:
        """Return the planned feet at ``t`` [s]."""
        k = self._at(t)
        phase = self._phases[k]
        ahead, up = np.array(phase.feet), np.zeros(2)
        since = t - self.ends[k]
        if phase.way > 0.0:
            begin, end = FORWARD
            ahead[phase.foot] += phase.way * quintic(since - begin * phase.duration, (end - begin) * phase.duration)[0]
            up[phase.foot] = height(since, phase.duration, 0.0, self._rise, -DEPTH, TOP, TOP)[0]
        elif phase.foot >= 0:
            up[phase.foot] = DEPTH * (quintic(since, phase.duration)[0] - 1.0)
        return PlanarFeet(ahead, up, self.share(t))

    def _at(self, t: float) -> int:
        return min(max(int(np.searchsorted(self.ends, t, "right")) - 1, 0), len(self._phases) - 1)


class PlanarWalk:
    """Plan joint angles of a gait over time: from standing into periodic steps, and back to standing.

    The first and the last ``LEAD`` steps are planned separately: they lead into the periodic gait and out of it.

    Args:
        robot: The robot.
        gait: Its gait.
        controller: Name of the controller, for messages.

    Attributes:
        start: (nu,) joint angles at rest [rad].

    Raises:
        ConfigError: The robot is no planar biped, or cannot walk with this gait.
    """

    def __init__(self, robot: Robot, gait: PlanarGait, controller: str) -> None:
        self._body, self._gait = PlanarBody(robot, controller), gait
        self.start: Array = robot.posture.copy()
        self._joints = robot.idx_v
        length, begin = gait.step_length, gait.walk_begin
        whole = 2.0 * length
        # Times of the stride count from the touchdown of the first step.
        self._joined = (LEAD - 1) * gait.period
        first = [GaitPhase(begin, (0.0, 0.0), (0.5, 0.0)), *self._steps((0.0, 0.0), 1, [length] + (LEAD - 1) * [whole])]
        self._first = GaitSegment(first, gait.step_height)
        landed = GaitPhase(gait.step_shift, (0.0, length), (0.0, 1.0), 1)
        self._stride = GaitSegment(
            [
                landed,
                *self._steps((0.0, length), 0, [whole]),
                replace(landed, feet=(whole, length), share=(1.0, 0.0), foot=0),
                *self._steps((whole, length), 1, [whole]),
            ],
            gait.step_height,
        )
        hips, strides = self._periodic()
        self._curves = [self._beginning(hips, strides), self._of_joints(strides)]
        self._middle = np.inf
        if gait.n_steps:
            before = gait.n_steps - LEAD
            leave_time = (before - 1) * gait.period + gait.step_shift
            self._middle = leave_time - self._joined
            swing = (before + 1) % 2
            feet = (-length, 0.0) if swing == 0 else (0.0, -length)
            last = self._steps(feet, swing, (LEAD - 1) * [whole] + [length])
            last_share = float(last[-1].share[1])
            final = (LEAD - 1) * length
            last.append(GaitPhase(begin, (final, final), (last_share, 0.5), last[-1].foot))
            self._last = GaitSegment(last, gait.step_height)
            self._curves.append(self._ending(hips, strides, leave_time, before * length))

    def _steps(self, feet: tuple[float, float], swing: int, lengths: Sequence[float]) -> list[GaitPhase]:
        """Return phases of steps that begin with the foot ``swing`` and alternate, with double support in between.

        Args:
            feet: Initial positions of the feet [m].
            swing: The first swing foot.
            lengths: Length of each swing [m].
        """
        gait, phases, positions = self._gait, list[GaitPhase](), list(feet)
        for i, length in enumerate(lengths):
            carries = float(1 - swing)
            if i:
                phases.append(
                    GaitPhase(gait.step_shift, (positions[0], positions[1]), (1.0 - carries, carries), 1 - swing)
                )
            phases.append(
                GaitPhase(gait.step_duration, (positions[0], positions[1]), (carries, carries), swing, length)
            )
            positions[swing] += length
            swing = 1 - swing
        return phases

    @property
    def duration(self) -> float:
        """Time from standing to standing [s]; infinite for a walk without end."""
        return self._first.duration + self._middle + (self._last.duration if self._gait.n_steps else 0.0)

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return angles (nu,) [rad], velocities and accelerations ``t`` [s] after the start."""
        k, _, since = self._segment(t)
        value, rate, bend = (curve(since) for curve in self._curves[k])
        resting = not 0.0 <= t < self.duration
        return value, np.zeros_like(rate) if resting else rate, np.zeros_like(bend) if resting else bend

    def share(self, t: float) -> Array:
        """Return the planned share of the weight on each foot (2,) ``t`` [s] after the start; 0 while it swings."""
        _, segment, since = self._segment(t)
        return segment.share(since)

    def coming(self, t: float) -> Flags:
        """Return which feet (2,) swing and may touch down ``t`` [s] after the start."""
        _, segment, since = self._segment(t)
        return np.arange(2) == segment.coming(since)

    def _segment(self, t: float) -> tuple[int, GaitSegment, float]:
        """Return the index of the segment at ``t`` [s], the segment, and the time in it [s]."""
        if t < self._first.duration:
            return 0, self._first, max(t, 0.0)
        since = t - self._first.duration
        if since < self._middle:
            return 1, self._stride, (since + self._joined) % self._stride.duration
        return 2, self._last, min(since - self._middle, self._last.duration)

    def _trunk(self, x: Array, drop: Array) -> Array:
        """Return positions (n, 2) of the trunk ``x`` (n,) ahead and ``drop`` (n,) lower than in standing."""
        home = self._body.robot.q_nominal[:2]
        return home + np.column_stack([x, -drop])

    def _periodic(self) -> tuple[CubicSpline, CubicSpline]:
        """Return the trunk's deviation from the even motion of a stride, and all coordinates of the stride [m, rad].

        If the pendulum moves as exp(i w t), its centre of pressure moves by 1 + w^2 / omega^2 times as much.
        """
        body, stride = self._body, self._stride
        times = stride.times
        speed = self._gait.step_length / self._gait.period
        feet = [stride.feet(t) for t in times]
        target_cop = body.middle + np.array([foot.share @ foot.ahead for foot in feet]) - speed * times
        w = 2.0 * np.pi * np.fft.rfftfreq(len(times) - 1, times[1])
        low = np.full(len(times), self._gait.walk_drop)
        ahead = np.zeros(len(times))
        error = target_cop - body.middle
        q = body.robot.q_nominal.copy()
        for _ in range(PASSES):
            change = np.fft.rfft(error[:-1]) / (1.0 + (w / body.omega) ** 2)
            ahead[:-1] += np.fft.irfft(change, len(times) - 1)
            ahead[-1] = ahead[0]
            postures = body.postures(self._trunk(ahead + speed * times, low), feet, q)
            q = postures[0]
            postures[:, 0] -= speed * times
            postures[-1] = postures[0]
            steps = scipy.interpolate.CubicSpline(times, postures, bc_type="periodic")
            error = target_cop - body.centre_of_pressure(postures, steps(times, 1), steps(times, 2))
            if np.abs(error).max() < REFINED:
                break
        else:
            raise body.refused(f"its centre of pressure stays {np.abs(error).max():.3g} m off the plan")
        return scipy.interpolate.CubicSpline(times, ahead, bc_type="periodic"), steps

    def _beginning(self, hips: CubicSpline, strides: CubicSpline) -> tuple[PPoly, PPoly, PPoly]:
        """Return the joints of the first steps, from standing into the stride."""
        end, rates = self._in_stride(hips, strides, self._joined)
        low = [self._gait.walk_drop * quintic(t, self._gait.walk_begin)[0] for t in self._first.times]
        return self._passage(self._first, np.array([np.zeros(3), end]), np.array(low), (np.zeros(9), rates))

    def _ending(self, hips: CubicSpline, strides: CubicSpline, t: float, ahead: float) -> tuple[PPoly, PPoly, PPoly]:
        """Return the joints of the last steps, from the stride at ``t`` [s]; the stance foot is ``ahead`` [m]."""
        gait, last = self._gait, self._last
        begin, rates = self._in_stride(hips, strides, t)
        begin[0] -= ahead
        end = np.array([(LEAD - 1) * gait.step_length, 0.0, 0.0])
        up = last.duration - gait.walk_begin
        low = [gait.walk_drop * (1.0 - quintic(t - up, gait.walk_begin)[0]) for t in last.times]
        return self._passage(last, np.array([begin, end]), np.array(low), (rates, np.zeros(9)))

    def _in_stride(self, hips: CubicSpline, strides: CubicSpline, t: float) -> tuple[Array, Array]:
        """Return position, velocity and acceleration (3,) of the trunk at ``t`` [s], and all velocities (9,)."""
        speed = self._gait.step_length / self._gait.period
        trunk = np.array([hips(t) + speed * t, hips(t, 1) + speed, hips(t, 2)])
        rates: Array = strides(t, 1)
        # The coordinates of the stride exclude its even motion.
        rates[0] += speed
        return trunk, rates

    def _passage(
        self, segment: GaitSegment, ends: Array, low: Array, rates: tuple[Array, Array]
    ) -> tuple[PPoly, PPoly, PPoly]:
        """Return the joints of a segment between standing and the stride.

        The trunk moves along a quintic plus splines that vanish with two derivatives at both ends. The splines minimise
        the squared error of the centre of pressure.

        Args:
            segment: The phases.
            ends: (2, 3) position, velocity and acceleration of the trunk at both ends [m, m/s, m/s^2].
            low: (n,) distance below the standing height [m].
            rates: Velocities (9,) of all coordinates at both ends.

        Raises:
            ConfigError: The centre of pressure would leave the soles.
        """
        body, times = self._body, segment.times
        feet = [segment.feet(t) for t in times]
        target_cop = body.middle + np.array([foot.share @ foot.ahead for foot in feet])
        ahead = scipy.interpolate.BPoly.from_derivatives(times[[0, -1]], ends)(times)
        inner = np.linspace(0.0, segment.duration, max(4, round(segment.duration / SHAPE)))
        knots = np.concatenate([np.zeros(5), inner, np.full(5, segment.duration)])
        shapes = scipy.interpolate.BSpline(knots, np.eye(len(knots) - 6), 5)
        moves, bends = shapes(times)[:, 3:-3], shapes(times, 2)[:, 3:-3]
        pressing = moves - bends / body.omega**2
        for _ in range(PASSES):
            postures = body.postures(self._trunk(ahead, low), feet, body.robot.q_nominal)
            curve = scipy.interpolate.CubicSpline(times, postures, bc_type=((1, rates[0]), (1, rates[1])))
            error = target_cop - body.centre_of_pressure(postures, curve(times, 1), curve(times, 2))
            step = moves @ np.linalg.lstsq(pressing, error, rcond=None)[0]
            if np.abs(step).max() < REFINED:
                break
            ahead = ahead + step
        deviation = float(np.abs(error).max())
        if deviation > body.room:
            raise body.refused(f"from or to standing its centre of pressure would be {deviation:.3g} m from mid-foot")
        return self._of_joints(curve)

    def _of_joints(self, curve: CubicSpline) -> tuple[PPoly, PPoly, PPoly]:
        """Extract the driven joints from a curve of all coordinates, with two derivatives."""
        joints = scipy.interpolate.PPoly(curve.c[:, :, self._joints], curve.x)
        return joints, joints.derivative(), joints.derivative(2)
