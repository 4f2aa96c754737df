"""Declare the parameters of a run for the command line, launch arguments and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bipedsim.config.fields import param
from bipedsim.errors import ConfigError


@dataclass(frozen=True)
class RunConfig:
    """Parameters of a run. The scenario defines fields that are None."""

    robot: str = param("biped14", "path of a robot.yaml (docs/robots.md)", names="bipedsim.model:ROBOTS", path=True)
    controller: str | None = param(None, "package.module:Class of your own", names="bipedsim.control:CONTROLLERS")
    scenario: str = param(
        "stand", "path of a scenario YAML (docs/scenarios.md)", names="bipedsim.runs:SCENARIO_FILES", path=True
    )
    posture: str = param(
        "",
        "start pose: a posture of robot.yaml, or path of a YAML file of joints and angles; empty is standing",
        path=True,
    )
    duration: float | None = param(None, "simulated time", unit="s", low=0.0, high=1e9)
    contact_model: str = param(
        "one_step", "model of the contact between feet and ground", choices="bipedsim.contact:CONTACT_MODELS"
    )
    ground: str | Mapping[str, Any] | None = param(
        None,
        "'{flat: {friction_static: 0.2}}' or path of a YAML file (docs/ground.md)",
        names="bipedsim.ground:GROUNDS",
        path=True,
    )
    rate: float = param(1000.0, "control rate", unit="Hz", low=1.0, high=20000.0)
    physics_dt: float | None = param(
        None, "physics step; 1/rate must be a whole multiple of it", unit="s", low=1e-6, high=0.1
    )
    hardware: str | Mapping[str, Any] | None = param(
        None,
        "'{preset: NAME, PARAMETER: VALUE}' or path of a YAML file (docs/hardware.md)",
        names="bipedsim.model:PRESETS",
        path=True,
    )
    faults: str = param(
        "", "injected faults: '{part: imu, does: lost, at: 2}', a list of these, or a YAML file (docs/faults.md)"
    )
    gantry: str | Mapping[str, Any] | None = param(
        None,
        "hang the robot from a gantry at the start: 'hang' (lower it yourself), or '{lower_at: 3, release_at: 6}' "
        "(docs/scenarios.md)",
    )
    seed: int = param(0, "seed of sensor noise and faults; each reset draws new values", low=0)
    controller_params: Mapping[str, Any] = param({}, "parameters of the controller that differ from its defaults")
    contact_params: Mapping[str, Any] = param({}, "parameters of the contact model that differ from its defaults")

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the fields."""
        if self.duration == 0.0:
            yield ConfigError("s must be above 0", "duration", 0.0)
