"""Damage of every kind to recordings, and the reaction of each reader."""

from __future__ import annotations

import io
import os
import re
import shutil
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from attempt import Outcome, attempt

from bipedsim.errors import (
    EXIT_FAILED,
    EXIT_INCOMPLETE,
    EXIT_OK,
    EXIT_USAGE,
    DamagedError,
    IncompleteWarning,
    RecordingError,
)
from bipedsim.recording import COLUMNS, Recording, load_recording

Rng = np.random.Generator
PICTURES = 7
"""One recording in so many is drawn, which takes longer than all the rest."""
PANELS = ("forces", "cop", "modes", "torques", "readouts")
HOW_MUCH = re.compile(r"\d+ (whole messages|rows were read|of \d+ messages)|found /\S+ \(\d+\)")


# Damage to the bytes of any file.


def _place(raw: bytes, rng: Rng, longest: int) -> tuple[int, int]:
    begin = int(rng.integers(len(raw)))
    return begin, min(len(raw), begin + int(rng.integers(1, longest)))


def cut(raw: bytes, rng: Rng) -> bytes:
    return raw[: int(rng.integers(len(raw)))]


def flip(raw: bytes, rng: Rng) -> bytes:
    out = bytearray(raw)
    for at in rng.integers(len(raw), size=int(rng.integers(1, 9))):
        out[at] ^= 1 << int(rng.integers(8))
    return bytes(out)


def zero(raw: bytes, rng: Rng) -> bytes:
    begin, end = _place(raw, rng, 8192)
    return raw[:begin] + bytes(end - begin) + raw[end:]


def noise(raw: bytes, rng: Rng) -> bytes:
    begin, end = _place(raw, rng, 512)
    return raw[:begin] + rng.bytes(end - begin) + raw[end:]


def swap(raw: bytes, rng: Rng) -> bytes:
    size = int(rng.choice([64, 512, 4096]))
    n = len(raw) // size
    if n < 2:
        return raw[::-1]
    i, j = sorted(rng.choice(n, 2, replace=False) * size)
    return raw[:i] + raw[j : j + size] + raw[i + size : j] + raw[i : i + size] + raw[j + size :]


def lose(raw: bytes, rng: Rng) -> bytes:
    begin, end = _place(raw, rng, 8192)
    return raw[:begin] + raw[end:]


def insert(raw: bytes, rng: Rng) -> bytes:
    begin = int(rng.integers(len(raw)))
    return raw[:begin] + rng.bytes(int(rng.integers(1, 300))) + raw[begin:]


def tail_twice(raw: bytes, rng: Rng) -> bytes:
    return raw + raw[int(rng.integers(len(raw))) :]


def emptied(raw: bytes, rng: Rng) -> bytes:
    return b""


def binary(raw: bytes, rng: Rng) -> bytes:
    return rng.bytes(int(rng.integers(1, 5000)))


def begin_wrong(raw: bytes, rng: Rng) -> bytes:
    n = int(rng.integers(1, 9))
    return rng.bytes(n) + raw[n:]


def end_wrong(raw: bytes, rng: Rng) -> bytes:
    n = int(rng.integers(1, 60))
    return raw[:-n] + rng.bytes(n)


def text(raw: bytes, rng: Rng) -> bytes:
    return b"t[s],left\n0.001,1.0\n"


BYTES = (cut, flip, zero, noise, swap, lose, insert, tail_twice, emptied, binary, begin_wrong, end_wrong, text)


# Damage to the records of an MCAP file.


def records(raw: bytes) -> list[tuple[int, int, int]]:
    """Return (opcode, begin, end) of the records of a whole MCAP file."""
    at, found = 8, []
    while at + 9 <= len(raw) - 8:
        opcode, length = struct.unpack_from("<BQ", raw, at)
        found.append((opcode, at, at + 9 + length))
        at += 9 + length
    return found


