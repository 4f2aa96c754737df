"""Decode the messages of the topics that belong into a recording, and count those that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from bipedsim.errors import ConfigError, RecordingError, some
from bipedsim.numerics import Integers
from bipedsim.plates import PlateGeometry, PlateSignals, from_json
from bipedsim.recording.bag.cdr import FIELDS, JOINT_STATE, NUMBERS, signal_paths
from bipedsim.recording.bag.mcap import Block
from bipedsim.recording.bag.messages import Columns, Decoder
from bipedsim.recording.bag.reader import MACHINE, Bag
from bipedsim.recording.bag.run_messages import LATEST, json_object
from bipedsim.recording.bag.segments import LABELLED, AlignedRows, TopicMessages, as_slice
from bipedsim.recording.bag.sensor_topics import SensorTopics
from bipedsim.recording.bag.sole_poses import made_of
from bipedsim.recording.schema import (
    CARRIERS,
    CLIPPED,
    COLUMNS,
    EFFORT_COMMANDS,
    FALLEN,
    FOOT,
    JOINT_STATES,
    LABELLED_TOPICS,
    MEASURED,
    OBJECTS,
    PLAN,
    PLATE_GEOMETRY,
    PLATE_SIGNALS,
    READOUTS,
    USER_TOPICS,
    VERTEX_FORCES,
    columns_on,
)


class TopicDecoders:
    """Decode the topics of a bag.

    Args:
        bag: The bag.
        columns: Columns to read, all by default.

    Attributes:
        columns: Names of the columns to read.
        carriers: Topics with these columns, apart from those of ``sensors``.
        sensors: Topics of additional IMUs and contact switches.
        wants_plates: Whether to read force plates.
        commands: Topics of a controller's commands to read.
        counts: Number of messages by topic.
        signals: Topic of a user's node to the names of its columns, by field, once it has messages.
        without_columns: Topic of a user's node to the reason why it has no columns.
    """

    def __init__(self, bag: Bag, columns: Collection[str] | None) -> None:
        self._bag = bag
        needed = None if columns is None else {*columns, *made_of(columns)}
        definitions = [column for column in COLUMNS.values() if needed is None or column.name in needed]
        self.columns = {"t", *(column.name for column in definitions)}
        topics = {JOINT_STATES, *(column.topic for column in definitions)}
        self.sensors = SensorTopics(bag, self.columns)
        self.carriers = tuple(topic for topic in CARRIERS if topic in topics and "{sensor}" not in topic)
        self.wants_plates = columns is None or "force_plates" in columns
        self.commands = tuple(column.sent for column in definitions if column.sent)
        self.counts: Counter[str] = Counter()
        self.signals: dict[str, dict[str, list[str]]] = {}
        self.without_columns: dict[str, str] = {}
        self._user_topics = set(filter(None, bag.custom_data.get(USER_TOPICS, "").split(",")))
        self._decoders: dict[str, Decoder | None] = {}
        self._timed: set[str] = set()
        # Topics of which a row has one message: whether it is that of a sensor.
        self._held: dict[str, bool] = {}
        # Number of decoded messages with unsuitable content, and the reason, by topic.
        self._unfit: Counter[str] = Counter()
        self._unfit_reason: dict[str, str] = {}

    def get(self, topic: str) -> Decoder | None:
        """Return the decoder of a topic; None if it does not belong into a recording or has no messages."""
        return self._decoders.get(topic)

    @property
    def active(self) -> list[tuple[str, Decoder]]:
        """Topics so far that belong into a recording, with their decoders."""
        return [(topic, decoder) for topic, decoder in self._decoders.items() if decoder is not None]

    def decode(self, topic: str, block: Block, arrived: Integers) -> TopicMessages | None:
        """Return the valid messages of a block; None if the topic does not belong into a recording.

        Args:
            topic: The topic.
            block: Its messages.
            arrived: (n,) times of reception [ns].
        """
        self.counts[topic] += len(block.start)
        if topic not in self._decoders:
            self._decoders[topic] = self._decoder_of(topic)
        decoder = self._decoders[topic]
        if decoder is None:
            return None
        if topic in self._user_topics:
            return self._signals_in(topic, decoder, block, arrived)
        table, sound = decoder.take(block.data, block.start, block.size)
        stamp = table.stamp
        if LABELLED in table.values and topic in self._timed:
            t = table.values[LABELLED][:, 0] if table.values[LABELLED].shape[1] else np.full(len(stamp), np.nan)
            # The time is NaN if the labels differ; the decoder counts these messages.
            timed = np.abs(t) < LATEST
            self.count_unfit(topic, int((sound & ~timed & ~np.isnan(t)).sum()), "their time stamp is invalid")
            sound &= timed
            stamp = np.rint(np.where(sound, t, 0.0) * 1e9).astype(np.int64)
        leads = self.sensors.leads(topic)
        stamped = not leads and topic not in (FALLEN, *self.commands) and not topic.startswith(READOUTS)
        # A publisher without a clock sends 0.
        sent = np.where(block.publish_time > 0, block.publish_time, arrived)
        machine = self._bag.channel_metadata.get(topic, {}).get(MACHINE, "")
        held = self._held.get(topic)
        return TopicMessages(arrived, sent, stamp, table.values, stamped, leads, machine, held).rows(as_slice(sound))

    def _signals_in(self, topic: str, decoder: Decoder, block: Block, arrived: Integers) -> TopicMessages | None:
        """Return the messages of a topic of a user's node, assigned to rows by their time of reception."""
        try:
            table, sound = decoder.take(block.data, block.start, block.size)
        except RecordingError as error:
            self._decoders[topic], self.without_columns[topic] = None, str(error)
            return None
        if decoder.labels is not None and topic not in self.signals:
            self.signals[topic] = signal_names(topic, table)
        messages = TopicMessages(arrived, arrived, np.zeros_like(table.stamp), table.values, stamped=False)
        return messages.rows(as_slice(sound))

    def _decoder_of(self, topic: str) -> Decoder | None:
        """Return a decoder for a topic that belongs into a recording; None for others.

        Raises:
            RecordingError: The topic has another type than in a recording.
        """
        kind = self._bag.types.get(topic, "")
        if topic in self._user_topics:
            try:
                return Decoder(kind, paths={path: path for path in signal_paths(kind)})
            except RecordingError as error:
                self.without_columns[topic] = str(error)
                return None
        if topic == EFFORT_COMMANDS and topic in self.commands and kind == JOINT_STATE:
            return Decoder(kind, {"effort"})
        if topic in self.commands and kind != NUMBERS:
            self.without_columns[topic] = f"its messages are {kind}, and those of a controller {NUMBERS}"
            return None
        if fields := self.sensors.fields_of(topic):
            if not self.sensors.leads(topic):
                self._held[topic] = True
            return Decoder(kind, fields)
        foot = FOOT.match(topic)
        general = topic.replace(f"/{foot[foot.lastindex or 0]}_", "/{foot}_", 1) if foot else topic
        if name_in(topic, VERTEX_FORCES):
            general = VERTEX_FORCES
        samples = bool(name_in(topic, PLATE_SIGNALS)) and self.wants_plates
        recorded = (*self.carriers, *self.commands, FALLEN, PLAN, VERTEX_FORCES)
        if not (general in recorded or samples or is_readout(topic, kind) or is_object(topic, kind)):
            return None
        if general in (*LABELLED_TOPICS, PLAN, VERTEX_FORCES) or samples:
            self._timed.add(topic)
        if general in self.carriers or is_object(topic, kind):
            self._held[topic] = general in MEASURED
        fields = {column.field for column in columns_on(general) if column.name in self.columns}
        if missing := fields - FIELDS.get(kind, dict.fromkeys(fields)).keys():
            raise RecordingError(f"is a type without {some(sorted(missing))}", f"{self._bag.path}: {topic}", kind)
        try:
            return Decoder(kind, fields or None)
        except RecordingError as error:
            raise error.within(f"{self._bag.path}: {topic}") from error

    def count_unfit(self, topic: str, n: int, why: str) -> None:
        """Count decoded messages that cannot be used."""
        if n:
            self._unfit[topic] += n
            self._unfit_reason[topic] = why

    def refuse(self, topic: str, why: str) -> None:
        """Count all decoded messages of a topic as unusable."""
        decoder = self._decoders[topic]
        assert decoder is not None
        self._unfit[topic] = self.counts[topic] - decoder.failed - decoder.strangers
        self._unfit_reason[topic] = why

    def losses(self) -> list[str]:
        """Return descriptions of the messages that were read and could not be used."""
        decoders = self.active
        counts = {topic: f"of {n} messages left out" for topic, n in self.counts.items()}
        return [
            *(f"{topic}: {d.failed} {counts[topic]}: {d.error}" for topic, d in decoders if d.failed),
            *(
                f"{topic}: {d.strangers} {counts[topic]}: they name {d.strange}, "
                f"and the first one {', '.join(d.labels or ())}"
                for topic, d in decoders
                if d.strangers
            ),
            *(f"{topic}: {n} {counts[topic]}: {self._unfit_reason[topic]}" for topic, n in self._unfit.items()),
        ]


