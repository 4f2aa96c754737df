"""The discrete states of a run, the gait that they are, cycles and invariant sets: counted, synthetic and simulated."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise, product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from physics_support import special_robot

from bipedsim.analysis.gait_modes import BOUNCE
from bipedsim.analysis.gait_modes.cycle import find_cycle
from bipedsim.analysis.gait_modes.gait import GaitReport, gait_report, report_recording, without_bounces
from bipedsim.analysis.gait_modes.sequence import Entry, ModeSequence, foot_states, mode_sequence, transitions
from bipedsim.analysis.gait_modes.states import (
    IMPACTS,
    FootState,
    State,
    all_states,
    count_states,
    is_impact,
    state_name,
    state_symbol,
)
from bipedsim.cli import main
from bipedsim.errors import RecordingError
from bipedsim.recording import Recording
from bipedsim.robot import Robot, load_robot
from bipedsim.runner import RunSettings, run_headless
from bipedsim.simulator import Simulator

ROOT = Path(__file__).resolve().parents[1]
FEET = ("left", "right")
AIR, STICK, SLIDE, HIT, HIT_SLIDE = FootState
# The states that the paper names, by the names that it gives them.
NAMED: dict[str, State] = {
    "f": (AIR, AIR),
    "sl": (STICK, AIR),
    "sr": (AIR, STICK),
    "dss": (STICK, STICK),
    "Irs": (STICK, HIT),
    "Ils": (HIT, STICK),
    "Ild": (HIT, AIR),
    "Ird": (AIR, HIT),
}
WALK = ("sl", "Irs", "dss", "sr", "Ils", "dss")
HOP = ("f", "Ild")
RUN = ("f", "Ild", "sl", "f", "Ird", "sr")


def sequence(word: list[tuple[State, float]]) -> ModeSequence:
    """Return states and how long each lasts [s] as a sequence of 1 ms rows."""
    counts = [max(1, round(1e3 * duration)) for _, duration in word]
    states = np.repeat(np.array([state for state, _ in word], dtype=np.int64), counts, axis=0)
    return ModeSequence(FEET, 1e-3 * np.arange(len(states) + 1), states, np.arange(len(states)))


def spelled(names: list[str], phase: float = 0.4) -> ModeSequence:
    """Return a sequence of the paper's states, every phase as long as the others, every impact of one row."""
    return sequence([(NAMED[name], 1e-3 if name[0] == "I" else phase) for name in names])


def symbols(entries: list[Entry]) -> list[str]:
    return [state_symbol(entry.state, FEET) for entry in entries]


def mirrored(modes: ModeSequence) -> ModeSequence:
    return ModeSequence(modes.feet, modes.t, modes.states[:, ::-1], modes.rows)


@pytest.mark.parametrize("feet", [1, 2, 3, 4])
def test_states_are_as_many_as_eq_44_says(feet: int) -> None:
    states = all_states(feet)
    assert len(set(states)) == len(states) == count_states(feet) == 5**feet
    impacts = Counter(sum(foot in IMPACTS for foot in state) for state in states)
    assert impacts == {i: 2**i * 3 ** (feet - i) * comb(feet, i) for i in range(feet + 1)}
    assert [is_impact(state) for state in states] == sorted(is_impact(state) for state in states)


def test_two_feet_have_25_states_and_each_has_names_of_its_own() -> None:
    states = all_states(2)
    assert len(states) == 25
    assert len({state_symbol(state, FEET) for state in states}) == 25
    assert len({state_name(state, FEET) for state in states}) == 25
    assert {name: state_symbol(state, FEET) for name, state in NAMED.items()} == {name: name for name in NAMED}
    assert state_name(NAMED["Irs"], FEET) == "left stick; right impact, stick"
    # Whatever the feet are called, and in whatever order.
    assert state_symbol((STICK, AIR), ("right", "left")) == "sr"
    assert len({state_symbol(state, ("fore", "aft")) for state in states}) == 25


