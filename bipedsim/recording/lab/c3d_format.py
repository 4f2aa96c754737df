"""Parse C3D files (https://www.c3d.org): header, parameters, frames of points and analog samples.

Every count is compared with the other counts and with the file length. Contradictions raise an error, because misplaced
samples look like forces. 16-bit words that cannot be negative are unsigned. The header defines the number of analog
samples per frame; the quotient of the rates is not an integer, because rates are rounded to 32-bit floats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array

BLOCK = 512
"""Size of a block [bytes]; header, parameters and data consist of whole blocks."""
KEY = 0x50
"""Second byte of the header and of the parameters."""
INTEL, DEC, SGI = 84, 85, 86
"""Processor types, which define the byte order and the float format."""
LAST = 0xFFFF
"""Largest 16-bit frame number; files with more frames store this value."""
LARGEST = 1e9
"""Upper limit of counts, rates and scales; larger values are damage."""
RAIL = -32000
"""An ANALOG:OFFSET below this value would be an unloaded sample at the end of the converter's range, so it is assumed
to be unsigned."""
RATES = 0.01
"""Tolerated relative deviation between the analog rate and the frame rate times the samples per frame."""
EXACT = 1e-5
"""Relative deviation below which two rates are equal; they are 32-bit floats, often of rounded decimals."""

Values = Any
"""Value of a parameter: a list of texts or an array of numbers."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of a file.

    Attributes:
        groups: Group to parameter name to value.
    """

    groups: Mapping[str, Mapping[str, Values]]

    def numbers(self, group: str, name: str) -> Array | None:
        """Return an array with its continuations NAME2, NAME3, ... along the last axis; None if absent."""
        parts = [np.atleast_1d(part) for part in self._parts(group, name) if not isinstance(part, list)]
        return np.concatenate(parts, axis=-1) if parts and sum(part.size for part in parts) else None

    def texts(self, group: str, name: str) -> list[str]:
        """Return texts with their continuations; empty if absent."""
        return [text for part in self._parts(group, name) if isinstance(part, list) for text in part]

    def number(self, group: str, name: str) -> float | None:
        """Return the first number of a parameter; None if absent."""
        values = self.numbers(group, name)
        return None if values is None else float(np.ravel(values)[0])

    def field(self, name: str) -> int | None:
        """Return a frame number of the group TRIAL, stored as low and high 16-bit word; None if absent."""
        values = self.numbers("TRIAL", name)
        if values is None:
            return None
        low, *high = np.ravel(unsigned(values))
        return int(low + 65536 * high[0]) if high else int(low)

    def _parts(self, group: str, name: str) -> list[Values]:
        rows = self.groups.get(group, {})
        parts: list[Values] = []
        while (key := f"{name}{len(parts) + 1}" if parts else name) in rows:
            parts.append(rows[key])
        return parts


@dataclass(frozen=True, eq=False)
class C3DContent:
    """Content of a C3D file.

    Attributes:
        parameters: Parameters of the file.
        points: (n, m, 3) in ``POINT:UNITS``; NaN for invisible points.
        analogs: (n * ratio, c) scaled samples.
        point_rate, analog_rate: Frames and samples per second [Hz]; 0 if unknown.
        ratio: Number of analog samples per frame.
        first_frame: Number of the first frame; above 1 in a trimmed file.
        notes: Remarks for the reader.
    """

    parameters: Parameters
    points: Array
    analogs: Array
    point_rate: float
    analog_rate: float
    ratio: int
    first_frame: int = 1
    notes: tuple[str, ...] = ()


def unsigned(values: Any) -> Any:
    """Convert signed 16-bit words to unsigned numbers; other numbers stay unchanged."""
    array = np.asarray(values)
    return array.astype(np.int64) & 0xFFFF if array.dtype.kind == "i" else array


@dataclass(frozen=True)
class _NumberFormat:
    """Format of 16-bit words and 32-bit floats of a processor."""

    processor: int

    def integers(self, data: bytes | memoryview) -> Any:
        """Return signed 16-bit words."""
        return np.frombuffer(data, dtype=">i2" if self.processor == SGI else "<i2")

    def floats(self, data: bytes | memoryview) -> Any:
        """Return 32-bit floats."""
        if self.processor != DEC:
            return np.frombuffer(data, dtype=">f4" if self.processor == SGI else "<f4")
        # VAX floats have swapped words and an exponent that is larger by 2.
        halves = np.frombuffer(data, dtype="<u2").reshape(-1, 2)[:, ::-1]
        return np.ascontiguousarray(halves).view("<f4").ravel() / np.float32(4.0)


def read_content(path: Path) -> C3DContent:
    """Read a C3D file.

    Raises:
        RecordingError: The file cannot be read, is not a C3D file, or is damaged so that its counts contradict each
            other.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"cannot be read ({error.strerror})", path) from error
    if len(data) < BLOCK or data[1] != KEY:
        content = f"{len(data)} bytes" if len(data) < BLOCK else f"0x{data[1]:02x} there"
        raise RecordingError(f"no C3D file: expected a header of {BLOCK} bytes, its second 0x50; found {content}", path)
    notes: list[str] = []
    codec, parameters = _parameters(path, data, notes)
    return _FrameLayout(path, data, codec, parameters, notes).content()


