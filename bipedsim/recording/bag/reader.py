"""Write and read rosbag2 directories (version 9, MCAP storage) without ROS.

A bag survives SIGKILL of its writer; the reader recovers damaged bags. The ``mcap`` package writes and reads the files.
This module adds the directory and the metadata of rosbag2.

``ros2 bag`` needs ``metadata.yaml`` to open a bag. The writer creates the file at once and replaces it atomically about
once a second. The MCAP file is complete after every flush (see ``mcap.py``). After a SIGKILL, only the counts and the
duration in ``metadata.yaml`` may be one second old.

Times follow the defaults of ``ros2 bag record``. Log time is the time of reception and publish time the time of
sending, both on the wall clock. Simulated time is not usable here: it stops while the simulator is paused and jumps
back at a reset, and a bag with unordered times cannot be played. It is in the header of every message, and
:class:`bipedsim.recording.recording.Recording` uses these headers.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from mcap.records import Message
from mcap.writer import Writer

from bipedsim.config import check_readable, read_text, unreadable, yaml_value
from bipedsim.errors import ConfigError, RecordingError, warn_incomplete
from bipedsim.numerics import Indices, Integers
from bipedsim.recording.bag.cdr import NS_PER_S
from bipedsim.recording.bag.mcap import COMPRESSED, LIBRARY, Block, LiveFile, McapFile, SpooledIndexes, decompressed
from bipedsim.recording.bag.topic_names import TopicNames
from bipedsim.recording.schema import JOINT_STATES

METADATA_PERIOD = 1.0
MACHINE = "bipedsim_machine"
"""Property of a channel: the machine of its publishers. Other readers ignore properties that they do not know."""
# Approximate memory per waiting message in addition to its data: a tuple, its numbers and the bytes header.
MESSAGE_OVERHEAD = 200
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_INFINITE = {"sec": 9223372036, "nsec": 854775807}


@dataclass(frozen=True)
class Qos:
    """Quality of service of a publisher, with the names of rosbag2."""

    reliability: str = "reliable"
    durability: str = "volatile"
    history: str = "keep_last"
    depth: int = 10
    liveliness: str = "automatic"

    def as_dict(self) -> dict[str, Any]:
        """Return the profile as rosbag2 writes it, with infinite deadlines."""
        return {
            "history": self.history,
            "depth": self.depth,
            "reliability": self.reliability,
            "durability": self.durability,
            "deadline": dict(_INFINITE),
            "lifespan": dict(_INFINITE),
            "liveliness": self.liveliness,
            "liveliness_lease_duration": dict(_INFINITE),
            "avoid_ros_namespace_conventions": False,
        }


@dataclass(frozen=True)
class Topic:
    """Properties of a topic that a bag stores.

    Attributes:
        name: Topic, such as ``/joint_states``.
        msgtype: ROS type, such as ``sensor_msgs/msg/JointState``.
        definition: Text of the .msg file and of all nested types, as rosbag2 concatenates them.
        type_hash: RIHS01 hash of the type.
        qos: Profiles of the publishers; empty if there are none.
        machine: Name of the machine of all publishers; empty if it is unknown, or if they are on several machines.
    """

    name: str
    msgtype: str
    definition: str
    type_hash: str
    qos: tuple[Qos, ...] = ()
    machine: str = ""


@dataclass
class Pending:
    """Data that wait to be written.

    Attributes:
        topics: Number to new topic.
        messages: (number of the topic, log time, publish time, sequence, data) each.
        size: Approximate memory of the messages [bytes].
    """

    topics: dict[int, Topic] = field(default_factory=dict)
    messages: list[tuple[int, int, int, int, bytes]] = field(default_factory=list)
    size: int = 0


class BagWriter:
    """Write one rosbag2 directory.

    Call :meth:`add_topic`, :meth:`add_message` and :meth:`detach` in the receiving thread, and :meth:`write` and
    :meth:`close` in the writing thread. With a single thread, :meth:`flush` is sufficient.

    Args:
        path: The directory or file to create.
        custom_data: Key to text for the reader, such as the robot's name.
        ros_distro: Name of the ROS distribution of the publishers.
        alone: Write a single .mcap file without directory and metadata.yaml.

    Raises:
        ConfigError: ``path`` exists, or cannot be created.
        RecordingError: The disk is full or not writable.
    """

    def __init__(
        self, path: Path, custom_data: Mapping[str, str] | None = None, ros_distro: str = "jazzy", alone: bool = False
    ) -> None:
        if path.exists():
            raise ConfigError("exists already and is not overwritten. Remove it, or use another directory", path)
        folder = path.parent if alone else path
        try:
            folder.mkdir(parents=True, exist_ok=alone)
        except OSError as error:
            raise ConfigError(f"cannot create the directory of the bag ({error.strerror})", folder) from error
        self.path = path
        self._name = path.name if alone else f"{path.resolve().name}_0.mcap"
        self._metadata = None if alone else path / "metadata.yaml"
        self.custom_data = dict(custom_data or {})
        self.ros_distro = ros_distro
        self._n_topics = 0
        self._pending = Pending()
        # Only the writing thread uses the attributes below.
        self._topics: dict[int, Topic] = {}
        self._schemas: dict[str, int] = {}
        self._channels: dict[int, int] = {}
        self._counts: Counter[int] = Counter()
        self._start, self._end = 2**63 - 1, 0
        self._metadata_due = 0.0
        self._open = ExitStack()
        try:
            self._file = self._open.enter_context(LiveFile(folder / self._name))
            self._mcap: Any = Writer(self._file)  # half of its methods are untyped
            # The library has no public way to replace its list. A test with many chunks detects a changed library.
            self._indexes = self._open.enter_context(closing(SpooledIndexes(folder)))
            vars(self._mcap)["_Writer__chunk_indices"] = self._indexes
            self._mcap.start(profile="ros2", library=LIBRARY)
            self._file.save()
            self._write_metadata(final=False)
        except OSError as error:
            self.release()
            # An incomplete bag would block the next one with the same name.
            if alone:
                path.unlink(missing_ok=True)
            else:
                shutil.rmtree(path, ignore_errors=True)
            raise RecordingError(
                f"cannot create the bag ({error.strerror}). Free disk space, or record elsewhere", path
            ) from error

    def add_topic(self, topic: Topic) -> int:
        """Declare a topic and return its number for :meth:`add_message`; it is never 0."""
        self._n_topics += 1
        self._pending.topics[self._n_topics] = topic
        return self._n_topics

    def add_message(self, channel: int, log_time: int, publish_time: int, data: bytes, sequence: int = 0) -> None:
        """Append a serialised message. Times are in ns since the epoch; log times must not decrease."""
        pending = self._pending
        pending.messages.append((channel, log_time, publish_time, sequence, data))
        pending.size += len(data) + MESSAGE_OVERHEAD

    @property
    def pending_bytes(self) -> int:
        """Size of the data that :meth:`detach` would return."""
        return self._pending.size

    def detach(self) -> Pending | None:
        """Return the data added since the last call, for :meth:`write`; None if there are none."""
        pending = self._pending
        if not (pending.topics or pending.messages):
            return None
        self._pending = Pending()
        return pending

    def write(self, pending: Pending) -> None:
        """Write messages, and metadata when due: at once for new topics, because readers look them up there."""
        for number, topic in pending.topics.items():
            self._register(number, topic)
        channels, add = self._channels, self._mcap.add_message
        for number, log_time, publish_time, sequence, data in pending.messages:
            add(channels[number], log_time, data, publish_time, sequence)
        self._mcap.flush()
        self._file.save()
        self._counts.update(message[0] for message in pending.messages)
        times = [message[1] for message in pending.messages]
        self._start, self._end = min([self._start, *times]), max([self._end, *times])
        if pending.topics or time.monotonic() >= self._metadata_due:
            self._write_metadata(final=False)

    def _register(self, number: int, topic: Topic) -> None:
        schema = self._schemas.get(topic.msgtype)
        if schema is None:
            schema = self._mcap.register_schema(topic.msgtype, "ros2msg", topic.definition.encode())
            self._schemas[topic.msgtype] = schema
        qos = yaml.dump([q.as_dict() for q in topic.qos], Dumper=_Dumper, sort_keys=False) if topic.qos else ""
        metadata = {"offered_qos_profiles": qos, "topic_type_hash": topic.type_hash, MACHINE: topic.machine}
        self._channels[number] = self._mcap.register_channel(topic.name, "cdr", schema, metadata)
        self._topics[number] = topic

    def flush(self) -> None:
        """Write everything added so far; these data survive a SIGKILL."""
        pending = self.detach()
        if pending is not None:
            self.write(pending)

    def close(self) -> None:
        """Finish the bag."""
        try:
            self.flush()
            self._mcap.add_metadata("rosbag2", {"serialized_metadata": self._metadata_text(inner=True)})
            self._mcap.finish()
            self._file.finish()
        finally:
            self.release()
        self._write_metadata(final=True)

    def release(self) -> None:
        """Close the files without finishing the bag, which stays readable. A second call does nothing."""
        self._open.close()

    def _metadata_text(self, inner: bool) -> str:
        total = sum(self._counts.values())
        start = self._start if total else 0
        span = {
            "starting_time": {"nanoseconds_since_epoch": start},
            "duration": {"nanoseconds": self._end - start if total else 0},
            "message_count": total,
        }
        name = self._name
        information = {
            "version": 9,
            "storage_identifier": "mcap",
            "relative_file_paths": [name],
            **span,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic.name,
                        "type": topic.msgtype,
                        "serialization_format": "cdr",
                        "offered_qos_profiles": [q.as_dict() for q in topic.qos],
                        "type_description_hash": topic.type_hash,
                    },
                    "message_count": self._counts[number],
                }
                for number, topic in self._topics.items()
            ],
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": name, **span}],
            "custom_data": self.custom_data or None,
            "ros_distro": self.ros_distro,
        }
        document = information if inner else {"rosbag2_bagfile_information": information}
        return str(yaml.dump(document, Dumper=_NoAliases, sort_keys=False))

    def _write_metadata(self, final: bool) -> None:
        path = self._metadata
        if path is None:
            return
        temporary = path.with_suffix(".yaml.tmp")
        temporary.write_text(self._metadata_text(inner=False), encoding="utf-8")
        os.replace(temporary, path)
        self._metadata_due = float("inf") if final else time.monotonic() + METADATA_PERIOD


class _NoAliases(_Dumper):
    """Dumps equal profiles in full, because rosbag2's parser may not support YAML anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _information(metadata: Path) -> dict[str, Any]:
    return dict(yaml_value(read_text(metadata))["rosbag2_bagfile_information"])


