"""Runs as a laboratory would measure them: ideal plates, tables, markers, gait."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import scipy
from refusals import refusal

from bipedsim.analysis import (
    coordinates,
    find_gait,
    force_plate,
    gait_summary,
    ideal_plates,
    lab_table,
    recorded_configurations,
    run_markers,
    run_trial,
)
from bipedsim.cli.main import main
from bipedsim.config import RunConfig
from bipedsim.model import Robot, load_robot
from bipedsim.plates import PlateGeometry, PlateSignals
from bipedsim.recording import Recording
from bipedsim.recording.lab import read_storage, read_trial, write_csv, write_forces, write_mat, write_parquet
from bipedsim.runs import run


@cache
def a_walk() -> tuple[Recording, Robot]:
    """Some steps of a walk."""
    return run(RunConfig(scenario="walk", duration=6.0))[0], load_robot("biped14")


def test_an_ideal_plate_per_foot_holds_its_wrench() -> None:
    recording, _ = a_walk()
    truth = force_plate(recording)
    for k, plate in enumerate(ideal_plates(recording)):
        assert plate.geometry.name == recording.feet[k]
        np.testing.assert_allclose(plate.force(), truth.force[:, k], atol=1e-10)
        np.testing.assert_allclose(plate.moment_about(np.zeros(3)), truth.moment[:, k], atol=1e-9)
        loaded = plate.loaded()
        np.testing.assert_allclose(plate.cop()[loaded, :2], truth.cop[loaded, k], atol=1e-12)
        # As in laboratories, z points into the floor, so the raw Fz is negative under load.
        assert plate.channels[:, 2].max() <= 1e-9
        low, high = plate.geometry.corners.min(axis=0), plate.geometry.corners.max(axis=0)
        assert (low[:2] < truth.cop[loaded, k]).all()
        assert (truth.cop[loaded, k] < high[:2]).all()


def test_the_table_holds_the_same_wrench_in_every_frame() -> None:
    """Transformed between world, plate and sole, the wrench is the same force and moment."""
    recording, robot = a_walk()
    tables = {frame: lab_table(recording, robot, frame).columns for frame in ("world", "plate", "sole")}
    parts = [f"{kind}{axis}" for kind in "FM" for axis in "xyz"]
    plate = ideal_plates(recording)[0].geometry
    for i in (0, 1500, len(recording) - 1):
        world, on_plate, on_sole = (
            np.array([tables[frame][f"left_{part}"][i] for part in parts]) for frame in ("world", "plate", "sole")
        )
        to_world = pin.SE3(plate.rotation, plate.transducer_origin)
        np.testing.assert_allclose(to_world.act(pin.Force(on_plate)).vector, world, atol=1e-8)
        sole = pin.XYZQUATToSE3(recording.sole_poses[i, 0])
        np.testing.assert_allclose(sole.act(pin.Force(on_sole)).vector, world, atol=1e-8)
    com = [pin.centerOfMass(robot.model, robot.model.createData(), recorded_configurations(recording, robot)[100])]
    np.testing.assert_allclose([tables["world"][f"CoM_{axis}"][100] for axis in "xyz"], com[0], atol=1e-12)


def test_csv_parquet_and_mat_hold_the_same_numbers(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    recording, robot = a_walk()
    table = lab_table(recording.rows(slice(0, 400)), robot)
    for write, suffix in ((write_csv, "csv"), (write_parquet, "parquet"), (write_mat, "mat")):
        write(table, tmp_path / f"run.{suffix}")
    with (tmp_path / "run.csv").open(newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    names, rows = next(csv.reader(lines[:1])), list(csv.reader(lines[1:]))
    assert "left_Fz[N]" in names
    assert "left_Tz[N.m]" in names
    parquet = pq.read_table(tmp_path / "run.parquet")
    matlab = scipy.io.loadmat(tmp_path / "run.mat", simplify_cells=True)
    for name in ("left_Fz", "right_CoPx", "total_Tz", "CoM_z", "l_knee_effort"):
        values = table.columns[name]
        place = names.index(f"{name}[{table.units[name]}]")
        np.testing.assert_allclose([float(row[place] or "nan") for row in rows], values, rtol=1e-11)
        np.testing.assert_array_equal(parquet[name].to_numpy(), values)
        np.testing.assert_array_equal(matlab["data"][name], values)
        assert parquet.schema.field(name).metadata[b"unit"].decode() == table.units[name] == matlab["units"][name]


def test_the_row_before_the_first_step_of_a_bag_has_the_wrench_of_that_step() -> None:
    recording, robot = a_walk()
    bag = recording.rows(np.arange(100))
    bag.t = bag.t - bag.t[0]
    bag.wrench[0] = 0.0
    bag.cop[0] = np.nan
    table = lab_table(bag, robot).columns
    assert table["total_Fz"][0] == table["total_Fz"][1] > 600.0
    assert np.isfinite(table["left_CoPx"][0])
    for plate in ideal_plates(bag):
        first, second = plate.force()[:2, 2]
        assert first == pytest.approx(second, rel=1e-6), "who stands steps onto no plate"
        assert first > 300.0
    # The recording itself is unchanged.
    assert not bag.wrench[0].any()


def test_markers_are_where_joints_and_soles_were() -> None:
    recording, robot = a_walk()
    markers = run_markers(recording, robot)
    assert np.median(np.diff(markers.t)) == pytest.approx(1.0 / 250.0)
    row = 4 * 200
    model, data = robot.model, robot.model.createData()
    pin.forwardKinematics(model, data, recorded_configurations(recording, robot)[row])
    knee = markers.positions[200, markers.names.index("l_knee_centre")]
    np.testing.assert_allclose(knee, data.oMi[model.getJointId("l_knee")].translation, atol=1e-12)
    sole = pin.XYZQUATToSE3(recording.sole_poses[row, 1])
    corner = markers.positions[200, markers.names.index("right_sole_2")]
    np.testing.assert_allclose(corner, sole.act(np.array([*robot.soles[1].vertices[2], 0.0])), atol=1e-12)


def test_coordinates_turn_the_base_as_opensim_does() -> None:
    """R_x R_y R_z of the three angles is the base's orientation in axes with y up, on both sides."""
    recording, robot = a_walk()
    names, values = coordinates(recording, robot)
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    x, y, z = (np.radians(values[1700, names.index(f"base_r{axis}")]) for axis in "xyz")
    about = [pin.utils.rotate(axis, angle) for axis, angle in zip("xyz", (x, y, z), strict=True)]
    base = pin.Quaternion(recording.base_pose[1700, 3:]).toRotationMatrix()
    np.testing.assert_allclose(turn.T @ about[0] @ about[1] @ about[2] @ turn, base, atol=1e-12)
    assert values[1700, names.index("l_knee")] == pytest.approx(np.degrees(recording.joint_position[1700, 3]))
    np.testing.assert_allclose(values[1700, names.index("base_ty")], recording.base_pose[1700, 2])


