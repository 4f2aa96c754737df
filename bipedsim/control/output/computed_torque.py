"""Computed torque on joint or virtual constraints (hurmuzlu2001 section 5.2.1, eq. 55 and 56).

Y. Hurmuzlu, F. Genot, B. Brogliato: Modeling, stability and control of biped robots - a general framework. INRIA, 2001.
"""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param
from bipedsim.control.output.output_tracking import OutputTracking
from bipedsim.control.posture import ReferenceParams
from bipedsim.numerics import Array


@dataclass(frozen=True)
class ComputedTorqueParams(ReferenceParams):
    """Parameters of :class:`ComputedTorqueController`; `outputs` may contain `roll` and `pitch` of the IMU's body."""

    frequency: float = param(
        10.0, "natural frequency w of the error: C3 = w^2 in eq. 55", unit="rad/s", low=1e-3, high=1e3, live=True
    )
    damping_ratio: float = param(1.0, "damping z of the error: C2 = 2 z w in eq. 55", low=1e-3, high=10.0, live=True)


class ComputedTorqueController(OutputTracking):
    """Make the constraints g = y - y_ref follow g'' + C2 g' + C3 g = 0 with torques of the constrained dynamics.

    This is eq. 55 for holonomic constraints, C1 = 1. The error has the poles -w (z +- sqrt(z^2 - 1)) for any robot.
    This holds as long as its model is right, its feet rest and no drive is at its limit. Virtual constraints are sums
    of joints and of the trunk's roll and pitch.
    """

    Params = ComputedTorqueParams
    who = "computed_torque"

    def tune(self, params: ComputedTorqueParams) -> None:
        """Take frequency and damping between two updates."""
        self._params = params

    def wanted(self, error: Array, rate: Array, acceleration: Array) -> Array:
        """Return y'' of eq. 55."""
        p = self._params
        return acceleration - 2.0 * p.damping_ratio * p.frequency * rate - p.frequency**2 * error
