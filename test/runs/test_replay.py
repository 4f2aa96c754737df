"""A recorded run simulated again: the same bits, or the first one that is not, by name."""

from __future__ import annotations

import inspect
import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from physics_support import standing_torque
from refusals import refusal

from bipedsim.analysis import compare_robot, recorded_configurations
from bipedsim.cli.main import main
from bipedsim.config import digest_of
from bipedsim.config.run import RunConfig
from bipedsim.contact import CONTACT_MODELS
from bipedsim.errors import EXIT_INCOMPLETE, EXIT_USAGE, BipedSimError, ChangedWarning, RecordingError, UnknownNameError
from bipedsim.ground import Ground
from bipedsim.model import ROBOTS, LoopEquations, load_robot, sole_placements
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.recording import COLUMNS, Recording, load_recording
from bipedsim.runs.replay import Changes, describe_run, rerun
from bipedsim.runs.runner import run
from bipedsim.sim import GantryConfig
from bipedsim.sim.simulator import Simulator

SCENARIO = """
controller_params: {mode: squat}
drop_height: 0.01
pushes:
  - {at: 0.1, duration: 0.03, force: [20.0, 5.0, 0.0], frame: heading}
  - {at: 0.2003, duration: 0.0025, force: [0.0, 40.0, 0.0], body: l_thigh}
"""
BALLS = """
objects:
  - {name: ball, shape: ball, mass: 0.4, radius: 0.1, position: [0.45, 0.1, 0.25], velocity: [-3, 0, 0.5],
     restitution: 0.6}
  - {name: crate, shape: box, mass: 2.0, size: [0.2, 0.2, 0.2], position: [0.0, 1.0, 0.15]}
"""


def recorded(tmp_path: Path, extra: str = "", **settings: object) -> Recording:
    """Return a run as it is read from its file; ``extra`` are more lines of its scenario."""
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO + extra)
    recording, _ = run(RunConfig(scenario=str(scenario), duration=0.4, **settings))  # type: ignore[arg-type]
    recording.save(tmp_path / "run.npz")
    return load_recording(tmp_path / "run.npz")


@pytest.mark.parametrize("model", CONTACT_MODELS)
def test_every_model_repeats_every_bit(tmp_path: Path, model: str) -> None:
    done = rerun(recorded(tmp_path, contact_model=model, physics_dt=5e-4))
    assert done.first is None
    assert len(done.simulated) == 400
    assert {"joint_position", "imu_orientation", "wrench", "mode", "base_pose"} <= {*done.compared}
    assert not done.notes


def test_noise_faults_and_ground_are_repeated_too(tmp_path: Path) -> None:
    ground = tmp_path / "ramp.yaml"
    ground.write_text("slope: {angle_deg: 2}")
    weak = "{part: drives, does: scaled, joint: l_knee, amount: 0.5, at: 0.1}"
    noisy = recorded(tmp_path, hardware="realistic", seed=3, ground=str(ground))
    ground.unlink()
    assert rerun(noisy).first is None
    # Patches with edges of their own.
    assert rerun(recorded(tmp_path, ground="stairs")).first is None
    lossy = f"[{weak}, {{part: commands, does: lost, share: 0.2}}]"
    failing = rerun(recorded(tmp_path, faults=lossy))
    assert failing.first is None
    assert "joint_position" not in failing.compared
    assert "drives (l_knee) scaled 0.5" in failing.notes[0]


