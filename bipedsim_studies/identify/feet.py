"""Compute the forces of the ground on the feet, and how the feet move, from the identified numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bipedsim.numerics import Array, Flags
from bipedsim_studies.identify.equations import Equations
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.lacking import ankles_to_soles, measured_in_soles
from bipedsim_studies.identify.signals import HANN, TAPS, Signals

LOADED = 0.1
"""Share of the weight that a foot carries at least where its force counts."""
TURNS = 0.1
"""Angular velocity about an axis in the sole [rad/s] from which a foot turns on the ground, and is not flat on it."""
_BESIDE = TAPS // 2


@dataclass(frozen=True, eq=False)
class Feet:
    """Forces on K feet and their motion at n times, in the frames of the soles, whose third axis is the normal.

    Attributes:
        t: (n,) times [s].
        wrench: (n, K, 6) of the ground on the foot at the origin of the sole [N, N.m].
        slope: (n, K, 6, 16) its derivatives with respect to the offsets of its sensor and its body in this recording.
        numbers: (K, 16, P) derivatives of these with respect to all numbers of the estimate.
        covariance: (K, 16, 16) of the errors of these.
        noise: (K, 6) standard deviation of the noise of the wrench after both smoothing windows.
        turning: (n, K, 3) angular velocity of the foot [rad/s].
        apart: (n, K, K, 3) velocity of the point of foot i at its centre of pressure relative to that of foot j, in the
            axes of foot i [m/s]. The point is the origin of the sole if the centre of pressure is not measured.
        measured: (K, 6) components of ``wrench`` that the ankle sensors measure.
        loaded: (n, K) whether a foot carries a load, as far as its sensor measures it.
        flat: (n, K) whether it is loaded and does not turn during the second smoothing window.
    """

    t: Array
    wrench: Array
    slope: Array
    numbers: Array
    covariance: Array
    noise: Array
    turning: Array
    apart: Array
    measured: Flags
    loaded: Flags
    flat: Flags

    @classmethod
    def of(cls, equations: Equations, signals: Signals, result: Estimate, recording: int) -> Feet:
        """Return forces and motion of the feet.

        Args:
            equations: Equations of the robot.
            signals: Signals of the recording.
            result: The estimate.
            recording: Index of the recording in the estimate.
        """
        robot, n = equations.robot, len(signals)
        feet = len(robot.soles)
        wrench, slope = np.zeros((n, feet, 6)), np.zeros((n, feet, 6, 16))
        turning = np.zeros((n, feet, 3))
        measured = measured_in_soles(robot, signals.lacking.wrenches)
        velocity, axes = np.zeros((n, feet, 3)), np.zeros((n, feet, 3, 3))
        numbers = result.unknowns.of_all(np.eye(len(result.parameters))[equations.of_feet], recording)
        for k, (data, ground, derivative) in enumerate(equations.feet(signals, result.in_recording(recording))):
            for foot, sole in enumerate(robot.soles):
                placement = sole.placement_joint_sole
                to_sole = placement.inverse().toDualActionMatrix()
                wrench[k, foot], slope[k, foot] = to_sole @ ground[foot], to_sole @ derivative[foot]
                v = placement.actInv(data.v[sole.joint_id])
                turning[k, foot] = v.angular
                axes[k, foot] = (data.oMi[sole.joint_id] * placement).rotation
                at = np.append(centre_of_pressure(wrench[k, foot]) * measured[foot, 2:5].all(), 0.0)
                velocity[k, foot] = axes[k, foot] @ (v.linear + np.cross(v.angular, at))
        apart = np.einsum("nkba,nklb->nkla", axes, velocity[:, :, None] - velocity[:, None])
        loaded = (wrench[:, :, 2] > LOADED * robot.weight) & measured[:, 2]
        rests = loaded & (np.linalg.norm(turning[:, :, :2], axis=-1) < TURNS)
        white = signals.noise[-6 * feet :].reshape(feet, 6)
        return cls(
            signals.t,
            wrench,
            slope,
            numbers,
            numbers @ result.all_covariance @ numbers.swapaxes(1, 2),
            np.sqrt(np.einsum("kij,kj->ki", ankles_to_soles(robot) ** 2, white**2)),
            turning,
            apart,
            measured,
            np.asarray(loaded),
            throughout(np.asarray(rests)),
        )

    @property
    def sheared(self) -> Flags:
        """Whether each sensor measures all forces on its sole (K,)."""
        return np.asarray(self.measured[:, :3].all(axis=1))

    @property
    def has_cop(self) -> Flags:
        """Whether each sensor measures the centre of pressure (K,)."""
        return np.asarray(self.measured[:, 2:5].all(axis=1))

    @property
    def loaded_throughout(self) -> Flags:
        """Whether each foot carries a load during the second smoothing window (n, K)."""
        return throughout(self.loaded)

    def smoothed(self) -> tuple[Array, Array]:
        """Return ``wrench`` and ``slope`` through the second smoothing window; its length is lost at both ends."""
        wrench = sliding_window_view(self.wrench, TAPS, axis=0) @ HANN
        return np.asarray(wrench), np.asarray(sliding_window_view(self.slope, TAPS, axis=0) @ HANN)


def centre_of_pressure(wrench: Array) -> Array:
    """Return the centre of pressure (..., 2) of wrenches (..., 6) in the plane of the sole [m]."""
    normal = wrench[..., 2:3]
    return np.asarray(np.stack([-wrench[..., 4], wrench[..., 3]], axis=-1) / np.where(normal > 0.0, normal, np.inf))


def throughout(flags: Flags) -> Flags:
    """Return whether ``flags`` (n, m) hold in each row and in all others of its second smoothing window."""
    padded = np.pad(flags, ((_BESIDE, _BESIDE), (0, 0)))
    return np.asarray(np.all(sliding_window_view(padded, TAPS, axis=0), axis=-1))
