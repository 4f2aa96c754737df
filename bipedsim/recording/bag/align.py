"""Read a bag of the simulator's topics into a :class:`bipedsim.recording.Recording`, aligned by message stamps.

A bag may cover hours, so it is read once, with about ten thousand rows in memory at a time.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import ParameterChange, ProgressBar
from bipedsim.errors import ConfigError, RecordingError, either, warn_incomplete, warn_omitted
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Flags, Integers
from bipedsim.recording.bag.cdr import FIELDS, JOINT_STATE
from bipedsim.recording.bag.decoding import PlateTopics, TopicDecoders, is_object, is_readout, name_in
from bipedsim.recording.bag.mcap import Block
from bipedsim.recording.bag.messages import diagnostic_values, text
from bipedsim.recording.bag.reader import Bag
from bipedsim.recording.bag.run_messages import LATEST, RunMessages, json_object
from bipedsim.recording.bag.segments import END, LABELLED, NEAR_NS, AlignedRows, Segments, TopicMessages
from bipedsim.recording.bag.sent_commands import SentCommands
from bipedsim.recording.bag.sole_poses import put_sole_poses
from bipedsim.recording.bag.topic_names import ANY, described
from bipedsim.recording.plan import PLANNED
from bipedsim.recording.recording import Recording, between, joined, nothing_between
from bipedsim.recording.schema import (
    CHANGES,
    COLUMNS,
    CONTACT_FIELDS,
    DIAGNOSTICS,
    FALLEN,
    FOOT,
    JOINT_STATES,
    MEASURED,
    OBJECT_COMPONENTS,
    OBJECTS,
    PLAN,
    READOUTS,
    ROBOT_DESCRIPTION,
    RUN,
    STOPPED,
    VERTEX_FORCES,
    Column,
    columns_on,
    vertex_labels,
)

HELD = 0.05
"""Maximum age of a plan without a new message [s]; messages are 10 ms apart."""
SHOWN = 50 << 20
"""Size of a bag above which the progress is shown [bytes]."""
MUCH = 1 << 30
"""Memory demand above which the reader reports it [bytes]."""
_SENSORS = {
    kind for kind, fields in FIELDS.items() if any(column.field in fields for t in MEASURED for column in columns_on(t))
}
"""Message types of sensors."""
_NUMBERS = "std_msgs/msg/Float64MultiArray"
"""Message type of commands."""


def recording_from_bag(
    path: Path,
    segment: int = -1,
    start: float | None = None,
    stop: float | None = None,
    remap: Mapping[str, str] | None = None,
    robot: str = "",
) -> Recording:
    """Read a bag directory or an .mcap file; each message on ``/joint_states`` gives one row.

    A message of another topic belongs to the row with the same stamp, to the nanosecond; values without a message are
    NaN. For topics with other stamps see :class:`~bipedsim.recording.bag.nearest.NearestStamps`. Soles, limits and sole
    poses come from the robot that the recorder stored in the bag, or from the robot name in ``/robot_description``.

    Args:
        path: The bag.
        segment: Index of the segment between two resets of time; negative values count from the end.
        start, stop: First and last time to keep [s]; None means no limit.
        remap: See :class:`Bag`.
        robot: Name or robot.yaml of the robot, instead of the one in the bag.

    Raises:
        RecordingError: The path is not a bag with joint states, has no row between these times, has more rows than fit
            into memory. The message says what was found.
        ConfigError: ``remap`` does not fit the bag, or there is no such robot.

    Warns:
        IncompleteWarning: The bag is damaged or unfinished; ``notes`` contain the same text.
    """
    reader = BagRows(path, remap=remap, robot=robot)
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


class BagRows:
    """Iterate once over the rows of a bag, block by block.

    Yields (number of the segment, rows). A segment ends where time jumps back.

    Args:
        path: The bag.
        columns: Columns to read, all by default; other columns may stay empty.
        remap: See :class:`Bag`.
        robot: Name or robot.yaml of the robot, instead of the one in the bag.
    """

    def __init__(
        self,
        path: Path,
        columns: Collection[str] | None = None,
        remap: Mapping[str, str] | None = None,
        robot: str = "",
    ) -> None:
        self.path = path
        self._bag = Bag(path, remap)
        self._decoders = TopicDecoders(self._bag, columns)
        self._plates = PlateTopics(self._decoders)
        self._commands = SentCommands(self._decoders)
        self._run = RunMessages()
        self._segments = Segments()
        self._now = 0
        self._rows = self._missing = self._end = 0
        self._period: int | None = None
        self._feet: list[str] = []
        self._given, self._renamed = robot, bool(remap)
        self._robot: Robot | None = load_robot(robot) if robot else None
        self._robot_error = ""
        self._descriptions: list[bytes] = []
        self._stops: list[_ControllerStop] = []
        self._changes: list[tuple[int, ParameterChange]] = []

    @property
    def segments(self) -> int:
        """Number of segments so far."""
        return self._segments.count

    def notes(self, segment: int) -> tuple[str, ...]:
        """Return the remarks on a segment, once the bag has been read."""
        notes = [self._bag.recovered] if self._bag.recovered else []
        notes += [*self._losses(), *self._segments.notes()]
        notes += [f"{topic} has no columns: {why}" for topic, why in sorted(self._decoders.without_columns.items())]
        if error := self._decoders.sensors.error:
            notes.append(f"the names of additional sensors in the bag are not used, but those of their topics: {error}")
        lost = {name: self._bag.custom_data.get(name, "0") for name in ("lost", "dropped")}
        if set(lost.values()) != {"0"}:
            counts = " and ".join(f"{count} {name}" for name, count in lost.items())
            notes.append(f"the recorder counted messages that are not in the bag, over all topics: {counts}")
        if self.segments > 1:
            which_segment = "the last" if segment == -1 else f"stretch {segment}"
            notes.append(
                f"time jumps back {self.segments - 1} times (reset); this is {which_segment} of {self.segments}"
            )
        # Our own recorder stores the robot, whose order our controllers send, and takes only topics with known names.
        if self._given or self._renamed:
            notes += [*self._commands.notes, *self._unread()]
        if self._robot is None:
            notes.append(f"soles, limits and weight are unknown: {self._robot_error}")
        return tuple(notes)

    def run(self, segment: int) -> dict[str, Any]:
        """Return the data for simulating a segment again, once the bag has been read; {} if the bag lacks them."""
        return self._run.run(self.segments - segment if segment >= 0 else -segment)

    @property
    def expected_rows(self) -> int:
        """Number of rows according to the writer; 0 if unknown."""
        return self._bag.expected(JOINT_STATES)

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        """Counters of the simulator, once the bag has been read; None if they should be there and are not."""
        return self._run.statistics

    def _losses(self) -> list[str]:
        """Return descriptions of the data that were read and could not be used."""
        losses = [*self._decoders.losses(), *self._run.errors[:1], *self._plates.errors.values()]
        losses += self._segments.losses()
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
                    self._read(topic, part)
                end = self._now = max(self._now, *(int(part.log_time.max()) for part in block.values()))
                yield from self._blocks(end)
                bar.update(bag.position - bar.n)
        if JOINT_STATES not in self._segments:
            decoder = self._decoders.get(JOINT_STATES)
            problem = decoder.error if decoder else self._without_joint_states()
            raise RecordingError(problem, f"{self.path}: {JOINT_STATES}")
        yield from self._blocks(END)
        if self.statistics and self._period:
            # The statistics are those of the last segment.
            end = round((self.statistics.get("duration_s") or 0.0) * 1e9)
            self._missing += max(0, round((end - self._end) / self._period))
        for loss in self._losses():
            warn_incomplete(f"{self.path}: {loss}")
        for topic, why in sorted(self._decoders.without_columns.items()):
            warn_omitted(f"{self.path}: {topic} has no columns: {why}")

    def _unread(self) -> list[str]:
        """Return notes on sensors and commands whose topics have no known name, or that of an unknown foot."""
        topics = [
            described(topic, kind, self._decoders.counts[topic])
            for topic, kind in sorted(self._bag.types.items())
            if kind in (*_SENSORS, _NUMBERS) and self._decoders.get(topic) is None
        ]
        notes = [f"not read, because their names are unknown: {', '.join(topics)}"] if topics else []
        if self._robot is not None:
            feet = [sole.name for sole in self._robot.soles]
            others = sorted({*self._find_feet()} - {*feet})
            if others:
                has = f"{self._robot.name} has the feet {', '.join(feet)}"
                notes.append(f"topics of {', '.join(others)} are those of no foot: {has}")
        return notes

    def _without_joint_states(self) -> str:
        """Return what the bag has instead of joint states, and the command that reads it."""
        topics = sorted(self._decoders.counts.items())
        listed = [described(topic, self._bag.types[topic], count) for topic, count in topics]
        problem = f"no messages; found {', '.join(listed) or 'no topics'}"
        others = [topic for topic, _ in topics if self._bag.types[topic] == JOINT_STATE]
        if not others:
            return problem
        if self._renamed:
            return f"{problem}, after the renaming. In each pair, the name in the bag comes first"
        namespace = others[0].removesuffix(JOINT_STATES)
        entry = f"{others[0]}:={JOINT_STATES}" if namespace == others[0] else f"'{namespace}/{ANY}:=/{ANY}'"
        robot = f" --robot {quote(self._given)}" if self._given else ""
        command = f"bipedsim export {quote(str(self.path))}{robot} --remap {entry} -o run.npz"
        return f"{problem}. Sensors need further pairs (docs/other_bag.md). Read {either(others)} with: {command}"

    def _read(self, topic: str, block: Block) -> None:
        """Store the messages of a topic until their row is complete."""
        # The recorder's wall clock may be set back.
        arrived = np.maximum.accumulate(np.maximum(block.log_time, self._now))
        if topic == ROBOT_DESCRIPTION:
            self._descriptions += [message.data for message in block.messages()]
        elif topic == RUN:
            self._run.read(block)
        elif topic == DIAGNOSTICS:
            self._stops += _stops_in(block, arrived)
        elif topic in CHANGES:
            self._read_changes(topic, block, arrived)
        elif self._decoders.wants_plates:
            self._plates.learn(topic, block)
        messages = self._decoders.decode(topic, block, arrived)
        if messages is not None:
            self._segments.add(topic, messages)

    def _blocks(self, now: int) -> Iterator[tuple[int, Recording]]:
        for rows in self._segments.rows(now):
            yield rows.segment, self._build(rows)

    def _build(self, rows: AlignedRows) -> Recording:
        """Return rows of joint states with the matching messages of all other topics."""
        if not self._rows:
            self._feet = self._find_feet()
        if self._robot is None and not self._robot_error:
            self._robot, self._robot_error = self._find_robot()
        decoder = self._decoders.get(JOINT_STATES)
        assert decoder is not None
        assert decoder.labels is not None
        self._count_rows(rows)
        sensors = self._decoders.sensors
        out = Recording.empty(
            len(rows.stamp),
            decoder.labels,
            self._feet,
            columns=self._decoders.columns,
            imu_names=tuple(sensors.imus),
            switch_names=tuple(sensors.switches),
        )
        out.t[:] = (rows.stamp - rows.shift) * 1e-9
        self._put_columns(out, rows)
        sensors.put(out, rows)
        # Columns that are not requested are read-only.
        if self._bag.custom_data.get("ft_sign") == "-1" and out.ankle_wrench.flags.writeable:
            np.negative(out.ankle_wrench, out=out.ankle_wrench)
        # A simulator reports the commands that the drives received.
        if self._decoders.commands and not self._run.found:
            self._commands.put(out, rows, self._robot)
        self._put_other_topics(out, rows)
        if self._decoders.wants_plates:
            out.force_plates = self._plates.samples(rows)
        self._put_stop(out, rows)
        self._put_changes(out, rows)
        out.robot = self._bag.custom_data.get("robot", "")
        labels = {"controller": self._bag.custom_data.get("controller", ""), **self._run.labels}
        out.about = {name: label for name, label in labels.items() if label}
        if self._robot is not None:
            out.about = {"robot": out.robot or self._robot.name, **out.about}
            out.describe_robot(self._robot, self._given)
            if out.sole_poses.flags.writeable:
                put_sole_poses(out, self._robot)
        return out

    def _put_columns(self, out: Recording, rows: AlignedRows) -> None:
        """Copy the columns of the schema from the messages of their topics."""
        for topic in self._decoders.carriers:
            for k, foot in enumerate(self._feet) if "{foot}" in topic else ((None, ""),):
                name = topic.format(foot=foot)
                at, table = (slice(None), rows.joints) if topic == JOINT_STATES else rows.match(name)
                decoder = self._decoders.get(name)
                if table is None or decoder is None:
                    continue
                for column in columns_on(topic):
                    if column.name not in self._decoders.columns:
                        continue
                    target = getattr(out, column.name)
                    target = target if k is None else target[:, k]
                    unfit = _put_column(target, at, table, decoder.labels or (), column, out.joint_names)
                    self._decoders.count_unfit(name, unfit, f"{column.name} is no {target.dtype} in them")

    def _put_other_topics(self, out: Recording, rows: AlignedRows) -> None:
        """Copy readouts, vertex forces, the plan, object states, and topics of the user's own nodes."""
        for topic, kind in sorted(self._bag.types.items()):
            if is_readout(topic, kind):
                at, table = rows.unstamped(topic)
                signal = out.readouts[topic.removeprefix(READOUTS)] = np.full(len(out), np.nan)
                if table is not None:
                    signal[at] = table.values[LABELLED][:, 0]
            elif foot := name_in(topic, VERTEX_FORCES):
                self._put_vertex_forces(out, foot, topic, *rows.match(topic))
            elif topic == PLAN:
                self._put_plan(out, *rows.match(topic))
            elif is_object(topic, kind):
                at, table = rows.match(topic)
                if table is not None:
                    states = np.full((len(out), len(OBJECT_COMPONENTS)), np.nan)
                    states[at, :7], states[at, 7:] = table.values["pose"], table.values["twist"]
                    out.objects[topic.removeprefix(OBJECTS)] = states

        for topic, names_by_field in sorted(self._decoders.signals.items()):
            at, table = rows.unstamped(topic)
            if table is None:
                continue
            for field, names in names_by_field.items():
                for name, numbers in zip(names, table.values[field].T, strict=True):
                    signal = out.readouts[name] = np.full(len(out), np.nan)
                    signal[at] = numbers

    def _put_stop(self, out: Recording, rows: AlignedRows) -> None:
        """Set time and reason of the controller's stop, if any."""
        _, table = rows.unstamped(FALLEN)
        if table is None or not table.values[LABELLED].any():
            return
        first = int(np.argmax(table.values[LABELLED][:, 0]))
        at, arrived = rows.time_of(FALLEN, first, self._period), rows.arrival(FALLEN, first)
        # The previous stop is repeated once a second, and a controller that was reset may stop again at once.
        nearby = [stop for stop in self._stops if abs(stop.arrived - arrived) <= NEAR_NS]
        if nearby:
            stop = min(nearby, key=lambda stop: abs(stop.at - at))
            row = int(rows.stamp[np.argmin(np.abs(rows.stamp - stop.at))])
            # A wall-clock time in seconds is not exact to the nanosecond; the stamp of the row is.
            at = row if abs(row - stop.at) < 1000 else stop.at
            out.gave_up_why, out.gave_up_kind = stop.why, stop.kind
        out.gave_up_at = (at - rows.shift) * 1e-9

    def _read_changes(self, topic: str, block: Block, arrived: Integers) -> None:
        """Store changed parameters; their numbers in the list go to the segments."""
        taken = []
        for at, message in zip(arrived.tolist(), block.messages(), strict=True):
            try:
                entry = json_object(message.data)
                change = ParameterChange(0.0, str(entry["name"]), entry["value"], CHANGES[topic])
                self._changes.append((int(entry["stamp"]), change))
            except (RecordingError, KeyError, ValueError, TypeError) as error:
                self._decoders.count_unfit(topic, 1, str(error))
            else:
                taken.append((at, self._changes[-1][0], len(self._changes) - 1))
        if taken:
            times, stamps, numbers = np.array(taken, dtype=np.int64).T
            self._segments.add(
                topic, TopicMessages(times, times, stamps, {LABELLED: numbers[:, None].astype(np.float64)})
            )

    def _put_changes(self, out: Recording, rows: AlignedRows) -> None:
        """Add the changed parameters that belong to ``rows``."""
        numbers = [number for topic in CHANGES for number in rows.all_of(topic, 1)[:, 0].astype(int).tolist()]
        for stamp, change in sorted((self._changes[number] for number in numbers), key=lambda entry: entry[0]):
            out.changes = (*out.changes, replace(change, at=(stamp - rows.shift) * 1e-9))

    def _put_vertex_forces(self, out: Recording, foot: str, topic: str, at: Any, table: TopicMessages | None) -> None:
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
        if decoder.labels != expected_labels or table.values[LABELLED].shape[1] != len(expected_labels):
            why = f"they name {', '.join(decoder.labels) or 'nothing'}, and not {', '.join(expected_labels)}"
            self._decoders.refuse(topic, why)
            return
        forces = np.full((len(out), n, 3), np.nan)
        forces[at] = table.values[LABELLED][:, 1:].reshape(len(table), n, 3)
        out.vertex_forces[foot] = forces

    def _put_plan(self, out: Recording, at: Any, table: TopicMessages | None) -> None:
        """Add the controller's plan to the readouts; ``at`` contains the rows of the messages.

        A plan is valid until the next message, as in the controller, and at most ``HELD``.
        """
        decoder = self._decoders.get(PLAN)
        if table is None or decoder is None or not len(table):
            return
        message_rows = np.arange(len(out))[at]
        newest = np.searchsorted(message_rows, np.arange(len(out)), side="right") - 1
        known = (newest >= 0) & (out.t - out.t[message_rows[newest]] < HELD - 1e-6)
        for name, numbers in zip(decoder.labels or (), table.values[LABELLED].T, strict=False):
            if name.startswith(PLANNED):
                out.readouts[name] = np.where(known, numbers[newest], np.nan)

    def _count_rows(self, rows: AlignedRows) -> None:
        """Count rows, and gaps in their stamps."""
        gaps = np.diff(rows.stamp if rows.before is None else np.append(rows.before, rows.stamp))
        if self._period is None and len(gaps):
            self._period = self._run.period or int(np.median(gaps))
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
                if abs(t) < LATEST:
                    yield _ControllerStop(at, round(t * 1e9), values[key_why], values.get(key_kind) or None)


def _put_column(
    target: NDArray[Any],
    rows: Any,
    table: TopicMessages,
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
    if values is None:
        return 0
    if column.field == LABELLED:
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
    elif column.per != "joint" or (labels == tuple(joints) and values.shape[1] == len(labels)):
        unfit |= _put_numbers(target, rows, values[:, : int(np.prod(target.shape[1:]))])
    elif values.shape[1] == len(labels):
        # Joint states may lack velocities or efforts. The messages of another publisher have another order of joints.
        for k, joint in enumerate(joints):
            if joint in labels:
                unfit |= _put_numbers(target[:, k], rows, values[:, [labels.index(joint)]])
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
