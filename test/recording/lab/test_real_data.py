"""Files of real laboratories, against the processed files that these publish; the data is not ours to pass on.

BIPEDSIM_LAB_DATA names a folder with walking2.c3d, std_cop_walking2_grfs.sto and the same of walking5
(github.com/opensim-org/opensim-core),
BDS00001.txt, BDSinfoCOP.txt and PDS13OF1grf.txt (github.com/BMClab/datasets), walk1.forces (github.com/BMClab/BMC), and
any C3D files; docs/lab_formats.md says where in there.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from bipedsim.analysis import find_gait, stood_still, sway_figures
from bipedsim.errors import RecordingError
from bipedsim.recording.lab import read_trial
from bipedsim.recording.lab.c3d_format import read_content


def data(name: str) -> Path:
    """The path of a file; the test is skipped where it is not there."""
    path = Path(os.environ.get("BIPEDSIM_LAB_DATA", "")) / name
    if "BIPEDSIM_LAB_DATA" not in os.environ or not path.is_file():
        pytest.skip(f"needs {name} in the folder BIPEDSIM_LAB_DATA (docs/lab_formats.md)")
    return path


@pytest.mark.parametrize("name", ["walking2", "walking5"])
def test_a_walk_has_the_forces_that_opensim_published(name: str) -> None:
    pytest.importorskip("ezc3d")
    plates = read_trial(data(f"{name}.c3d")).plates
    wanted = np.genfromtxt(data(f"std_cop_{name}_grfs.sto"), skip_header=6)
    rows = np.round(2000.0 * wanted[:, 0]).astype(int)
    for k, plate in enumerate(plates):
        force, point, twist = (wanted[:, 9 * k + first : 9 * k + first + 3] for first in (1, 4, 7))
        np.testing.assert_allclose(plate.force()[rows], force, atol=1e-7)
        loaded = plate.loaded()[rows]
        assert loaded.sum() > 8
        np.testing.assert_allclose(1e3 * plate.cop()[rows][loaded], point[loaded], atol=1e-7)
        np.testing.assert_allclose(1e3 * plate.free_moment()[rows][loaded], twist[loaded, 2], atol=1e-6)
    gait = find_gait(name, plates)
    assert len(gait.stances) == 2
    assert 550.0 < gait.weight < 680.0


def test_a_person_who_stands_has_the_cop_and_the_sway_that_bmclab_published() -> None:
    path = data("BDS00001.txt")
    (plate,) = read_trial(path).plates
    raw = np.genfromtxt(path, skip_header=1)
    np.testing.assert_allclose(100.0 * plate.cop()[:, :2], raw[:, 7:9], atol=1e-6)
    stood = stood_still({"1": plate})
    assert not isinstance(stood, str)
    figures = sway_figures(*stood)
    table = [line.split("\t") for line in data("BDSinfoCOP.txt").read_text(encoding="utf-8").splitlines()]
    row = dict(zip(table[0], next(line for line in table if line[0] == path.stem), strict=True))
    assert 1e4 * figures["ellipse_area_m2"] == pytest.approx(float(row["COParea"]), abs=1e-6)
    assert 1e2 * figures["mean_velocity_m_per_s"] == pytest.approx(float(row["COPvelo"]), abs=1e-6)


def test_two_plates_give_the_cop_of_the_person() -> None:
    path = data("PDS13OF1grf.txt")
    plates = read_trial(path).plates
    raw = np.genfromtxt(path, names=True)
    stood = stood_still({plate.geometry.name: plate for plate in plates})
    assert not isinstance(stood, str)
    np.testing.assert_allclose(stood[0][:, 0], raw["COPNET_X"], atol=1e-5)
    np.testing.assert_allclose(-stood[0][:, 1], raw["COPNET_Z"], atol=1e-5)


def test_a_file_of_cortex_has_the_numbers_of_its_columns() -> None:
    path = data("walk1.forces")
    raw = np.genfromtxt(path, skip_header=5)
    y_up = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    plates = read_trial(path).plates
    assert len(plates) == 7
    for k, plate in enumerate(plates):
        columns = raw[:, 1 + 7 * k : 8 + 7 * k]
        np.testing.assert_allclose(plate.force(), columns[:, :3] @ y_up, atol=1e-12)
        on = plate.loaded()
        np.testing.assert_allclose(1e3 * plate.cop()[on], columns[on, 3:6] @ y_up, atol=1e-9)
        np.testing.assert_allclose(1e3 * plate.free_moment()[on], columns[on, 6], atol=1e-9)


def test_every_c3d_file_of_the_folder_has_the_plates_that_ezc3d_finds() -> None:
    """Of files in mm with z up that need no correction, apart from the sign of ORIGIN, which ezc3d also corrects."""
    ezc3d = pytest.importorskip("ezc3d")
    compared = 0
    for path in sorted(Path(os.environ.get("BIPEDSIM_LAB_DATA", "none")).rglob("*.c3d")):
        try:
            trial = read_trial(path)
            found = ezc3d.c3d(str(path), extract_forceplat_data=True)["data"]["platform"]
        except (RecordingError, RuntimeError, OSError, ValueError):
            continue
        if any("ORIGIN" not in note for note in trial.notes):
            continue
        for plate, other in zip(trial.plates, found, strict=True):
            force, cop, twist = (other[name].T for name in ("force", "center_of_pressure", "Tz"))
            np.testing.assert_allclose(plate.force(), force, atol=1e-6, err_msg=str(path))
            on = plate.loaded(50.0)
            np.testing.assert_allclose(1e3 * plate.cop()[on], cop[on], atol=1e-6, err_msg=str(path))
            np.testing.assert_allclose(1e3 * plate.free_moment()[on], twist[on, 2], atol=1e-6, err_msg=str(path))
            compared += 1
    if not compared:
        pytest.skip("needs C3D files in the folder BIPEDSIM_LAB_DATA (docs/lab_formats.md)")


def test_every_c3d_file_of_the_folder_has_the_samples_that_ezc3d_finds() -> None:
    """To the bit; such as those of github.com/pyomeca/ezc3d-testFiles and of kineticstoolkit's data/c3d_test_suite."""
    ezc3d = pytest.importorskip("ezc3d")
    compared = 0
    for path in sorted(Path(os.environ.get("BIPEDSIM_LAB_DATA", "none")).rglob("*.c3d")):
        try:
            content = read_content(path)
            data = ezc3d.c3d(str(path))["data"]
        except (RecordingError, RuntimeError, OSError, ValueError):
            # Damaged, without points and samples, or of a processor that ezc3d does not read.
            continue
        offset = content.parameters.numbers("ANALOG", "OFFSET")
        if not data["points"].size + data["analogs"].size or (offset is not None and offset.min() < 0):
            # ezc3d finds nothing in a file without names of groups, and takes negative offsets for positive ones.
            continue
        np.testing.assert_array_equal(content.points, data["points"][:3].transpose(2, 1, 0), err_msg=str(path))
        if content.analogs.size:
            np.testing.assert_array_equal(content.analogs, data["analogs"][0].T, err_msg=str(path))
        compared += 1
    if not compared:
        pytest.skip("needs C3D files in the folder BIPEDSIM_LAB_DATA (docs/lab_formats.md)")
