"""The figures of one run, as docs/compare.md defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.analysis import (
    PRESSES,
    creep_rate,
    force_plate,
    low_pass,
    sample_rate,
    settled_rows,
    sole_depth,
    sole_drift,
    standing_rows,
)
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim.runs import SETTLE, Prepared
from bipedsim_studies.compare.meter import Meter

Figures = dict[str, float | int | None]

NOISE_HZ = 20.0
"""What of a standing robot's vertical force is faster than this is noise [Hz]; also moraud2008's low-pass."""


@dataclass(frozen=True)
class Figure:
    """How a figure is shown.

    Attributes:
        name: In words.
        unit: Empty for counts.
        better: Which values are better: "0", "less" or "more"; empty where none is.
        timed: Whether it depends on the machine.
    """

    name: str
    unit: str = ""
    better: str = ""
    timed: bool = False


FIGURES: dict[str, Figure] = {
    "fz_rest_error_N": Figure("vertical force at rest, error of mean", "N", "0"),
    "fz_noise_N": Figure("vertical force at rest, noise (rms)", "N", "0"),
    "fz_peak_N": Figure("vertical force, peak (of a landing: impulse / step)", "N"),
    "cop_range_x_mm": Figure("CoP, range forward", "mm"),
    "cop_range_y_mm": Figure("CoP, range sideways", "mm"),
    "cop_deviation_rms_mm": Figure("CoP from reference, rms", "mm"),
    "cop_deviation_max_mm": Figure("CoP from reference, max", "mm"),
    "penetration_max_um": Figure("penetration, max", "um", "0"),
    "penetration_settled_um": Figure("penetration, settled mean", "um", "0"),
    "foot_drift_m": Figure("foot drift (steps count)", "m"),
    "creep_um_s": Figure("foot creep", "um/s", "0"),
    "actuator_work_J": Figure("work of actuators", "J"),
    "push_work_J": Figure("work of pushes", "J"),
    "joint_loss_J": Figure("lost in joint friction", "J"),
    "energy_change_J": Figure("change of mechanical energy", "J"),
    "contact_loss_J": Figure("taken by contact (landings, slip)", "J"),
    "contact_rise_J": Figure("given by contact (springs give back)", "J", "0"),
    "energy_residual_J": Figure("energy balance, largest residual", "J", "0"),
    "joint_deviation_rad": Figure("joints from reference, max", "rad"),
    "state_changes": Figure("state changes"),
    "unresolved_steps": Figure("unresolved steps", "", "0"),
    "fell_at_s": Figure("fell at", "s"),
    "step_us": Figure("time per physics step, median", "us", "less", timed=True),
    "step_total_s": Figure("time in steps, total", "s", "less", timed=True),
    "step_real_time_factor": Figure("real-time factor of the steps", "", "more", timed=True),
}


def own_figures(recording: Recording, summary: dict[str, Any], meter: Meter, prepared: Prepared) -> Figures:
    """Return the figures of a run that need no other run."""
    depth = sole_depth(recording, prepared.robot, prepared.ground)
    settled = settled_rows(recording, SETTLE)
    creep = creep_rate(recording, SETTLE)
    energies = meter.energies[-1]
    seconds = np.array(meter.step_seconds)
    mean = summary["fz_mean_over_mg"]
    ranges = _cop_range(centre_of_pressure(recording)[settled])
    return {
        "fz_rest_error_N": None if mean is None else abs(mean - 1.0) * recording.weight,
        "fz_noise_N": force_noise(recording),
        "fz_peak_N": float(vertical_force(recording).max()),
        "cop_range_x_mm": ranges[0],
        "cop_range_y_mm": ranges[1],
        "penetration_max_um": 1e6 * float(depth.max()),
        "penetration_settled_um": 1e6 * float(depth[settled].mean()),
        "foot_drift_m": sole_drift(recording, SETTLE),
        "creep_um_s": None if creep is None else 1e6 * creep,
        "actuator_work_J": float(energies[0]),
        "push_work_J": float(energies[1]),
        "joint_loss_J": float(energies[2]),
        "energy_change_J": float(energies[5]),
        "contact_loss_J": -float(energies[3]),
        "contact_rise_J": float(energies[4]),
        "energy_residual_J": float(np.abs(meter.residual).max()),
        "state_changes": summary["state_changes"],
        "unresolved_steps": summary["unresolved_steps"],
        "fell_at_s": summary["fell_at_s"],
        "step_us": 1e6 * float(np.median(seconds)) / meter.substeps,
        "step_total_s": float(seconds.sum()),
        "step_real_time_factor": summary["duration_s"] / float(seconds.sum()),
    }


def deviations(recording: Recording, reference: Recording | None) -> Figures:
    """Return how far a run is from the same run under the reference model; None without one."""
    figures: Figures = dict.fromkeys(("cop_deviation_rms_mm", "cop_deviation_max_mm", "joint_deviation_rad"))
    if reference is not None:
        apart = np.linalg.norm(centre_of_pressure(recording) - centre_of_pressure(reference), axis=1)
        apart = 1e3 * apart[np.isfinite(apart)]
        if len(apart):
            figures["cop_deviation_rms_mm"] = float(np.sqrt(np.mean(apart**2)))
            figures["cop_deviation_max_mm"] = float(apart.max())
        figures["joint_deviation_rad"] = float(joint_deviation(recording, reference).max(initial=0.0))
    return figures


def joint_deviation(recording: Recording, reference: Recording) -> Array:
    """Return the largest difference of a joint position from that of the reference, per tick (n,) [rad]."""
    return np.asarray(np.abs(recording.joint_position - reference.joint_position).max(axis=1, initial=0.0))


def vertical_force(recording: Recording) -> Array:
    """Return the vertical force of the ground on all feet (n,) [N]."""
    return np.asarray(force_plate(recording).total_force[:, 2])


def centre_of_pressure(recording: Recording) -> Array:
    """Return the CoP of all feet in the world (n, 3) [m], NaN below ``PRESSES`` of the weight."""
    loaded = vertical_force(recording) > PRESSES * recording.weight
    return np.where(loaded[:, None], recording.cop_world, np.nan)


def force_noise(recording: Recording) -> float | None:
    """Return the rms [N] of what :data:`NOISE_HZ` as low-pass takes from the vertical force while standing.

    Each stretch of :func:`standing_rows` is filtered by itself, so that no impact rings into it. None if it never
    stood for 0.25 s, or at a rate that holds nothing above the low-pass.
    """
    rate = sample_rate(recording.t)
    if not rate > 2.0 * NOISE_HZ:
        return None
    force = vertical_force(recording)
    standing = np.concatenate([[False], standing_rows(recording, SETTLE), [False]])
    ends = np.flatnonzero(np.diff(standing.astype(np.int8)))
    stretches = [force[a:b] for a, b in zip(ends[::2], ends[1::2], strict=True) if b - a >= 0.25 * rate]
    if not stretches:
        return None
    fast = np.concatenate([stretch - low_pass(stretch, rate, NOISE_HZ) for stretch in stretches])
    return float(np.sqrt(np.mean(fast**2)))


def _cop_range(points: Array) -> tuple[float | None, float | None]:
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return None, None
    x, y = 1e3 * np.ptp(points[:, :2], axis=0)
    return float(x), float(y)
