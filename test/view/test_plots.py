"""Content of the panels of figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from picture_support import Drawn
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.config import RunConfig
from bipedsim.errors import RecordingError, UnknownNameError
from bipedsim.recording import Recording
from bipedsim.runs import run
from bipedsim.view import plot, sheet
from bipedsim.view.palette import LIMIT_COLOUR
from bipedsim.view.panels import PANELS, USUAL_PANELS, panel_names
from bipedsim.view.plot_body import MOST_OBJECTS, draw_objects, roll_pitch_yaw
from bipedsim.view.plot_joints import AT_LIMIT, across, joint_groups
from bipedsim.view.plots import PanelPlot
from bipedsim.view.sheet import DOT, PAGE


def run_with(count: int) -> Recording:
    """Return half a second with balls that roll, each faster than the one before."""
    recording = Recording.empty(50, ["hip"], ["left"])
    recording.t[:] = 0.01 * np.arange(50)
    recording.wrench[:] = 0.0
    for i in range(count):
        states = np.zeros((50, 13))
        states[:, 0], states[:, 2], states[:, 8] = (i + 1.0) * recording.t, 0.1, -(i + 1.0)
        recording.objects[f"ball_{i}"] = states
    return recording


@pytest.mark.parametrize("count", [1, MOST_OBJECTS + 2])
def test_objects_are_drawn_over_time_with_names_and_units(count: int) -> None:
    figure, recording = Figure().subfigures(1, 1), replace(run_with(count), pushes=((0.1, 0.3),))
    draw_objects(figure, recording)
    assert [ax.get_title() for ax in figure.axes] == ["x, forward [m]", "height z [m]", "speed [m/s]"]
    shown = min(count, MOST_OBJECTS)
    for ax, at in zip(figure.axes, (0.49, 0.1, 1.0), strict=True):
        assert len(ax.lines) == shown
        assert ax.lines[0].get_ydata()[-1] == pytest.approx(at)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [line.get_color() for line in figure.legends[0].get_lines()] == [
        line.get_color() for line in figure.axes[0].lines[:shown]
    ]
    assert names[0].startswith("ball_0")
    assert names[-1] == f"ball_{shown - 1}" + (" (and 2 more)" if count > shown else "")


def test_the_panel_is_left_out_where_there_are_none(tmp_path: Path) -> None:
    none = run_with(0)
    with refusal(RecordingError, place="panels objects"):
        plot(none, tmp_path / "none.png", ["objects"])
    with refusal(RecordingError, place="panels readouts, objects"):
        plot(none, tmp_path / "none.png", ["readouts", "objects"])
    plot(run_with(1), tmp_path / "some.png", ["readouts", "objects"])
    assert (tmp_path / "some.png").stat().st_size > 5_000


def test_readouts_that_never_change_are_said_and_not_drawn(tmp_path: Path) -> None:
    recording = run_with(0)
    grows, none = recording.t.copy(), np.full(50, np.nan)
    recording.readouts = {"zmp_margin": grows, "command_share": np.where(grows > 0.2, 1.0, np.nan), "later": none}
    recording.readouts["noise"] = 1e-16 * np.sin(50.0 * grows)
    said = Drawn(lambda path: plot(recording, path, ["readouts"]), tmp_path).texts
    assert "zmp_margin [m]" in said
    assert "readouts; constant: command_share = 1, later unknown, noise = 0" in said
    assert "command_share" not in said
    everything = Drawn(lambda path: plot(recording, path, ["readouts"], constants=True), tmp_path).texts
    assert {"readouts", "zmp_margin [m]", "command_share", "later", "noise"} <= set(everything)
    # One that changes once is drawn.
    recording.readouts["command_share"][-1] = 0.9
    assert "command_share" in Drawn(lambda path: plot(recording, path, ["readouts"]), tmp_path).texts
    recording.readouts = {"height_m": np.full(50, 0.25)}
    with refusal(RecordingError, place="panels readouts"):
        plot(recording, tmp_path / "none.png", ["readouts"])


@pytest.mark.long
def test_who_asks_for_readouts_by_name_gets_all(tmp_path: Path) -> None:
    recording = run_with(0)
    recording.readouts = {"zmp_margin": recording.t.copy(), "command_share": np.ones(50)}
    recording.save(tmp_path / "run.npz")
    for panels, drawn in (([], False), (["all"], False), (["forces,readouts"], True)):
        arguments = ["--panels", *panels] if panels else []
        assert main(["plot", str(tmp_path / "run.npz"), "-o", str(tmp_path / "run.svg"), *arguments]) == 0
        # Text is drawn as glyphs, with itself as a comment before them.
        assert ("<!-- command_share -->" in (tmp_path / "run.svg").read_text(encoding="utf-8")) == drawn


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "columns"), [(1, 3), (3, 3), (4, 4), (5, 3), (6, 3), (7, 4), (10, 4), (13, 3), (16, 4), (17, 3)]
)
def test_no_axes_are_left_over_alone(count: int, columns: int) -> None:
    """The exception is 13 axes: one remains in rows of three and of four."""
    assert across(count) == columns
    names = [f"joint_of_{chr(97 + i)}" for i in range(count)]
    page = PanelPlot(joints_run(names), ["joints"])
    with sheet.drawn(page.size, "") as figure:
        page.draw(figure)
        grid = [ax for part in figure.subfigs for ax in part.axes]
        shown = [ax for ax in grid if ax.get_visible()]
    assert len(shown) == 2 * count, "each with its error below"
    assert len({ax.get_subplotspec().colspan.start for ax in grid}) == columns
    assert count % columns != 1 or count in (1, 13)


def joints_run(names: list[str]) -> Recording:
    """Return half a second of joints that follow sines 0.1 rad below the target, with drives that give less."""
    recording = Recording.empty(50, names, ["left"])
    recording.t[:] = 0.01 * np.arange(50)
    recording.wrench[:] = 0.0
    for i in range(len(names)):
        recording.setpoint[:, i, 0] = np.sin(recording.t + i)
        recording.joint_position[:, i] = np.sin(recording.t + i) - 0.1
        recording.joint_command[:, i] = 10.0 + i
        recording.joint_effort[:, i] = 8.0 + i
    recording.effort_limit = np.full(len(names), 12.0)
    return recording


def axes_of(figure: Figure, title: str) -> Axes:
    """Return the axes whose title begins with ``title``."""
    return next(ax for ax in figure.axes if ax.get_title().startswith(title))


def curve(ax: Axes, label: str) -> np.ndarray:
    """Return the values of a curve."""
    return np.asarray(next(line for line in ax.lines if line.get_label() == label).get_ydata())


def drawn(recording: Recording, *panels: str) -> Figure:
    """Return the figure of these panels."""
    figure = Figure(layout="constrained")
    PanelPlot(recording, panels).draw(figure)
    return figure


def test_pairs_of_joints_share_axes_with_what_was_wanted_and_the_error_below() -> None:
    recording = joints_run(["LHip", "RHip", "waist"])
    figure = drawn(recording, "joints")
    hip, errors = axes_of(figure, "Hip"), [ax for ax in figure.axes if ax.get_title() == "position - wanted"]
    np.testing.assert_array_equal(curve(hip, "LHip"), recording.joint_position[:, 0])
    np.testing.assert_array_equal(curve(hip, "RHip wanted"), recording.setpoint[:, 1, 0])
    left, right = (next(line for line in hip.lines if line.get_label() == name) for name in ("LHip", "RHip"))
    assert left.get_color() != right.get_color()
    assert left.get_linestyle() != right.get_linestyle()
    np.testing.assert_allclose(curve(errors[0], "RHip error"), -0.1)
    assert [text.get_text() for text in figure.subfigs[0].legends[0].get_texts()] == ["left", "wanted", "right"]


def test_torques_are_those_applied_and_those_commanded_against_the_limit() -> None:
    ax = axes_of(drawn(joints_run(["l_knee", "r_knee"]), "torques"), "knee")
    np.testing.assert_array_equal(curve(ax, "l_knee"), 8.0)
    np.testing.assert_array_equal(curve(ax, "r_knee commanded"), 11.0)
    assert ax.get_title() == "knee   (peak 9, limit 12)"
    ideal = joints_run(["l_knee", "r_knee"])
    ideal.joint_command = ideal.joint_effort
    assert len(axes_of(drawn(ideal, "torques"), "knee").lines) == 3  # the two, and the limit that they come near


@pytest.mark.parametrize("at", [0, 20, 49])
def test_a_stop_of_one_tick_is_seen_where_the_legend_names_it(at: int) -> None:
    recording = joints_run(["l_knee", "r_knee"])
    recording.stop_torque[:] = np.nan
    recording.stop_torque[at, 1] = 5.0
    figure = drawn(recording, "torques")
    line = curve(axes_of(figure, "knee"), AT_LIMIT)
    assert set(np.flatnonzero(np.isfinite(line))) == {at - 1, at, at + 1} & set(range(50))
    named = [text.get_text() for text in figure.subfigs[0].legends[0].get_texts()]
    assert AT_LIMIT in named
    recording.stop_torque[:] = 0.0
    named = [text.get_text() for text in drawn(recording, "torques").subfigs[0].legends[0].get_texts()]
    assert AT_LIMIT not in named


def test_a_joint_without_partner_keeps_its_name() -> None:
    assert joint_groups(["r_hip", "l_hip", "LTail", "waist"]) == {"hip": [1, 0], "LTail": [2], "waist": [3]}


def test_tracking_pairs_readouts_and_monitors_see_feet() -> None:
    recording = joints_run(["hip"])
    recording.readouts = {"speed": recording.t, "speed_wanted": 2.0 * recording.t, "dcm_error": 3.0 * recording.t}
    recording.friction_used[:] = 0.5
    found = {"depth_m": 1e-9, "joint_limit_rad": -0.26, "pull_N": 2e-3}
    recording.statistics = {"physics": {name: {"worst": worst, "allowed": 1e-6} for name, worst in found.items()}}
    figure = drawn(recording, "tracking", "monitors")
    red = to_rgba(LIMIT_COLOUR)
    bars = axes_of(figure, "physics monitors").patches
    assert [(bar.get_width() > 0.0, bar.get_facecolor() == red) for bar in bars] == [
        (True, False),
        (False, False),
        (True, True),
    ]
    np.testing.assert_array_equal(curve(axes_of(figure, "speed"), "wanted"), 2.0 * recording.t)
    np.testing.assert_array_equal(curve(axes_of(figure, "dcm_error [m]"), "dcm_error"), 3.0 * recording.t)
    np.testing.assert_allclose(curve(axes_of(figure, "joints, largest"), "largest error"), 0.1)
    np.testing.assert_array_equal(curve(axes_of(figure, "friction used"), "left foot"), 0.5)
    np.testing.assert_allclose(curve(axes_of(figure, "largest torque"), "largest torque over its limit"), 10.0 / 12.0)


def test_what_cannot_be_drawn_is_said() -> None:
    page = PanelPlot(joints_run(["hip"]), ["joints", "base", "readouts"])
    assert page.panels == ("joints",)
    assert page.lacking["base"] == "the recording has no pose of the base"
    assert "readouts" in page.lacking
    figure = drawn(joints_run(["hip"]), "com")
    assert any("--robot" in text.get_text() for text in figure.subfigs[0].texts)


def test_the_title_names_what_ran_as_far_as_it_is_known() -> None:
    recording = joints_run(["hip"])
    assert PanelPlot(recording, ["joints"]).title == "unknown robot  ·  0.49 s  ·  100 Hz"
    recording.robot = "biped14"
    recording.about = {"scenario": "walk", "controller": "zmp", "contact_model": "ncp", "ground": "", "rate": "1000"}
    named = "biped14  ·  scenario walk  ·  controller zmp  ·  contact model ncp  ·  0.49 s  ·  1000 Hz"
    assert PanelPlot(recording, ["joints"]).title == named
    recording.notes = ("3 of 50 rows are missing",)
    assert PanelPlot(recording, ["joints"]).title == f"{named}\n3 of 50 rows are missing"


@pytest.mark.parametrize("title", ["short", DOT.join(["things"] * 40), f"a{DOT}b\n" + "words " * 60, "W" * 200])
def test_no_title_is_cut_off(title: str) -> None:
    with sheet.drawn((PAGE, 3.0), title) as figure:
        figure.draw_without_rendering()
        (shown,) = figure.texts
        box = shown.get_window_extent()
    assert box.x0 > 0.0
    assert box.x1 < figure.bbox.x1
    left_out = str.maketrans("", "", " ·\n")
    assert shown.get_text().translate(left_out) == title.translate(left_out)
    assert (shown.get_text() == title) == (title == "short")


def test_names_of_panels() -> None:
    assert panel_names(["joints,torques", "joints"]) == ("joints", "torques")
    assert panel_names(["all"]) == PANELS
    assert set(USUAL_PANELS) < set(PANELS)
    with refusal(UnknownNameError, name="torqes", meant="torques"):
        panel_names(["torqes"])


def test_angles_of_the_base_against_pinocchio() -> None:
    rng = np.random.default_rng(0)
    quaternions = rng.standard_normal((50, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    for quaternion in quaternions:
        R = pin.Quaternion(quaternion).toRotationMatrix()
        np.testing.assert_allclose(roll_pitch_yaw(quaternion[None])[0], pin.rpy.matrixToRpy(R), atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("settings", [{"scenario": "walk", "ground": "slope", "duration": 2.5}, {"scenario": "climb"}])
def test_the_cop_is_drawn_in_the_soles_that_it_is_in(settings: dict[str, Any]) -> None:
    """On ground that is not z = 0, too; where it is, pinocchio and the recorded CoP say."""
    recording, _ = run(RunConfig(**{"duration": 6.0, **settings}))
    ax = axes_of(drawn(recording, "cop"), "centre of pressure (world, from above)")
    curves = {str(line.get_label()): np.asarray(line.get_xydata()) for line in ax.lines}
    for k, foot in enumerate(recording.feet):
        there = np.isfinite(recording.cop[:, k, 0]) & (recording.wrench[:, k, 2] > 0.05 * recording.weight)
        poses = [pin.XYZQUATToSE3(pose) for pose in recording.sole_poses[there, k]]
        wanted = [pose.act(np.array([*cop, 0.0]))[:2] for pose, cop in zip(poses, recording.cop[there, k], strict=True)]
        np.testing.assert_allclose(curves[f"{foot} foot"][there], wanted, atol=1e-6)
    # A foot with almost no load, as in the tick of a landing, has no CoP in the figure.
    seen = np.isfinite(np.stack([curves[f"{foot} foot"][:, 0] for foot in recording.feet], axis=1))
    carried = (seen == (recording.wrench[:, :, 2] > 0.0)).all(axis=1) & seen.any(axis=1)
    assert carried.mean() > 0.95
    np.testing.assert_allclose(curves["all feet"][carried], recording.cop_world[carried, :2], atol=1e-6)
