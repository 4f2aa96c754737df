"""A step that was kept, taken again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bipedsim.errors import ConfigError, RecordingError
from bipedsim.model import load_robot, standing_torque
from bipedsim.runs.replay import replay_step, save_step
from bipedsim.sim.simulator import Simulator


def test_a_step_under_a_push_is_taken_again_under_that_push(tmp_path: Path) -> None:
    """The feet carry it with the robot, to the bit under the model of the run."""
    sim = Simulator(load_robot("biped14"))
    begun = {"q": sim.q.copy(), "v": sim.v.copy(), "torque": standing_torque(sim.robot)}

    def keep(_contact: object, push: np.ndarray) -> None:
        begun["push"] = push.copy()

    sim.on_physics_step = keep
    sim.push(np.array([0.0, 0.0, -300.0, 0.0, 0.0, 0.0]))
    sim.step(begun["torque"])
    save_step(tmp_path / "step.npz", sim, {**begun, "damping": sim.plant.joint_damping})
    done = {one.model: one for one in replay_step(tmp_path / "step.npz")}
    np.testing.assert_array_equal(done["one_step"].force, sim.contact.impulse[:, 2] / sim.physics_dt)
    assert done["one_step"].fastest == np.abs(sim.v).max()


@pytest.mark.parametrize("name", ["q", "v", "torque", "push", "damping"])
@pytest.mark.parametrize("damage", [lambda array: array[:-1], lambda array: np.nan * array], ids=["shorter", "nan"])
def test_a_step_that_does_not_fit_its_robot_is_refused_by_name(
    tmp_path: Path, name: str, damage: Callable[[np.ndarray], np.ndarray]
) -> None:
    sim = Simulator(load_robot("compass"))
    nothing = np.zeros(sim.robot.nu)
    begun = {"q": sim.q, "v": sim.v, "torque": nothing, "push": 0.0 * sim.v, "damping": sim.plant.joint_damping}
    save_step(tmp_path / "step.npz", sim, {**begun, name: damage(np.array(begun[name]))})
    with pytest.raises(ConfigError, match=f"{name} do not fit compass: "):
        replay_step(tmp_path / "step.npz")


def test_a_step_of_which_somebody_has_changed_the_settings_is_refused(tmp_path: Path) -> None:
    sim = Simulator(load_robot("compass"))
    nothing = np.zeros(sim.robot.nu)
    begun = {"q": sim.q, "v": sim.v, "torque": nothing, "push": 0.0 * sim.v, "damping": sim.plant.joint_damping}
    save_step(tmp_path / "step.npz", sim, begun)
    with np.load(tmp_path / "step.npz") as file:
        kept = dict(file)
    kept["about"] = np.array(str(kept["about"]).replace("0.001", "0.002"))
    np.savez(tmp_path / "step.npz", **kept)
    with pytest.raises(RecordingError, match="what it says of the run was changed"):
        replay_step(tmp_path / "step.npz")
