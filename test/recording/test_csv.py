"""Recordings exported as tables and figures."""

from __future__ import annotations

import csv
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text
from picture_support import Drawn
from recording_support import standing
from refusals import refusal

from bipedsim.config import ProgressBar
from bipedsim.errors import OmittedWarning, RecordingError, UnknownNameError
from bipedsim.recording import csv as csv_module
from bipedsim.recording.bag import ROWS
from bipedsim.recording.csv import CsvColumns, CsvTable, export_csv
from bipedsim.recording.load import load_recording, read_blocks
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import COLUMNS, OBJECT_COMPONENTS
from bipedsim.view import plots
from bipedsim.view.palette import FACE_COLOUR, FOOT_COLOURS, LIMIT_COLOUR, PUSH_COLOUR, TOTAL_COLOUR
from bipedsim.view.panels import USUAL_PANELS
from bipedsim.view.plots import plot
from bipedsim.view.sheet import picture


def test_the_table_holds_every_number_under_its_name_and_unit(tmp_path: Path) -> None:
    r = standing(4500)
    r.cop[7, 1] = np.nan
    r.sliding[8, 0] = True
    r.readouts = {"zmp_margin": np.where(np.arange(4500) % 10 == 0, 0.03, np.nan)}
    export_csv(r, tmp_path / "sub" / "run.csv")
    with (tmp_path / "sub" / "run.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    head, body = rows[0], rows[1:]
    assert len(body) == 4500
    assert len(set(head)) == len(head)
    column = {name: [row[i] for row in body] for i, name in enumerate(head)}
    np.testing.assert_allclose(np.array(column["t[s]"], float), r.t, rtol=1e-8)
    np.testing.assert_allclose(np.array(column["l_knee_joint_effort[N.m]"], float), r.joint_effort[:, 0], rtol=1e-8)
    np.testing.assert_allclose(np.array(column["left_foot_wrench_ty[N.m]"], float), r.wrench[:, 0, 4], rtol=1e-8)
    np.testing.assert_allclose(np.array(column["right_foot_sole_poses_y[m]"], float), r.sole_poses[:, 1, 1], rtol=1e-8)
    assert set(column["left_foot_mode"]) == {"9"}
    assert column["left_foot_sliding"][7:10] == ["0", "1", "0"]
    assert column["right_foot_cop_x[m]"][6:8] == ["0", ""]
    assert column["readout_zmp_margin"][:2] == ["0.03", ""]
    # Nothing of an IMU was recorded.
    assert not [name for name in head if "imu" in name]


def test_a_table_written_block_by_block_is_that_of_the_whole(tmp_path: Path) -> None:
    """A column or debug signal that begins in a later block has its place, empty, from the first row on."""
    r = standing(5000)
    r.imu_angular_velocity[3000:] = 0.25
    r.readouts = {"late": np.where(np.arange(5000) < 4000, np.nan, 1.5)}
    blocks = [r.rows(slice(0, 2500)), r.rows(slice(2500, 2501)), r.rows(slice(2501, 5000))]
    del blocks[0].readouts["late"]
    columns = CsvColumns()
    for block in blocks:
        columns.add(block)
    table = CsvTable(tmp_path / "blocks.csv", columns)
    for block in blocks:
        table.add(block)
    export_csv(r, tmp_path / "whole.csv")
    assert (tmp_path / "blocks.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert "imu_angular_velocity" in (tmp_path / "whole.csv").read_text().partition("\n")[0]


@pytest.mark.parametrize(("rows", "asked", "shown"), [(4100, True, True), (100, None, False)])
def test_export_reports_progress_when_asked(
    rows: int, asked: bool | None, shown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []

    class Bar(ProgressBar):
        def update(self, n: float | None = 1) -> bool | None:
            assert self.total == rows
            if not self.disable:
                done.append(int(n or 0))
            return super().update(n)

    monkeypatch.setattr(csv_module, "ProgressBar", Bar)
    export_csv(standing(rows), tmp_path / "run.csv", progress=asked)
    assert sum(done) == rows * shown


def test_a_table_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refusal(RecordingError, place=tmp_path / "file" / "run.csv"):
        export_csv(standing(3), tmp_path / "file" / "run.csv")


def _same(a: Recording, b: Recording) -> None:
    """Assert that all numbers of two recordings have the same bits."""
    assert a.owners == b.owners
    for name in COLUMNS:
        one, other = getattr(a, name), getattr(b, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, err_msg=name)
    for group in ("readouts", "objects"):
        one, other = getattr(a, group), getattr(b, group)
        assert list(one) == list(other)
        for name, values in one.items():
            np.testing.assert_array_equal(values, other[name], err_msg=name)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-300, 1e-9, 1.0, 1e12]))
