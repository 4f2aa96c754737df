"""Collect the statistics of sim_node, and convert them to JSON and to diagnostics (REP-107)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from bipedsim.analysis import OUTCOME, in_words, physics_text
from bipedsim.config import to_json
from bipedsim_ros.loop.commands import Silence
from bipedsim_ros.loop.diagnostics import status_of
from bipedsim_ros.loop.realtime import Histogram

# Period for which diagnostic_aggregator considers a status current by default [s].
_STALE_S = 5.0


@dataclass
class Statistics:
    """Counts since the node started; a reset of the simulation does not clear them.

    Attributes:
        robot, contact_model, clock, rate_hz: Settings of the simulation.
        start: Behaviour before the first command, see :class:`bipedsim_ros.loop.SimParams`.
        real_time_priority: Priority of the loop's thread (SCHED_FIFO); 0 without.
        state: waiting, running, paused, diverged or finished.
        t: Simulated time [s].
        ticks: Simulated ticks.
        simulated_ns, wall_ns: Simulated and wall time while running [ns].
        overruns, deadlines_dropped: Counts of the real-time clock.
        missed_commands: Ticks that began without a new valid command, after the first command.
        command_topics: Resolved names of the topics on which commands are accepted.
        commands_received, commands_dropped_by_kind, commands_clipped, command_timeouts, silences, silence: See
            :class:`bipedsim_ros.loop.Commands`.
        pushes_dropped_by_kind: Refused messages on /push, by kind of fault.
        silent_wall_s: Wall time since the last command [s], if the next one is overdue.
        faults, commands_lost: Injected faults, and the number of commands lost because of them.
        state_changes, unresolved_steps: Counts of the contact model, over all resets.
        round_trip: Time from the publication of the joint states to the receipt of the answering command.
        lateness: Time from a deadline to the start of its tick.
        outcome: Outcome since the last reset, see :class:`bipedsim.analysis.Verdict`, with the results of the physics
            monitors under ``physics``, see :class:`bipedsim.sim.Monitors`.
        warnings: Further warnings about the statistics, such as another robot on the same topics.
        error: Reason why the simulation failed, or an empty text.
    """

    robot: str
    contact_model: str
    clock: str
    rate_hz: float
    start: str = ""
    real_time_priority: int = 0
    state: str = "waiting"
    t: float = 0.0
    ticks: int = 0
    simulated_ns: int = 0
    wall_ns: int = 0
    overruns: int = 0
    deadlines_dropped: int = 0
    missed_commands: int = 0
    command_topics: tuple[str, ...] = ()
    commands_received: int = 0
    commands_dropped_by_kind: dict[str, int] = field(default_factory=dict)
    commands_clipped: int = 0
    pushes_dropped_by_kind: dict[str, int] = field(default_factory=dict)
    command_timeouts: int = 0
    silences: list[Silence] = field(default_factory=list)
    silence: Silence | None = None
    faults: tuple[str, ...] = ()
    commands_lost: int = 0
    state_changes: int = 0
    unresolved_steps: int = 0
    round_trip: Histogram = field(default_factory=Histogram)
    lateness: Histogram = field(default_factory=Histogram)
    outcome: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error: str = ""

    @property
    def real_time_factor(self) -> float:
        """Simulated time divided by wall time while running; NaN before the start."""
        return self.simulated_ns / self.wall_ns if self.wall_ns else math.nan

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics for JSON; values that were not measured are None."""
        silences = self.silences if self.silence is None else [*self.silences, self.silence]
        return {
            "robot": self.robot,
            "contact_model": self.contact_model,
            "clock": self.clock,
            "state": self.state,
            "duration_s": round(self.t, 9),
            "rate_hz": self.rate_hz,
            "start": self.start,
            "real_time_priority": self.real_time_priority,
            "real_time_factor": _finite(self.real_time_factor),
            "ticks": self.ticks,
            "overruns": self.overruns,
            "deadlines_dropped": self.deadlines_dropped,
            "missed_commands": self.missed_commands,
            "command_topics": list(self.command_topics),
            "commands_received": self.commands_received,
            "commands_dropped": sum(self.commands_dropped_by_kind.values()),
            "commands_dropped_by_kind": self.commands_dropped_by_kind,
            "commands_clipped": self.commands_clipped,
            "pushes_dropped_by_kind": self.pushes_dropped_by_kind,
            "command_timeouts": self.command_timeouts,
            "command_silences_s": [[round(one.begin, 9), one.end and round(one.end, 9)] for one in silences],
            "command_silences_wall_s": [round(one.wall, 3) for one in silences],
            "command_silences_ticks": [one.ticks for one in silences],
            "faults": list(self.faults) or None,
            "commands_lost": self.commands_lost if self.faults else None,
            "state_changes": self.state_changes,
            "unresolved_steps": self.unresolved_steps,
            "round_trip_us": {key: _finite(value) for key, value in self.round_trip.summary_us().items()},
            "lateness_us": {key: _finite(value) for key, value in self.lateness.summary_us().items()},
            "warnings": list(self.warnings) or None,
            "error": self.error,
            **self.outcome,
        }

    def diagnostics(self, stamp: Time) -> DiagnosticArray:
        """Return the statistics as a diagnostics message, with one status each for loop, commands, contact, etc."""
        values = self.as_dict()
        level, message = DiagnosticStatus.OK, self.state
        if self.pushes_dropped_by_kind:
            refused = f"{sum(self.pushes_dropped_by_kind.values())} pushes were dropped"
            level, message = DiagnosticStatus.WARN, f"{message}; {refused} ({in_words(self.pushes_dropped_by_kind)})"
        if self.warnings:
            level, message = DiagnosticStatus.WARN, "; ".join((message, *self.warnings))
        if self.error:
            level, message = DiagnosticStatus.ERROR, self.error
        commands_level, commands_message = self._judge_commands(values["commands_dropped"])
        contact_level, contact_message = DiagnosticStatus.OK, "all steps resolved"
        if self.unresolved_steps:
            contact_level, contact_message = DiagnosticStatus.WARN, f"{self.unresolved_steps} steps kept a violation"
        outcome_level = DiagnosticStatus.OK if self.outcome.get("fell_at_s") is None else DiagnosticStatus.ERROR
        monitored = self.outcome.get("physics", {})
        beyond = any(figure["steps_beyond"] for figure in monitored.values())
        physics_level = DiagnosticStatus.WARN if beyond else DiagnosticStatus.OK
        physics_message = physics_text(monitored, self.unresolved_steps) if monitored else "not started"
        statuses = (
            ("loop", level, message, _LOOP),
            ("commands", commands_level, commands_message, _COMMANDS),
            ("contact", contact_level, contact_message, _CONTACT),
            ("robot", outcome_level, self.outcome.get("verdict", "not started"), OUTCOME if self.outcome else ()),
            ("physics", physics_level, physics_message, ("physics",) if self.outcome else ()),
        )
        result = DiagnosticArray(
            status=[
                status_of(f"bipedsim: {name}", level, message, {key: values[key] for key in keys}, self.robot)
                for name, level, message, keys in statuses
            ]
        )
        result.header.stamp = stamp
        return result

    def _judge_commands(self, dropped: int) -> tuple[bytes, str]:
        """Return level and message of the status of the commands."""
        kinds = f"{dropped} commands were dropped ({in_words(self.commands_dropped_by_kind)})"
        if not self.commands_received:
            return DiagnosticStatus.STALE, f"no sound command yet: {kinds}" if dropped else "no command yet"
        if self.silence is not None:
            silent = max(self.silence.wall, self.t - self.silence.begin)
            level = DiagnosticStatus.STALE if silent > _STALE_S else DiagnosticStatus.WARN
            repeated = f"; {self.silence.ticks} ticks on the last one"
            return level, f"no command for {silent:.1f} s, since t = {self.silence.begin:.3f} s{repeated}"
        # Every reset leaves some commands that answer states from before the reset; they are no fault.
        bad = dropped > self.commands_dropped_by_kind.get("stale", 0)
        return (DiagnosticStatus.WARN, kinds) if bad else (DiagnosticStatus.OK, "commands arrive")


_LOOP = (
    *("state", "duration_s", "rate_hz", "real_time_factor", "ticks", "overruns", "deadlines_dropped", "lateness_us"),
    "pushes_dropped_by_kind",
)
_COMMANDS = (
    "missed_commands",
    "commands_received",
    "commands_dropped",
    "commands_dropped_by_kind",
    "commands_clipped",
    "command_timeouts",
    "command_silences_s",
    "command_silences_wall_s",
    "command_silences_ticks",
    "round_trip_us",
)
_CONTACT = ("state_changes", "unresolved_steps")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write ``values`` atomically, so that a reader never sees a partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(to_json(values) + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
