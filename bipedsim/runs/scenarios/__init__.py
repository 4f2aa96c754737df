"""What a run is besides robot and contact model, as data: one YAML file per scenario (docs/scenarios.md)."""

from __future__ import annotations

from bipedsim.runs.scenario import Push, Scenario
from bipedsim.runs.scenario_file import SCENARIOS, get_scenario, scenario_names

__all__ = ["SCENARIOS", "Push", "Scenario", "get_scenario", "scenario_names"]
