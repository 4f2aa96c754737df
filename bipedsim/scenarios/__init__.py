"""What a run is besides robot and contact model, as data: one YAML file per scenario (docs/scenarios.md)."""

from __future__ import annotations

from bipedsim.scenarios.reader import SCENARIOS, get_scenario, scenario_names
from bipedsim.scenarios.scenario import Push, Scenario

__all__ = ["SCENARIOS", "Push", "Scenario", "get_scenario", "scenario_names"]
