"""A bag of the simulator's topics -> :class:`bipedsim.recording.Recording`, aligned by the stamps in the messages.

A bag may last for hours: it is read once, and what is at hand at a time are some ten thousand rows.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bipedsim.errors import ConfigError, RecordingError, warn_incomplete
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Flags, Indices, Integers
from bipedsim.plates import PlateGeometry, PlateSignals, from_json
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
"""Rows of a block; where time stands still, or at the end of a stretch, there may be others."""
LATE_NS = 10_000_000_000
"""How long a row waits for messages of its stamp, by the clock of the recorder."""
HELD = 0.05
"""How long a plan stands [s] at most without a message: they are 10 ms apart."""
NEAR_NS = 1_000_000_000
"""How far from a reset of the joint states a topic may be reset itself, likewise."""
SHOWN = 50 << 20
"""Bytes of a bag beyond which reading shows a bar on a terminal."""
MUCH = 1 << 30
"""Bytes of memory beyond which it is said how much is needed."""
_END = 2**63 - 1
_LATEST = 9e9
"""Bound of the times of a run [s]: what is beyond has no stamp in nanoseconds."""
# The field of messages whose numbers have labels.
_LABELLED = "data"


def recording_from_bag(
    path: Path, segment: int = -1, start: float | None = None, stop: float | None = None
) -> Recording:
    """Read a bag directory or an .mcap file; rows are the messages of ``/joint_states``.

    Every other topic is put into the row that has its stamp, to the nanosecond: what has no partner is NaN. The soles,
        limits and sole poses come from the robot that the recorder named in the bag, or from the robot name in
        ``/robot_description``.

    Args:
        path: The bag.
        segment: Which stretch between two jumps back of time, as an index of a list.
        start, stop: Rows before and behind these times [s] are not kept.

    Raises:
        RecordingError: No bag, or none with joint states, or nothing between these times, or more rows than there is
            memory for; the message says what was found.

    Warns:
        IncompleteWarning: The bag is damaged or was not finished; ``notes`` say the same.
    """
    reader = BagRows(path)
    kept: deque[tuple[int, list[Recording], list[float]]] = deque(maxlen=-segment if segment < 0 else None)
    seconds = (np.inf if stop is None else stop) - (0.0 if start is None else start)
    asked = False
    for number, block in reader:
        if segment < 0 or number == segment:
            if not kept or kept[-1][0] != number:
                kept.append((number, [], [float(block.t[0]), 0.0]))
            kept[-1][2][1] = float(block.t[-1])
            here = between(block.t, start, stop)
            if not asked and here.any():
                asked = True
                _ask_for_memory(path, block, reader.expected_rows, seconds)
            if here.any():
                kept[-1][1].append(block if here.all() else block.rows(here))
    if not (kept and -reader.stretches <= segment < reader.stretches):
        raise RecordingError(f"{path}: has no stretch {segment}: time jumps back {reader.stretches - 1} times")
    _, parts, span = kept[0]
    if not parts:
        raise nothing_between(start, stop, str(path), *span)
    out = joined(parts)
    out.notes = reader.notes(segment)
    out.run = reader.run(segment)
    if segment == -1:
        # It counts since the last reset.
        out.statistics = reader.statistics
    return out


def _ask_for_memory(path: Path, block: Recording, rows: int, seconds: float) -> None:
    """Say how much memory the rows of a bag take, where it is much; ``block`` is the first of them.

    Args:
        path: The bag.
        block: Some of the rows.
        rows: How many the bag has.
        seconds: At most so much of it is held.

    Raises:
        RecordingError: There is not so much.
    """
    rate = (len(block) - 1) / block.duration if block.duration > 0.0 else np.inf
    rows = int(min(rows, max(len(block), rate * seconds)))
    # Twice, when they are joined.
    needed = 2 * rows * sum(getattr(block, name).nbytes for name in COLUMNS) // len(block)
    try:
        known = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
        free = int(known[1]) << 10 if known else needed
    except OSError:
        free = needed
    said = f"{path}: all columns of {rows} rows take {needed / 1e9:.1f} GB of memory"
    if needed > free:
        raise RecordingError(f"{said}, and {free / 1e9:.1f} GB are free: read a part of it, with --from and --to")
    if needed > MUCH:
        print(f"{said}; --from and --to read a part of it", file=sys.stderr, flush=True)


@dataclass(eq=False)
class _Table:
    """Messages of a topic: when they arrived [ns], their stamps [ns], zeros where they have none, and their numbers."""

    arrived: Integers
    stamp: Integers
    values: dict[str, Array]

    def __len__(self) -> int:
        return len(self.stamp)

    def rows(self, rows: Any) -> _Table:
        """Return some of the messages; a slice is not copied."""
        return _Table(self.arrived[rows], self.stamp[rows], {name: value[rows] for name, value in self.values.items()})

    @classmethod
    def joined(cls, parts: Sequence[_Table]) -> _Table:
        if len(parts) == 1:
            return parts[0]
        values = {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
        arrived, stamp = (np.concatenate([getattr(part, name) for part in parts]) for name in ("arrived", "stamp"))
        return cls(arrived, stamp, values)


class BagRows:
    """The rows of a bag, block by block: iterate once.

    Yields (number of the stretch, rows of it); a stretch ends where time jumps back.

    Args:
        path: The bag.
        columns: Which columns are wanted; the others may stay empty. All by default.
        grows: Whether the bag is still being written, so that more is waited for; None: it is not.

    Attributes:
        stretches: How many there were so far.
    """

    def __init__(
        self, path: Path, columns: Collection[str] | None = None, grows: Callable[[], bool] | None = None
    ) -> None:
        self.path = path
        self._grows = grows
        wanted = None if columns is None else {*columns, *made_of(columns)}
        rows = [column for column in COLUMNS.values() if wanted is None or column.name in wanted]
        self._columns = {"t", *(row.name for row in rows)}
        self._carriers = tuple(topic for topic in CARRIERS if topic in {JOINT_STATES, *(row.topic for row in rows)})
        self.stretches = 0
        self._bag = Bag(path)
        self._decoders: dict[str, Decoder | None] = {}
        self._timed: set[str] = set()
        # What no stretch has taken yet, by topic.
        self._waiting: dict[str, _Table] = {}
        self._counts: dict[str, int] = {}
        self._open: deque[_Stretch] = deque()
        self._last: dict[str, tuple[int, int]] = {}
        self._resets: list[tuple[int, int]] = []
        self._now = 0
        self._late = 0
        self._rows = self._missing = self._end = 0
        self._period: int | None = None
        self._feet: list[str] = []
        self._robot: Robot | None = None
        self._unknown = ""
        self._descriptions: list[bytes] = []
        # Messages that were decoded and do not fit what they are about, by topic, and why.
        self._unfit: Counter[str] = Counter()
        self._why_unfit: dict[str, str] = {}
        # Of the force plates, by name; and why one has none.
        self._plates: dict[str, PlateGeometry] = {}
        self._no_plates: dict[str, str] = {}
        self._wants_plates = columns is None or "force_plates" in columns
        self._said: list[dict[str, Any]] = []
        self._stops: list[_Stop] = []
        self._unsaid: list[str] = []

    def notes(self, segment: int) -> tuple[str, ...]:
        """Return what a reader should know of a stretch, once the bag has been read."""
        notes = [self._bag.recovered] if self._bag.recovered else []
        notes += self._losses()
        lost = {name: self._bag.custom_data.get(name, "0") for name in ("lost", "dropped")}
        if set(lost.values()) != {"0"}:
            said = " and ".join(f"{count} {name}" for name, count in lost.items())
            notes.append(f"the recorder counted messages that are not in the bag, of all topics: {said}")
        if self.stretches > 1:
            which = "the last" if segment == -1 else f"stretch {segment}"
            notes.append(f"time jumps back {self.stretches - 1} times (reset); this is {which} of {self.stretches}")
        if self._robot is None:
            notes.append(f"soles, limits and weight are unknown: {self._unknown}")
        return tuple(notes)

    def run(self, segment: int) -> dict[str, Any]:
        """Return what it takes to simulate a stretch again, once the bag has been read; {} where the bag has it not."""
        begins = [i for i, said in enumerate(self._said) if not {"push", "gantry_action", STATISTICS} & said.keys()]
        # What was reset before time began is no stretch: the last ones are those of the last stretches.
        back = self.stretches - segment if segment >= 0 else -segment
        if back > len(begins) or self._unsaid:
            return {}
        first, last = begins[-back], [*begins, len(self._said)][len(begins) - back + 1]
        pushes, actions = (
            [said[kind] for said in self._said[first + 1 : last] if kind in said] for kind in ("push", "gantry_action")
        )
        return {**self._said[first], "pushes": pushes, **({"gantry_actions": actions} if actions else {})}

    @property
    def expected_rows(self) -> int:
        """How many rows there should be; 0 where the bag does not say."""
        return self._bag.expected(JOINT_STATES)

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        """What the simulator counted, once the bag has been read; None if it should be there and is not."""
        found = [said[STATISTICS] for said in self._said if STATISTICS in said]
        return found[-1] if found else None if self._said else {}

    def _losses(self) -> list[str]:
        """Return what was read and could not be used."""
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
            f"{topic}: {n} of {self._counts[topic]} messages left out: {self._why_unfit[topic]}"
            for topic, n in self._unfit.items()
        ]
        losses += self._unsaid[:1]
        losses += self._no_plates.values()
        if self._late:
            seconds = LATE_NS * 1e-9
            losses.append(f"{self._late} messages came more than {seconds:g} s after their row, and are left out")
        if self._missing:
            total = self._rows + self._missing
            losses.append(f"{self._missing} of {total} rows are missing, by the stamps of the others")
        return losses

    def __iter__(self) -> Iterator[tuple[int, Recording]]:
        bag = self._bag
        hidden = bag.size < SHOWN or not sys.stderr.isatty()
        with tqdm(total=bag.size, desc="reading", unit="B", unit_scale=True, disable=hidden, leave=False) as bar:
            for block in bag.blocks(self._grows):
                for topic, part in block.items():
                    self._take(topic, part)
                end = self._now = max(self._now, *(int(part.log_time.max()) for part in block.values()))
                self._hand_out(end - NEAR_NS)
                yield from self._ready(end - NEAR_NS - LATE_NS, ROWS)
                bar.update(bag.position - bar.n)
        if JOINT_STATES not in self._waiting:
            found = ", ".join(f"{name} ({n})" for name, n in sorted(self._counts.items())) or "no topics"
            decoder = self._decoders.get(JOINT_STATES)
            what = decoder.error if decoder else f"no messages on {JOINT_STATES}; found {found}"
            raise RecordingError(f"{self.path}: {what}")
        self._hand_out(_END)
        yield from self._ready(_END, 0)
        if self.statistics and self._period:
            # The figures are those of the last stretch.
            end = round((self.statistics.get("duration_s") or 0.0) * 1e9)
            self._missing += max(0, round((end - self._end) / self._period))
        for loss in self._losses():
            warn_incomplete(f"{self.path}: {loss}")

    def _take(self, topic: str, block: Block) -> None:
        """Decode messages of a topic that belongs into a recording, and let them wait."""
        if topic == ROBOT_DESCRIPTION:
            self._descriptions += [message.data for message in block.messages()]
        if topic == RUN:
            for message in block.messages():
                try:
                    self._said.append(_said_of_run(message.data))
                except RecordingError as error:
                    self._unsaid.append(f"{RUN}: a message is unreadable ({error}): the run cannot be simulated again")
        # A wall clock may be set back.
        arrived = np.maximum.accumulate(np.maximum(block.log_time, self._now))
        if topic == DIAGNOSTICS:
            self._stops += _stops_in(block, arrived)
        name = _named_in(topic, PLATE_GEOMETRY)
        if name and self._wants_plates:
            self._learn_plate(name, topic, block)
        self._counts[topic] = self._counts.get(topic, 0) + len(block.start)
        kind = self._bag.types.get(topic, "")
        if topic not in self._decoders:
            foot = FOOT.match(topic)
            general = topic.replace(f"/{foot[foot.lastindex or 0]}_", "/{foot}_", 1) if foot else topic
            if _named_in(topic, VERTEX_FORCES):
                general = VERTEX_FORCES
            samples = bool(_named_in(topic, PLATE_SIGNALS)) and self._wants_plates
            wanted = general in (*self._carriers, FALLEN, PLAN) or _is_readout(topic, kind) or _is_object(topic, kind)
            wanted = wanted or general == VERTEX_FORCES
            try:
                fields = {row.field for row in columns_on(general) if row.name in self._columns} or None
                self._decoders[topic] = Decoder(kind, fields) if wanted or samples else None
                if general in (*LABELLED_TOPICS, PLAN, VERTEX_FORCES) or samples:
                    self._timed.add(topic)
            except RecordingError as error:
                raise RecordingError(f"{self.path}: {topic}: {error}") from error
        decoder = self._decoders[topic]
        if decoder is None:
            return
        table, sound = decoder.take(block.data, block.start, block.size)
        stamp = table.stamp
        if _LABELLED in table.values and topic in self._timed:
            t = table.values[_LABELLED][:, 0] if table.values[_LABELLED].shape[1] else np.full(len(stamp), np.nan)
            # NaN where the labels are others, which the decoder counts.
            timed = np.abs(t) < _LATEST
            self._leave_out(topic, int((sound & ~timed & ~np.isnan(t)).sum()), "their time is no time of a run")
            sound &= timed
            stamp = np.rint(np.where(sound, t, 0.0) * 1e9).astype(np.int64)
        new = _Table(arrived, stamp, table.values).rows(_as_slice(sound))
        if len(new):
            self._waiting[topic] = _Table.joined([self._waiting[topic], new] if topic in self._waiting else [new])

    def _leave_out(self, topic: str, n: int, why: str) -> None:
        """Count messages that were decoded and cannot be used."""
        if n:
            self._unfit[topic] += n
            self._why_unfit[topic] = why

    def _hand_out(self, until: int) -> None:
        """Give the stretches what arrived before ``until``, or before a reset that is too near to be judged."""
        joints = self._waiting.get(JOINT_STATES)
        if joints is not None and len(joints):
            stamp, _ = self._last.get(JOINT_STATES, (int(joints.stamp[0]), 0))
            fallen = -np.diff(joints.stamp, prepend=stamp)
            at = np.flatnonzero(fallen > 0)
            near = joints.arrived[at]
            near = near[near > until - NEAR_NS]
            if len(near):
                until = min(until, int(near.min()) - NEAR_NS)
            self._resets += [(int(joints.arrived[i]), int(fallen[i])) for i in at if joints.arrived[i] <= until]
        for topic in sorted(self._waiting, key=lambda name: name != JOINT_STATES):
            table = self._waiting[topic]
            n = int(np.searchsorted(table.arrived, until, side="right"))
            if not n:
                continue
            taken, self._waiting[topic] = table.rows(slice(0, n)), table.rows(slice(n, None))
            cuts = self._cuts(topic, taken)
            for k, (first, last) in enumerate(zip([0, *cuts], [*cuts, n], strict=True)):
                if first == last:
                    continue
                stretch = self._stretch(k)
                if stretch is None:
                    self._late += int(last - first)
                else:
                    stretch.add(topic, taken.rows(slice(first, last)))
            self._last[topic] = (int(taken.stamp[-1]), int(taken.arrived[-1]))

    def _cuts(self, topic: str, table: _Table) -> Integers:
        """Return the entries with which the stretches behind each reset begin.

        The joint states say when time jumped back. Other topics do so a little earlier or later: where their own stamps
        fall about as far, or else by their arrival. Stamps that fall elsewhere are out of order and no reset.
        """
        resets = np.array(self._resets, dtype=np.int64).reshape(-1, 2)
        cuts = np.searchsorted(table.arrived, resets[:, 0])
        if not len(resets) or topic == JOINT_STATES:
            return np.asarray(cuts)
        before, _ = self._last.get(topic, (int(table.stamp[0]), 0))
        fallen = -np.diff(table.stamp, prepend=before)
        best = np.zeros(len(resets), dtype=np.int64)
        for i in np.flatnonzero(fallen > 0):
            k = int(np.argmin(np.abs(resets[:, 0] - table.arrived[i])))
            distance = abs(int(resets[k, 0] - table.arrived[i]))
            if distance <= NEAR_NS and fallen[i] > max(best[k], resets[k, 1] // 2):
                best[k], cuts[k] = fallen[i], i
        return np.asarray(np.maximum.accumulate(cuts))

    def _ready(self, until: int, least: int) -> Iterator[tuple[int, Recording]]:
        """Yield the rows whose messages have come, when there are ``least``; all of a stretch that is over."""
        while self._open:
            stretch = self._open[0]
            over = until == _END or (len(self._open) > 1 and self._resets[stretch.number][0] + LATE_NS < until)
            while n := stretch.ready(_END, 1) if over else stretch.ready(until, least):
                yield stretch.number, self._build(stretch, n)
            if not over:
                return
            self._open.popleft()

    def _build(self, stretch: _Stretch, n: int) -> Recording:
        """Return rows of the joint states, with what belongs to them."""
        if self._robot is None and not self._unknown:
            self._robot, self._unknown = self._find_robot()
            self._feet = self._find_feet()
        decoder = self._decoders[JOINT_STATES]
        assert decoder is not None
        assert decoder.labels is not None
        before = stretch.emitted
        rows = stretch.take(n)
        self._count(rows, before)
        out = Recording.empty(len(rows.stamp), decoder.labels, self._feet, columns=self._columns)
        out.t[:] = (rows.stamp - stretch.shift) * 1e-9
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
                    odd = _put(target, at, table, decoder.labels or (), column, out.joint_names)
                    self._leave_out(name, odd, f"{column.name} is no {target.dtype} in them")
        # Only what is wanted can be written.
        if self._bag.custom_data.get("ft_sign") == "-1" and out.ankle_wrench.flags.writeable:
            np.negative(out.ankle_wrench, out=out.ankle_wrench)
        for topic, kind in sorted(self._bag.types.items()):
            if _is_readout(topic, kind):
                at, numbers = rows.unstamped(topic)
                column_of = out.readouts[topic.removeprefix(READOUTS)] = np.full(len(out), np.nan)
                column_of[at] = numbers
            elif foot := _named_in(topic, VERTEX_FORCES):
                self._put_vertex_forces(out, foot, topic, *rows.match(topic))
            elif topic == PLAN:
                self._put_plan(out, *rows.match(topic))
            elif _is_object(topic, kind):
                at, table = rows.match(topic)
                if table is not None:
                    states = np.full((len(out), len(OBJECT_COMPONENTS)), np.nan)
                    states[at, :7], states[at, 7:] = table.values["pose"], table.values["twist"]
                    out.objects[topic.removeprefix(OBJECTS)] = states
        if self._wants_plates:
            out.force_plates = self._samples(rows, stretch.shift)
        self._put_stop(out, rows, stretch.shift)
        self._late += rows.late
        out.robot = self._bag.custom_data.get("robot", "")
        out.about = self._about()
        if self._robot is not None:
            out.about = {"robot": out.robot or self._robot.name, **out.about}
            out.describe_robot(self._robot)
            if out.sole_poses.flags.writeable:
                put_sole_poses(out, self._robot)
        return out

    def _put_stop(self, out: Recording, rows: _Rows, shift: int) -> None:
        """Say when and why the controller was stopped, if it was; ``shift`` is where time begins [ns]."""
        _, fallen = rows.unstamped(FALLEN)
        if not fallen.any():
            return
        first = int(np.argmax(fallen))
        at, arrived = rows.told_at(FALLEN, first, self._period), rows.arrival(FALLEN, first)
        # A controller that was reset may be stopped again at once, and the stop before is told once a second.
        near = [stop for stop in self._stops if abs(stop.arrived - arrived) <= NEAR_NS]
        if near:
            stop = min(near, key=lambda stop: abs(stop.at - at))
            row = int(rows.stamp[np.argmin(np.abs(rows.stamp - stop.at))])
            # Seconds of a wall clock are not told to the nanosecond, stamps are.
            at = row if abs(row - stop.at) < 1000 else stop.at
            out.gave_up_why = stop.why
        out.gave_up_at = (at - shift) * 1e-9

    def _put_vertex_forces(self, out: Recording, foot: str, topic: str, at: Any, table: _Table | None) -> None:
        """Add the forces at the vertices of a foot; ``at`` says whose rows its messages are."""
        decoder = self._decoders.get(topic)
        if table is None or decoder is None or decoder.labels is None:
            return
        sole = None if self._robot is None else next((one for one in self._robot.soles if one.name == foot), None)
        n = (len(decoder.labels) - 1) // 3 if sole is None else sole.n_vertices
        wanted = vertex_labels(n)
        if decoder.labels != wanted or table.values[_LABELLED].shape[1] != len(wanted):
            why = f"they name {', '.join(decoder.labels) or 'nothing'}, and not {', '.join(wanted)}"
            self._unfit[topic] = self._counts[topic] - decoder.failed - decoder.strangers
            self._why_unfit[topic] = why
            return
        forces = np.full((len(out), n, 3), np.nan)
        forces[at] = table.values[_LABELLED][:, 1:].reshape(len(table), n, 3)
        out.vertex_forces[foot] = forces

    def _put_plan(self, out: Recording, at: Any, table: _Table | None) -> None:
        """Add the plan of a controller to the readouts; ``at`` says whose rows its messages are.

        It stands until the next one comes, as in the controller.
        """
        decoder = self._decoders.get(PLAN)
        if table is None or decoder is None or not len(table):
            return
        said = np.arange(len(out))[at]
        newest = np.searchsorted(said, np.arange(len(out)), side="right") - 1
        known = (newest >= 0) & (out.t - out.t[said[newest]] < HELD - 1e-6)
        for name, numbers in zip(decoder.labels or (), table.values[_LABELLED].T, strict=False):
            if name.startswith(PLANNED):
                out.readouts[name] = np.where(known, numbers[newest], np.nan)

    def _learn_plate(self, name: str, topic: str, block: Block) -> None:
        """Take what the bag says of a force plate."""
        for message in block.messages():
            try:
                self._plates[name] = from_json(_object_in(message.data))
            except (RecordingError, ConfigError) as error:
                self._leave_out(topic, 1, str(error))

    def _samples(self, rows: _Rows, shift: int) -> dict[str, PlateSignals]:
        """Return what the force plates sampled since the rows before these; ``shift`` is where time begins [ns]."""
        found = {}
        for topic in sorted(self._bag.types):
            name, decoder = _named_in(topic, PLATE_SIGNALS), self._decoders.get(topic)
            if not name or decoder is None or decoder.labels is None:
                continue
            geometry = self._plates.get(name)
            if geometry is None or (*geometry.channel_names, CLIPPED) != decoder.labels[1:]:
                why = "is not in the bag" if geometry is None else "names other channels"
                said = f"{PLATE_GEOMETRY.format(plate=name)} {why}: the plate {name!r} is left out"
                self._no_plates.setdefault(name, said)
                continue
            values = rows.all_of(topic, len(decoder.labels))
            if values.shape[1] != len(decoder.labels):
                why = f"they hold {values.shape[1]} numbers, and name {len(decoder.labels)}"
                self._leave_out(topic, len(values), why)
                continue
            known = np.isfinite(values[:, -1])
            self._leave_out(topic, int((~known).sum()), f"{CLIPPED} is no number in them")
            values = values[known]
            clipped = int(values[-1, -1]) if len(values) else 0
            found[name] = PlateSignals(values[:, 0] - shift * 1e-9, geometry, values[:, 1:-1], clipped)
        return found

    def _about(self) -> dict[str, str]:
        """Return what a picture says of the run, as far as recorder and simulator have said it."""
        known = {"controller": self._bag.custom_data.get("controller", "")}
        begun = [said for said in self._said if "contact_model" in said]
        if begun:
            known |= {**begun[-1].get(ABOUT, {}), "contact_model": begun[-1]["contact_model"]}
        return {name: text for name, text in known.items() if text}

    def _count(self, rows: _Rows, before: int | None) -> None:
        """Count rows, and those that their stamps leave out; ``before`` is the stamp of the row before them [ns]."""
        gaps = np.diff(rows.stamp if before is None else np.append(before, rows.stamp))
        if self._period is None and len(gaps):
            known = [said["control_dt"] for said in self._said if "control_dt" in said]
            self._period = round(known[-1] * 1e9) if known else int(np.median(gaps))
        if self._period:
            self._missing += int(np.maximum(np.rint(gaps / self._period) - 1, 0).sum())
        self._rows += len(rows.stamp)
        self._end = int(rows.stamp[-1])

    def _find_feet(self) -> list[str]:
        """Return the feet that have topics, in the order of the recorder as far as it named them."""
        names = {m[m.lastindex or 0]: None for topic in sorted(self._bag.types) if (m := FOOT.match(topic))}
        named = [foot for foot in self._bag.custom_data.get("feet", "").split(",") if foot in names]
        return list(dict.fromkeys([*named, *names]))

    def _find_robot(self) -> tuple[Robot | None, str]:
        """Return the robot of the bag, or None and why it is unknown."""
        name = self._bag.custom_data.get("robot", "")
        why = "the bag does not name its robot"
        for description in reversed(self._descriptions):
            if name:
                break
            try:
                name = ElementTree.fromstring(text(description)).get("name", "")
            except (ElementTree.ParseError, RecordingError) as error:
                why = f"{ROBOT_DESCRIPTION} is no XML ({error})"
        if not name:
            return None, why
        try:
            return load_robot(name), ""
        except ConfigError as error:
            return None, str(error)

    def _stretch(self, number: int) -> _Stretch | None:
        """Return a stretch that takes messages; None if it is over."""
        while self.stretches <= number:
            self._open.append(_Stretch(self.stretches))
            self.stretches += 1
        return next((one for one in self._open if one.number == number), None)


class _Stretch:
    """What waits to become rows, between two resets.

    Attributes:
        number: Of the stretch. shift: What its stamps begin with, if they are those of a wall clock [ns].
        emitted: The stamp of the last row that was taken [ns]; None before.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.shift = 0
        self._parts: dict[str, list[_Table]] = {}
        self.emitted: int | None = None

    def add(self, topic: str, table: _Table) -> None:
        """Take messages of a topic."""
        if topic == JOINT_STATES and self.emitted is None and topic not in self._parts:
            self.shift = int(table.stamp[0]) if table.stamp[0] > WALL_CLOCK_NS else 0
        self._parts.setdefault(topic, []).append(table)

    def _table(self, topic: str) -> _Table:
        self._parts[topic] = [_Table.joined(self._parts[topic])]
        return self._parts[topic][0]

    def ready(self, until: int, least: int) -> int:
        """Return how many joint states that arrived by ``until`` can become a block, if they are at least so many.

        Those of the newest stamp may be repeated, and wait. However the messages come, blocks are the same.
        """
        if sum(map(len, self._parts.get(JOINT_STATES, ()))) < max(1, least):
            return 0
        joints = self._table(JOINT_STATES)
        n = len(joints)
        if until != _END:
            n = int(np.searchsorted(joints.arrived, until, side="right"))
            n = int(np.searchsorted(joints.stamp, joints.stamp[n - 1])) if n else 0
        if n < least:
            return 0
        return int(np.searchsorted(joints.stamp, joints.stamp[ROWS])) or n if n > ROWS else n

    def take(self, n: int) -> _Rows:
        """Take the first ``n`` joint states, and of the other topics what belongs to them."""
        joints = self._table(JOINT_STATES)
        end = int(joints.stamp[n]) if n < len(joints) else _END
        late = 0
        taken = {}
        for topic in self._parts:
            if topic == JOINT_STATES:
                continue
            table = self._table(topic)
            if topic != FALLEN and not topic.startswith(READOUTS):
                here = table.stamp < end
                if self.emitted is not None:
                    late += int((table.stamp[here] <= self.emitted).sum())
            else:
                here = np.searchsorted(joints.arrived, table.arrived, side="right") <= n
            taken[topic], self._parts[topic] = table.rows(_as_slice(here)), [table.rows(~here)]
        first = joints.rows(slice(0, n))
        # A copy, lest all of it is kept for the rest.
        self._parts[JOINT_STATES] = [joints.rows(np.arange(n, len(joints)))]
        self.emitted = int(first.stamp[-1])
        return _Rows(first, taken, late)


