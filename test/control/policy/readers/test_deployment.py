"""Third-party deployment files, written here as their programs write them.

Each gives the same policy as our own format.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from policy_support import Plain, biped, deployment, observed, whole, write
from refusals import faults_of, refusal

from bipedsim.control import make_controller
from bipedsim.control.policy.config import MINIMAL
from bipedsim.control.policy.readers import read_deployment
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.sim import Observation

JOINTS = list(biped().joint_names)
POSE = [round(0.01 * i, 2) for i in range(14)]
KP, KD = [100.0 + i for i in range(14)], [5.0 + 0.1 * i for i in range(14)]
MIXED = [JOINTS[i] for i in np.random.default_rng(2).permutation(14)]


def twins(other: Path, own: Path, robot: str = "biped14", ticks: int = 3) -> tuple[Any, Any]:
    """Drive both policies with the same measurements, commands included; they must see and give the same."""
    model = load_robot(robot)
    both = [make_controller("policy", model, {"file": str(file)}, 1e-3) for file in (other, own)]
    assert both[0].decimation == both[1].decimation
    for controller in both:
        controller.reset(_seen(model.nu, 0))
        controller.set_velocity(0.7, 0.2, -0.4)
    for i in range(ticks):
        commands = [controller.update(_seen(model.nu, i)) for controller in both]
        np.testing.assert_array_equal(both[0].seen, both[1].seen)
        for name in ("position", "stiffness", "damping"):
            np.testing.assert_array_equal(getattr(commands[0], name), getattr(commands[1], name))
    return both[0], both[1]


def _seen(nu: int, seed: int) -> Observation:
    found, of_biped = Observation.zeros(nu, 2), observed(seed)
    random = np.random.default_rng(seed)
    found.t = 0.02 * seed
    found.joint_position[:], found.joint_velocity[:] = random.normal(0.0, 0.3, (2, nu))
    found.imu_orientation[:] = of_biped.imu_orientation
    found.imu_angular_velocity[:] = of_biped.imu_angular_velocity
    return found


def gym(root: Path, **changes: Any) -> Path:
    """Write a configuration as in unitree_rl_gym/deploy/deploy_mujoco/configs, and the MJCF that it names."""
    for folder in ("deploy/deploy_mujoco/configs", "deploy/pre_train/biped", "resources"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    Plain(9 + 3 * 14 + 2, 14).save(root / "deploy/pre_train/biped/motion.onnx")
    motors = "".join(f'<motor name="{name}_m" joint="{name}"/>' for name in MIXED)
    (root / "resources/scene.xml").write_text('<mujoco><include file="biped.xml"/></mujoco>')
    (root / "resources/biped.xml").write_text(f"<mujoco><actuator>{motors}</actuator></mujoco>")
    values = {
        "policy_path": "{LEGGED_GYM_ROOT_DIR}/deploy/pre_train/biped/motion.onnx",
        "xml_path": "{LEGGED_GYM_ROOT_DIR}/resources/scene.xml",
        "simulation_duration": 60.0,
        "simulation_dt": 0.002,
        "control_decimation": 10,
        "kps": KP,
        "kds": KD,
        "default_angles": POSE,
        "ang_vel_scale": 0.25,
        "dof_pos_scale": 1.0,
        "dof_vel_scale": 0.05,
        "action_scale": 0.25,
        "cmd_scale": [2.0, 2.0, 0.25],
        "num_actions": 14,
        "num_obs": 53,
        "cmd_init": [0.5, 0, 0],
        **changes,
    }
    return write(root / "deploy/deploy_mujoco/configs/biped.yaml", values)


def own_of_gym(path: Path, **changes: Any) -> Path:
    terms = [
        {"term": "base_ang_vel", "scale": 0.25},
        {"term": "projected_gravity"},
        {"term": "velocity_commands", "scale": [2.0, 2.0, 0.25]},
        {"term": "joint_pos_rel"},
        {"term": "joint_vel", "scale": 0.05},
        {"term": "last_action"},
        {"term": "clock"},
    ]
    values = deployment(
        network="deploy/pre_train/biped/motion.onnx",
        joints=MIXED,
        default=POSE,
        stiffness=KP,
        damping=KD,
        action={"scale": 0.25},
        observations=terms,
        clock={"period": 0.8, "start": 0.02},
    )
    return write(path / "own.yaml", {**values, **changes})


def test_unitree_rl_gym(tmp_path: Path) -> None:
    twins(gym(tmp_path), own_of_gym(tmp_path))


def test_unitree_rl_gym_without_its_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The joints then have the order of the robot. An environment variable can set the root of the repository."""
    file = gym(tmp_path / "repository")
    moved = tmp_path / "biped.yaml"
    file.rename(moved)
    (tmp_path / "repository/resources/scene.xml").unlink()
    monkeypatch.setenv("LEGGED_GYM_ROOT_DIR", str(tmp_path / "repository"))
    twins(moved, own_of_gym(tmp_path / "repository", joints=JOINTS))
    with refusal(place=f"{moved}: joints"):
        make_controller("policy", load_robot("g1"), {"file": str(moved)})


