"""Identify a robot that MuJoCo simulates: other contact, other friction, and parameters that differ from its files."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sensor_recording_support import record_sensors

from bipedsim.control import make_controller
from bipedsim.model import Robot, load_robot
from bipedsim.recording.recording import Recording
from bipedsim.sim import Observation
from bipedsim_studies.identify.estimation import estimate
from bipedsim_studies.identify.signals import signals_of

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "other_robot"
DT = 1e-3
MOTIONS = ("squat", "sway", "walk")


@pytest.fixture
def plant_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("mujoco", reason="the extra examples is not installed")
    if not EXAMPLE.is_dir():
        pytest.skip("the examples are not here")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module("mujoco_plant")


def record(robot: Robot, plant: Any, motion: str, seconds: float) -> Recording:
    """Return what the plant measured under a controller."""
    walks = motion == "walk"
    params = {} if walks else {"mode": motion}
    controller: Any = make_controller("zmp" if walks else "posture", robot, params, DT)
    controller.reset(plant.observation)

    def act(observation: Observation) -> Observation:
        if walks and observation.t >= 2.0:
            controller.set_velocity(0.3, 0.0, 0.0)
        plant.step(controller.update(observation).tau_joint.copy())
        result: Observation = plant.observation
        return result

    return record_sensors(robot, round(seconds / DT), plant.observation, act)


@pytest.mark.slow
def test_friction_and_rotors_of_another_engine_are_found(plant_module: ModuleType) -> None:
    robot = load_robot("biped14")
    plants = [plant_module.Plant(robot, DT, plant_module.PlantParams(hidden=3)) for _ in MOTIONS]
    recordings = [record(robot, plant, motion, 10.0) for plant, motion in zip(plants, MOTIONS, strict=True)]
    result = estimate(robot, [signals_of(each, robot) for each in recordings])
    model, p = plants[0].model, result.parameters
    dofs = {name: model.joint(name).dofadr[0] for name in robot.joint_names}
    told = 0
    for kind, true in (("coulomb_friction", model.dof_frictionloss), ("armature", model.dof_armature)):
        for i in p.at[kind][:, 0]:
            if result.identified[i]:
                expected = true[dofs[p.owners[i]]]
                assert abs(result.values[i] - expected) < 0.1 * expected, p.label(i)
                told += 1
    assert told >= 12
