"""Write MCAP files that are complete at every moment, and read damaged or unfinished ones.

The ``mcap`` package implements the format. :class:`LiveFile` writes the output of its ``Writer`` to the disk so that
the file is complete after every step. :class:`McapFile` reads all undamaged data and reports the damage.
"""

from __future__ import annotations

import io
import os
import queue
import struct
import tempfile
import threading
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import zstandard
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
"""Number of blocks that are read in advance."""
WINDOW = 1 << 20
"""Bytes per read."""
BLOCK = 4 << 20
"""Bytes of messages per block."""
_HEAD = struct.Struct("<BQ")
_LARGEST = 1 << 32
"""Upper limit for the size of a chunk [bytes]; a larger length is damage."""
_SIGNATURES = tuple(struct.pack("<I", len(name)) + name for name in (b"zstd", b"lz4"))
"""Bytes at offset :data:`_SIGNATURE_AT` in the record of a compressed chunk."""
_SIGNATURE_AT = 37
COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
"""First bytes of a compressed file to the program that decompresses it."""
_NO_RECORD = "it is not a record"


def _ending() -> bytes:
    """Return the end of a file without summary, which the format allows; readers then scan the file."""
    out: Any = RecordBuilder()
    DataEnd(data_section_crc=0).write(out)
    Footer(summary_start=0, summary_offset_start=0, summary_crc=0).write(out)
    return bytes(out.end()) + MCAP0_MAGIC


