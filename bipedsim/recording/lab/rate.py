"""Find the sampling rate of force plates in the header of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bipedsim.errors import RecordingError
from bipedsim.recording.lab.cells import GROUPED, ambiguous, number

RANKS = (
    re.compile(r"analog|force|plate|grf|device|adc|daq", re.IGNORECASE),
    re.compile(r"sampl|scan|acqui|data|record|^\W*(rate|freq(uency)?)\W*$", re.IGNORECASE),
)
"""Words of a key by rank: rates of force plates, and rates of a file. A rate of any other key has the last rank."""
OTHER = re.compile(
    r"cut.?off|filter|(low|high|band).?pass|notch|natural|resona|power.?line|mains|line.?freq|heart|puls|respir|breath"
    r"|loading|cadence|stimul|(step|stride|gait|cycle|bit|baud).?(rate|freq)",
    re.IGNORECASE,
)
"""Words of a key whose rate or frequency is not one of samples."""
UNITS = {
    **dict.fromkeys(("", "hz", "1/s", "/s", "s-1", "s^-1", "fps", "sps", "samples/s", "samples/sec"), 1.0),
    "khz": 1e3,
}
"""Units of a rate in lower case, in Hz."""
_RATE = re.compile(
    r"(^|[^a-z]|sampl(e|ing)|scan|frame|data|analog(ue)?|device|plate|force|video|camera|capture)rates?(?![a-z])"
    r"|freq(uency)?(?![a-z])",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(?P<name>.*?)\s*[\[(](?P<unit>[^\])]*)[\])]\s*")
_VALUE = re.compile(r"(?P<number>[+-]?\d[\d.,]*(e[+-]?\d+)?)\s*(?P<unit>\D*)", re.IGNORECASE)


class _Rate(NamedTuple):
    """Rate in the header: its rank, value [Hz], key, and the number of its line."""

    rank: int
    value: float
    key: str
    line: int


def sampling_rate(
    path: Path, head: Sequence[Sequence[str]], marks: tuple[str, str], lone: bool, notes: list[str]
) -> float | None:
    """Return the sampling rate in a header [Hz]; None without one.

    Keys with the words of :data:`RANKS` precede others, such as the rate of a camera. Keys of :data:`OTHER` have no
    sampling rate.

    Args:
        path: The file, for error messages.
        head: Cells of each line above the names.
        marks: Separator of cells, and decimal mark of the table; empty if its numbers have none.
        lone: Whether a number alone on a line is the rate, as in files of Nexus.
        notes: Receives a note if the header has several rates, or only one of another device.

    Raises:
        RecordingError: Two rates of the same rank differ, or thousands separators of a rate are ambiguous.
    """
    if lone:
        alone = [(line, row[0]) for line, row in enumerate(head, 1) if row and not any(row[1:])]
        alone = [(line, cell) for line, cell in alone if np.isfinite([number(cell), number(cell, ",")]).any()]
        if alone and (value := _hertz(alone[-1][1], "", marks[1], f"{path}: line {alone[-1][0]}")) > 0.0:
            return value
    rates = sorted(_rates(path, head, *marks), key=lambda rate: rate.rank)
    if not rates:
        return None
    chosen = rates[0]
    for rate in rates:
        if rate.rank == chosen.rank and rate.value != chosen.value:
            raise RecordingError(
                f"{chosen.key!r} in line {chosen.line} is {chosen.value:g} Hz, and {rate.key!r} in line {rate.line} is "
                f"{rate.value:g} Hz. Keep the line with the rate of the forces",
                f"{path}: rate",
            )
    if chosen.rank == len(RANKS) or any(rate.value != chosen.value for rate in rates):
        notes.append(f"its rate is {chosen.value:g} Hz, of {chosen.key!r} in line {chosen.line}")
    return chosen.value


def _rates(path: Path, head: Sequence[Sequence[str]], separator: str, decimal: str) -> Iterator[_Rate]:
    """Yield the rates of a header: each behind a key with this word, on its line."""
    for line, key, values in _keys(head):
        if OTHER.search(key):
            continue
        if separator == "," and len(values) == 2 and GROUPED[","].fullmatch(",".join(values)):
            raise ambiguous(f"{path}: line {line}, {key}", ",".join(values))
        value = _hertz(values[0], key, decimal, f"{path}: line {line}, {key}")
        if value > 0.0:
            rank = next((k for k, words in enumerate(RANKS) if words.search(_name(key))), len(RANKS))
            yield _Rate(rank, value, key, line)


def _keys(head: Sequence[Sequence[str]]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the line, the key and up to two values of each rate or frequency in a header."""
    for line, row in enumerate(head, 1):
        parts = [part.strip() for cell in row for part in re.split("[=:]", cell) if part.strip()]
        for key, *values in (parts[k : k + 3] for k in range(len(parts) - 1)):
            if _RATE.search(key):
                yield line, key, values


def rejected_rates(head: Sequence[Sequence[str]]) -> list[str]:
    """Return descriptions of the rates and frequencies in a header without a sampling rate."""
    return [f"{key!r} in line {line}, which is {values[0]!r}" for line, key, values in _keys(head)]


def _name(key: str) -> str:
    match = _UNIT.fullmatch(key)
    return match["name"] if match else key


def _hertz(text: str, key: str, decimal: str, where: str) -> float:
    """Return the number of a rate [Hz]; 0 if the text is none, or in another unit.

    Raises:
        RecordingError: A mark can separate thousands, and the table has no decimal mark that decides.
    """
    match, unit = _VALUE.fullmatch(text), _UNIT.fullmatch(key)
    if match is None:
        return 0.0
    digits, marks = match["number"], [mark for mark in match["number"] if mark in ",."]
    scale = UNITS.get((match["unit"] or (unit["unit"] if unit else "")).strip(" []()").lower(), 0.0)
    if len(set(marks)) == 2:
        # The last mark is the decimal one, as in 1,000.00.
        digits, marks = digits.replace(marks[0], ""), marks[-1:]
    elif marks and GROUPED[marks[0]].fullmatch(digits):
        if not decimal:
            raise ambiguous(where, digits)
        if decimal not in ("", marks[0]):
            digits = digits.replace(marks[0], "")
    value = number(digits, marks[0] if marks else ".")
    return scale * value if np.isfinite(value) else 0.0
