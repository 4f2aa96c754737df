"""Damaged laboratory files never cause a traceback, a crash or a warning. The error names its place in the file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from damage_support import DAMAGES
from lab_support import a_plate
from refusals import refusal

from bipedsim.analysis import filtered, find_gait, load_plates, plate_figures, plate_table, stood_still, sway_figures
from bipedsim.errors import BipedSimError, RecordingError
from bipedsim.plates import PlateSignals
from bipedsim.recording.lab import LabTrial, read_trial, write_c3d, write_forces

CELLS = ("nan", "inf", "-inf", "1e308", "1e400", "", "0", "-1", "x", "3,5", "\0", "endheader")
"""Possible content of a table cell instead of a number."""


def mot(path: Path) -> Path:
    """Write ground forces of OpenSim."""
    path = path.with_suffix(".mot")
    write_forces([a_plate(2, "left"), a_plate(2, "right", 1)], path, 20.0)
    return path


def bds(path: Path) -> Path:
    """Write a table of one plate as the BMClab's BDS has them."""
    plate = a_plate(2)
    table = np.column_stack([plate.t, plate.force(), plate.moment_about(plate.geometry.centre)])
    path = path.with_suffix(".txt")
    np.savetxt(path, table, "%.6f", "\t", header="Time[s]\tFx[N]\tFy[N]\tFz[N]\tMx[Nm]\tMy[Nm]\tMz[Nm]", comments="")
    return path


def c3d(path: Path) -> Path:
    """Write a C3D file."""
    path = path.with_suffix(".c3d")
    write_c3d(LabTrial("walk", (a_plate(2), a_plate(3, "2", 1))), path)
    return path


def judge(path: Path) -> str:
    """Read a file and compute everything that the commands compute; return the error or the notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = load_plates(path)
            plates = dict(found.plates)
            plate_table(plate_figures(plates, found.weight, 20.0))
            stood = stood_still(plates, 20.0)
            if not isinstance(stood, str):
                sway_figures(*stood)
            for plate in plates.values():
                filtered(plate, 10.0)
            find_gait(path.stem, list(plates.values()))
        except BipedSimError as error:
            return str(error)
    return "; ".join(found.notes)


def cells(text: str, rng: np.random.Generator) -> str:
    """Return a table with something else in one of its cells."""
    lines = text.split("\n")
    row = int(rng.integers(len(lines) - 20, len(lines) - 1)) if rng.random() < 0.5 else int(rng.integers(len(lines)))
    parts = lines[row].split("\t")
    parts[int(rng.integers(len(parts)))] = str(rng.choice(CELLS))
    return "\n".join([*lines[:row], "\t".join(parts), *lines[row + 1 :]])


@pytest.mark.long
@pytest.mark.parametrize("write", [mot, bds])
def test_a_table_that_is_damaged_is_told_or_read(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path / "trial")
    good = path.read_bytes()
    whole = load_plates(path)
    assert whole.notes == ()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        for damage in DAMAGES:
            raw = bytearray(good)
            damage(raw, rng)
            path.write_bytes(raw)
            judge(path)
        path.write_text(cells(good.decode(), rng), encoding="utf-8")
        judge(path)


def test_a_c3d_file_that_is_damaged_is_told_or_read(tmp_path: Path) -> None:
    """Every other one only in its first kilobytes, where the counts are."""
    path = c3d(tmp_path / "trial")
    good = path.read_bytes()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        for damage in DAMAGES:
            head, raw = bytearray(good[:3000]), bytearray(good)
            damage(*((head, rng) if seed % 2 else (raw, rng)))
            path.write_bytes(bytes(head) + good[3000:] if seed % 2 else raw)
            judge(path)


@pytest.mark.parametrize("write", [mot, c3d])
def test_a_file_that_ends_too_early_is_told(write: Callable[[Path], Path], tmp_path: Path) -> None:
    """Both formats count their rows. A C3D file is refused, because its counts also say where the samples are.

    A truncation is reported anywhere except in the last row and in the padding of the last block.
    """
    path = write(tmp_path / "trial")
    good = path.read_bytes()
    whole = read_trial(path).plates[0].force()
    for end in [*range(0, 40, 13), *np.linspace(40, len(good) - 1024, 10).astype(int)]:
        path.write_bytes(good[:end])
        if write is c3d or end < good.index(b"endheader") + 800:
            with pytest.raises(RecordingError) as caught:
                read_trial(path)
            assert caught.value.place.startswith(str(path))
            continue
        trial = read_trial(path)
        force = trial.plates[0].force()
        assert trial.notes
        assert 0 < len(force) < len(whole)
        np.testing.assert_array_equal(force, whole[: len(force)])


@pytest.mark.parametrize("cell", ["12a", "inf", "4e30", "nan"])
def test_a_cell_that_holds_no_number_is_named(cell: str, tmp_path: Path) -> None:
    path = mot(tmp_path / "trial")
    lines = path.read_text(encoding="utf-8").split("\n")
    row = lines.index("endheader") + 4
    parts = lines[row].split("\t")
    parts[2] = cell
    lines[row] = "\t".join(parts)
    path.write_text("\n".join(lines), encoding="utf-8")
    if cell == "nan":
        (note,) = read_trial(path).notes
        assert note == "ground_force_l_vx: 1 of 400 samples lack a number, the first at 0.252 s; they count as no force"
        assert (read_trial(path).plates[0].force()[2] == 0.0).all()
    else:
        with refusal(RecordingError, place=f"{path}: row 3, column 'ground_force_l_vy'", value=cell):
            read_trial(path)


def test_rows_that_are_missing_in_the_middle_are_told(tmp_path: Path) -> None:
    path = bds(tmp_path / "trial")
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join([*lines[:100], *lines[150:]]), encoding="utf-8")
    (note,) = read_trial(path).notes
    assert note.startswith("its times are not even: 1 of 349 steps are not of 0.001 s, the first behind 0.348 s")


def test_channels_without_numbers_are_told(tmp_path: Path) -> None:
    ezc3d = pytest.importorskip("ezc3d", reason="the extra lab: pip install 'bipedsim[lab]'")

    def with_value(value: float) -> LabTrial:
        path = c3d(tmp_path / "trial")
        file = ezc3d.c3d(str(path))
        file["data"]["analogs"][0, 2, 100:110] = value
        for name in ("USED", "TYPE", "ZERO", "CHANNEL"):
            file["parameters"]["FORCE_PLATFORM"][name]["type"] = 2
        file.write(str(path))
        return read_trial(path)

    trial = with_value(np.nan)
    assert any("force plate 1: 10 of 400 samples lack a number, the first at 0.1 s" in note for note in trial.notes)
    one: PlateSignals = trial.plates[0]
    assert (one.force()[100:110] == 0.0).all()
    with refusal(RecordingError, place="force plate 1: at 0.1 s", value=np.inf):
        with_value(np.inf)