def test_a_walk_has_its_stances_weight_and_way() -> None:
    recording, _ = a_walk()
    plates = ideal_plates(recording)
    gait = find_gait("walk", plates)
    np.testing.assert_allclose(gait.ahead, [1.0, 0.0], atol=1e-12)
    # Without a known weight, the mean vertical force over steps is used.
    assert gait.weight == pytest.approx(recording.weight, rel=0.01)
    assert len(gait.stances) >= 2
    known = find_gait("walk", plates, recording.weight)
    figures = gait_summary(known)
    assert figures["double_support_s"] < figures["stance_s"]
    # In double support, two feet share the weight. Over a step, the total load is one weight.
    both = figures["vertical_bws"]
    assert both == pytest.approx(figures["step_s"], rel=0.05)
    for stance in known.stances:
        # With the legs apart, each foot pushes sideways against the other.
        assert stance.force[50, 1] > 0.0
    turned = find_gait("walk", plates, ahead="-x")
    np.testing.assert_allclose(turned.stances[0].force[:, 0], -gait.stances[0].force[:, 0], atol=1e-9)
    with refusal(place="walk: stances"):
        find_gait("walk", plates, threshold=5000.0)


def test_a_plate_under_both_feet_is_no_stance() -> None:
    """Two feet one after the other on one plate; then one foot each on two."""
    t = np.arange(3000) / 1000.0
    turned = np.diag([1.0, -1.0, -1.0])

    def plate(name: str, down: tuple[float, float], course: tuple[float, float], far: float) -> PlateSignals:
        corners = np.array([[far + 0.9, -0.3, 0.0], [far, -0.3, 0.0], [far, 0.3, 0.0], [far + 0.9, 0.3, 0.0]])
        geometry = PlateGeometry(name, corners, 2, 1000.0)
        on = (t >= down[0]) & (t < down[1])
        force = np.zeros((len(t), 3))
        force[on, 2] = 700.0
        at = np.zeros_like(force)
        at[on, 0] = np.linspace(*course, on.sum())
        moment = np.cross(at - geometry.transducer_origin, force)
        assert np.allclose(np.abs(geometry.rotation), np.abs(turned))
        return PlateSignals(t, geometry, np.hstack([force @ geometry.rotation, moment @ geometry.rotation]))

    both = plate("both", (0.2, 1.1), (0.1, 0.8), 0.0)
    singles = [plate("one", (1.0, 1.7), (1.1, 1.3), 1.0), plate("two", (1.6, 2.3), (2.1, 2.3), 2.0)]
    gait = find_gait("walk", [both, *singles], 700.0)
    assert [stance.plate for stance in gait.stances] == ["one", "two"]
    (note,) = gait.notes
    assert "force plate both from 0.200 to 1.100 s" in note
    assert "0.70 m" in note
    with refusal(place="walk: stances"):
        find_gait("walk", [both], 700.0)


