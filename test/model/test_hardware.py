"""Hardware as a user names it, and as the simulator has it: presets, perturbed plants, repeats to the bit."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from paths import ROOT, STANDING
from refusals import refusal

from bipedsim.cli.options import add_run_options, run_config
from bipedsim.control.controllers import make_controller
from bipedsim.errors import UnknownNameError
from bipedsim.model import PRESETS, ROBOTS, HardwareParams, Robot, load_robot, read_hardware
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.sim.io import Observation
from bipedsim.sim.simulator import Simulator

MEASURED = [name for name in Observation.__slots__ if name != "t"]


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("biped14")


def history(sim: Simulator, ticks: int) -> bytes:
    """Return the bits of states and observations under a squat that starts at the simulator's state."""
    controller = make_controller("posture", sim.robot, {"mode": "squat", "ramp": 0.1}, sim.control_dt)
    observation = sim.step(np.zeros(sim.robot.nu))
    controller.reset(observation)
    out = []
    for _ in range(ticks):
        observation = sim.step(controller.update(observation).tau_joint)
        out += [sim.q.tobytes(), sim.v.tobytes()] + [getattr(observation, name).tobytes() for name in MEASURED]
    return b"".join(out)


def test_ideal_hardware_is_none_at_all(biped: Robot) -> None:
    """Without imperfections, command and torque, and sensors and observation, are equal; the robot is the plant."""
    plain = Simulator(biped)
    assert plain.hardware == HardwareParams()
    assert plain.plant is biped
    assert plain.sensors._noise is None
    assert plain.drives.torque is plain.drives.effort is plain.drives.command
    # Parts that are there, but change nothing, change no bit of the motion either.
    neutral = Simulator(biped, hardware={"clip_effort": True, "yaw_bias": 1e-3})
    tau = np.linspace(-20.0, 20.0, biped.nu)
    for _ in range(100):
        expected, observation = plain.step(tau), neutral.step(tau)
        assert neutral.q.tobytes() == plain.q.tobytes()
        assert neutral.v.tobytes() == plain.v.tobytes()
        for name in MEASURED:
            if name != "imu_orientation":
                assert (getattr(observation, name) == getattr(expected, name)).all(), name
    for seed in (1, 2):
        assert history(Simulator(biped, seed=seed), 20) == history(Simulator(biped), 20)


def test_a_snapshot_repeats_real_hardware_to_the_bit(biped: Robot) -> None:
    """Commands and measurements on their way, springs of friction, biases, and the noise to come."""
    hardware = {"preset": "realistic", "command_delay": 3e-3, "measurement_delay": 2e-3, "mass_scale": 1.05}
    sim = Simulator(biped, hardware=hardware, seed=3)
    history(sim, 30)
    snapshot = sim.snapshot()
    first, after_reset = history(sim, 50), [sim.reset().foot_wrench.copy() for _ in range(2)]
    restored = sim.restore(snapshot).copy()
    for name in MEASURED:
        assert (getattr(restored, name) == getattr(sim.restore(snapshot), name)).all()
    assert history(sim, 50) == first
    for wrench in after_reset:
        np.testing.assert_array_equal(sim.reset().foot_wrench, wrench)
    assert not (after_reset[0] == after_reset[1]).all()


def test_seed_and_number_of_resets_decide_the_draw(biped: Robot) -> None:
    def draw(seed: int, resets: int) -> bytes:
        sim = Simulator(biped, hardware="realistic", seed=seed)
        for _ in range(resets):
            sim.reset()
        return history(sim, 5)

    assert draw(1, 1) == draw(1, 1)
    assert len({draw(1, 0), draw(1, 1), draw(2, 0)}) == 3
    sim = Simulator(biped, hardware="realistic", seed=7)
    sim.reset(seed=1)
    assert history(sim, 5) == draw(1, 0)


