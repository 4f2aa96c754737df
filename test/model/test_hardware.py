"""Hardware as a user names it, and as the simulator has it: presets, perturbed plants, repeats to the bit."""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from paths import ROOT, STANDING
from physics_support import G, box_robot, wheel_robot
from refusals import refusal

from bipedsim.cli.options import add_run_options, run_config
from bipedsim.config import RunConfig
from bipedsim.control.controllers import make_controller
from bipedsim.errors import UnknownNameError
from bipedsim.model import PRESETS, ROBOTS, HardwareParams, Robot, load_robot, read_hardware
from bipedsim.recording.recording import Recording, load_npz
from bipedsim.runs.replay import rerun
from bipedsim.runs.runner import run
from bipedsim.sim.io import Observation
from bipedsim.sim.simulator import Simulator

UNSET: tuple[Any, ...] = (None, {})
"""Defaults of parameters that change nothing unless they are given."""
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
        default = getattr(HardwareParams(), name)
        assert unit == fields[name].metadata["unit"], name
        for cell, value in ((ideal, default), (realistic, PRESETS["realistic"].get(name, default))):
            values = [yaml.safe_load(word) for word in cell.split()]
            expected = [] if value in UNSET else np.atleast_1d(value)
            assert [float(x) for x in values] == [float(x) for x in expected], name


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
        ({"torque_gain": {"elbow": 1.0}}, "joint", "elbow", "l_knee"),
        ({"torque_offset": {"elbow": 1.0}}, "joint", "elbow", "l_knee"),
        ({"encoder_offset": {"elbow": 1.0}}, "joint", "elbow", "l_knee"),
        ({"armature": {"elbow": 1.0}}, "joint", "elbow", "l_knee"),
        ({"foot_wrench_offset": {"middle": [0.0] * 6}}, "foot", "middle", "left"),
        ({"bodies": {"trunk": {"mass": 1.0}}}, "link", "trunk", "base_link"),
        ({"bodies": {"l_thigh": {"weight": 1.0}}}, "parameter", "weight", "mass"),
        (
            {"bodies": {"l_thigh": {"inertia": {"ixx": 1.0, "iyy": 1.0, "izz": 1.0, "xx": 1.0}}}},
            *("parameter", "xx", "ixx"),
        ),
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
        ({"torque_gain": {"l_knee": -1.0}}, "hardware: torque_gain.l_knee", -1.0),
        ({"armature": -0.1}, "hardware: armature", -0.1),
        ({"encoder_offset": {".*": 5.0}}, "hardware: encoder_offset..*", 5.0),
        ({"foot_wrench_offset": {"left": [1.0, 2.0]}}, "hardware: foot_wrench_offset.left", [1.0, 2.0]),
        ({"bodies": {"l_sole": {"mass": 1.0}}}, "hardware: bodies", "l_sole"),
        ({"bodies": {"l_thigh": {"mass": 0.0}}}, "hardware: bodies.l_thigh.mass", 0.0),
        ({"bodies": {"l_thigh": {"com": [0.0, 1.0]}}}, "hardware: bodies.l_thigh.com", [0.0, 1.0]),
        (
            {"bodies": {"l_thigh": {"inertia": {"ixx": 1.0, "iyy": 2.0, "izz": 4.0}}}},
            "hardware: bodies.l_thigh.inertia",
            {"ixx": 1.0, "ixy": 0.0, "ixz": 0.0, "iyy": 2.0, "iyz": 0.0, "izz": 4.0},
        ),
        (
            {"bodies": {"l_thigh": {"inertia": {"ixx": 1.0, "iyy": 1.0, "izz": 1.0, "ixy": 1.5}}}},
            "hardware: bodies.l_thigh.inertia",
            {"ixx": 1.0, "ixy": 1.5, "ixz": 0.0, "iyy": 1.0, "iyz": 0.0, "izz": 1.0},
        ),
    ],
)
def test_what_is_wrong_is_named(biped: Robot, spec: Any, place: str, value: Any) -> None:
    with refusal(place=place, value=value):
        read_hardware(spec, biped)


IDENTIFIED: dict[str, Any] = {
    "preset": "realistic",
    "bodies": {
        "base_link": {"mass": 45.0, "com": [0.01, -0.005, 0.2]},
        "l_thigh": {"mass": 6.5, "inertia": {"ixx": 0.09, "iyy": 0.09, "izz": 0.02, "ixz": 0.001}},
    },
    "armature": {".*": 0.1, ".*_knee": 0.12},
    "imu_rotation": [0.01, -0.02, 0.005],
    "torque_gain": {".*": 0.98, "l_knee": 1.03},
    "torque_offset": {".*_knee": 0.4},
    "encoder_offset": {".*": 0.002, "r_hip_roll": -0.003},
    "gyro_offset": [0.002, 0.0, -0.001],
    "accelerometer_offset": [0.0, 0.05, 0.02],
    "foot_wrench_offset": {"left": [1.0, -2.0, 3.0, 0.1, 0.2, -0.3]},
}
"""Parameters of a robot as they may follow from its measurements."""


