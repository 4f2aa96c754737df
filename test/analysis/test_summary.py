"""The statistics of a run, in the form that readers see."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bipedsim.analysis.controller_stop import ControllerStop
from bipedsim.analysis.ending import Fall, FallKind, FallReason, outcome_line, with_stop
from bipedsim.analysis.summary_text import missed_share, silence_text, summary_lines, unit_of
from bipedsim.cli.main import main
from bipedsim.config import to_json
from bipedsim.control.stop import StopKind
from bipedsim.errors import EXIT_FAILED, EXIT_FELL

SUMMARY = {
    "robot": "biped14",
    "duration_s": 12.0,
    "rate_hz": 1000.0,
    "ticks": 12000,
    "real_time_factor": 0.999991,
    "overruns": 418,
    "missed_commands": 118,
    "commands_dropped": 0,
    "fz_mean_over_mg": None,
    "gave_up_at_s": None,
    "readouts": {},
    "round_trip_us": {"p50": 393.2, "max": 5999.8},
    "lateness_us": {"p50": None, "max": None},
    "clock": "real_time",
}


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        *(("foot_drift_m", "m"), ("rate_hz", "Hz"), ("fz_max_error_N", "N"), ("round_trip_us", "us")),
        *(("zmp_margin", "m"), ("sliding_variable", "rad/s"), ("lean_rad", "rad")),
        *(("state_changes", ""), ("m", ""), ("s", ""), ("capture_error", ""), ("fz_mean_over_mg", "")),
    ],
)
def test_units_are_those_of_the_name(name: str, unit: str) -> None:
    assert unit_of(name) == unit


def test_a_bring_up_shows_what_there_is_and_judges_its_commands() -> None:
    lines = {line[:26].strip(): line[27:] for line in summary_lines(SUMMARY)}
    assert lines == {
        "robot": "biped14",
        "duration": "12 s",
        "control rate": "1000 Hz",
        "real time factor": "0.999991",
        "commands": "99.0% in time (118 missed)",
        "overruns": "418 late ticks",
        "round trip": "p50 393.2  max 5999.8 us",
        "clock": "real_time",
    }
    assert missed_share(SUMMARY) == 118 / 12000
    dropped = {"commands_dropped": 3, "commands_dropped_by_kind": {"not_finite": 2, "size": 1}, "commands_clipped": 40}
    told = "\n".join(summary_lines({**SUMMARY, **dropped}))
    assert "(118 missed, 3 dropped: 2 not finite, 1 size, 40 clipped to the effort limits)" in told
    pushes = "\n".join(summary_lines({**SUMMARY, "pushes_dropped_by_kind": {"frame": 2, "unreadable": 1}}))
    assert "pushes                     3 dropped: 2 frame, 1 unreadable" in pushes
    assert missed_share({**SUMMARY, "ticks": 0}) == 0.0
    # A reset sets the time back but not the counters.
    assert missed_share({**SUMMARY, "duration_s": 0.01}) == 118 / 12000


def test_time_without_commands_is_told_and_does_not_count_as_late() -> None:
    silent = {"missed_commands": 7600, "command_silences_s": [[2.0, 7.5], [10.0, None]]}
    told = "\n".join(summary_lines({**SUMMARY, **silent}))
    assert "no commands                from 2 to 7.5 s, from 10 s to the end" in told
    assert missed_share({**SUMMARY, **silent}) == 7600 / 12000
    assert missed_share({**SUMMARY, **silent}, heard=True) == pytest.approx(100 / 4500)
    often = {"command_silences_s": [[k, k + 0.5] for k in range(9)]}
    assert silence_text({**SUMMARY, **often}).endswith("from 4 to 4.5 s and 4 more times")


def test_what_became_of_the_robot_is_told_in_words_and_readouts_have_units() -> None:
    fallen = {
        **SUMMARY,
        "fell_at_s": 2.5,
        "gave_up_at_s": 2.25,
        "readouts": {"zmp_margin": {"min": 0.0, "max": 0.125}},
        "verdict": "fell at 2.5 s: no commands from 1.5 s",
    }
    verdict, seen, *_, readout = summary_lines(fallen)
    assert readout.split() == ["ZMP", "margin", "0", "to", "0.125", "m"]
    assert seen == "controller stopped at t = 2.250 s; from then on the joints were damped"
    assert verdict == "biped14 fell at 2.5 s: no commands from 1.5 s"


@pytest.mark.long
def test_a_controller_that_returns_nan_is_named_whatever_the_robot_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The damped joints support biped14 for a while, but talos falls."""
    run = ["run", "--controller", "user_controllers:NotFinite", "--output", str(tmp_path / "run.npz")]
    assert main([*run, "--duration", "0.3"]) == EXIT_FAILED
    printed = capsys.readouterr().out
    assert "controller stopped at t = 0.000 s; from then on the joints were damped" in printed
    assert "did not fall, but the controller was stopped at t = 0.000 s: its torque of l_hip_yaw is nan" in printed
    assert main(["summary", str(tmp_path / "run.npz"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["gave_up_why"], summary["gave_up_kind"]) == ("its torque of l_hip_yaw is nan", "not_finite")
    assert main([*run, "--duration", "3", "--robot", "talos", "--fail-on-fall", "--json"]) == EXIT_FELL
    fallen = json.loads(capsys.readouterr().out)
    stop, fall = ControllerStop.read(fallen), Fall.read(fallen)
    assert stop == ControllerStop(0.0, "its torque of leg_left_1_joint is nan", StopKind.NOT_FINITE)
    assert fall is not None
    assert fallen["verdict"].startswith(fall.text(stop))


@pytest.mark.parametrize(
    ("summary", "followed"),
    [
        ({}, "; from then on the joints were damped"),
        # The controller raised an error in `bipedsim run`, or in a node whose last commands were still in transit.
        ({"duration_s": 2.25}, "; the run ended there"),
        (
            {"command_silences_s": [[0.5, 1.0], [2.263, None]]},
            "; it sent no more commands, and the joints followed the timeout mode after the command timeout",
        ),
        # The node continued to damp the joints, and was killed or received again later.
        ({"command_silences_s": [[3.0, None]]}, "; from then on the joints were damped"),
        ({"command_silences_s": [[2.25, 2.5]]}, "; from then on the joints were damped"),
        # Part of a run, which may end anywhere.
        ({"duration_s": 1.0, "verdict": None}, ": it is nan"),
    ],
)
def test_what_followed_a_stop_is_told_as_it_was(summary: dict[str, object], followed: str) -> None:
    stopped = {"gave_up_at_s": 2.25, "gave_up_why": "it is nan", "verdict": "stood 12 s, but: it is nan"}
    (said,) = [line for line in summary_lines({**SUMMARY, **stopped, **summary}) if line.startswith("controller")]
    assert said == f"controller stopped at t = 2.250 s{followed}"


def test_a_stop_for_a_fall_is_not_the_reason_of_the_fall() -> None:
    reason = FallReason(FallKind.NO_COMMANDS, "", 1.5)
    fall = Fall(2.5, reason, ("head",))
    fell = {**fall.figures(), "verdict": fall.text(reason)}
    assert Fall.read(json.loads(json.dumps(fell))) == fall
    for stop in (
        None,
        ControllerStop(2.25, "the IMU is tilted by 60 degrees", StopKind.TILTED),
        ControllerStop(2.75, "its torque of knee is nan", StopKind.NOT_FINITE),
        # The wording alone has no effect, as in a recording without the kind.
        ControllerStop(2.25, "its torque of knee is nan"),
    ):
        assert with_stop(fell, stop) == fell
    failed = ControllerStop(2.25, "anything", StopKind.NOT_FINITE)
    assert with_stop(fell, failed, ["imu lost"]) == {**fell, "verdict": f"{fall.text(failed)}, under imu lost"}


@pytest.mark.parametrize("values", [None, "slip", {}, {"kind": "wind", "part": "", "from_s": 1.0}, {"kind": "slip"}])
def test_a_fall_of_another_version_has_no_reason(values: object) -> None:
    fall = Fall.read({"fell_at_s": 2.5, "fall_reason": values})
    assert fall == Fall(2.5, None)


def test_a_joint_that_is_the_reason_of_a_fall_is_named_once() -> None:
    torques = {"torque_limited": {"l_knee": 0.5}, "torque_swings_hz": {}}
    for kind, names in ((FallKind.TORQUE_LIMIT, 1), (FallKind.JOINT_LIMIT, 2)):
        reason = FallReason(kind, "l_knee", 1.0)
        fall = Fall(2.0, reason)
        assert outcome_line(fall.text(reason), fall, torques, ()).count("l_knee") == names


def test_unresolved_steps_are_explained_where_there_are_some() -> None:
    lines = [summary_lines({**SUMMARY, "unresolved_steps": steps})[-1] for steps in (0, 3)]
    assert lines[0].split() == ["unresolved", "steps", "0"]
    assert lines[1].split()[:3] == ["unresolved", "steps", "3"]
    assert "docs/contact_models.md" in lines[1]


def test_json_says_null_where_a_number_is_not_finite() -> None:
    values = {"a": np.inf, "b": [np.nan, 1.5], "c": {"d": -np.inf, "e": "inf", "f": None}, "g": 3}
    said = json.loads(to_json(values), parse_constant=lambda name: pytest.fail(name))
    assert said == {"a": None, "b": [None, 1.5], "c": {"d": None, "e": "inf", "f": None}, "g": 3}


def test_what_the_monitors_found_is_told_in_a_line() -> None:
    sound = {"worst": -0.1, "at_s": 0.5, "allowed": 1e-6, "steps_beyond": 0}
    broken = {**sound, "worst": 2.5, "steps_beyond": 3}
    judged = "momentum, energy, friction, depth, CoP and joint limits within "
    for beyond, unresolved, said in (
        (sound, 0, f"{judged}the limits of the contact model in every step"),
        (sound, 1, f"1 unresolved step violated a rule of the contact model; {judged}its limits"),
        (broken, 0, "beyond the limits of the contact model: work 2.5 J at 0.500 s (limit 1e-06, exceeded in 3 steps)"),
        (broken, 2, "beyond the limits of the contact model: work 2.5 J at 0.500 s (limit 1e-06, exceeded in 3 steps)"),
    ):
        summary = {**SUMMARY, "unresolved_steps": unresolved, "physics": {"gap_m": sound, "work_J": beyond}}
        line = summary_lines(summary)[-1]
        assert line[:26].strip() == "physics"
        assert line[27:] == said


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        *(("foot_drift_m", 7.6e-16, "0 m"), ("penetration_m", 2.31e-6, "0.000002 m"), ("distance_m", -1e-12, "0 m")),
        *(("fz_max_error_N", 3.4e-9, "0 N"), ("fz_N", {"max": 47187.6543}, "max 47187.7 N"), ("steps", 0, "0")),
        *(("base_orientation_error_rad", 2.5e-9, "0 rad"), ("duration_s", 2e6, "2e+06 s")),
        *(("readouts", {"dcm_error": {"min": 1e-18, "max": 0.0033730}}, "0 to 0.003373 m"), ("x", 1e-17, "0")),
    ],
)
def test_figures_are_shown_as_finely_as_they_mean_something(key: str, value: object, shown: str) -> None:
    (line,) = summary_lines({key: value})
    assert line[26:].strip() == shown


