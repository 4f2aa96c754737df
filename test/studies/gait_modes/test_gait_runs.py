"""``bipedsim modes`` on real runs: walks, a hop, a beam that runs, a ball that comes to rest, the document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gait_support import AIR, WALK, spelled_states, symbols
from paths import ROOT
from physics_support import special_robot
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import RecordingError
from bipedsim.model import Robot, load_robot
from bipedsim.recording import load_recording
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.gait_modes.gait import GaitReport, report_recording
from bipedsim_studies.gait_modes.sequence import ModeSequence, mode_sequence
from bipedsim_studies.gait_modes.states import IMPACTS, is_impact
from bipedsim_studies.gait_modes.times import BOUNCE


def ran(settings: RunConfig) -> tuple[Recording, ModeSequence, GaitReport]:
    recording = run(settings)[0]
    return (recording, *report_recording(recording))


@pytest.fixture(scope="module")
def jump() -> Recording:
    return ran(RunConfig(scenario="jump", duration=2.0))[0]


@pytest.mark.ci
def test_a_walk_under_zmp_is_eq_45a_with_landings_that_slide_for_milliseconds() -> None:
    recording, modes, report = ran(RunConfig(scenario="walk", duration=10.0))
    assert report.verdict == "walking"
    assert max(report.sliding) < 0.01
    cycle = report.stretches[1].cycle
    assert cycle is not None
    landings = {"~! s": "Ils", "s ~!": "Irs"}
    turn = [landings.get(state, state) for state in spelled_states(cycle.states)]
    begin = turn.index(WALK[0])
    assert turn[begin:] + turn[:begin] == list(WALK)
    assert report.stretches[1].sets == "CVIS"
    # Every landing has an impulse, and the state of a foot follows from its force.
    loaded = recording.wrench[modes.rows, :, 2] > 0.0
    assert ((modes.states != AIR) == loaded).all(axis=1).mean() >= 0.999
    for entry in report.entries:
        if is_impact(entry.state):
            assert recording.impact[entry.first : entry.last, :, 2].max() > 0.0


@pytest.mark.parametrize("model", ["one_step", "lcp", "nonlinear_damping"])
def test_a_hop_is_hopping_under_rigid_and_soft_contact(model: str, jump: Recording) -> None:
    settings = RunConfig(scenario="jump", duration=2.0, contact_model=model)
    report = report_recording(jump)[1] if model == "one_step" else ran(settings)[2]
    assert report.verdict == "hopping"
    assert [stretch.gaits for stretch in report.stretches] == [("standing",), ("hopping",), ("standing",)]
    assert [stretch.flights for stretch in report.stretches] == [0, 1, 0]
    assert symbols(report.entries) == ["dss", "f", "S! S!", "dss"]


def test_forces_tell_the_gait_where_contact_states_are_missing(jump: Recording) -> None:
    """For example, a real robot provides only wrenches and its weight."""
    told = report_recording(jump)[1]
    blind = jump.rows(slice(None))
    blind.mode = np.full_like(jump.mode, -1)
    blind.impact = np.full_like(jump.impact, np.nan)
    modes, report = report_recording(blind)
    assert "no contact states recorded" in modes.notes[0]
    assert report.verdict == told.verdict == "hopping"
    for a, b in zip(report.entries, told.entries, strict=True):
        assert a.state == b.state
        assert a.t == pytest.approx(b.t, abs=5e-3)
    blind.weight = float("nan")
    with refusal(RecordingError, place="weight of the robot"):
        mode_sequence(blind)
    blind.wrench = np.full_like(jump.wrench, np.nan)
    with refusal(RecordingError, place="/left_foot/contact"):
        mode_sequence(blind)


def test_rows_that_are_unknown_or_after_a_fall_are_left_out(jump: Recording) -> None:
    holes = jump.rows(slice(None))
    holes.mode = jump.mode.copy()
    holes.mode[100:110, 1] = -1
    holes.gave_up_at = float(jump.t[999])
    modes, report = report_recording(holes)
    assert len(modes.states) == 990
    assert [note.split(":")[0] for note in modes.notes] == ["10 rows of 2000 left out", "the robot fell"]
    assert report.verdict == "standing"
    with pytest.raises(RecordingError):
        mode_sequence(jump.rows(slice(0, 0)))


SEESAW_URDF = """<robot name="seesaw">
  <link name="world"/><link name="sledge"/><link name="lift"/><link name="left_end"/><link name="right_end"/>
  <link name="beam"><inertial>
    <mass value="2.0"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="2.0" iyz="0" izz="2.0"/>
  </inertial></link>
  <joint name="x" type="prismatic"><parent link="world"/><child link="sledge"/><axis xyz="1 0 0"/></joint>
  <joint name="z" type="prismatic"><parent link="sledge"/><child link="lift"/><axis xyz="0 0 1"/></joint>
  <joint name="pitch" type="revolute"><parent link="lift"/><child link="beam"/><axis xyz="0 1 0"/></joint>
  <joint name="left" type="fixed"><parent link="beam"/><child link="left_end"/><origin xyz="-1 0 0"/></joint>
  <joint name="right" type="fixed"><parent link="beam"/><child link="right_end"/><origin xyz="1 0 0"/></joint>