class LiveFile(io.BytesIO):
    """Stream for ``mcap.writer.Writer`` that buffers data until :meth:`save` and counts positions as in the file.

    :meth:`save` writes the data and a provisional ending at once; the next call overwrites this ending. The file is
    therefore readable whenever its writer is killed. The page cache survives a killed process, so no sync is needed.

    Args:
        path: The file to create; it must not exist.
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
        """Write the data since the last call, and the provisional ending."""
        self._write(self._ending)

    def finish(self) -> None:
        """Write the remaining data; the ``Writer`` has already added the ending."""
        self._write(b"")
        self._disk.truncate(self._start)

    def close(self) -> None:
        """Close the file in its present state."""
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
    """List of chunk indexes for ``mcap.writer.Writer`` that stores its entries in a file.

    The ``Writer`` needs all indexes at the end. Ten chunks per second with about twenty topics each would take 50 MB
    of objects per hour. The list stores them in the format of the bag, in a temporary file without a name.

    Args:
        folder: Folder of that file; the folder of the bag has enough space.

    Raises:
        OSError: The file cannot be written.
    """

    _PACK = 1 << 16

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it closes with the list
        self._open: Any = RecordBuilder()  # half of its methods are untyped

    def append(self, index: Any) -> None:
        """Store one ``ChunkIndex``."""
        index.write(self._open)
        if self._open.count > self._PACK:
            self._file.write(self._open.end())

    def close(self) -> None:
        """Close the temporary file; the list is unusable afterwards."""
        # On a full disk, buffered data cannot be written; they are no longer needed.
        with suppress(OSError):
            self._file.close()

    def __iter__(self) -> Iterator[Any]:
        """Yield objects that write the indexes in order."""
        self._file.write(self._open.end())
        self._file.seek(0)
        while records := self._file.read(self._PACK):
            yield _SerializedIndexes(records)


@dataclass(frozen=True)
class _SerializedIndexes:
    """Records in the format of the file."""

    records: bytes

    def write(self, builder: RecordBuilder) -> None:
        """Append the records to a builder."""
        builder.write(self.records)


@dataclass(frozen=True, eq=False)
class Block:
    """Properties and byte offsets of n messages, in the order of the file.

    Attributes:
        data: Bytes that contain all messages, followed by padding.
        channel, sequence, log_time, publish_time: (n,) each.
        start, size: (n,) offset and size of each message in ``data``.
    """

    data: NDArray[np.uint8]
    channel: Integers
    sequence: Integers
    log_time: Integers
    publish_time: Integers
    start: Integers
    size: Integers

    def rows(self, rows: Indices) -> Block:
        """Return the selected messages."""
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


def decompressed(block: Block, damage: list[str]) -> Block:
    """Return the messages of a block that rosbag2 compressed one by one with zstd; damaged ones are left out.

    Args:
        block: Messages, each a frame of zstd.
        damage: Receives the number of damaged messages.
    """
    decompressor, raw = zstandard.ZstdDecompressor(), block.data.data
    parts: list[bytes] = []
    valid: list[int] = []
    for k, (at, size) in enumerate(zip(block.start.tolist(), block.size.tolist(), strict=True)):
        frame = raw[at : at + size]
        # A damaged length would allocate its memory.
        with suppress(zstandard.ZstdError):
            if 0 <= zstandard.frame_content_size(frame) < _LARGEST:
                parts.append(decompressor.decompress(frame))
                valid.append(k)
    if len(valid) < len(block.start):
        damage.append(f"{len(block.start) - len(valid)} compressed messages are damaged")
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    data = np.frombuffer(b"".join([*parts, bytes(PADDING)]), dtype=np.uint8)
    return replace(block.rows(np.array(valid, dtype=np.intp)), data=data, start=np.cumsum(sizes) - sizes, size=sizes)


class _NotARecordError(Exception):
    """Error for bytes that are not a record."""


class _EndOfFileError(_NotARecordError):
    """Report that the file ends within or before a record."""


@dataclass
class _Batch:
    """Part of a file that is processed at once.

    Attributes:
        parts: Records, as bytes.
        damage: Descriptions of damage since the previous batch.
        end: Number of bytes of the file read so far.
    """

    parts: list[bytes] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    end: int = 0


class McapFile:
    """Read an MCAP file, finished or not: its undamaged messages block by block, and descriptions of the damage.

    Every chunk is compared with its checksum. After damage, reading continues at the next chunk that can be found.

    Attributes:
        path, size: The file and its size [bytes].
        position: Number of bytes read so far.
        schemas: Schema id to schema, as far as the file has been read.
        channels: Channel id to channel, as far as the file has been read; complete if the file has a summary.
        metadata: Name to content of the metadata records that were read.
        writer: Library that wrote the file.
        expected: Channel id to number of messages according to the writer; empty if unknown.
        span: First and last log time according to the writer [ns]; None if unknown.
        damage: Position and description of each damage.

    Raises:
        RecordingError: The file does not exist, or is not an MCAP file.
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
                content = f"starts with {head!r}" if head else "is empty (0 bytes)"
                program = next((name for mark, name in COMPRESSED.items() if head.startswith(mark)), "")
                expected = "runs and bags are folders, .mcap or .npz files"
                if program:
                    expected = f"it is compressed: decompress it with `{program} -d {path}`"
                raise RecordingError(f"not an MCAP file: it {content}; {expected}", path)
            self._read_summary()

    @contextmanager
    def _opened(self) -> Iterator[None]:
        try:
            if self.path.exists() and not self.path.is_file():
                # Opening a pipe without a writer would block.
                raise RecordingError("not a regular file, but a folder, pipe or device", self.path)
            with self.path.open("rb") as self._file:
                self._window, self._window_at = b"", 0
                yield
        except OSError as error:
            raise RecordingError(f"cannot be read ({error.strerror or error})", self.path) from error

    @property
    def finished(self) -> bool:
        """Whether the writer closed the file; only then does a bipedsim file contain the metadata of rosbag2."""
        return not self.damage and (self.writer != LIBRARY or "rosbag2" in self.metadata)

    def blocks(self) -> Iterator[Block]:
        """Yield the messages of the file. A thread reads and decompresses in advance."""
        with self._opened(), closing(ahead(self._batches(), AHEAD)) as batches:
            for batch in batches:
                self.damage += batch.damage
                self.position = batch.end
                yield from self._walk(batch.parts)

    def _batches(self) -> Iterator[_Batch]:
        """Yield the records of the file in batches."""
        batch = _Batch()
        for part in self._record_parts(batch):
            batch.parts.append(part)
            if sum(map(len, batch.parts)) >= BLOCK:
                yield replace(batch)
                batch.parts, batch.damage = [], []
        yield batch

    def _read(self, at: int, size: int) -> bytes:
        """Return bytes of the file through a read buffer."""
        if at + size > self.size:
            # This check comes before the read, which would allocate memory for a damaged length.
            raise _EndOfFileError(f"the file ends at byte {self.size} without a footer")
        begin = at - self._window_at
        if begin < 0 or begin + size > len(self._window):
            self._file.seek(at)
            self._window_at, self._window, begin = at, self._file.read(max(size, WINDOW)), 0
        if begin + size > len(self._window):
            raise _EndOfFileError(f"the file ends at byte {self.size} without a footer")
        return self._window[begin : begin + size]

    def _read_summary(self) -> None:
        """Read channels and counts from the summary of a finished file; the data reveal damage later."""
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
            # Nothing in a damaged summary is reliable; the data contain the same information.
            self.schemas, self.channels, self.metadata, self.expected, self.span = {}, {}, {}, {}, None

    def _define(self, opcode: int, content: bytes) -> None:
        """Store the content of a record that is not a message."""
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
            index = MetadataIndex.read(stream)
            self._define(Opcode.METADATA, self._read(index.offset, index.length)[_HEAD.size :])
        elif opcode == Opcode.HEADER:
            _profile, self.writer = astuple(Header.read(stream))
        elif opcode == Opcode.STATISTICS:
            statistics = Statistics.read(stream)
            self.expected = dict(statistics.channel_message_counts)
            self.span = (statistics.message_start_time, statistics.message_end_time)

    def _define_unless_damaged(self, opcode: int, content: bytes, place: str, damage: list[str]) -> None:
        """Store the content of a record, or append a description of its damage."""
        try:
            self._define(opcode, content)
        except Exception as error:
            damage.append(f"{place} is damaged ({_why(error)})")

    def _record_parts(self, batch: _Batch) -> Iterator[bytes]:
        """Yield the records with messages as bytes: one chunk, or several records outside chunks.

        ``batch`` receives the position and the damage.
        """
        at, loose = len(MCAP0_MAGIC), bytearray()
        while True:
            try:
                opcode, content = self._record_at(at)
            except _NotARecordError as error:
                next_chunk = self._next_chunk(at + 1)
                is_end = next_chunk is None and isinstance(error, _EndOfFileError)
                batch.damage.append(str(error) if is_end else f"damaged at byte {at} ({_NO_RECORD})")
                if next_chunk is None:
                    break
                at = next_chunk
                continue
            if opcode in (Opcode.MESSAGE, Opcode.SCHEMA, Opcode.CHANNEL):
                loose += _HEAD.pack(opcode, len(content)) + content
            if loose and (opcode == Opcode.CHUNK or len(loose) >= BLOCK):
                yield bytes(loose)
                loose.clear()
            if opcode == Opcode.CHUNK:
                try:
                    data = _decompressed(content)
                except Exception as error:
                    # Damaged bytes raise exceptions of any type, depending on the decoder.
                    batch.damage.append(f"the chunk at byte {at} is damaged ({_why(error)})")
                else:
                    yield data
            elif opcode == Opcode.DATA_END:
                break
            elif opcode in (Opcode.METADATA, Opcode.HEADER):
                self._define_unless_damaged(opcode, content, f"the record at byte {at}", batch.damage)
            at += _HEAD.size + len(content)
            batch.end = at
        if loose:
            yield bytes(loose)

    def _record_at(self, at: int) -> tuple[int, bytes]:
        """Return opcode and content of the record at byte ``at``.

        Raises:
            _NotARecordError: There is no complete record.
        """
        opcode, length = _HEAD.unpack(self._read(at, _HEAD.size))
        if length > _LARGEST:
            raise _NotARecordError(_NO_RECORD)
        content = self._read(at + _HEAD.size, length)
        if not _is_whole(opcode, content):
            raise _NotARecordError(_NO_RECORD)
        return opcode, content

    def _next_chunk(self, begin: int) -> int | None:
        """Return the position of the next chunk at or after ``begin`` that looks complete; None if there is none."""
        step, overlap = 1 << 20, 64
        for base in range(begin, self.size, step):
            self._file.seek(base)
            raw = self._file.read(step + overlap)
            candidates = [
                at
                for signature in _SIGNATURES
                for at in _occurrences(raw, signature, _SIGNATURE_AT)
                if raw[at] == Opcode.CHUNK
            ]
            for at in sorted(candidates):
                opcode, length = _HEAD.unpack_from(raw, at)
                try:
                    if (
                        opcode == Opcode.CHUNK
                        and length < self.size
                        and _is_whole(opcode, self._read(base + at + _HEAD.size, length))
                    ):
                        return base + at
                except _NotARecordError:
                    continue
        return None

    def _walk(self, parts: list[bytes]) -> Iterator[Block]:
        """Find the messages in records; if chunks do not fit together, parse them one by one."""
        if not parts:
            return
        size = sum(map(len, parts))
        data, at = np.zeros(size + PADDING, dtype=np.uint8), 0
        for part in parts:
            data[at : at + len(part)] = np.frombuffer(part, dtype=np.uint8)
            at += len(part)
        word = words(data)
        n, complete = count_records(data, word, size)
        if not complete and len(parts) > 1:
            for part in parts:
                yield from self._walk([part])
            return
        if not complete:
            self.damage.append(f"records before byte {self.position} are inconsistent")
        table = walk_records(data, word, n)
        message = table[0] == Opcode.MESSAGE
        others = table[:, ~message]
        for opcode, start, size in zip(*(row.tolist() for row in others[[0, 5, 6]]), strict=True):
            place = f"a record before byte {self.position}"
            self._define_unless_damaged(opcode, data[start : start + size].tobytes(), place, self.damage)
        table = table[1:, message] if others.size else table[1:]
        known = np.isin(table[0], list(self.channels))
        if not known.all():
            self.damage.append(f"{(~known).sum()} messages before byte {self.position} have an unknown topic")
            table = table[:, known]
        if table.shape[1]:
            yield Block(data, *table)


