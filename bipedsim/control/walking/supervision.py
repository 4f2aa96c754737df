"""ZMP supervision: monitor the distance of the measured ZMP from the edge, and slow down or stop if it is too small.

A gait is safe while the ZMP stays inside the support polygon. If the ZMP reaches the edge, a supervisor changes the
gait before the robot tips (Hurmuzlu et al. 2001, section 5.2.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param
from bipedsim.control.walking.body import FootStates
from bipedsim.numerics import kernel

_RECOVERY = 0.25
"""Share of the command restored after a step with enough margin, and after a rest."""
_REST = 1.0
"""Time for which a stopped robot must stand with enough margin before it walks again [s]."""


@dataclass(frozen=True)
class SupervisionParams:
    """Thresholds of the ZMP supervision."""

    margin_least: float = param(0.002, "minimum distance of the ZMP to the edge", unit="m", low=0.0, high=1.0)
    margin_time: float = param(
        0.15, "for which it must be less within one step; 0 switches the supervision off", unit="s", low=0.0
    )
    impact_time: float = param(0.05, "time around a touchdown in which the ZMP is ignored", unit="s", low=0.0)


@kernel
def measured_zmp(feet: FootStates, wrench, centres, least, zmp) -> bool:  # type: ignore[no-untyped-def]
    """Fill ``zmp`` (2,) [m] from the ground reaction wrenches; return whether the feet carry at least ``least`` [N].

    Args:
        feet: Poses of the feet.
        wrench: (K, 6) in the sole frames at their origins, force first.
        centres: (K, 2) centres of the soles in their frames [m].
        least: Minimum force [N].
        zmp: Result.
    """
    total = 0.0
    x = 0.0
    y = 0.0
    for k in range(wrench.shape[0]):
        f = wrench[k, 2]
        if f <= 0.0:
            continue
        # Both are f times the distance from the centre of the sole to its CoP.
        ahead = -wrench[k, 4] - f * centres[k, 0]
        aside = wrench[k, 3] - f * centres[k, 1]
        x += f * feet.p[k, 0] + feet.R[k, 0, 0] * ahead + feet.R[k, 0, 1] * aside
        y += f * feet.p[k, 1] + feet.R[k, 1, 0] * ahead + feet.R[k, 1, 1] * aside
        total += f
    if total < least:
        return False
    zmp[0] = x / total
    zmp[1] = y / total
    return True


class Supervisor:
    """Shorten the steps, and then stop, while the measured ZMP is close to the edge of the support polygon.

    A step in which the ZMP was too close for too long halves the applied share of the command. Two such steps in a row
    stop the robot. It walks again after it has stood for a second with enough margin, or after the command has been
    zero once. Every other step restores a quarter.

    Args:
        params: See :class:`SupervisionParams`.
        dt: Control period [s].

    Attributes:
        share: Share of the velocity command to apply, 0 to 1.
    """

    def __init__(self, params: SupervisionParams, dt: float) -> None:
        self._params = params
        self._dt = dt
        self.reset()

    def reset(self) -> None:
        """Apply the whole command."""
        self.share = 1.0
        self._near = 0.0
        self._bad_steps = 0
        self._rested = 0.0
        self._quiet_until = -1e300

    def touched_down(self, t: float) -> None:
        """Ignore the ZMP for ``impact_time`` after a touchdown at ``t`` [s]."""
        self._quiet_until = t + self._params.impact_time

    def watch(self, t: float, margin: float, commanded: bool, stands: bool) -> bool:
        """Process the margin of one tick; return whether it counts.

        Args:
            t: Time [s].
            margin: Distance of the measured ZMP from the edge [m].
            commanded: Whether the command asks to move.
            stands: Whether the robot stands, without a step in progress.
        """
        if self.share == 0.0 and not commanded:
            self.reset()
        if t < self._quiet_until:
            return False
        near = margin < self._params.margin_least
        if near:
            self._near += self._dt
        if self.share == 0.0:
            self._rested = self._rested + self._dt if stands and not near else 0.0
            if self._rested > _REST:
                self.share, self._bad_steps, self._near, self._rested = _RECOVERY, 0, 0.0, 0.0
        return True

    def step_begun(self) -> None:
        """Evaluate the step that ends here."""
        limit = self._params.margin_time
        if limit > 0.0 and self._near > limit:
            self._bad_steps += 1
            self.share = 0.5 * self.share if self._bad_steps < 2 else 0.0
        elif self.share > 0.0:
            self._bad_steps = 0
            self.share = min(1.0, self.share + _RECOVERY)
        self._near = 0.0
