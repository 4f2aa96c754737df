"""MCAP files at the moments that the ``mcap`` package leaves to its user: while one is written, and after damage.

The format itself is the package's. :class:`LiveFile` carries what its ``Writer`` makes to the disk such that the file
is whole after every step; :class:`McapFile` reads what is whole, and says what is not.
"""

from __future__ import annotations

import io
import os
import queue
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from mcap.data_stream import ReadDataStream, RecordBuilder
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, DataEnd, Footer, Header, Message, Metadata, MetadataIndex, Schema, Statistics
from mcap.stream_reader import CRCValidationError, get_chunk_data_stream
from mcap.writer import MCAP0_MAGIC
from numpy.typing import NDArray

from bipedsim.errors import RecordingError
from bipedsim.numerics import Indices, Integers
from bipedsim.recording.bag.kernels import PADDING, count_records, walk_records, words

Item = TypeVar("Item")
LIBRARY = "bipedsim"
AHEAD = 2
"""Blocks that may wait, read, to be handled."""
PATIENCE = 0.2
"""How often a file that is being written is looked at [s]."""
WINDOW = 1 << 20
"""Bytes that are read at once."""
BLOCK = 4 << 20
"""Bytes of messages that are handled at once."""
_HEAD = struct.Struct("<BQ")
_LARGEST = 1 << 32
"""No chunk is larger [bytes]."""
_SIGNATURES = tuple(struct.pack("<I", len(name)) + name for name in (b"zstd", b"lz4"))
"""What is at byte :data:`_SIGNATURE_AT` of the record of a compressed chunk."""
_SIGNATURE_AT = 37


def _ending() -> bytes:
    """Return the end of a file that has no summary, which the format allows: readers scan the file instead."""
    out: Any = RecordBuilder()
    DataEnd(data_section_crc=0).write(out)
    Footer(summary_start=0, summary_offset_start=0, summary_crc=0).write(out)
    return bytes(out.end()) + MCAP0_MAGIC


