"""Convert a recording to the sequence of its discrete states."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bipedsim.analysis import CARRIES
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array, Flags, Integers, true_runs
from bipedsim.recording import ABSENT_MODE, Recording
from bipedsim_studies.gait_modes.states import FootState, State


@dataclass(frozen=True)
class Entry:
    """A discrete state and its duration.

    Attributes:
        t: Time of its first row [s].
        duration: Time until the first row of the next entry [s].
        state: State of each foot.
        first, last: Its first row in the sequence, and the first row after it.
    """

    t: float
    duration: float
    state: State
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class ModeSequence:
    """Discrete states of K feet over n rows.

    Attributes:
        feet: Names of the feet.
        t: (n + 1,) time of each row, and end time of the last one [s].
        states: (n, K) :class:`FootState` of each foot.
        rows: (n,) indices of the rows in the recording.
        notes: Remarks about the determination of the states, for the user.
    """

    feet: tuple[str, ...]
    t: Array
    states: Integers
    rows: Integers
    notes: tuple[str, ...] = ()

    @property
    def entries(self) -> list[Entry]:
        """The states in order, without repetitions."""
        return run_lengths(self.t, self.states)


def run_lengths(t: Array, states: Integers) -> list[Entry]:
    """Return the entries for rows (n, K) of states at the times ``t`` (n + 1,) [s]."""
    changes = np.flatnonzero((states[1:] != states[:-1]).any(axis=1)) + 1
    edges = [0, *changes.tolist(), len(states)]
    return [
        Entry(float(t[a]), float(t[b] - t[a]), tuple(FootState(foot_state) for foot_state in states[a]), a, b)
        for a, b in pairwise(edges)
    ]


def transitions(entries: list[Entry]) -> Counter[tuple[State, State]]:
    """Return the number of transitions between each pair of states: the edges of the transition graph."""
    return Counter((a.state, b.state) for a, b in pairwise(entries))


def mode_sequence(recording: Recording) -> ModeSequence:
    """Return the states of each foot, from the contact states and impacts of a recording.

    A foot is detached while none of its vertices is clamped. An impact consists of consecutive rows with an impact
    impulse or a touch-down. It can take two rows, because in discrete time a gap closes in one step and the velocity
    stops in the next. In these rows, two kinds of feet have an impact:

    - feet that were detached before;
    - feet with an impulse and newly clamped vertices.

    The other feet only transmit the shock. The state of the last row determines the state after the impact. Compliant
    contact has no impulses, so its impacts are the rows of touch-down. Feet on the ground in the first row have no
    impact there.

    Recordings of a real robot have no contact states. A foot is then on the ground while it carries more than
    ``CARRIES`` of the weight, and slip is unknown; ``notes`` report this. Rows with an unknown foot, and rows after the
    controller gave up, are omitted.

    Raises:
        RecordingError: The recording has no data about the contact of the feet.
    """
    if not recording.feet or len(recording) == 0:
        raise RecordingError("no feet or no rows: there are no modes in it", "the recording")
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
        # A bag starts with the state before the first physics step, when no contact has been solved yet.
    rows &= (recording.t > 0.0) | contact.any(axis=1)
    if np.isfinite(recording.gave_up_at):
        rows &= ~(recording.t > recording.gave_up_at)
        notes.append(f"the robot fell: what follows t = {recording.gave_up_at:.3f} s, when it was seen, is left out")
    if not rows.any():
        raise RecordingError("no row in which all feet are known: there are no modes in it", "the recording")
    pushed_up = impact[rows][:, :, 2] > 0.0
    any_impulse = (impact[rows] != 0.0).any(axis=(1, 2))
    states = foot_states(contact[rows], sliding[rows], clamped[rows], pushed_up, any_impulse)
    t = recording.t[rows]
    tick = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    return ModeSequence(recording.feet, np.append(t, t[-1] + tick), states, np.flatnonzero(rows), tuple(notes))


def _from_wrenches(recording: Recording) -> tuple[Flags, Flags]:
    """Return the rows (n,) with forces of all feet, and the feet (n, K) that carry load in each row."""
    force = recording.wrench[:, :, 2]
    rows = np.asarray(np.isfinite(force).all(axis=1))
    if not rows.any():
        foot = recording.feet[0]
        raise RecordingError(
            "not recorded, so that the contacts of the feet are unknown: record it, or, of a robot, "
            f"/{foot}_foot_ft/wrench and a robot that `bipedsim robots` lists, and the same of the other feet",
            f"/{foot}_foot/contact",
        )
    if not np.isfinite(recording.weight):
        raise RecordingError(
            "unknown, and it says which of the recorded forces are contact: name the robot of the bag "
            "(docs/recording.md)",
            "weight of the robot",
        )
    return rows, np.asarray(np.nan_to_num(force) > CARRIES * recording.weight)


def foot_states(contact: Flags, sliding: Flags, clamped: Integers, pushed_up: Flags, any_impulse: Flags) -> Integers:
    """Return the :class:`FootState` (n, K) of each row, as defined by :func:`mode_sequence`.

    Args:
        contact: (n, K) whether any vertex of the foot is clamped.
        sliding: (n, K) whether the foot's friction is dynamic.
        clamped: (n, K) bit mask of the vertices on the ground.
        pushed_up: (n, K) whether the foot received an upward impulse from the ground.
        any_impulse: (n,) whether any foot received an impulse in any direction.
    """
    states = np.where(contact, np.where(sliding, FootState.SLIDE, FootState.STICK), FootState.AIR).astype(np.int64)
    touchdown = np.zeros_like(contact)
    touchdown[1:] = contact[1:] & ~contact[:-1]
    for a, b in true_runs(any_impulse | touchdown.any(axis=1)):
        if a == 0:
            continue
        new_vertices = np.bitwise_or.reduce(clamped[a:b] & ~clamped[a - 1], axis=0) != 0
        # A foot may touch down and lift off again between two rows.
        impacted = touchdown[a:b].any(axis=0) | (pushed_up[a:b].any(axis=0) & (new_vertices | ~contact[a - 1]))
        if not impacted.any():
            continue
        # A foot that lifts off again within the impact gets its last state in contact.
        slides_after = [bool(sliding[a:b, k][contact[a:b, k]][-1:].any()) for k in range(contact.shape[1])]
        impact_states = np.where(slides_after, FootState.IMPACT_SLIDE, FootState.IMPACT_STICK)
        states[a:b] = np.where(impacted, impact_states, states[b - 1])
    return states