def _damaged(path: Path, place: str, what: str) -> RecordingError:
    remedy = "the file is damaged, or no C3D file; if there is a whole copy, read that"
    return RecordingError(f"{what}: {remedy}", f"{path}: {place}")


def _parameters(path: Path, data: bytes, notes: list[str]) -> tuple[_NumberFormat, Parameters]:
    """Return the number format and the parameters of a file."""
    begin = BLOCK * (data[0] - 1)
    if not 0 <= begin <= len(data) - 4:
        raise _damaged(path, "parameters", f"they begin at byte {begin} of {len(data)}")
    blocks, processor = data[begin + 2 : begin + 4]
    if processor not in (INTEL, DEC, SGI):
        raise _damaged(path, "processor", f"{processor} is none of {INTEL} (Intel), {DEC} (DEC), {SGI} (SGI)")
    codec = _NumberFormat(processor)
    # The section stores its size in one byte, which overflows in large files.
    size = BLOCK * max(blocks, int(unsigned(codec.integers(data[16:18]))[0]) - data[0])
    section = data[begin : begin + size]
    names: dict[int, str] = {}
    entries: list[tuple[int, str, Values]] = []
    at, name = 4, ""
    try:
        while section[at] != 0:
            length, group = abs(_signed(section[at])), _signed(section[at + 1])
            name = _text(section[at + 2 : at + 2 + length]).upper()
            at += 2 + length
            step = int(unsigned(codec.integers(section[at : at + 2]))[0])
            if group < 0:
                names[-group] = name
            else:
                entries.append((group, name, _value(codec, section, at + 2)))
            at += step
            if step == 0 or at == size:
                break
            if at > size:
                notes.append(
                    f"its parameter {name} says that the next one is outside of the parameters: it is the last"
                )
                break
    except (IndexError, ValueError) as error:
        raise _damaged(path, "parameters", f"they end in the middle of one, at byte {begin + at}") from error
    groups: dict[str, dict[str, Values]] = {name: {} for name in names.values()}
    for group, name, value in entries:
        groups.setdefault(names.get(group, f"#{group}"), {}).setdefault(name, value)
    return codec, Parameters(groups)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _value(codec: _NumberFormat, data: bytes, at: int) -> Values:
    """Return the value of the parameter whose type is at byte ``at``: a list of texts or an array.

    Raises:
        ValueError: The type is unknown, or the data are truncated.
    """
    kind, count = _signed(data[at]), data[at + 1]
    shape = tuple(data[at + 2 : at + 2 + count])
    size, begin = math.prod(shape) * abs(kind), at + 2 + count
    raw = data[begin : begin + size]
    if kind not in (-1, 1, 2, 4) or len(shape) < count or len(raw) < size:
        raise ValueError
    if kind == -1:
        width = shape[0] if shape else 1
        return [_text(raw[k * width : (k + 1) * width]) for k in range(math.prod(shape[1:]))]
    values = codec.floats(raw) if kind == 4 else codec.integers(raw) if kind == 2 else np.frombuffer(raw, dtype="u1")
    return values.reshape(shape, order="F")


def _text(raw: bytes) -> str:
    """Decode a text and strip its padding of blanks and zeros: UTF-8, or else Latin-1."""
    raw = raw.partition(b"\0")[0]
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        return raw.decode("latin-1").strip()