class LiveFile(io.BytesIO):
    """The stream for ``mcap.writer.Writer``: keeps what is written until :meth:`save`, counts positions as in the file.

    A provisional ending goes to the disk in the same write as the data before it, and the next save writes over it: the
    file can be read whenever its writer dies. The page cache outlives a killed process, so that nothing is synced.

    Args:
        path: The file; it must not exist.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._disk = path.open("xb", buffering=0)
        self._start = 0
        self._ending = _ending()

    def tell(self) -> int:
        """Return the position in the file."""
        return self._start + super().tell()

    def save(self) -> None:
        """Write what came since the last call, and the provisional ending."""
        self._write(self._ending)

    def finish(self) -> None:
        """Write the rest, with which the ``Writer`` has ended the file itself."""
        self._write(b"")
        self._disk.truncate(self._start)

    def close(self) -> None:
        """Let the file go, as it is on the disk."""
        self._disk.close()
        super().close()

    def _write(self, ending: bytes) -> None:
        raw = self.getvalue()
        self.seek(0)
        self.truncate()
        at, view = self._start, memoryview(raw + ending)
        self._start += len(raw)
        while view:
            done = os.pwrite(self._disk.fileno(), view, at)
            at, view = at + done, view[done:]


class SpooledIndexes(list[Any]):
    """The list in which ``mcap.writer.Writer`` gathers the indexes of its chunks until the end, in a file.

    Ten chunks a second with some twenty topics each are 50 MB of objects an hour. Here they wait, written as they will
    stand in the bag, in a file without a name, which nobody has to remove.

    Args:
        folder: Where that file is, as there is room for the bag itself.

    Raises:
        OSError: The file cannot be written.
    """

    _PACK = 1 << 16

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it closes with the list
        self._open: Any = RecordBuilder()  # half of its methods are untyped

    def append(self, index: Any) -> None:
        """Keep one ``ChunkIndex``."""
        index.write(self._open)
        if self._open.count > self._PACK:
            self._file.write(self._open.end())

    def close(self) -> None:
        """Let the file go; the list is of no use any more."""
        # On a full disk, what nobody reads cannot be written either.
        with suppress(OSError):
            self._file.close()

    def __iter__(self) -> Iterator[Any]:
        """Yield what writes them, in their order."""
        self._file.write(self._open.end())
        self._file.seek(0)
        while records := self._file.read(self._PACK):
            yield _Written(records)


@dataclass(frozen=True)
class _Written:
    """Records as they stand in a file."""

    records: bytes

    def write(self, builder: RecordBuilder) -> None:
        """Append them to what is being built."""
        builder.write(self.records)


@dataclass(frozen=True, eq=False)
class Block:
    """n messages in the order of the file: what is known of each, and where its bytes are.

    Attributes:
        data: Bytes of all of them, among others; a few more follow them.
        channel, sequence, log_time, publish_time: (n,) each.
        start, size: (n,) place of each message in ``data``.
    """

    data: NDArray[np.uint8]
    channel: Integers
    sequence: Integers
    log_time: Integers
    publish_time: Integers
    start: Integers
    size: Integers

    def rows(self, rows: Indices) -> Block:
        """Return some of the messages."""
        fields = (self.channel, self.sequence, self.log_time, self.publish_time, self.start, self.size)
        return Block(self.data, *(values[rows] for values in fields))

    def messages(self) -> list[Message]:
        """Return the messages one by one."""
        fields = (self.channel, self.sequence, self.log_time, self.publish_time, self.start, self.size)
        raw = self.data.data
        return [
            Message(channel, log_time, bytes(raw[at : at + size]), publish_time, sequence)
            for channel, sequence, log_time, publish_time, at, size in zip(*(f.tolist() for f in fields), strict=True)
        ]


class _BrokenError(Exception):
    """Bytes that are no record."""


@dataclass
class _Batch:
    """Bytes of a file that are handled at once.

    Attributes:
        parts: Records, as bytes.
        damage: What was found damaged since the batch before.
        end: Bytes of the file that have been read.
    """

    parts: list[bytes] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    end: int = 0


class McapFile:
    """An MCAP file, finished or not: its whole messages, block by block, and what became of the others.

    Every chunk is checked against its checksum. Behind damage reading goes on at the next chunk that can be found.

    Attributes:
        path, size: The file, and its bytes.
        position: Bytes that have been read.
        schemas: Schema id to schema, as far as it has been read.
        channels: Channel id to channel, as far as it has been read; all of them if the file has a summary.
        metadata: Named metadata records that were read.
        writer: Library that wrote the file.
        expected: Channel id to the number of its messages, as the writer counted them; empty if the file does not say.
        span: First and last log time [ns], as the writer counted them; None if the file does not say.
        damage: Where bytes are damaged, and how, in words.

    Raises:
        RecordingError: The file is missing, or is no MCAP file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schemas: dict[int, Schema] = {}
        self.channels: dict[int, Channel] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self.writer = ""
        self.expected: dict[int, int] = {}
        self.span: tuple[int, int] | None = None
        self.damage: list[str] = []
        self.position = 0
        with self._opened():
            self.size = os.fstat(self._file.fileno()).st_size
            head = self._file.read(len(MCAP0_MAGIC))
            if head != MCAP0_MAGIC and head and self._next_chunk(0) is not None:
                self.damage.append("its first bytes are damaged")
            elif head != MCAP0_MAGIC:
                found = f"starts with {head!r}" if head else "is empty (0 bytes)"
                taken = "runs and bags are folders, .mcap or .npz files"
                raise RecordingError(f"{path}: not an MCAP file: it {found}; {taken}")
            self._read_summary()

    @contextmanager
    def _opened(self) -> Iterator[None]:
        try:
            if self.path.exists() and not self.path.is_file():
                # A pipe that nobody writes to would be waited for.
                raise RecordingError(f"{self.path}: no regular file, but a folder, pipe or device")
            with self.path.open("rb") as self._file:
                self._window, self._window_at = b"", 0
                yield
        except OSError as error:
            raise RecordingError(f"{self.path}: cannot be read ({error.strerror or error})") from error

    @property
    def finished(self) -> bool:
        """Whether the writer closed the file: only then does one of ours hold the metadata of rosbag2."""
        return not self.damage and (self.writer != LIBRARY or "rosbag2" in self.metadata)

    def blocks(self, grows: Callable[[], bool] | None = None) -> Iterator[Block]:
        """Yield the messages of the file, which a thread reads and decompresses ahead.

        Args:
            grows: Whether it is still being written, so that more is waited for; None: it is not.
        """
        with self._opened(), closing(ahead(self._batches(grows), AHEAD)) as batches:
            for batch in batches:
                self.damage += batch.damage
                self.position = batch.end
                yield from self._walk(batch.parts)

    def _batches(self, grows: Callable[[], bool] | None) -> Iterator[_Batch]:
        """Yield what is handled at once."""
        batch = _Batch()
        for part in self._parts(batch, grows):
            batch.parts.append(part)
            if sum(map(len, batch.parts)) >= BLOCK:
                yield replace(batch)
                batch.parts, batch.damage = [], []
        yield batch

    def _read(self, at: int, size: int) -> bytes:
        """Return bytes of the file; those beside them are kept at hand."""
        if at + size > self.size:
            # Not before: whoever asks for more than there is gets memory for all of it.
            raise _BrokenError(f"the file ends at byte {self.size} without a footer")
        begin = at - self._window_at
        if begin < 0 or begin + size > len(self._window):
            self._file.seek(at)
            self._window_at, self._window, begin = at, self._file.read(max(size, WINDOW)), 0
        if begin + size > len(self._window):
            raise _BrokenError(f"the file ends at byte {self.size} without a footer")
        return self._window[begin : begin + size]

    def _wait_for_more(self) -> None:
        time.sleep(PATIENCE)
        self._look_again()

    def _look_again(self) -> None:
        self._window, self.size = b"", os.fstat(self._file.fileno()).st_size

    def _read_summary(self) -> None:
        """Take channels and counts from the end of the file, where a finished one repeats them; damage is met later."""
        try:
            tail = self._read(self.size - 37, 37)
            opcode, length = _HEAD.unpack_from(tail)
            start, _offsets, crc = struct.unpack_from("<QQI", tail, 9)
            if (opcode, length) != (Opcode.FOOTER, 20) or tail[29:] != MCAP0_MAGIC or not 0 < start < self.size:
                return
            raw = self._read(start, self.size - 37 - start)
            if crc and zlib.crc32(raw + tail[:25]) != crc:
                return
            for opcode, content in _records(raw):
                self._define(opcode, content)
        except Exception:
            # Of a damaged summary nothing is believed; the data say it again.
            self.schemas, self.channels, self.metadata, self.expected, self.span = {}, {}, {}, {}, None

    def _define(self, opcode: int, content: bytes) -> None:
        """Keep what a record other than a message says."""
        stream: Any = ReadDataStream(io.BytesIO(content))
        if opcode == Opcode.SCHEMA:
            schema = Schema.read(stream)
            self.schemas[schema.id] = schema
        elif opcode == Opcode.CHANNEL:
            channel = Channel.read(stream)
            self.channels[channel.id] = channel
        elif opcode == Opcode.METADATA:
            metadata = Metadata.read(stream)
            self.metadata[metadata.name] = metadata.metadata
        elif opcode == Opcode.METADATA_INDEX:
            place = MetadataIndex.read(stream)
            self._define(Opcode.METADATA, self._read(place.offset, place.length)[_HEAD.size :])
        elif opcode == Opcode.HEADER:
            _profile, self.writer = astuple(Header.read(stream))
        elif opcode == Opcode.STATISTICS:
            counted = Statistics.read(stream)
            self.expected = dict(counted.channel_message_counts)
            self.span = (counted.message_start_time, counted.message_end_time)

    def _parts(self, batch: _Batch, grows: Callable[[], bool] | None) -> Iterator[bytes]:
        """Yield the records that hold messages, as bytes: a chunk at a time, or some that are in no chunk.

        How far it has come, and what is damaged, is noted in ``batch``.
        """
        at, loose = len(MCAP0_MAGIC), bytearray()
        growing = grows is not None
        while True:
            if growing and grows is not None and not grows():
                # What was not whole when it was read may be now.
                growing = False
                self._look_again()
            why = "it is no record"
            try:
                opcode, length = _HEAD.unpack(self._read(at, _HEAD.size))
                if length > _LARGEST:
                    raise _BrokenError(why)
                content = self._read(at + _HEAD.size, length)
                if not _is_whole(opcode, content):
                    raise _BrokenError(why)
                if growing and opcode == Opcode.DATA_END:
                    raise _BrokenError(why)
            except _BrokenError as error:
                if growing:
                    self._wait_for_more()
                    continue
                behind = self._next_chunk(at + 1)
                why = str(error) if behind is None else why
                batch.damage.append(why if why.startswith("the file") else f"damaged at byte {at} ({why})")
                if behind is None:
                    break
                at = behind
                continue
            if opcode in (Opcode.MESSAGE, Opcode.SCHEMA, Opcode.CHANNEL):
                loose += _HEAD.pack(opcode, length) + content
            if loose and (opcode == Opcode.CHUNK or len(loose) >= BLOCK):
                yield bytes(loose)
                loose.clear()
            if opcode == Opcode.CHUNK:
                try:
                    chunk = Chunk.read(ReadDataStream(io.BytesIO(content)))
                    stream, size = get_chunk_data_stream(chunk, validate_crc=True)
                    yield stream.read(size)
                except GeneratorExit:
                    raise
                except Exception as error:
                    if growing:
                        # Read while it was written.
                        self._wait_for_more()
                        continue
                    # Damaged bytes raise whatever the decoder at work raises.
                    batch.damage.append(f"the chunk at byte {at} is damaged ({_why(error)})")
            elif opcode == Opcode.DATA_END:
                break
            elif opcode in (Opcode.METADATA, Opcode.HEADER):
                try:
                    self._define(opcode, content)
                except Exception as error:
                    batch.damage.append(f"the record at byte {at} is damaged ({_why(error)})")
            at += _HEAD.size + length
            batch.end = at
        if loose:
            yield bytes(loose)

    def _next_chunk(self, begin: int) -> int | None:
        """Return where the next chunk begins, from ``begin`` on, that looks whole; None if there is none."""
        step, overlap = 1 << 20, 64
        for base in range(begin, self.size, step):
            self._file.seek(base)
            raw = self._file.read(step + overlap)
            found = [at for s in _SIGNATURES for at in _occurrences(raw, s, _SIGNATURE_AT) if raw[at] == Opcode.CHUNK]
            for at in sorted(found):
                opcode, length = _HEAD.unpack_from(raw, at)
                try:
                    if (
                        opcode == Opcode.CHUNK
                        and length < self.size
                        and _is_whole(opcode, self._read(base + at + _HEAD.size, length))
                    ):
                        return base + at
                except _BrokenError:
                    continue
        return None

    def _walk(self, parts: list[bytes]) -> Iterator[Block]:
        """Find the messages in records; chunks whose records do not fit together are looked at one by one."""
        if not parts:
            return
        size = sum(map(len, parts))
        data, at = np.zeros(size + PADDING, dtype=np.uint8), 0
        for part in parts:
            data[at : at + len(part)] = np.frombuffer(part, dtype=np.uint8)
            at += len(part)
        word = words(data)
        n, whole = count_records(data, word, size)
        if not whole and len(parts) > 1:
            for part in parts:
                yield from self._walk([part])
            return
        if not whole:
            self.damage.append(f"records before byte {self.position} do not fit together")
        table = walk_records(data, word, n)
        message = table[0] == Opcode.MESSAGE
        others = table[:, ~message]
        for opcode, start, size in zip(*(row.tolist() for row in others[[0, 5, 6]]), strict=True):
            try:
                self._define(opcode, data[start : start + size].tobytes())
            except Exception as error:
                self.damage.append(f"a record before byte {self.position} is damaged ({_why(error)})")
        table = table[1:, message] if others.size else table[1:]
        known = np.isin(table[0], list(self.channels))
        if not known.all():
            self.damage.append(f"{(~known).sum()} messages before byte {self.position} are of no known topic")
            table = table[:, known]
        if table.shape[1]:
            yield Block(data, *table)