@pytest.mark.parametrize(
    ("word", "gait", "steps", "flights"),
    [(WALK, "walking", 20, 0), (HOP, "hopping", 0, 10), (RUN, "running", 0, 20)],
)
def test_the_three_gaits_of_eq_45(word: tuple[str, ...], gait: str, steps: int, flights: int) -> None:
    around = ["dss"] if gait == "walking" else []
    modes = spelled([*around, *(10 * word), *around])
    for way in (modes, mirrored(modes)):
        report = gait_report(way)
        assert report.gaits == (gait,)
        (stretch,) = [stretch for stretch in report.stretches if stretch.impacts]
        # Whoever runs from a standing start begins with a landing from nowhere: that is no flight from foot to foot.
        assert (stretch.steps, stretch.flights) == (steps, flights)
        assert stretch.sets == ("CVIS-UIS" if gait == "hopping" else "CVIS")
        assert stretch.cycle is not None
        assert stretch.cycle.turns >= 9
        assert len(stretch.cycle.states) == len(word)
    report = gait_report(modes)
    cycle = next(stretch.cycle for stretch in report.stretches if stretch.cycle)
    turn = [state_symbol(state, FEET) for state in cycle.states]
    assert tuple(turn) in {word[i:] + word[:i] for i in range(len(word))}


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_with_bounces_slips_and_uneven_times_is_a_walk(seed: int) -> None:
    """Every landing bounces, every foot may slip before it lifts, impacts may slide."""
    random = np.random.default_rng(seed)
    word: list[tuple[State, float]] = [((STICK, STICK), 1.0)]
    for step in range(20):
        swing = step % 2

        def both(stance: FootState, other: FootState, swing: int = swing) -> State:
            return (other, stance) if swing == 0 else (stance, other)

        hit = HIT_SLIDE if random.random() < 0.3 else HIT
        word += [(both(STICK, SLIDE), 3e-3), (both(STICK, AIR), random.uniform(0.2, 0.9)), (both(STICK, hit), 2e-3)]
        word += [(both(STICK, AIR), random.uniform(0.01, 0.09)), (both(STICK, HIT), 2e-3)] * int(random.integers(0, 3))
        word += [(both(STICK, STICK), random.uniform(0.02, 0.3))]
    report = gait_report(sequence(word))
    assert report.verdict == "walking"
    assert sum(stretch.steps for stretch in report.stretches) == 20
    assert all(share < 0.1 for share in report.sliding)


def test_gaits_that_follow_each_other_are_told_apart() -> None:
    names = ["dss", *(4 * WALK), "sl", *(4 * ["f", "Ild", "sl"]), *(3 * ["f", "Ird", "sr", "f", "Ild", "sl"])]
    report = gait_report(spelled(names, 0.3))
    assert report.gaits == ("walking", "hopping", "running")
    assert report.verdict == "walking, hopping, running"


def test_a_rest_ends_a_gait_and_what_stays_is_named() -> None:
    walk = [(NAMED[name], 1e-3 if name[0] == "I" else 0.4) for name in (2 * WALK)]
    word = [*walk, (NAMED["dss"], 5.0), *walk, (NAMED["sl"], 1.0)]
    report = gait_report(sequence(word))
    assert [stretch.gaits for stretch in report.stretches] == [
        ("walking",),
        ("standing",),
        ("walking",),
        ("standing", "on left"),
    ]
    assert [stretch.sets for stretch in report.stretches] == ["CVIS", "FCIS", "CVIS", "UIS-FCIS"]
    assert len(gait_report(sequence(word), pause=6.0).stretches) == 2


@pytest.mark.parametrize(
    ("word", "verdict", "sets"),
    [
        ([("dss", 1.0)], "standing", "FCIS"),
        ([("f", 1.0)], "flight", "UIS"),
        ([("sl", 1.0)], "on left", "UIS-FCIS"),  # rocking on one foot
        ([("dss", 1.0), ("sl", 0.5), ("Irs", 0.001), ("dss", 1.0)], "step", "CVIS-FCIS"),  # the left one stays
        ([("sl", 0.5), ("Irs", 0.001), ("dss", 0.3)] * 3, "step, tapping", "CVIS-FCIS"),
        ([("dss", 1.0), ("f", 0.3), ("Ild", 0.001), ("sl", 1.0)], "leap", "CVIS-UIS"),
    ],
)
def test_what_is_no_gait_is_named_and_belongs_to_invariant_sets(
    word: list[tuple[str, float]], verdict: str, sets: str
) -> None:
    report = gait_report(sequence([(NAMED[name], duration) for name, duration in word]))
    assert report.gaits == ()
    assert set(verdict.split(", ")) <= set(report.verdict.split(", "))
    busy = [stretch for stretch in report.stretches if stretch.impacts] or report.stretches
    assert busy[0].sets == sets


def test_a_robot_that_moves_on_its_feet_is_unconstrained_too() -> None:
    """Remark 2 of the paper: constrained in the directions of the contacts, free in the others."""
    modes = spelled(["dss"])
    moving = 0.5 * np.sin(modes.t[:-1, None] * 10.0)
    assert gait_report(modes, joint_velocity=moving).stretches[0].sets == "UIS-FCIS"
    assert gait_report(modes, joint_velocity=1e-4 * moving).stretches[0].sets == "FCIS"
    assert gait_report(modes, joint_velocity=np.full_like(moving, np.nan)).stretches[0].sets == "FCIS"