def test_unitree_rl_gym_on_the_machine(tmp_path: Path) -> None:
    """Of deploy_real: motors by number; arms are held, and commands cut."""
    g1 = load_robot("g1")
    file = gym(
        tmp_path,
        control_dt=0.02,
        num_actions=12,
        leg_joint2motor_idx=list(range(12)),
        default_angles=[0.0] * 12,
        kps=[100.0] * 12,
        kds=[2.0] * 12,
        arm_waist_joint2motor_idx=list(range(12, 29)),
        arm_waist_kps=[30.0] * 17,
        arm_waist_kds=[1.0] * 17,
        arm_waist_target=[0.01 * i for i in range(17)],
        max_cmd=[0.5, 0.1, 0.2],
    )
    Plain(9 + 3 * 12 + 2, 12).save(tmp_path / "deploy/pre_train/biped/motion.onnx")
    controller = make_controller("policy", g1, {"file": str(file)}, 1e-3)
    controller.reset(_seen(29, 0))
    controller.set_velocity(1.0, -1.0, 0.1)
    command = controller.update(_seen(29, 0))
    np.testing.assert_allclose(controller.seen[6:9], [2.0 * 0.5, 2.0 * -0.1, 0.25 * 0.1], atol=1e-6)
    np.testing.assert_allclose(controller.seen[9:21], _seen(29, 0).joint_position[:12], atol=1e-6)
    np.testing.assert_allclose(command.position[12:], [0.01 * i for i in range(17)])
    assert (command.stiffness[:12] == 100.0).all()
    assert (command.stiffness[12:] == 30.0).all()
    with refusal(place=f"{file}: motors"):
        make_controller("policy", biped(), {"file": str(file)})


ORDER = np.random.default_rng(1).permutation(29).tolist()
LAB_KP, LAB_KD = [20.0 + i for i in range(29)], [1.0 + 0.1 * i for i in range(29)]
LAB_POSE, LAB_SCALE = [round(0.01 * i, 2) for i in range(29)], [0.1 + 0.01 * i for i in range(29)]


def lab_term(size: int, scale: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"params": {}, "clip": None, "scale": [scale] * size, "history_length": 5, **more}


def lab(folder: Path, inputs: int, observations: dict[str, Any]) -> Path:
    """Write params/deploy.yaml as unitree_rl_lab exports it for G1, and the network that belongs to it."""
    (folder / "params").mkdir()
    (folder / "exported").mkdir()
    Plain(inputs, 29).save(folder / "exported/policy.onnx")
    ranges = {"lin_vel_x": [-0.5, 0.6], "lin_vel_y": [-0.1, 0.1], "ang_vel_z": [-0.2, 0.2], "heading": None}
    action = {"clip": None, "joint_names": [".*"], "scale": LAB_SCALE, "offset": LAB_POSE, "joint_ids": "SLICE"}
    values = {
        "joint_ids_map": ORDER,
        "step_dt": 0.02,
        "stiffness": LAB_KP,
        "damping": LAB_KD,
        "default_joint_pos": LAB_POSE,
        "commands": {"base_velocity": {"ranges": ranges}},
        "actions": {"JointPositionAction": action},
        "observations": observations,
    }
    text = yaml.safe_dump(values, sort_keys=False).replace(
        "joint_ids: SLICE", "joint_ids: !!python/object/apply:builtins.slice [null, null, null]"
    )
    file = folder / "params/deploy.yaml"
    file.write_text(text)
    return file


def own_of_lab(folder: Path, **changes: Any) -> Path:
    motors = list(load_robot("g1").joint_names)
    own = {
        "network": "exported/policy.onnx",
        "period": 0.02,
        "joints": [motors[i] for i in ORDER],
        "default": LAB_POSE,
        "stiffness": [LAB_KP[i] for i in ORDER],
        "damping": [LAB_KD[i] for i in ORDER],
        "action": {"scale": LAB_SCALE},
        "command": {"low": [-0.5, -0.1, -0.2], "high": [0.6, 0.1, 0.2]},
    }
    return write(folder / "own.yaml", {**own, **changes})


