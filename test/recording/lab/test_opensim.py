"""OpenSim's files: names, axes and signs; wrenches that come back whole."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from lab_support import a_plate
from refusals import refusal

from bipedsim.errors import ConfigError, RecordingError
from bipedsim.recording.lab import (
    Markers,
    loads_xml,
    read_forces,
    read_storage,
    read_trial,
    write_forces,
    write_storage,
    write_trc,
)


def test_forces_have_opensims_names_axes_and_signs(tmp_path: Path) -> None:
    plate = a_plate(2, "right")
    write_forces([plate], tmp_path / "run.mot", 20.0, ["filter: none"])
    table = read_storage(tmp_path / "run.mot")
    assert table.names[:4] == ("time", "ground_force_r_vx", "ground_force_r_vy", "ground_force_r_vz")
    assert table.names[-3:] == ("ground_torque_r_x", "ground_torque_r_y", "ground_torque_r_z")
    assert not table.degrees
    force, cop = plate.force(), plate.cop()
    np.testing.assert_allclose(table.column("ground_force_r_vy"), force[:, 2], rtol=1e-11)
    np.testing.assert_allclose(table.column("ground_force_r_vz"), -force[:, 1], rtol=1e-10, atol=1e-12)
    loaded = plate.loaded()
    np.testing.assert_allclose(table.column("ground_force_r_pz")[loaded], -cop[loaded, 1], rtol=1e-11)
    np.testing.assert_allclose(table.column("ground_torque_r_y")[loaded], plate.free_moment()[loaded], rtol=1e-8)
    # At the CoP, the horizontal moments are zero.
    np.testing.assert_allclose(table.column("ground_torque_r_x")[loaded], 0.0, atol=1e-10)


def test_no_wrench_is_lost_on_the_way_there_and_back(tmp_path: Path) -> None:
    """Also of samples without a CoP: moments about any point of the world are those of the plate."""
    plates = [a_plate(2, "left"), a_plate(3, "right", 1)]
    write_forces(plates, tmp_path / "run.sto", 20.0)
    back = read_forces(tmp_path / "run.sto").plates
    assert [plate.geometry.name for plate in back] == ["left", "right"]
    for one, plate in zip(back, plates, strict=True):
        np.testing.assert_allclose(one.force(), plate.force(), atol=1e-8)
        here = np.array([0.3, -1.0, 0.2])
        np.testing.assert_allclose(one.moment_about(here), plate.moment_about(here), atol=1e-7)
        loaded = plate.loaded()
        np.testing.assert_allclose(one.cop()[loaded], plate.cop()[loaded], atol=1e-9)


def test_opensims_own_names_of_two_plates_are_read(tmp_path: Path) -> None:
    names = ["time"]
    for stem in ("", "1_"):
        names += [f"{stem}ground_force_{part}{axis}" for part in "vp" for axis in "xyz"]
    names += [f"{stem}ground_torque_{axis}" for stem in ("", "1_") for axis in "xyz"]
    values = np.zeros((5, len(names)))
    values[:, 0] = 0.01 * np.arange(5)
    for stem, load in (("", 400.0), ("1_", 300.0)):
        values[:, names.index(f"{stem}ground_force_vy")] = load
        values[:, names.index(f"{stem}ground_force_pz")] = -0.1
        values[:, names.index(f"{stem}ground_torque_y")] = 2.0
    write_storage(tmp_path / "grf.mot", names, values)
    plates = read_trial(tmp_path / "grf.mot").plates
    assert [float(plate.normal_force()[0]) for plate in plates] == pytest.approx([400.0, 300.0])
    np.testing.assert_allclose(plates[1].cop()[0], [0.0, 0.1, 0.0], atol=1e-12)
    np.testing.assert_allclose(plates[1].free_moment(), 2.0)


@pytest.mark.parametrize(("torque", "notes"), [(2.0, 0), (400.0, 1)])
def test_torques_that_move_the_cop_are_reported(torque: float, notes: int, tmp_path: Path) -> None:
    """A torque about x moves the CoP by torque / force across it. Files with N.mm would move it by metres."""
    names = ["time", *(f"ground_force_{part}{axis}" for part in "vp" for axis in "xyz")]
    names += [f"ground_torque_{axis}" for axis in "xyz"]
    values = np.zeros((5, len(names)))
    values[:, 0] = 0.01 * np.arange(5)
    values[:, names.index("ground_force_vy")] = 400.0
    values[:, names.index("ground_torque_x")] = torque
    write_storage(tmp_path / "grf.mot", names, values)
    trial = read_trial(tmp_path / "grf.mot")
    np.testing.assert_allclose(trial.plates[0].cop()[:, 1], torque / 400.0, atol=1e-12)
    assert len(trial.notes) == notes


def test_markers_have_five_lines_before_them_and_empty_cells_where_unseen(tmp_path: Path) -> None:
    positions = np.array([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.1, 2.1, 3.1], [np.nan] * 3]])
    write_trc(Markers(np.array([0.0, 0.01]), ("a", "b"), positions), tmp_path / "run.trc")
    lines = (tmp_path / "run.trc").read_text().split("\n")
    assert lines[0].startswith("PathFileType\t4\t(X/Y/Z)")
    assert lines[2].split("\t")[:5] == ["100", "100", "2", "2", "mm"]
    assert lines[4].split() == ["X1", "Y1", "Z1", "X2", "Y2", "Z2"]
    assert lines[6].split("\t") == ["1", "0", "1000", "3000", "-2000", "4000", "6000", "-5000"]
    assert lines[7].split("\t") == ["2", "0.01", "1100", "3100", "-2100", "", "", ""]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nothing\n", ": endheader"),
        ("a\nendheader\ntime x\n0 1\n1\n2 3\n", ""),
        ("a\nendheader\ntime x\n", ""),
        ("a\nendheader\ntime x\n0 1\n1 b\n", ": row 2, column 'x'"),
        ("a\nendheader\ntime x\n1 1\n0 2\n", ": first column"),
        ("a\nendheader\ntime knee\n0 1\n1 2\n", ": ground forces"),
    ],
)
def test_files_without_ground_forces_are_told(text: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "run.mot").write_text(text)
    with refusal(RecordingError, place=f"{tmp_path / 'run.mot'}{place}"):
        read_trial(tmp_path / "run.mot")


@pytest.mark.parametrize(("mark", "decimal"), [(",", "."), (";", "."), (";", ","), ("\t", ","), (" ", ".")])
def test_ground_forces_of_a_spreadsheet_are_read(mark: str, decimal: str, tmp_path: Path) -> None:
    """Their separators and decimal commas; a wrong count of rows and numbers that are missing are reported."""
    path = tmp_path / "walk.mot"
    write_forces([a_plate(2, "left")], path, 20.0)
    whole = read_trial(path).plates[0].force()
    head, table = path.read_text(encoding="utf-8").split("endheader\n")
    names, *rows = table.replace("\t", mark).split("\n")
    rows = [row.replace(".", decimal) for row in rows]
    parts = rows[7].split(mark)
    parts[3] = "-nan(ind)"
    rows[7] = mark.join(parts)
    text = head.replace("nRows=400", "nRows=600") + "endheader\n" + "\n".join([names, *rows])
    path.write_text(text, encoding="cp1252", newline="\r\n")
    trial = read_trial(path)
    whole[7] = 0.0
    np.testing.assert_allclose(trial.plates[0].force(), whole, atol=1e-9)
    assert len(trial.notes) == 2


def test_names_are_texts_in_the_file_of_loads(tmp_path: Path) -> None:
    """This holds for any characters in paths, plates and bodies."""
    path = tmp_path / """a&b <c> "d" 'e'.mot"""
    root = ElementTree.fromstring(loads_xml(path, {'left <"&>': "shank & 'foot'"}))
    assert root.findtext(".//datafile") == path.name
    (force,) = root.iter("ExternalForce")
    assert force.get("name") == 'left <"&>'
    assert force.findtext("applied_to_body") == "shank & 'foot'"


@pytest.mark.parametrize(
    ("line", "scale"), [("", 1.0), ("Units are S.I. units (second, meters, Newtons, ...)\n", 1.0), ("units=mm\n", 1e-3)]
)
def test_the_unit_of_points_and_torques_is_the_one_in_the_header(line: str, scale: float, tmp_path: Path) -> None:
    plate = a_plate(2)
    write_forces([plate], tmp_path / "run.mot", 20.0)
    table = read_storage(tmp_path / "run.mot")
    values = table.values.copy()
    values[:, 4:] /= scale
    write_storage(tmp_path / "run.mot", table.names, values)
    text = (tmp_path / "run.mot").read_text()
    (tmp_path / "run.mot").write_text(text.replace("endheader", f"{line}endheader"))
    loaded = plate.loaded()
    read = read_forces(tmp_path / "run.mot").plates[0]
    np.testing.assert_allclose(read.cop()[loaded], plate.cop()[loaded], atol=1e-8)
    assert np.abs(plate.free_moment()[loaded]).max() > 0.1
    np.testing.assert_allclose(read.free_moment()[loaded], plate.free_moment()[loaded], atol=1e-6)
    (tmp_path / "run.mot").write_text(text.replace("endheader", "units=furlong\nendheader"))
    with refusal(RecordingError, place="units in its header: unit", value="furlong"):
        read_forces(tmp_path / "run.mot")


def test_a_blank_in_a_name_ends_no_column(tmp_path: Path) -> None:
    """OpenSim and others read names up to the next blank."""
    values = np.arange(6.0).reshape(2, 3)
    write_storage(tmp_path / "run.mot", ["time", "left hip  yaw", " knee "], values)
    table = read_storage(tmp_path / "run.mot")
    assert table.names == ("time", "left_hip_yaw", "knee")
    np.testing.assert_array_equal(table.values, values)
    with refusal(place=f"{tmp_path / 'run.mot'}: left_hip"):
        write_storage(tmp_path / "run.mot", ["time", "left hip", "left_hip"], values)
    with pytest.raises(ConfigError) as caught:
        write_forces([a_plate(2, "left"), a_plate(2, "l")], tmp_path / "run.mot", 20.0)
    assert "ground_force_l_vx" in caught.value.place
