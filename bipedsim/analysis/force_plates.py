"""Metrics of force plates of a run or a laboratory: contacts, peaks, impulses, loading rate, path of the CoP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.analysis.plates import centre_of_pressure, low_pass
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import CHANNELS, THRESHOLD, PlateSignals
from bipedsim.recording import Recording, between, load_recording, nothing_between
from bipedsim.recording.lab import is_trial, read_trial

WINDOW = 0.02
"""Window of the mean that gives the force after the short peak of an impact [s]."""
SHORTEST = 0.01
"""Minimum duration of a contact [s]."""
BRIDGED = 0.02
"""Longest gap within a contact [s], because a plate rings after an impact, and a foot may rock."""


@dataclass(frozen=True, eq=False)
class PlateRun:
    """The force plates of a file.

    Attributes:
        plates: Samples by name.
        recording: The run of a robot; None for a laboratory's file.
        notes: Remarks on the file.
    """

    plates: Mapping[str, PlateSignals]
    recording: Recording | None = None
    notes: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """Weight m g of the robot or person [N], NaN if unknown."""
        return float("nan") if self.recording is None else self.recording.weight


def load_plates(path: Path | str, start: float | None = None, stop: float | None = None) -> PlateRun:
    """Read the force plates of a run, a bag or a laboratory's file.

    Args:
        path: A path for :func:`bipedsim.recording.load_recording` or :func:`bipedsim.recording.lab.read_trial`.
        start, stop: Samples outside these times [s] are left out.

    Raises:
        RecordingError: The file cannot be read, or has no force plates.
    """
    if is_trial(path):
        return _load_trial(path, start, stop)
    recording = load_recording(path, start=start, stop=stop)
    if not recording.force_plates:
        raise RecordingError(
            "the run has no force plates; a .csv of a run never has them. Add `force_plates:` to its scenario "
            "(docs/force_plates.md), or plot the forces under the feet with `bipedsim plot`",
            path,
        )
    return PlateRun(recording.force_plates, recording)


def _load_trial(path: Path | str, start: float | None, stop: float | None) -> PlateRun:
    trial = read_trial(path)
    plates = {}
    for plate in trial.plates:
        inside = between(plate.t, start, stop)
        if not inside.any():
            raise nothing_between(start, stop, str(path), plate.t[0], plate.t[-1])
        plates[plate.geometry.name] = replace(plate, t=plate.t[inside], channels=plate.channels[inside])
    return PlateRun(plates, None, trial.notes)


def filtered(signals: PlateSignals, cutoff: float, order: int = 4) -> PlateSignals:
    """Filter the wrench of a plate with a zero-phase Butterworth low-pass, as a plate of type 2.

    Args:
        signals: At least two samples.
        cutoff: Half-power frequency of one pass [Hz].
        order: Order of one pass; forwards and backwards it is twice that.

    Raises:
        ConfigError: The cut-off frequency does not fit the rate.
    """
    geometry = replace(signals.geometry, kind=2, channel_names=CHANNELS[2], channels_on="person")
    wrench = low_pass(signals.geometry.wrench(signals.channels), geometry.rate, cutoff, order)
    return replace(signals, geometry=geometry, channels=wrench)


def running_mean(values: Array, rate: float, window: float = WINDOW) -> Array:
    """Return the mean of (n, ...) over ``window`` [s] around each sample; the window is shorter at the ends."""
    width = max(1, round(window * rate))
    total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    n = len(values)
    first = np.clip(np.arange(n) - (width - 1) // 2, 0, n)
    last = np.clip(first + width, 0, n)
    first = np.maximum(last - width, 0)
    count = (last - first).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray((total[last] - total[first]) / count)


def contacts(signals: PlateSignals, threshold: float = THRESHOLD) -> list[slice]:
    """Return the samples of each contact with a plate, in which the normal force exceeds ``threshold`` [N].

    Gaps shorter than 20 ms are bridged. Contacts shorter than 10 ms are dropped.
    """
    loaded = np.concatenate([[False], signals.loaded(threshold), [False]])
    edges = np.flatnonzero(loaded[1:] != loaded[:-1]).reshape(-1, 2)
    spans: list[slice] = []
    for begin, end in edges.tolist():
        if spans and begin - spans[-1].stop < BRIDGED * signals.geometry.rate:
            begin = spans.pop().start
        spans.append(slice(begin, end))
    min_samples = max(1, round(SHORTEST * signals.geometry.rate))
    return [span for span in spans if span.stop - span.start >= min_samples]


@dataclass(frozen=True, eq=False)
class PlateSum:
    """The sum of all plates, with the same attributes as a single plate.

    Attributes:
        t: (n,) [s].
        force: (n, 3) ground reaction in the world [N].
        moment: (n, 3) about the world's origin [N.m].
        cop: (n, 2) on the mean height of the surfaces [m], NaN up to the threshold.
        free_moment: (n,) [N.m].
        height: Mean height of the surfaces [m].
    """

    t: Array
    force: Array
    moment: Array
    cop: Array
    free_moment: Array
    height: float


def sum_of_plates(plates: Sequence[PlateSignals], threshold: float = THRESHOLD) -> PlateSum:
    """Add the wrenches of plates; faster plates are interpolated linearly at the times of the slowest one.

    Raises:
        ConfigError: There are no plates, or their times do not overlap.
    """
    if not plates:
        raise ConfigError("none for a sum", "force plates")
    slowest = min(plates, key=lambda plate: plate.geometry.rate)
    begin, end = max(plate.t[0] for plate in plates), min(plate.t[-1] for plate in plates)
    t = slowest.t[(slowest.t >= begin - 1e-9) & (slowest.t <= end + 1e-9)]
    if not len(t):
        raise ConfigError("never sampled at the same time", "force plates")
    force, moment = np.zeros((len(t), 3)), np.zeros((len(t), 3))
    for plate in plates:
        for total, values in ((force, plate.force()), (moment, plate.moment_about(np.zeros(3)))):
            total += np.column_stack([np.interp(t, plate.t, column) for column in values.T])
    height = float(np.mean([plate.geometry.centre[2] for plate in plates]))
    return PlateSum(t, force, moment, *centre_of_pressure(force, moment, height, threshold), height)


def contact_figures(signals: PlateSignals, span: slice, weight: float = float("nan")) -> dict[str, float]:
    """Return the metrics of one contact.

    * start_s, duration_s;
    * peak_N, peak_20ms_N: largest normal force of a sample, and of a mean over 20 ms;
    * peak_over_mg, peak_20ms_over_mg: the same divided by the weight;
    * impulse_Ns: (x, y, z) of the ground reaction in the world;
    * loading_rate_N_per_s: mean slope of the normal force from 20 to 80 % of its first peak of 20 ms means. The first
      peak is the first time that the force stops rising above half of the largest (Milner et al. 2006). It is NaN if
      the plate was loaded from the beginning;
    * cop_path_m, cop_range_m: length of the CoP's path, and its extent along the plate's axes, beyond 20 N;
    * free_moment_Nm: smallest and largest, beyond 20 N.

    A plate rings after an impact. CoP and free moment of single samples are then as noisy as those of a real plate.
    Laboratories therefore filter first (:func:`filtered`).
    """
    rate = signals.geometry.rate
    dt = 1.0 / rate
    normal = signals.normal_force()[span]
    force = signals.force()[span]
    smooth = running_mean(signals.normal_force(), rate)[span]
    cop, twist = signals.cop(THRESHOLD, "plate")[span], signals.free_moment(THRESHOLD)[span]
    cop, twist = cop[np.isfinite(twist)], twist[np.isfinite(twist)]
    figures: dict[str, Any] = {
        "start_s": float(signals.t[span.start]),
        "duration_s": len(normal) * dt,
        "peak_N": float(normal.max()),
        "peak_20ms_N": float(smooth.max()),
        "peak_over_mg": float(normal.max() / weight),
        "peak_20ms_over_mg": float(smooth.max() / weight),
        "impulse_Ns": (force.sum(axis=0) * dt).tolist(),
        "loading_rate_N_per_s": _loading_rate(smooth, rate),
        "cop_path_m": float(np.linalg.norm(np.diff(cop, axis=0), axis=1).sum()),
        "cop_range_m": np.ptp(cop, axis=0).tolist() if len(cop) else [0.0, 0.0],
        "free_moment_Nm": [float(twist.min(initial=np.inf)), float(twist.max(initial=-np.inf))],
    }
    return figures


def _loading_rate(normal: Array, rate: float) -> float:
    """Return the mean slope from 20 to 80 % of the first peak [N/s]."""
    falls = np.append(np.diff(normal) <= 0.0, True)
    first = int(np.argmax(falls & (normal >= 0.5 * normal.max())))
    peak = normal[first]
    low, high = (int(np.argmax(normal[: first + 1] >= share * peak)) for share in (0.2, 0.8))
    if high <= low:
        return float("nan")
    return float((normal[high] - normal[low]) * rate / (high - low))


def plate_figures(
    plates: Mapping[str, PlateSignals], weight: float = float("nan"), threshold: float = THRESHOLD
) -> dict[str, Any]:
    """Return the metrics of all plates by name, each with ``contacts`` (:func:`contact_figures`), and their ``sum``."""
    figures: dict[str, Any] = {}
    for name, plate in plates.items():
        figures[name] = {
            "type": plate.geometry.kind,
            "rate_hz": plate.geometry.rate,
            "samples": len(plate),
            "clipped": plate.clipped,
            "contacts": [contact_figures(plate, span, weight) for span in contacts(plate, threshold)],
        }
    if plates and all(len(plate) for plate in plates.values()):
        total = sum_of_plates(list(plates.values()), threshold)
        upward = total.force[:, 2]
        figures["sum"] = {
            "fz_N": [float(upward.min()), float(upward.mean()), float(upward.max())],
            "fz_mean_over_mg": float(upward.mean() / weight),
        }
    return figures


def _rate_text(rate: float) -> str:
    """Format a loading rate [N/s] in kN/s; a dash if the plate was loaded from the beginning."""
    return f"{1e-3 * rate:.2f} kN/s" if np.isfinite(rate) else "-"


_COLUMNS = (
    ("plate", "{:<14}", lambda name, one: name),
    ("from", "{:>9}", lambda name, one: f"{one['start_s']:.3f} s"),
    ("for", "{:>9}", lambda name, one: f"{one['duration_s']:.3f} s"),
    ("peak", "{:>10}", lambda name, one: f"{one['peak_N']:.1f} N"),
    ("of 20 ms", "{:>10}", lambda name, one: f"{one['peak_20ms_N']:.1f} N"),
    ("loading", "{:>12}", lambda name, one: _rate_text(one["loading_rate_N_per_s"])),
    ("impulse x, y, z", "{:>24}", lambda name, one: " ".join(f"{v:.2f}" for v in one["impulse_Ns"]) + " N.s"),
    ("CoP path", "{:>10}", lambda name, one: f"{1e3 * one['cop_path_m']:.1f} mm"),
    ("Tz", "{:>18}", lambda name, one: "{:.2f} to {:.2f}".format(*one["free_moment_Nm"]) + " N.m"),
)


def plate_table(figures: Mapping[str, Any]) -> list[str]:
    """Format a table with one line per contact."""
    lines = [" ".join(form.format(head) for head, form, _ in _COLUMNS)]
    for name, plate in figures.items():
        if name == "sum":
            continue
        for contact in plate["contacts"]:
            lines.append(" ".join(form.format(read(name, contact)) for _, form, read in _COLUMNS))
        if not plate["contacts"]:
            lines.append(f"{name:<14} unloaded")
        if plate["clipped"]:
            lines.append(f"{name:<14} {plate['clipped']} values exceeded the range of its amplifier and were clipped")
    if "sum" in figures:
        low, mean, high = figures["sum"]["fz_N"]
        lines.append(f"{'sum':<14} Fz from {low:.1f} over {mean:.1f} to {high:.1f} N")
    return lines
