"""The metrics of a run as text: names, values and units, one per line."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from bipedsim.analysis.controller_stop import ControllerStop
from bipedsim.analysis.plates import SETTLE
from bipedsim.config import ParameterChange
from bipedsim.errors import either
from bipedsim.recording import schema

UNITS = {"s": "s", "us": "us", "hz": "Hz", "m": "m", "rad": "rad", "N": "N", "Nm": "N.m", "J": "J"}
"""Unit for each suffix of a name, as in ``foot_drift_m``."""
READOUT_UNITS = {
    **dict.fromkeys(("zmp_margin", "dcm_error"), "m"),
    "tracking_error": "rad",
    "sliding_variable": "rad/s",
    **dict.fromkeys(("sticking_change", "sticking_margin"), "N.m"),
}
"""Units of readouts of the included controllers whose names do not end in a unit."""
_SHORT = {"zmp": "ZMP", "dcm": "DCM", "imu": "IMU", "com": "CoM", "cop": "CoP", "fz": "f_z"}
"""Common abbreviations in names."""
_IMPACT = 10.0
"""Normal force over weight above which the summary explains the maximum as an impact."""
_LABELS = {
    "standing_s": "standing still",  # a squatting robot also stands
    "rate_hz": "control rate",
    "fz_N": "vertical force",
    "fz_over_mg": "vertical force / weight",
    "fz_mean_over_mg": "mean force / weight",
    "fz_max_error_N": "maximum force error",
    "cop_inside_fraction": "CoP inside soles (share)",
}
"""Labels of metrics whose key is unsuitable as a label."""
_COMMANDS = (
    "overruns",
    "ticks",
    "missed_commands",
    "commands_dropped",
    "commands_dropped_by_kind",
    "commands_clipped",
    "command_silences_s",
    "command_silences_wall_s",
    "command_silences_ticks",
    "command_topics",
    "commands_received",
    "pushes_dropped_by_kind",
)
_RESOLUTION = {"m": 1e-6, "rad": 1e-6, "s": 1e-6, "N": 1e-3, "Nm": 1e-3}
"""Value below which a difference is rounding error, by suffix of the name."""
_NO_UNIT = 1e-6
_IN_WORDS = (
    *("readouts", "parameter_changes", "objects", "fell_at_s", "fall_reason", "lies_on", *schema.STOPPED),
    *("physics", "verdict", "torque_limited_fraction", "torque_limited", "torque_swings_hz", "joint_stops"),
)
"""Keys with their own lines at the end."""
_SHOWN = 5
_AT_END = 0.1
"""Time before the end of a run [s] within which a joint still counts as at its limit, because it may bounce."""
_ON_ITS_WAY = 0.1
"""Time after the stop of a controller [s] in which commands sent before it may still arrive."""

_KEPT = "momentum, energy, friction, depth, CoP and joint limits"
"""Quantities checked by the monitors (:mod:`bipedsim.sim.monitors`) in every step, also during a fall."""


def resolution_of(name: str) -> float:
    """Return the smallest significant difference of a metric or readout, in its unit."""
    last = name.rpartition("_")[2] if "_" in name else ""
    unit = READOUT_UNITS.get(name)
    return _RESOLUTION.get(last if unit is None else unit.replace(".", ""), _NO_UNIT)


def unit_of(name: str) -> str:
    """Return the unit of a metric or readout by its name; empty if it has none or is not known."""
    return READOUT_UNITS.get(name) or UNITS.get(name.rpartition("_")[2] if "_" in name else "", "")


def readout_text(name: str, value: float) -> str:
    """Format a readout: its name without underscores, its value with a suitable unit.

    >>> readout_text("zmp_margin", 0.0631), readout_text("stride_s", 0.6), readout_text("capture_error", 0.25)
    ('ZMP margin 63.1 mm', 'stride 0.6 s', 'capture error 0.25')
    """
    unit, label = unit_of(name), _label(name)
    if unit == "m" and abs(value) < 1.0:
        value, unit = 1e3 * value, "mm"
    return f"{label} {value:.3g} {unit}".rstrip()


def _label(name: str) -> str:
    """Return a metric or readout in words, without its unit."""
    words = name.split("_")
    if name not in READOUT_UNITS and unit_of(name):
        words.pop()
    return _LABELS.get(name) or " ".join(_SHORT.get(word, word) for word in words)


def summary_lines(summary: Mapping[str, Any], hidden: Collection[str] = ()) -> list[str]:
    """Format a summary, whose keys are those of summary.json, as lines for readers.

    The outcome comes first. Missing metrics are left out. So are the metrics of runs with ROS if ``round_trip_us`` is
    None.

    Args:
        summary: Values by name: number, text, None, or numbers by name; ``readouts`` has ``min`` and ``max`` of each.
        hidden: Keys that have no meaning for this run.
    """
    with_ros = summary.get("round_trip_us") is not None
    lines = [f"{summary['robot']} {summary['verdict']}"] if summary.get("verdict") else []
    stop = ControllerStop.read(summary)
    if stop is not None:
        lines.append(_stop_text(stop, summary))
    for key, value in summary.items():
        if key in (*_IN_WORDS, *_COMMANDS[1:], *hidden):
            continue
        if key == "overruns":
            lines += _command_lines(summary) if with_ros else []
            continue
        text = _text(value, resolution_of(key))
        if text:
            lines.append(_line(key, text) + _explanation(key, summary))
    for of in schema.CHANGES.values():
        changes = [change for change in summary.get("parameter_changes") or () if change.get("of", "controller") == of]
        if changes:
            lines.append(_line(f"parameters ({of})", _changes_text(changes)))
    for name, span in (summary.get("readouts") or {}).items():
        step = resolution_of(name)
        lines.append(_line(name, f"{_text(span['min'], step)} to {_text(span['max'], step)}"))
    for name, metrics in (summary.get("objects") or {}).items():
        place = ", ".join(f"{value:.4g}" for value in metrics["end_m"].values())
        far = f"at most {metrics['farthest_m']:.4g} m from its start"
        fast = f"up to {metrics['fastest_m_s']:.4g} m/s"
        lines.append(_line(f"object {name}", f"final position ({place}) m, {far}, {fast}"))
    if summary.get("torque_limited_fraction") is not None:
        lines.append(_line("torques", _torque_text(summary)))
    stops = stops_text(summary.get("joint_stops") or {}, summary.get("duration_s"))
    if stops:
        lines.append(_line("at joint limits", stops))
    if summary.get("physics"):
        lines.append(_line("physics", physics_text(summary["physics"], summary.get("unresolved_steps") or 0)))
    return lines


def _changes_text(changes: Sequence[Mapping[str, Any]]) -> str:
    """Describe parameters that changed during the run."""
    texts = [f"{ParameterChange(**change)} from {change['at']:.6g} s on" for change in changes]
    return ", ".join(texts[:_SHOWN]) + (f" and {len(texts) - _SHOWN} more changes" if len(texts) > _SHOWN else "")


def _explanation(key: str, summary: Mapping[str, Any]) -> str:
    """Return the explanation of a metric that readers may misunderstand, in parentheses; otherwise empty."""
    if key == "unresolved_steps" and summary[key]:
        return " (no solution satisfied all rules of the contact model: docs/contact_models.md)"
    if key == "standing_s" and summary[key]:
        return f" (without the first {SETTLE:g} s)"
    if key == "fz_N" and ((summary.get("fz_over_mg") or {}).get("max") or 0.0) > _IMPACT:
        return " (the maximum is an impact: its impulse divided by the duration of a tick)"
    return ""


def _stop_text(stop: ControllerStop, summary: Mapping[str, Any]) -> str:
    """Describe the stop of the controller: its time, the reason unless the outcome contains it, and the consequence."""
    at, has_outcome = stop.at, bool(summary.get("verdict"))
    text = f"controller stopped at t = {at:.3f} s"
    if stop.why and not (has_outcome and stop.explains(summary.get("fell_at_s"))):
        text += f": {stop.why}"
    if not has_outcome:
        # The summary is of a part of a run, which may not contain the consequence.
        return text
    # The tolerance is needed because multiples of a time step are not exact in binary.
    if at >= summary["duration_s"] - 1e-9:
        return f"{text}; the run ended there"
    begin, end = (summary.get("command_silences_s") or [(at, at)])[-1]
    if end is None and begin <= at + _ON_ITS_WAY:
        return f"{text}; it sent no more commands, and the joints followed the timeout mode after the command timeout"
    return f"{text}; from then on the joints were damped"


def _torque_text(summary: Mapping[str, Any]) -> str:
    """Describe how often torques were at their limits and changed sides."""
    limited, turned = summary["torque_limited"], summary["torque_swings_hz"]
    text = "never at a torque limit"
    if limited:
        shares = ", ".join(f"{joint} {percent(share)}" for joint, share in list(limited.items())[:_SHOWN])
        more = f" and {len(limited) - _SHOWN} more joints" if len(limited) > _SHOWN else ""
        text = f"at a torque limit in {percent(summary['torque_limited_fraction'])} of ticks ({shares}{more})"
    joint, rate = next(iter(turned.items()), ("", 0.0))
    return text + (f"; direction changes up to {rate:.3g} times per second ({joint})" if turned else "")


def stops_text(stops: Mapping[str, Mapping[str, float]], end: float | None) -> str:
    """Describe which joints were at their joint limits, and when; those at the limit at the ``end`` [s] come first.

    Insignificant torques of limits are left out, because a joint may rest at its limit.

    >>> stops_text({"l_knee": {"from_s": 4.2, "to_s": 9.0, "torque_Nm": -12.34}}, 9.0)
    'l_knee from 4.2 s to the end, -12.3 N.m'
    >>> stops_text({"l_gripper": {"from_s": 0.0, "to_s": 0.1, "torque_Nm": -1e-7}}, 9.0)
    ''
    """
    until = {
        name: "the end" if end is not None and stop["to_s"] >= end - _AT_END else f"{stop['to_s']:.6g} s"
        for name, stop in stops.items()
        if abs(stop["torque_Nm"]) >= _RESOLUTION["Nm"]
    }
    texts = [
        f"{name} from {stops[name]['from_s']:.6g} s to {until[name]}, {stops[name]['torque_Nm']:.3g} N.m"
        for name in sorted(until, key=lambda name: until[name] != "the end")
    ]
    hidden = len(texts) - _SHOWN
    more = f" and {hidden} more {'joints' if hidden > 1 else 'joint'}" if hidden > 0 else ""
    return "; ".join(texts[:_SHOWN]) + more


def percent(share: float) -> str:
    """Format a share such that a positive share is never shown as 0.

    >>> percent(0.43), percent(0.0004)
    ('43 %', 'less than 1 %')
    """
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else "less than 1 %"


def physics_text(physics: Mapping[str, Mapping[str, Any]], unresolved: int) -> str:
    """Describe the results of the physics monitors in a run with ``unresolved`` steps."""
    beyond = [
        f"{_label(name)} {figure['worst']:.3g} {unit_of(name)}".rstrip()
        + f" at {figure['at_s']:.3f} s (limit {figure['allowed']:.3g}, exceeded in {figure['steps_beyond']} steps)"
        for name, figure in physics.items()
        if figure["steps_beyond"]
    ]
    if beyond:
        return "beyond the limits of the contact model: " + ", ".join(beyond)
    if unresolved:
        steps = f"{unresolved} unresolved step{'s' * (unresolved > 1)}"
        return f"{steps} violated a rule of the contact model; {_KEPT} within its limits"
    return f"{_KEPT} within the limits of the contact model in every step"


def missed_share(summary: Mapping[str, Any], heard: bool = False) -> float:
    """Return the share of ticks that began without a new command, 0 without ticks.

    Args:
        summary: As in :func:`summary_lines`.
        heard: Leave out the times in which no commands arrived at all.
    """
    missed, ticks = summary["missed_commands"] or 0, summary["ticks"] or 0
    if heard:
        silent = round(sum(end - begin for begin, end in _silences(summary)) * (summary["rate_hz"] or 0.0))
        missed, ticks = max(missed - silent, 0), ticks - silent
    return min(missed / ticks, 1.0) if ticks > 0 else 0.0


def _silences(summary: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Return begin and end of each interval without commands [s]."""
    last = summary["duration_s"] or 0.0
    return [(begin, last if end is None else end) for begin, end in summary.get("command_silences_s") or ()]


