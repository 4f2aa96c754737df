"""Read a bag of the simulator's topics into a :class:`bipedsim.recording.Recording`, aligned by message stamps.

A bag may cover hours, so it is read once, with about ten thousand rows in memory at a time.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import ProgressBar
from bipedsim.errors import ConfigError, RecordingError, warn_incomplete
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Flags, Indices, Integers
from bipedsim.plates import PlateGeometry, PlateSignals, from_json
from bipedsim.recording.bag.cdr import NS_PER_S
from bipedsim.recording.bag.mcap import Block
from bipedsim.recording.bag.messages import Decoder, diagnostic_values, text
from bipedsim.recording.bag.reader import Bag
from bipedsim.recording.bag.sole_poses import made_of, put_sole_poses
from bipedsim.recording.plan import PLANNED
from bipedsim.recording.recording import Recording, between, joined, nothing_between
from bipedsim.recording.schema import (
    ABOUT,
    CARRIERS,
    CLIPPED,
    COLUMNS,
    CONTACT_FIELDS,
    DIAGNOSTICS,
    FALLEN,
    FOOT,
    JOINT_STATES,
    LABELLED_TOPICS,
    OBJECT_COMPONENTS,
    OBJECTS,
    PLAN,
    PLATE_GEOMETRY,
    PLATE_SIGNALS,
    READOUTS,
    ROBOT_DESCRIPTION,
    RUN,
    STATISTICS,
    STOPPED,
    VERTEX_FORCES,
    WALL_CLOCK_NS,
    Column,
    columns_on,
    vertex_labels,
)

ROWS = 1 << 13
"""Rows per block; blocks differ where time stops, and at the end of a segment."""
LATE_NS = 10_000_000_000
"""Time for which a row waits for messages with its stamp, on the recorder's clock [ns]."""
HELD = 0.05
"""Maximum age of a plan without a new message [s]; messages are 10 ms apart."""
NEAR_NS = NS_PER_S
"""Maximum time between a reset of the joint states and the reset of another topic, on the recorder's clock [ns]."""
SHOWN = 50 << 20
"""Size of a bag above which the progress is shown [bytes]."""
MUCH = 1 << 30
"""Memory demand above which the reader reports it [bytes]."""
_END = 2**63 - 1
_LATEST = 9e9
"""Largest time of a run [s]; later times have no 64-bit stamp in nanoseconds."""
# Message field that contains the labelled numbers.
_LABELLED = "data"


def recording_from_bag(
    path: Path, segment: int = -1, start: float | None = None, stop: float | None = None
) -> Recording:
    """Read a bag directory or an .mcap file; each message on ``/joint_states`` gives one row.

    A message of another topic belongs to the row with the same stamp, to the nanosecond; values without a message are
    NaN. Soles, limits and sole poses come from the robot that the recorder stored in the bag, or from the robot name
    in ``/robot_description``.

    Args:
        path: The bag.
        segment: Index of the segment between two resets of time; negative values count from the end.
        start, stop: First and last time to keep [s]; None means no limit.

    Raises:
        RecordingError: The path is not a bag with joint states, has no row between these times, or has more rows than
            fit into memory. The message says what was found.

    Warns:
        IncompleteWarning: The bag is damaged or unfinished; ``notes`` contain the same text.
    """
    reader = BagRows(path)
    kept: deque[tuple[int, list[Recording], list[float]]] = deque(maxlen=-segment if segment < 0 else None)
    seconds = (np.inf if stop is None else stop) - (0.0 if start is None else start)
    memory_checked = False
    for number, block in reader:
        if segment < 0 or number == segment:
            if not kept or kept[-1][0] != number:
                kept.append((number, [], [float(block.t[0]), 0.0]))
            kept[-1][2][1] = float(block.t[-1])
            in_range = between(block.t, start, stop)
            if not memory_checked and in_range.any():
                memory_checked = True
                _check_memory(path, block, reader.expected_rows, seconds)
            if in_range.any():
                kept[-1][1].append(block if in_range.all() else block.rows(in_range))
    if not (kept and -reader.segments <= segment < reader.segments):
        raise RecordingError(f"no such one: time jumps back {reader.segments - 1} times", f"{path}: segment {segment}")
    _, parts, span = kept[0]
    if not parts:
        raise nothing_between(start, stop, str(path), *span)
    out = joined(parts)
    out.notes = reader.notes(segment)
    out.run = reader.run(segment)
    if segment == -1:
        # The counters restart at every reset, so only the last segment's statistics are valid.
        out.statistics = reader.statistics
    return out


