"""A simulator that predicts the measurements of a robot, without noise and without delay of the sensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from bipedsim.contact import CONTACT_MODELS
from bipedsim.errors import UnknownNameError
from bipedsim.model import IDEAL, PRESETS, HardwareParams, NoiseParams, Robot, joint_values, read_hardware
from bipedsim.sim import Simulator
from bipedsim_studies.gap.recorded import CommandSource, RobotRun

STEP = 1e-3
"""Longest physics step [s]."""
_APPLIED = {"clip_effort": False, "no_load_speed": 0.0, "corner_speed": 0.0, "command_delay": 0.0}
"""Parameters of drives whose effect the measured torques contain already."""


@dataclass(frozen=True, eq=False)
class GapModel:
    """Store a model of a robot that predicts measurements.

    Attributes:
        label: Name for the output.
        sim: The simulator, with the offsets of the sensors but without noise.
        late: Rows by which measurements arrive late.
    """

    label: str
    sim: Simulator
    late: int

    @property
    def plant(self) -> Robot:
        """The simulated robot."""
        return self.sim.plant

    def without_offsets(self, run: RobotRun) -> RobotRun:
        """Return the measurements without the offsets that the sensors have in this model."""
        params = self.sim.hardware
        none = (0.0,) * 6
        offsets = [params.foot_wrench_offset.get(sole.name, none) for sole in self.plant.soles]
        return replace(
            run,
            position=run.position - joint_values(self.plant, params.encoder_offset),
            gyro=run.gyro - np.array(params.gyro_offset),
            accelerometer=run.accelerometer - np.array(params.accelerometer_offset),
            wrench=run.wrench - np.array(offsets).reshape(-1, 6),
        )


def make_model(spec: str | Mapping[str, Any], robot: Robot, run: RobotRun, label: str) -> GapModel:
    """Return the model that ``spec`` describes.

    Args:
        spec: Hardware as :func:`bipedsim.model.read_hardware` takes it; or the name of a contact model, with ideal
            hardware.
        robot: The robot.
        run: Measurements that the model is to predict.
        label: Name for the output.

    Raises:
        BipedSimError: There is no such hardware, or one of its values is wrong.
    """
    if isinstance(spec, str) and spec.isidentifier() and spec not in (*PRESETS, *CONTACT_MODELS):
        otherwise = "{preset: NAME, PARAMETER: VALUE}, or the path of a YAML file"
        raise UnknownNameError("model", spec, (*PRESETS, *CONTACT_MODELS), otherwise=otherwise)
    contact = spec if isinstance(spec, str) and spec in CONTACT_MODELS else "one_step"
    params = read_hardware(IDEAL if spec == contact else spec, robot)
    ideal = NoiseParams()
    noiseless = {field.name: getattr(ideal, field.name) for field in fields(NoiseParams)}
    values = {**_as_mapping(params), **noiseless, **(_APPLIED if run.source is CommandSource.EFFORT else {})}
    sim = Simulator(
        robot,
        contact=contact,
        physics_dt=run.dt / max(1, round(run.dt / STEP)),
        control_dt=run.dt,
        hardware=values,
    )
    return GapModel(label, sim, round(params.measurement_delay / run.dt))


def _as_mapping(params: HardwareParams) -> dict[str, Any]:
    """Return ``params`` as :func:`read_hardware` takes them."""
    values = asdict(params)
    values["bodies"] = {
        link: {name: value for name, value in body.items() if value is not None}
        for link, body in values["bodies"].items()
    }
    return {name: value for name, value in values.items() if value is not None}
