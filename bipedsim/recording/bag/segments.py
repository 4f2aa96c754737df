"""Divide the messages of a bag into segments at the resets of time, and collect the messages of each row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bipedsim.numerics import Array, Flags, Indices, Integers
from bipedsim.recording.bag.cdr import NS_PER_S
from bipedsim.recording.bag.nearest import NearestStamps
from bipedsim.recording.schema import CHANGES, JOINT_STATES, WALL_CLOCK_NS

ROWS = 1 << 13
"""Rows per block; blocks differ where time stops, and at the end of a segment."""
LATE_NS = 10_000_000_000
"""Time for which a row waits for messages with its stamp, on the recorder's clock [ns]."""
NEAR_NS = 5 * NS_PER_S
"""Maximum time between a reset of the joint states and the reset of another topic, on the recorder's clock [ns]. A lost
message delays all later ones of its topic until DDS sends it again, which it may do only every 3 s."""
AGREE = 0.25
"""Largest difference of two latencies, as a share of the time between two rows, at which two clocks agree."""
QUANTILES = (0.05, 0.25, 0.5)
"""Quantiles of the latencies at which two clocks are compared."""
END = 2**63 - 1
"""A time after all messages [ns]."""
LABELLED = "data"
"""Message field that contains the labelled numbers."""


@dataclass(eq=False)
class TopicMessages:
    """Messages of a topic: times of reception and of sending [ns], stamps [ns] (0 without header), and numbers.

    Attributes:
        stamped: Whether stamps assign the messages to rows; otherwise times of reception do.
        leads: Whether a message without a stamp belongs to the next joint states, and not to those before it.
        machine: Name of the machine whose clock gives the times of sending; empty if it is unknown.
        held: Whether rows between two messages have the nearest one. None: a row may have any number of messages.
    """

    arrived: Integers
    sent: Integers
    stamp: Integers
    values: dict[str, Array]
    stamped: bool = True
    leads: bool = False
    machine: str = ""
    held: bool | None = None

    def __len__(self) -> int:
        return len(self.stamp)

    def rows(self, rows: Any) -> TopicMessages:
        """Return some of the messages; a slice gives views."""
        values = {name: value[rows] for name, value in self.values.items()}
        arrays = self.arrived[rows], self.sent[rows], self.stamp[rows]
        return TopicMessages(*arrays, values, self.stamped, self.leads, self.machine, self.held)

    @classmethod
    def joined(cls, parts: Sequence[TopicMessages]) -> TopicMessages:
        """Return all messages of ``parts`` in one table."""
        if len(parts) == 1:
            return parts[0]
        values = {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
        arrived, sent, stamp = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("arrived", "sent", "stamp")
        )
        machines = {part.machine for part in parts}
        machine = machines.pop() if len(machines) == 1 else ""
        return cls(arrived, sent, stamp, values, parts[0].stamped, parts[0].leads, machine, parts[0].held)

    def times(self) -> TopicMessages:
        """Return times and stamps of the messages without their numbers."""
        return replace(self, values={})

    def newest(self, duration: int) -> TopicMessages:
        """Return a copy of the messages that arrived in the last ``duration`` [ns] before the last message."""
        return self.rows(np.flatnonzero(self.arrived >= self.arrived[-1] - duration))

    def stamped_by(self, joints: TopicMessages, earlier: TopicMessages | None = None) -> TopicMessages:
        """Return messages without stamps, each with the stamp of the first of ``joints`` that was not sent before it.

        A message that all joint states precede is left out. The clock is that of :func:`comparable_times`.

        Args:
            joints: The joint states.
            earlier: Previous messages of the topic. They show its usual latency if all messages here are late.
        """
        seen = self.times() if earlier is None else TopicMessages.joined([earlier, self.times()])
        theirs, ours = comparable_times(seen, joints)
        first = np.searchsorted(ours, theirs[-len(self) :], side="left")
        known = first < len(joints)
        return replace(self.rows(as_slice(known)), stamp=joints.stamp[first[known]], stamped=True, leads=False)