def _check_memory(path: Path, block: Recording, rows: int, seconds: float) -> None:
    """Report the memory demand of a bag if it is large.

    Args:
        path: The bag.
        block: The first rows.
        rows: Number of rows in the bag.
        seconds: Maximum duration to keep.

    Raises:
        RecordingError: The demand exceeds the available memory.
    """
    rate = (len(block) - 1) / block.duration if block.duration > 0.0 else np.inf
    rows = int(min(rows, max(len(block), rate * seconds)))
    # The blocks and the joined recording are in memory at the same time, hence the factor 2.
    needed = 2 * rows * sum(getattr(block, name).nbytes for name in COLUMNS) // len(block)
    try:
        available = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
        free = int(available[1]) << 10 if available else needed
    except OSError:
        free = needed
    needs = f"all columns of {rows} rows take {needed / 1e9:.1f} GB of memory"
    if needed > free:
        raise RecordingError(f"{needs}, and {free / 1e9:.1f} GB are free: read a part, with --from and --to", path)
    if needed > MUCH:
        print(f"{path}: {needs}; --from and --to read a part of it", file=sys.stderr, flush=True)


@dataclass(eq=False)
class _TopicMessages:
    """Messages of a topic: times of reception [ns], stamps [ns] (0 without header), and numbers."""

    arrived: Integers
    stamp: Integers
    values: dict[str, Array]

    def __len__(self) -> int:
        return len(self.stamp)

    def rows(self, rows: Any) -> _TopicMessages:
        """Return some of the messages; a slice gives views."""
        return _TopicMessages(
            self.arrived[rows], self.stamp[rows], {name: value[rows] for name, value in self.values.items()}
        )

    @classmethod
    def joined(cls, parts: Sequence[_TopicMessages]) -> _TopicMessages:
        if len(parts) == 1:
            return parts[0]
        values = {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
        arrived, stamp = (np.concatenate([getattr(part, name) for part in parts]) for name in ("arrived", "stamp"))
        return cls(arrived, stamp, values)


class BagRows:
    """Iterate once over the rows of a bag, block by block.

    Yields (number of the segment, rows). A segment ends where time jumps back.

    Args:
        path: The bag.
        columns: Columns to read, all by default; other columns may stay empty.

    Attributes:
        segments: Number of segments so far.
    """

    def __init__(self, path: Path, columns: Collection[str] | None = None) -> None:
        self.path = path
        needed = None if columns is None else {*columns, *made_of(columns)}
        definitions = [column for column in COLUMNS.values() if needed is None or column.name in needed]
        self._columns = {"t", *(column.name for column in definitions)}
        self._carriers = tuple(
            topic for topic in CARRIERS if topic in {JOINT_STATES, *(column.topic for column in definitions)}
        )
        self.segments = 0
        self._bag = Bag(path)
        self._decoders: dict[str, Decoder | None] = {}
        self._timed: set[str] = set()
        # Messages per topic that no segment has claimed yet.
        self._waiting: dict[str, _TopicMessages] = {}
        self._counts: dict[str, int] = {}
        self._open_segments: deque[_Segment] = deque()
        self._last_stamp: dict[str, int] = {}
        self._resets: list[tuple[int, int]] = []
        self._now = 0
        self._late_count = 0
        self._rows = self._missing = self._end = 0
        self._period: int | None = None
        self._feet: list[str] = []
        self._robot: Robot | None = None
        self._robot_error = ""
        self._descriptions: list[bytes] = []
        # Number of decoded messages with unsuitable content, and the reason, by topic.
        self._unfit: Counter[str] = Counter()
        self._unfit_reason: dict[str, str] = {}
        # Geometry by name of the force plate, and the reason why a plate has none.
        self._plates: dict[str, PlateGeometry] = {}
        self._plate_errors: dict[str, str] = {}
        self._wants_plates = columns is None or "force_plates" in columns
        self._run_messages: list[dict[str, Any]] = []
        self._stops: list[_ControllerStop] = []
        self._run_errors: list[str] = []

    def notes(self, segment: int) -> tuple[str, ...]:
        """Return the remarks on a segment, once the bag has been read."""
        notes = [self._bag.recovered] if self._bag.recovered else []
        notes += self._losses()
        lost = {name: self._bag.custom_data.get(name, "0") for name in ("lost", "dropped")}
        if set(lost.values()) != {"0"}:
            counts = " and ".join(f"{count} {name}" for name, count in lost.items())
            notes.append(f"the recorder counted messages that are not in the bag, over all topics: {counts}")
        if self.segments > 1:
            which_segment = "the last" if segment == -1 else f"stretch {segment}"
            notes.append(
                f"time jumps back {self.segments - 1} times (reset); this is {which_segment} of {self.segments}"
            )
        if self._robot is None:
            notes.append(f"soles, limits and weight are unknown: {self._robot_error}")
        return tuple(notes)

    def run(self, segment: int) -> dict[str, Any]:
        """Return the data for simulating a segment again, once the bag has been read; {} if the bag lacks them."""
        starts = [
            i
            for i, message in enumerate(self._run_messages)
            if not {"push", "gantry_action", STATISTICS} & message.keys()
        ]
        # A reset before the first row starts no segment, so the segments are counted from the end.
        back = self.segments - segment if segment >= 0 else -segment
        if back > len(starts) or self._run_errors:
            return {}
        first, last = starts[-back], [*starts, len(self._run_messages)][len(starts) - back + 1]
        pushes, actions = (
            [message[kind] for message in self._run_messages[first + 1 : last] if kind in message]
            for kind in ("push", "gantry_action")
        )
        return {**self._run_messages[first], "pushes": pushes, **({"gantry_actions": actions} if actions else {})}

    @property
    def expected_rows(self) -> int:
        """Number of rows according to the writer; 0 if unknown."""
        return self._bag.expected(JOINT_STATES)

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        """Counters of the simulator, once the bag has been read; None if they should be there and are not."""
        statistics = [message[STATISTICS] for message in self._run_messages if STATISTICS in message]
        return statistics[-1] if statistics else None if self._run_messages else {}

    def _losses(self) -> list[str]:
        """Return descriptions of the data that were read and could not be used."""
        losses = [
            f"{topic}: {decoder.failed} of {self._counts[topic]} messages left out: {decoder.error}"
            for topic, decoder in self._decoders.items()
            if decoder is not None and decoder.failed
        ]
        losses += [
            f"{topic}: {decoder.strangers} of {self._counts[topic]} messages left out: they name {decoder.strange}, "
            f"and the first one {', '.join(decoder.labels or ())}"
            for topic, decoder in self._decoders.items()
            if decoder is not None and decoder.strangers
        ]
        losses += [
            f"{topic}: {n} of {self._counts[topic]} messages left out: {self._unfit_reason[topic]}"
            for topic, n in self._unfit.items()
        ]
        losses += self._run_errors[:1]
        losses += self._plate_errors.values()
        if self._late_count:
            seconds = LATE_NS * 1e-9
            losses.append(
                f"{self._late_count} messages arrived more than {seconds:g} s after their row, and are left out"
            )
        if self._missing:
            total = self._rows + self._missing
            losses.append(f"{self._missing} of {total} rows are missing, by the stamps of the others")
        return losses

    def __iter__(self) -> Iterator[tuple[int, Recording]]:
        bag = self._bag
        hidden = bag.size < SHOWN
        with ProgressBar(total=bag.size, desc="reading", unit="byte", unit_scale=True, disable=hidden) as bar:
            for block in bag.blocks():
                for topic, part in block.items():
                    self._decode(topic, part)
                end = self._now = max(self._now, *(int(part.log_time.max()) for part in block.values()))
                self._distribute(end - NEAR_NS)
                yield from self._ready_blocks(end - NEAR_NS - LATE_NS, ROWS)
                bar.update(bag.position - bar.n)
        if JOINT_STATES not in self._waiting:
            topics = ", ".join(f"{name} ({n})" for name, n in sorted(self._counts.items())) or "no topics"
            decoder = self._decoders.get(JOINT_STATES)
            problem = decoder.error if decoder else f"no messages; found {topics}"
            raise RecordingError(problem, f"{self.path}: {JOINT_STATES}")
        self._distribute(_END)
        yield from self._ready_blocks(_END, 0)
        if self.statistics and self._period:
            # The statistics are those of the last segment.
            end = round((self.statistics.get("duration_s") or 0.0) * 1e9)
            self._missing += max(0, round((end - self._end) / self._period))
        for loss in self._losses():
            warn_incomplete(f"{self.path}: {loss}")

    def _decode(self, topic: str, block: Block) -> None:
        """Decode the messages of a topic that belongs into a recording, and store them until their row is complete."""
        # The recorder's wall clock may be set back.
        arrived = np.maximum.accumulate(np.maximum(block.log_time, self._now))
        if topic == ROBOT_DESCRIPTION:
            self._descriptions += [message.data for message in block.messages()]
        elif topic == RUN:
            self._read_run(block)
        elif topic == DIAGNOSTICS:
            self._stops += _stops_in(block, arrived)
        elif self._wants_plates and (name := _name_in(topic, PLATE_GEOMETRY)):
            self._learn_plate(name, topic, block)
        self._counts[topic] = self._counts.get(topic, 0) + len(block.start)
        if topic not in self._decoders:
            self._decoders[topic] = self._decoder_of(topic)
        decoder = self._decoders[topic]
        if decoder is None:
            return
        table, sound = decoder.take(block.data, block.start, block.size)
        stamp = table.stamp
        if _LABELLED in table.values and topic in self._timed:
            t = table.values[_LABELLED][:, 0] if table.values[_LABELLED].shape[1] else np.full(len(stamp), np.nan)
            # The time is NaN if the labels differ; the decoder counts these messages.
            timed = np.abs(t) < _LATEST
            self._count_unfit(topic, int((sound & ~timed & ~np.isnan(t)).sum()), "their time stamp is invalid")
            sound &= timed
            stamp = np.rint(np.where(sound, t, 0.0) * 1e9).astype(np.int64)
        new = _TopicMessages(arrived, stamp, table.values).rows(_as_slice(sound))
        if len(new):
            self._waiting[topic] = _TopicMessages.joined(
                [self._waiting[topic], new] if topic in self._waiting else [new]
            )

    def _read_run(self, block: Block) -> None:
        """Store the settings of the run, its events and its statistics."""
        for message in block.messages():
            try:
                self._run_messages.append(_run_message(message.data))
            except RecordingError as error:
                self._run_errors.append(f"{RUN}: a message is unreadable ({error}): the run cannot be simulated again")

    def _decoder_of(self, topic: str) -> Decoder | None:
        """Return a decoder for a topic that belongs into a recording; None for others.

        Raises:
            RecordingError: The topic has another type than in a recording.
        """
        kind = self._bag.types.get(topic, "")
        foot = FOOT.match(topic)
        general = topic.replace(f"/{foot[foot.lastindex or 0]}_", "/{foot}_", 1) if foot else topic
        if _name_in(topic, VERTEX_FORCES):
            general = VERTEX_FORCES
        samples = bool(_name_in(topic, PLATE_SIGNALS)) and self._wants_plates
        recorded = (*self._carriers, FALLEN, PLAN, VERTEX_FORCES)
        if not (general in recorded or samples or _is_readout(topic, kind) or _is_object(topic, kind)):
            return None
        if general in (*LABELLED_TOPICS, PLAN, VERTEX_FORCES) or samples:
            self._timed.add(topic)
        try:
            return Decoder(
                kind, {column.field for column in columns_on(general) if column.name in self._columns} or None
            )
        except RecordingError as error:
            raise error.within(f"{self.path}: {topic}") from error

    def _count_unfit(self, topic: str, n: int, why: str) -> None:
        """Count decoded messages that cannot be used."""
        if n:
            self._unfit[topic] += n
            self._unfit_reason[topic] = why

    def _distribute(self, until: int) -> None:
        """Assign messages to segments if they arrived before ``until`` and before any reset that is too recent."""
        joints = self._waiting.get(JOINT_STATES)
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
            starts = self._segment_starts(topic, ready)
            for k, (first, last) in enumerate(zip([0, *starts], [*starts, n], strict=True)):
                if first == last:
                    continue
                segment = self._open_segment(k)
                if segment is None:
                    self._late_count += int(last - first)
                else:
                    segment.add(topic, ready.rows(slice(first, last)))
            self._last_stamp[topic] = int(ready.stamp[-1])

    def _segment_starts(self, topic: str, table: _TopicMessages) -> Integers:
        """Return the index of the first message of the segment after each reset.

        Joint states define the resets. Another topic may reset slightly earlier or later. Its reset is where its own
        stamps jump back by more than half as much, or else at the same time of reception. Other backward jumps of
        stamps are unordered messages, not resets.
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
            if distance <= NEAR_NS and jump_back[i] > max(largest[k], resets[k, 1] // 2):
                largest[k], starts[k] = jump_back[i], i
        return np.asarray(np.maximum.accumulate(starts))

    def _ready_blocks(self, until: int, minimum: int) -> Iterator[tuple[int, Recording]]:
        """Yield blocks of at least ``minimum`` rows whose messages have arrived; all rows of a finished segment."""
        while self._open_segments:
            segment = self._open_segments[0]
            over = until == _END or (len(self._open_segments) > 1 and self._resets[segment.number][0] + LATE_NS < until)
            while n := segment.ready(_END, 1) if over else segment.ready(until, minimum):
                yield segment.number, self._build(segment, n)
            if not over:
                return
            self._open_segments.popleft()

    def _build(self, segment: _Segment, n: int) -> Recording:
        """Return ``n`` rows of joint states with the matching messages of all other topics."""
        if self._robot is None and not self._robot_error:
            self._robot, self._robot_error = self._find_robot()
            self._feet = self._find_feet()
        decoder = self._decoders[JOINT_STATES]
        assert decoder is not None
        assert decoder.labels is not None
        before = segment.emitted
        rows = segment.take(n)
        self._count_rows(rows, before)
        out = Recording.empty(len(rows.stamp), decoder.labels, self._feet, columns=self._columns)
        out.t[:] = (rows.stamp - segment.shift) * 1e-9
        self._put_columns(out, rows)
        # Columns that are not requested are read-only.
        if self._bag.custom_data.get("ft_sign") == "-1" and out.ankle_wrench.flags.writeable:
            np.negative(out.ankle_wrench, out=out.ankle_wrench)
        self._put_other_topics(out, rows)
        if self._wants_plates:
            out.force_plates = self._plate_samples(rows, segment.shift)
        self._put_stop(out, rows, segment.shift)
        self._late_count += rows.late
        out.robot = self._bag.custom_data.get("robot", "")
        out.about = self._about()
        if self._robot is not None:
            out.about = {"robot": out.robot or self._robot.name, **out.about}
            out.describe_robot(self._robot)
            if out.sole_poses.flags.writeable:
                put_sole_poses(out, self._robot)
        return out

    def _put_columns(self, out: Recording, rows: _AlignedRows) -> None:
        """Copy the columns of the schema from the messages of their topics."""
        for topic in self._carriers:
            for k, foot in enumerate(self._feet) if "{foot}" in topic else ((None, ""),):
                name = topic.format(foot=foot)
                at, table = (slice(None), rows.joints) if topic == JOINT_STATES else rows.match(name)
                decoder = self._decoders.get(name)
                if table is None or decoder is None:
                    continue
                for column in columns_on(topic):
                    if column.name not in self._columns:
                        continue
                    target = getattr(out, column.name)
                    target = target if k is None else target[:, k]
                    unfit = _put_column(target, at, table, decoder.labels or (), column, out.joint_names)
                    self._count_unfit(name, unfit, f"{column.name} is no {target.dtype} in them")

    def _put_other_topics(self, out: Recording, rows: _AlignedRows) -> None:
        """Copy readouts, vertex forces, the plan and object states."""
        for topic, kind in sorted(self._bag.types.items()):
            if _is_readout(topic, kind):
                at, numbers = rows.unstamped(topic)
                signal = out.readouts[topic.removeprefix(READOUTS)] = np.full(len(out), np.nan)
                signal[at] = numbers
            elif foot := _name_in(topic, VERTEX_FORCES):
                self._put_vertex_forces(out, foot, topic, *rows.match(topic))
            elif topic == PLAN:
                self._put_plan(out, *rows.match(topic))
            elif _is_object(topic, kind):
                at, table = rows.match(topic)
                if table is not None:
                    states = np.full((len(out), len(OBJECT_COMPONENTS)), np.nan)
                    states[at, :7], states[at, 7:] = table.values["pose"], table.values["twist"]
                    out.objects[topic.removeprefix(OBJECTS)] = states

    def _put_stop(self, out: Recording, rows: _AlignedRows, shift: int) -> None:
        """Set time and reason of the controller's stop, if any; ``shift`` is the stamp of t = 0 [ns]."""
        _, fallen = rows.unstamped(FALLEN)
        if not fallen.any():
            return
        first = int(np.argmax(fallen))
        at, arrived = rows.time_of(FALLEN, first, self._period), rows.arrival(FALLEN, first)
        # The previous stop is repeated once a second, and a controller that was reset may stop again at once.
        nearby = [stop for stop in self._stops if abs(stop.arrived - arrived) <= NEAR_NS]
        if nearby:
            stop = min(nearby, key=lambda stop: abs(stop.at - at))
            row = int(rows.stamp[np.argmin(np.abs(rows.stamp - stop.at))])
            # A wall-clock time in seconds is not exact to the nanosecond; the stamp of the row is.
            at = row if abs(row - stop.at) < 1000 else stop.at
            out.gave_up_why, out.gave_up_kind = stop.why, stop.kind
        out.gave_up_at = (at - shift) * 1e-9

    def _put_vertex_forces(self, out: Recording, foot: str, topic: str, at: Any, table: _TopicMessages | None) -> None:
        """Add the vertex forces of a foot; ``at`` contains the rows of the messages."""
        decoder = self._decoders.get(topic)
        if table is None or decoder is None or decoder.labels is None:
            return
        sole = (
            None
            if self._robot is None
            else next((candidate for candidate in self._robot.soles if candidate.name == foot), None)
        )
        n = (len(decoder.labels) - 1) // 3 if sole is None else sole.n_vertices
        expected_labels = vertex_labels(n)
        if decoder.labels != expected_labels or table.values[_LABELLED].shape[1] != len(expected_labels):
            why = f"they name {', '.join(decoder.labels) or 'nothing'}, and not {', '.join(expected_labels)}"
            self._unfit[topic] = self._counts[topic] - decoder.failed - decoder.strangers
            self._unfit_reason[topic] = why
            return
        forces = np.full((len(out), n, 3), np.nan)
        forces[at] = table.values[_LABELLED][:, 1:].reshape(len(table), n, 3)
        out.vertex_forces[foot] = forces

    def _put_plan(self, out: Recording, at: Any, table: _TopicMessages | None) -> None:
        """Add the controller's plan to the readouts; ``at`` contains the rows of the messages.

        A plan is valid until the next message, as in the controller, and at most ``HELD``.
        """
        decoder = self._decoders.get(PLAN)
        if table is None or decoder is None or not len(table):
            return
        message_rows = np.arange(len(out))[at]
        newest = np.searchsorted(message_rows, np.arange(len(out)), side="right") - 1
        known = (newest >= 0) & (out.t - out.t[message_rows[newest]] < HELD - 1e-6)
        for name, numbers in zip(decoder.labels or (), table.values[_LABELLED].T, strict=False):
            if name.startswith(PLANNED):
                out.readouts[name] = np.where(known, numbers[newest], np.nan)

    def _learn_plate(self, name: str, topic: str, block: Block) -> None:
        """Store the geometry of a force plate."""
        for message in block.messages():
            try:
                self._plates[name] = from_json(_json_object(message.data))
            except (RecordingError, ConfigError) as error:
                self._count_unfit(topic, 1, str(error))

    def _plate_samples(self, rows: _AlignedRows, shift: int) -> dict[str, PlateSignals]:
        """Return the plate samples since the previous rows; ``shift`` is the stamp of t = 0 [ns]."""
        signals = {}
        for topic in sorted(self._bag.types):
            name, decoder = _name_in(topic, PLATE_SIGNALS), self._decoders.get(topic)
            if not name or decoder is None or decoder.labels is None:
                continue
            geometry = self._plates.get(name)
            if geometry is None or (*geometry.channel_names, CLIPPED) != decoder.labels[1:]:
                problem = "is not in the bag" if geometry is None else "names other channels"
                message = f"{PLATE_GEOMETRY.format(plate=name)} {problem}: the plate {name!r} is left out"
                self._plate_errors.setdefault(name, message)
                continue
            values = rows.all_of(topic, len(decoder.labels))
            if values.shape[1] != len(decoder.labels):
                problem = f"they hold {values.shape[1]} numbers, and name {len(decoder.labels)}"
                self._count_unfit(topic, len(values), problem)
                continue
            known = np.isfinite(values[:, -1])
            self._count_unfit(topic, int((~known).sum()), f"{CLIPPED} is no number in them")
            values = values[known]
            clipped = int(values[-1, -1]) if len(values) else 0
            signals[name] = PlateSignals(values[:, 0] - shift * 1e-9, geometry, values[:, 1:-1], clipped)
        return signals

    def _about(self) -> dict[str, str]:
        """Return the labels of the run that recorder and simulator have stored, for figures."""
        labels = {"controller": self._bag.custom_data.get("controller", "")}
        starts = [message for message in self._run_messages if "contact_model" in message]
        if starts:
            labels |= {**starts[-1].get(ABOUT, {}), "contact_model": starts[-1]["contact_model"]}
        return {name: text for name, text in labels.items() if text}

    def _count_rows(self, rows: _AlignedRows, before: int | None) -> None:
        """Count rows, and gaps in their stamps; ``before`` is the stamp of the previous row [ns]."""
        gaps = np.diff(rows.stamp if before is None else np.append(before, rows.stamp))
        if self._period is None and len(gaps):
            periods = [message["control_dt"] for message in self._run_messages if "control_dt" in message]
            self._period = round(periods[-1] * 1e9) if periods else int(np.median(gaps))
        if self._period:
            self._missing += int(np.maximum(np.rint(gaps / self._period) - 1, 0).sum())
        self._rows += len(rows.stamp)
        self._end = int(rows.stamp[-1])

    def _find_feet(self) -> list[str]:
        """Return the feet that have topics, in the order of the recorder if it stored one."""
        feet = {m[m.lastindex or 0]: None for topic in sorted(self._bag.types) if (m := FOOT.match(topic))}
        named = [foot for foot in self._bag.custom_data.get("feet", "").split(",") if foot in feet]
        return list(dict.fromkeys([*named, *feet]))

    def _find_robot(self) -> tuple[Robot | None, str]:
        """Return the robot of the bag, or None and the reason why it is unknown."""
        name = self._bag.custom_data.get("robot", "")
        why = "the bag does not name its robot"
        for description in reversed(self._descriptions):
            if name:
                break
            try:
                name = ElementTree.fromstring(text(description)).get("name", "")
            except (ElementTree.ParseError, RecordingError) as error:
                why = f"{ROBOT_DESCRIPTION} is not valid XML ({error})"
        if not name:
            return None, why
        try:
            return load_robot(name), ""
        except ConfigError as error:
            return None, str(error)

    def _open_segment(self, number: int) -> _Segment | None:
        """Return a segment that still accepts messages; None if it is finished."""
        while self.segments <= number:
            self._open_segments.append(_Segment(self.segments))
            self.segments += 1
        return next((segment for segment in self._open_segments if segment.number == number), None)


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
        self._parts: dict[str, list[_TopicMessages]] = {}
        self.emitted: int | None = None

    def add(self, topic: str, table: _TopicMessages) -> None:
        """Add messages of a topic."""
        if topic == JOINT_STATES and self.emitted is None and topic not in self._parts:
            self.shift = int(table.stamp[0]) if table.stamp[0] > WALL_CLOCK_NS else 0
        self._parts.setdefault(topic, []).append(table)

    def _table(self, topic: str) -> _TopicMessages:
        self._parts[topic] = [_TopicMessages.joined(self._parts[topic])]
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
        if until != _END:
            n = int(np.searchsorted(joints.arrived, until, side="right"))
            n = int(np.searchsorted(joints.stamp, joints.stamp[n - 1])) if n else 0
        if n < minimum:
            return 0
        return int(np.searchsorted(joints.stamp, joints.stamp[ROWS])) or n if n > ROWS else n

    def take(self, n: int) -> _AlignedRows:
        """Take the first ``n`` joint states, and the messages of other topics that belong to them."""
        joints = self._table(JOINT_STATES)
        end = int(joints.stamp[n]) if n < len(joints) else _END
        late = 0
        taken = {}
        for topic in self._parts:
            if topic == JOINT_STATES:
                continue
            table = self._table(topic)
            if topic != FALLEN and not topic.startswith(READOUTS):
                selected = table.stamp < end
                if self.emitted is not None:
                    late += int((table.stamp[selected] <= self.emitted).sum())
            else:
                selected = np.searchsorted(joints.arrived, table.arrived, side="right") <= n
            taken[topic], self._parts[topic] = table.rows(_as_slice(selected)), [table.rows(~selected)]
        taken_joints = joints.rows(slice(0, n))
        # A copy releases the memory of the rows that were taken.
        self._parts[JOINT_STATES] = [joints.rows(np.arange(n, len(joints)))]
        self.emitted = int(taken_joints.stamp[-1])
        return _AlignedRows(taken_joints, taken, late)


class _AlignedRows:
    """Joint states with unique stamps, and the messages that belong to them."""

    def __init__(self, joints: _TopicMessages, tables: Mapping[str, _TopicMessages], late: int) -> None:
        self._all = joints
        self._tables = tables
        self.late = late
        self.joints = joints.rows(np.append(np.diff(joints.stamp) != 0, True))
        self.stamp = self.joints.stamp

    def match(self, topic: str) -> tuple[Any, _TopicMessages | None]:
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
        return table.values[_LABELLED][np.argsort(table.stamp, kind="stable")]

    def unstamped(self, topic: str) -> tuple[Indices, Array]:
        """Return (rows, numbers) of a topic without stamps, in order of reception.

        A message belongs to the row of the last joint states that arrived before it.
        """
        table = self._tables.get(topic)
        if table is None:
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        last = np.searchsorted(self._all.arrived, table.arrived, side="right") - 1
        valid = last >= 0
        return np.searchsorted(self.stamp, self._all.stamp[last[valid]]), table.values[_LABELLED][valid, 0]

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
        gap = int(stamp[row + 1] - stamp[row]) if row + 1 < len(stamp) else arrived_at - arrived[row] - NEAR_NS // 10
        if not period or gap <= 1.5 * period:
            return float(stamp[row])
        if row + 1 < len(stamp):
            return float(np.interp(arrived_at, arrived[row : row + 2], stamp[row : row + 2]))
        speed = (stamp[-1] - stamp[0]) / max(1, arrived[-1] - arrived[0])
        return float(stamp[row] + speed * (arrived_at - arrived[row]))


@dataclass(frozen=True)
class _ControllerStop:
    """Report of a controller's stop.

    Attributes:
        arrived: Time of reception [ns].
        at: Stamp of the unanswered measurements [ns].
        why, kind: The reason, and its kind; None in older bags.
    """

    arrived: int
    at: int
    why: str
    kind: str | None


def _stops_in(block: Block, arrived: Integers) -> Iterator[_ControllerStop]:
    """Yield the controller stops in messages on /diagnostics; messages of other programs are ignored."""
    key_at, key_why, key_kind = STOPPED
    for at, message in zip(arrived.tolist(), block.messages(), strict=True):
        if key_at.encode() in message.data:
            with suppress(RecordingError, ValueError, OverflowError, KeyError):
                values = diagnostic_values(message.data)
                t = float(values[key_at])
                if abs(t) < _LATEST:
                    yield _ControllerStop(at, round(t * 1e9), values[key_why], values.get(key_kind) or None)


def _json_object(message: bytes) -> dict[str, Any]:
    """Return the JSON object in a std_msgs/String.

    Raises:
        RecordingError: The string is not a JSON object.
    """
    try:
        content = json.loads(text(message))
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"it is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise RecordingError(f"it is not a JSON object but {type(content).__name__}")
    return content


def _run_message(message: bytes) -> dict[str, Any]:
    """Return the content of a message on the topic ``RUN``.

    Raises:
        RecordingError: A value that the reader needs has another type.
    """
    content = _json_object(message)
    period, statistics = content.get("control_dt", 1.0), content.get(STATISTICS, {})
    about = content.get(ABOUT, {})
    valid = {
        "control_dt": isinstance(period, (int, float)) and 0.0 < period < _LATEST,
        "contact_model": isinstance(content.get("contact_model", ""), str),
        ABOUT: isinstance(about, dict) and all(isinstance(text, str) for text in about.values()),
        STATISTICS: isinstance(statistics, dict)
        and isinstance(duration := statistics.get("duration_s") or 0.0, (int, float))
        and abs(duration) < _LATEST,
    }
    invalid = [name for name, is_valid in valid.items() if not is_valid]
    if invalid:
        raise RecordingError(f"{invalid[0]} = {content[invalid[0]]!r}")
    return content


def _as_slice(chosen: Flags) -> Any:
    """Convert a mask to a slice if it selects the first entries, which avoids a copy."""
    n = int(np.count_nonzero(chosen))
    return slice(0, n) if chosen[:n].all() else chosen


def _is_readout(topic: str, kind: str) -> bool:
    return topic.startswith(READOUTS) and kind == "std_msgs/msg/Float64"


def _is_object(topic: str, kind: str) -> bool:
    return topic.startswith(OBJECTS) and kind == "nav_msgs/msg/Odometry"


def _name_in(topic: str, pattern: str) -> str:
    """Return the name of the force plate or foot in a topic of this pattern; empty if the pattern does not match."""
    begin, _, rest = pattern.partition("{")
    end = rest.partition("}")[2]
    matches = topic.startswith(begin) and topic.endswith(end)
    return topic[len(begin) : len(topic) - len(end)] if matches else ""


def _put_column(
    target: NDArray[Any],
    rows: Any,
    table: _TopicMessages,
    labels: tuple[str, ...],
    column: Column,
    joints: Sequence[str],
) -> int:
    """Copy a column from messages to the rows of ``target`` that they belong to.

    Returns:
        Number of messages whose values do not fit the type of ``target``; their rows are unchanged.
    """
    values = table.values.get(column.field)
    unfit = np.zeros(len(table), dtype=np.bool_)
    if values is not None and column.field == _LABELLED:
        # Old bags have no labels.
        labels = (labels if len(labels) > 1 else CONTACT_FIELDS)[: values.shape[1]]
        at = {label: i for i, label in enumerate(labels)}
        parts: Any = [(target, ())]
        if column.per == "joint":
            parts = ((target[:, k], (joint,)) for k, joint in enumerate(joints))
        for part, owner in parts:
            column_labels = column.labels_of(owner)
            # A joint that is not in the message stays empty, such as one moved by a closed kinematic chain.
            if at.keys() >= set(column_labels):
                unfit |= _put_numbers(part, rows, values[:, [at[label] for label in column_labels]])
    elif values is not None and not (column.per == "joint" and values.shape[1] != np.prod(target.shape[1:])):
        unfit |= _put_numbers(target, rows, values[:, : int(np.prod(target.shape[1:]))])
    return int(unfit.sum())


def _put_numbers(target: NDArray[Any], rows: Any, numbers: Array) -> Flags:
    """Copy numbers (n, k) to rows of ``target``, converted to its type; return which (n,) do not fit the type."""
    shape, kind = (-1, *target.shape[1:]), target.dtype
    if kind.kind == "f":
        target[rows] = numbers.reshape(shape).astype(kind)
        return np.zeros(len(numbers), dtype=np.bool_)
    # Any number can be a boolean; all except 0 are True.
    lowest, highest = (-np.inf, np.inf) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    # All numbers are NaN if a message has other labels; the decoder counts these messages.
    absent = np.isnan(numbers).all(axis=1)
    unfit = np.asarray(~((lowest <= numbers) & (numbers <= highest)).all(axis=1))
    if not unfit.any():
        target[rows] = numbers.reshape(shape).astype(kind)
        return unfit
    fitting_rows = np.arange(len(target))[rows][~unfit]
    target[fitting_rows] = numbers[~unfit].reshape(shape).astype(kind)
    return np.asarray(unfit & ~absent)