def _counts(information: Mapping[str, Any]) -> dict[str, int]:
    entries = information["topics_with_message_count"]
    return {str(entry["topic_metadata"]["name"]): int(entry["message_count"]) for entry in entries}


def message_counts(path: Path) -> dict[str, int]:
    """Return the number of messages per topic from the ``metadata.yaml`` of a bag directory, without reading it.

    Raises:
        RecordingError: The file or its counts are missing.
    """
    try:
        return _counts(_information(path / "metadata.yaml"))
    except (ConfigError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"no metadata.yaml that counts messages ({error})", path) from error


def find_bag(path: Path) -> Path | None:
    """Return the bag at ``path`` or in its subdirectory ``bag``: an .mcap file or a directory.

    Raises:
        RecordingError: The directory is not readable.
    """
    try:
        for candidate in (path, path / "bag"):
            if candidate.is_file() or (candidate / "metadata.yaml").is_file() or next(candidate.glob("*.mcap"), None):
                return candidate
    except OSError as error:
        raise unreadable(path, error, RecordingError) from error
    return None


def name_one(folder: Path, suffixes: Sequence[str] = ()) -> str:
    """Return a hint for an error message: runs in the folder, and files with these suffixes."""
    runs = []
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        with suppress(RecordingError):
            if find_bag(entry) if entry.is_dir() else entry.suffix in suffixes:
                runs.append(str(entry))
    return f"; name one of the runs in it: {', '.join(runs)}" if runs else ""