def test_a_run_in_which_nothing_stands_still_tells_its_forces(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--scenario", "squat", "--duration", "1.2"]) == 0
    lines = {line[:26].strip(): line[26:].split() for line in capsys.readouterr().out.splitlines()}
    assert lines["standing still"] == ["0", "s"]
    for name in ("vertical force", "vertical force / weight"):
        assert lines[name][:5:2] == ["min", "mean", "max"]
    least, mean, most = map(float, lines["vertical force / weight"][1:6:2])
    assert 0.0 < least < 1.0 < most
    assert mean == pytest.approx(1.0, abs=0.2)
    assert float(lines["vertical force"][3]) == pytest.approx(70.0 * 9.81 * mean, rel=1e-2)


@pytest.mark.parametrize(("peak", "explained"), [(1.9, False), (230.0, True)])
def test_the_peak_force_of_an_impact_is_explained(peak: float, explained: bool) -> None:
    summary = {"fz_N": {"max": 700.0 * peak}, "fz_over_mg": {"max": peak}}
    assert ("impact" in summary_lines(summary)[0]) == explained


@pytest.mark.parametrize(("scenario", "duration", "shown"), [("stand", "1.2", True), ("jump", "2", False)])
def test_the_drift_of_feet_is_shown_where_they_were_to_stay(
    capsys: pytest.CaptureFixture[str], scenario: str, duration: str, shown: bool
) -> None:
    assert main(["run", "--scenario", scenario, "--duration", duration]) == 0
    printed = capsys.readouterr().out
    assert ("foot drift" in printed) == shown
    # Nothing counts commands without ROS.
    assert "commands" not in printed