def comparable_times(table: TopicMessages, joints: TopicMessages) -> tuple[Integers, Integers]:
    """Return times (n,) of ``table`` and rising times (m,) of ``joints`` that can be compared [ns].

    These are times of sending if the clocks of both publishers agree, and times of reception otherwise. Publishers on
    one machine have one clock. If the machines are unknown, the latencies decide: those of clocks that agree differ by
    less than ``AGREE`` of the time between two rows at one of ``QUANTILES``. A busy machine usually changes only some
    of these quantiles; another clock changes all of them.
    """
    if table.machine and table.machine == joints.machine:
        return table.sent, np.maximum.accumulate(joints.sent)
    first, last = np.searchsorted(joints.arrived, [table.arrived[0], table.arrived[-1]])
    meanwhile = joints.rows(slice(first, last)) if last > first else joints
    theirs, ours = (np.quantile(each.arrived - each.sent, QUANTILES) for each in (table, meanwhile))
    stamps = np.unique(joints.stamp)
    if len(stamps) > 1 and np.abs(theirs - ours).min() < AGREE * float(np.median(np.diff(stamps))):
        return table.sent, np.maximum.accumulate(joints.sent)
    return table.arrived, joints.arrived


class Segments:
    """Collect messages until they become rows, segment by segment. A segment ends where time jumps back.

    Attributes:
        count: Number of segments so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._late = 0
        # Messages per topic that no segment has claimed yet.
        self._waiting: dict[str, TopicMessages] = {}
        self._open: deque[_Segment] = deque()
        self._last_stamp: dict[str, int] = {}
        # Times of the newest messages that a segment has claimed: joint states, and topics that lead them.
        self._claimed: dict[str, TopicMessages] = {}
        # Number of messages that no joint states followed.
        self._unfollowed = 0
        # Time of reception of the first joint states after each reset, and how far time jumps back [ns].
        self._resets: list[tuple[int, int]] = []
        self._nearest = NearestStamps()

    def __contains__(self, topic: str) -> bool:
        return topic in self._waiting

    def add(self, topic: str, messages: TopicMessages) -> None:
        """Add messages of a topic."""
        if len(messages):
            waiting = self._waiting.get(topic)
            self._waiting[topic] = TopicMessages.joined([messages] if waiting is None else [waiting, messages])

    def _distribute(self, until: int) -> None:
        """Assign messages to segments if they arrived before ``until`` and before any reset that is too recent."""
        joints = self._waiting.get(JOINT_STATES)
        leaders = None
        if any(len(table) and table.leads for table in self._waiting.values()):
            parts = [self._claimed.get(JOINT_STATES), joints]
            known = [part.times() for part in parts if part is not None and len(part)]
            leaders = TopicMessages.joined(known) if known else None
        if joints is not None and len(joints):
            stamp = self._last_stamp.get(JOINT_STATES, int(joints.stamp[0]))
            jump_back = -np.diff(joints.stamp, prepend=stamp)
            at = np.flatnonzero(jump_back > 0)
            recent = joints.arrived[at]
            recent = recent[recent > until - NEAR_NS]
            if len(recent):
                until = min(until, int(recent.min()) - NEAR_NS)
            self._resets += [(int(joints.arrived[i]), int(jump_back[i])) for i in at if joints.arrived[i] <= until]
        for topic in sorted(self._waiting, key=lambda name: name != JOINT_STATES):
            table = self._waiting[topic]
            n = int(np.searchsorted(table.arrived, until, side="right"))
            if not n:
                continue
            ready, self._waiting[topic] = table.rows(slice(0, n)), table.rows(slice(n, None))
            if topic == JOINT_STATES:
                self._claim(topic, ready)
            elif ready.leads:
                earlier = self._claimed.get(topic)
                self._claim(topic, ready)
                ready = ready.stamped_by(leaders, earlier) if leaders is not None else ready.rows(slice(0))
                # A bag may end between a message and its joint states.
                self._unfollowed += max(0, n - len(ready) - (until == END))
                n = len(ready)
                if not n:
                    continue
            starts = self._starts(topic, ready)
            for k, (first, last) in enumerate(zip([0, *starts], [*starts, n], strict=True)):
                if first == last:
                    continue
                segment = self._open_segment(k)
                if segment is None:
                    self._late += int(last - first)
                else:
                    segment.add(topic, ready.rows(slice(first, last)))
            self._last_stamp[topic] = int(ready.stamp[-1])

    def _claim(self, topic: str, messages: TopicMessages) -> None:
        """Keep the times of the newest messages, for messages that DDS sends again."""
        before = [self._claimed[topic]] if topic in self._claimed else []
        self._claimed[topic] = TopicMessages.joined([*before, messages.times()]).newest(NEAR_NS)

    def _starts(self, topic: str, table: TopicMessages) -> Integers:
        """Return the index of the first message of the segment after each reset.

        Joint states define the resets. Another topic may reset slightly earlier or later. Its reset is where its own
        stamps jump back by more than half as much, or else at the same time of reception. Other backward jumps of
        stamps are unordered messages, not resets. Changed parameters are few and in order: for them every jump counts.
        """
        resets = np.array(self._resets, dtype=np.int64).reshape(-1, 2)
        starts = np.searchsorted(table.arrived, resets[:, 0])
        if not len(resets) or topic == JOINT_STATES:
            return np.asarray(starts)
        before = self._last_stamp.get(topic, int(table.stamp[0]))
        jump_back = -np.diff(table.stamp, prepend=before)
        largest = np.zeros(len(resets), dtype=np.int64)
        for i in np.flatnonzero(jump_back > 0):
            k = int(np.argmin(np.abs(resets[:, 0] - table.arrived[i])))
            distance = abs(int(resets[k, 0] - table.arrived[i]))
            least = 0 if topic in CHANGES else resets[k, 1] // 2
            if distance <= NEAR_NS and jump_back[i] > max(largest[k], least):
                largest[k], starts[k] = jump_back[i], i
        return np.asarray(np.maximum.accumulate(starts))

    def losses(self) -> list[str]:
        """Return a description of the messages that no row has: too late, or without joint states behind them."""
        seconds = f"{LATE_NS * 1e-9:g} s"
        late = f"{self._late} messages arrived more than {seconds} after their row, and are left out"
        unfollowed = f"{self._unfollowed} messages without stamps have no later joint states, and are left out"
        return [late] * bool(self._late) + [unfollowed] * bool(self._unfollowed) + self._nearest.losses()

    def notes(self) -> list[str]:
        """Return a description of the topics whose stamps are not those of the joint states."""
        return self._nearest.notes()

    def rows(self, now: int) -> Iterator[AlignedRows]:
        """Yield blocks of rows whose messages have arrived.

        Args:
            now: Time of the newest message [ns]; ``END`` for the rows that remain.
        """
        self._distribute(END if now == END else now - NEAR_NS)
        until = END if now == END else now - NEAR_NS - LATE_NS
        while self._open:
            segment = self._open[0]
            over = until == END or (len(self._open) > 1 and self._resets[segment.number][0] + LATE_NS < until)
            while n := segment.ready(END, 1) if over else segment.ready(until, ROWS):
                rows = segment.take(n, self._nearest)
                self._late += rows.late
                yield rows
            if not over:
                return
            self._open.popleft()

    def _open_segment(self, number: int) -> _Segment | None:
        """Return a segment that still accepts messages; None if it is finished."""
        while self.count <= number:
            self._open.append(_Segment(self.count))
            self.count += 1
        return next((segment for segment in self._open if segment.number == number), None)


class _Segment:
    """Messages between two resets that wait to become rows.

    Attributes:
        number: Number of the segment.
        shift: Stamp of t = 0 [ns]: the first stamp if stamps are wall-clock time, else 0.
        emitted: Stamp of the last row that was taken [ns]; None before the first one.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.shift = 0
        self._parts: dict[str, list[TopicMessages]] = {}
        self.emitted: int | None = None

    def add(self, topic: str, table: TopicMessages) -> None:
        """Add messages of a topic."""
        if topic == JOINT_STATES and self.emitted is None and topic not in self._parts:
            self.shift = int(table.stamp[0]) if table.stamp[0] > WALL_CLOCK_NS else 0
        self._parts.setdefault(topic, []).append(table)

    def _table(self, topic: str) -> TopicMessages:
        self._parts[topic] = [TopicMessages.joined(self._parts[topic])]
        return self._parts[topic][0]

    def ready(self, until: int, minimum: int) -> int:
        """Return the number of joint states for the next block; 0 if fewer than ``minimum`` arrived by ``until``.

        Joint states with the newest stamp wait, because the stamp may be repeated. Blocks do not depend on the sizes in
        which messages are added.
        """
        if sum(map(len, self._parts.get(JOINT_STATES, ()))) < max(1, minimum):
            return 0
        joints = self._table(JOINT_STATES)
        n = len(joints)
        if until != END:
            n = int(np.searchsorted(joints.arrived, until, side="right"))
            n = int(np.searchsorted(joints.stamp, joints.stamp[n - 1])) if n else 0
        if n < minimum:
            return 0
        return int(np.searchsorted(joints.stamp, joints.stamp[ROWS])) or n if n > ROWS else n

    def take(self, n: int, nearest: NearestStamps) -> AlignedRows:
        """Take the first ``n`` joint states, and the messages of other topics that belong to them."""
        joints = self._table(JOINT_STATES)
        end = int(joints.stamp[n]) if n < len(joints) else END
        rows = np.unique(joints.stamp[:n])
        late = 0
        taken = {}
        for topic in self._parts:
            if topic == JOINT_STATES:
                continue
            table = self._table(topic)
            window = None if table.held is None else nearest.window(topic, table.stamp, rows, table.held)
            if window is not None:
                if self.emitted is not None:
                    late += int((table.stamp <= self.emitted - window).sum())
                at, messages = nearest.assign(topic, table.stamp, rows)
                taken[topic] = replace(table.rows(messages), stamp=rows[at])
                # The next rows may be nearest to these messages, too.
                self._parts[topic] = [table.rows(table.stamp > rows[-1] - window)]
                continue
            if table.stamped:
                selected = table.stamp < end
                if self.emitted is not None:
                    late += int((table.stamp[selected] <= self.emitted).sum())
            else:
                selected = np.searchsorted(joints.arrived, table.arrived, side="right") <= n
            taken[topic], self._parts[topic] = table.rows(as_slice(selected)), [table.rows(~selected)]
        taken_joints = joints.rows(slice(0, n))
        before = self.emitted
        # A copy releases the memory of the rows that were taken.
        self._parts[JOINT_STATES] = [joints.rows(np.arange(n, len(joints)))]
        self.emitted = int(taken_joints.stamp[-1])
        return AlignedRows(self, before, taken_joints, taken, late)


