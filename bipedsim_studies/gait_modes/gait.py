"""Which gait a sequence of states is: walking, hopping or running (hurmuzlu2001 eq. 45), and in what sets it is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from bipedsim.numerics import Array, Flags, Integers
from bipedsim.recording import Recording
from bipedsim_studies.gait_modes.cycle import Cycle, find_cycle
from bipedsim_studies.gait_modes.sequence import Entry, ModeSequence, mode_sequence
from bipedsim_studies.gait_modes.states import IMPACTS, FootState
from bipedsim_studies.gait_modes.times import BOUNCE, PAUSE

MOVING = 0.01
"""Rms of the fastest joint's velocity above which a robot on its feet moves [rad/s]."""
SETS = ("CVIS", "UIS", "FCIS")
"""Constraint-violating, unconstrained, fully constrained invariant sets (section 4.1)."""
MEANINGS = {
    "CVIS": "it meets the ground",
    "UIS": "it is never on the ground",
    "FCIS": "it never leaves the ground",
    "UIS-FCIS": "it lifts and does not return, or the robot moves on its feet",
}
"""What a foot or the robot does in a stretch, by the sets that it is in."""


@dataclass(frozen=True)
class Stretch:
    """A part of the run in which feet meet the ground again and again, or in which none does (eq. 43).

    Attributes:
        t, duration: When it begins, how long it lasts [s].
        gaits: ``walking``, ``hopping``, ``running`` in the order in which they came, or what else it was:
            ``standing``, ``on left``, ``flight``, ``step``, ``leap``, ``landing``, ``tapping``.
        steps: Touch-downs of a foot while another one carries, in turn.
        flights: Times that no foot was on the ground, and then one was.
        feet_sets: For each foot, the invariant sets that its constraint is in, of :data:`SETS`.
        sets: Of the robot, such as ``CVIS`` or ``UIS-FCIS``.
        cycle: The states that repeat, or None.
        impacts: Whether feet meet the ground: a phase I of eq. 43, otherwise a phase Omega.
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
    """What a run was.

    Attributes:
        entries: Its states without bounces: every phase, and every touch-down of a foot that had stepped.
        stretches: Its parts in order.
        sliding: For each foot, the share of its time on the ground in which it slides.
    """

    entries: list[Entry]
    stretches: list[Stretch]
    sliding: tuple[float, ...]

    @property
    def gaits(self) -> tuple[str, ...]:
        """Walking, hopping and running, as far as they were seen, in the order in which they were first."""
        named = [gait for stretch in self.stretches for gait in stretch.gaits if gait in GAITS.values()]
        return tuple(dict.fromkeys(named))

    @property
    def verdict(self) -> str:
        """The gaits in words; where there was none, what there was."""
        if self.gaits:
            return ", ".join(self.gaits)
        return ", ".join(dict.fromkeys(gait for stretch in self.stretches for gait in stretch.gaits))


# What a touch-down or a flight is, to the gait that enough of it make, and how many are enough.
GAITS = {"step": "walking", "hop": "hopping", "run": "running"}
_ENOUGH = {"step": 2, "hop": 1, "run": 2}


def without_bounces(t: Array, contact: Flags, bounce: float) -> Flags:
    """Return the contact (n, K) of each foot with every gap between two contacts shorter than ``bounce`` [s] closed."""
    closed = contact.copy()
    for k in range(contact.shape[1]):
        down = np.flatnonzero(contact[:, k])
        for i in np.flatnonzero(np.diff(down) > 1).tolist():
            first, end = down[i] + 1, down[i + 1]
            if t[end] - t[first] < bounce:
                closed[first:end, k] = True
    return closed


def gait_report(
    modes: ModeSequence,
    bounce: float = BOUNCE,
    pause: float = PAUSE,
    joint_velocity: Array | None = None,
) -> GaitReport:
    """Return which gaits a sequence holds.

    Bounces are closed first. Then a flight is one of running if it goes from one foot to another, a hop if it ends on
    the feet from which it began; feet that lift or land within ``bounce`` of each other do so together. A touch-down
    while another foot carries is a step, if it is not of the same foot as the one before. Two steps, two flights of
    running or one hop make the gait; slip is allowed, and counted.

    Args:
        modes: The sequence.
        bounce, pause: As ``BOUNCE`` and ``PAUSE`` of the package [s]; a bounce of 0 keeps every one.
        joint_velocity: (n, nu) of the rows of ``modes`` [rad/s]: whether a robot on its feet moves (remark 2 of the
            paper: it is then unconstrained in some directions and constrained in others). None: it does not.
    """
    t, states = modes.t, modes.states
    contact = without_bounces(t, states != FootState.AIR, bounce)
    struck = np.isin(states, IMPACTS)
    entries = _reduced(t, states, contact)
    stretches = []
    for first, last, busy in _parts(t, contact, struck, pause):
        gaits, steps, flights = _gaits(t, contact, first, last, bounce) if busy else ((), 0, 0)
        feet_sets = [_foot_sets(contact[first:last, k], struck[first:last, k]) for k in range(len(modes.feet))]
        seen = {name for sets in feet_sets for name in sets}
        moves = joint_velocity is not None and _moves(joint_velocity[first:last])
        if seen == {"FCIS"} and moves:
            seen.add("UIS")
        inside = [entry for entry in entries if first <= entry.first < last]
        stretches.append(
            Stretch(
                t=float(t[first]),
                duration=float(t[last] - t[first]),
                gaits=gaits or _support_words(contact[first:last], modes.feet),
                steps=steps,
                flights=flights,
                feet_sets=tuple(_joined(sets) for sets in feet_sets),
                sets=_joined(seen),
                cycle=find_cycle(inside) if busy else None,
                impacts=busy,
            )
        )
    down = np.maximum(np.count_nonzero(states != FootState.AIR, axis=0), 1)
    slides = np.count_nonzero((states == FootState.SLIDE) | (states == FootState.IMPACT_SLIDE), axis=0)
    return GaitReport(entries, stretches, tuple((slides / down).tolist()))


def report_recording(
    recording: Recording, bounce: float = BOUNCE, pause: float = PAUSE
) -> tuple[ModeSequence, GaitReport]:
    """Return the sequence of a recording, and which gaits it holds, as :func:`gait_report` says.

    Raises:
        RecordingError: Nothing says where the feet touch.
    """
    modes = mode_sequence(recording)
    return modes, gait_report(modes, bounce, pause, recording.joint_velocity[modes.rows])


def _joined(sets: set[str]) -> str:
    return "-".join(name for name in SETS if name in sets)


def _moves(joint_velocity: Array) -> bool:
    rows = joint_velocity[np.isfinite(joint_velocity).all(axis=1)]
    return bool(rows.size) and float(np.sqrt((rows**2).mean(axis=0)).max()) > MOVING


def _foot_sets(contact: Flags, struck: Flags) -> set[str]:
    """Return the sets of one foot's constraint: it collides, or is free, or holds, or holds and is free in turn."""
    if struck.any():
        return {"CVIS"}
    return ({"FCIS"} if contact.any() else set()) | ({"UIS"} if not contact.all() else set())


