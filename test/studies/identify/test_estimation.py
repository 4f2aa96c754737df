"""Estimates of hidden parameters from recordings with realistic noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import EXIT_USAGE
from bipedsim.model import Robot, body_links, load_robot, read_hardware
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim_studies.identify.delay import command_delay
from bipedsim_studies.identify.estimation import estimate
from bipedsim_studies.identify.signals import signals_of


def hidden(robot: Robot, seed: int) -> dict[str, Any]:
    """Draw the parameters of one robot."""
    rng = np.random.default_rng(seed)
    joints = robot.joint_names
    bodies = {}
    for joint, link in body_links(robot.model).items():
        described = robot.model.inertias[joint]
        if joint and described.mass > 0.01 * robot.mass:
            com = described.lever + 0.02 * rng.uniform(-1.0, 1.0, 3)
            bodies[link] = {"mass": described.mass * rng.uniform(0.9, 1.1), "com": com.tolist()}

    def per_joint(low: float, high: float) -> dict[str, float]:
        return {joint: float(rng.uniform(low, high)) for joint in joints}

    return {
        "preset": "realistic",
        "bodies": bodies,
        "armature": per_joint(0.07, 0.13),
        "coulomb_friction": per_joint(0.5, 1.5),
        "viscous_friction": per_joint(0.0, 1.0),
        "torque_gain": per_joint(0.98, 1.02),
        "torque_offset": per_joint(-0.5, 0.5),
        "encoder_offset": per_joint(-0.003, 0.003),
        "command_delay": float(rng.integers(1, 5)) * 1e-3,
    }


def recordings(hardware: dict[str, Any], seconds: float, scenarios: tuple[str, ...]) -> list[Recording]:
    controllers = {"walk": "zmp"}
    return [
        run(RunConfig(scenario=name, controller=controllers.get(name, "posture"), hardware=hardware, duration=seconds))[
            0
        ]
        for name in scenarios
    ]


def truth(robot: Robot, hardware: dict[str, Any], kind: str, owner: str, component: str) -> float | None:
    """Return the true number, in the terms of the estimate."""
    if kind in hardware:
        return float(hardware[kind][owner])
    joint = next((joint for joint, link in body_links(robot.model).items() if link == owner), 0)
    described = robot.model.inertias[joint]
    body = hardware["bodies"].get(owner, {"mass": described.mass, "com": described.lever})
    if kind == "mass":
        return float(np.log(body["mass"] / described.mass))
    if kind == "com":
        axis = "xyz".index(component)
        return float(body["com"][axis] - described.lever[axis])
    return 0.0 if kind.endswith("_delay") else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_intervals_contain_what_was_hidden(seed: int) -> None:
    robot = load_robot("biped14")
    hardware = hidden(robot, seed)
    runs = recordings(hardware, 10.0, ("squat", "sway", "walk"))
    result = estimate(robot, [signals_of(each, robot) for each in runs])
    assert result.converged
    p = result.parameters
    true = [truth(robot, hardware, *key) for key in zip(p.kinds, p.owners, p.components, strict=True)]
    known = np.array([x is not None for x in true])
    error = np.abs(result.values - np.array([np.nan if x is None else x for x in true]))
    inside = error <= result.half_width
    told = result.identified & known
    assert told.sum() >= 25
    assert np.mean(inside[told]) >= 0.85
    learnt = known & (result.deviation < 0.5 * p.spread)
    assert np.mean(inside[learnt]) >= 0.9
    dry = p.at["coulomb_friction"].ravel()
    assert result.identified[dry].sum() >= 6
    assert np.all(error[dry][result.identified[dry]] < 0.15)


@pytest.mark.slow
def test_dry_friction_of_the_knees_is_found_in_a_squat() -> None:
    robot = load_robot("biped14")
    hardware = hidden(robot, 7)
    (squat,) = recordings(hardware, 8.0, ("squat",))
    result = estimate(robot, [signals_of(squat, robot)])
    p = result.parameters
    for name in ("l_knee", "r_knee"):
        i = next(i for i in p.at["coulomb_friction"].ravel() if p.owners[i] == name)
        assert abs(result.values[i] - hardware["coulomb_friction"][name]) < 3.0 * result.deviation[i]
        assert result.deviation[i] < 0.2 * p.spread[i]
    yaw = next(i for i in p.at["armature"].ravel() if p.owners[i] == "l_hip_yaw")
    assert not result.identified[yaw], "a joint that does not move tells nothing of its rotor"
    again = estimate(robot, [signals_of(squat, robot)])
    assert np.array_equal(again.values, result.values)
    assert np.array_equal(again.covariance, result.covariance)


@pytest.mark.long
def test_a_recording_without_noise_has_finite_results() -> None:
    """Joints at rest then have no signal at all, and their instruments depend on each other."""
    robot = load_robot("biped14")
    (squat,) = recordings({}, 4.0, ("squat",))
    result = estimate(robot, [signals_of(squat, robot)])
    assert np.isfinite(result.values).all()
    assert np.isfinite(result.deviation).all()
    assert (result.deviation > 0.0).all()
    assert set(result.unexplained) < set(robot.joint_names)


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.004])
def test_the_delay_of_commands_is_found(delay: float) -> None:
    hardware = {"preset": "realistic", "command_delay": delay}
    (walk,) = recordings(hardware, 3.0, ("walk",))
    found = command_delay(walk)
    assert found is not None
    # The measurements are 1 ms old.
    assert abs(found[0] - (delay + 0.001)) < 3e-4
    assert found[1] > 0.9


@pytest.mark.long
def test_the_command_writes_hardware_that_other_commands_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (squat,) = recordings(hidden(load_robot("biped14"), 5), 6.0, ("squat",))
    squat.save(tmp_path / "squat.npz")
    output, figure = tmp_path / "identified.yaml", tmp_path / "identified.png"
    code = main(["identify", str(tmp_path / "squat.npz"), "-o", str(output), "--plot", str(figure), "--json"])
    assert code in (0, 3)
    rows = json.loads(capsys.readouterr().out)["parameters"]
    params = read_hardware(str(output), load_robot("biped14"))
    knee = next(row for row in rows if (row["kind"], row["of"]) == ("coulomb_friction", "l_knee"))
    assert isinstance(params.coulomb_friction, dict)
    assert abs(params.coulomb_friction["l_knee"] - knee["value"]) < 1e-5
    assert figure.stat().st_size > 10_000
    assert main(["replay", str(tmp_path / "squat.npz"), "--hardware", str(output), "--json"]) == 0


def test_a_recording_that_cannot_be_used_is_wrong_input(tmp_path: Path) -> None:
    (short,) = recordings({}, 0.5, ("squat",))
    short.save(tmp_path / "short.npz")
    assert main(["identify", str(tmp_path / "short.npz")]) == EXIT_USAGE