class AlignedRows:
    """Joint states with unique stamps, and the messages that belong to them.

    Attributes:
        segment: Number of the segment.
        shift: Stamp of t = 0 [ns].
        before: Stamp of the previous row of the segment [ns]; None for the first one.
        joints: The joint states. stamp: their stamps [ns].
        late: Number of other messages that belong to earlier rows.
    """

    def __init__(
        self,
        segment: _Segment,
        before: int | None,
        joints: TopicMessages,
        tables: Mapping[str, TopicMessages],
        late: int,
    ) -> None:
        self.segment, self.shift, self.before = segment.number, segment.shift, before
        self._all = joints
        self._tables = tables
        self.late = late
        self.joints = joints.rows(np.append(np.diff(joints.stamp) != 0, True))
        self.stamp = self.joints.stamp

    def match(self, topic: str) -> tuple[Any, TopicMessages | None]:
        """Return the rows with messages of a topic, and the last message of each; None if there are none."""
        table = self._tables.get(topic)
        if table is None:
            return slice(0), None
        if np.array_equal(table.stamp, self.stamp):
            return slice(None), table
        _, newest = np.unique(table.stamp[::-1], return_index=True)
        table = table.rows(len(table) - 1 - newest)
        _, rows, entries = np.intersect1d(self.stamp, table.stamp, assume_unique=True, return_indices=True)
        return rows, table.rows(entries)

    def all_of(self, topic: str, width: int) -> Array:
        """Return the numbers (n, width) of all messages of a topic, sorted by stamp."""
        table = self._tables.get(topic)
        if table is None:
            return np.zeros((0, width))
        return table.values[LABELLED][np.argsort(table.stamp, kind="stable")]

    def unstamped(self, topic: str) -> tuple[Indices, TopicMessages | None]:
        """Return rows and messages of a topic without stamps, in order of reception; None if there are no messages.

        A message belongs to the row of the last joint states that arrived before it.
        """
        table = self._tables.get(topic)
        if table is None:
            return np.zeros(0, dtype=np.intp), None
        last = np.searchsorted(self._all.arrived, table.arrived, side="right") - 1
        valid = last >= 0
        return np.searchsorted(self.stamp, self._all.stamp[last[valid]]), table.rows(valid)

    def sent_after(self, topic: str) -> tuple[Integers, TopicMessages | None]:
        """Return rows and messages of a topic that is sent as an answer to joint states; None if there are none.

        A message belongs to the row of the last joint states that were sent before it, or to -1 if that is in earlier
        rows. The clock is that of :func:`comparable_times`.
        """
        table, joints = self._tables.get(topic), self._all
        if table is None or not len(table):
            return np.zeros(0, dtype=np.int64), None
        theirs, ours = comparable_times(table, joints)
        last = np.searchsorted(ours, theirs, side="right") - 1
        rows = np.where(last < 0, -1, np.searchsorted(self.stamp, joints.stamp[np.maximum(last, 0)]))
        return np.maximum.accumulate(rows), table

    def arrival(self, topic: str, k: int) -> int:
        """Return the time of reception of entry ``k`` of :meth:`unstamped` [ns]."""
        arrived_at = self._tables[topic].arrived
        return int(arrived_at[arrived_at >= self._all.arrived[0]][k])

    def time_of(self, topic: str, k: int, period: int | None) -> float:
        """Return the simulated time of entry ``k`` of :meth:`unstamped` [ns], which is the stamp of its row.

        If the rows after it are missing, the time is interpolated from the time of reception.
        """
        arrived, stamp = self._all.arrived, self._all.stamp
        arrived_at = self.arrival(topic, k)
        row = int(np.searchsorted(arrived, arrived_at, side="right")) - 1
        gap = int(stamp[row + 1] - stamp[row]) if row + 1 < len(stamp) else arrived_at - arrived[row] - NS_PER_S // 10
        if not period or gap <= 1.5 * period:
            return float(stamp[row])
        if row + 1 < len(stamp):
            return float(np.interp(arrived_at, arrived[row : row + 2], stamp[row : row + 2]))
        speed = (stamp[-1] - stamp[0]) / max(1, arrived[-1] - arrived[0])
        return float(stamp[row] + speed * (arrived_at - arrived[row]))


def as_slice(chosen: Flags) -> Any:
    """Convert a mask to a slice if it selects the first entries, which avoids a copy."""
    n = int(np.count_nonzero(chosen))
    return slice(0, n) if chosen[:n].all() else chosen
