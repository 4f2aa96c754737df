"""MCAP files at the moments that the ``mcap`` package leaves to its user: while one is written, and after damage.

The format itself is the package's. :class:`LiveFile` carries what its ``Writer`` makes to the disk such that the file
is whole after every step; :func:`read_mcap` keeps what its ``StreamReader`` gave before it met damage.
"""

from __future__ import annotations

import io
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mcap.data_stream import RecordBuilder
from mcap.exceptions import EndOfFile
from mcap.records import Channel, DataEnd, Footer, Header, Message, Metadata, Schema
from mcap.stream_reader import CRCValidationError, StreamReader
from mcap.writer import MCAP0_MAGIC

from bipedsim.errors import RecordingError

LIBRARY = "bipedsim"


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
        """Write the rest, with which the ``Writer`` has ended the file itself, and close it."""
        self._write(b"")
        self._disk.truncate(self._start)
        self._disk.close()

    def _write(self, ending: bytes) -> None:
        raw = self.getvalue()
        self.seek(0)
        self.truncate()
        at, view = self._start, memoryview(raw + ending)
        self._start += len(raw)
        while view:
            done = os.pwrite(self._disk.fileno(), view, at)
            at, view = at + done, view[done:]


@dataclass
class McapContents:
    """What :func:`read_mcap` found.

    Attributes:
        schemas: Schema id to schema.
        channels: Channel id to channel.
        messages: Channel id to its messages, in the order of the file.
        metadata: Named metadata records.
        writer: Library that wrote the file.
        damage: Why reading stopped before the end of the data; empty when it did not.
    """

    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    messages: dict[int, list[Message]] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    writer: str = ""
    damage: str = ""

    @property
    def finished(self) -> bool:
        """Whether the writer closed the file: only then does one of ours hold the metadata of rosbag2."""
        return not self.damage and (self.writer != LIBRARY or "rosbag2" in self.metadata)


def read_mcap(path: Path) -> McapContents:
    """Read every whole chunk of an MCAP file, finished or not, without trusting its index.

    Raises:
        RecordingError: The file is missing, or is no MCAP file.
    """
    out = McapContents()
    try:
        file = path.open("rb")
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror})") from error
    with file:
        head = file.read(len(MCAP0_MAGIC))
        if head != MCAP0_MAGIC:
            found = f"starts with {head!r}" if head else "is empty (0 bytes)"
            raise RecordingError(f"{path}: not an MCAP file: it {found}")
        whole = False
        try:
            for record in StreamReader(file, skip_magic=True, validate_crcs=True).records:
                if isinstance(record, Message):
                    # A message of an unknown channel is damage too: a KeyError.
                    out.messages[out.channels[record.channel_id].id].append(record)
                elif isinstance(record, Channel):
                    out.channels[record.id] = record
                    out.messages.setdefault(record.id, [])
                elif isinstance(record, Schema):
                    out.schemas[record.id] = record
                elif isinstance(record, Metadata):
                    out.metadata[record.name] = record.metadata
                elif isinstance(record, Header):
                    out.writer = asdict(record)["library"]
                elif isinstance(record, DataEnd):
                    whole = True
        except Exception as error:
            # Damaged bytes raise whatever the decoder at work raises: struct, zstd and UTF-8 have errors of their own.
            out.damage = "" if whole else _damage(error, file.tell())
    return out


def _damage(error: Exception, at: int) -> str:
    if isinstance(error, EndOfFile):
        return f"the file ends at byte {at} without a footer"
    why = "its checksum does not match" if isinstance(error, CRCValidationError) else f"{type(error).__name__}: {error}"
    return f"the record before byte {at} is damaged ({why})"
