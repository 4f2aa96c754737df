"""The figures of a run for readers: names, values and units, a line each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

UNITS = {"s": "s", "us": "us", "hz": "Hz", "m": "m", "rad": "rad", "N": "N", "Nm": "N.m"}
"""What a name may end in, and the unit that it stands for: ``foot_drift_m``."""
READOUT_UNITS = {
    **dict.fromkeys(("zmp_margin", "dcm_error"), "m"),
    "tracking_error": "rad",
    "sliding_variable": "rad/s",
    **dict.fromkeys(("sticking_change", "sticking_margin"), "N.m"),
}
"""Units of the readouts of our controllers, whose names do not end in one."""
_COMMANDS = ("overruns", "missed_commands", "commands_dropped")


def unit_of(name: str) -> str:
    """Return the unit of a figure or readout by its name; empty if it has none or it is not known."""
    return READOUT_UNITS.get(name) or UNITS.get(name.rpartition("_")[2] if "_" in name else "", "")


def summary_lines(summary: Mapping[str, Any], hidden: Collection[str] = ()) -> list[str]:
    """Return the lines that readers see of a summary, whose keys are those of summary.json.

    What does not exist is left out, and so is what only a run with ROS counts where ``round_trip_us`` is None: the run
    had none. A fall is told in words at the end.

    Args:
        summary: Name to number, text, None, or name to number; ``readouts`` has ``min`` and ``max`` of each.
        hidden: Keys that say nothing of this run.
    """
    with_ros = summary.get("round_trip_us") is not None
    lines = []
    for key, value in summary.items():
        if key in ("readouts", "fell_at_s", "gave_up_at_s", *_COMMANDS[1:], *hidden):
            continue
        if key == "overruns":
            lines += _in_time(summary) if with_ros else []
            continue
        text = _text(value)
        if text:
            lines.append(_line(key, text))
    for name, span in (summary.get("readouts") or {}).items():
        lines.append(_line(name, f"{span['min']:.6g} to {span['max']:.6g}"))
    if summary.get("fell_at_s") is not None:
        lines.append(f"{summary['robot']} fell at t = {summary['fell_at_s']:.3f} s")
    gave_up = summary.get("gave_up_at_s")
    if gave_up is not None:
        lines.append(f"seen by the controller at t = {gave_up:.3f} s, after which the joints were damped")
    return lines


def missed_share(summary: Mapping[str, Any]) -> float:
    """Return the share of ticks that began without a new command, 0 where there was no tick."""
    ticks = (summary["duration_s"] or 0.0) * (summary["rate_hz"] or 0.0)
    return (summary["missed_commands"] or 0) / ticks if ticks else 0.0


def _in_time(summary: Mapping[str, Any]) -> list[str]:
    """Return what became of ticks and commands."""
    refused = f", {summary['commands_dropped']} refused" if summary["commands_dropped"] else ""
    commands = f"{1.0 - missed_share(summary):.1%} in time ({summary['missed_commands']} missed{refused})"
    return [_line("commands", commands), _line("overruns", f"{summary['overruns']} ticks that came late")]


def _line(key: str, text: str) -> str:
    return f"{key:26} {text} {unit_of(key)}".rstrip()


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "  ".join(f"{name} {_text(entry)}" for name, entry in value.items() if entry is not None)
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