class _OrderFilter:
    """Removes messages that are in the wrong position of a bag.

    A wall clock may be set back, and simulated time jumps back at a reset; both alone are valid. If the recorder's
    clock and the stamps of the joint states jump back together, parts of the file were exchanged or duplicated.

    Attributes:
        misplaced: Number of removed messages.
    """

    def __init__(self) -> None:
        self.misplaced = 0
        self._newest: dict[str, int] = {}
        self._stamp = 0
        # Whether the last joint states were late, and whether their stamps also jumped back.
        self._late = self._fell = False

    def filter(self, parts: dict[str, Block]) -> dict[str, Block]:
        """Return the messages without the misplaced ones."""
        is_late = {}
        for topic, part in parts.items():
            newest = np.maximum.accumulate(np.append(self._newest.get(topic, part.log_time[0]), part.log_time))
            is_late[topic], self._newest[topic] = part.log_time < newest[:-1], int(newest[-1])
        joints = parts.get(JOINT_STATES)
        if joints is None:
            return parts
        joints_late, stamp = is_late[JOINT_STATES], _stamps(joints)
        begins = joints_late & ~np.append(self._late, joints_late[:-1])
        last = np.maximum.accumulate(np.where(joints_late, -1, np.arange(len(joints_late))))
        before = np.append(self._stamp, np.where(last < 0, self._stamp, stamp[last]))
        fell = np.append(self._fell, stamp[begins] <= before[:-1][begins])
        misplaced = joints_late & fell[np.cumsum(begins)]
        self._late, self._fell, self._stamp = bool(joints_late[-1]), bool(fell[-1]), int(before[-1])
        if not misplaced.any():
            return parts
        is_late[JOINT_STATES] = misplaced
        self.misplaced += sum(int(rows.sum()) for rows in is_late.values())
        return {topic: part.rows(np.flatnonzero(~is_late[topic])) for topic, part in parts.items()}


