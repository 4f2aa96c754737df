"""Tables of force plates as text: bytes that a spreadsheet puts before the first letter, and units of the CoP."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lab_support import a_plate
from refusals import refusal

from bipedsim.errors import RecordingError
from bipedsim.recording.lab import read_trial, write_forces


def a_table(cop: str = "cm") -> str:
    plate = a_plate(2)
    table = np.column_stack([plate.t, plate.force(), plate.moment_about(plate.geometry.centre), 0.0 * plate.t])
    lines = [f"Time[s]\tFx[N]\tFy[N]\tFz[N]\tMx[Nm]\tMy[Nm]\tMz[Nm]\tCOPx[{cop}]"]
    return "\n".join([*lines, *("\t".join(f"{value:.9f}" for value in row) for row in table)]) + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_mark_of_the_order_of_bytes_is_no_part_of_a_name(encoding: str, tmp_path: Path) -> None:
    text = a_table()
    if encoding == "utf-16-le":
        text = "\ufeff" + text
    (tmp_path / "trial.txt").write_text(text, encoding=encoding)
    np.testing.assert_allclose(read_trial(tmp_path / "trial.txt").plates[0].force(), a_plate(2).force(), atol=1e-8)
    write_forces([a_plate(2)], tmp_path / "plain.mot", 20.0)
    lines = (tmp_path / "plain.mot").read_text(encoding="utf-8").split("\n")
    # Without a name of its own its first line is the mark alone.
    (tmp_path / "trial.mot").write_text(
        "\n".join(["\ufeff" * (encoding == "utf-16-le"), *lines[1:]]), encoding=encoding
    )
    np.testing.assert_allclose(read_trial(tmp_path / "trial.mot").plates[0].force(), a_plate(2).force(), atol=1e-7)


def test_a_unit_of_the_cop_that_is_not_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trial.txt").write_text(a_table("furlong"), encoding="utf-8")
    with refusal(RecordingError, place="COPx: unit", value="furlong"):
        read_trial(tmp_path / "trial.txt")


@pytest.mark.parametrize(("unit", "metres"), [("m", 1.0), ("cm", 1e-2), ("mm", 1e-3)])
def test_a_plate_of_unknown_size_is_as_large_as_its_cop_goes_far(unit: str, metres: float, tmp_path: Path) -> None:
    # 450 N at 0.45 m along x: the default plate of 0.6 m is too small for it.
    rows = [[t, 0.0, 0.0, 450.0, 0.0, -0.45 * 450.0, 0.0, 0.45 / metres] for t in (0.0, 0.01, 0.02)]
    lines = [f"Time[s]\tFx[N]\tFy[N]\tFz[N]\tMx[Nm]\tMy[Nm]\tMz[Nm]\tCOPx[{unit}]"]
    lines += ["\t".join(map(str, row)) for row in rows]
    (tmp_path / "far.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plate = read_trial(tmp_path / "far.txt").plates[0]
    np.testing.assert_allclose(plate.cop()[:, 0], 0.45, atol=1e-12)
    assert 0.45 <= plate.geometry.corners[:, 0].max() <= 0.6