def test_unitree_rl_lab(tmp_path: Path) -> None:
    """Isaac Lab's joint order differs from that of the motors, which the gains use."""
    seen = {
        "base_ang_vel": lab_term(3, 0.2),
        "velocity_commands": lab_term(3),
        "joint_pos_rel": lab_term(29, clip=[-0.3, 0.3]),
        "last_action": lab_term(29),
        "gait_phase": lab_term(2, history_length=1, params={"period": 0.8}),
    }
    file = lab(tmp_path, 5 * (3 + 3 + 29 + 29) + 2, seen)
    own = own_of_lab(
        tmp_path,
        observations=[
            {"term": "base_ang_vel", "scale": 0.2, "history": 5},
            {"term": "velocity_commands", "history": 5},
            {"term": "joint_pos_rel", "clip": [-0.3, 0.3], "history": 5},
            {"term": "last_action", "history": 5},
            {"term": "clock"},
        ],
        clock={"period": 0.8, "start": 0.02},
    )
    twins(file, own, "g1")
    with refusal(place=f"{file}: motors"):
        make_controller("policy", biped(), {"file": str(file)})


def test_unitree_rl_mjlab_sees_update_by_update_and_scales_first(tmp_path: Path) -> None:
    """use_gym_history and scale_first stand among the terms; a velocity of zero is seen where none is asked for."""
    seen = {
        "scale_first": True,
        "base_ang_vel": lab_term(3, 0.2, clip=[-0.1, 0.1]),
        "zero_velocity_commands": lab_term(3),
        "joint_pos_rel": lab_term(29),
        "gait_phase_my": lab_term(2, params={"period": 0.6}),
        "use_gym_history": True,
    }
    file = lab(tmp_path, 5 * 37, seen)
    own = own_of_lab(
        tmp_path,
        observations=[
            {"term": "base_ang_vel", "scale": 0.2, "clip": [-0.5, 0.5]},
            {"term": "constant", "values": [0.0, 0.0, 0.0]},
            {"term": "joint_pos_rel"},
            {"term": "clock"},
        ],
        frames={"count": 5},
        clock={"period": 0.6, "start": 0.02, "still_below": 0.1},
    )
    theirs, _ = twins(file, own, "g1", ticks=7)
    frames = theirs.seen.reshape(5, 37)
    positions = [_seen(29, i).joint_position[ORDER] - LAB_POSE for i in range(2, 7)]
    np.testing.assert_allclose(frames[:, 6:35], positions, atol=1e-6)
    assert (frames[:, 3:6] == 0.0).all()


@pytest.mark.parametrize(
    ("seen", "place"),
    [
        (
            {"use_gym_history": True, "base_ang_vel": lab_term(3), "last_action": lab_term(29, history_length=1)},
            "use_gym_history",
        ),
        (
            {"scale_first": True, "base_ang_vel": lab_term(3, clip=[-1.0, 1.0]) | {"scale": [1.0, 1.0, 0.5]}},
            "base_ang_vel: scale_first",
        ),
        ({"obs": {"base_ang_vel": lab_term(3)}, "image": {}}, "observations obs, image"),
    ],
)
def test_unitree_rl_mjlab_otherwise(tmp_path: Path, seen: dict[str, Any], place: str) -> None:
    with refusal(place=place):
        make_controller("policy", load_robot("g1"), {"file": str(lab(tmp_path, 3, seen))})


def described(folder: Path, **changes: Any) -> Path:
    """Write IO descriptors as Isaac Lab's manager-based environments export them."""

    def term(name: str, size: int, clip: Any = None, scale: Any = None, **more: Any) -> dict[str, Any]:
        overloads = {"clip": clip, "flatten_history_dim": True, "history_length": 0, "scale": scale}
        extras = {"description": name, "modifiers": None, "units": None}
        return {"name": name, "shape": [size], "extras": extras, "overloads": overloads, **more}

    names = {"joint_names": MIXED}
    action = {
        "name": "joint_position_action",
        "full_path": "isaaclab.envs.mdp.actions.joint_actions.JointPositionAction",
        "joint_names": MIXED[:8],
        "offset": POSE[:8],
        "scale": 0.5,
        "clip": None,
        "shape": [8],
    }
    body = {**names, "default_joint_pos": POSE, "default_joint_stiffness": KP, "default_joint_damping": KD}
    seen = [
        term("base_ang_vel", 3, scale=0.2),
        term("projected_gravity", 3),
        term("generated_commands", 3),
        term("joint_pos_rel", 14, clip=[-0.2, 0.2], joint_pos_offsets=POSE, **names),
        term("joint_vel_rel", 8, scale=0.05, joint_names=MIXED[:8]),
        term("last_action", 8),
    ]
    values = {
        "actions": [action],
        "articulations": {"robot": body},
        "observations": {"policy": seen, "critic": [term("base_lin_vel", 3)]},
        "scene": {"decimation": 4, "dt": 0.02, "physics_dt": 0.005},
    }
    Plain(39, 8).save(folder / "policy.onnx")
    return write(folder / "io.yaml", {**values, **changes})