def test_a_body_replaces_mass_com_and_inertia_of_the_plant_alone(biped: Robot) -> None:
    before = [pin.Inertia(inertia) for inertia in biped.model.inertias]
    sim = Simulator(biped, hardware={"bodies": IDENTIFIED["bodies"]})
    assert sim.robot is biped
    assert all(now == was for now, was in zip(biped.model.inertias, before, strict=True))
    trunk, thigh = (sim.plant.model.inertias[biped.model.getJointId(name)] for name in ("root_joint", "l_hip_pitch"))
    assert (trunk.mass, thigh.mass) == (45.0, 6.5)
    np.testing.assert_array_equal(trunk.lever, [0.01, -0.005, 0.2])
    np.testing.assert_array_equal(trunk.inertia, before[1].inertia)
    np.testing.assert_array_equal(thigh.lever, before[biped.model.getJointId("l_hip_pitch")].lever)
    np.testing.assert_array_equal(thigh.inertia, [[0.09, 0.0, 0.001], [0.0, 0.09, 0.0], [0.001, 0.0, 0.02]])


def test_a_body_at_rest_presses_with_its_weight_under_its_com(tmp_path: Path) -> None:
    mass, com = 3.7, np.array([0.021, -0.013, 0.1])
    box = box_robot(tmp_path, [(0.1, 0.05), (-0.1, 0.05), (-0.1, -0.05), (0.1, -0.05)])
    sim = Simulator(box, hardware={"bodies": {"body": {"mass": mass, "com": com.tolist()}}})
    for _ in range(50):
        sim.step(np.zeros(0))
    assert sim.contact.wrench[0, 2] == pytest.approx(mass * G, rel=1e-9)
    np.testing.assert_allclose(sim.contact.cop[0], com[:2], atol=1e-9)
    assert box.mass == 2.0


def test_a_foot_sensor_measures_what_a_leg_gained(biped: Robot) -> None:
    """The first observation is at rest: 3 kg at the CoM of the trunk or in a shank load the ankle sensors alike."""
    plain = Simulator(biped)
    for link in ("base_link", "l_shank"):
        heavy = Simulator(biped, hardware={"bodies": {link: {"mass": body_mass(biped, link) + 3.0}}})
        assert heavy.plant.mass == pytest.approx(biped.mass + 3.0, rel=1e-12)
        loads = []
        for sim in (plain, heavy):
            controller = make_controller("posture", biped, {}, sim.control_dt)
            observation = sim.reset()
            controller.reset(observation)
            for _ in range(4000):
                observation = sim.step(controller.update(observation).tau_joint)
            loads.append(observation.foot_wrench[:, 2].sum())
        assert loads[1] - loads[0] == pytest.approx(3.0 * G, rel=2e-3)


def body_mass(robot: Robot, link: str) -> float:
    model = robot.model
    return float(model.inertias[model.frames[model.getFrameId(link, pin.BODY)].parentJoint].mass)


def test_links_that_are_fixed_to_each_other_are_one_body_with_one_name() -> None:
    """The neck of iCub is a part of its chest."""
    robot = load_robot("icub")
    mass = body_mass(robot, "chest")
    assert body_mass(robot, "neck_1") == mass
    plant = Simulator(robot, hardware={"bodies": {"chest": {"mass": 2.0 * mass}}}).plant
    assert plant.mass == pytest.approx(robot.mass + mass, rel=1e-12)
    with refusal(place="hardware: bodies", value="neck_1"):
        read_hardware({"bodies": {"neck_1": {"mass": 2.0 * mass}}}, robot)


def test_a_link_that_is_fixed_to_the_world_has_no_mass_to_change(tmp_path: Path) -> None:
    wheel = wheel_robot(tmp_path, 0.1, 20.0, 5.0)
    with refusal(place="hardware: bodies", value="stand"):
        read_hardware({"bodies": {"stand": {"mass": 1.0}}}, wheel)