def ahead(items: Iterator[Item], n: int) -> Generator[Item, None, None]:
    """Yield ``items``, which a thread gets up to ``n`` ahead: reading and decompressing leave Python to others."""
    waiting: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(n)
    stopped = threading.Event()

    def put(item: Item | None, error: BaseException | None = None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                waiting.put((item, error), timeout=0.1)
                return

    def get_them() -> None:
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=get_them, name="reads ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        stopped.set()
        thread.join()


def _why(error: Exception) -> str:
    if isinstance(error, CRCValidationError):
        return "its checksum does not match"
    return f"{type(error).__name__}: {error}"


def _records(raw: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(raw):
        opcode, length = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        yield opcode, raw[at : at + length]
        at += length


def _occurrences(raw: bytes, what: bytes, least: int) -> Iterator[int]:
    """Yield where what has ``what`` at its byte ``least`` begins."""
    at = raw.find(what, least)
    while at >= 0:
        yield at - least
        at = raw.find(what, at + 1)


def _is_whole(opcode: int, content: bytes) -> bool:
    """Return whether the lengths in a record agree with its own: what else is in it has checksums, or no meaning."""
    n = len(content)
    if opcode == Opcode.CHUNK:
        if n < 40:
            return False
        name = int.from_bytes(content[28:32], "little")
        at = 32 + name
        return name < 16 and at + 8 <= n and at + 8 + int.from_bytes(content[at : at + 8], "little") == n
    if opcode == Opcode.MESSAGE_INDEX:
        return n >= 6 and 6 + int.from_bytes(content[2:6], "little") == n
    if opcode == Opcode.DATA_END:
        return n == 4
    if opcode == Opcode.MESSAGE:
        return n >= 22
    known = (Opcode.HEADER, Opcode.SCHEMA, Opcode.CHANNEL, Opcode.ATTACHMENT, Opcode.METADATA)
    # The format leaves those from 0x80 on to whoever wants them.
    return opcode in known or opcode >= 0x80
