"""The end of a run: the fall of the robot as a value, and the line of the outcome, which is made here alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bipedsim.analysis.controller_stop import ControllerStop
from bipedsim.analysis.summary_text import percent

# The outcome mentions a joint at its torque limit in this share of the ticks, or with this many swings per second.
OFTEN_LIMITED, OFTEN_TURNED = 0.1, 50.0


class FallKind(Enum):
    """Name the condition that led to a fall; summaries contain the values."""

    TORQUE_LIMIT = "torque_limit"
    JOINT_LIMIT = "joint_limit"
    SLIP = "slip"
    TIPPING = "tipping"
    NO_COMMANDS = "no_commands"


_CONDITIONS = {
    FallKind.TORQUE_LIMIT: "{} at its torque limit",
    FallKind.JOINT_LIMIT: "{} at its joint limit",
    FallKind.SLIP: "{} foot slipping",
    FallKind.TIPPING: "tipping over the edge of what it stands on",
    FallKind.NO_COMMANDS: "no commands",
}


@dataclass(frozen=True)
class FallReason:
    """Store the condition that led to a fall.

    Attributes:
        kind: The condition.
        part: Name of the joint or foot; empty for other conditions.
        since: Begin of the condition [s].
    """

    kind: FallKind
    part: str
    since: float

    @classmethod
    def read(cls, values: object) -> FallReason | None:
        """Return the reason in a summary; None if it is absent, or of a kind that this version does not know."""
        known = {kind.value: kind for kind in FallKind}
        match values:
            case {"kind": str(kind), "part": str(part), "from_s": int() | float() as since} if kind in known:
                return cls(known[kind], part, float(since))
        return None

    def __str__(self) -> str:
        return f"{_CONDITIONS[self.kind].format(self.part)} from {self.since:.1f} s"


@dataclass(frozen=True)
class Fall:
    """Store the fall of a robot.

    Attributes:
        at: Time of the fall [s].
        reason: The condition that led to it; None if unknown.
        lies_on: Links that carried part of the weight at the end, the most loaded first.
    """

    at: float
    reason: FallReason | None
    lies_on: tuple[str, ...] = ()

    @classmethod
    def read(cls, outcome: Mapping[str, Any]) -> Fall | None:
        """Return the fall in the metrics of an outcome; None without one."""
        if outcome.get("fell_at_s") is None:
            return None
        reason = FallReason.read(outcome.get("fall_reason"))
        return cls(outcome["fell_at_s"], reason, tuple(outcome.get("lies_on") or ()))

    def figures(self) -> dict[str, Any]:
        """Return the metrics from which :meth:`read` makes the fall again."""
        reason = self.reason
        values = None if reason is None else {"kind": reason.kind.value, "part": reason.part, "from_s": reason.since}
        return {"fell_at_s": self.at, "fall_reason": values, "lies_on": list(self.lies_on)}

    def text(self, cause: object) -> str:
        """Describe the fall with its ``cause``, a reason or a stop of the controller; None if it is unknown."""
        text = f"fell at {self.at:.1f} s" + ("" if cause is None else f": {cause}")
        return text + (f"; lies on {', '.join(self.lies_on)}" if self.lies_on else "")


def with_stop(outcome: Mapping[str, Any], stop: ControllerStop | None, under: Sequence[str] = ()) -> dict[str, Any]:
    """Return the metrics of an outcome, and add the stop of the controller to its line if it is relevant.

    Args:
        outcome: :meth:`Verdict.figures`.
        stop: The stop; None without one.
        under: Descriptions of injected faults.
    """
    fall = Fall.read(outcome)
    if stop is None or not outcome.get("verdict") or not stop.explains(None if fall is None else fall.at):
        return dict(outcome)
    if fall is None:
        return {**outcome, "verdict": f"{outcome['verdict']}, but {stop}"}
    # The joints were damped after the stop, so conditions of that time are no reason of the fall.
    return {**outcome, "verdict": outcome_line(fall.text(stop), fall, outcome, under)}


def outcome_line(text: str, fall: Fall | None, outcome: Mapping[str, Any], under: Sequence[str]) -> str:
    """Return the line of an outcome: its ``text``, and torques and faults that matter.

    Args:
        text: Description of the fall, or of a run without one.
        fall: The fall; None without one.
        outcome: The metrics of the torques.
        under: Descriptions of injected faults.
    """
    # A joint that is the reason of the fall is already named.
    named = fall is not None and fall.reason is not None and fall.reason.kind is FallKind.TORQUE_LIMIT
    limited = {} if named else outcome.get("torque_limited") or {}
    faults = f", under {'; '.join(under)}" if under else ""
    return text + _torque_text(limited, outcome.get("torque_swings_hz") or {}) + faults


def _torque_text(limited: Mapping[str, float], turned: Mapping[str, float]) -> str:
    """Describe torques that were often at their limits, and torques that chatter."""
    text = ""
    often = [joint for joint, share in limited.items() if share >= OFTEN_LIMITED]
    if often:
        more = f" ({len(often) - 1} more {'joints' if len(often) > 2 else 'joint'})" if len(often) > 1 else ""
        text = f"; {often[0]} at its torque limit in {percent(limited[often[0]])} of ticks{more}"
    joint, rate = next(iter(turned.items()), ("", 0.0))
    if rate >= OFTEN_TURNED:
        text += " and" if often[:1] == [joint] else f"; {joint}"
        text += f" driven from side to side {rate:.0f} times a second"
    return text