def test_isaac_lab(tmp_path: Path) -> None:
    """Joints that no action moves are held at their default."""
    own = deployment(
        joints=MIXED,
        default=POSE,
        stiffness=KP,
        damping=KD,
        action={"joints": MIXED[:8], "scale": 0.5},
        observations=[
            {"term": "base_ang_vel", "scale": 0.2},
            {"term": "projected_gravity"},
            {"term": "velocity_commands"},
            {"term": "joint_pos_rel", "clip": [-0.2, 0.2]},
            {"term": "joint_vel", "scale": 0.05, "joints": MIXED[:8]},
            {"term": "last_action"},
        ],
    )
    twins(described(tmp_path), write(tmp_path / "own.yaml", own))


def test_isaac_lab_with_explicit_actuators(tmp_path: Path) -> None:
    """The descriptors do not contain their gains. A file of our own that extends the descriptors does."""
    names = {"joint_names": MIXED, "default_joint_pos": POSE}
    zeros = {"default_joint_stiffness": [0.0] * 14, "default_joint_damping": [0.0] * 14}
    file = described(tmp_path, articulations={"robot": {**names, **zeros}})
    with refusal() as caught:
        make_controller("policy", biped(), {"file": str(file)})
    assert faults_of(caught.value) == {("stiffness", "None"), ("damping", "None")}
    more = write(tmp_path / "more.yaml", {"extends": "io.yaml", "stiffness": KP, "damping": KD})
    controller = make_controller("policy", biped(), {"file": str(more)})
    assert controller.config.joints == MIXED


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"actions": [{"full_path": "isaaclab.mdp.JointEffortAction"}]}, ": actions JointEffortAction"),
        ({"articulations": {"robot": {}}}, ""),
    ],
)
def test_isaac_lab_otherwise(tmp_path: Path, changes: dict[str, Any], place: str) -> None:
    file = described(tmp_path, **changes)
    with refusal(place=f"{file}{place}"):
        make_controller("policy", biped(), {"file": str(file)})


