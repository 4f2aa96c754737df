"""Classify a sequence of states as walking, hopping or running (hurmuzlu2001 eq. 45), and find its invariant sets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from bipedsim.analysis import without_bounces
from bipedsim.numerics import Array, Flags, Integers, true_runs
from bipedsim.recording import Recording
from bipedsim_studies.gait_modes.cycle import Cycle, find_cycle
from bipedsim_studies.gait_modes.sequence import Entry, ModeSequence, mode_sequence
from bipedsim_studies.gait_modes.states import IMPACTS, FootState
from bipedsim_studies.gait_modes.times import BOUNCE, PAUSE

MOVING = 0.01
"""Rms velocity of the fastest joint above which a standing robot counts as moving [rad/s]."""
SETS = ("CVIS", "UIS", "FCIS")
"""Constraint-violating, unconstrained, fully constrained invariant sets (section 4.1)."""
MEANINGS = {
    "CVIS": "it meets the ground",
    "UIS": "it is never on the ground",
    "FCIS": "it never leaves the ground",
    "UIS-FCIS": "it lifts and does not return, or the robot moves on its feet",
}
"""Behaviour of a foot or the robot in a segment, by its invariant sets."""


@dataclass(frozen=True)
class ClassifiedSegment:
    """Segment of a run in which feet repeatedly touch down, or in which none does (eq. 43).

    Attributes:
        t, duration: Start time and duration [s].
        gaits: ``walking``, ``hopping``, ``running`` in the order of their occurrence. Without any of these:
            ``standing``, ``on left``, ``flight``, ``step``, ``leap``, ``landing``, ``tapping``.
        steps: Number of touch-downs on alternating feet while another foot is in contact.
        flights: Number of flight phases that ended with a touch-down.
        feet_sets: Invariant sets of each foot's constraint, from :data:`SETS`.
        sets: Invariant sets of the robot, such as ``CVIS`` or ``UIS-FCIS``.
        cycle: The repeated states, or None.
        impacts: Whether feet touch down: a phase I of eq. 43 instead of a phase Omega.
    """

    t: float
    duration: float
    gaits: tuple[str, ...]
    steps: int
    flights: int
    feet_sets: tuple[str, ...]
    sets: str
    cycle: Cycle | None
    impacts: bool


@dataclass(frozen=True, eq=False)
class GaitReport:
    """Gaits of a run.

    Attributes:
        entries: States without bounces: every phase, and every touch-down that ends a step.
        stretches: Segments of the run, in order.
        sliding: For each foot, the fraction of its time on the ground in which it slides.
    """

    entries: list[Entry]
    stretches: list[ClassifiedSegment]
    sliding: tuple[float, ...]

    @property
    def gaits(self) -> tuple[str, ...]:
        """Walking, hopping and running, if they occur, in the order of their first occurrence."""
        named = [gait for stretch in self.stretches for gait in stretch.gaits if gait in GAITS.values()]
        return tuple(dict.fromkeys(named))

    @property
    def verdict(self) -> str:
        """The gaits in words, or the other behaviours if no gait occurs."""
        if self.gaits:
            return ", ".join(self.gaits)
        return ", ".join(dict.fromkeys(gait for stretch in self.stretches for gait in stretch.gaits))


# The gait that each kind of touch-down or flight forms, and the minimum number of them.
GAITS = {"step": "walking", "hop": "hopping", "run": "running"}
_ENOUGH = {"step": 2, "hop": 1, "run": 2}


def gait_report(
    modes: ModeSequence,
    bounce: float = BOUNCE,
    pause: float = PAUSE,
    joint_velocity: Array | None = None,
) -> GaitReport:
    """Return the gaits in a sequence of states.

    Bounces are removed first. The remaining events are classified as follows:

    - A flight from one foot to another counts for running.
    - A flight that ends on the feet from which it started is a hop.
    - A touch-down while another foot is in contact is a step, unless the same foot touched down before.

    Feet that lift off or touch down within ``bounce`` of each other count as simultaneous. Two steps, two flights of
    running or one hop make the gait. Sliding is allowed, and reported.

    Args:
        modes: The sequence.
        bounce, pause: Time limits, as ``BOUNCE`` and ``PAUSE`` [s]. A bounce of 0 keeps all lift-offs.
        joint_velocity: (n, nu) joint velocities for the rows of ``modes`` [rad/s]. They show whether a standing robot
            moves; it is then unconstrained in some directions and constrained in others (remark 2 of the paper).
            Without them, a standing robot counts as motionless.
    """
    t, states = modes.t, modes.states
    contact = without_bounces(t, states != FootState.AIR, bounce)
    impacts = np.isin(states, IMPACTS)
    entries = _reduced(t, states, contact)
    stretches = []
    for first, last, has_impacts in _parts(t, contact, impacts, pause):
        gaits, steps, flights = _gaits(t, contact, first, last, bounce) if has_impacts else ((), 0, 0)
        feet_sets = [_foot_sets(contact[first:last, k], impacts[first:last, k]) for k in range(len(modes.feet))]
        robot_sets = {name for sets in feet_sets for name in sets}
        joints_move = joint_velocity is not None and _moves(joint_velocity[first:last])
        if robot_sets == {"FCIS"} and joints_move:
            robot_sets.add("UIS")
        segment_entries = [entry for entry in entries if first <= entry.first < last]
        stretches.append(
            ClassifiedSegment(
                t=float(t[first]),
                duration=float(t[last] - t[first]),
                gaits=gaits or _support_words(contact[first:last], modes.feet),
                steps=steps,
                flights=flights,
                feet_sets=tuple(_joined(sets) for sets in feet_sets),
                sets=_joined(robot_sets),
                cycle=find_cycle(segment_entries) if has_impacts else None,
                impacts=has_impacts,
            )
        )
    down = np.maximum(np.count_nonzero(states != FootState.AIR, axis=0), 1)
    slides = np.count_nonzero((states == FootState.SLIDE) | (states == FootState.IMPACT_SLIDE), axis=0)
    return GaitReport(entries, stretches, tuple((slides / down).tolist()))


def report_recording(
    recording: Recording, bounce: float = BOUNCE, pause: float = PAUSE
) -> tuple[ModeSequence, GaitReport]:
    """Return the sequence of states of a recording, and its gaits as defined by :func:`gait_report`.

    Raises:
        RecordingError: The recording has no data about the contact of the feet.
    """
    modes = mode_sequence(recording)
    return modes, gait_report(modes, bounce, pause, recording.joint_velocity[modes.rows])


def _joined(sets: set[str]) -> str:
    return "-".join(name for name in SETS if name in sets)


def _moves(joint_velocity: Array) -> bool:
    rows = joint_velocity[np.isfinite(joint_velocity).all(axis=1)]
    return bool(rows.size) and float(np.sqrt((rows**2).mean(axis=0)).max()) > MOVING


def _foot_sets(contact: Flags, impacts: Flags) -> set[str]:
    """Return the invariant sets of one foot: with impacts, always or never in contact, or both in turn."""
    if impacts.any():
        return {"CVIS"}
    return ({"FCIS"} if contact.any() else set()) | ({"UIS"} if not contact.all() else set())


def _support_words(contact: Flags, feet: tuple[str, ...]) -> tuple[str, ...]:
    """Return the support phases of a segment without impacts, in words and in order."""
    changes = np.flatnonzero((contact[1:] != contact[:-1]).any(axis=1)) + 1
    words = []
    for row in (0, *changes.tolist()):
        down = [foot for foot, in_contact in zip(feet, contact[row], strict=True) if in_contact]
        words.append("flight" if not down else "standing" if len(down) == len(feet) else "on " + " and ".join(down))
    return tuple(words)


def _reduced(t: Array, states: Integers, contact: Flags) -> list[Entry]:
    """Return the states without bounces: an impact at each touch-down, and the phases between them.

    A foot slides in a phase if it slides in most of the phase's rows on the ground.
    """
    changes = (np.flatnonzero((contact[1:] != contact[:-1]).any(axis=1)) + 1).tolist()
    entries: list[Entry] = []
    for a, b in pairwise([0, *changes, len(contact)]):
        down = contact[a:b]
        rows = states[a:b]
        grounded = np.count_nonzero(rows != FootState.AIR, axis=0)
        slid = np.count_nonzero((rows == FootState.SLIDE) | (rows == FootState.IMPACT_SLIDE), axis=0)
        phase = np.where(down[0], np.where(2 * slid > grounded, FootState.SLIDE, FootState.STICK), FootState.AIR)
        landing = down[0] & ~contact[a - 1] if a else np.zeros_like(down[0])
        middle = a
        if landing.any():
            middle = a + int(np.argmin(np.append(np.isin(rows[:, landing], IMPACTS).any(axis=1), False)))
            # A touch-down without recorded impulse, such as at the edge of an omitted part, takes one row.
            middle = max(middle, a + 1)
            impact_state = np.where(
                landing, np.where(np.isin(rows[0], IMPACTS), rows[0], FootState.IMPACT_STICK), phase
            )
            entries.append(_entry(t, impact_state, a, middle))
        if middle < b:
            entries.append(_entry(t, phase, middle, b))
    return entries


def _entry(t: Array, state: Integers, first: int, last: int) -> Entry:
    return Entry(float(t[first]), float(t[last] - t[first]), tuple(map(FootState, state.tolist())), first, last)


def _touch_downs(contact: Flags) -> list[tuple[int, int]]:
    """Return (row, foot) of every touch-down in the recording, in order."""
    rows, feet = np.nonzero(contact[1:] & ~contact[:-1])
    return list(zip((rows + 1).tolist(), feet.tolist(), strict=True))


def _parts(t: Array, contact: Flags, impacts: Flags, pause: float) -> list[tuple[int, int, bool]]:
    """Return (first row, row after the last, whether feet touch down) of the segments."""
    n = len(contact)
    lifts = [np.flatnonzero(contact[:-1, k] & ~contact[1:, k]) + 1 for k in range(contact.shape[1])]
    impact_spans: list[list[int]] = []
    for row, foot in _touch_downs(contact):
        lift_index = int(np.searchsorted(lifts[foot], row))
        impact_spans.append([int(lifts[foot][lift_index - 1]) if lift_index else 0, row + 1])
    impact_rows = np.flatnonzero(impacts.any(axis=1))
    # Feet can also hit the ground without a lift-off, when they rock.
    impact_spans += [[row, row + 1] for row in impact_rows.tolist()]
    impact_spans.sort()
    merged: list[list[int]] = []
    for first, last in impact_spans:
        if merged and t[first] - t[merged[-1][1]] < pause:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    parts: list[tuple[int, int, bool]] = []
    position = 0
    for first, last in merged:
        if first > position:
            parts.append((position, first, False))
        parts.append((first, last, True))
        position = last
    return [*parts, (position, n, False)] if position < n else parts


def _gaits(t: Array, contact: Flags, first: int, last: int, bounce: float) -> tuple[tuple[str, ...], int, int]:
    """Return (gaits, steps, flights) of a segment with touch-downs."""
    events: list[tuple[int, str]] = []
    flights = [(first + a, first + b) for a, b in true_runs(np.asarray(~contact[first:last].any(axis=1)))]
    landed = np.zeros(len(contact), dtype=np.bool_)
    for i, (a, b) in enumerate(flights):
        before = max(flights[i - 1][1] if i else 0, int(np.searchsorted(t, t[a] - bounce)))
        after = min(flights[i + 1][0] if i + 1 < len(flights) else len(contact), int(np.searchsorted(t, t[b] + bounce)))
        landed[b : max(after, b + 1)] = True
        events.append((b, _flight(contact[before:a], contact[b : max(after, b + 1)])))
    previous = -1
    for row, foot in _touch_downs(contact[:last]):
        if row < first:
            continue
        if not landed[row]:
            events.append((row, "step" if foot != previous else "tap"))
        previous = foot
    kinds = [kind for _, kind in sorted(events)]
    groups = [(kind, len(list(group))) for kind, group in groupby(kinds)]
    gaits = [GAITS[kind] for kind, count in groups if kind in GAITS and count >= _ENOUGH[kind]]
    irregular_names = {"run": "leap", "tap": "tapping"}
    gaits = gaits or [irregular_names.get(kind, kind) for kind, _ in groups] or ["rocking"]
    return tuple(dict.fromkeys(gaits)), kinds.count("step"), len(flights)


def _flight(before: Flags, after: Flags) -> str:
    """Return the kind of a flight, from the contact (n, K) in the rows ``before`` and ``after`` it."""
    lifted, landed = np.any(before, axis=0), np.any(after, axis=0)
    if not lifted.any():
        return "landing"
    if (lifted == landed).all():
        return "hop"
    return "run" if np.count_nonzero(lifted) == np.count_nonzero(landed) == 1 else "leap"
