"""Define the settings of a push map, which are the keys of its settings file."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bipedsim.config import RunConfig, param
from bipedsim_studies.push_map.steps import StepLimits
from bipedsim_studies.push_map.trial import PushKind
from bipedsim_studies.study import time_limit

CONTROLLER = "zmp"
"""Controller of a push map if the settings name none."""


@dataclass(frozen=True)
class PushMapSettings:
    """Settings of a push map."""

    run: RunConfig = param(RunConfig(), "parameters of the runs; scenario and duration have no effect")
    scenarios: tuple[str, ...] = param(
        ("stand", "walk"), "scenarios, by name or path; their pushes have no effect", path=True
    )
    hardware: tuple[str, ...] = param(
        (), "hardware of the runs, instead of run.hardware; if several, the map has their range", path=True
    )
    directions: int = param(4, "number of directions, evenly spaced from the heading to the left", low=1)
    at: float | None = param(
        None,
        "earliest time of the push (default: 2 s after the start, or 3 s after the first velocity command)",
        unit="s",
        low=1e-6,
    )
    phases: int = param(0, "phases of a walking robot's step with a push each; 0: one push in single support", low=0)
    tolerance: float = param(0.02, "relative distance of survived and fatal impulse", low=1e-6, high=0.5)
    push: PushKind = param(PushKind(), "common properties of the pushes")
    steps: StepLimits = param(StepLimits(), "limits of the steps in theory")
    time_limit: float = time_limit("search")

    def runs(self) -> list[RunConfig]:
        """Return the settings of one run per scenario and hardware."""
        run = replace(self.run, controller=self.run.controller or CONTROLLER)
        return [
            replace(run, scenario=scenario, hardware=hardware)
            for scenario in self.scenarios
            for hardware in dict.fromkeys(self.hardware) or (run.hardware,)
        ]
