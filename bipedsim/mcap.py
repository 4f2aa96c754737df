"""The MCAP container, written so that a file is worth reading at whatever moment its writer died.

Why not a library: the writer of ``rosbags`` closes a chunk every MiB, seconds apart at low rates, and the one of
``mcap`` can flush a chunk but writes the summary only once, at the end, so a killed recorder leaves a file that
index-based readers refuse. Here every chunk is followed, in the same write, by a complete summary, footer and magic,
which the next chunk overwrites: the file on disk is a finished MCAP file after every flush. The rest of the format is a
dozen records (https://mcap.dev/spec), read and written with ``struct``.

Chunks carry a CRC and are compressed with zstd where Python has it. A killed process loses the chunk in the making and
nothing else; the page cache belongs to the kernel, so no fsync is needed unless the machine itself dies.
"""

from __future__ import annotations

import importlib
import mmap
import struct
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bipedsim.errors import RecordingError

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = 0x0B, 0x0C, 0x0D, 0x0E, 0x0F

# A provisional summary is written with every chunk: beyond this size its chunk index is left out, and readers scan.
MAX_PROVISIONAL_INDEX = 1 << 20

_MESSAGE_HEAD = struct.Struct("<BQHIQQ")
_RECORD_HEAD = struct.Struct("<BQ")


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<I", len(raw)) + raw


def _string_map(values: Mapping[str, str]) -> bytes:
    body = b"".join(_string(k) + _string(v) for k, v in values.items())
    return struct.pack("<I", len(body)) + body


def _record(opcode: int, body: bytes) -> bytes:
    return _RECORD_HEAD.pack(opcode, len(body)) + body


