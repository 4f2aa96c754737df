"""Gait of a robot or a person from force plates: stances in body weights, over the share of the stance.

The axes of a walk are its direction (ahead) and z up. The forward force is negative while a foot brakes. The sideward
force is positive towards the other foot (medial), so that left and right can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bipedsim.analysis.force_plates import contact_figures, contacts, running_mean
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.plates import THRESHOLD, PlateSignals

POINTS = 101
"""Number of points of a stance: 0 to 100 %."""
SHORTEST = 0.15
"""Minimum duration of a contact that counts as a stance of a walk [s]."""
LONGEST_FOOT = 0.4
"""Largest extent of the CoP in a contact of one foot [m]."""
SURE = 0.2
"""Share of the largest force of a contact above which its CoP is reliable."""
SNAP = np.radians(20.0)
"""Largest angle from an axis of the laboratory at which a walk counts as along this axis [rad]."""
AXES = {"x": (1.0, 0.0), "-x": (-1.0, 0.0), "y": (0.0, 1.0), "-y": (0.0, -1.0)}


@dataclass(frozen=True, eq=False)
class Stance:
    """A foot on a plate, from strike to off.

    Attributes:
        plate: Name of the plate.
        start, end: [s].
        force: (101, 3) ahead, towards the other foot, and up, divided by the weight.
        cop: (101, 2) from its first point, ahead and towards the other foot [m]; NaN below the threshold.
        figures: Metrics of the stance (:func:`gait_figures`).
    """

    plate: str
    start: float
    end: float
    force: Array
    cop: Array
    figures: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class PlateGait:
    """The stances of a walk.

    Attributes:
        name: Name of the walk.
        weight: [N].
        ahead: (2,) direction in the world.
        stances: In order of their start; without stances that the record cuts off, and those of two feet.
        notes: Contacts that were left out, and remarks on the file, one line each.
    """

    name: str
    weight: float
    ahead: Array
    stances: tuple[Stance, ...]
    notes: tuple[str, ...] = ()


def find_gait(
    name: str,
    plates: Sequence[PlateSignals],
    weight: float = float("nan"),
    ahead: str = "",
    threshold: float = THRESHOLD,
) -> PlateGait:
    """Find the stances of a walk over plates; contacts of two feet on one plate are left out, with a note.

    Args:
        name: Name of the walk.
        plates: All plates.
        weight: [N]. If it is NaN, the mean vertical force from the middle of a stance to that of the next one is used,
            which is the weight in a steady walk.
        ahead: Direction of the walk, ``x``, ``-x``, ``y`` or ``-y``; empty: the direction of the CoP.
        threshold: Normal force from which a foot is on a plate [N].

    Raises:
        ConfigError: There are no stances, the weight does not follow from them, or the weight is invalid.
    """
    if ahead and ahead not in AXES:
        raise ConfigError(f"direction {ahead!r} is not one of {', '.join(AXES)}")
    spans = sorted(
        ((plate, span) for plate in plates for span in contacts(plate, threshold) if _is_stance(plate, span)),
        key=lambda pair: float(pair[0].t[pair[1].start]),
    )
    if not spans:
        criterion = f"longer than {SHORTEST:g} s that begin and end within the record"
        raise ConfigError(
            f"none: expected contacts of more than {threshold:g} N {criterion}; found "
            f"{sum(len(contacts(plate, threshold)) for plate in plates)} contacts on {len(plates)} force plates",
            f"{name}: stances",
        )
    spans, notes = _of_one_foot(name, spans, threshold)
    if not np.isfinite(weight):
        weight = _weight(name, plates, spans)
    if not weight > threshold:
        raise ConfigError(
            f"N must be above {threshold:g} N, from which a foot counts as on a plate; give it with --weight",
            f"{name}: weight",
            weight,
        )
    middles = np.array([np.nanmean(plate.cop(threshold)[span, :2], axis=0) for plate, span in spans])
    direction = np.array(AXES[ahead]) if ahead else _direction(spans, middles, threshold)
    stances = [
        _stance(plate, span, weight, direction, _side(k, middles, direction), threshold)
        for k, (plate, span) in enumerate(spans)
    ]
    return PlateGait(name, weight, direction, tuple(stances), notes)


def _of_one_foot(
    name: str, spans: Sequence[tuple[PlateSignals, slice]], threshold: float
) -> tuple[list[tuple[PlateSignals, slice]], tuple[str, ...]]:
    """Return the contacts with a CoP that stayed within a foot, and notes on the others.

    Raises:
        ConfigError: There are no such contacts.
    """
    kept, notes = [], []
    for plate, span in spans:
        # Near strike and off the load is small, and noise can move the CoP by any distance.
        up = plate.force()[span, 2]
        cop = plate.cop(threshold)[span, :2][up > SURE * up.max()]
        extent = float(np.linalg.norm(np.nanmax(cop, axis=0) - np.nanmin(cop, axis=0)))
        if extent <= LONGEST_FOOT:
            kept.append((plate, span))
            continue
        notes.append(
            f"{name}: force plate {plate.geometry.name} from {plate.t[span.start]:.3f} to {plate.t[span.stop]:.3f} s: "
            f"its CoP goes over {extent:.2f} m, farther than a foot is long: two feet were on it, left out"
        )
    if not kept:
        raise ConfigError(
            f"none of one foot: {'; '.join(notes)}; use plates that only one foot steps on", f"{name}: stances"
        )
    return kept, tuple(notes)


def _is_stance(plate: PlateSignals, span: slice) -> bool:
    return span.start > 0 and span.stop < len(plate) and (span.stop - span.start) / plate.geometry.rate >= SHORTEST


def _weight(name: str, plates: Sequence[PlateSignals], spans: Sequence[tuple[PlateSignals, slice]]) -> float:
    """Return the mean vertical force between the middles of stances that follow each other without flight.

    Raises:
        ConfigError: There are no two such stances.
    """
    total, time = 0.0, 0.0
    for (first, a), (second, b) in pairwise(spans):
        if second.t[b.start] > first.t[a.stop] or first is second:
            continue
        begin, end = (0.5 * (plate.t[span.start] + plate.t[span.stop]) for plate, span in ((first, a), (second, b)))
        for plate in plates:
            inside = (plate.t >= begin) & (plate.t < end)
            total += float(plate.force()[inside, 2].sum()) / plate.geometry.rate
        time += float(end - begin)
    if time <= 0.0:
        raise ConfigError("its weight is not known, and no two stances follow each other: give it with --weight", name)
    return total / time


def _direction(spans: Sequence[tuple[PlateSignals, slice]], middles: Array, threshold: float) -> Array:
    """Return the direction (2,) of a walk, or an axis close to it.

    With three or more stances it is from each stance to the next one of the same foot, so that left and right cancel.
    With fewer it is from one stance to the next, and along each CoP.
    """
    displacement = (middles[2:] - middles[:-2]).sum(axis=0)
    if len(spans) < 3:
        displacement = middles[-1] - middles[0]
        for plate, span in spans:
            cop = plate.cop(threshold)[span, :2]
            cop = cop[np.isfinite(cop).all(axis=1)]
            displacement = displacement + cop[int(0.9 * (len(cop) - 1))] - cop[int(0.1 * (len(cop) - 1))]
    angle = float(np.arctan2(displacement[1], displacement[0]))
    near = np.pi / 2.0 * round(angle / (np.pi / 2.0))
    angle = near if abs(angle - near) < SNAP else angle
    return np.array([np.cos(angle), np.sin(angle)])


def _side(k: int, middles: Array, ahead: Array) -> float:
    """Return 1 for a left foot and -1 for a right one, from the neighbouring stances; 1 without neighbours."""
    across = middles @ np.array([-ahead[1], ahead[0]])
    beside = np.concatenate([across[max(k - 1, 0) : k], across[k + 1 : k + 2]])
    return 1.0 if not len(beside) or across[k] >= beside.mean() else -1.0


def _stance(plate: PlateSignals, span: slice, weight: float, ahead: Array, side: float, threshold: float) -> Stance:
    """Make one stance, with its metrics."""
    inward = -side * np.array([-ahead[1], ahead[0]])
    turn = np.array([[*ahead, 0.0], [*inward, 0.0], [0.0, 0.0, 1.0]])
    force = plate.force()[span] @ turn.T / weight
    cop = plate.cop(threshold)[span, :2] @ turn[:2, :2].T
    loaded_cop = cop[np.isfinite(cop).all(axis=1)]
    cop = cop - loaded_cop[0]
    share, grid = np.linspace(0.0, 1.0, len(force)), np.linspace(0.0, 1.0, POINTS)
    curve, course = (
        np.column_stack([np.interp(grid, share, column) for column in values.T]) for values in (force, cop)
    )
    figures = gait_figures(plate, span, force, loaded_cop, weight)
    return Stance(plate.geometry.name, float(plate.t[span.start]), float(plate.t[span.stop]), curve, course, figures)


def gait_figures(plate: PlateSignals, span: slice, force: Array, cop: Array, weight: float) -> dict[str, float]:
    """Return the metrics of a stance; forces are divided by the weight.

    * stance_s; first_peak_bw, valley_bw, second_peak_bw: largest vertical force, as means over 20 ms, of the first half
      of the stance and of the second, and the minimum between them;
    * loading_rate_bw_per_s: :func:`contact_figures`;
    * braking_bws, propulsion_bws: impulse of the forward force where it is negative, and where it is positive;
    * medial_bw, lateral_bw: largest force towards the other foot, and away from it, as means over 20 ms;
    * vertical_bws: impulse;
    * cop_travel_m: forward travel of the CoP; cop_speed_m_per_s: length of its path over the time of the stance.
    """
    rate = plate.geometry.rate
    smooth = running_mean(force, rate)
    up, half = smooth[:, 2], len(force) // 2
    first, second = int(np.argmax(up[:half])), half + int(np.argmax(up[half:]))
    fore = force[:, 0]
    time = len(force) / rate
    return {
        "stance_s": time,
        "first_peak_bw": float(up[first]),
        "valley_bw": float(up[first : second + 1].min()),
        "second_peak_bw": float(up[second]),
        "loading_rate_bw_per_s": contact_figures(plate, span, weight)["loading_rate_N_per_s"] / weight,
        "braking_bws": float(fore[fore < 0.0].sum() / rate),
        "propulsion_bws": float(fore[fore > 0.0].sum() / rate),
        "medial_bw": float(smooth[:, 1].max()),
        "lateral_bw": float(-smooth[:, 1].min()),
        "vertical_bws": float(force[:, 2].sum() / rate),
        "cop_travel_m": float(np.ptp(cop[:, 0])) if len(cop) else float("nan"),
        "cop_speed_m_per_s": float(np.linalg.norm(np.diff(cop, axis=0), axis=1).sum() / time),
    }


def gait_summary(gait: PlateGait) -> dict[str, float]:
    """Return the means over the stances of a walk, its timings and the number of stances.

    step_s is the mean time from a strike to the next one. double_support_s is the mean duration of double support.
    """
    stances = gait.stances
    summary: dict[str, float] = {"stances": float(len(stances)), "weight_N": gait.weight}
    pairs = [(a, b) for a, b in pairwise(stances) if b.start - a.start < 2.0 * (a.end - a.start)]
    summary["step_s"] = float(np.mean([b.start - a.start for a, b in pairs])) if pairs else float("nan")
    overlaps = [a.end - b.start for a, b in pairs if a.end > b.start]
    summary["double_support_s"] = float(np.mean(overlaps)) if overlaps else float("nan")
    for name in stances[0].figures:
        summary[name] = float(np.mean([stance.figures[name] for stance in stances]))
    return summary


_ROWS = (
    ("stances", "stances", 1.0, ""),
    ("weight", "weight_N", 1.0, "N"),
    ("stance", "stance_s", 1.0, "s"),
    ("step", "step_s", 1.0, "s"),
    ("double support", "double_support_s", 1.0, "s"),
    ("first peak", "first_peak_bw", 1.0, "BW"),
    ("valley", "valley_bw", 1.0, "BW"),
    ("second peak", "second_peak_bw", 1.0, "BW"),
    ("loading rate", "loading_rate_bw_per_s", 1.0, "BW/s"),
    ("braking", "braking_bws", 1.0, "BW.s"),
    ("propulsion", "propulsion_bws", 1.0, "BW.s"),
    ("medial peak", "medial_bw", 1.0, "BW"),
    ("lateral peak", "lateral_bw", 1.0, "BW"),
    ("vertical impulse", "vertical_bws", 1.0, "BW.s"),
    ("CoP travel", "cop_travel_m", 1e3, "mm"),
    ("CoP speed", "cop_speed_m_per_s", 1e3, "mm/s"),
)


def gait_table(gaits: Sequence[PlateGait]) -> list[str]:
    """Format a table with one column per walk."""
    summaries = [gait_summary(gait) for gait in gaits]
    lines = [f"{'':<18}" + "".join(f" {gait.name[-24:]:>24}" for gait in gaits)]
    for label, key, scale, unit in _ROWS:
        cells = "".join(
            f" {scale * summary[key]:>24.4g}" if np.isfinite(summary[key]) else f" {'-':>24}" for summary in summaries
        )
        lines.append(f"{label:<18}{cells} {unit}".rstrip())
    return lines
