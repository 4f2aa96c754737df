"""The plan of a walk as readouts, which viewers draw in the world; docs/view.md lists the names."""

from __future__ import annotations

import math

from bipedsim.control.walking.footsteps import Footstep
from bipedsim.control.walking.gait import WalkGait
from bipedsim.control.walking.reference import Reference
from bipedsim.numerics import Array

SHOWN = 3
"""Number of footsteps shown; later ones would change with the command before the robot takes them."""
PERIOD = 0.01
"""Update period [s] of the shown plan; viewers need no more, and updates cost time in the control loop."""
_POINTS = tuple(f"plan_{point}_{axis}" for point in ("com", "dcm", "zmp") for axis in "xyz")
_STEP = ("x", "y", "z", "yaw", "foot")


class ShownPlan:
    """Publish planned CoM, DCM, ZMP, and footsteps as poses of the soles' frames [m], [rad]; NaN without a plan.

    The gait plans ZMP p and DCM xi. The CoM that belongs to them converges to xi: x' = omega (xi - x).

    Args:
        omega: sqrt(g / z) of the pendulum [1/s].
        centres: (2, 2) of the soles in their own frames [m].

    Attributes:
        readouts: The names, with NaN.
        due: Time of the next :meth:`update`, :data:`PERIOD` after the last one [s].
    """

    def __init__(self, omega: float, centres: Array) -> None:
        self._omega = omega
        self._centres = centres.tolist()
        self._names = [[f"plan_step_{i + 1}_{part}" for part in _STEP] for i in range(SHOWN)]
        self.readouts = dict.fromkeys((*_POINTS, *(name for names in self._names for name in names)), math.nan)
        self.reset(0.0, 0.0, 0.0)

    def reset(self, t: float, x: float, y: float) -> None:
        """Begin at the time ``t`` [s], with the CoM over (x, y) [m]."""
        self._t, self.due, self._changes = t, t, -1
        # At rest the CoM and the DCM coincide.
        self._com = self._xi = (x, y)

    def update(
        self, t: float, ref: Reference, ground: float, height: float, gait: WalkGait, shown: dict[str, float]
    ) -> None:
        """Write the plan into ``shown``.

        Args:
            t: Time [s] for which the plan was evaluated.
            ref: Planned ZMP and DCM.
            ground, height: Planned height of ZMP and DCM, and of the CoM over them [m].
            gait: The gait with its footsteps.
            shown: Readouts of the controller, which have the names of :attr:`readouts`.
        """
        (xi_x, xi_y), (zmp_x, zmp_y) = ref.xi.tolist(), ref.zmp.tolist()
        stays = math.exp(-self._omega * (t - self._t))
        x, y = self._com
        # The solution treats the DCM as constant, at its mean over the elapsed time.
        at_x, at_y = 0.5 * (self._xi[0] + xi_x), 0.5 * (self._xi[1] + xi_y)
        self._com = x, y = at_x + stays * (x - at_x), at_y + stays * (y - at_y)
        self._t, self.due, self._xi = t, t + PERIOD - 1e-6, (xi_x, xi_y)
        places = (x, y, ground + height, xi_x, xi_y, ground, zmp_x, zmp_y, ground)
        for name, value in zip(_POINTS, places, strict=True):
            shown[name] = value
        if gait.changes != self._changes:
            self._changes = gait.changes
            for i, names in enumerate(self._names):
                step = self._of_frame(gait.footsteps[i]) if i < len(gait.footsteps) else (math.nan,) * len(_STEP)
                shown.update(zip(names, step, strict=True))

    def _of_frame(self, step: Footstep) -> tuple[float, ...]:
        (x, y), c, s = self._centres[step.foot], math.cos(step.yaw), math.sin(step.yaw)
        return step.x - c * x + s * y, step.y - s * x - c * y, step.z, step.yaw, step.foot