def test_isaac_labs_env_yaml_names_no_joints(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    file.write_text("sim: {dt: 0.005}\nscene: {env_spacing: 2.5}\ndecimation: 4\nobservations: !!python/tuple [1]\n")
    with refusal(place=f"{file}: joints"):
        make_controller("policy", biped(), {"file": str(file)})


def metadata(**changes: str) -> dict[str, str]:
    """Return the metadata that mjlab's exporter attaches to an ONNX file."""

    def csv(values: list[float]) -> str:
        return ",".join(f"{x:.3f}" for x in values)

    return {
        "run_path": "somebody/something",
        "joint_names": ",".join(MIXED),
        "joint_stiffness": csv(KP),
        "joint_damping": csv(KD),
        "default_joint_pos": csv(POSE),
        "command_names": "twist",
        "observation_names": "base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,command",
        "action_scale": csv([0.1 + 0.01 * i for i in range(14)]),
        **changes,
    }


def own_of_mjlab(observations: list[dict[str, Any]]) -> dict[str, Any]:
    """Return our own deployment of the network that :func:`metadata` describes."""
    return deployment(
        network="mjlab.onnx",
        joints=MIXED,
        default=POSE,
        stiffness=KP,
        damping=KD,
        action={"scale": [round(0.1 + 0.01 * i, 3) for i in range(14)]},
        observations=observations,
    )


def test_mjlab(tmp_path: Path) -> None:
    file = Plain(51, 14).save(tmp_path / "mjlab.onnx", metadata())
    terms = ("base_ang_vel", "projected_gravity", "joint_pos_rel", "joint_vel", "last_action", "velocity_commands")
    own = own_of_mjlab([{"term": term} for term in terms])
    twins(file, write(tmp_path / "own.yaml", own))
    quick = write(tmp_path / "quick.yaml", {"extends": "mjlab.onnx", "period": 0.01})
    assert make_controller("policy", biped(), {"file": str(quick)}, 1e-3).decimation == 10


def test_mjlab_with_scales_limits_and_histories(tmp_path: Path) -> None:
    """Metadata of newer releases; a history of 0 is none."""
    ones = ",".join(["1.000"] * 4)
    further = metadata(
        observation_terms_scale=f"0.250,2.0;2.0;0.5,{ones}",
        observation_terms_clip="-0.1;inf," + ",".join(["-inf;inf"] * 5),
        observation_terms_history_length="0.000,0.000,0.000,3.000,0.000,0.000",
    )
    Plain(51 + 2 * 14, 14).save(tmp_path / "mjlab.onnx", further)
    own = own_of_mjlab(
        [
            {"term": "base_ang_vel", "scale": 0.25, "clip": [-0.1, 1e9]},
            {"term": "projected_gravity", "scale": [2.0, 2.0, 0.5]},
            {"term": "joint_pos_rel"},
            {"term": "joint_vel", "history": 3},
            {"term": "last_action"},
            {"term": "velocity_commands"},
        ]
    )
    twins(tmp_path / "mjlab.onnx", write(tmp_path / "own.yaml", own))


def test_mjlab_height_scan(tmp_path: Path) -> None:
    """The scan is relative to the base, and scaled by its largest distance."""
    names = {"observation_names": "projected_gravity,height_scan"}
    for scale, further in ((0.2, {}), (0.5, {"observation_terms_scale": "1.000,0.500"})):
        file = Plain(190, 14).save(tmp_path / "mjlab.onnx", metadata(**names, **further))
        scan = read_deployment(file, biped()).config.observations[1]
        assert (scan.term, scan.scale, scan.offset) == ("height_scan", scale, 0.0)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"observation_names": "base_pos_z,joint_pos"}, "observations[0]"),
        ({"anchor_body_name": "torso", "command_names": "motion"}, "motion"),
        ({"anchor_body_name": "torso", "command_names": None}, "anchor_body_name"),
        ({"action_scale": ""}, "action_scale"),
        ({"joint_stiffness": "stiff"}, "joint_stiffness"),
    ],
)
def test_mjlab_otherwise(tmp_path: Path, changes: dict[str, str | None], place: str) -> None:
    entries = {**metadata(), **changes}
    written = {key: text for key, text in entries.items() if text is not None}
    file = Plain(51, 14).save(tmp_path / "mjlab.onnx", written)
    with refusal(place=f"{file}: {place}"):
        make_controller("policy", biped(), {"file": str(file)})


def test_mjlab_lists_in_json(tmp_path: Path) -> None:
    given = metadata()
    lists = {key: json.dumps(text.split(",")) for key, text in given.items() if key.endswith("names")}
    lists["joint_stiffness"] = f"[{given['joint_stiffness']}]"
    twins(
        Plain(51, 14).save(tmp_path / "json.onnx", {**given, **lists}),
        Plain(51, 14).save(tmp_path / "plain.onnx", given),
    )


def rl_sar(root: Path, **changes: Any) -> Path:
    """Write files as in rl_sar/policy: base.yaml of the robot in motor order, config.yaml of a policy in its own."""
    folder = root / "policy" / "biped" / "walk"
    folder.mkdir(parents=True)
    base = {"dt": 0.005, "decimation": 4, "joint_names": JOINTS, "default_dof_pos": [9.0] * 14, "wheel_indices": []}
    write(root / "policy" / "biped" / "base.yaml", {"biped": base})
    values = {
        "model_name": "policy.onnx",
        "num_observations": 51,
        "observations": ["ang_vel", "gravity_vec", "commands", "dof_pos", "dof_vel", "actions"],
        "observations_history": [],
        "observations_history_priority": "time",
        "clip_obs": 1.5,
        "clip_actions_lower": [-0.2 - 0.01 * i for i in range(14)],
        "clip_actions_upper": [0.1 + 0.01 * i for i in range(14)],
        "rl_kp": KP,
        "rl_kd": KD,
        "action_scale": [0.25 + 0.01 * i for i in range(14)],
        "wheel_indices": [],
        "lin_vel_scale": 2.0,
        "ang_vel_scale": 0.25,
        "dof_pos_scale": 1.0,
        "dof_vel_scale": 0.05,
        "commands_scale": [2.0, 2.0, 0.25],
        "default_dof_pos": POSE,
        "joint_mapping": [JOINTS.index(name) for name in MIXED],
        **changes,
    }
    Plain(51 * max(1, len(values["observations_history"])), 14).save(folder / "policy.onnx")
    return write(folder / "config.yaml", {"biped/walk": values})


