"""The figures of a run as readers see them."""

from __future__ import annotations

import pytest

from bipedsim.analysis.summary_text import missed_share, summary_lines, unit_of
from bipedsim.cli.main import main

SUMMARY = {
    "robot": "biped14",
    "duration_s": 12.0,
    "rate_hz": 1000.0,
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
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in summary_lines(SUMMARY)}
    assert lines == {
        "robot": "biped14",
        "duration_s": "12 s",
        "rate_hz": "1000 Hz",
        "real_time_factor": "0.999991",
        "commands": "99.0% in time (118 missed)",
        "overruns": "418 ticks that came late",
        "round_trip_us": "p50 393.2  max 5999.8 us",
        "clock": "real_time",
    }
    assert missed_share(SUMMARY) == 118 / 12000
    refused = "\n".join(summary_lines({**SUMMARY, "commands_dropped": 3}))
    assert "(118 missed, 3 refused)" in refused
    assert missed_share({**SUMMARY, "duration_s": None}) == 0.0


def test_falls_are_told_in_words_and_readouts_have_units() -> None:
    fallen = {**SUMMARY, "fell_at_s": 2.5, "gave_up_at_s": 2.25, "readouts": {"zmp_margin": {"min": 0.0, "max": 0.125}}}
    readout, fell, seen = summary_lines(fallen)[-3:]
    assert readout.split() == ["zmp_margin", "0", "to", "0.125", "m"]
    assert fell == "biped14 fell at t = 2.500 s"
    assert seen.startswith("seen by the controller at t = 2.250 s")


@pytest.mark.parametrize(("scenario", "duration", "shown"), [("stand", "1.2", True), ("jump", "2", False)])
def test_the_drift_of_feet_is_shown_where_they_were_to_stay(
    capsys: pytest.CaptureFixture[str], scenario: str, duration: str, shown: bool
) -> None:
    assert main(["run", "--scenario", scenario, "--duration", duration]) == 0
    printed = capsys.readouterr().out
    assert ("foot_drift_m" in printed) == shown
    # Nothing counts commands without ROS.
    assert "commands" not in printed