def signal_names(topic: str, table: Columns) -> dict[str, list[str]]:
    """Return the names of a topic's columns by field: the topic, the field unless it is ``data``, and the label.

    A field with several numbers has the labels of the message, such as joint names, or else their indices.
    """
    names = {}
    for path, numbers in table.values.items():
        field, width = topic if path == "data" else f"{topic}.{path}", numbers.shape[1]
        labels = table.labels if len(table.labels) == width else [str(i) for i in range(width)]
        names[path] = [field] if width == 1 and not table.labels else [f"{field}[{label}]" for label in labels]
    return names


class PlateTopics:
    """Read geometry and samples of the force plates in a bag.

    Args:
        decoders: Decoders of the topics.

    Attributes:
        errors: Reason why a plate is left out, by its name.
    """

    def __init__(self, decoders: TopicDecoders) -> None:
        self._decoders = decoders
        self._geometries: dict[str, PlateGeometry] = {}
        self.errors: dict[str, str] = {}

    def learn(self, topic: str, block: Block) -> None:
        """Store the geometry of a force plate if ``topic`` publishes one."""
        name = name_in(topic, PLATE_GEOMETRY)
        for message in block.messages() if name else ():
            try:
                self._geometries[name] = from_json(json_object(message.data))
            except (RecordingError, ConfigError) as error:
                self._decoders.count_unfit(topic, 1, str(error))

    def samples(self, rows: AlignedRows) -> dict[str, PlateSignals]:
        """Return the plate samples since the previous rows, by the name of the plate."""
        signals = {}
        for topic, decoder in sorted(self._decoders.active):
            name = name_in(topic, PLATE_SIGNALS)
            if not name or decoder.labels is None:
                continue
            geometry = self._geometries.get(name)
            if geometry is None or (*geometry.channel_names, CLIPPED) != decoder.labels[1:]:
                problem = "is not in the bag" if geometry is None else "names other channels"
                message = f"{PLATE_GEOMETRY.format(plate=name)} {problem}: the plate {name!r} is left out"
                self.errors.setdefault(name, message)
                continue
            values = rows.all_of(topic, len(decoder.labels))
            if values.shape[1] != len(decoder.labels):
                problem = f"they hold {values.shape[1]} numbers, and name {len(decoder.labels)}"
                self._decoders.count_unfit(topic, len(values), problem)
                continue
            known = np.isfinite(values[:, -1])
            self._decoders.count_unfit(topic, int((~known).sum()), f"{CLIPPED} is no number in them")
            values = values[known]
            clipped = int(values[-1, -1]) if len(values) else 0
            signals[name] = PlateSignals(values[:, 0] - rows.shift * 1e-9, geometry, values[:, 1:-1], clipped)
        return signals


def is_readout(topic: str, kind: str) -> bool:
    """Return whether a topic with messages of this type is a debug signal of a controller."""
    return topic.startswith(READOUTS) and kind == "std_msgs/msg/Float64"


def is_object(topic: str, kind: str) -> bool:
    """Return whether a topic with messages of this type is the state of a free object."""
    return topic.startswith(OBJECTS) and kind == "nav_msgs/msg/Odometry"


def name_in(topic: str, pattern: str) -> str:
    """Return the name of the force plate or foot in a topic of this pattern; empty if the pattern does not match."""
    begin, _, rest = pattern.partition("{")
    end = rest.partition("}")[2]
    matches = topic.startswith(begin) and topic.endswith(end)
    return topic[len(begin) : len(topic) - len(end)] if matches else ""