def _zstd() -> Any:
    """Return a module with ``compress`` and ``decompress``: of Python 3.14, its backport or zstandard, else None."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


@dataclass
class PendingChunk:
    """Messages that wait to be written, with all that the writing thread needs to know about them."""

    records: bytearray = field(default_factory=bytearray)
    index: dict[int, array[int]] = field(default_factory=dict)  # channel: log time, offset, log time, offset, ...
    start: int = 2**63 - 1
    end: int = 0
    definitions: bytes = b""  # schemas and channels known so far, for the summary
    n_schemas: int = 0
    n_channels: int = 0


class McapWriter:
    """Write an MCAP file of profile ``ros2``.

    ``add_*`` and :meth:`detach` belong to one thread, :meth:`write` and :meth:`finish` to one thread, possibly
    another: chunks are handed from one to the other.

    Args:
        path: The file; it must not exist.
        library: What is written into the header as the name of the writer.
        level: zstd level; -1 to 3 are fast enough for a live recording.
    """

    def __init__(self, path: Path, library: str = "bipedsim", level: int = 1) -> None:
        self._file = path.open("xb", buffering=0)
        module = _zstd()
        self.compression = "zstd" if module else ""
        self._compress: Callable[[bytes], bytes] = (lambda raw: module.compress(raw, level)) if module else bytes
        self._schemas: list[bytes] = []
        self._channels: list[bytes] = []
        self._chunk = PendingChunk()
        self._chunk_indexes = bytearray()
        self._n_chunks = 0
        self._definitions = self._definitions_written = (b"", 0, 0)
        self.counts: dict[int, int] = {}
        self.start, self.end = 2**63 - 1, 0
        head = MAGIC + _record(HEADER, _string("ros2") + _string(library))
        self._position = 0
        self._data_end = len(head)
        self._write_at(0, head + self._summary(len(head), with_index=True))

    def add_schema(self, name: str, encoding: str, text: str) -> int:
        """Define a message type; return its id."""
        raw = text.encode()
        number = len(self._schemas) + 1
        body = struct.pack("<H", number) + _string(name) + _string(encoding) + struct.pack("<I", len(raw)) + raw
        self._schemas.append(_record(SCHEMA, body))
        self._chunk.records += self._schemas[-1]
        return number

    def add_channel(self, topic: str, schema: int, metadata: Mapping[str, str]) -> int:
        """Define a topic of serialised CDR messages; return its id."""
        number = len(self._channels) + 1
        body = struct.pack("<HH", number, schema) + _string(topic) + _string("cdr") + _string_map(metadata)
        self._channels.append(_record(CHANNEL, body))
        self._chunk.records += self._channels[-1]
        return number

    def add_message(self, channel: int, log_time: int, publish_time: int, data: bytes, sequence: int = 0) -> None:
        """Append a message to the chunk in the making; times in ns since the epoch."""
        chunk = self._chunk
        index = chunk.index.get(channel)
        if index is None:
            index = chunk.index[channel] = array("Q")
        index.extend((log_time, len(chunk.records)))
        chunk.records += _MESSAGE_HEAD.pack(MESSAGE, 22 + len(data), channel, sequence, log_time, publish_time)
        chunk.records += data
        chunk.start = min(chunk.start, log_time)
        chunk.end = max(chunk.end, log_time)

    @property
    def pending_bytes(self) -> int:
        """Size of the chunk in the making."""
        return len(self._chunk.records)

    def detach(self) -> PendingChunk | None:
        """Take the chunk in the making, to be given to :meth:`write`; None when it is empty."""
        chunk = self._chunk
        if not chunk.records:
            return None
        if self._definitions[1:] != (len(self._schemas), len(self._channels)):
            definitions = b"".join(self._schemas) + b"".join(self._channels)
            self._definitions = (definitions, len(self._schemas), len(self._channels))
        chunk.definitions, chunk.n_schemas, chunk.n_channels = self._definitions
        self._chunk = PendingChunk()
        return chunk

    def write(self, chunk: PendingChunk) -> None:
        """Compress and write a chunk with its index, then a provisional summary."""
        raw = bytes(chunk.records)
        packed = self._compress(raw)
        start = chunk.start if chunk.index else 0
        head = struct.pack("<QQQI", start, chunk.end, len(raw), zlib.crc32(raw)) + _string(self.compression)
        record = _record(CHUNK, head + struct.pack("<Q", len(packed)) + packed)
        out = bytearray(record)
        offsets = bytearray()
        for channel, index in chunk.index.items():
            offsets += struct.pack("<HQ", channel, self._data_end + len(out))
            out += _record(MESSAGE_INDEX, struct.pack("<HI", channel, 8 * len(index)) + index.tobytes())
            self.counts[channel] = self.counts.get(channel, 0) + len(index) // 2
        body = struct.pack("<QQQQI", start, chunk.end, self._data_end, len(record), len(offsets)) + offsets
        body += struct.pack("<Q", len(out) - len(record)) + _string(self.compression)
        self._chunk_indexes += _record(CHUNK_INDEX, body + struct.pack("<QQ", len(packed), len(raw)))
        self._n_chunks += 1
        if chunk.index:
            self.start, self.end = min(self.start, chunk.start), max(self.end, chunk.end)
        self._definitions_written = (chunk.definitions, chunk.n_schemas, chunk.n_channels)
        at, self._data_end = self._data_end, self._data_end + len(out)
        with_index = len(self._chunk_indexes) <= MAX_PROVISIONAL_INDEX
        self._write_at(at, bytes(out) + self._summary(self._data_end, with_index))

    def finish(self, metadata: Mapping[str, Mapping[str, str]]) -> None:
        """Write what is pending, the named metadata records and the final summary, and close the file."""
        chunk = self.detach()
        if chunk is not None:
            self.write(chunk)
        records = b""
        indexes = b""
        for name, values in metadata.items():
            record = _record(METADATA, _string(name) + _string_map(values))
            at = self._data_end + len(records)
            indexes += _record(METADATA_INDEX, struct.pack("<QQ", at, len(record)) + _string(name))
            records += record
        end = self._data_end + len(records)
        self._write_at(self._data_end, records + self._summary(end, True, indexes, len(metadata)))
        self._file.close()

    def _summary(self, at: int, with_index: bool, metadata_indexes: bytes = b"", n_metadata: int = 0) -> bytes:
        """Return all that follows the data section when it ends at ``at``."""
        definitions, n_schemas, n_channels = self._definitions_written
        counts = b"".join(struct.pack("<HQ", c, n) for c, n in sorted(self.counts.items()))
        total = sum(self.counts.values())
        start = self.start if total else 0
        statistics = struct.pack(
            "<QHIIIIQQI", total, n_schemas, n_channels, 0, n_metadata, self._n_chunks, start, self.end, len(counts)
        )
        data_end = _record(DATA_END, struct.pack("<I", 0))
        summary_start = at + len(data_end)
        groups = [
            (CHUNK_INDEX, bytes(self._chunk_indexes) if with_index else b""),
            (METADATA_INDEX, metadata_indexes),
            (STATISTICS, _record(STATISTICS, statistics + counts)),
        ]
        out = bytearray(definitions)
        offsets = b""
        for opcode, body in groups:
            if body:
                offsets += _record(SUMMARY_OFFSET, struct.pack("<BQQ", opcode, summary_start + len(out), len(body)))
            out += body
        offset_start = summary_start + len(out)
        out += offsets
        footer = _RECORD_HEAD.pack(FOOTER, 20) + struct.pack("<QQ", summary_start, offset_start)
        crc = zlib.crc32(footer, zlib.crc32(out))
        return data_end + bytes(out) + footer + struct.pack("<I", crc) + MAGIC

    def _write_at(self, at: int, raw: bytes) -> None:
        self._file.seek(at)
        view = memoryview(raw)
        while view:
            view = view[self._file.write(view) :]
        if at + len(raw) < self._position:
            self._file.truncate(at + len(raw))
        self._position = at + len(raw)


class Message(NamedTuple):
    """One message of a file: channel id, times [ns], serialised data."""

    channel: int
    log_time: int
    publish_time: int
    data: bytes


class ChannelInfo(NamedTuple):
    """What a file says about one topic."""

    topic: str
    msgtype: str
    metadata: dict[str, str]


class _Fields:
    """Read the fields of one record in order."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    def unpack(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.raw, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def string(self) -> str:
        (size,) = self.unpack("I")
        self.at += size
        return self.raw[self.at - size : self.at].decode()

    def string_map(self) -> dict[str, str]:
        (size,) = self.unpack("I")
        end = self.at + size
        values = {}
        while self.at < end:
            key = self.string()
            values[key] = self.string()
        return values


