"""The ZMP of a walk, planned piece by piece through the footsteps, and the DCM that belongs to it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bipedsim.control.walking.dcm import DcmPlan, add_line, add_swing, begin_at, lean_first, solve_backwards
from bipedsim.control.walking.footsteps import HORIZON, PlannedStep, yaw_of
from bipedsim.control.walking.stride import GaitParams, Stride
from bipedsim.control.walking.swing import EVEN, PEAK
from bipedsim.numerics import Array

SINGLE = 3
"""Number of pieces of the plan for a single support; the next piece shifts the weight."""


class ZmpPlan:
    """Plan the ZMP under the stance foot and from foot to foot.

    Args:
        params: Durations, and the inertia of the swing leg.
        stride: ZMP under a foot.

    Attributes:
        dcm: The pieces of the plan.
        single: Number of pieces until the end of the current single support.
    """

    def __init__(self, params: GaitParams, stride: Stride) -> None:
        self._params = params
        self._stride = stride
        self._omega = stride.build.omega
        self.dcm = DcmPlan.empty(4 * HORIZON + 8)
        self.single = SINGLE
        self._begin = np.zeros(2)

    def restart(self, t: float) -> None:
        """Delete all pieces, and begin at ``t`` [s]."""
        self.dcm.n[0] = 0
        self.dcm.knots[0] = t

    def _finish(self, end: Array) -> None:
        """Fill the DCM, which comes to rest at ``end`` (2,) [m]."""
        solve_backwards(self.dcm, self._omega, end, self._begin)

    def _under(self, foot: int, p: Array, R: Array) -> Array:
        return self._stride.zmp(foot, p[foot], yaw_of(R[foot]))

    def _middle(self, p: Array, R: Array) -> Array:
        zmps = [self._under(k, p, R) for k in (0, 1)]
        return 0.5 * (zmps[0] + zmps[1])

    def stand(self, t: float, ramp: float, com: Array, p: Array, R: Array) -> None:
        """Plan a motion of the CoM in ``ramp`` [s] from ``com`` (2,) [m] to between the feet."""
        self.restart(t)
        middle = self._middle(p, R)
        add_line(self.dcm, ramp, com, middle)
        self._finish(middle)

    def shift_weight(self, t: float, stance: int, p: Array, R: Array) -> None:
        """Plan the shift from standing to the foot ``stance``; steps or a route must follow."""
        middle = self._middle(p, R)
        self.restart(t)
        add_line(self.dcm, self._params.start_hold, middle, middle)
        add_line(self.dcm, self._params.start_shift, middle, self._under(stance, p, R))

    def add_route(self, route: Array, stance: int, p: Array, R: Array) -> None:
        """Add the swing along ``route``, in the axes of the world, and the shift back to the middle."""
        under = self._under(stance, p, R)
        for duration, *displacement in np.diff(route[:, :3], axis=0):
            leg_shift = self._params.swing_inertia * np.array(displacement)
            add_swing(self.dcm, duration, under, under, leg_shift, np.zeros(2), 0.0)
        middle = self._middle(p, R)
        add_line(self.dcm, self._params.stop_shift, under, middle)
        self._finish(middle)

    def add_steps(self, steps: Sequence[PlannedStep], velocity: Array) -> None:
        """Add steps, and the shift to between the feet if the last one ends the walk.

        Args:
            steps: The steps.
            velocity: (3,) velocity before the first one.
        """
        stride, plan, first = self._stride, self.dcm, steps[0]
        under = stride.zmp(1 - first.footstep.foot, first.stance, first.stance_yaw)
        backward = stride.roll(velocity, stride.timing(velocity).period, first.stance_yaw)
        for step in steps:
            foot, landing, velocity, period = step.footstep.foot, step.landing, step.state.velocity, step.timing.period
            before, during = step.before, step.during
            onward = stride.roll(velocity, period, step.stance_yaw)
            start, rate = under - backward, (onward + backward) / step.time
            lifts, lands, end = start + before * rate, start + (before + during) * rate, under + onward
            add_line(plan, before, start, lifts)
            add_swing(
                plan, during, lifts, lands, self._params.swing_inertia * step.displacement, self.knee_shift(step), EVEN
            )
            add_line(plan, step.time - before - during, lands, end)
            following = stride.zmp(foot, landing.point, landing.yaw)
            if step.last:
                under = 0.5 * (under + following)
                add_line(plan, self._params.stop_shift, end, under)
                break
            backward = stride.roll(velocity, period, landing.yaw)
            add_line(plan, step.timing.double, end, following - backward)
            under = following
        self._finish(under)

    def knee_shift(self, step: PlannedStep) -> Array:
        """Return the ZMP shift (2,) [m] of a step due to the bending of the leg, at both ends of the swing."""
        c, s = math.cos(step.stance_yaw), math.sin(step.stance_yaw)
        # This is the speed in mid-swing relative to the hips, which advance half as far as the foot in a step.
        ahead = c * step.displacement[0] + s * step.displacement[1]
        speed = ahead * (PEAK / step.during - 0.5 / step.timing.period)
        return np.array([c, s]) * (2.0 * self._stride.build.knee_inertia * speed * speed)

    def needed_shift(self, t: float, xi: Array) -> float:
        """Return the shift [m] of the ZMP in single support with which the plan from ``t`` begins at the DCM ``xi``."""
        time = self.dcm.knots[SINGLE] - t
        return float(np.hypot(*(xi - self._begin))) / (1.0 - math.exp(-self._omega * time))

    def begin_at(self, xi: Array, single: int = SINGLE) -> None:
        """Shift the ZMP of the single support, the first ``single`` pieces, so that the DCM begins at ``xi`` (2,)."""
        begin_at(self.dcm, self._omega, single, self._begin, xi, 2.0 * self._stride.build.room)
        self.single = single
        self._start = self.dcm.zmp[0, :, 0].copy()

    def lean(self, xi: Array) -> None:
        """Bend the ZMP of the first piece so that the DCM begins at ``xi`` (2,)."""
        lean_first(self.dcm, self._omega, self._begin, xi)

    @property
    def landing_dcm(self) -> Array:
        """(2,) DCM at the end of the current single support [m]."""
        return self.dcm.end[self.single - 1]

    def _last_zmp(self) -> Array:
        """Return the planned ZMP (2,) [m] at the end of the current single support."""
        plan, last = self.dcm, self.single - 1
        duration = plan.knots[last + 1] - plan.knots[last]
        return plan.zmp[last] @ duration ** np.arange(4)

    def retime(self, t: float, end: float, path: Array, duration: float) -> None:
        """Restart the plan at ``t``, with the current single support until ``end`` [s], followed by the rest.

        Args:
            t, end: Times [s].
            path: (2, 6) new path of the swing foot; see :class:`bipedsim.control.walking.swing.SwingStep`.
            duration: Its duration [s].
        """
        plan, single, last = self.dcm, self.single, int(self.dcm.n[0])
        last_under, since = self._last_zmp(), (t - plan.knots[0]) / (plan.knots[single] - plan.knots[0])
        # This is the present ZMP under the stance foot, without the shift for the motion of the leg.
        under = self._start + since * (last_under - self._start)
        after, durations = plan.zmp[single:last].copy(), np.diff(plan.knots[single : last + 1])
        finish = plan.end[last - 1].copy()
        self.restart(t)
        lands = under + duration / (end - t) * (last_under - under)
        add_line(plan, duration, under, lands)
        # The inertia of the leg shifts the ZMP along the new path.
        plan.zmp[0] -= self._params.swing_inertia * path[:, 2:] * np.array([2.0, 6.0, 12.0, 20.0])
        add_line(plan, end - t - duration, lands, last_under)
        self._start = under
        for duration, zmp in zip(durations, after, strict=True):
            add_line(plan, duration, under, under)
            plan.zmp[plan.n[0] - 1] = zmp
        self.single = 2
        plan.end[plan.n[0] - 1] = finish

    def move_landing(self, moved: Array, over: Array) -> None:
        """Move the rest of the plan by ``moved`` (2,), and its end by ``over`` (2,) [m]."""
        plan, last, single = self.dcm, int(self.dcm.n[0]) - 1, self.single
        plan.zmp[single, :, 1] += over / (plan.knots[single + 1] - plan.knots[single])
        plan.zmp[single + 1 : last + 1, :, 0] += moved
        self._finish(plan.end[last] + over)

    def replace_rest(self, duration: float, foot: int, p: Array, R: Array) -> None:
        """Replace all pieces after the current single support by a shift to ``foot``; steps must follow.

        Args:
            duration: Duration of the shift [s].
            foot: The foot that touches down.
            p, R: (2, 3), (2, 3, 3) poses of the feet.
        """
        under = self._last_zmp()
        self.dcm.n[0] = self.single
        add_line(self.dcm, duration, under, self._under(foot, p, R))