@pytest.mark.parametrize("past", [[], [0, 1, 2], [2, 1, 0]])
@pytest.mark.parametrize("priority", ["time", "term"])
def test_rl_sar(tmp_path: Path, past: list[int], priority: str) -> None:
    file = rl_sar(tmp_path, observations_history=past, observations_history_priority=priority)
    if past == [0, 1, 2] and priority == "term":
        with refusal(place=str(file)):
            make_controller("policy", biped(), {"file": str(file)})
        return
    of_terms = {"history": 3} if past and priority == "term" else {}
    own = deployment(
        network=str(file.parent / "policy.onnx"),
        joints=MIXED,
        default=POSE,
        stiffness=KP,
        damping=KD,
        action={
            "scale": [0.25 + 0.01 * i for i in range(14)],
            "clip": [[-0.2 - 0.01 * i, 0.1 + 0.01 * i] for i in range(14)],
        },
        observations=[{**term, **of_terms} for term in deployment()["observations"]],
        frames={"count": 3 if past and priority == "time" else 1, "newest_first": past[:1] == [0]},
        clip=[-1.5, 1.5],
        history_start="zeros",
    )
    twins(file, write(tmp_path / "own.yaml", own))


def test_rl_sar_otherwise(tmp_path: Path) -> None:
    file = rl_sar(tmp_path, wheel_indices=[3])
    with refusal(place="wheel_indices"):
        make_controller("policy", biped(), {"file": str(file)})
    write(file, {"biped/walk": {**yaml.safe_load(file.read_text())["biped/walk"], "wheel_indices": []}})
    make_controller("policy", biped(), {"file": str(file)})
    base = tmp_path / "policy" / "biped" / "base.yaml"
    for content in ({}, {"biped": None}):
        write(base, content)
        with refusal(place=str(base)):
            make_controller("policy", biped(), {"file": str(file)})
    base.unlink()
    with refusal(place="base.yaml"):
        make_controller("policy", biped(), {"file": str(file)})


@pytest.mark.parametrize("index", [-1, 14, 1.5, True])
def test_an_index_out_of_range_takes_no_other_joint(tmp_path: Path, index: float) -> None:
    mapping = [JOINTS.index(name) for name in MIXED[:-1]]
    file = rl_sar(tmp_path, joint_mapping=[*mapping, index])
    with refusal(place="joint_mapping", value=index):
        make_controller("policy", biped(), {"file": str(file)})


def test_a_network_that_may_not_be_read_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "folder.onnx").mkdir()
    with refusal(place=tmp_path / "folder.onnx", cause=IsADirectoryError):
        make_controller("policy", biped(), {"file": str(tmp_path / "folder.onnx")})
    with refusal(place=tmp_path / "none.onnx", cause=FileNotFoundError):
        make_controller("policy", biped(), {"file": str(tmp_path / "none.onnx")})