@pytest.mark.long
def test_the_command_writes_what_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording, _ = a_walk()
    source = tmp_path / "walk.npz"
    recording.save(source)
    for form in ("c3d", "mot", "sto", "trc"):
        assert main(["export", str(source), "--format", form, "--from", "1", "--to", "2"]) == 0
    assert "one ideal plate per foot" in capsys.readouterr().out
    # The file name also defines the format.
    assert main(["export", str(source), "-o", str(tmp_path / "named.mot"), "--from", "1", "--to", "2"]) == 0
    assert (tmp_path / "named.mot").read_text().count("ground_force") == (tmp_path / "walk.mot").read_text().count(
        "ground_force"
    )
    truth = run_trial(recording.rows((recording.t > 1.0 - 1e-9) & (recording.t < 2.0 + 1e-9)), None)
    for suffix in ("c3d", "mot", "sto"):
        trial = read_trial(tmp_path / f"walk.{suffix}")
        for one, plate in zip(trial.plates, truth.plates, strict=True):
            n = len(one)
            assert n >= len(plate) - 3
            np.testing.assert_allclose(one.force(), plate.force()[:n], atol=1e-4)
            loaded = plate.loaded()[:n]
            np.testing.assert_allclose(one.cop()[loaded], plate.cop()[:n][loaded], atol=1e-6)
    motion = read_storage(tmp_path / "walk_coordinates.mot")
    assert motion.degrees
    assert "<applied_to_body>l_ankle_roll</applied_to_body>" in (tmp_path / "walk_loads.xml").read_text()
    picture, same_stem = tmp_path / "gait.png", tmp_path / "again" / source.name
    same_stem.parent.mkdir()
    same_stem.write_bytes(source.read_bytes())
    capsys.readouterr()
    assert main(["compare-gait", str(source), str(same_stem), "-o", str(picture)]) == 0
    assert picture.stat().st_size > 10_000
    out = capsys.readouterr().out
    assert "double support" in out
    # Paths are shortened from the left, so that the names stay distinct.
    assert str(source)[-24:] in out
    assert str(same_stem)[-24:] in out
    # A table of the run has the same gait.
    table = tmp_path / "table.csv"
    assert main(["export", str(source), "-o", str(table), "--format", "columns"]) == 0
    capsys.readouterr()
    assert main(["compare-gait", str(source), str(table), "-o", str(picture), "--json"]) == 0
    gaits = json.loads(capsys.readouterr().out)
    # Its weight is the mean over the steps.
    assert gaits[str(table)] == pytest.approx(gaits[str(source)], rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "c3d", "--frame", "sole"], "--format c3d"),
        (["--frame", "plate"], "--frame plate: --format columns"),
        (["--filter", "20"], "--filter: --format columns"),
        (["--format", "csv", "--filter", "700"], "between 0 and half the sampling rate"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_walk()[0].rows(slice(0, 100)).save(tmp_path / "walk.npz")
    assert main(["export", str(tmp_path / "walk.npz"), *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.long
def test_what_a_reader_mends_is_said_by_every_command_that_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message is on stderr if stdout is JSON."""
    recording, _ = a_walk()
    path = tmp_path / "walk.mot"
    write_forces(ideal_plates(recording), path, 20.0)
    lines = path.read_text(encoding="utf-8").split("\n")
    del lines[lines.index("endheader") + 500]
    path.write_text("\n".join(line for line in lines if not line.startswith("nRows")), encoding="utf-8")
    (note,) = read_trial(path).notes
    for command in (["plates", str(path), "--json"], ["compare-gait", str(path)]):
        capsys.readouterr()
        assert main([*command, "-o", str(tmp_path / "a.png")]) == 0
        assert note in capsys.readouterr().err
