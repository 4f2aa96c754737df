"""From a recording to the sequence of its discrete states."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bipedsim.analysis import CARRIES
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array, Flags, Integers
from bipedsim.recording import ABSENT_MODE, Recording
from bipedsim_studies.gait_modes.states import FootState, State


@dataclass(frozen=True)
class Entry:
    """A state and how long it lasted.

    Attributes:
        t: Time of the first row in it [s].
        duration: Until the first row of the next one [s].
        state: What each foot does.
        first, last: Integers of the sequence, ``last`` is not in it any more.
    """

    t: float
    duration: float
    state: State
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class ModeSequence:
    """What K feet did over n rows.

    Attributes:
        feet: Their names.
        t: (n + 1,) time of each row [s], and when the last one ends.
        states: (n, K) :class:`FootState` of each foot.
        rows: (n,) which rows of the recording they are.
        notes: What a reader should know of how the states were found.
    """

    feet: tuple[str, ...]
    t: Array
    states: Integers
    rows: Integers
    notes: tuple[str, ...] = ()

    @property
    def entries(self) -> list[Entry]:
        """The states in order, none twice in a row."""
        return run_lengths(self.t, self.states)


def run_lengths(t: Array, states: Integers) -> list[Entry]:
    """Return the entries of rows (n, K) of states at the times ``t`` (n + 1,) [s]."""
    changes = np.flatnonzero((states[1:] != states[:-1]).any(axis=1)) + 1
    edges = [0, *changes.tolist(), len(states)]
    return [
        Entry(float(t[a]), float(t[b] - t[a]), tuple(FootState(x) for x in states[a]), a, b) for a, b in pairwise(edges)
    ]


def transitions(entries: list[Entry]) -> Counter[tuple[State, State]]:
    """Return how often each state was followed by each other: the edges of the graph that was seen."""
    return Counter((a.state, b.state) for a, b in pairwise(entries))


def mode_sequence(recording: Recording) -> ModeSequence:
    """Return what each foot did, from the contact states and impacts of the recording.

    A foot is detached where nothing of it is clamped. An impact is what happens in successive rows that hold the
    impulse of an impact, or a touch-down: in discrete time a gap closes in one step and the velocity stops in the next.
    A foot that was detached before these rows, or that has vertices on the ground in them that were not before and
    takes up impulse, meets the ground; the others pass the shock on. The state of the last of the rows says how it
    ends. A soft contact has no impulse, its impacts are the rows of touch-down. What is on the ground in the first row
    has not been seen to land.

    A real robot has no contact states: there, a foot is on the ground while it carries more than ``CARRIES`` of
    the weight, and slip is unknown; ``notes`` say so. Integers in which a foot is unknown, and those after
    the controller gave up, are left out.

    Raises:
        RecordingError: Nothing says where the feet touch.
    """
    if not recording.feet or len(recording) == 0:
        raise RecordingError("the recording has no feet or no rows: there are no modes in it")
    known = recording.mode != ABSENT_MODE
    notes: list[str] = []
    if known.any(axis=0).all():
        rows = known.all(axis=1)
        contact, sliding = recording.mode > 0, recording.sliding
        impact = np.nan_to_num(recording.impact)
        clamped = recording.clamped
    else:
        rows, contact = _from_wrenches(recording)
        sliding, impact = np.zeros_like(contact), np.zeros((*contact.shape, 6))
        clamped = contact.astype(np.int64)
        notes.append(
            f"no contact states recorded: feet that carry more than {CARRIES:.0%} of the weight count as on the "
            "ground, and as sticking"
        )
    if not rows.all():
        notes.append(f"{np.count_nonzero(~rows)} rows of {len(rows)} left out: a foot is not recorded there")
    # At the start of a bag is the state before the first step, for which no contact has been solved.
    rows &= (recording.t > 0.0) | contact.any(axis=1)
    if np.isfinite(recording.gave_up_at):
        rows &= ~(recording.t > recording.gave_up_at)
        notes.append(f"the robot fell: what follows t = {recording.gave_up_at:.3f} s, when it was seen, is left out")
    if not rows.any():
        raise RecordingError("the recording has no row in which all feet are known: there are no modes in it")
    struck = impact[rows][:, :, 2] > 0.0
    shocked = (impact[rows] != 0.0).any(axis=(1, 2))
    states = foot_states(contact[rows], sliding[rows], clamped[rows], struck, shocked)
    t = recording.t[rows]
    tick = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    return ModeSequence(recording.feet, np.append(t, t[-1] + tick), states, np.flatnonzero(rows), tuple(notes))


def _from_wrenches(recording: Recording) -> tuple[Flags, Flags]:
    """Return which rows (n,) have forces of all feet, and which feet (n, K) carry load in them."""
    force = recording.wrench[:, :, 2]
    rows = np.asarray(np.isfinite(force).all(axis=1))
    if not rows.any():
        foot = recording.feet[0]
        raise RecordingError(
            "the recording does not say where the feet touch the ground: record "
            f"/{foot}_foot/contact of the simulator, or, of a robot, /{foot}_foot_ft/wrench and a robot that "
            "`bipedsim robots` lists, and the same of the other feet"
        )
    if not np.isfinite(recording.weight):
        raise RecordingError(
            "the recording holds forces and no contact states, and the robot's weight is unknown, which says what "
            "force is contact: name the robot of the bag (docs/recording.md)"
        )
    return rows, np.asarray(np.nan_to_num(force) > CARRIES * recording.weight)


def foot_states(contact: Flags, sliding: Flags, clamped: Integers, struck: Flags, shocked: Flags) -> Integers:
    """Return the :class:`FootState` (n, K) of each row, as :func:`mode_sequence` defines it.

    Args:
        contact: (n, K) whether something of the foot is clamped.
        sliding: (n, K) whether its friction is dynamic.
        clamped: (n, K) its vertices on the ground, as bits.
        struck: (n, K) whether the ground pushed it up by an impulse.
        shocked: (n,) whether any foot got an impulse of any direction.
    """
    states = np.where(contact, np.where(sliding, FootState.SLIDE, FootState.STICK), FootState.AIR).astype(np.int64)
    lands = np.zeros_like(contact)
    lands[1:] = contact[1:] & ~contact[:-1]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], shocked | lands.any(axis=1), [False]]).astype(np.int8)))
    for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if a == 0:
            continue
        closed = np.bitwise_or.reduce(clamped[a:b] & ~clamped[a - 1], axis=0) != 0
        # A foot may touch the ground between two rows and be off again.
        meets = lands[a:b].any(axis=0) | (struck[a:b].any(axis=0) & (closed | ~contact[a - 1]))
        if not meets.any():
            continue
        # A foot that is off again within the rows ends as it was when it was down.
        slides = [bool(sliding[a:b, k][contact[a:b, k]][-1:].any()) for k in range(contact.shape[1])]
        ends = np.where(slides, FootState.IMPACT_SLIDE, FootState.IMPACT_STICK)
        states[a:b] = np.where(meets, ends, states[b - 1])
    return states