def chunks(raw: bytes) -> list[tuple[int, int, int]]:
    """Return (begin, end of the chunk, end of the indices behind it) of every chunk."""
    all_records, found = records(raw), []
    for i, (opcode, begin, end) in enumerate(all_records):
        if opcode == 6:
            last = end
            for next_opcode, _, next_end in all_records[i + 1 :]:
                if next_opcode != 7:
                    break
                last = next_end
            found.append((begin, end, last))
    return found


def chunks_exchanged(raw: bytes, rng: Rng) -> bytes:
    all_chunks = chunks(raw)
    i, j = sorted(rng.choice(len(all_chunks), 2, replace=False))
    (a, _, b), (c, _, d) = all_chunks[i], all_chunks[j]
    return raw[:a] + raw[c:d] + raw[b:c] + raw[a:b] + raw[d:]


def chunk_twice(raw: bytes, rng: Rng) -> bytes:
    a, _, b = chunks(raw)[int(rng.integers(len(chunks(raw))))]
    return raw[:b] + raw[a:b] + raw[b:]


def chunk_gone(raw: bytes, rng: Rng) -> bytes:
    a, _, b = chunks(raw)[int(rng.integers(len(chunks(raw))))]
    return raw[:a] + raw[b:]


def chunk_damaged(raw: bytes, rng: Rng) -> bytes:
    a, b, _ = chunks(raw)[int(rng.integers(len(chunks(raw))))]
    out = bytearray(raw)
    out[int(rng.integers(a + 53, b))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def chunk_header_damaged(raw: bytes, rng: Rng) -> bytes:
    a, _, _ = chunks(raw)[int(rng.integers(len(chunks(raw))))]
    out = bytearray(raw)
    out[a + int(rng.integers(53))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def record_header_damaged(raw: bytes, rng: Rng) -> bytes:
    found = records(raw)
    _, begin, _ = found[int(rng.integers(len(found)))]
    return raw[:begin] + rng.bytes(9) + raw[begin + 9 :]


def summary_damaged(raw: bytes, rng: Rng) -> bytes:
    begin = next(begin for opcode, begin, _ in records(raw) if opcode == 15)
    out = bytearray(raw)
    out[int(rng.integers(begin, len(raw)))] ^= 1 << int(rng.integers(8))
    return bytes(out)


MCAP = (
    chunks_exchanged,
    chunk_twice,
    chunk_gone,
    chunk_damaged,
    chunk_header_damaged,
    record_header_damaged,
    summary_damaged,
)


# Damage to the entries of an archive of arrays.


def _rewritten(raw: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def _entry(entries: dict[str, bytes], rng: Rng) -> str:
    return sorted(entries)[int(rng.integers(len(entries)))]


def entry_gone(raw: bytes, rng: Rng) -> bytes:
    return _rewritten(raw, lambda entries: entries.pop(_entry(entries, rng)) and None)


def entry_cut(raw: bytes, rng: Rng) -> bytes:
    def change(entries: dict[str, bytes]) -> None:
        name = _entry(entries, rng)
        entries[name] = entries[name][: int(rng.integers(len(entries[name])))]

    return _rewritten(raw, change)


def entry_renamed(raw: bytes, rng: Rng) -> bytes:
    def change(entries: dict[str, bytes]) -> None:
        name = _entry(entries, rng)
        entries[f"x_{name}"] = entries.pop(name)

    return _rewritten(raw, change)


def entry_shorter(raw: bytes, rng: Rng) -> bytes:
    """Return it with an array that lost its last row, as NumPy would write it."""

    def change(entries: dict[str, bytes]) -> None:
        arrays = {name: np.load(io.BytesIO(content)) for name, content in entries.items()}
        tall = sorted(name for name, array in arrays.items() if array.ndim and len(array) > 1)
        name = tall[int(rng.integers(len(tall)))]
        out = io.BytesIO()
        np.save(out, arrays[name][:-1])
        entries[name] = out.getvalue()

    return _rewritten(raw, change)


def entry_of_objects(raw: bytes, rng: Rng) -> bytes:
    def change(entries: dict[str, bytes]) -> None:
        out = io.BytesIO()
        np.save(out, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
        entries[_entry(entries, rng)] = out.getvalue()

    return _rewritten(raw, change)


def header_wrong(raw: bytes, rng: Rng) -> bytes:
    """Return it with a header that is text, JSON of another kind, or lacks a key."""
    said = [
        lambda text: "{",
        lambda text: "[]",
        lambda text: "null",
        lambda text: '{"format": "bipedsim recording 1"}',
        lambda text: text.replace('"feet"', '"feets"'),
        lambda text: text.replace('"joint_names": [', '"joint_names": ["more", '),
        lambda text: text.replace('"weight": ', '"weight": "x", "w": '),
        lambda text: text.replace('"columns": [', '"columns": [3, '),
        lambda text: text.replace('"readouts": [', '"readouts": [{}, '),
        lambda text: text.replace('"pushes": [', '"pushes": [[1], '),
        lambda text: text.replace('"about": {', '"about": 3, "a": {'),
        lambda text: text.replace('"run": {', '"run": 3, "r": {'),
        lambda text: text.replace('"physics_dt": 0.001', '"physics_dt": -1'),
        lambda text: text.replace('"physics_dt": 0.001', '"physics_dt": 1e-12'),
        lambda text: text.replace('"seed": 0', '"seed": "x"'),
        lambda text: text.replace('"draw": ', '"draw": 1e9, "d": '),
    ][int(rng.integers(16))]

    def change(entries: dict[str, bytes]) -> None:
        name = next(name for name in ("header.npy", "about.npy") if name in entries)
        out = io.BytesIO()
        np.save(out, np.array(said(str(np.load(io.BytesIO(entries[name]))))))
        entries[name] = out.getvalue()

    return _rewritten(raw, change)


NPZ = (entry_gone, entry_cut, entry_renamed, entry_shorter, entry_of_objects, header_wrong)


# Damage to whole files.


def _no_metadata(path: Path, rng: Rng, other: Path) -> None:
    (path / "metadata.yaml").unlink()


def _no_file(path: Path, rng: Rng, other: Path) -> None:
    next(path.glob("*.mcap")).unlink()


def _nothing(path: Path, rng: Rng, other: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def _renamed(path: Path, rng: Rng, other: Path) -> None:
    next(path.glob("*.mcap")).rename(path / "renamed_0.mcap")


def _no_suffix(path: Path, rng: Rng, other: Path) -> None:
    next(path.glob("*.mcap")).rename(path / "bag_0")


def _folder_for_file(path: Path, rng: Rng, other: Path) -> None:
    file = next(path.glob("*.mcap"))
    file.unlink()
    file.mkdir()


def _folder_for_metadata(path: Path, rng: Rng, other: Path) -> None:
    (path / "metadata.yaml").unlink()
    (path / "metadata.yaml").mkdir()


def _dangling(path: Path, rng: Rng, other: Path) -> None:
    file = next(path.glob("*.mcap"))
    file.unlink()
    file.symlink_to("nowhere.mcap")


def _circle(path: Path, rng: Rng, other: Path) -> None:
    file = next(path.glob("*.mcap"))
    file.unlink()
    file.symlink_to(file.name)


def _pipe(path: Path, rng: Rng, other: Path) -> None:
    file = next(path.glob("*.mcap"))
    file.unlink()
    os.mkfifo(file)


def _metadata_pipe(path: Path, rng: Rng, other: Path) -> None:
    (path / "metadata.yaml").unlink()
    os.mkfifo(path / "metadata.yaml")


def _device(path: Path, rng: Rng, other: Path) -> None:
    file = next(path.glob("*.mcap"))
    file.unlink()
    file.symlink_to(["/dev/zero", "/dev/null", "/dev/urandom"][int(rng.integers(3))])


def _metadata_device(path: Path, rng: Rng, other: Path) -> None:
    (path / "metadata.yaml").unlink()
    (path / "metadata.yaml").symlink_to("/dev/zero")


def _metadata_laughs(path: Path, rng: Rng, other: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    (path / "metadata.yaml").write_text("\n".join([*lines, "rosbag2_bagfile_information: *i"]))


def _metadata_in_circles(path: Path, rng: Rng, other: Path) -> None:
    (path / "metadata.yaml").write_text("rosbag2_bagfile_information: &a\n  relative_file_paths: *a\n  b: [*a]\n")


def _metadata_of_another(path: Path, rng: Rng, other: Path) -> None:
    shutil.copy(other / "metadata.yaml", path / "metadata.yaml")


def _messages_of_another(path: Path, rng: Rng, other: Path) -> None:
    shutil.copy(next(other.glob("*.mcap")), next(path.glob("*.mcap")))


def _beside_another(path: Path, rng: Rng, other: Path) -> None:
    metadata = path / "metadata.yaml"
    name = next(path.glob("*.mcap")).name
    shutil.copy(next(other.glob("*.mcap")), path / "other_0.mcap")
    metadata.write_text(metadata.read_text().replace(f"- {name}", f"- {name}\n  - other_0.mcap"))


def _robot_renamed(path: Path, rng: Rng, other: Path) -> None:
    metadata = path / "metadata.yaml"
    name = ["talos", "no_such_robot", "../x", "''", "compass"][int(rng.integers(5))]
    metadata.write_text(re.sub(r"robot: \w+", f"robot: {name}", metadata.read_text()))


FOLDER = (
    _no_metadata,
    _no_file,
    _nothing,
    _renamed,
    _no_suffix,
    _folder_for_file,
    _folder_for_metadata,
    _dangling,
    _circle,
    _pipe,
    _metadata_pipe,
    _device,
    _metadata_device,
    _metadata_laughs,
    _metadata_in_circles,
    _metadata_of_another,
    _messages_of_another,
    _beside_another,
    _robot_renamed,
)


@dataclass(frozen=True)
class Case:
    """One damaged recording.

    Attributes:
        number: Number, also for the seed.
        what: Which recording: ``bag``, ``npz`` or ``step``.
        target: Damaged file: ``mcap``, ``metadata``, ``folder``, ``npz`` or ``step``.
        damage: Name of the damage.
    """

    number: int
    what: str
    target: str
    damage: str


_BY_NAME: dict[str, Any] = {f.__name__: f for f in (*BYTES, *MCAP, *NPZ, *FOLDER)}
_KINDS: tuple[tuple[str, str, tuple[Any, ...], int], ...] = (
    ("bag", "mcap", BYTES, 10),
    ("bag", "mcap", MCAP, 10),
    ("bag", "metadata", BYTES, 4),
    ("bag", "folder", FOLDER, 3),
    ("npz", "npz", (*BYTES, *NPZ), 6),
    ("step", "step", (*BYTES, *NPZ), 3),
)


def cases(count: int) -> Iterator[Case]:
    """Yield ``count`` cases, every kind of damage in proportion."""
    rows = [(what, target, f, k) for what, target, kinds, n in _KINDS for f in kinds for k in range(n)]
    # The order takes the first entry of each kind before the second ones.
    rows.sort(key=lambda row: row[3])
    for number in range(count):
        what, target, f, _ = rows[number % len(rows)]
        yield Case(number, what, target, f.__name__)


def readers(what: str, number: int, robot: str) -> dict[str, list[str]]:
    """Return name to command line of the readers of a recording of this kind.

    Figures take long and are made only sometimes.
    """
    if what == "step":
        return {"replay": ["replay", "step.npz"], "summary": ["summary", "step.npz"]}
    path = "run.npz" if what == "npz" else "bag"
    turn = number // PICTURES
    panels = PANELS if turn % len(PANELS) == 0 else (PANELS[turn % len(PANELS)],)
    found = {
        "plot": ["plot", path, "-o", "plot.png", "--panels", *panels],
        "export": ["export", path, "-o", "table.csv"],
        "summary": ["summary", path],
        "modes": ["modes", path],
        "margins": ["margins", path],
        "animate": ["animate", path, "-o", "postures.png", "--postures", "3"],
        "replay": ["replay", path],
    }
    for picture, turn in (("plot", 0), ("animate", PICTURES // 2)):
        if number % PICTURES != turn:
            del found[picture]
    return found if what == "npz" else {**found, "check-robot": ["check-robot", robot, "--bag", path]}


PRODUCTS = {"plot": "plot.png", "export": "table.csv", "animate": "postures.png"}


def place(whole: Path, case: Case, folder: Path, seed: int, other: Path) -> None:
    """Copy the recording of a case into ``folder`` and damage it.

    Args:
        whole: Folder with ``bag``, ``run.npz`` and ``step.npz``.
        case: The case.
        folder: Where, empty.
        seed: Of the campaign.
        other: The bag of another robot.
    """
    rng = np.random.default_rng([seed, case.number])
    if case.what == "bag":
        shutil.copytree(whole / "bag", folder / "bag")
        if case.target == "folder":
            _BY_NAME[case.damage](folder / "bag", rng, other)
            return
        file = next((folder / "bag").glob("*.mcap" if case.target == "mcap" else "metadata.yaml"))
    else:
        name = "run.npz" if case.what == "npz" else "step.npz"
        file = folder / name
        shutil.copy(whole / name, file)
    file.write_bytes(_BY_NAME[case.damage](file.read_bytes(), rng))


def wrong_values(read: Recording, whole: Recording) -> list[str]:
    """Return the columns of ``read`` with numbers that the whole recording has not in the row of that time."""
    if read.joint_names != whole.joint_names or read.feet != whole.feet:
        return [f"{len(read.joint_names)} joints, feet {', '.join(read.feet) or 'none'}"]
    if not set(read.t.tolist()) <= set(whole.t.tolist()):
        return ["t"]
    rows = np.searchsorted(whole.t, read.t)
    wrong = []
    for name, column in COLUMNS.items():
        mine, true = getattr(read, name), getattr(whole, name)[rows]
        empty = column.empty(len(read), len(read.joint_names), len(read.feet))
        same = (mine == true) | (np.isnan(mine) & np.isnan(true) if mine.dtype.kind == "f" else False)
        blank = (mine == empty) | (np.isnan(mine) & np.isnan(empty) if mine.dtype.kind == "f" else False)
        if not (same | blank).all():
            wrong.append(name)
    return wrong


def different(read: Recording, whole: Recording) -> list[str]:
    """Return the differences between two recordings, to the bit."""
    found = [name for name in COLUMNS if getattr(read, name).tobytes() != getattr(whole, name).tobytes()]
    for name in ("robot", "joint_names", "feet", "pushes", "about", "run"):
        if repr(getattr(read, name)) != repr(getattr(whole, name)):
            found.append(name)
    if {k: v.tobytes() for k, v in read.readouts.items()} != {k: v.tobytes() for k, v in whole.readouts.items()}:
        found.append("readouts")
    if read.effort_limit.tobytes() != whole.effort_limit.tobytes():
        found.append("effort_limit")
    if any(a.tobytes() != b.tobytes() for a, b in zip(read.sole_vertices, whole.sole_vertices, strict=False)):
        found.append("sole_vertices")
    return found + ["weight"] * (repr(read.weight) != repr(whole.weight))


def python_reader(path: Path, whole: Recording) -> int:
    """Read with the library, as a command would; print the differences from the recorded data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            read = load_recording(path)
        except RecordingError as error:
            os.write(2, f"error: {error}\n".encode())
            told = any(issubclass(one.category, IncompleteWarning) for one in caught)
            return EXIT_INCOMPLETE if told or isinstance(error, DamagedError) else EXIT_USAGE
    said = [str(one.message) for one in caught if issubclass(one.category, IncompleteWarning)]
    os.write(2, "\n".join(said).encode())
    if said and not set(" ".join(said).split()) & set(" ".join(read.notes).split()):
        print("the notes do not say so")
    for name in wrong_values(read, whole) if said else different(read, whole):
        print(name)
    return EXIT_INCOMPLETE if said else EXIT_OK


OF_ANOTHER = "describe the run differently"
"""Metadata of another run. The reader uses the data in the file, and reports this difference."""


def judge(reader: str, done: Outcome, product: bytes, good: tuple[Outcome, bytes]) -> str:
    """Return the errors in a reader's reaction to damage; empty if there are none.

    Args:
        reader: Its name.
        done: How it ended.
        product: The file that it wrote, if any.
        good: The same of the whole recording.
    """
    if done.wrong:
        return done.wrong
    if reader == "python":
        what = ", ".join(done.out.split("\n")[:-1])
        if done.out and OF_ANOTHER not in done.err:
            return f"{'silently' if done.code == EXIT_OK else 'in spite of what it says'} wrong: {what}"
    elif done.code == good[0].code and not done.err:
        if done.out != good[0].out:
            return "silently other text than of the whole recording"
        return "" if product == good[1] else "silently another file than of the whole recording"
    if done.code not in (EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INCOMPLETE):
        return f"exit code {done.code}"
    # A difference from the expectations of a controller is more important than missing data.
    if reader == "check-robot" and done.code == EXIT_FAILED and HOW_MUCH.search(done.err):
        return ""
    if done.code in (EXIT_OK, EXIT_FAILED) and done.code != good[0].code:
        return f"exit code {done.code}: {(done.err or done.out).strip().splitlines()[-1][:200]}"
    if done.code == EXIT_OK:
        return f"exit code 0 beside: {done.err.strip()[:200]}" if done.err else ""
    if not done.err.strip():
        return f"exit code {done.code} without a word"
    if done.code == EXIT_INCOMPLETE and "damaged" not in done.err and not HOW_MUCH.search(done.err):
        return f"does not say how much was read: {done.err.strip()[:200]}"
    return ""


def try_all(
    whole: Path, case: Case, folder: Path, seed: int, other: Path, robot: str, good: Any
) -> list[dict[str, Any]]:
    """Damage a recording and have it read by everything; return a row a reader."""
    place(whole, case, folder, seed, other)
    rows = []
    name = {"bag": "bag", "npz": "run.npz", "step": ""}[case.what]
    lines: dict[str, Any] = dict(readers(case.what, case.number, robot))
    if name:
        lines["python"] = lambda: python_reader(Path(name), good["recordings"][case.what])
    for reader, line in lines.items():
        done = attempt(line, folder)
        file = folder / PRODUCTS.get(reader, ".")
        product = file.read_bytes() if file.is_file() else b""
        key = (case.what, reader, tuple(line) if isinstance(line, list) else ())
        wrong = judge(reader, done, product, good["answers"].get(key, (done, b"")))
        first = done.err.strip().splitlines()
        rows.append(
            {
                "case": case.number,
                "what": case.what,
                "target": case.target,
                "damage": case.damage.strip("_"),
                "reader": reader,
                "code": done.code,
                "wrong": wrong,
                "said": first[0][:400] if first else "",
                "seconds": round(done.seconds, 2),
            }
        )
    # All readers that can read the file report the same.
    codes = {row["reader"]: row["code"] for row in rows}
    for row in rows:
        as_library = row["reader"] in ("plot", "export", "summary") and case.what != "step"
        if as_library and codes["python"] != row["code"] and not row["wrong"]:
            row["wrong"] = f"exit code {row['code']} where the library has {codes['python']}"
    return rows