def test_a_table_read_again_has_the_same_bits(
    seed: int, scale: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng, n = np.random.default_rng(seed), 30
    joints, feet = ("l_knee", "knee_joint_position", "object_hand", "readout_x"), ("left", "rear_foot", "object_left")
    r = Recording.empty(n, joints, feet, imu_names=("shank_imu", "object_hand"), switch_names=("toe",))
    for name, column in COLUMNS.items():
        values = scale * rng.normal(size=getattr(r, name).shape)
        if column.dtype is np.float64:
            values[rng.random(values.shape) < 0.2] = np.nan
        else:
            values = rng.integers(0, 2, size=values.shape)
        setattr(r, name, values.astype(column.dtype))
    r.t = np.cumsum(rng.uniform(1e-9, 1e-2, n))
    r.contact_switches = rng.choice([0.0, 1.0, np.nan], size=(n, 1))
    r.readouts = {"margin, of all": rng.normal(size=n), "/battery": np.full(n, 12.0)}
    # Some names of readouts end like columns of joints and sensors.
    for name in ("hip_joint_position", "gripper_closed", "com_qx", "torso_wx"):
        r.readouts[name] = rng.normal(size=n)
    r.objects = {name: rng.normal(size=(n, len(OBJECT_COMPONENTS))) for name in ("ball_x[m]_1", "cart")}
    path = tmp_path_factory.mktemp("table") / "run.csv"
    export_csv(r, path)
    _same(load_recording(path), r)


def test_a_run_and_its_table_are_read_alike(tmp_path: Path) -> None:
    r = standing(900)
    export_csv(r, tmp_path / "run.csv")
    whole = load_recording(tmp_path / "run.csv")
    _same(load_recording(tmp_path / "run.csv", start=r.t[100], stop=r.t[199]), whole.rows(slice(100, 200)))
    (block,) = [rows for _, rows in read_blocks(tmp_path / "run.csv")]
    _same(block, whole)


def test_a_table_of_another_program_needs_only_the_names(tmp_path: Path) -> None:
    """Order, units, missing columns, empty lines and the mark of a spreadsheet at the begin do not matter."""
    path = tmp_path / "log.csv"
    path.write_text(
        "\ufeffr_hip_joint_position, t[s] ,left_foot_ankle_wrench_fz[N],l_hip_joint_position[rad]\n"
        "0.5,10,,1\n\n0.25,10.5,7,\n"
    )
    r = load_recording(path)
    assert r.joint_names == ("r_hip", "l_hip")
    assert r.feet == ("left",)
    assert not r.notes
    np.testing.assert_array_equal(r.t, [10.0, 10.5])
    np.testing.assert_array_equal(r.joint_position, [[0.5, 1.0], [0.25, np.nan]])
    np.testing.assert_array_equal(r.ankle_wrench[:, 0, 2], [np.nan, 7.0])
    assert np.isnan(r.ankle_wrench[:, 0, [0, 1, 3, 4, 5]]).all()
    assert np.isnan(r.joint_effort).all()


def test_a_sensor_needs_its_unit_and_is_reported(tmp_path: Path) -> None:
    """Other quantities of a log, such as the attitude of the CoM frame, end like the columns of a sensor."""
    path = tmp_path / "log.csv"
    path.write_text("t[s],left_gyro_wx,com_qx,shank_qw,shank_az[m/s^2],toe_closed\n0,1,2,3,4,1\n")
    with pytest.warns(OmittedWarning):
        r = load_recording(path)
    assert r.imu_names == ("shank",)
    assert r.switch_names == ("toe",)
    np.testing.assert_array_equal(r.imus[0, 0], [*[np.nan] * 3, 3.0, *[np.nan] * 5, 4.0])
    sensors, omitted = r.notes
    assert "IMU shank" in sensors
    assert "contact switch toe" in sensors
    assert "left_gyro_wx" in omitted
    assert "com_qx" in omitted


def test_empty_columns_and_lines_of_a_spreadsheet_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("t[s],,a_joint_effort,,\n0,,1,,\n1,,2,,\n,,,,\n")
    r = load_recording(path)
    assert not r.notes
    np.testing.assert_array_equal(r.t, [0.0, 1.0])
    np.testing.assert_array_equal(r.joint_effort, [[1.0], [2.0]])


def test_columns_that_are_left_out_may_contain_text(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("t[s],phase,a_joint_effort\n0,swing,1\n")
    with pytest.warns(OmittedWarning):
        assert load_recording(path).joint_effort == 1.0


def test_a_long_table_is_read_block_by_block(tmp_path: Path) -> None:
    """A table takes memory for the requested rows only, and lines count from the begin of the file."""
    n, path = 3 * ROWS, tmp_path / "log.csv"
    joints = [f"joint{i}" for i in range(20)]
    names = ["t[s]", "readout_a", *(f"{joint}_joint_effort[N.m]" for joint in joints)]
    rows = [f"{k},{k}" + f",{k % 7}" * len(joints) for k in range(n)]
    path.write_text("\n".join([",".join(names), *rows]))
    tracemalloc.start()
    part = load_recording(path, start=n - 10.0)
    part_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    whole = load_recording(path)
    whole_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    _same(part, whole.rows(slice(n - 10, n)))
    assert [len(block) for _, block in read_blocks(path)] == [ROWS] * 3
    np.testing.assert_array_equal(whole.t, np.arange(n))
    np.testing.assert_array_equal(whole.readouts["a"], np.arange(n))
    np.testing.assert_array_equal(whole.joint_effort, np.repeat(np.arange(n)[:, None] % 7, len(joints), axis=1))
    cells = n * len(names)
    assert whole_peak < 22 * cells
    assert part_peak < 12 * cells
    path.write_text("\n".join([",".join(names), *rows[:ROWS], rows[ROWS - 1]]))
    with refusal(RecordingError, place=f"{path}: line {ROWS + 2}, column t[s]"):
        load_recording(path)


def test_names_that_the_table_would_have_twice_are_refused(tmp_path: Path) -> None:
    r = standing(3)
    r.imu_names, r.imus = ("object_ball",), np.zeros((3, 1, 10))
    r.objects = {"ball": np.zeros((3, len(OBJECT_COMPONENTS)))}
    with refusal(RecordingError, place=tmp_path / "new.csv"):
        export_csv(r, tmp_path / "new.csv")
    assert not (tmp_path / "new.csv").exists()


def test_columns_with_unknown_names_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("t[s],q_knee,_joint_position[rad],object_ball_x[m]\n0,1,2,3\n1,1,2,3\n")
    with pytest.warns(OmittedWarning) as caught:
        r = load_recording(path)
    assert len(caught) == 1
    for name in ("q_knee", "_joint_position[rad]", "object_ball_x[m]"):
        assert name in r.notes[0]


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("", "", None),
        ("t[s],knee_joint_position[rad]\n", "", None),
        ("time,knee_joint_position[rad]\n0,1\n", "", None),
        ("t[s],a_joint_effort,a_joint_effort\n0,1,1\n", "", None),
        ("t[ms],a_joint_effort\n0,1\n", ": t[ms]", None),
        ("t[s],a_joint_position[deg]\n0,1\n", ": a_joint_position[deg]", None),
        ("t[s],a_joint_position\n0,1\n1,1,1\n", ": line 3", None),
        ("t[s],a_joint_position\n0,1\n\n1,high\n", ": line 4, column a_joint_position", "high"),
        ("t[s],a_joint_position\n0,1\n\n0,1\n", ": line 4, column t[s]", 0.0),
        ("t[s],a_joint_position\n1,1\n,1\n", ": line 3, column t[s]", np.nan),
        ("t[s],a_joint_position\n1,1\ninf,1\n", ": line 3, column t[s]", np.inf),
        ("t[s],left_foot_mode\n0,2\n1,2.7\n", ": line 3, column left_foot_mode", 2.7),
        ("t[s],left_foot_clamped\n0,inf\n", ": line 2, column left_foot_clamped", np.inf),
        ("t[s],left_foot_clamped\n0,1e17\n", ": line 2, column left_foot_clamped", 1e17),
        ("t[s],left_foot_sliding\n0,1\n1,\n2,0.5\n", ": line 4, column left_foot_sliding", 0.5),
        ("t[s],toe_closed\n0,0.5\n", ": line 2, column toe_closed", 0.5),
        ("t[s],a_joint_effort,\n0,1,\n1,1,5\n", ": line 3, column 3", "5"),
        ("t[s],a_joint_effort,a_joint_effort[N.m]\n0,1,1\n", "", None),
        ("t[s],readout_/a,/a\n0,1,1\n", "", None),
        ("t[s],left_gyro_wx[deg/s]\n0,1\n", ": left_gyro_wx[deg/s]", None),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_place(
    text: str, place: str, value: object, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(RecordingError) as caught:
        load_recording(path)
    assert str(caught.value.place) == f"{path}{place}"
    if value is not None:
        np.testing.assert_equal(caught.value.value, value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"t[s]\n\xff\xfe\x00")
    with refusal(RecordingError, place=tmp_path / "log.csv"):
        load_recording(tmp_path / "log.csv")


# --- figures ---


def shown(path: Path, colours: set[str]) -> set[str]:
    """Return the ``colours`` that occur in a figure. Antialiasing makes lines thinner, but not areas."""
    from matplotlib.colors import to_rgb
    from PIL import Image

    counts, pixels = zip(*Image.open(path).convert("RGB").getcolors(1 << 24), strict=True)
    drawn = colours | set(FOOT_COLOURS[:2])
    off = {colour: np.abs(np.divide(pixels, 255.0) - to_rgb(colour)).max(axis=1) for colour in drawn}
    nearest = np.min(list(off.values()), axis=0)
    near = {
        colour: (off[colour] < (0.01 if colour == FACE_COLOUR else 0.3)) & (off[colour] == nearest)
        for colour in colours
    }
    return {colour for colour in colours if np.array(counts)[near[colour]].sum() >= 20}


@pytest.mark.long
@pytest.mark.parametrize(
    ("panels", "colours"),
    [
        (["forces"], {TOTAL_COLOUR, FOOT_COLOURS[0], FOOT_COLOURS[1], LIMIT_COLOUR}),
        (["cop"], {TOTAL_COLOUR, FOOT_COLOURS[0], FOOT_COLOURS[1]}),
        (["modes"], {FACE_COLOUR}),
        (["torques"], {TOTAL_COLOUR, FOOT_COLOURS[0], FOOT_COLOURS[1], LIMIT_COLOUR}),
        (["readouts"], {TOTAL_COLOUR}),
        (USUAL_PANELS, {TOTAL_COLOUR, FOOT_COLOURS[0], FACE_COLOUR, LIMIT_COLOUR}),
    ],
)
def test_every_panel_draws_what_it_is_for(tmp_path: Path, panels: list[str], colours: set[str]) -> None:
    r = standing(2000)
    absent = {LIMIT_COLOUR, FACE_COLOUR} - colours
    r.wrench[:, 0, :2] = 20 * np.sin(r.t)[:, None]
    r.wrench[:, 1, :3] += 20 * np.cos(3 * r.t)[:, None]
    r.wrench[:, :, 3:] += np.array([2.0, 3.0, 0.0]) * np.sin(5 * r.t)[:, None, None]
    r.readouts = {"zmp_margin": np.where(np.arange(2000) % 10 == 0, np.sin(r.t), np.nan)}
    plot(r, tmp_path / "run.png", panels)
    assert shown(tmp_path / "run.png", colours | absent) == colours


@pytest.mark.parametrize("panel", ["modes", "readouts"])
def test_a_fall_is_marked_over_time(tmp_path: Path, panel: str) -> None:
    r = standing(2000)
    r.readouts = {"zmp_margin": r.t}
    r.gave_up_at = 1.0
    plot(r, tmp_path / "run.png", [panel])
    assert shown(tmp_path / "run.png", {LIMIT_COLOUR}) == {LIMIT_COLOUR}


def test_the_centre_of_pressure_of_a_walk_has_the_width_of_the_page(tmp_path: Path) -> None:
    """When the robot stands, the CoP plot is next to the forces. Over 3 m it is below them and has the full width."""
    stands, walks = standing(2000), standing(2000)
    walks.sole_poses[:, :, 0] += np.linspace(0.0, 3.0, 2000)[:, None]
    axes = {}
    for name, r in (("stands", stands), ("walks", walks)):
        drawn = Drawn(lambda path, r=r: plot(r, path, ["forces", "cop"]), tmp_path)
        axes[name] = drawn.place("centre of pressure (world, from above)") - drawn.place("sideways  f_y [N]")
    assert axes["stands"][0] > 300.0
    assert abs(axes["walks"][0]) < 30.0
    assert axes["walks"][1] > 0.0


def test_contact_modes_are_drawn_by_kind_and_named_where_there_is_room(tmp_path: Path) -> None:
    r = standing(1000)
    r.mode[:, 0] = 8  # edge 3-0
    r.mode[100:102, 0] = 3  # vertex 2, for 2 ms
    r.sliding[100:102, 0] = True
    r.mode[:50, 1] = 0
    drawn = Drawn(lambda path: plot(r, path, ["modes", "cop"]), tmp_path)
    kinds = {"in the air", "vertex", "vertex, sliding", "edge", "edge, sliding", "face", "face, sliding"}
    assert kinds & set(drawn.texts) == {"in the air", "vertex, sliding", "edge", "face"}
    assert drawn.texts.count("3-0") == 2  # before and after the 2 ms
    # Corners of both soles have the numbers that the modes use. Vertex 0 is the front right one.
    assert all(drawn.texts.count(str(corner)) >= 2 for corner in range(4))
    # On another polygon than the sole, such as above a step, the numbers would be wrong.
    r.n_vertices[:] = 5
    assert not {"3", "3-4"} & set(Drawn(lambda path: plot(r, path, ["modes", "cop"]), tmp_path).texts)


@pytest.mark.long
def test_pushes_units_and_torques_that_are_noise(tmp_path: Path) -> None:
    r = standing(1000)
    r.readouts = {"zmp_margin": r.t, "capture_error": r.t, "lean_rad": r.t}
    r.joint_effort[:] = 1.0
    drawn = Drawn(lambda path: plot(r, path), tmp_path)
    assert "push" not in drawn.texts
    assert {"zmp_margin [m]", "capture_error", "lean_rad [rad]"} <= set(drawn.texts)
    assert "joint torques [N.m]" in drawn.texts
    r.joint_effort[:, 2] = 1e-9
    r.pushes = ((0.3, 0.4),)
    drawn = Drawn(lambda path: plot(r, path), tmp_path)
    assert drawn.texts.count("push") == 1
    assert "joint torques [N.m]; below 1e-06 N.m all the time: torso" in drawn.texts
    assert "torso" not in drawn.texts
    assert PUSH_COLOUR.lower() in drawn.source.lower()


def test_a_recording_of_nothing_but_joints_still_draws(tmp_path: Path) -> None:
    r = Recording.empty(100, ["a", "b"], ["left"])
    r.t[:] = np.arange(100) * 1e-3
    r.joint_effort[:] = 1.0
    plot(r, tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_pictures_of_nothing_and_unknown_panels_are_refused(tmp_path: Path) -> None:
    with refusal(UnknownNameError, kind="panel", name="force", meant="forces"):
        plot(standing(10), tmp_path / "x.png", ["force"])
    with refusal(RecordingError, place="the recording"):
        plot(standing(0), tmp_path / "x.png")
    with refusal(RecordingError, place="panels readouts"):
        plot(standing(10), tmp_path / "x.png", ["readouts"])
    with refusal(RecordingError, place=tmp_path / "x.doc"):
        plot(standing(10), tmp_path / "x.doc")


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, bipedsim.view.plots, bipedsim.recording.recording; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The collected text of all figures, as written."""
    figures = []

    @contextmanager
    def kept(*of: Any) -> Iterator[Figure]:
        with picture(*of) as figure:
            figures.append(figure)
            yield figure

    monkeypatch.setattr(plots, "picture", kept)
    return figures


def test_the_peak_of_an_impact_is_cut_with_its_value_and_the_rest_stays_readable(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    r = standing(2000)
    r.wrench[300, 0, 2] = 100.0 * r.weight
    r.wrench[1900, 1, 0] = -20.0 * r.weight
    plot(r, tmp_path / "run.png", ["forces"])
    axes = drawn[0].subfigs[0].subfigs[0].axes
    limits, peaks = [ax.get_ylim() for ax in axes], [ax.get_title("right") for ax in axes]
    assert limits[0][1] == pytest.approx(3.0 * r.weight)
    assert limits[1][0] == pytest.approx(-r.weight)
    assert limits[2][1] < 0.2 * r.weight, "nothing goes sideways"
    total = r.wrench[300, :, 2].sum()
    assert peaks == [
        f"clipped: peak {total:.0f} N at {r.t[300]:.2f} s",
        f"clipped: peak {-20.0 * r.weight:.0f} N at {r.t[1900]:.2f} s",
        "",
    ]


def test_what_is_said_of_peaks_hides_none_of_them_nor_anything_else(tmp_path: Path, drawn: list[Figure]) -> None:
    r = standing(2000)
    r.wrench[300, 0] = [9.0 * r.weight, 0.0, 100.0 * r.weight, 0.0, 0.0, 0.0]
    r.wrench[310, 0, 0] = -8.0 * r.weight
    plot(r, tmp_path / "run.png", ["forces"])
    axes = drawn[0].subfigs[0].subfigs[0].axes
    for ax, lines in zip(axes, (1, 2, 0), strict=True):
        assert not ax.texts
        notes = [one for one in ax.get_children() if isinstance(one, Text) and "clipped: peak" in one.get_text()]
        others = [one for one in ax.get_children() if isinstance(one, Text) and one.get_text() and one not in notes]
        assert sum(len(note.get_text().splitlines()) for note in notes) == lines
        for note in notes:
            box = note.get_window_extent()
            assert box.y0 >= ax.bbox.y1
            beside = [*others, *filter(None, [ax.get_legend()])]
            assert not any(box.overlaps(one.get_window_extent()) for one in beside)
            assert not any(box.overlaps(other.get_window_extent()) for other in axes if other is not ax)


def test_the_legend_hides_no_title_and_names_only_what_is_there(tmp_path: Path, drawn: list[Figure]) -> None:
    r = standing(2000)
    r.mode[0] = 0
    r.gave_up_at, r.pushes = 1.5, ((0.5, 0.6),)
    plot(r, tmp_path / "run.png", ["forces", "modes", "cop"])
    (figure,) = drawn
    first = figure.subfigs[0].subfigs[0].axes[0]
    legend = first.get_legend()
    assert {"push", "stopped"} <= {text.get_text() for text in legend.get_texts()}
    (title,) = (text for text in first.get_children() if isinstance(text, Text) and "f_z" in text.get_text())
    assert not legend.get_window_extent().overlaps(title.get_window_extent())
    texts = {text.get_text() for text in figure.findobj(Text)}
    assert "face" in texts
    assert "in the air" not in texts, "at t = 0 no foot has a mode yet"
