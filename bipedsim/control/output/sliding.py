"""Variable structure control with a boundary layer (hurmuzlu2001 section 5.2.1, eq. 57).

Source of the boundary layer: J.-J. Slotine, W. Li, Applied Nonlinear Control, 1991, chapter 7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.config import param
from bipedsim.control.output.output_tracking import OutputTracking
from bipedsim.control.posture import ReferenceParams
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array


@dataclass(frozen=True)
class SlidingParams(ReferenceParams):
    """Parameters of :class:`SlidingController`; `outputs` may contain `roll` and `pitch` of the IMU's body."""

    slope: float = param(
        10.0, "lam of s = e' + lam e: rate of the error on the surface", unit="1/s", low=1e-3, high=1e3, live=True
    )
    reach: float = param(
        20.0,
        "eta: rate at which |s| decreases outside the layer; must exceed the largest disturbance",
        unit="rad/s^2",
        low=0.0,
        live=True,
    )
    layer: float = param(0.5, "half width of the boundary layer of s", unit="rad/s", low=1e-6, high=100.0, live=True)


class SlidingController(OutputTracking):
    """Reduce s = e' + lam e of every output by ``reach`` per second until |s| is within ``layer``.

    u = u_hat - k sat(s / layer). The torque u_hat keeps s constant according to the model. The gain k = (H A)^+ reach
    accelerates the outputs by ``reach``.

    |s| is in the layer after (|s(0)| - layer) / reach, and decays there with the rate reach / layer. A disturbance of
    d < reach leaves |s| <= layer d / reach, and |e| <= |s| / slope.

    Attributes:
        readouts: With ``sliding_variable``, the largest |s| of the last tick [rad/s].

    Raises:
        ConfigError: s would cross the layer within a tick; or as :class:`OutputTracking`.
    """

    Params = SlidingParams
    who = "sliding"

    def __init__(self, robot: Robot, params: SlidingParams, dt: float) -> None:
        super().__init__(robot, params, dt)
        self._dt = dt
        self.tune(params)
        self.readouts["sliding_variable"] = 0.0

    def tune(self, params: SlidingParams) -> None:
        """Take slope, reach and layer between two updates.

        Raises:
            ConfigError: s would cross the layer within a tick.
        """
        if params.reach * self._dt > params.layer:
            raise ConfigError(
                f"rad/s^2 crosses half the layer of {params.layer:g} rad/s within a tick of {self._dt:g} s, and "
                f"torques chatter; widen the layer to {params.reach * self._dt:g} at least",
                "sliding: reach",
                params.reach,
            )
        self._slope, self._reach, self._layer = params.slope, params.reach, params.layer

    def wanted(self, error: Array, rate: Array, acceleration: Array) -> Array:
        """Return the desired y'' of u_hat and of the switching part."""
        s = rate + self._slope * error
        self.readouts["sliding_variable"] = float(np.abs(s).max())
        switching: Array = self._reach * np.clip(s / self._layer, -1.0, 1.0)
        return acceleration - self._slope * rate - switching