def test_armature_is_that_of_a_robot_yaml_to_the_bit(biped: Robot, tmp_path: Path) -> None:
    folder = tmp_path / "biped14"
    shutil.copytree(biped.source.parent, folder)
    text = (folder / "robot.yaml").read_text()
    (folder / "robot.yaml").write_text(text.replace("armature:\n  .*: 0.1", "armature: {.*: 0.13, l_knee: 0.2}"))
    other = load_robot(folder / "robot.yaml")
    assert other.model.armature[other.idx_v[3]] == 0.2
    for preset in ("ideal", "realistic"):
        described = Simulator(other, hardware=preset, seed=2)
        overlay = {"preset": preset, "armature": {".*": 0.13, "l_knee": 0.2}}
        replaced = Simulator(biped, hardware=overlay, seed=2)
        for tick in range(200):
            tau = 5.0 * np.sin(0.05 * tick + np.arange(biped.nu))
            described.step(tau)
            replaced.step(tau)
            assert described.q.tobytes() == replaced.q.tobytes()
            assert described.v.tobytes() == replaced.v.tobytes()
    assert replaced.robot is biped
    assert (biped.model.armature[biped.idx_v] == 0.1).all()
    # A joint that is not named keeps the value of robot.yaml.
    assert Simulator(biped, hardware={"armature": {"l_knee": 0.2}}).plant.model.armature[biped.idx_v[4]] == 0.1


def test_a_joint_without_any_inertia_is_refused(tmp_path: Path) -> None:
    wheel = wheel_robot(tmp_path, 0.1, 20.0, 5.0, "armature: 0.1\n")
    point = {"disc": {"mass": 1.0, "com": [0.0, 0.0, 0.0], "inertia": {"ixx": 0.0, "iyy": 0.0, "izz": 0.0}}}
    Simulator(wheel, hardware={"bodies": point})
    with refusal(place="hardware: bodies, armature"):
        Simulator(wheel, hardware={"bodies": point, "armature": 0.0})


def test_a_turned_imu_measures_the_same_motion_in_its_own_axes(biped: Robot) -> None:
    rotation = [0.05, -0.1, 0.2]
    turn = pin.exp3(np.array(rotation))
    mounting = pin.SE3(pin.exp3(np.array([0.3, 0.2, -0.5])), biped.placement_joint_imu.translation)
    robot = dataclasses.replace(biped, placement_joint_imu=mounting)
    plain, turned = Simulator(robot), Simulator(robot, hardware={"imu_rotation": rotation})
    assert turned.robot is robot
    for tick in range(100):
        tau = 10.0 * np.sin(0.1 * tick + np.arange(biped.nu))
        true, seen = plain.step(tau), turned.step(tau)
        assert plain.q.tobytes() == turned.q.tobytes()
        np.testing.assert_allclose(turn @ seen.imu_angular_velocity, true.imu_angular_velocity, atol=1e-12)
        np.testing.assert_allclose(turn @ seen.imu_linear_acceleration, true.imu_linear_acceleration, atol=1e-10)
        axes = [pin.Quaternion(observation.imu_orientation).matrix() for observation in (true, seen)]
        np.testing.assert_allclose(axes[1], axes[0] @ turn, atol=1e-12)


def test_sensors_have_the_offsets_of_their_foot_and_joint(biped: Robot) -> None:
    offsets = {key: IDENTIFIED[key] for key in IDENTIFIED if key.endswith("_offset") and key != "torque_offset"}
    plain, shifted = Simulator(biped).reset(), Simulator(biped, hardware=offsets).reset()
    expected = np.full(biped.nu, 0.002)
    expected[biped.joint_names.index("r_hip_roll")] = -0.003
    np.testing.assert_allclose(shifted.joint_position - plain.joint_position, expected, atol=1e-15)
    np.testing.assert_allclose(shifted.foot_wrench[0] - plain.foot_wrench[0], [1.0, -2.0, 3.0, 0.1, 0.2, -0.3])
    np.testing.assert_array_equal(shifted.foot_wrench[1], plain.foot_wrench[1])
    np.testing.assert_allclose(shifted.imu_angular_velocity, [0.002, 0.0, -0.001], atol=1e-15)
    difference = shifted.imu_linear_acceleration - plain.imu_linear_acceleration
    np.testing.assert_allclose(difference, [0.0, 0.05, 0.02], atol=1e-14)


@pytest.mark.parametrize("controller", ["posture", "user_controllers:Stiff"])
def test_a_run_with_an_overlay_file_is_recorded_and_repeats_to_the_bit(controller: str, tmp_path: Path) -> None:
    overlay = tmp_path / "identified.yaml"
    overlay.write_text(yaml.safe_dump(IDENTIFIED))
    config = RunConfig(controller=controller, duration=0.3, hardware=str(overlay), seed=4)
    run(config)[0].save(tmp_path / "run.npz")
    # The recording contains the parameters, so it does not need the file.
    overlay.unlink()
    again = rerun(load_npz(tmp_path / "run.npz"))
    assert again.first is None
    assert {"joint_position", "imu_orientation", "ankle_wrench"} <= set(again.compared)
