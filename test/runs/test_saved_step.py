"""A saved physics step is simulated again, with every contact model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.errors import RecordingError
from bipedsim.ground import Ground, HeightField
from bipedsim.model import load_robot, standing_torque
from bipedsim.objects import parse_objects
from bipedsim.recording import checksum
from bipedsim.runs.saved_step import replay_step, save_step
from bipedsim.sim.simulator import Simulator


@pytest.mark.parametrize("hardware", [{}, {"bodies": {"base_link": {"mass": 40.0}}, "armature": {".*_knee": 0.2}}])
def test_a_step_under_a_push_is_taken_again_under_that_push(tmp_path: Path, hardware: dict[str, Any]) -> None:
    """The feet carry it with the robot, to the bit under the model of the run."""
    sim = Simulator(load_robot("biped14"), hardware=hardware)
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


BALL = (
    '{"name": "ball", "shape": "ball", "mass": 0.4, "radius": 0.1, "position": [0.4, 0.1, 0.3], '
    '"velocity": [-3.5, 0.0, 0.0], "restitution": 0.7}'
)


def _hit(path: Path, model: str) -> Simulator:
    """Keep the step in which a ball, pushed on, hits the shin of a robot that stands; return what has taken it."""
    sim = Simulator(load_robot("biped14"), contact=model, objects=parse_objects([BALL]))
    sim.push(np.array([-20.0, 0.0, 4.0, 0.0, 0.0, 0.0]), "ball")
    torque = standing_torque(sim.robot)
    monitors = sim.watch(lambda name, said, begun: save_step(path, sim, begun))
    while not sim.body_impulse.any():
        # Every step violates these limits, so each step is saved.
        monitors.restart(sim.v)
        monitors._monitored.limit[:] = -1e9
        sim.advance(torque)
        assert sim.t < 0.2
    return sim


@pytest.mark.long
@pytest.mark.parametrize("model", ["one_step", "ncp"])
def test_a_step_in_which_an_object_hits_the_robot_is_taken_again_with_it(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its place, its velocity or its push it would leave otherwise, and the robot, too."""
    path = tmp_path / "step.npz"
    sim = _hit(path, model)
    done = {one.model: one for one in replay_step(path)}
    assert sim.objects is not None
    twist = sim.objects.twists()[0]
    assert twist[0] > 1.0, "it was hit"
    np.testing.assert_allclose(done[model].objects["ball"], twist, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(done[model].bodies, sim.body_impulse.sum(axis=0) / sim.physics_dt, rtol=1e-5, atol=1e-4)
    assert {one.without for one in done.values()} == {()}
    assert main(["replay", str(path)]) == 0
    assert f", ball {np.linalg.norm(twist[:3]):.4g} m/s" in capsys.readouterr().out


def test_a_step_whose_objects_are_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "step.npz"
    _hit(path, "one_step")
    with np.load(path) as file:
        kept = dict(file)
    kept["objects_v"] = np.nan * kept["objects_v"]
    del kept["objects_w"]
    np.savez(path, **kept)
    with refusal(place=f"{path}: v, w"):
        replay_step(path)


def test_free_objects_that_an_older_file_leaves_out_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sim = Simulator(load_robot("biped14"))
    begun = {"q": sim.q, "v": sim.v, "torque": standing_torque(sim.robot), "push": 0.0 * sim.v}
    path = tmp_path / "step.npz"
    save_step(path, sim, {**begun, "damping": sim.plant.joint_damping})
    with np.load(path) as file:
        kept = dict(file)
    about = json.dumps({**json.loads(str(kept["about"])), "without": ["ball"]})
    np.savez(path, **{**kept, "about": np.array(about), "about_crc": checksum(about)})
    assert {one.without for one in replay_step(path)} == {("ball",)}
    assert main(["replay", str(path)]) == 0
    assert "(ball)" in capsys.readouterr().out


def test_a_step_in_which_a_sole_meets_a_riser_is_taken_again_without_bodies(tmp_path: Path) -> None:
    """Soles are in contact with risers also with ``body_contact: false``."""
    robot = load_robot("biped14")
    toe = max(point[0] for sole in robot.soles for point in sole.vertices_joint)
    heights = np.zeros((120, 60))
    heights[61 + int(toe / 0.02) :] = 0.1
    ground = Ground(field=HeightField(heights, 0.02))
    sim = Simulator(robot, ground, hardware={"body_contact": False})
    q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
    q[2] += 0.03
    v[0] = 1.0
    sim.reset(q, v)
    torque = np.zeros(robot.nu)
    while not sim.body_impulse.any():
        begun = {"q": sim.q.copy(), "v": sim.v.copy(), "torque": torque, "push": np.zeros_like(sim.v)}
        sim.advance(torque)
        assert sim.t < 0.2
    save_step(tmp_path / "step.npz", sim, {**begun, "damping": sim.plant.joint_damping})
    done = {one.model: one for one in replay_step(tmp_path / "step.npz")}
    np.testing.assert_allclose(done["one_step"].bodies, sim.body_impulse.sum(axis=0) / sim.physics_dt, rtol=1e-6)
    assert done["one_step"].bodies[0] < -1.0


@pytest.mark.parametrize("name", ["q", "v", "torque", "push", "damping"])
@pytest.mark.parametrize("damage", [lambda array: array[:-1], lambda array: np.nan * array], ids=["shorter", "nan"])
def test_a_step_that_does_not_fit_its_robot_is_refused_by_name(
    tmp_path: Path, name: str, damage: Callable[[np.ndarray], np.ndarray]
) -> None:
    sim = Simulator(load_robot("compass"))
    nothing = np.zeros(sim.robot.nu)
    begun = {"q": sim.q, "v": sim.v, "torque": nothing, "push": 0.0 * sim.v, "damping": sim.plant.joint_damping}
    save_step(tmp_path / "step.npz", sim, {**begun, name: damage(np.array(begun[name]))})
    with refusal(place=f"{tmp_path / 'step.npz'}: {name}"):
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
    with refusal(RecordingError, place=tmp_path / "step.npz"):
        replay_step(tmp_path / "step.npz")


@pytest.mark.parametrize("model", ["one_step", "ncp"])
def test_a_step_of_a_robot_that_lies_with_joints_at_their_stops_is_taken_again(tmp_path: Path, model: str) -> None:
    """Bodies and stops carry it as they did in the run; without them it would fall on."""
    robot = load_robot("biped14")
    sim = Simulator(robot, contact=model)
    kept: dict[str, np.ndarray] = {}
    monitors = sim.watch(lambda name, said, begun: kept.update(begun))
    v = np.zeros(robot.model.nv)
    v[0], v[4] = 0.4, 0.3
    sim.reset(sim.q, v)
    while not (sim.body_impulse.any() and sim.stop_impulse.any()) or sim.t < 1.5:
        sim.advance(np.zeros(robot.nu))
    # Every step violates these limits.
    monitors._monitored.limit[:] = -1e9
    sim.advance(np.zeros(robot.nu))
    assert np.count_nonzero(kept["held"]) >= 1
    save_step(tmp_path / "step.npz", sim, kept)
    again = next(one for one in replay_step(tmp_path / "step.npz") if one.model == model)
    assert again.fastest == pytest.approx(np.abs(sim.v).max(), rel=1e-5, abs=1e-9)
    assert again.figures["joint_limit_rad"]["worst"] < 1e-6
    np.testing.assert_allclose(again.bodies, sim.body_impulse.sum(axis=0) / sim.physics_dt, rtol=1e-5, atol=1e-6)