def length_text(t: float) -> str:
    """Format a duration [s] with three digits.

    >>> length_text(11.999), length_text(3600.0)
    ('12 s', '3600 s')
    """
    return f"{float(f'{t:.3g}'):g} s"


def silence_text(summary: Mapping[str, Any]) -> str:
    """Describe the intervals without commands; empty if there are none.

    >>> silence_text({"duration_s": 20.0, "command_silences_s": [[4.26, 15.86], [18.0, None]]})
    'from 4.26 to 15.86 s, from 18 s to the end'
    >>> of_one = {"command_silences_wall_s": [8.13], "command_silences_ticks": [7]}
    >>> silence_text({"duration_s": 20.0, "command_silences_s": [[4.559, 4.566]], **of_one})
    'from 4.559 to 4.566 s (8.13 s of wall time, 7 ticks on the last command)'
    """
    spans, end = summary.get("command_silences_s") or (), summary["duration_s"] or 0.0
    # Recordings of earlier versions have only begin and end.
    walls, ticks = (summary.get(f"command_silences_{key}") or () for key in ("wall_s", "ticks"))
    shown = []
    for (a, b), wall, held in islice(zip_longest(spans, walls, ticks), _SHOWN):
        simulated = (end if b is None else b) - a
        details = [f"{wall:.3g} s of wall time"] if wall and abs(wall - simulated) > 0.1 * wall else []
        details += [f"{held} ticks on the last command"] if held else []
        until = "s to the end" if b is None else f"to {b:.6g} s"
        shown.append(f"from {a:.6g} {until}" + (f" ({', '.join(details)})" if details else ""))
    return ", ".join(shown) + (f" and {len(spans) - _SHOWN} more times" if len(spans) > _SHOWN else "")