</robot>
"""
SEESAW = """
name: seesaw
urdf: robot.urdf
root: fixed
joints: []
passive: [x, z, pitch]
feet:
  left: {frame: left_end, vertices: [[0.0, 0.0]]}
  right: {frame: right_end, vertices: [[0.0, 0.0]]}
imu: {frame: beam}
"""


@pytest.fixture(scope="module")
def seesaw(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    """A beam with half of its mass at each end, so that a force at one end does not move the other one."""
    folder = tmp_path_factory.mktemp("seesaw")
    (folder / "robot.urdf").write_text(SEESAW_URDF, encoding="utf-8")
    (folder / "robot.yaml").write_text(SEESAW, encoding="utf-8")
    return load_robot(folder / "robot.yaml")


def bouncing(robot: Robot, model: str, params: dict[str, float], height: float = 0.1) -> GaitReport:
    """Return 1.5 s of a beam whose ends bounce in turn: one starts at the top, the other from the ground."""
    sim = Simulator(robot, contact=model, contact_params=params)
    builder = Recording.Builder(robot)
    v = np.sqrt(2.0 * 9.81 * height)
    sim.reset(np.array([0.0, 0.5 * height, np.arcsin(0.5 * height)]), np.array([0.0, 0.5 * v, -0.5 * v]))
    for _ in range(1500):
        observation = sim.step(np.zeros(0))
        truth = sim.ground_truth()
        builder.append(sim.t, observation, sim.contact, truth, sim.command)
    return report_recording(builder.build())[1]


def test_a_beam_that_bounces_from_end_to_end_runs(seesaw: Robot) -> None:
    """On springs, each end stays for a while (eq. 45c). With restitution it leaves at once."""
    springs = {"stiffness": 3000.0, "alpha": 0.01, "tangential_stiffness": 3000.0, "tangential_damping": 30.0}
    soft = bouncing(seesaw, "nonlinear_damping", springs)
    assert soft.verdict == "running"
    phases = [entry.state for entry in soft.entries if not is_impact(entry.state)]
    assert spelled_states(phases[:8]) == ["f", "sl", "f", "sr", "f", "sl", "f", "sr"]
    landings = [entry.state for entry in soft.entries if is_impact(entry.state)]
    assert [state[0] in IMPACTS for state in landings] == [i % 2 == 0 for i in range(len(landings))]
    hard = bouncing(seesaw, "lcp", {"restitution": 1.0})
    assert hard.verdict == "running"
    cycle = hard.stretches[0].cycle
    assert cycle is not None
    assert spelled_states(cycle.states) == ["f", "Ild", "f", "Ird"]
    # The ends are balls that bounce from 0.1 m, each with the period 2 sqrt(2 h / g).
    assert cycle.period == pytest.approx(2.0 * np.sqrt(2.0 * 0.1 / 9.81), abs=2e-3)


def test_a_ball_hops_until_it_rests() -> None:
    """The paper's example of a trajectory in a CVIS that ends in an FCIS."""
    ball = special_robot("ball")
    sim = Simulator(ball, contact="lcp", contact_params={"restitution": 0.5})
    builder = Recording.Builder(ball)
    sim.reset(np.array([0.0, 0.7, 0.0]))
    for _ in range(2500):
        observation = sim.step(np.zeros(0))
        truth = sim.ground_truth()
        builder.append(sim.t, observation, sim.contact, truth, sim.command)
    report = report_recording(builder.build())[1]
    assert report.verdict == "hopping"
    assert [stretch.sets for stretch in report.stretches] == ["CVIS", "FCIS"]
    # Flights last e^n of the first; those below the limit are bounces.
    first = 2.0 * np.sqrt(2.0 * 0.5 / 9.81)
    longer = sum(first * 0.5**n > BOUNCE for n in range(1, 10))
    assert report.stretches[0].flights == 1 + longer


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the commands of the document's worked example ran, and the output that it shows."""
    text = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    section = re.search(r"^## Modes\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    folder = tmp_path_factory.mktemp("example")
    commands = re.findall(r"^    bipedsim (.*)$", section[1], re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["run", "modes"]
    jump, walk = re.findall(r"^```python\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    for code, verdict in ((jump, "hopping"), (walk, "walking")):
        exec(code, names)
        assert names["report"].verdict == verdict
    for command in commands:
        words = [str(folder / word) if word.endswith((".npz", ".png")) else word for word in command.split()]
        assert main(words) == 0
    shown = re.search(r"^```text\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    assert shown is not None
    return folder, shown[1]


def test_twenty_steps_under_pfl_are_walking_as_the_document_shows(
    example: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, shown = example
    capsys.readouterr()
    assert main(["modes", str(folder / "compass.npz")]) == 0
    printed = capsys.readouterr().out
    # Times may differ in the last digits from machine to machine.
    for line in shown.splitlines():
        pattern = re.sub(r"\d+\\\.\d+(e\\-\d+)?", r"[\\d.e-]+", re.escape(line).replace(r"\ ", " "))
        assert re.search(f"^{pattern}$", printed, re.MULTILINE), line
    (steps,) = re.findall(r"walking \(steps: (\d+)\)", printed)
    assert int(steps) >= 20
    picture = (folder / "modes.png").read_bytes()
    assert picture[:4] == b"\x89PNG"


def test_json_holds_what_is_printed(example: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = example
    capsys.readouterr()
    assert main(["modes", str(folder / "compass.npz"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    _, report = report_recording(load_recording(folder / "compass.npz"))
    assert told["gait"] == report.verdict
    assert [row["state"] for row in told["states"]] == symbols(report.entries)
    assert sum(count for _, _, count in told["transitions"]) == len(report.entries) - 1
    assert told["stretches"][0]["cycle"]["turns"] >= 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bounce", "-1"], "--bounce -1.0 must be a time"),
        (["--pause", "nan"], "--pause nan must be a time"),
        (["--plot", "run.npz"], "a figure is a .png, .pdf or .svg"),
        ([], "missing.npz: "),
    ],
)
def test_wrong_input_gets_an_answer(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["modes", str(tmp_path / "missing.npz"), *options]) == 2
    assert message in capsys.readouterr().err


def test_one_entry_is_an_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(RunConfig(duration=0.1))[0].save(tmp_path / "stand.npz")
    assert main(["modes", str(tmp_path / "stand.npz")]) == 0
    printed = capsys.readouterr().out
    assert "\n1 entry, 1 of 25 states seen" in printed
    assert "\nsets, of each foot in brackets: FCIS, it never leaves the ground" in printed
