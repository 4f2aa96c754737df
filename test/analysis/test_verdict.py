"""The outcome of a run, in one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from physics_support import special_robot, standing_torque
from scipy.spatial.transform import Rotation

from bipedsim.analysis.ending import Fall, FallKind, FallReason
from bipedsim.analysis.fall import fall_time
from bipedsim.analysis.summary_text import summary_lines
from bipedsim.analysis.verdict import Verdict
from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import EXIT_FELL
from bipedsim.model import load_robot
from bipedsim.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.sim.simulator import Simulator


@pytest.mark.parametrize(
    ("scenario", "duration", "said", "steps"),
    [
        ("stand", 1.0, "stood 1 s, did not fall", 0),
        ("squat", 2.0, "stood 2 s, did not fall", 0),
        ("jump", 3.0, "stood 3 s with 1 jump, did not fall", 2),
    ],
)
def test_who_stays_has_stood(scenario: str, duration: float, said: str, steps: int) -> None:
    _, summary = run(RunConfig(scenario=scenario, duration=duration))
    assert summary["verdict"] == said
    assert summary["steps"] == steps
    assert summary["distance_m"] < 0.05


def test_who_walks_is_told_how_far_and_how_fast() -> None:
    recording, summary = run(RunConfig(scenario="walk", duration=5.0))
    assert summary["verdict"].startswith("walked ")
    # The robot stands for the first 2 s, so distance / duration is not its walking speed.
    speed = float(summary["verdict"].partition(" m/s while walking, ")[0].split()[-1])
    assert 1.3 * summary["distance_m"] / 5.0 < speed < 0.5
    assert summary["verdict"].endswith(" steps, did not fall")
    # Swing phases of at least a tenth of a second, from the forces.
    landings = 0
    for load in recording.wrench[:, :, 2].T:
        edges = np.flatnonzero(np.diff((load > 0.02 * recording.weight).astype(int)))
        landings += int((np.diff(edges) >= 100)[::2].sum())
    assert summary["steps"] == landings >= 4
    way = np.linalg.norm(recording.base_pose[-1, :2] - recording.base_pose[0, :2])
    assert summary["distance_m"] == pytest.approx(way, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize(("turn", "side"), [(0.2, "left"), (-0.2, "right")])
def test_who_leaves_the_way_ahead_is_told_where_it_ended(tmp_path: Path, turn: float, side: str) -> None:
    """The lateral offset is measured from the line through the first base position along its x axis."""
    file = tmp_path / "bend.yaml"
    file.write_text(f"controller: zmp\nvelocity: [{{at: 0.5, vx: 0.3, wz: {turn}}}]\n")
    recording, summary = run(RunConfig(scenario=str(file), duration=6.0))
    begin, end = recording.base_pose[0], recording.base_pose[-1]
    first, last = (Rotation.from_quat(pose[3:]).as_matrix()[:2, 0] for pose in (begin, end))
    ahead = first / np.linalg.norm(first)
    way = end[:2] - begin[:2]
    aside = ahead[0] * way[1] - ahead[1] * way[0]
    degrees = np.rad2deg(np.arctan2(ahead[0] * last[1] - ahead[1] * last[0], ahead @ last))
    assert np.sign(aside) == np.sign(degrees) == np.sign(turn)
    said = r" steps, to (\d\.\d\d) m (\w+) of straight ahead, facing (\d+) degrees (\w+), did not fall$"
    match = re.search(said, summary["verdict"])
    assert match is not None, summary["verdict"]
    assert match[2] == match[4] == side
    assert float(match[1]) == pytest.approx(abs(aside), abs=0.01)
    assert float(match[3]) == pytest.approx(abs(degrees), abs=1.0)


def reason_of(figures: Mapping[str, Any]) -> FallReason:
    """Return the reason of the fall in an outcome."""
    fall = Fall.read(figures)
    assert fall is not None
    assert fall.reason is not None
    return fall.reason


def test_a_fall_is_that_of_the_recording_and_has_a_reason() -> None:
    recording, summary = run(RunConfig(scenario="toe_fall", duration=6.0))
    fell = fall_time(recording, load_robot("biped14"))
    assert fell is not None
    assert summary["fell_at_s"] == pytest.approx(fell, abs=2e-3)
    assert reason_of(summary).kind is FallKind.TIPPING


@pytest.mark.long
def test_scripts_learn_of_a_fall_by_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    fall = ["run", "--scenario", "toe_fall", "--duration", "6", "--json"]
    assert main(fall) == 0
    assert main([*fall, "--fail-on-fall"]) == EXIT_FELL
    assert main(["run", "--duration", "0.1", "--json", "--fail-on-fall"]) == 0


def test_a_joint_at_its_limit_and_commands_that_stay_away_are_reasons() -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot)
    verdict = Verdict(sim)
    weak = standing_torque(robot)
    knee = robot.joint_names.index("l_knee")
    for idle, kind, part in ((True, FallKind.NO_COMMANDS, ""), (False, FallKind.TORQUE_LIMIT, "l_knee")):
        sim.reset()
        verdict.restart()
        torque = np.zeros(robot.nu) if idle else weak.copy()
        torque[knee] = 0.0 if idle else -robot.effort_limit[knee]
        while verdict.fell_at is None and sim.t < 3.0:
            sim.step(torque)
            verdict.tick(idle)
        assert verdict.reason == FallReason(kind, part, sim.control_dt)
        figures = verdict.figures()
        assert Fall.read(figures) == Fall(verdict.fell_at, verdict.reason)
        assert figures["verdict"] == f"fell at {verdict.fell_at:.1f} s: {verdict.reason}"
    # A reset clears all observations.
    sim.reset()
    verdict.restart()
    for _ in range(100):
        sim.step(weak)
        verdict.tick()
    assert verdict.figures()["verdict"] == "stood 0.1 s, did not fall"


@pytest.mark.parametrize("stops", [True, False])
def test_a_joint_at_its_stop_is_a_reason(stops: bool) -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot, hardware={"joint_stops": stops})
    verdict = Verdict(sim)
    torque = np.zeros(robot.nu)
    torque[robot.joint_names.index("l_ankle_pitch")] = -40.0
    while verdict.fell_at is None and sim.t < 3.0:
        sim.step(torque)
        verdict.tick()
    assert verdict.reason is not None
    assert (verdict.reason.kind, verdict.reason.part) == (FallKind.JOINT_LIMIT, "l_ankle_pitch")
    assert verdict.reason.since == pytest.approx(0.1, abs=0.05)


def test_a_verdict_that_begins_again_is_a_new_one() -> None:
    """After a fall without commands, landings do not count as steps.

    The missing commands count from their beginning.
    """
    robot = load_robot("biped14")
    sim, torque = Simulator(robot), standing_torque(robot)
    used = Verdict(sim)

    def fall(verdict: Verdict, height: float, at: float) -> dict[str, object]:
        """Drop the robot from ``height`` [m], without commands from ``at`` [s] on."""
        q = robot.q_nominal.copy()
        q[2] += height
        sim.reset(q)
        verdict.restart()
        while verdict.fell_at is None and sim.t < 3.0:
            idle = sim.t > at
            sim.step(0.0 * torque if idle else torque)
            verdict.tick(idle)
        return verdict.figures()

    # The first tick has a command.
    assert reason_of(fall(used, 0.0, 0.0)) == FallReason(FallKind.NO_COMMANDS, "", 2.0 * sim.control_dt)
    landed = fall(used, 0.1, 0.0)
    assert landed == fall(Verdict(sim), 0.1, 0.0)
    assert landed["steps"] == 0
    late = fall(used, 0.0, 0.2)
    assert late == fall(Verdict(sim), 0.0, 0.2)
    reason = reason_of(late)
    assert (reason.kind, reason.since) == (FallKind.NO_COMMANDS, pytest.approx(0.2, abs=0.01))


def test_what_cannot_fall_has_run() -> None:
    sim = Simulator(special_robot("block"))
    verdict = Verdict(sim)
    sim.advance(np.zeros(0))
    verdict.tick()
    assert verdict.figures()["fell_at_s"] is None
    assert verdict.figures()["verdict"] == "ran 0.001 s; nothing that could fall"


def chattering(duration: float, hardware: str = "realistic") -> tuple[Recording, dict[str, Any]]:
    """One joint has a damping that is far too high for a sampled controller with noise."""
    hot = {"kd": {"l_hip_yaw": 1000.0}}
    with pytest.warns(UserWarning, match="kd dt / I_eff is above 1"):
        return run(RunConfig(controller_params=hot, hardware=hardware, duration=duration))


@pytest.mark.parametrize("hardware", ["ideal", "realistic"])
def test_a_controller_that_chatters_between_its_limits_is_told_of(hardware: str) -> None:
    """The check counts the sign changes of the recorded commands."""
    recording, summary = chattering(1.0, hardware)
    limit, torque = recording.effort_limit, recording.joint_command
    at_limit = np.abs(torque) >= 0.999 * limit
    assert summary["torque_limited_fraction"] == pytest.approx(at_limit.any(axis=1).mean())
    swings = {}
    for name, own, most in zip(recording.joint_names, torque.T, limit, strict=True):
        sides = np.sign(own[np.abs(own) >= 0.5 * most])
        swings[name] = np.count_nonzero(np.diff(sides)) / summary["duration_s"]
    shares = dict(zip(recording.joint_names, at_limit.mean(axis=0), strict=True))
    for key, counted in (("torque_limited", shares), ("torque_swings_hz", swings)):
        assert summary[key] == pytest.approx({name: value for name, value in counted.items() if value})
    share, swing = shares["l_hip_yaw"], swings["l_hip_yaw"]
    assert share > 0.5
    assert swing > 100.0
    assert summary["verdict"] == (
        f"stood 1 s, did not fall; l_hip_yaw at its torque limit in {100 * share:.0f} % of ticks and driven from side "
        f"to side {swing:.0f} times a second"
    )
    (line,) = (line for line in summary_lines(summary) if line.startswith("torques"))
    assert f"(l_hip_yaw {100 * share:.0f} %); direction changes up to {swing:.3g} times per second (l_hip_yaw)" in line


def test_torques_that_stay_within_their_limits_are_told_as_such() -> None:
    _, summary = run(RunConfig(scenario="walk", hardware="realistic", duration=5.0))
    assert (summary["torque_limited_fraction"], summary["torque_limited"]) == (0.0, {})
    assert max(summary["torque_swings_hz"].values(), default=0.0) < 5.0
    assert summary["verdict"].endswith("did not fall")
    assert any(line.split()[:2] == ["torques", "never"] for line in summary_lines(summary))