def test_the_command_line_runs_what_a_simulator_does_after_its_first_reset(biped: Robot) -> None:
    parser = argparse.ArgumentParser()
    add_run_options(parser)

    def recorded(*options: str) -> Recording:
        return run(run_config(parser.parse_args(["--duration", "0.02", *options])))[0]

    hardware = "{preset: realistic, velocity_noise: 0.5}"
    recording = recorded("--hardware", hardware, "--seed", "5")
    sim = Simulator(biped, hardware=hardware, seed=5)
    controller = make_controller("posture", biped, {}, sim.control_dt)
    observation = sim.reset()
    controller.reset(observation)
    for row in recording.joint_velocity:
        observation = sim.step(
            np.clip(controller.update(observation).tau_joint, -biped.effort_limit, biped.effort_limit)
        )
        np.testing.assert_array_equal(row, observation.joint_velocity)
    assert (recorded("--hardware", hardware, "--seed", "6").joint_velocity != recording.joint_velocity).all()
    assert (recorded("--seed", "5").joint_velocity == recorded().joint_velocity).all()


@pytest.mark.parametrize("name", STANDING)
def test_every_robot_stands_and_squats_with_realistic_hardware(name: str) -> None:
    robot = load_robot(name)
    params = read_hardware("realistic", robot)
    assert params.coulomb_friction, "robot.yaml: hardware.realistic.coulomb_friction"
    sim = Simulator(robot, hardware="realistic", seed=1)
    controller = make_controller("posture", robot, {"mode": "squat", "ramp": 0.3}, sim.control_dt)
    observation = sim.reset()
    controller.reset(observation)
    impulse = 0.0
    for _ in range(600):
        tau = np.clip(controller.update(observation).tau_joint, -robot.effort_limit, robot.effort_limit)
        observation = sim.step(tau)
        impulse += sim.contact.impulse[:, 2].sum()
    upright = pin.Quaternion(sim.q[3:7]).matrix()[2, 2]
    assert upright > 0.999
    data = robot.model.createData()
    pin.centerOfMass(robot.model, data, sim.q, sim.v)
    assert impulse == pytest.approx(robot.weight * sim.t + robot.mass * data.vcom[0][2], rel=1e-4)
    assert sim.contact.unresolved <= 0.01 * 600


@pytest.mark.parametrize("name", sorted(ROBOTS))
def test_mass_and_com_of_every_robot_can_be_changed(name: str) -> None:
    """M scales with the masses, except for the rotors; the total CoM moves by the shift along the axes of the trunk."""
    robot = load_robot(name)
    scaled, shift = robot.with_mass_scale(0.9), np.array([0.02, -0.01, 0.005])
    assert scaled.mass == pytest.approx(0.9 * robot.mass, rel=1e-12)
    mass = [np.triu(pin.crba(r.model, r.model.createData(), robot.q_nominal)) for r in (robot, scaled)]
    rotors = np.diag(robot.model.armature)
    np.testing.assert_allclose(mass[1] - rotors, 0.9 * (mass[0] - rotors), atol=1e-12 * mass[0].max())
    trunk = next(i for i in range(1, robot.model.njoints) if robot.model.inertias[i].mass > 0.0)
    data = robot.model.createData()
    before = pin.centerOfMass(robot.model, data, robot.q_nominal).copy()
    axes = data.oMi[trunk].rotation.copy()
    after = pin.centerOfMass(robot.with_com_shift(shift).model, data, robot.q_nominal)
    np.testing.assert_allclose(after - before, axes @ shift, atol=1e-12)


