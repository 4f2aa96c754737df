"""Videos of a run: the drawn positions are those of the robot, arrows are forces, and films have all frames."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from numpy.typing import NDArray
from paths import BODIES
from PIL import Image
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.errors import ConfigError, RecordingError, UnknownNameError
from bipedsim.ground import make_ground
from bipedsim.ground.ground import Ground
from bipedsim.ground.read import get_ground
from bipedsim.model import Robot, load_robot
from bipedsim.recording.recording import Recording
from bipedsim.view.animation.camera import ARROW, AXES, LONGEST
from bipedsim.view.animation.figure import Film
from bipedsim.view.animation.film import animate
from bipedsim.view.animation.motion import MotionFrames, frame_times, read_motion
from bipedsim.view.animation.scene import Stage
from bipedsim.view.animation.skeleton import TRUNK, Skeleton

Array = NDArray[np.float64]

DT = 0.005
"""Time between the rows of the recordings below [s]."""


def configurations(robot: Robot, rows: int) -> Array:
    """Return a smooth motion (rows, nq) about the nominal posture that goes forwards and turns."""
    rng = np.random.default_rng(7)
    direction = rng.uniform(-0.3, 0.3, robot.model.nv)
    direction[0] = 1.0
    shares = np.sin(np.linspace(0.0, 2.0, rows))
    return np.array([pin.integrate(robot.model, robot.q_nominal, share * direction) for share in shares])


def recorded(robot: Robot, q: Array) -> Recording:
    """Return a recording of these configurations with the load shared equally by the feet."""
    recording = Recording.empty(len(q), robot.joint_names, [sole.name for sole in robot.soles])
    recording.describe_robot(robot)
    recording.t[:] = DT * np.arange(1, len(q) + 1)
    recording.joint_position[:] = q[:, robot.idx_q]
    if robot.free_flyer:
        recording.base_pose[:] = q[:, :7]
    data = robot.model.createData()
    for i, row in enumerate(q):
        pin.forwardKinematics(robot.model, data, row)
        for k, sole in enumerate(robot.soles):
            recording.sole_poses[i, k] = pin.SE3ToXYZQUAT(data.oMi[sole.joint_id] * sole.placement_joint_sole)
    recording.wrench[:] = 0.0
    recording.wrench[:, :, 2] = robot.weight / len(robot.soles)
    recording.cop[:] = [sole.centre for sole in robot.soles]
    return recording


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture(scope="module")
def recording(robot: Robot) -> Recording:
    return recorded(robot, configurations(robot, 201))


def stage_of(recording: Recording, robot: Robot, times: Array, ground: Ground | None = None) -> Stage:
    skeleton = Skeleton.of(robot)
    motion = read_motion(recording, robot, skeleton, times)
    return Stage(motion, skeleton, ground or Ground.flat(), robot.weight)


def contains(lines: Array, line: Array) -> bool:
    """Whether ``line`` (2, d) is one of ``lines`` (L, 2, d), in either direction."""
    gaps = [np.abs(lines - ends).reshape(len(lines), -1).max(axis=1) for ends in (line, line[::-1])]
    return bool(np.min(gaps) < 1e-9)


@pytest.mark.parametrize("name", sampled(["biped14", "planar_biped", "compass", "talos", "g1"], 3))
def test_lines_go_from_joint_to_joint_where_pinocchio_has_them(name: str) -> None:
    try:
        robot = load_robot(name)
    except ConfigError as error:
        pytest.skip(str(error))
    q = configurations(robot, 40)
    run = recorded(robot, q)
    rows = np.array([3, 21, 38])
    skeleton = Skeleton.of(robot)
    motion = read_motion(run, robot, skeleton, run.t[rows])
    model, data = robot.model, robot.model.createData()
    massive = next(j for j in range(1, model.njoints) if model.inertias[j].mass > 0.0)
    for i, row in enumerate(rows):
        pin.forwardKinematics(model, data, q[row])
        lines = motion.points[i][skeleton.lines]
        for joint in range(massive + 1, model.njoints):
            ends = np.array([data.oMi[model.parents[joint]].translation, data.oMi[joint].translation])
            assert np.ptp(ends, axis=0).max() < 1e-3 or contains(lines, ends), model.names[joint]
        for k, sole in enumerate(robot.soles):
            vertices = [data.oMi[sole.joint_id].act(vertex) for vertex in sole.vertices_joint]
            np.testing.assert_allclose(motion.points[i][skeleton.soles[k]], vertices, atol=1e-6)
        np.testing.assert_allclose(motion.com[i], pin.centerOfMass(model, data, q[row]), atol=1e-6)


def test_legs_have_the_colours_of_their_feet(robot: Robot) -> None:
    skeleton = Skeleton.of(robot)
    for (a, _), side in zip(skeleton.lines, skeleton.sides, strict=True):
        name = robot.model.names[int(skeleton.joints[a])]
        assert side == {"l_": 0, "r_": 1}.get(name[:2], TRUNK)


def test_a_single_rod_is_drawn_from_its_joint_to_its_end() -> None:
    """The leg of the kicker, 1 m from hip to toe, ends at its sole; without one the rod is known by its inertia."""
    kicker = load_robot(BODIES / "kicker")
    length = 1.0
    rod = pin.Inertia(2.0, np.array([0.0, 0.0, -0.5 * length]), np.diag([1.0, 1.0, 0.0]) * 2.0 * length**2 / 12.0)
    skeleton = Skeleton.of(replace(kicker.with_inertia(1, rod), soles=()))
    np.testing.assert_allclose(skeleton.local[skeleton.lines[0]], [[0.0, 0.0, 0.0], [0.0, 0.0, -length]], atol=1e-12)


def test_both_hands_of_talos_are_mirror_images() -> None:
    """Its grippers are one, turned by 180 degrees about the hand: one CoM is ahead of the wrist, the other behind."""
    talos = load_robot("talos")
    skeleton, model = Skeleton.of(talos), talos.model
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    points = skeleton.points(data)
    ends = {}
    for a, b in skeleton.lines:
        name = model.names[int(skeleton.joints[a])]
        if name.startswith("gripper"):
            ends[name] = points[b] - points[a]
    left, right = ends["gripper_left_joint"], ends["gripper_right_joint"]
    assert np.linalg.norm(left) > 0.05
    # The neutral posture is symmetric, too.
    np.testing.assert_allclose(left, right * (1.0, -1.0, 1.0), atol=1e-3)


@pytest.mark.parametrize("view", ["side", "front", "3d"])
def test_pictures_are_projections_on_equal_axes_that_hold_the_robot(
    view: str, robot: Robot, recording: Recording
) -> None:
    stage = stage_of(recording, robot, recording.t[::20])
    film = Film(stage, view, "", recording.feet)
    (scene,) = film.scenes
    axes = AXES[view]
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    if view != "3d":
        expected = {"side": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], "front": [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}[view]
        np.testing.assert_allclose(axes[:2], expected, atol=1e-12)
    for i in range(len(stage.motion.t)):
        film.show(i)
        film.figure.canvas.draw()
        drawn = np.array([path.vertices for path in scene._robot.get_paths()])
        for line in stage.motion.points[i][stage.skeleton.lines]:
            assert contains(drawn, line @ axes[:2].T)
        left, right, bottom, top = scene.camera.limits(i)
        assert (drawn > [left, bottom]).all()
        assert (drawn < [right, top]).all()
        pixels = scene.ax.transData.transform([[left, bottom], [left + 1.0, bottom], [left, bottom + 1.0]])
        across, up = pixels[1] - pixels[0], pixels[2] - pixels[0]
        np.testing.assert_allclose(np.hypot(*across), np.hypot(*up), rtol=0.01)


def test_arrows_are_as_long_as_their_forces_and_start_where_these_act(robot: Robot, recording: Recording) -> None:
    rng = np.random.default_rng(3)
    some = replace(recording, wrench=recording.wrench.copy(), cop=recording.cop.copy())
    some.wrench[:, :, :3] = rng.uniform(-0.5, 0.5, some.wrench[:, :, :3].shape) * robot.weight
    some.wrench[0, 0, :3] = [0.0, 0.0, 50.0 * robot.weight]
    some.wrench[0, 1], some.cop[0, 1] = 0.0, np.nan
    rows = np.arange(0, 200, 25)
    stage = stage_of(some, robot, some.t[rows])
    film = Film(stage, "side", "", some.feet)
    unit = ARROW * stage.size / robot.weight
    for i, row in enumerate(rows):
        film.show(i)
        for k in range(2):
            force = pin.XYZQUATToSE3(some.sole_poses[row, k]).rotation @ some.wrench[row, k, :3]
            at = pin.XYZQUATToSE3(some.sole_poses[row, k]).act(np.array([*some.cop[row, k], 0.0]))
            shaft = np.asarray(film.scenes[0]._forces.get_paths()[2 * k].vertices)
            if (row, k) == (0, 0):
                assert np.linalg.norm(stage.arrows[i, k]) == pytest.approx(LONGEST * ARROW * stage.size)
            elif (row, k) == (0, 1):
                assert not np.isfinite(shaft).any()
            else:
                np.testing.assert_allclose(stage.arrows[i, k], unit * force, atol=1e-9)
                np.testing.assert_allclose(shaft, np.array([at, at + unit * force])[:, [0, 2]], atol=1e-9)


@pytest.mark.parametrize("length", [10, 60, 250])
def test_the_title_leaves_the_place_of_the_time(length: int, robot: Robot, recording: Recording) -> None:
    title = " ".join(["words"] * (length // 6 + 1))
    film = Film(stage_of(recording, robot, recording.t[[0, 100]], Ground.flat()), "side", title, recording.feet, 0.25)
    figure: Any = film.figure
    renderer = figure.canvas.get_renderer()
    (drawn,) = [text for text in figure.texts if text.get_text().startswith("words")]
    for i in range(2):
        film.show(i)
        assert drawn.get_window_extent(renderer).x1 < film._time.get_window_extent(renderer).x0
    assert drawn.get_text().split() == title.split()


def test_the_camera_follows_a_robot_that_leaves_and_rests_on_one_that_stays(robot: Robot) -> None:
    frames = 100
    com = np.zeros((frames, 3))
    com[:, 0], com[:, 1] = np.linspace(0.0, 20.0, frames), 0.01 * np.sin(np.arange(frames))
    points = com[:, None] + np.array([[0.0, 0.0, -0.8], [0.0, 0.0, 0.8]])
    nothing = np.full((frames, 2, 3), np.nan)
    motion = MotionFrames(0.1 * np.arange(frames), points, com, nothing, nothing)
    stage = Stage(motion, Skeleton.of(robot), Ground.flat(), robot.weight)
    assert np.ptp(stage.target[:, 1]) == 0.0
    np.testing.assert_allclose(stage.target[10:-10, 0], com[10:-10, 0], atol=0.3)


def test_the_ground_is_cut_where_the_robot_is(robot: Robot, recording: Recording) -> None:
    ground = get_ground("stairs")
    film = Film(stage_of(recording, robot, recording.t[[0, 100, 200]], ground), "side", "", recording.feet)
    for i in range(3):
        film.show(i)
        x, z = map(np.asarray, film.scenes[0]._surface.get_data())
        assert np.ptp(x) > 0.5
        np.testing.assert_allclose(z, ground.height(x, film.scenes[0].camera.target[i, 1]))


def test_a_height_field_is_drawn_around_the_robot(robot: Robot, recording: Recording) -> None:
    ground = get_ground("rough")
    assert ground.field is not None
    film = Film(stage_of(recording, robot, recording.t[[0, 100]], ground), "3d", "", recording.feet)
    film.show(1)
    drawn = [path.vertices[:3] for path in film.scenes[0]._field.get_paths()]
    vertices, triangles = ground.field.mesh()
    assert 100 < len(drawn) < len(triangles)
    of_field = {tuple(np.round(corner, 6)) for corner in film.scenes[0].camera.project(vertices)}
    assert {tuple(np.round(corner, 6)) for path in drawn for corner in path} <= of_field


def test_a_height_field_is_drawn_above_the_floor_where_it_is_higher(robot: Robot, recording: Recording) -> None:
    wave = make_ground({"flat": {}, "field": {"cell": 0.1, "size": [4.0, 4.0], "wave": {}}}, "wave")
    film = Film(stage_of(recording, robot, recording.t[[0]], wave), "3d", "", recording.feet)
    film.show(0)
    scene = film.scenes[0]
    assert wave.field is not None
    vertices, triangles = wave.field.mesh()
    # Some triangles have their middle in the floor.
    high = vertices[triangles].mean(axis=1)[:, 2] > -1e-9
    assert 0.3 < high.mean() < 0.7
    assert len(scene._mesh[1]) == high.sum()
    assert len(scene._field.get_paths()) > 100
    assert all(
        scene._field.get_zorder() > artist.get_zorder() for _, face, lines in scene._patches for artist in (face, lines)
    )


@pytest.mark.parametrize(("view", "axis"), [("side", 0), ("front", 1)])
def test_ticks_are_in_the_columns_of_their_coordinates(
    view: str, axis: int, robot: Robot, recording: Recording
) -> None:
    """As the transform of the axes has them, in frames that lie anywhere between two pixels."""
    far = replace(recording, base_pose=recording.base_pose.copy())
    far.base_pose[:, :2] += np.linspace(0.0, 7.0, len(far))[:, None] - 3.0
    stage = stage_of(far, robot, far.t[::40])
    film = Film(stage, view, "", far.feet)
    (scene,) = film.scenes
    box, numbers = scene.ax.bbox, {}
    for i in range(len(stage.motion.t)):
        film.show(i)
        grey = film.pixels()[::-1, :, :3].min(axis=2).astype(float)
        ticked = np.flatnonzero(grey[round(box.y0) - 2, int(box.x0) : int(box.x1) + 1] < 160) + int(box.x0)
        left, right = scene.camera.limits(i)[:2]
        assert left < stage.motion.com[i, axis] < right
        wanted = [0.5 * k for k in range(-20, 20) if left <= 0.5 * k <= right]
        assert len(wanted) > 1
        columns = scene.ax.transData.transform([(x, 0.0) for x in wanted])[:, 0]
        assert len(ticked) == len(columns)
        np.testing.assert_allclose(ticked + 0.5, columns, atol=1.0)
        rows = slice(round(box.y0) - 19, round(box.y0) - 5)
        for x, column in zip(wanted, ticked, strict=True):
            picture = (255.0 - grey)[rows, column - 14 : column + 15]
            if picture.shape[1] == 29:
                inked = np.flatnonzero(picture.max(axis=0) > 60.0)
                assert len(inked) > 8, "a number"
                assert abs(0.5 * (inked[0] + inked[-1]) - 14.0) <= 1.5, "below its tick"
                number = picture[:, inked[0] : inked[-1] + 1]
                np.testing.assert_array_equal(number, numbers.setdefault(x, number))
    assert len(numbers) > 8
    pictures = list(numbers.values())
    assert not any(np.array_equal(a, b) for k, a in enumerate(pictures) for b in pictures[:k]), "each another number"


@pytest.mark.parametrize(("fps", "speed"), sampled([(12.0, 2.0), (25.0, 1.0), (30.0, 0.5)]))
def test_a_gif_has_the_frames_of_its_time(fps: float, speed: float, recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "new" / "film.gif"
    frames = animate(recording, path, fps=fps, speed=speed, start=0.1, stop=0.7)
    assert frames == round(0.6 * fps / speed)
    with Image.open(path) as film:
        assert film.n_frames == frames
        assert film.info["loop"] == 0
        shown = 0
        for i in range(frames):
            film.seek(i)
            shown += film.info["duration"]
        film.seek(0)
        assert np.asarray(film.convert("RGB"))[-1, -1].tolist() == [255, 255, 255]
    # A GIF counts in hundredths of a second.
    assert shown == pytest.approx(1000.0 * frames / fps, abs=5.0)


def test_joints_may_come_in_any_order(robot: Robot, recording: Recording) -> None:
    turned = recording.in_order(recording.joint_names[::-1])
    skeleton, times = Skeleton.of(robot), recording.t[[3, 40]]
    there, back = (read_motion(run, robot, skeleton, times) for run in (recording, turned))
    np.testing.assert_array_equal(back.points, there.points)
    np.testing.assert_array_equal(back.com, there.com)


def test_frames_are_the_nearest_rows(robot: Robot, recording: Recording) -> None:
    times = frame_times(recording, 30.0, 1.0)
    assert len(times) == round(recording.duration * 30.0)
    motion = read_motion(recording, robot, Skeleton.of(robot), times)
    assert np.abs(motion.t - times).max() <= 0.5 * DT + 1e-12


@pytest.mark.parametrize("view", ["side", "front", "both", "3d"])
def test_a_strip_has_its_postures_side_by_side(view: str, recording: Recording, tmp_path: Path) -> None:
    widths = []
    for postures in (2, 6):
        assert animate(recording, tmp_path / "strip.png", view=view, postures=postures) == postures
        with Image.open(tmp_path / "strip.png") as strip:
            widths.append(strip.width)
            assert np.ptp(np.asarray(strip.convert("L"))) > 100
    assert 2.0 < widths[1] / widths[0] < 4.0


def test_without_the_truth_the_estimate_is_drawn(robot: Robot, recording: Recording) -> None:
    known = read_motion(recording, robot, Skeleton.of(robot), recording.t[::50])
    estimated = replace(recording, odometry=recording.base_pose, base_pose=np.full_like(recording.base_pose, np.nan))
    motion = read_motion(estimated, robot, Skeleton.of(robot), recording.t[::50])
    np.testing.assert_array_equal(motion.points, known.points)
    assert "estimate" in motion.note
    assert not known.note


def test_what_cannot_be_drawn_is_named(
    robot: Robot, recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gif = tmp_path / "film.gif"
    lost = replace(recording, base_pose=np.full_like(recording.base_pose, np.nan))
    with refusal(RecordingError, place="the pose of the base"):
        animate(lost, gif)
    with refusal(RecordingError):
        animate(recording, gif, robot=load_robot("planar_biped"))
    with refusal(RecordingError, place="robot"):
        animate(replace(recording, robot=""), gif)
    with refusal(RecordingError, place="ground", value="my_garden"):
        animate(replace(recording, about={"ground": "my_garden"}), gif)
    with refusal(RecordingError, place="the recording"):
        animate(recording.rows(slice(0, 0)), gif)
    with refusal(UnknownNameError, name="fromt", meant="front"):
        animate(recording, gif, view="fromt")
    with refusal(place=tmp_path / "film.avi"):
        animate(recording, tmp_path / "film.avi")
    with refusal(place=f"{gif}: fps", value=60.0):
        animate(recording, gif, fps=60.0)
    with refusal(place="speed", value=0.0):
        animate(recording, gif, speed=0.0)
    with refusal(place="from 0.5 to 3 s"):
        animate(recording, gif, start=0.5, stop=3.0)
    with refusal(place="postures", value=0):
        animate(recording, tmp_path / "strip.png", postures=0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with refusal(place=tmp_path / "film.mp4"):
        animate(recording, tmp_path / "film.mp4")
    assert not list(tmp_path.iterdir())


def test_the_command_draws_a_recording(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "walk.npz"
    recording.save(run)
    assert main(["animate", str(run), "--from", "0.2", "--to", "0.7", "--view", "both"]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'walk.gif'}: 12 frames\n"
    assert main(["animate", str(run), "-o", str(tmp_path / "walk.png"), "--postures", "3"]) == 0
    assert "3 postures" in capsys.readouterr().out
    before = run.read_bytes()
    assert main(["animate", str(run), "-o", str(run)]) == 2
    assert run.read_bytes() == before


def test_a_run_is_drawn_on_a_ground_of_the_users_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ground = tmp_path / "low.yaml"
    ground.write_text("flat: {height: -0.5}\n", encoding="utf-8")
    run, strip = tmp_path / "stand.npz", tmp_path / "stand.png"
    assert main(["run", "--duration", "0.05", "--ground", str(ground), "--output", str(run)]) == 0
    assert main(["animate", str(run), "-o", str(strip)]) == 0
    assert f"wrote {strip}" in capsys.readouterr().out
    assert strip.exists()
    assert main(["animate", str(run), "-o", str(tmp_path / "stand.avi")]) == 2
    assert ".gif, .mp4, .png" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="there is no ffmpeg")
def test_an_mp4_has_the_frames_of_the_film(tmp_path: Path) -> None:
    robot = load_robot("biped14")
    recording = recorded(robot, configurations(robot, 200))
    assert animate(recording, tmp_path / "film.gif", fps=25.0) == animate(recording, tmp_path / "film.mp4", fps=25.0)
    decode = ["ffmpeg", "-v", "error", "-i", str(tmp_path / "film.mp4"), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = np.frombuffer(subprocess.run(decode, check=True, capture_output=True).stdout, np.uint8)
    with Image.open(tmp_path / "film.gif") as film:
        frames = film.n_frames
        shown = data.reshape(frames, film.height, film.width, 3).astype(float)
        for i in (0, frames - 1):
            film.seek(i)
            # Codecs smear: lines of a pixel or two stay where they are.
            apart = np.abs(shown[i] - np.asarray(film.convert("RGB"))).mean()
            assert apart < 0.5 * np.abs(shown[0] - shown[-1]).mean()