def ahead(items: Iterator[Item], n: int) -> Generator[Item, None, None]:
    """Yield ``items`` with up to ``n`` produced in advance by a thread; reading and decompressing release the GIL."""
    items_queue: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(n)
    stopped = threading.Event()

    def put(item: Item | None, error: BaseException | None = None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                items_queue.put((item, error), timeout=0.1)
                return

    def produce() -> None:
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=produce, name="reads ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = items_queue.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        stopped.set()
        thread.join()


def _decompressed(content: bytes) -> bytes:
    """Return the records in a chunk record; raise an exception of any type if they are damaged."""
    chunk = Chunk.read(ReadDataStream(io.BytesIO(content)))
    stream, size = get_chunk_data_stream(chunk, validate_crc=True)
    return bytes(stream.read(size))


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


def _occurrences(raw: bytes, pattern: bytes, offset: int) -> Iterator[int]:
    """Yield the position of everything that has ``pattern`` at this offset."""
    at = raw.find(pattern, offset)
    while at >= 0:
        yield at - offset
        at = raw.find(pattern, at + 1)


def _is_whole(opcode: int, content: bytes) -> bool:
    """Return whether the lengths in a record are consistent; all other content has checksums or is irrelevant."""
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
    # The format reserves opcodes from 0x80 on for applications.
    return opcode in known or opcode >= 0x80