@pytest.mark.parametrize("history", [0, 2])
def test_berkeley_humanoid_lite(tmp_path: Path, history: int) -> None:
    """Arms are in the list of joints, but the network moves and sees the legs only."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "checkpoints").mkdir()
    moved = list(range(2, 14))
    size = 9 + 3 * len(moved)
    Plain(size * (history + 1), len(moved)).save(tmp_path / "checkpoints" / "policy.onnx")
    values = {
        "policy_checkpoint_path": "checkpoints/policy.onnx",
        "control_dt": 0.004,
        "policy_dt": 0.04,
        "num_joints": 14,
        "joints": MIXED,
        "joint_kp": KP,
        "joint_kd": 2.0,
        "default_joint_positions": POSE,
        "num_observations": size,
        "history_length": history,
        "num_actions": len(moved),
        "action_indices": moved,
        "action_scale": 0.25,
        "action_limit_lower": -0.1,
        "action_limit_upper": 0.2,
    }
    legs = {"joints": [MIXED[i] for i in moved]}
    own = deployment(
        network="checkpoints/policy.onnx",
        period=0.04,
        joints=MIXED,
        default=POSE,
        stiffness=KP,
        damping=2.0,
        action={**legs, "scale": 0.25, "clip": [-0.1, 0.2]},
        observations=[
            {"term": "velocity_commands"},
            {"term": "base_ang_vel"},
            {"term": "projected_gravity"},
            {"term": "joint_pos_rel", **legs},
            {"term": "joint_vel", **legs},
            {"term": "last_action"},
        ],
        frames={"count": history + 1},
        history_start="zeros",
    )
    twins(write(tmp_path / "configs" / "policy.yaml", values), write(tmp_path / "own.yaml", own))


@pytest.mark.parametrize("foot", ["point", "sole"])
def test_limx_tron1(tmp_path: Path, foot: str) -> None:
    """An encoder sees five updates without limits; the policy sees its output, one update and the commands."""
    sole = foot == "sole"
    folder = tmp_path / "policy" / "isaacgym"
    folder.mkdir(parents=True)
    size = 12 + 3 * 14
    Plain(5 * size, 3, seed=1).save(folder / "encoder.onnx")
    Plain(3 + size + (5 if sole else 3), 14).save(folder / "policy.onnx")
    control = {"stiffness": 45.0, "damping": 3.0, "action_scale_pos": 0.25, "decimation": 10}
    own = {
        "loop_frequency": 500,
        "joint_names": MIXED,
        "init_state": {"default_joint_angle": dict(zip(MIXED, POSE, strict=True))},
        "control": control | ({"ankle_joint_damping": 1.5} if sole else {}),
        "normalization": {
            "clip_scales": {"clip_observations": 100.0, "clip_actions": 0.2},
            "obs_scales": {"lin_vel": 2.0, "ang_vel": 0.25, "dof_pos": 1.0, "dof_vel": 0.05},
        },
        "size": {"obs_history_length": 5, "encoder_output_size": 3, "commands_size": 5 if sole else 3},
        **({"gait": {"frequencies": 1.3, "swing_height": 0.12}} if sole else {}),
    }
    seen = [
        {"term": "base_ang_vel", "scale": 0.25},
        {"term": "projected_gravity"},
        {"term": "joint_pos_rel"},
        {"term": "joint_vel", "scale": 0.05},
        {"term": "last_action"},
        {"term": "clock"},
        {"term": "constant", "values": [1.3, 0.5, 0.5, 0.12] if sole else [2.0, 0.5, 0.5, 0.1]},
    ]
    unused = [{"term": "constant", "values": [0.0, 0.0]}] if sole else []
    latent = {"network": "policy/isaacgym/encoder.onnx", "observations": seen, "frames": {"count": 5}}
    same = deployment(
        network="policy/isaacgym/policy.onnx",
        joints=MIXED,
        default=POSE,
        stiffness=45.0,
        damping=[1.5 if sole and "ankle" in name else 3.0 for name in MIXED],
        action={"scale": 0.25, "clip": [-0.2, 0.2]},
        encoders={"latent": latent},
        observations=[
            {"term": "latent"},
            *seen,
            {"term": "velocity_commands", "scale": [2.0, 2.0, 0.25]},
            *unused,
        ],
        clock={"period": 1.0 / 1.3 if sole else 0.5, "start": 0.02},
    )
    file = write(tmp_path / "params.yaml", {"PointfootCfg": own})
    twins(file, write(tmp_path / "own.yaml", same))
    write(file, {"PointfootCfg": own | {"joint_names": [*MIXED, "wheel_L_Joint"]}})
    with refusal(place="joint_names"):
        make_controller("policy", biped(), {"file": str(file)})


def agibot_x1(root: Path, **changes: Any) -> Path:
    """Write a configuration as in agibot_x1_infer/src/module/control_module/cfg; its policy moves twelve joints."""
    for folder in ("cfg", "policy"):
        (root / folder).mkdir()
    moved = MIXED[:12]
    Plain(3 * (11 + 3 * 12), 12).save(root / "policy" / "walk.onnx")
    walk = {
        "joint_list": moved,
        "init_state": POSE[:12],
        "stiffness": KP[:12],
        "damping": KD[:12],
        "walk_step_conf": {
            "action_scale": 0.5,
            "decimation": 10,
            "cycle_time": 0.7,
            "sw_mode": True,
            "cmd_threshold": 0.05,
        },
        "obs_scales": {"lin_vel": 2.0, "ang_vel": 1.0, "dof_pos": 1.0, "dof_vel": 0.05, "quat": 1.0},
        "onnx_conf": {
            "policy_file": "cfg/control_module/policy/walk.onnx",
            "num_hist": 3,
            "observations_clip": 100.0,
            "actions_clip": 0.3,
        },
        "lpf_conf": {"wc": 100.0, "ts": 0.001, "paralle_list": []},
    }
    held = [*MIXED, "absent"]
    zero = {"joint_list": held, "init_state": [0.1] * 15, "stiffness": [80.0] * 15, "damping": [1.5] * 15}
    values = {
        "control_frequecy": 1000,
        "robot_states": {
            "zero": {"controllers": ["pd_zero"]},
            "walk": {"controllers": ["pd_zero", "rl_walk"]},
        },
        "controllers": {"pd_zero": zero, "rl_walk": walk},
    }
    return write(root / "cfg" / "rl.yaml", {**values, **changes})


def test_agibot_x1(tmp_path: Path) -> None:
    """Joints that the network does not move hold the pose of another controller; a joint of no robot is ignored."""
    file = agibot_x1(tmp_path)
    legs = {"joints": MIXED[:12]}
    same = deployment(
        network="policy/walk.onnx",
        period=0.01,
        joints=MIXED,
        default=[*POSE[:12], 0.1, 0.1],
        stiffness=[*KP[:12], 80.0, 80.0],
        damping=[*KD[:12], 1.5, 1.5],
        action={**legs, "scale": 0.5, "clip": [-0.3, 0.3]},
        observations=[
            {"term": "clock"},
            {"term": "velocity_commands", "scale": [2.0, 2.0, 1.0]},
            {"term": "joint_pos_rel", **legs},
            {"term": "joint_vel", "scale": 0.05, **legs},
            {"term": "last_action"},
            {"term": "base_ang_vel"},
            {"term": "base_euler"},
        ],
        frames={"count": 3},
        clock={"period": 0.7, "still": [0.0, 1.0], "still_below": 0.05},
    )
    twins(file, write(tmp_path / "own.yaml", same))


def test_agibot_x1_without_a_network(tmp_path: Path) -> None:
    file = agibot_x1(tmp_path, controllers={"pd_zero": {}})
    with refusal(place="controllers"):
        make_controller("policy", biped(), {"file": str(file)})


def test_booster_gym(tmp_path: Path) -> None:
    """Motors have the order of the robot, and the network moves the last ones."""
    for folder in ("configs", "models"):
        (tmp_path / folder).mkdir()
    legs = {"joints": JOINTS[-12:]}
    Plain(11 + 3 * 12, 12).save(tmp_path / "models" / "walk.onnx")
    values = {
        "common": {"dt": 0.002, "stiffness": KP, "damping": KD, "default_qpos": POSE, "torque_limit": KP},
        "policy": {
            "policy_path": "./models/walk.onnx",
            "num_actions": 12,
            "gait_frequency": 2,
            "normalization": {
                "gravity": 1.0,
                "lin_vel": 2.0,
                "ang_vel": 0.5,
                "dof_pos": 1.0,
                "dof_vel": 0.1,
                "clip_actions": 0.3,
            },
            "control": {"action_scale": 0.25, "decimation": 10},
        },
        "mech": {"parallel_mech_indexes": [10, 11]},
    }
    same = deployment(
        network="models/walk.onnx",
        default=POSE,
        stiffness=KP,
        damping=KD,
        action={**legs, "scale": 0.25, "clip": [-0.3, 0.3]},
        observations=[
            {"term": "projected_gravity"},
            {"term": "base_ang_vel", "scale": 0.5},
            {"term": "velocity_commands", "scale": [2.0, 2.0, 0.5]},
            {"term": "clock_cos"},
            {"term": "clock_sin"},
            {"term": "joint_pos_rel", **legs},
            {"term": "joint_vel", "scale": 0.1, **legs},
            {"term": "last_action"},
        ],
        clock={"period": 0.5, "still_below": 1e-5},
    )
    file = write(tmp_path / "configs" / "robot.yaml", values)
    twins(file, write(tmp_path / "own.yaml", same))
    values["common"]["default_qpos"] = POSE[:13]
    with refusal(place="default_qpos"):
        make_controller("policy", biped(), {"file": str(write(file, values))})


def test_files_of_no_kind(tmp_path: Path) -> None:
    bare = Plain(51, 14).save(tmp_path / "bare.onnx")
    with pytest.raises(ConfigError) as caught:
        make_controller("policy", biped(), {"file": str(bare)})
    assert caught.value.place.startswith(f"{bare}: joint_names")
    required = {"network", "joints", "stiffness", "damping", "observations"}
    assert required <= yaml.safe_load(MINIMAL).keys(), "what the message shows is a deployment file"
    other = write(tmp_path / "other.yaml", {"learning_rate": 1e-3})
    with refusal(place=other):
        make_controller("policy", biped(), {"file": str(other)})
    ring = write(tmp_path / "ring.yaml", {"extends": "ring.yaml", "period": 0.02})
    with refusal(place=f"{ring}: extends"):
        make_controller("policy", biped(), {"file": str(ring)})


def test_a_file_that_extends_another(tmp_path: Path) -> None:
    whole(tmp_path)
    (tmp_path / "below").mkdir()
    file = write(tmp_path / "below/mine.yaml", {"extends": "../deploy.yaml", "stiffness": 333.0})
    controller = make_controller("policy", biped(), {"file": str(file)})
    controller.reset(observed(0))
    assert (controller.update(observed(0)).stiffness == 333.0).all()