class _Rows:
    """Joint states, each stamp once, and the messages that belong to them."""

    def __init__(self, joints: _Table, tables: Mapping[str, _Table], late: int) -> None:
        self._all = joints
        self._tables = tables
        self.late = late
        self.joints = joints.rows(np.append(np.diff(joints.stamp) != 0, True))
        self.stamp = self.joints.stamp

    def match(self, topic: str) -> tuple[Any, _Table | None]:
        """Return the rows that have messages of a topic, and the last message for each; None if it has none."""
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
        """Return the numbers (n, width) of all messages of a topic, whatever row they are nearest to."""
        table = self._tables.get(topic)
        if table is None:
            return np.zeros((0, width))
        return table.values[_LABELLED][np.argsort(table.stamp, kind="stable")]

    def unstamped(self, topic: str) -> tuple[Indices, Array]:
        """Return (rows, numbers) of a topic whose messages say no time, in the order in which they came.

        A message belongs to the row whose joint states were the last to arrive before it.
        """
        table = self._tables.get(topic)
        if table is None:
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        last = np.searchsorted(self._all.arrived, table.arrived, side="right") - 1
        here = last >= 0
        return np.searchsorted(self.stamp, self._all.stamp[last[here]]), table.values[_LABELLED][here, 0]

    def arrival(self, topic: str, k: int) -> int:
        """Return when entry ``k`` of :meth:`unstamped` arrived [ns]."""
        told = self._tables[topic].arrived
        return int(told[told >= self._all.arrived[0]][k])

    def told_at(self, topic: str, k: int, period: int | None) -> float:
        """Return the time [ns] that entry ``k`` of :meth:`unstamped` was about: that of its row.

        Where rows are missing behind that one, it is where the message arrived between them.
        """
        arrived, stamp = self._all.arrived, self._all.stamp
        told = self.arrival(topic, k)
        row = int(np.searchsorted(arrived, told, side="right")) - 1
        gap = int(stamp[row + 1] - stamp[row]) if row + 1 < len(stamp) else told - arrived[row] - NEAR_NS // 10
        if not period or gap <= 1.5 * period:
            return float(stamp[row])
        if row + 1 < len(stamp):
            return float(np.interp(told, arrived[row : row + 2], stamp[row : row + 2]))
        speed = (stamp[-1] - stamp[0]) / max(1, arrived[-1] - arrived[0])
        return float(stamp[row] + speed * (told - arrived[row]))


