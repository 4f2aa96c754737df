"""Compute the metrics of one run, as defined in docs/compare.md."""

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
from bipedsim.numerics import Array, true_runs
from bipedsim.recording import Recording
from bipedsim.runs import SETTLE, Prepared
from bipedsim_studies.compare.meter import Meter

Figures = dict[str, float | int | None]

NOISE_HZ = 20.0
"""Cut-off frequency of the noise in a standing robot's vertical force [Hz]; also the low-pass of moraud2008."""


@dataclass(frozen=True)
class MetricDefinition:
    """Name, unit and rating of a metric.

    Attributes:
        name: Name in words.
        unit: Unit; empty for counts.
        better: Better values: "0", "less" or "more"; empty if no value is better.
        timed: Whether the metric depends on the machine.
    """

    name: str
    unit: str = ""
    better: str = ""
    timed: bool = False


FIGURES: dict[str, MetricDefinition] = {
    "fz_rest_error_N": MetricDefinition("vertical force at rest, error of mean", "N", "0"),
    "fz_noise_N": MetricDefinition("vertical force at rest, noise (rms)", "N", "0"),
    "fz_peak_N": MetricDefinition("vertical force, peak (of a landing: impulse / step)", "N"),
    "cop_range_x_mm": MetricDefinition("CoP, range forward", "mm"),
    "cop_range_y_mm": MetricDefinition("CoP, range sideways", "mm"),
    "cop_deviation_rms_mm": MetricDefinition("CoP from reference, rms", "mm"),
    "cop_deviation_max_mm": MetricDefinition("CoP from reference, max", "mm"),
    "penetration_max_um": MetricDefinition("penetration, max", "um", "0"),
    "penetration_settled_um": MetricDefinition("penetration, settled mean", "um", "0"),
    "foot_drift_m": MetricDefinition("foot drift (steps count)", "m"),
    "creep_um_s": MetricDefinition("foot creep", "um/s", "0"),
    "actuator_work_J": MetricDefinition("work of actuators", "J"),
    "push_work_J": MetricDefinition("work of pushes", "J"),
    "joint_loss_J": MetricDefinition("lost in joint friction", "J"),
    "energy_change_J": MetricDefinition("change of mechanical energy", "J"),
    "contact_loss_J": MetricDefinition("taken by contact (landings, slip)", "J"),
    "contact_rise_J": MetricDefinition("given by contact (springs give back)", "J", "0"),
    "energy_residual_J": MetricDefinition("energy balance, largest residual", "J", "0"),
    "joint_deviation_rad": MetricDefinition("joints from reference, max", "rad"),
    "state_changes": MetricDefinition("state changes"),
    "unresolved_steps": MetricDefinition("unresolved steps", "", "0"),
    "fell_at_s": MetricDefinition("fell at", "s"),
    "step_us": MetricDefinition("time per physics step, median", "us", "less", timed=True),
    "step_total_s": MetricDefinition("time in steps, total", "s", "less", timed=True),
    "step_real_time_factor": MetricDefinition("real-time factor of the steps", "", "more", timed=True),
}


def own_figures(recording: Recording, summary: dict[str, Any], meter: Meter, prepared: Prepared) -> Figures:
    """Return the metrics of a run that need no reference run."""
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
    """Return the deviations of a run from the run under the reference model; None for each without a reference."""
    figures: Figures = dict.fromkeys(("cop_deviation_rms_mm", "cop_deviation_max_mm", "joint_deviation_rad"))
    if reference is not None:
        distances = np.linalg.norm(centre_of_pressure(recording) - centre_of_pressure(reference), axis=1)
        distances = 1e3 * distances[np.isfinite(distances)]
        if len(distances):
            figures["cop_deviation_rms_mm"] = float(np.sqrt(np.mean(distances**2)))
            figures["cop_deviation_max_mm"] = float(distances.max())
        figures["joint_deviation_rad"] = float(joint_deviation(recording, reference).max(initial=0.0))
    return figures


def joint_deviation(recording: Recording, reference: Recording) -> Array:
    """Return the largest joint deviation from the reference, per tick (n,) [rad]."""
    return np.asarray(np.abs(recording.joint_position - reference.joint_position).max(axis=1, initial=0.0))


def vertical_force(recording: Recording) -> Array:
    """Return the vertical ground reaction force on all feet (n,) [N]."""
    return np.asarray(force_plate(recording).total_force[:, 2])


def centre_of_pressure(recording: Recording) -> Array:
    """Return the CoP of all feet in the world (n, 3) [m]; NaN below ``PRESSES`` of the weight."""
    loaded = vertical_force(recording) > PRESSES * recording.weight
    return np.where(loaded[:, None], recording.cop_world, np.nan)


def force_noise(recording: Recording) -> float | None:
    """Return the rms [N] of the vertical force above :data:`NOISE_HZ` while the robot stands.

    Each segment of :func:`standing_rows` is filtered separately, so that impacts outside it have no effect. Return None
    if no segment lasts 0.25 s, or if the sample rate is too low for frequencies above the cut-off.
    """
    rate = sample_rate(recording.t)
    if not rate > 2.0 * NOISE_HZ:
        return None
    force = vertical_force(recording)
    segments = [force[a:b] for a, b in true_runs(standing_rows(recording, SETTLE)) if b - a >= 0.25 * rate]
    if not segments:
        return None
    noise = np.concatenate([segment - low_pass(segment, rate, NOISE_HZ) for segment in segments])
    return float(np.sqrt(np.mean(noise**2)))


def _cop_range(points: Array) -> tuple[float | None, float | None]:
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return None, None
    x, y = 1e3 * np.ptp(points[:, :2], axis=0)
    return float(x), float(y)