def test_the_first_bit_that_differs_is_named(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    recording.joint_velocity[250, 3] = np.nextafter(recording.joint_velocity[250, 3], 1.0)
    recording.wrench[300, 1, 2] += 1.0
    first = rerun(recording).first
    assert first is not None
    assert (round(first.t, 6), first.column, first.which) == (0.251, "joint_velocity", recording.joint_names[3])
    recording.joint_velocity[250, 3] = first.simulated
    first = rerun(recording).first
    assert first is not None
    assert (round(first.t, 6), first.column, first.which) == (0.301, "wrench", f"{recording.feet[1]} fz[N]")


def played(sim: Simulator, q: Array, v: Array | None = None, ticks: int = 60) -> Recording:
    """Return a run of ``sim`` from (q, v), as its file would hold it."""
    sim.reset(q, v)
    described = json.loads(json.dumps({**describe_run(sim), "pushes": []}))
    builder = Recording.Builder(sim.robot, ticks)
    torque = standing_torque(sim.robot)
    for _ in range(ticks):
        observation = sim.step(torque)
        builder.append(sim.t, observation, sim.contact, sim.ground_truth(), sim.command)
    recording = builder.build()
    recording.run = described
    return recording


def test_plain_time_stepping_is_repeated_as_such() -> None:
    """A robot that lands does so at another moment with events, from the first impact on with other bits."""
    robot = load_robot("biped14")
    q = robot.q_nominal.copy()
    q[2] += 0.005
    recording = played(Simulator(robot, events=False), q)
    assert recording.wrench[:, :, 2].any()
    assert rerun(recording).first is None
    recording.run = {name: value for name, value in recording.run.items() if name != "events"}
    assert rerun(recording).first is not None, "they have a part in it"


@pytest.mark.parametrize("name", ["biped14", "parallel_ankles"])
def test_a_start_is_repeated_to_the_bit_whose_rotation_is_not_quite_one(name: str) -> None:
    """Made of length 1 twice, a quaternion is another one in its last bit: so is every number that follows."""
    robot = load_robot(name)
    rng, tried = np.random.default_rng(0), 0
    sim = Simulator(robot)
    while tried < 3:
        q = robot.q_nominal.copy()
        q[2] += 2.5
        q[3:7] = rng.normal(size=4)
        once = robot.closed(pin.normalize(robot.model, q))
        if np.array_equal(robot.closed(pin.normalize(robot.model, once)), once):
            continue
        tried += 1
        assert rerun(played(sim, q, 0.1 * rng.normal(size=robot.model.nv), ticks=5)).first is None


def test_a_run_says_all_that_its_simulator_was_made_of() -> None:
    """Each argument changes the description. Otherwise the run could not be repeated."""
    biped = load_robot("biped14")
    ball = ObjectConfig(name="ball", shape="ball", radius=0.1, mass=1.0, position=(1.0, 0.0, 0.1))
    other: dict[str, Any] = {
        "robot": load_robot("g1"),
        "ground": Ground.flat(friction_static=0.3, friction_dynamic=0.3),
        "contact": "ncp",
        "physics_dt": 5e-4,
        "control_dt": 2e-3,
        "contact_params": {"gamma": 0.3},
        "hardware": "realistic",
        "seed": 4,
        "events": False,
        "objects": [ball],
        "gantry": GantryConfig(),
        "force_plates": [PlateConfig(name="plate", size=(2.0, 2.0))],
        "height_scan": [[0.5, 0.0]],
    }
    assert other.keys() == inspect.signature(Simulator).parameters.keys()

    def described(**arguments: Any) -> str:
        # The comparison is of texts, because NaN is not equal to itself.
        return json.dumps(describe_run(Simulator(**{"robot": biped, **arguments})))

    for name, value in other.items():
        assert described(**{name: value}) == described(**{name: value}) != described(), name


def test_a_push_or_a_seed_that_is_forgotten_shows(tmp_path: Path) -> None:
    recording = recorded(tmp_path, hardware="realistic")
    for change, t in (({"pushes": []}, 0.101), ({"seed": 1}, 0.001), ({"draw": 0}, 0.001)):
        recording.run = {**recording.run, **change}
        first = rerun(recording).first
        assert first is not None
        assert first.t <= t + 1e-9
        recording = load_recording(tmp_path / "run.npz")


def test_what_if(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    soft = rerun(recording, Changes(contact_model="nonlinear_damping"))
    assert soft.first is not None
    assert 0.0 < soft.errors["base_pose"]["rms"] < 0.01
    assert soft.errors["joint_position l_knee"]["max"] < 0.1
    assert rerun(recording, Changes(ground="flat")).first is None, "it was flat"


def test_force_plates_are_there_again_unless_the_ground_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded(tmp_path, 'force_plates: [{name: "floor", size: [2.0, 2.0]}]')
    plates: list[list[str]] = []

    class Noted(Simulator):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            plates.append(list(self.force_plates.names) if self.force_plates else [])

    monkeypatch.setitem(rerun.__globals__, "Simulator", Noted)
    again, elsewhere = rerun(recording), rerun(recording, Changes(ground="flat"))
    assert again.first is elsewhere.first is None
    assert plates == [["floor"], []]
    assert [len(done.notes) for done in (again, elsewhere)] == [0, 1]


def test_a_robots_measured_torques_are_commands(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    of_a_robot = replace(recording, run={}, joint_command=np.full_like(recording.joint_command, np.nan))
    done = rerun(of_a_robot)
    assert len(done.simulated) == 399
    assert "measured torques are the commands" in done.notes[-1]
    # It starts at the state after the first tick, except for base velocities and pushes.
    assert done.errors["joint_position l_knee"]["max"] < 0.05


def test_joints_and_feet_that_the_robot_does_not_have_are_not_compared(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    of_a_robot = replace(recording, run={}, joint_command=np.full_like(recording.joint_command, np.nan))
    n, joints = len(of_a_robot), ("neck", *reversed(of_a_robot.joint_names))
    other = Recording.empty(n, joints, ("front", "rear"), of_a_robot.robot)
    other.t[:], other.base_pose[:] = of_a_robot.t, of_a_robot.base_pose
    other.ankle_wrench[:] = 1.0
    for name in ("joint_position", "joint_velocity", "joint_effort"):
        getattr(other, name)[:, 0] = 7.0
        getattr(other, name)[:, 1:] = getattr(of_a_robot, name)[:, ::-1]
    done, expected = rerun(other), rerun(of_a_robot)
    assert done.errors["joint_position l_knee"] == expected.errors["joint_position l_knee"]
    assert not any("neck" in name for name in done.errors)
    assert "ankle_wrench" not in done.compared
    notes = [note for note in done.notes if note not in expected.notes]
    assert [("neck" in note, "front" in note) for note in notes] == [(True, False), (False, True)]


def test_a_robots_recording_is_repeated_with_its_identified_hardware(tmp_path: Path) -> None:
    """The run begins at the true joint positions, and the measured torques pass through the gains of the drives."""
    overlay = {
        "torque_gain": {".*": 0.95, ".*_knee": 1.05},
        "torque_offset": {".*_knee": 0.5},
        "encoder_offset": {".*": 0.03, "l_knee": -0.04},
    }
    recording = recorded(tmp_path, hardware=overlay)
    of_a_robot = replace(recording, run={}, joint_command=np.full_like(recording.joint_command, np.nan))
    done = rerun(of_a_robot, Changes(hardware=overlay))
    exact = rerun(replace(recorded(tmp_path), run={}, joint_command=of_a_robot.joint_command))
    for joint in ("l_knee", "r_hip_roll"):
        name = f"joint_position {joint}"
        # The rest of the error is that of the base, which begins at rest, and of the pushes.
        assert done.errors[name]["max"] < 2.0 * exact.errors[name]["max"] + 1e-3
        assert rerun(of_a_robot).errors[name]["max"] > done.errors[name]["max"] + 0.01


def test_closed_chains_are_repeated_and_known_from_what_is_recorded(tmp_path: Path) -> None:
    """Joints without a drive are in no recording: the loops say where they are, and a robot's run begins with them."""
    recording = recorded(tmp_path, robot="parallel_ankles")
    assert rerun(recording).first is None
    robot = load_robot("parallel_ankles")
    q = recorded_configurations(recording, robot)
    equations = LoopEquations(robot.model, robot.loops)
    assert max(equations.gaps(row).max() for row in q) < 1e-8
    data = robot.model.createData()
    for row, poses in list(zip(q, recording.sole_poses, strict=True))[::50]:
        for placed, pose in zip(sole_placements(robot.model, data, robot.soles, row), poses, strict=True):
            np.testing.assert_allclose(placed.translation, pose[:3], atol=1e-8)
    lost = replace(recording, sole_poses=np.full_like(recording.sole_poses, np.nan))
    np.testing.assert_array_equal(recorded_configurations(lost, robot), q)
    of_a_robot = replace(recording, run={}, joint_command=np.full_like(recording.joint_command, np.nan))
    done = rerun(of_a_robot)
    assert "measured torques are the commands" in done.notes[-1]


@pytest.mark.long
def test_objects_are_compared_to_the_bit(tmp_path: Path) -> None:
    recording = recorded(tmp_path, extra=BALLS)
    assert sorted(recording.objects) == ["ball", "crate"]
    done = rerun(recording)
    assert done.first is None
    assert {"object_ball", "object_crate"} <= {*done.compared}
    assert done.errors["object_ball position"]["max"] == 0.0
    spoilt = {name: states.copy() for name, states in recording.objects.items()}
    spoilt["crate"][100, 12] = np.nextafter(spoilt["crate"][100, 12], np.inf)
    first = rerun(replace(recording, objects=spoilt)).first
    assert first is not None
    assert (first.column, first.which, round(first.t, 6)) == ("object_crate", "wz[rad/s]", 0.101)
    # Under another model the ball comes back from the shin in another way.
    other = rerun(recording, Changes(contact_model="nonlinear_damping"))
    assert other.errors["object_ball velocity"]["max"] > 1e-6
    # Missing values in the last rows are a truncation. Values missing in all rows were not recorded.
    spoilt["crate"][:] = recording.objects["crate"]
    spoilt["crate"][-2:] = np.nan
    assert rerun(replace(recording, objects=spoilt)).first is None
    spoilt["crate"][:] = np.nan
    assert "object_crate" not in rerun(replace(recording, objects=spoilt)).compared


def test_a_gap_ends_it_and_is_told(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    done = rerun(recording.rows(np.delete(np.arange(400), 100)))
    assert len(done.simulated) == 100
    assert done.first is None
    assert "the command of t = 0.101000 s was not recorded: 100 of 400 ticks" in done.notes[0]
    with refusal(RecordingError, place="commands"):
        rerun(recording.rows(slice(5, None)))


def test_what_a_gap_has_torn_is_no_difference(tmp_path: Path) -> None:
    recording = recorded(tmp_path).rows(np.delete(np.arange(400), 100))
    recording.cop_world[99] = np.nan
    recording.mode[99] = COLUMNS["mode"].empty(1, recording.owners)
    assert rerun(recording).first is None
    recording.cop_world[50] = np.nan
    first = rerun(recording).first
    assert first is not None
    assert (first.column, round(first.t, 6)) == ("cop_world", 0.051)


@pytest.mark.long
def test_the_command_says_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path)
    path, again = tmp_path / "run.npz", tmp_path / "again.npz"
    assert main(["replay", str(path), "--output", str(again)]) == 0
    assert "400 ticks simulated again: all" in capsys.readouterr().out
    np.testing.assert_array_equal(load_recording(again).wrench, load_recording(path).wrench)
    picture = tmp_path / "picture.png"
    assert main(["replay", str(path), "--contact-model", "lcp", "--plot", str(picture)]) == 0
    assert "first difference at t = " in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    recording = load_recording(path)
    recording.rows(np.delete(np.arange(400), [100, *range(200, 250)])).save(path)
    assert main(["replay", str(path)]) == 3
    assert capsys.readouterr().out.splitlines()[-1].startswith("100 of 400 ticks simulated again: all")
    assert main(["replay", str(path), "--contact-model", "lcp"]) == 3
    assert capsys.readouterr().out.splitlines()[-1] == "100 of 400 ticks simulated again"
    recording.wrench[7] += 1.0
    recording.save(path)
    assert main(["replay", str(path)]) == 1
    # The ankle sensors do not replace damaged values.
    recording.wrench[:] = np.nan
    recording.save(path)
    capsys.readouterr()
    assert main(["replay", str(path)]) == 0
    assert "equal to the bit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "fields"),
    [
        ({"q": None}, {"place": "description of the run"}),
        ({"ground": {}}, {"place": "description of the run"}),
        ({"pushes": [{"t": 0.1}]}, {"place": "description of the run"}),
        ({"versions": 1}, {"place": "description of the run"}),
        ({"hardware": {"gyro": 1}}, {"place": "hardware", "name": "gyro"}),
        ({"robot": "biped15"}, {"place": "the robot of the recording", "cause": UnknownNameError}),
    ],
)
def test_a_description_that_is_damaged_is_said_to_be(
    tmp_path: Path, damage: dict[str, object], fields: dict[str, object]
) -> None:
    recording = recorded(tmp_path)
    recording.run = {**recording.run, **damage}
    with refusal(BipedSimError, **fields):
        rerun(recording)


def test_files_that_are_cut_short_end_with_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path)
    whole = (tmp_path / "run.npz").read_bytes()
    for keep in (0, 100, len(whole) // 2):
        (tmp_path / "cut.npz").write_bytes(whole[:keep])
        assert main(["replay", str(tmp_path / "cut.npz")]) in (EXIT_USAGE, EXIT_INCOMPLETE)
        assert "cut.npz" in capsys.readouterr().err


def test_a_recording_knows_what_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed robot.yaml is reported by the repetition, and by any caller that loads the robot."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROBOTS["biped14"].parent, tmp_path / "mine")
    first = recorded(tmp_path, robot="mine/robot.yaml")
    assert first.run["robot_content"]["robot.yaml"] == digest_of(tmp_path / "mine" / "robot.yaml")
    assert first.run["content"][f"scenario {tmp_path / 'scenario.yaml'}"] == digest_of(tmp_path / "scenario.yaml")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ChangedWarning)
        assert rerun(first).first is None
    source = tmp_path / "mine" / "robot.yaml"
    source.write_text(source.read_text() + "\n# heavier\n")
    with pytest.warns(ChangedWarning, match=r"robot\.yaml"):
        rerun(first)
    notes = len(rerun(recorded(tmp_path)).notes)
    other = recorded(tmp_path)
    other.run["code"] = "0" * 64
    assert len(rerun(other).notes) == notes + 1


def test_a_kept_step_knows_its_robot(tmp_path: Path) -> None:
    shutil.copytree(ROBOTS["biped14"].parent, tmp_path / "mine")
    source = tmp_path / "mine" / "robot.yaml"
    robot = load_robot(source)
    about = {"robot_content": dict(robot.content)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ChangedWarning)
        compare_robot(load_robot(source), about)
        compare_robot(load_robot(source), {})
    source.with_name("robot.urdf").write_text(source.with_name("robot.urdf").read_text() + "\n")
    with pytest.warns(ChangedWarning, match="URDF"):
        compare_robot(load_robot(source), about)