@dataclass(frozen=True)
class _Stop:
    """What a controller said of its stop: when that arrived [ns], which stamp it should have answered [ns], and why."""

    arrived: int
    at: int
    why: str


def _stops_in(block: Block, arrived: Integers) -> Iterator[_Stop]:
    """Yield what messages on /diagnostics say of a stop; those of other programs may be anything, and say nothing."""
    key_at, key_why = STOPPED
    for at, message in zip(arrived.tolist(), block.messages(), strict=True):
        if key_at.encode() in message.data:
            with suppress(RecordingError, ValueError, OverflowError, KeyError):
                values = diagnostic_values(message.data)
                t = float(values[key_at])
                if abs(t) < _LATEST:
                    yield _Stop(at, round(t * 1e9), values[key_why])


def _object_in(message: bytes) -> dict[str, Any]:
    """Return the JSON object that a std_msgs/String holds.

    Raises:
        RecordingError: It holds none.
    """
    try:
        found = json.loads(text(message))
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"it is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise RecordingError(f"it is no JSON object but {type(found).__name__}")
    return found


def _said_of_run(message: bytes) -> dict[str, Any]:
    """Return what a message on the topic of the run says.

    Raises:
        RecordingError: A value that is read here has another type.
    """
    said = _object_in(message)
    period, statistics = said.get("control_dt", 1.0), said.get(STATISTICS, {})
    about = said.get(ABOUT, {})
    sound = {
        "control_dt": isinstance(period, (int, float)) and 0.0 < period < _LATEST,
        "contact_model": isinstance(said.get("contact_model", ""), str),
        ABOUT: isinstance(about, dict) and all(isinstance(text, str) for text in about.values()),
        STATISTICS: isinstance(statistics, dict)
        and isinstance(duration := statistics.get("duration_s") or 0.0, (int, float))
        and abs(duration) < _LATEST,
    }
    wrong = [name for name, right in sound.items() if not right]
    if wrong:
        raise RecordingError(f"{wrong[0]} = {said[wrong[0]]!r}")
    return said