def _support_words(contact: Flags, feet: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the feet do in a stretch without impacts, in order."""
    changes = np.flatnonzero((contact[1:] != contact[:-1]).any(axis=1)) + 1
    words = []
    for row in (0, *changes.tolist()):
        down = [foot for foot, holds in zip(feet, contact[row], strict=True) if holds]
        words.append("flight" if not down else "standing" if len(down) == len(feet) else "on " + " and ".join(down))
    return tuple(words)


def _reduced(t: Array, states: Integers, contact: Flags) -> list[Entry]:
    """Return the states without bounces: an impact where a foot lands, and between them the phases.

    In a phase a foot slides if it does in most of its rows on the ground.
    """
    changes = (np.flatnonzero((contact[1:] != contact[:-1]).any(axis=1)) + 1).tolist()
    entries: list[Entry] = []
    for a, b in pairwise([0, *changes, len(contact)]):
        down = contact[a:b]
        part = states[a:b]
        grounded = np.count_nonzero(part != FootState.AIR, axis=0)
        slid = np.count_nonzero((part == FootState.SLIDE) | (part == FootState.IMPACT_SLIDE), axis=0)
        phase = np.where(down[0], np.where(2 * slid > grounded, FootState.SLIDE, FootState.STICK), FootState.AIR)
        lands = down[0] & ~contact[a - 1] if a else np.zeros_like(down[0])
        middle = a
        if lands.any():
            middle = a + int(np.argmin(np.append(np.isin(part[:, lands], IMPACTS).any(axis=1), False)))
            # Without its impulse, as at the edge of what was left out, a landing is at its row.
            middle = max(middle, a + 1)
            shock = np.where(lands, np.where(np.isin(part[0], IMPACTS), part[0], FootState.IMPACT_STICK), phase)
            entries.append(_entry(t, shock, a, middle))
        if middle < b:
            entries.append(_entry(t, phase, middle, b))
    return entries


def _entry(t: Array, state: Integers, first: int, last: int) -> Entry:
    return Entry(float(t[first]), float(t[last] - t[first]), tuple(map(FootState, state.tolist())), first, last)


def _touch_downs(contact: Flags) -> list[tuple[int, int]]:
    """Return (row, foot) of every touch-down that was seen, in order."""
    rows, feet = np.nonzero(contact[1:] & ~contact[:-1])
    return list(zip((rows + 1).tolist(), feet.tolist(), strict=True))


def _parts(t: Array, contact: Flags, struck: Flags, pause: float) -> list[tuple[int, int, bool]]:
    """Return (first row, last row, whether feet meet the ground in it) of the stretches."""
    n = len(contact)
    lifts = [np.flatnonzero(contact[:-1, k] & ~contact[1:, k]) + 1 for k in range(contact.shape[1])]
    busy: list[list[int]] = []
    for row, foot in _touch_downs(contact):
        before = int(np.searchsorted(lifts[foot], row))
        busy.append([int(lifts[foot][before - 1]) if before else 0, row + 1])
    hits = np.flatnonzero(struck.any(axis=1))
    # Feet that hit the ground without having left it: they rock.
    busy += [[row, row + 1] for row in hits.tolist()]
    busy.sort()
    merged: list[list[int]] = []
    for first, last in busy:
        if merged and t[first] - t[merged[-1][1]] < pause:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    parts: list[tuple[int, int, bool]] = []
    at = 0
    for first, last in merged:
        if first > at:
            parts.append((at, first, False))
        parts.append((first, last, True))
        at = last
    return [*parts, (at, n, False)] if at < n else parts


def _gaits(t: Array, contact: Flags, first: int, last: int, bounce: float) -> tuple[tuple[str, ...], int, int]:
    """Return (gaits, steps, flights) of a stretch in which feet meet the ground."""
    events: list[tuple[int, str]] = []
    air = np.concatenate([[False], ~contact[first:last].any(axis=1), [False]])
    edges = (np.flatnonzero(np.diff(air.astype(np.int8))) + first).tolist()
    flights = list(zip(edges[::2], edges[1::2], strict=True))
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
    others = {"run": "leap", "tap": "tapping"}
    gaits = gaits or [others.get(kind, kind) for kind, _ in groups] or ["rocking"]
    return tuple(dict.fromkeys(gaits)), kinds.count("step"), len(flights)


def _flight(before: Flags, after: Flags) -> str:
    """Return what a flight is, from the contact (n, K) in the rows ``before`` and ``after`` it."""
    leaves, lands = np.any(before, axis=0), np.any(after, axis=0)
    if not leaves.any():
        return "landing"
    if (leaves == lands).all():
        return "hop"
    return "run" if np.count_nonzero(leaves) == np.count_nonzero(lands) == 1 else "leap"