@pytest.mark.parametrize("name", ["biped14", "g1"])
def test_the_plant_may_differ_from_the_robot_that_controllers_know(name: str) -> None:
    robot = load_robot(name)
    sim = Simulator(robot, hardware={"mass_scale": 1.1, "com_shift": [0.02, -0.01, 0.005]})
    assert sim.robot is robot
    assert sim.plant.mass == pytest.approx(1.1 * robot.mass, rel=1e-12)
    controller = make_controller("posture", robot, {}, sim.control_dt)
    observation = sim.reset()
    controller.reset(observation)
    impulse = 0.0
    for _ in range(1000):
        observation = sim.step(controller.update(observation).tau_joint)
        impulse += sim.contact.impulse[:, 2].sum()
    assert impulse == pytest.approx(1.1 * robot.weight * sim.t, rel=5e-3)


def test_a_robot_yaml_adds_to_a_preset_and_the_caller_to_both(biped: Robot) -> None:
    realistic = read_hardware("realistic", biped)
    assert realistic.coulomb_friction == biped.hardware["realistic"]["coulomb_friction"]
    assert realistic.gyro_noise == PRESETS["realistic"]["gyro_noise"]
    text = "{preset: realistic, gyro_noise: 0.5, coulomb_friction: {.*: 1.0, ._knee: 2.0}}"
    changed = read_hardware(text, biped)
    assert (changed.gyro_noise, changed.velocity_noise) == (0.5, realistic.velocity_noise)
    assert changed == read_hardware(
        {"preset": "realistic", "gyro_noise": 0.5, "coulomb_friction": {".*": 1.0, "._knee": 2.0}}, biped
    )
    assert read_hardware({}, biped) == read_hardware("ideal", biped) == HardwareParams()


def test_the_table_of_parameters_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")
    ]
    shown = {row[0]: row[1:4] for row in rows}
    fields = {f.name: f for f in dataclasses.fields(HardwareParams)}
    assert list(shown) == list(fields)
    for name, (ideal, realistic, unit) in shown.items():
        default = fields[name].default
        assert unit == fields[name].metadata["unit"], name
        for cell, value in ((ideal, default), (realistic, PRESETS["realistic"].get(name, default))):
            values = [yaml.safe_load(word) for word in cell.split()]
            assert [float(x) for x in values] == [float(x) for x in np.atleast_1d(value)], name


def test_a_file_describes_hardware(biped: Robot, tmp_path: Path) -> None:
    path = tmp_path / "worn.yaml"
    path.write_text("preset: realistic\ncom_shift: [0.0, 0.02, 0]\n")
    assert read_hardware(str(path), biped).com_shift == (0.0, 0.02, 0.0)


@pytest.mark.parametrize(
    ("spec", "kind", "name", "choice"),
    [
        ("perfect", "hardware", "perfect", "realistic"),
        ({"preset": "perfect"}, "preset", "perfect", "realistic"),
        ({"gyro": 1.0}, "parameter", "gyro", "gyro_noise"),
        ({"coulomb_friction": {"elbow": 1.0}}, "joint", "elbow", "l_knee"),
    ],
)
def test_unknown_names_are_told_with_the_choices(biped: Robot, spec: Any, kind: str, name: str, choice: str) -> None:
    with refusal(UnknownNameError, kind=kind, name=name) as caught:
        read_hardware(spec, biped)
    assert choice in caught.value.choices


@pytest.mark.parametrize(
    ("spec", "place", "value"),
    [
        ("{gyro: ", "hardware", "{gyro:"),
        ({"gyro_noise": -1.0}, "hardware: gyro_noise", -1.0),
        ({"viscous_friction": {"l_knee": -1.0}}, "hardware: viscous_friction.l_knee", -1.0),
        ({"com_shift": [1.0, 2.0]}, "hardware: com_shift", [1.0, 2.0]),
        ({"com_shift": [0.0, 0.0, "x"]}, "hardware: com_shift[2]", "x"),
        ({"corner_speed": 1.0, "no_load_speed": 0.5}, "hardware: no_load_speed", 0.5),
    ],
)
def test_what_is_wrong_is_named(biped: Robot, spec: Any, place: str, value: Any) -> None:
    with refusal(place=place, value=value):
        read_hardware(spec, biped)