def _as_slice(chosen: Flags) -> Any:
    """Return what chooses the same entries, without copying them where they are the first ones."""
    n = int(np.count_nonzero(chosen))
    return slice(0, n) if chosen[:n].all() else chosen


def _is_readout(topic: str, kind: str) -> bool:
    return topic.startswith(READOUTS) and kind == "std_msgs/msg/Float64"


def _is_object(topic: str, kind: str) -> bool:
    return topic.startswith(OBJECTS) and kind == "nav_msgs/msg/Odometry"


def _named_in(topic: str, pattern: str) -> str:
    """Return the force plate or foot whose topic this is, of a pattern of names; empty if it is none."""
    begin, _, rest = pattern.partition("{")
    end = rest.partition("}")[2]
    is_one = topic.startswith(begin) and topic.endswith(end)
    return topic[len(begin) : len(topic) - len(end)] if is_one else ""


def _put(
    target: NDArray[Any], rows: Any, table: _Table, labels: tuple[str, ...], column: Column, joints: Sequence[str]
) -> int:
    """Copy a column into the rows of ``target`` that its messages belong to, if they hold it.

    Returns:
        How many messages hold it and cannot be had in the type of ``target``; their rows stay as they are.
    """
    values = table.values.get(column.field)
    odd = np.zeros(len(table), dtype=np.bool_)
    if values is not None and column.field == _LABELLED:
        # Bags of before there were labels.
        labels = (labels if len(labels) > 1 else CONTACT_FIELDS)[: values.shape[1]]
        at = {label: i for i, label in enumerate(labels)}
        parts: Any = [(target, ())]
        if column.per == "joint":
            parts = ((target[:, k], (joint,)) for k, joint in enumerate(joints))
        for part, owner in parts:
            wanted = column.labels_of(owner)
            # A joint of which it does not tell, such as one that a chain turns, stays empty.
            if at.keys() >= set(wanted):
                odd |= _put_numbers(part, rows, values[:, [at[label] for label in wanted]])
    elif values is not None and not (column.per == "joint" and values.shape[1] != np.prod(target.shape[1:])):
        odd |= _put_numbers(target, rows, values[:, : int(np.prod(target.shape[1:]))])
    return int(odd.sum())


def _put_numbers(target: NDArray[Any], rows: Any, numbers: Array) -> Flags:
    """Copy numbers (n, k) into rows of ``target``, as its type; return which (n,) cannot be had in it."""
    shape, kind = (-1, *target.shape[1:]), target.dtype
    if kind.kind == "f":
        target[rows] = numbers.reshape(shape).astype(kind)
        return np.zeros(len(numbers), dtype=np.bool_)
    # Truth values are numbers, too, of which all but 0 are true.
    least, most = (-np.inf, np.inf) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    # Of messages with other labels all numbers are NaN, which the decoder counts.
    absent = np.isnan(numbers).all(axis=1)
    odd = np.asarray(~((least <= numbers) & (numbers <= most)).all(axis=1))
    if not odd.any():
        target[rows] = numbers.reshape(shape).astype(kind)
        return odd
    sound = np.arange(len(target))[rows][~odd]
    target[sound] = numbers[~odd].reshape(shape).astype(kind)
    return np.asarray(odd & ~absent)