def _stamps(block: Block) -> Integers:
    """Return the stamps (n,) of messages whose first field is a header [ns]."""
    start = np.minimum(block.start, len(block.data) - 12)
    raw = np.ascontiguousarray(block.data[start[:, None] + np.arange(4, 12)])
    stamp = np.where(block.data[start + 1, None] & 1, raw.view("<u4"), raw.view(">u4")).astype(np.int64)
    return np.asarray(stamp[:, 0] * NS_PER_S + stamp[:, 1])


class Bag:
    """Messages of a bag: a bag directory, the ``bag/`` in a run's folder, or an .mcap file, complete or not.

    Unreadable data are skipped. A warning and :attr:`recovered` report them after the whole bag has been read.

    Args:
        path: The bag.
        remap: Topic in the bag to the name under which it is read, see :class:`TopicNames`.

    Attributes:
        path: The bag.
        types: Topic to ROS type, as far as the bag has been read; complete for a finished bag.
        channel_metadata: Topic to further properties in the file, such as ``offered_qos_profiles``; likewise.
        custom_data: Key to text of the writer, from ``metadata.yaml``.
        size: Size of the files [bytes].

    Raises:
        RecordingError: ``path`` contains no bag; the message says what was found.
        ConfigError: ``remap`` does not fit the bag. The topics of an unfinished bag are known once it has been read.
    """

    def __init__(self, path: Path | str, remap: Mapping[str, str] | None = None) -> None:
        self.path = path = find_bag(Path(path)) or Path(path)
        self._names = TopicNames(remap or {}, path)
        self.types: dict[str, str] = {}
        self.channel_metadata: dict[str, dict[str, str]] = {}
        self.custom_data: dict[str, str] = {}
        self._damage: list[str] = []
        self._expected: Counter[str] = Counter()
        self._expected_ns = 0
        self._recovered: str | None = None
        self._compressed = False
        self._files = [McapFile(file) for file in self._find_files(path)]
        self.size = sum(file.size for file in self._files)
        announced: Counter[str] = Counter()
        for file in self._files:
            self._learn_topics(file)
            self._compare_metadata(file)
            for number, count in file.expected.items():
                if number in file.channels:
                    announced[self._names[file.channels[number].topic]] += count
        self._expected |= announced
        if all(file.channels for file in self._files):
            self._names.check(self.types, self._expected)
        spans = [file.span for file in self._files if file.span]
        if spans and len(spans) == len(self._files):
            self._expected_ns = max(self._expected_ns, max(s[1] for s in spans) - min(s[0] for s in spans))

    def blocks(self) -> Iterator[dict[str, Block]]:
        """Yield the messages by topic, block by block, in the order of the files.

        Warns:
            IncompleteWarning: At the end, if messages are missing.
        """
        counts: Counter[str] = Counter()
        first, last = 2**63 - 1, 0
        order_filter = _OrderFilter()
        for file in self._files:
            for block in file.blocks():
                self._learn_topics(file)
                if self._compressed:
                    block = decompressed(block, self._damage)
                    if not len(block.start):
                        continue
                first, last = min(first, int(block.log_time.min())), max(last, int(block.log_time.max()))
                by_topic: dict[str, Indices] = {}
                # Channel numbers have two bytes. numpy sorts such integers by counting.
                order = np.argsort(block.channel.astype(np.uint16), kind="stable")
                numbers, starts = np.unique(block.channel[order], return_index=True)
                for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
                    topic = self._names[file.channels[number].topic]
                    if topic in by_topic:
                        # A topic has two channels if its publisher was restarted.
                        rows = np.sort(np.concatenate([by_topic[topic], rows]))
                    by_topic[topic] = rows
                parts = order_filter.filter({topic: block.rows(rows) for topic, rows in by_topic.items()})
                counts.update({topic: len(part.start) for topic, part in parts.items()})
                yield {topic: part for topic, part in parts.items() if len(part.start)}
            self._learn_topics(file)
        self._names.check(self.types, counts)
        if self._recovered is None:
            self._recovered = self._describe_losses(counts, max(0, last - first), order_filter.misplaced)
            if self._recovered:
                warn_incomplete(f"{self.path}: {self._recovered}")

    def expected(self, topic: str) -> int:
        """Return the number of messages of a topic according to the writer."""
        return self._expected[topic]

    @property
    def position(self) -> int:
        """Number of bytes read so far."""
        return sum(file.position for file in self._files)

    @cached_property
    def messages(self) -> dict[str, list[Message]]:
        """Topic to all of its messages, in the order of the file."""
        messages: dict[str, list[Message]] = {}
        for block in self.blocks():
            for topic, part in block.items():
                messages.setdefault(topic, []).extend(part.messages())
        return messages | {topic: [] for topic in self.types if topic not in messages}

    @property
    def recovered(self) -> str:
        """Description of missing and recovered data; empty for a complete bag."""
        if self._recovered is None:
            for _block in self.blocks():
                pass
        return self._recovered or ""

    def _describe_losses(self, counts: Counter[str], span_ns: int, misplaced: int) -> str:
        """Describe the missing data, given the number of messages per topic and their time span [ns]."""
        reasons = list(self._damage)
        if misplaced:
            where = "some parts are swapped or duplicated"
            reasons.append(f"{misplaced} messages are out of order and not used: {where}")
        for file in self._files:
            places = file.damage[:3] + [f"{len(file.damage) - 3} more places"] * (len(file.damage) > 3)
            if not file.finished:
                places = places or ["its recorder was stopped before it closed the file"]
                reasons.append(f"{file.path.name} ({file.size} bytes): {'; '.join(places)}")
        total, expected = counts.total(), self._expected.total()
        if expected > total and not reasons:
            reasons.append("messages that its recorder counted are missing")
        if not reasons:
            return ""
        recovered = f"recovered {total} whole messages over {1e-9 * span_ns:.3f} s"
        if expected > total:
            recovered += f", of {expected} over {1e-9 * max(span_ns, self._expected_ns):.3f} s"
            if self._expected[JOINT_STATES]:
                recovered += f" ({counts[JOINT_STATES]} of {self._expected[JOINT_STATES]} on {JOINT_STATES})"
        elif total and expected == total:
            recovered += ", all that were counted"
        elif misplaced or self._damage or any(file.damage for file in self._files):
            expected = total + 1
        if expected > total:
            recovered += ". The rest is left out. If you have an intact copy of the bag, read that"
        return f"{'; '.join(reasons)}; {recovered}"

    def _learn_topics(self, file: McapFile) -> None:
        """Add the topics of a file."""
        for channel in file.channels.values():
            topic = self._names[channel.topic]
            if topic not in self.types:
                schema = file.schemas.get(channel.schema_id)
                self.types[topic] = schema.name if schema else ""
                self.channel_metadata[topic] = dict(channel.metadata)

    def _compare_metadata(self, file: McapFile) -> None:
        """Read the custom data of a finished file and compare them with metadata.yaml.

        metadata.yaml may be damaged, missing or from another bag.
        """
        try:
            inner = yaml_value(file.metadata.get("rosbag2", {}).get("serialized_metadata", "{}"))
            custom = {str(k): str(v) for k, v in (inner.get("custom_data") or {}).items()}
        except Exception as error:
            self._damage.append(f"the description of the run in {file.path.name} is damaged ({type(error).__name__})")
            return
        self._read_compression(inner)
        if inner and self.custom_data and custom != self.custom_data:
            self._damage.append(f"metadata.yaml and {file.path.name} describe the run differently")
        self.custom_data = custom or self.custom_data

    def _read_compression(self, information: Mapping[str, Any]) -> None:
        """Learn from rosbag2's description whether each message is compressed.

        Raises:
            RecordingError: The messages are compressed with another program than zstd.
        """
        program = str(information.get("compression_format") or "")
        if str(information.get("compression_mode") or "").upper() != "MESSAGE" or not program:
            return
        if program != "zstd":
            raise RecordingError(
                "messages are read if they are compressed with zstd; convert the bag with `ros2 bag convert`",
                f"{self.path}: compression_format",
                program,
            )
        self._compressed = True

    def _find_files(self, path: Path) -> list[Path]:
        if path.is_file():
            return [path]
        if not path.is_dir():
            check_readable(path, RecordingError)
            raise RecordingError("neither a bag directory nor an .mcap file", path)
        files = sorted(path.glob("*.mcap"), key=lambda f: (len(f.name), f.name))
        if (path / "metadata.yaml").exists():
            self._read_metadata(path / "metadata.yaml", files)
        if not files:
            entries = ", ".join(sorted(entry.name for entry in path.iterdir())) or "nothing"
            hint = "; sqlite3 bags: ros2 bag convert them to mcap" if list(path.glob("*.db3*")) else name_one(path)
            for program in COMPRESSED.values():
                if list(path.glob(f"*.mcap.{program}")):
                    hint = f"; decompress them with `{program} -d {path}/*.mcap.{program}`"
            raise RecordingError(f"a bag directory contains .mcap files; found {entries}{hint}", path)
        return files

    def _read_metadata(self, path: Path, files: list[Path]) -> None:
        """Read ``metadata.yaml`` and check that its files exist; all other data are in the .mcap files."""
        try:
            information = _information(path)
            named = [Path(name).name for name in information["relative_file_paths"]]
            counts = _counts(information)
            span_ns = int(information["duration"]["nanoseconds"])
            custom = {str(k): str(v) for k, v in (information.get("custom_data") or {}).items()}
        except Exception as error:
            # Damaged text raises exceptions of any type, depending on the parser.
            why = " ".join(str(error).split())
            self._damage.append(f"{path.name} is damaged ({type(error).__name__}: {why})")
            return
        self._read_compression(information)
        self.custom_data, self._expected_ns = custom, span_ns
        self._expected = Counter({self._names[topic]: count for topic, count in counts.items()})
        present = {file.name for file in files}
        self._damage += [f"{name} is missing" for name in named if name.endswith(".mcap") and name not in present]
        files.sort(key=lambda file: named.index(file.name) if file.name in named else len(named))