def no_command_text(summary: Mapping[str, Any]) -> str:
    """Describe a run in which no valid command came; empty if one came, or if this is not known.

    >>> no_command_text({"commands_received": 0, "command_topics": ["/robot_joint_commands"]})
    'none came; expected on /robot_joint_commands'
    """
    if summary.get("commands_received") != 0:
        return ""
    topics = summary.get("command_topics") or ()
    came = "no valid one came" if summary.get("commands_dropped") else "none came"
    return came + (f"; expected on {either(topics)}" if topics else "")


def _command_lines(summary: Mapping[str, Any]) -> list[str]:
    """Format the lines on commands and overruns."""
    details = [f"{summary['missed_commands']} missed"]
    if summary["commands_dropped"]:
        kinds = in_words(summary.get("commands_dropped_by_kind")).replace("_", " ")
        details.append(f"{summary['commands_dropped']} dropped{f': {kinds}' * bool(kinds)}")
    if summary.get("commands_clipped"):
        details.append(f"{summary['commands_clipped']} clipped to the effort limits")
    came = no_command_text(summary) or f"{1.0 - missed_share(summary):.1%} in time"
    lines = [_line("commands", f"{came} ({', '.join(details)})")]
    if silence_text(summary):
        lines.append(_line("no commands", silence_text(summary)))
    refused = summary.get("pushes_dropped_by_kind")
    if refused:
        lines.append(_line("pushes", f"{sum(refused.values())} dropped: {in_words(refused)}"))
    return [*lines, _line("overruns", f"{summary['overruns']} late ticks")]


def in_words(by_kind: Mapping[str, int] | None) -> str:
    """Format counts by kind: 2 not_finite, 1 size."""
    return ", ".join(f"{count} {kind}" for kind, count in (by_kind or {}).items())


def _line(key: str, text: str) -> str:
    return f"{_label(key):26} {text} {unit_of(key)}".rstrip()


def _text(value: Any, resolution: float = _NO_UNIT) -> str:
    if isinstance(value, Mapping):
        shown = ((name, _text(entry, resolution)) for name, entry in value.items() if entry is not None)
        return "  ".join(f"{name} {text}" for name, text in shown)
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    rounded = float(f"{round(value / resolution) * resolution:.6g}") + 0.0
    return np.format_float_positional(rounded, trim="-") if abs(rounded) < 1e6 else f"{rounded:.6g}"


def aligned(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """Align rows of texts in columns of constant width.

    Args:
        rows: Rows with the same number of texts.
        numbers: Whether all columns but the first are numbers, which are aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(first: str, *others: str) -> str:
        padded = map(str.rjust if numbers else str.ljust, others, widths[1:])
        return "  ".join([first.ljust(widths[0]), *padded]).rstrip()

    return [line(*row) for row in rows]
