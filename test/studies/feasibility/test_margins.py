"""Margins of a recorded run and its touch-downs, compared with the recording, and cases without a margin."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from paths import BODIES
from picture_support import Drawn
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import RecordingError
from bipedsim.ground.ground import Ground
from bipedsim.ground.read import get_ground
from bipedsim.model import Robot, load_robot
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.view.palette import FOOT_COLOURS
from bipedsim_studies.feasibility.margins import run_margins
from bipedsim_studies.feasibility.report import as_text, plot
from bipedsim_studies.feasibility.states import recorded_states
from bipedsim_studies.feasibility.touchdowns import touch_downs

RUNS = {
    "biped14": RunConfig(scenario="squat", duration=0.5),
    "planar_biped": RunConfig(
        robot="planar_biped",
        controller="computed_torque",
        duration=0.5,
        controller_params={"wave": {"l_hip": 0.02, "r_hip": 0.02, "l_ankle": -0.01, "r_ankle": -0.01}, "ramp": 0.2},
    ),
    "compass": RunConfig(robot="compass", controller="pfl", ground="downhill", rate=100.0, duration=6.0),
}
"""On two flat feet in space and in a plane, and a walk on points."""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture(scope="module")
def jump() -> Recording:
    """Crouch, push off, fly and land: contacts that stick, break and hit."""
    return run(RunConfig(scenario="jump", duration=2.0))[0]


@pytest.mark.parametrize("name", RUNS)
def test_states_of_a_run_are_those_of_the_simulator(name: str) -> None:
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    class Look:
        def start(self, sim: object, readouts: object) -> None:
            self.sim = sim

        def tick(self, tau_joint: np.ndarray, seconds: float) -> None:
            seen.append((self.sim.q.copy(), self.sim.v.copy()))  # type: ignore[attr-defined]

    recording, _ = run(RUNS[name], observer=Look())
    states = recorded_states(recording, load_robot(name))
    assert states.dt == pytest.approx(1.0 / RUNS[name].rate)
    assert np.isnan(states.v[0]).all()
    for i in range(1, len(recording)):
        assert_allclose(states.q[i], seen[i][0], atol=1e-12)
        # The velocity jumps within the step of a landing. Only the following steps define the velocity after it.
        lands = recording.impact[i].any()
        assert_allclose(states.v[i], seen[i][1], atol=(3e-3 if lands else 1e-9) * max(1.0, np.abs(seen[i][1]).max()))


@pytest.mark.ci
def test_margins_are_those_of_the_recorded_wrenches(robot: Robot, jump: Recording) -> None:
    """To first order in the step where nothing hits: the conditions find the forces from state and torques alone."""
    margins = run_margins(jump, robot, Ground.flat(), every=7)
    rows = np.searchsorted(jump.t, margins.t) + 1
    resting = margins.judged & margins.happened & (jump.impact[rows] == 0.0).all(axis=(1, 2))
    assert resting.sum() > 100
    weight = robot.weight
    assert_allclose(margins.force[resting], jump.wrench[rows[resting], :, 2], atol=2e-2 * weight)
    assert_allclose(margins.cop[resting], jump.cop_margin[rows[resting]], atol=2e-3)
    assert_allclose(margins.friction[resting], 1.0 - jump.friction_used[rows[resting]], atol=2e-2)
    assert (margins.torque[margins.predicted] > 0.0).all()
    assert np.isnan(margins.force[(jump.mode[rows - 1] == 0).all(axis=1)]).all()
    assert margins.agreement > 0.98


def test_margins_of_a_planar_robot_are_those_of_its_recorded_wrenches() -> None:
    """Its base has joints without drives, which a recording does not hold."""
    robot = load_robot("planar_biped")
    recording, _ = run(RUNS["planar_biped"])
    margins = run_margins(recording, robot, Ground.flat(), every=5)
    rows = np.searchsorted(recording.t, margins.t) + 1
    assert margins.agreement == 1.0
    assert np.ptp(margins.cop[:, 0]) > 0.01
    assert_allclose(margins.force, recording.wrench[rows, :, 2], atol=2e-3 * robot.weight)
    assert_allclose(margins.cop, recording.cop_margin[rows], atol=1e-3)
    assert_allclose(margins.friction, 1.0 - recording.friction_used[rows], atol=2e-3)


@pytest.mark.ci
def test_touch_downs_of_a_walk_on_points_are_predicted() -> None:
    """Straight legs swing through the ground: where a foot comes down depends on where it was before."""
    recording, _ = run(RUNS["compass"])
    found = touch_downs(recording, load_robot("compass"), get_ground("downhill"))
    assert [entry.feet for entry in found] == [("right",), ("left",)]
    for entry in found:
        assert entry.agrees
        assert sorted(entry.predicted) == ["none", "vertex 0 stick"]
        assert_allclose(entry.impulse_predicted, entry.impulse_happened, rtol=0.05)


def test_touch_downs_of_a_jump_are_predicted(robot: Robot, jump: Recording) -> None:
    found = touch_downs(jump, robot, Ground.flat())
    assert {foot for entry in found for foot in entry.feet} == {"left", "right"}
    assert all(entry.agrees for entry in found)
    for entry in found:
        assert entry.speed < -0.05
        assert_allclose(entry.impulse_predicted, entry.impulse_happened, rtol=0.1, atol=0.02)
    assert (found[-1].all_stick > 0.0) == (found[-1].predicted == ("face stick", "face stick"))


def test_the_command_prints_and_draws(tmp_path: Path, jump: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "jump.npz"
    jump.save(run)
    assert main(["margins", str(run), "--every", "50", "--plot", str(tmp_path / "margins.png")]) == 0
    out = capsys.readouterr().out
    head, first, *_ = out.splitlines()
    assert head == "least margins of each foot while it carries; more is safer:"
    found = re.fullmatch(r"left +normal force +(\S+) N +at t = (\S+) s  at 0 it lifts", first)
    assert found is not None
    assert re.search(r"^right +CoP to the edge +\S+ mm +at t = \S+ s  at 0 it tips$", out, re.MULTILINE)
    assert re.search(r"^right +unused friction +\S+ % of mu f_z +at t = \S+ s  at 0 it slips$", out, re.MULTILINE)
    assert "joint torques could be off by" in out
    assert "touch-downs" in out
    assert (tmp_path / "margins.png").stat().st_size > 20_000
    assert main(["margins", str(run), "--every", "50", "--json"]) == 0
    shown = found.groups()
    found = json.loads(capsys.readouterr().out)
    least = found["feet"]["left"]["force_N"]
    assert shown == (f"{least['least']:.4g}", f"{least['t']:.3f}")
    assert set(found["feet"]) == {"left", "right"}
    assert set(found["feet"]["right"]) == {"force_N", "cop_m", "unused_friction"}, "left is a foot, and nothing else"
    assert found["agreement"] > 0.9
    assert found["touch_downs"]


def test_a_foot_does_not_hide_the_other_one_and_every_line_has_a_legend(
    tmp_path: Path, robot: Robot, jump: Recording
) -> None:
    found = touch_downs(jump, robot, Ground.flat())
    margins = run_margins(jump, robot, Ground.flat(), 50)
    one, other = found[0], replace(found[-1], happened=("none", "none"))
    assert one.agrees
    assert not other.agrees
    drawn = Drawn(lambda path: plot(margins, (one, other), "a jump", path), tmp_path)
    legend = {"left foot", "right foot", "touch-down as predicted", "touch-down not as predicted"}
    assert legend <= set(drawn.texts)
    # The second foot is dashed in three panels and in the legend.
    lines = re.findall(rf'<path [^>]*stroke-dasharray: ?[^"]*stroke: ?{FOOT_COLOURS[1]}', drawn.source, re.IGNORECASE)
    lines += re.findall(rf'<path [^>]*stroke: ?{FOOT_COLOURS[1]}[^"]*stroke-dasharray', drawn.source, re.IGNORECASE)
    assert len(lines) >= 4


def test_the_command_reads_a_robot_with_joints_without_drives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "stands.npz"
    of = ["--robot", "planar_biped", "--controller", "computed_torque", "--duration", "0.2"]
    assert main(["run", *of, "--output", str(run)]) == 0
    assert main(["margins", str(run), "--plot", str(tmp_path / "margins.png")]) == 0
    out = capsys.readouterr().out
    # The feet are in the same state, so rounding decides between their names.
    assert re.search(r"^joint torques could be off by \S+ N\.m .*: CoP inside the end \d\)$", out, re.MULTILINE)
    assert "100.00% of 20 rows went on as the conditions said" in out
    assert "no touch-downs" in out


def test_limits_of_impacts_are_impulses(robot: Robot, jump: Recording) -> None:
    for entry in touch_downs(jump, robot, Ground.flat()):
        assert entry.limit.split()[-1] in ("[N.s]", "[N.m.s]", "[m/s]")


def test_what_a_run_lacks_is_named(robot: Robot, jump: Recording) -> None:
    ground = Ground.flat()
    with refusal(RecordingError, place="the pose of the base"):
        recorded_states(replace(jump, base_pose=np.full_like(jump.base_pose, np.nan)), robot)
    with refusal(RecordingError, place="contact modes"):
        run_margins(replace(jump, mode=np.full_like(jump.mode, -1)), robot, ground)
    with pytest.raises(RecordingError) as caught:
        recorded_states(jump, load_robot("talos"))
    assert caught.value.place.startswith("joints ")
    with refusal(RecordingError, place="rows"):
        recorded_states(jump.rows(slice(0, 2)), robot)
    with refusal(place="every", value=0):
        run_margins(jump, robot, ground, every=0)


def test_a_robot_with_joints_that_nothing_measures_is_refused() -> None:
    compass = load_robot("compass")
    n = 5
    recording = Recording.empty(n, compass.joint_names, [sole.name for sole in compass.soles], "compass")
    recording.t[:] = np.arange(n) * 1e-3
    recording.joint_position[:] = 0.0
    with pytest.raises(RecordingError) as caught:
        recorded_states(recording, compass)
    assert "(x, z, left_pitch)" in caught.value.place
    pendulum = load_robot(BODIES / "double_pendulum")
    with refusal(RecordingError, place="joints without drives (upper_hinge, lower_hinge)"):
        recorded_states(Recording.empty(n, [], [], pendulum.name), pendulum)


def test_torques_that_did_not_keep_the_feet_are_told_as_such(robot: Robot, jump: Recording) -> None:
    margins = run_margins(jump, robot, Ground.flat(), 50)
    beyond = replace(margins, torque=margins.torque - margins.torque[np.isfinite(margins.torque)].min() - 1.5)
    (line,) = [line for line in as_text(beyond, ()).splitlines() if line.startswith("joint torques")]
    assert line.startswith("joint torques were 1.5 N.m (norm over the joints) beyond what keeps the feet at t = ")
    assert "[" not in line, "the unit of the condition is that of no number in the line"