contacts = st.lists(st.tuples(*[st.booleans()] * 2), min_size=2, max_size=60).map(np.array)


@given(contacts, st.lists(st.booleans(), min_size=60, max_size=60))
def test_impacts_are_where_feet_touch_down(contact: np.ndarray, slip: list[bool]) -> None:
    """Of a soft contact, which has no impulses."""
    sliding = np.column_stack([slip, slip[::-1]])[: len(contact)]
    none = np.zeros_like(contact)
    states = foot_states(contact, sliding, contact.astype(np.int64), none, none[:, 0])
    lands = np.zeros_like(contact)
    lands[1:] = contact[1:] & ~contact[:-1]
    quiet = ~lands.any(axis=1)
    quiet[0] = True
    expected = np.where(contact, np.where(sliding, SLIDE, STICK), AIR)
    assert (states[quiet] == expected[quiet]).all()
    assert np.isin(states[1:][lands[1:]], IMPACTS).all()
    assert not np.isin(states[0], IMPACTS).any()


@given(contacts, st.sampled_from([0.0, 2e-3, 5e-3, 0.1]))
def test_closing_bounces_closes_all_that_are_shorter_and_no_other(contact: np.ndarray, bounce: float) -> None:
    t = 1e-3 * np.arange(len(contact) + 1)
    closed = without_bounces(t, contact, bounce)
    assert (closed | ~contact).all()
    assert (without_bounces(t, closed, bounce) == closed).all()
    for k in range(2):
        down = np.flatnonzero(closed[:, k])
        assert all(t[b] - t[a + 1] >= bounce for a, b in pairwise(down.tolist()) if b > a + 1)
        changed = np.flatnonzero(closed[:, k] != contact[:, k])
        before = np.flatnonzero(contact[:, k])
        assert all(before[0] < i < before[-1] for i in changed)


@given(st.lists(st.sampled_from(list(product(FootState, repeat=2))), min_size=1, max_size=40))
def test_entries_hold_the_sequence_and_nothing_else(states: list[State]) -> None:
    modes = sequence([(state, 1e-3) for state in states])
    entries = modes.entries
    assert [entry.state for entry in entries for _ in range(entry.first, entry.last)] == states
    assert all(a.state != b.state for a, b in pairwise(entries))
    assert sum(entry.duration for entry in entries) == pytest.approx(modes.t[-1])
    assert sum(transitions(entries).values()) == len(entries) - 1
    report = gait_report(modes)
    assert sum(stretch.duration for stretch in report.stretches) == pytest.approx(modes.t[-1])
    assert sum(entry.duration for entry in report.entries) == pytest.approx(modes.t[-1])