class McapFile:
    """Read every whole message of an MCAP file, finished or not.

    The index is not used: the data section is scanned to its end or to the first damaged byte.

    Attributes:
        channels: Channel id to topic, type and metadata, filled while scanning.
        metadata: Named metadata records, filled while scanning.
        damage: Why the scan stopped early, with the offset; empty when it reached the end of the data.
        finished: The writer closed the file.

    Raises:
        RecordingError: The file is missing, or is no MCAP file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.channels: dict[int, ChannelInfo] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self.damage = ""
        self.library = ""
        self._schemas: dict[int, str] = {}
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                self._data: bytes | mmap.mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        except OSError as error:
            raise RecordingError(f"{path}: cannot be read ({error.strerror})") from error
        if self._data[:8] != MAGIC:
            found = f"starts with {bytes(self._data[:8])!r}" if size else "is empty (0 bytes)"
            raise RecordingError(f"{path}: not an MCAP file: it {found}")

    @property
    def finished(self) -> bool:
        """Whether the writer closed the file: only then does one of ours hold the metadata of rosbag2."""
        return not self.damage and (not self.library.startswith("bipedsim") or "rosbag2" in self.metadata)

    def messages(self) -> Iterator[Message]:
        """Yield the messages in the order of the file."""
        data, at, size = self._data, 8, len(self._data)
        while True:
            if at + 9 > size:
                self.damage = f"the file ends at byte {size} without a footer"
                return
            opcode, length = _RECORD_HEAD.unpack_from(data, at)
            body = data[at + 9 : at + 9 + length]
            if opcode in (DATA_END, FOOTER):
                return
            whole = len(body) == length
            if not whole:
                self.damage = f"the record at byte {at} needs {length} bytes, of which {len(body)} exist"
            try:
                if opcode == CHUNK:
                    yield from self._records(self._unpack_chunk(body, whole))
                elif whole:
                    yield from self._records(data[at : at + 9 + length])
            except (struct.error, UnicodeDecodeError, RecordingError) as error:
                self.damage = self.damage or f"the record at byte {at} is damaged ({error})"
            if self.damage:
                return
            at += 9 + length

    def _unpack_chunk(self, body: bytes, whole: bool) -> bytes:
        fields = _Fields(body)
        _start, _end, size, crc = fields.unpack("QQQI")
        compression = fields.string()
        fields.unpack("Q")
        packed = body[fields.at :]
        raw = _decompress(packed, compression, whole)
        if whole and (len(raw) != size or (crc and zlib.crc32(raw) != crc)):
            raise RecordingError("its checksum does not match")
        return raw

    def _records(self, raw: bytes) -> Iterator[Message]:
        """Yield the whole messages in ``raw`` and take in its definitions."""
        at, size = 0, len(raw)
        while at + 9 <= size:
            opcode, length = _RECORD_HEAD.unpack_from(raw, at)
            end = at + 9 + length
            if end > size:
                return
            if opcode == MESSAGE:
                _op, _n, channel, _sequence, log_time, publish_time = _MESSAGE_HEAD.unpack_from(raw, at)
                if channel not in self.channels:
                    raise RecordingError(f"a message belongs to the undefined channel {channel}")
                yield Message(channel, log_time, publish_time, raw[at + 31 : end])
            else:
                self._define(opcode, _Fields(raw[at + 9 : end]))
            at = end

    def _define(self, opcode: int, fields: _Fields) -> None:
        if opcode == HEADER:
            fields.string()
            self.library = fields.string()
        elif opcode == SCHEMA:
            (number,) = fields.unpack("H")
            self._schemas[number] = fields.string()
        elif opcode == CHANNEL:
            number, schema = fields.unpack("HH")
            topic, _encoding = fields.string(), fields.string()
            self.channels[number] = ChannelInfo(topic, self._schemas.get(schema, ""), fields.string_map())
        elif opcode == METADATA:
            name = fields.string()
            self.metadata[name] = fields.string_map()


def _decompress(packed: bytes, compression: str, whole: bool) -> bytes:
    """Unpack a chunk; of a cut one, as much as its compression gives back."""
    if compression == "":
        return packed
    if compression == "lz4":
        frame = importlib.import_module("lz4.frame")
        return bytes(frame.decompress(packed) if whole else frame.LZ4FrameDecompressor().decompress(packed))
    module = _zstd()
    if compression != "zstd" or module is None:
        raise RecordingError(f"its compression {compression!r} cannot be read here; for zstd: pip install zstandard")
    stream = module.ZstdDecompressor()
    if hasattr(stream, "decompressobj"):
        stream = stream.decompressobj()
    try:
        return bytes(stream.decompress(packed))
    except Exception as error:
        # The three zstd modules have an error class each.
        raise RecordingError(f"its zstd data cannot be unpacked: {error}") from error