class _FrameLayout:
    """Position and size of the frames, from header, parameters and file length.

    Raises:
        RecordingError: These sources contradict each other.
    """

    def __init__(self, path: Path, data: bytes, codec: _NumberFormat, parameters: Parameters, notes: list[str]) -> None:
        self._path, self._data, self._codec, self._parameters = path, data, codec, parameters
        self._notes = notes
        self._header = [int(word) for word in unsigned(codec.integers(data[:BLOCK]))]
        header_scale, header_rate = (float(codec.floats(data[k : k + 4])[0]) for k in (12, 20))
        self._points, per_frame, self._ratio = self._header[1], self._header[2], self._header[9]
        self._require_equal("POINT:USED", self._count("POINT", "USED"), self._points, "points")
        scale = self._number("POINT", "SCALE")
        self._scale = header_scale if scale is None else scale
        if scale is not None and header_scale != 0.0 and (scale < 0.0) != (header_scale < 0.0):
            raise self._contradiction("POINT:SCALE", f"{scale:g} or, in the header, {header_scale:g}")
        self._channels = self._analog_channels(per_frame)
        self._width = (4 if self._scale < 0.0 else 2) * (4 * self._points + self._channels * self._ratio)
        if self._width == 0:
            raise RecordingError("it has neither points nor analog channels", path)
        self._point_rate, self._analog_rate = self._rates(header_rate)
        self._first = parameters.field("ACTUAL_START_FIELD") or self._header[3] or 1
        self._start, self._frames = self._extent()

    def _contradiction(self, place: str, what: str) -> RecordingError:
        return _damaged(self._path, place, what)

    def _number(self, group: str, name: str) -> float | None:
        value = self._parameters.number(group, name)
        if value is not None and not abs(value) < LARGEST:
            raise self._contradiction(f"{group}:{name}", f"{value:g}")
        return value

    def _count(self, group: str, name: str) -> int | None:
        value = self._number(group, name)
        # Some files store counts as floats; integers above 32767 appear negative.
        return None if value is None else int(value) % 65536 if value < 0.0 else int(value)

    def _require_equal(self, name: str, value: int | None, counted: int, what: str) -> None:
        if value is not None and value != counted:
            raise self._contradiction(name, f"{value} {what} or, in the header, {counted}")

    def _analog_channels(self, per_frame: int) -> int:
        """Return the number of channels from values per frame and samples per frame in the header."""
        used = self._count("ANALOG", "USED")
        if per_frame == 0:
            self._ratio = max(1, self._ratio)
            return 0
        if self._ratio == 0 and used:
            # The other two counts determine the missing one.
            self._ratio = per_frame // used
        if used == per_frame and self._ratio > 1:
            # Innovative Sports Training's MotionMonitor counts the channels there.
            self._notes.append(f"its header counts {used} analog values a frame: taken for {used} channels")
            return used
        if self._ratio == 0 or per_frame % self._ratio:
            raise self._contradiction("header", f"{per_frame} analog values a frame in {self._ratio} samples")
        channels = per_frame // self._ratio
        self._require_equal(
            "ANALOG:USED", used, channels, f"channels ({per_frame} values a frame in {self._ratio} samples)"
        )
        return channels

    def _rates(self, header_rate: float) -> tuple[float, float]:
        """Return the rates of frames and of analog samples; a missing one is computed from the other."""
        point, analog = self._number("POINT", "RATE") or header_rate, self._number("ANALOG", "RATE") or 0.0
        for name, rate in (("POINT:RATE", point), ("ANALOG:RATE", analog)):
            if not 0.0 <= rate < LARGEST:
                raise self._contradiction(name, f"{rate:g} Hz")
        if not self._channels or analog == 0.0:
            return point, point * self._ratio
        if point == 0.0:
            return analog / self._ratio, analog
        deviation = abs(analog / (point * self._ratio) - 1.0)
        message = f"ANALOG:RATE is {analog:.9g} Hz, and {self._ratio} samples a frame at {point:.9g} Hz are not"
        if deviation > RATES:
            raise self._contradiction("times", message)
        if deviation > EXACT:
            self._notes.append(f"{message}: the times of plates follow ANALOG:RATE, those of markers POINT:RATE")
        return point, analog

    def _counts(self) -> list[tuple[str, int]]:
        """Return all frame counts of the file, the most reliable first (c3d.org, frame count)."""
        frames, last = self._count("POINT", "FRAMES"), self._parameters.field("ACTUAL_END_FIELD")
        header = ("its header", self._header[4] - self._header[3] + 1)
        counts = [header] if frames is None else [("POINT:FRAMES", frames), header]
        if counts[0][1] == LAST:
            # The 16-bit count is saturated, so the number of frames is this or larger.
            extended = [("POINT:LONG_FRAMES", self._count("POINT", "LONG_FRAMES") or 0)]
            extended.append(("TRIAL:ACTUAL_END_FIELD", last - self._first + 1 if last else 0))
            counts = [entry for entry in extended if entry[1] > LAST] or counts
        return [entry for entry in counts if entry[1] > 0]

    def _extent(self) -> tuple[int, int]:
        """Return the first byte of the frames and their number."""
        blocks = {"its header": self._header[8], "POINT:DATA_START": self._count("POINT", "DATA_START") or 0}
        starts = [BLOCK * (block - 1) for block in dict.fromkeys(blocks.values()) if block > 0]
        starts = [start for start in starts if start <= len(self._data)]
        counts = self._counts()
        if not starts:
            raise self._contradiction("frames", f"from block {max(blocks.values())} of {len(self._data) // BLOCK} on")
        if not counts:
            raise RecordingError("it holds no frames", self._path)
        for start in starts:
            for name, count in counts:
                if 0 <= len(self._data) - start - count * self._width < BLOCK:
                    if name != counts[0][0]:
                        self._notes.append(
                            f"{counts[0][0]} counts {counts[0][1]} frames; {name} counts {count}, as many as there are"
                        )
                    return start, count
        if len(starts) > 1:
            blocks_text = ", ".join(f"{name} in block {block}" for name, block in blocks.items())
            raise self._contradiction("frames", f"from two blocks on, of which none fits the length: {blocks_text}")
        return starts[0], self._frames_by_length(starts[0], counts)

    def _frames_by_length(self, start: int, counts: list[tuple[str, int]]) -> int:
        """Return the number of frames if the file length contradicts all counts."""
        available = (len(self._data) - start) // self._width
        name, count = counts[0]
        excess = (available - count) % (LAST + 1)
        if available > LAST and count <= LAST and excess * self._width < BLOCK:
            self._notes.append(f"it holds {available - excess} frames; {name} counts {count}, in a word of 16 bits")
            return available - excess
        if available > LAST and count == LAST:
            frames = available - self._zero_frames(start, available)
            self._notes.append(
                f"it has no count of its frames, which are more than {LAST}: by its length there are {frames}; zeros "
                "at the end of its last block are taken for padding"
            )
            return frames
        if available < count:
            raise self._contradiction(name, f"{count} frames, and the file ends after {available} of them")
        remaining = len(self._data) - start - count * self._width
        self._notes.append(f"{name} counts {count} frames: {remaining} bytes behind them are left out")
        return count

    def _zero_frames(self, start: int, available: int) -> int:
        """Return the number of zero frames at the end of the last block."""
        last_frames = min(available, BLOCK // self._width)
        tail = self._data[start + (available - last_frames) * self._width : start + available * self._width]
        return last_frames - math.ceil(len(tail.rstrip(b"\0")) / self._width)

    def content(self) -> C3DContent:
        """Return points and samples; values of damaged files may be inf or NaN, which the plate reader reports."""
        with np.errstate(all="ignore"):
            return self._numbers()

    def _numbers(self) -> C3DContent:
        raw = memoryview(self._data)[self._start : self._start + self._frames * self._width]
        floats = self._scale < 0.0
        frames = (self._codec.floats(raw) if floats else self._codec.integers(raw)).reshape(self._frames, -1)
        split = 4 * self._points
        points = frames[:, :split].reshape(self._frames, self._points, 4)
        positions = points[..., :3].astype(np.float64) * (1.0 if floats else self._scale)
        positions[points[..., 3] < 0] = np.nan
        analogs = self._scaled(frames[:, split:].reshape(self._frames * self._ratio, self._channels))
        return C3DContent(
            self._parameters,
            positions,
            analogs,
            self._point_rate,
            self._analog_rate,
            self._ratio,
            self._first,
            tuple(self._notes),
        )

    def _scaled(self, values: Any) -> Array:
        """Scale analog samples: (value - OFFSET) * SCALE * GEN_SCALE."""
        if not self._channels:
            return np.zeros(values.shape)
        offset, scale = self._per_channel("OFFSET", 0), self._per_channel("SCALE", 1)
        general = self._number("ANALOG", "GEN_SCALE")
        form = "".join(self._parameters.texts("ANALOG", "FORMAT")).upper()
        if not form and offset.dtype.kind == "i" and (offset < RAIL).any():
            self._notes.append("it lacks ANALOG:FORMAT: with an ANALOG:OFFSET from 32768 on it is taken for UNSIGNED")
            form = "UNSIGNED"
        if form == "UNSIGNED":
            offset, values = unsigned(offset), unsigned(values)
        return np.asarray((values.astype(np.float64) - offset) * (scale * (1.0 if general is None else general)))

    def _per_channel(self, name: str, default: int) -> Any:
        """Return one number per channel; the default for an absent parameter, with a note."""
        parameter = self._parameters.numbers("ANALOG", name)
        if parameter is None:
            self._notes.append(f"it lacks ANALOG:{name}: {default} is taken")
            return np.full(self._channels, default, dtype=np.float64)
        if parameter.size < self._channels:
            raise self._contradiction(f"ANALOG:{name}", f"{parameter.size} numbers for {self._channels} channels")
        flat = np.ravel(parameter)[: self._channels]
        return flat if flat.dtype.kind == "i" else flat.astype(np.float64)