@given(st.lists(st.sampled_from(list(NAMED)), min_size=1, max_size=6), st.integers(2, 6), st.integers(0, 5))
def test_a_word_that_is_repeated_is_a_cycle(word: list[str], turns: int, rest: int) -> None:
    shortest = next(p for p in range(1, len(word) + 1) if len(word) % p == 0 and word == word[:p] * (len(word) // p))
    text = word * turns + word[: min(rest, len(word) - 1)]
    entries = [Entry(0.1 * i, 0.1, NAMED[name], i, i + 1) for i, name in enumerate(text)]
    cycle = find_cycle(entries)
    assert cycle is not None
    assert len(cycle.states) == shortest
    assert cycle.turns == len(text) // shortest
    assert cycle.period == pytest.approx(0.1 * shortest)
    assert cycle.spread == pytest.approx(0.0, abs=1e-12)


def test_what_never_returns_has_no_cycle() -> None:
    assert find_cycle([Entry(float(i), 1.0, state, i, i + 1) for i, state in enumerate(all_states(2))]) is None
    assert find_cycle([]) is None


# ---- real runs


def ran(settings: RunSettings) -> tuple[Recording, ModeSequence, GaitReport]:
    recording = run_headless(settings)[0]
    return (recording, *report_recording(recording))


@pytest.fixture(scope="module")
def jump() -> Recording:
    return ran(RunSettings(scenario="jump", duration=2.0))[0]


def test_a_walk_under_zmp_is_eq_45a_to_the_letter() -> None:
    recording, modes, report = ran(RunSettings(scenario="walk", duration=6.0))
    assert report.verdict == "walking"
    assert max(report.sliding) < 0.01
    cycle = report.stretches[1].cycle
    assert cycle is not None
    assert [state_symbol(state, FEET) for state in cycle.states] == list(WALK)
    assert report.stretches[1].sets == "CVIS"
    # Every landing takes an impulse, and what is told of a foot is what its force says.
    loaded = recording.wrench[modes.rows, :, 2] > 0.0
    assert ((modes.states != AIR) == loaded).all(axis=1).mean() > 0.999
    for entry in report.entries:
        if is_impact(entry.state):
            assert recording.impact[entry.first : entry.last, :, 2].max() > 0.0


@pytest.mark.parametrize("model", ["one_step", "lcp", "nonlinear_damping"])
def test_a_hop_is_hopping_under_rigid_and_soft_contact(model: str, jump: Recording) -> None:
    settings = RunSettings(scenario="jump", duration=2.0, contact_model=model)
    report = report_recording(jump)[1] if model == "one_step" else ran(settings)[2]
    assert report.verdict == "hopping"
    assert [stretch.gaits for stretch in report.stretches] == [("standing",), ("hopping",), ("standing",)]
    assert [stretch.flights for stretch in report.stretches] == [0, 1, 0]
    assert symbols(report.entries) == ["dss", "f", "S! S!", "dss"]


def test_forces_tell_the_gait_where_contact_states_are_missing(jump: Recording) -> None:
    """As of a real robot: what is known are wrenches, and the robot's weight."""
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
    with pytest.raises(RecordingError, match="weight is unknown"):
        mode_sequence(blind)
    blind.wrench = np.full_like(jump.wrench, np.nan)
    with pytest.raises(RecordingError, match="/left_foot/contact"):
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
    with pytest.raises(RecordingError, match="no feet or no rows"):
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
    """A beam with half of its mass at each end: what happens at one end does not move the other one."""
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
        builder.append(sim.t, observation, sim.contact, sim.q, truth.cop_world, truth.pose_world_sole)
    return report_recording(builder.build())[1]


def test_a_beam_that_bounces_from_end_to_end_runs(seesaw: Robot) -> None:
    """On springs each end stays for a while, as eq. 45c says; by restitution it is off at once."""
    springs = {"stiffness": 3000.0, "alpha": 0.01, "tangential_stiffness": 3000.0, "tangential_damping": 30.0}
    soft = bouncing(seesaw, "nonlinear_damping", springs)
    assert soft.verdict == "running"
    phases = [entry.state for entry in soft.entries if not is_impact(entry.state)]
    assert [state_symbol(state, FEET) for state in phases[:8]] == ["f", "sl", "f", "sr", "f", "sl", "f", "sr"]
    landings = [entry.state for entry in soft.entries if is_impact(entry.state)]
    assert [state[0] in IMPACTS for state in landings] == [i % 2 == 0 for i in range(len(landings))]
    hard = bouncing(seesaw, "lcp", {"restitution": 1.0})
    assert hard.verdict == "running"
    cycle = hard.stretches[0].cycle
    assert cycle is not None
    assert [state_symbol(state, FEET) for state in cycle.states] == ["f", "Ild", "f", "Ird"]
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
        builder.append(sim.t, observation, sim.contact, sim.q, truth.cop_world, truth.pose_world_sole)
    report = report_recording(builder.build())[1]
    assert report.verdict == "hopping"
    assert [stretch.sets for stretch in report.stretches] == ["CVIS", "FCIS"]
    # Flights last e^n of the first; those below the limit are bounces.
    first = 2.0 * np.sqrt(2.0 * 0.5 / 9.81)
    longer = sum(first * 0.5**n > BOUNCE for n in range(1, 10))
    assert report.stretches[0].flights == 1 + longer


# ---- the command, and the example of the document


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the commands of the document's worked example ran, and the output that it shows."""
    text = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    section = re.search(r"^## Modes\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    folder = tmp_path_factory.mktemp("example")
    commands = re.findall(r"^    bipedsim (.*)$", section[1], re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["run", "modes"]
    (code,) = re.findall(r"^```python\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["report"].verdict == "hopping"
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
    _, report = report_recording(Recording.load(folder / "compass.npz"))
    assert told["gait"] == report.verdict
    assert [row["state"] for row in told["states"]] == symbols(report.entries)
    assert sum(count for _, _, count in told["transitions"]) == len(report.entries) - 1
    assert told["stretches"][0]["cycle"]["turns"] >= 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bounce", "-1"], "--bounce -1.0 must be a time"),
        (["--pause", "nan"], "--pause nan must be a time"),
        (["--plot", "run.npz"], "a picture is a .png, .pdf or .svg"),
        ([], "no such file"),
    ],
)
def test_wrong_input_gets_an_answer(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["modes", str(tmp_path / "missing.npz"), *options]) == 2
    assert message in capsys.readouterr().err
