"""The settings of runs: each parameter is one, and those that differ are listed."""

from __future__ import annotations

from bipedsim.config import RunConfig
from bipedsim.runs import run
from bipedsim.view.settings import ABSENT, differing_settings, settings_of


def test_parameters_that_differ_are_listed_one_by_one() -> None:
    common = {"scenario": "stand", "duration": 0.05}
    first, _ = run(RunConfig(**common, contact_params={"gamma": 0.2}))
    other, _ = run(RunConfig(**common, hardware="realistic", seed=3))
    assert differing_settings({"first": first, "other": other}) == {
        "hardware": ("ideal", "realistic"),
        "seed": ("0", "3"),
        "contact params: gamma": ("0.2", ABSENT),
    }
    assert settings_of(first)["duration"] == "0.05 s"
    assert differing_settings({"first": first, "again": first}) == {}
