"""The controller `policy`: the tests compute the network input with numpy, from the documents of the format."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from policy_support import Plain, Recurrent, biped, deployment, observed, whole, write
from refusals import refusal

from bipedsim.config.run import RunConfig
from bipedsim.control import Guard, make_controller
from bipedsim.errors import ConfigError, DoubledWarning, MeasurementError
from bipedsim.runs import prepare
from bipedsim.runs.runner import Run
from bipedsim.sim import Command, Simulator

JOINTS = list(biped().joint_names)


def made(file: Path, dt: float = 1e-3, **params: Any) -> Any:
    return make_controller("policy", biped(), {"file": str(file), **params}, dt)


def terms(observation: Any, command: Any, action: np.ndarray) -> np.ndarray:
    """Return the input terms of the policy of `deployment`, in the vocabulary of its format."""
    rotation = pin.Quaternion(observation.imu_orientation).toRotationMatrix()
    gravity = rotation.T @ [0.0, 0.0, -1.0]
    return np.concatenate(
        [
            0.25 * observation.imu_angular_velocity,
            gravity,
            np.multiply(command, [2.0, 2.0, 0.25]),
            observation.joint_position - biped().posture,
            0.05 * observation.joint_velocity,
            action,
        ]
    )


def test_it_sees_and_gives_what_its_file_says(tmp_path: Path) -> None:
    network = Plain(51, 14)
    controller = made(whole(tmp_path))
    controller.reset(observed(0))
    controller.set_velocity(0.4, -0.1, 0.2)
    action = np.zeros(14)
    for seed in range(4):
        seen = observed(seed, 0.02 * seed)
        command = controller.update(seen)
        expected = terms(seen, (0.4, -0.1, 0.2), action)
        np.testing.assert_allclose(controller.seen, expected, atol=1e-6)
        action = network(expected)
        np.testing.assert_allclose(command.position, biped().posture + 0.05 * action, atol=1e-6)
        assert controller.readouts["largest_action"] == pytest.approx(np.abs(action).max(), abs=1e-6)
    assert (command.stiffness == 500.0).all()
    assert (command.damping == 10.0).all()
    assert not command.tau_joint.any()
    assert command.velocity is None


def test_joints_go_by_name(tmp_path: Path) -> None:
    """Lists have the order of the file, and the robot has its own. Joints that the network does not move are held."""
    order = np.random.default_rng(3).permutation(14)
    joints = [JOINTS[i] for i in order]
    moved, default = joints[3:9], np.arange(14) * 0.01
    values = deployment(
        joints=joints,
        default=default.tolist(),
        stiffness=[100.0 + i for i in range(14)],
        damping={".*": 5.0, joints[2]: 7.0},
        action={"joints": moved, "scale": {".*": 0.1, moved[1]: 0.2}, "limits": [[-0.3, 0.12]]},
        observations=[{"term": "joint_pos_rel"}, {"term": "joint_vel", "joints": moved}, {"term": "last_action"}],
    )
    network = Plain(26, 6)
    network.save(tmp_path / "policy.onnx")
    controller = made(write(tmp_path / "deploy.yaml", values))
    seen = observed(5)
    controller.reset(seen)
    command = controller.update(seen)
    angle, speed = (dict(zip(JOINTS, part, strict=True)) for part in (seen.joint_position, seen.joint_velocity))
    expected = [*(angle[name] - x for name, x in zip(joints, default, strict=True)), *(speed[n] for n in moved)]
    np.testing.assert_allclose(controller.seen[:20], expected, atol=1e-6)
    target = dict(zip(joints, default, strict=True))
    for i, (name, action) in enumerate(zip(moved, network(controller.seen), strict=True)):
        target[name] = min(max(target[name] + (0.2 if i == 1 else 0.1) * action, -0.3), 0.12)
    np.testing.assert_allclose(command.position, [target[name] for name in JOINTS], atol=1e-6)
    np.testing.assert_allclose(command.stiffness, [100.0 + joints.index(name) for name in JOINTS])
    np.testing.assert_allclose(command.damping, [7.0 if name == joints[2] else 5.0 for name in JOINTS])


@pytest.mark.parametrize("start", ["first", "zeros"])
@pytest.mark.parametrize("newest_first", [False, True])
def test_it_sees_the_past(tmp_path: Path, start: str, newest_first: bool) -> None:
    """Terms have their own past, oldest first; frames repeat all of it."""
    values = deployment(
        observations=[{"term": "base_ang_vel", "history": 3}, {"term": "joint_vel", "clip": [-0.2, 0.2], "scale": 2.0}],
        frames={"count": 2, "newest_first": newest_first},
        history_start=start,
        clip=[-0.35, 0.35],
    )
    Plain(2 * (9 + 14), 14).save(tmp_path / "policy.onnx")
    controller = made(write(tmp_path / "deploy.yaml", values))
    for _ in range(2):  # the second time after a reset
        controller.reset(observed(0))
        gyros: list[np.ndarray] = []
        frames: list[np.ndarray] = []
        for seed in range(5):
            seen = observed(seed)
            controller.update(seen)
            gyros.append(np.clip(seen.imu_angular_velocity, -0.35, 0.35))
            before = gyros[0] if start == "first" else np.zeros(3)
            past = [before] * 2 + gyros
            speed = np.clip(2.0 * np.clip(seen.joint_velocity, -0.2, 0.2), -0.35, 0.35)
            frames.append(np.concatenate([*past[-3:], speed]))
            last = frames[-2] if seed else frames[0] if start == "first" else np.zeros(23)
            two = [frames[-1], last] if newest_first else [last, frames[-1]]
            np.testing.assert_allclose(controller.seen, np.concatenate(two), atol=1e-6)


@pytest.mark.parametrize("memory", [("h_in", "h_out"), ("before", "after")])
def test_a_recurrent_network_remembers_until_it_is_reset(tmp_path: Path, memory: tuple[str, str]) -> None:
    Recurrent(51, 14).save(tmp_path / "policy.onnx", memory)
    named = {} if memory[0] == "h_in" else {"states": dict([memory])}
    controller = made(write(tmp_path / "deploy.yaml", deployment(**named)))
    assert controller.memory == (memory[0],)
    for _ in range(2):
        network, action = Recurrent(51, 14), np.zeros(14)
        controller.reset(observed(0))
        for seed in range(4):
            seen = observed(seed)
            command = controller.update(seen)
            action = network(terms(seen, (0.0, 0.0, 0.0), action))
            np.testing.assert_allclose(command.position, biped().posture + 0.05 * action, atol=1e-5)
    twin = copy.deepcopy(controller)
    twin.update(observed(9))
    again = controller.update(observed(4)).position
    action = network(terms(observed(4), (0.0, 0.0, 0.0), action))
    np.testing.assert_allclose(again, biped().posture + 0.05 * action, atol=1e-5)


def test_the_clock_and_the_clips(tmp_path: Path) -> None:
    values = deployment(
        observations=[{"term": "clock"}, {"term": "velocity_commands"}, {"term": "last_action"}],
        clock={"period": 0.8, "start": 0.1},
        action={"scale": 1.0, "clip": [-0.01, 0.02]},
        command={"low": [-0.1, -0.2, -0.3], "high": [0.5, 0.2, 0.3]},
    )
    Plain(19, 14).save(tmp_path / "policy.onnx")
    controller = made(write(tmp_path / "deploy.yaml", values))
    controller.reset(observed(0, 7.0))
    controller.set_velocity(1.0, -1.0, 0.1)
    for t in (0.0, 0.02, 0.75):
        controller.update(observed(1, 7.0 + t))
        angle = 2.0 * np.pi * (t + 0.1) / 0.8
        np.testing.assert_allclose(controller.seen[:5], [np.sin(angle), np.cos(angle), 0.5, -0.2, 0.1], atol=1e-6)
        assert controller.seen[5:].min() >= np.float32(-0.01)
        assert controller.seen[5:].max() <= np.float32(0.02)
    assert controller.seen[5:].max() == np.float32(0.02)


@pytest.mark.parametrize("clip_last", [True, False])
def test_each_output_has_its_own_clip(tmp_path: Path, clip_last: bool) -> None:
    pairs = [[-0.1 - 0.01 * i, 0.02 * i] for i in range(14)]
    low, high = np.transpose(pairs)
    action = {"scale": 2.0, "clip": pairs, "clip_last": clip_last}
    network = Plain(51, 14)
    controller = made(whole(tmp_path, action=action))
    controller.reset(observed(0))
    last = np.zeros(14)
    for seed in range(3):
        command = controller.update(observed(seed))
        output = network(terms(observed(seed), (0.0, 0.0, 0.0), last))
        clipped = np.clip(output, low, high)
        np.testing.assert_allclose(command.position, biped().posture + 2.0 * clipped, atol=1e-5)
        last = clipped if clip_last else output
    assert (output != clipped).any()


def test_a_clock_at_rest_has_the_values_of_its_file(tmp_path: Path) -> None:
    clock = {"period": 0.5, "still_below": 0.1, "still": [0.0, -1.0]}
    Plain(4, 14).save(tmp_path / "policy.onnx")
    seen = [{"term": "clock"}, {"term": "clock_cos"}, {"term": "clock_cos", "phase": 0.5}]
    controller = made(write(tmp_path / "deploy.yaml", deployment(observations=seen, clock=clock)))
    controller.reset(observed(0))
    controller.update(observed(1, 0.1))
    np.testing.assert_array_equal(controller.seen, [0.0, -1.0, -1.0, -1.0])
    controller.set_velocity(0.5, 0.0, 0.0)
    controller.update(observed(1, 0.12))
    sine, cosine = np.sin(2.0 * np.pi * 0.24), np.cos(2.0 * np.pi * 0.24)
    np.testing.assert_allclose(controller.seen, [sine, cosine, cosine, -cosine], atol=1e-6)


def test_outputs_of_an_encoder_are_a_term(tmp_path: Path) -> None:
    """Two networks in a row: the first one sees three updates, and its memory is reset with the policy."""
    seen = [{"term": "joint_vel"}, {"term": "base_ang_vel", "scale": 0.5}]
    encoder = {"network": "encoder.onnx", "observations": seen, "frames": {"count": 3}}
    values = deployment(
        encoders={"latent": encoder}, observations=[{"term": "latent", "scale": 2.0}, {"term": "clock"}]
    )
    Recurrent(51, 4).save(tmp_path / "encoder.onnx")
    Plain(6, 14).save(tmp_path / "policy.onnx")
    controller = made(write(tmp_path / "deploy.yaml", values))
    for _ in range(2):
        network = Recurrent(51, 4)
        controller.reset(observed(0))
        frames: list[np.ndarray] = []
        for seed in range(4):
            now = observed(seed)
            controller.update(now)
            frames.append(np.concatenate([now.joint_velocity, 0.5 * now.imu_angular_velocity]))
            latent = network(np.concatenate([*[frames[0]] * 3, *frames[1:]][-3:]))
            np.testing.assert_allclose(controller.seen[:4], 2.0 * latent, atol=1e-5)


OWN_TERM = """
import numpy as np


def lean(view, joints):
    return np.append(view.euler[:2] - joints.constants, view.seen.joint_position[joints.places])


def broken(view, joints):
    return view.nothing


def table(view, joints):
    return np.eye(2)
"""


def test_terms_may_be_functions_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_terms.py").write_text(OWN_TERM)
    monkeypatch.syspath_prepend(tmp_path)
    seen = [{"term": "my_terms:lean", "values": [0.1, 0.2], "joints": JOINTS[:2], "history": 2}, {"term": "base_euler"}]
    Plain(11, 14).save(tmp_path / "policy.onnx")
    controller = made(write(tmp_path / "deploy.yaml", deployment(observations=seen)))
    now = observed(3)
    controller.reset(now)
    controller.update(now)
    euler = pin.rpy.matrixToRpy(pin.Quaternion(now.imu_orientation).toRotationMatrix())
    once = [*(euler[:2] - [0.1, 0.2]), *now.joint_position[:2]]
    np.testing.assert_allclose(controller.seen, [*once, *once, *euler], atol=1e-6)


@pytest.mark.parametrize("name", ["broken", "table", "missing"])
def test_functions_that_are_no_terms_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "my_terms.py").write_text(OWN_TERM)
    monkeypatch.syspath_prepend(tmp_path)
    seen = [{"term": "clock"}, {"term": f"my_terms:{name}"}]
    file = whole(tmp_path, observations=seen)
    with pytest.raises(ConfigError) as error:
        made(file)
    assert error.value.place.startswith(f"{file}: observations[1]")


def test_velocity_of_the_base_is_estimated_at_every_tick(tmp_path: Path) -> None:
    """A push of 30 N makes the robot sway. The network runs at its own period."""
    Plain(3, 14).save(tmp_path / "policy.onnx")
    values = deployment(observations=[{"term": "base_lin_vel"}], action={"scale": 0.0})
    controller = made(write(tmp_path / "deploy.yaml", values))
    sim = Simulator(biped())
    seen = sim.reset()
    guard = Guard(controller, biped())
    guard.reset(seen)
    calls, errors, speeds = 0, [], []
    inner = controller._act
    for i in range(600):
        before, shown = sim.v[:3].copy(), []
        controller._act = lambda view, shown=shown: shown.append(1) or inner(view)
        command = guard.update(seen)
        calls += len(shown)
        if shown:
            assert i % 20 == 0
            errors.append(np.abs(controller.seen - before).max())
            speeds.append(np.abs(before).max())
        if 100 <= i < 200:
            sim.push((30.0, 10.0, 0.0, 0.0, 0.0, 0.0))
        seen = sim.step(command)
    assert calls == 30
    assert max(speeds) > 0.03
    assert max(errors) < 0.1 * max(speeds)


def test_the_true_velocity_comes_from_the_simulator_or_the_policy_does_not_start(tmp_path: Path) -> None:
    Plain(3, 14).save(tmp_path / "policy.onnx")
    observations = [{"term": "base_lin_vel", "ground_truth": True}]
    file = write(tmp_path / "deploy.yaml", deployment(observations=observations, action={"scale": 0.0}))
    with refusal(MeasurementError, place="policy: ground_truth"):
        made(file).reset(observed(0))
    seen, moved = [], []
    settings = RunConfig("biped14", scenario="push", controller="policy", controller_params={"file": str(file)})
    live = Run(prepare(settings))
    for _ in range(1100):
        live.control()
        if live.guard.fresh:
            seen.append(live.guard._controller.seen)
            moved.append(live.sim.v[:3].copy())
        live.step()
    assert len(seen) == 55
    assert np.abs(moved).max() > 0.03
    np.testing.assert_allclose(seen, moved, rtol=1e-6)


def test_damping_that_the_robot_has_already_is_told(tmp_path: Path) -> None:
    friction = biped().joint_damping.copy()
    friction[biped().idx_v[3:5]] = 10.0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        make_controller("policy", replace(biped(), joint_damping=friction), {"file": str(whole(tmp_path))})
    (warning,) = told
    assert warning.category is DoubledWarning
    assert [name for name in JOINTS if name in str(warning.message)] == JOINTS[3:5]


def test_the_clock_of_two_feet_rests_while_nothing_is_asked_for(tmp_path: Path) -> None:
    """Sine and cosine of each foot, half a period apart, as policies have them that stop their clock to stand."""
    feet = [{"term": f"clock_{part}", "scale": sign} for part in ("sin", "cos") for sign in (1.0, -1.0)]
    clock = {"period": 0.5, "still_below": 0.1}
    Plain(5, 14).save(tmp_path / "policy.onnx")
    terms = [*feet, {"term": "constant", "values": [0.3], "scale": 2.0}]
    controller = made(write(tmp_path / "deploy.yaml", deployment(observations=terms, clock=clock)))
    controller.reset(observed(0, 1.0))
    for t, *asked in ((0.06, 0.09, 0.0, 0.0), (0.08, 0.0, -0.2, 0.0), (0.36, 0.0, 0.0, 0.1), (0.4, 0.0, 0.0, 0.0)):
        controller.set_velocity(*asked)
        controller.update(observed(1, 1.0 + t))
        angles = 2.0 * np.pi * t / 0.5 + np.array([0.0, np.pi])
        shown = [*np.sin(angles), *np.cos(angles)] if max(map(abs, asked)) >= 0.1 else [0.0] * 4
        np.testing.assert_allclose(controller.seen, [*shown, 0.6], atol=1e-6)


@pytest.mark.parametrize(("dt", "ticks"), [(1e-3, 20), (2e-3, 10), (0.02, 1)])
def test_it_is_asked_at_its_own_rate(tmp_path: Path, dt: float, ticks: int) -> None:
    controller = made(whole(tmp_path), dt)
    asked: list[float] = []
    inner = controller.update
    controller.update = lambda seen: asked.append(seen.t) or inner(seen)
    guard = Guard(controller, biped(), 0.0)
    guard.reset(observed(0))
    for i in range(2 * ticks + 1):
        guard.update(observed(i, i * dt))
    assert asked == [0.0, ticks * dt, 2 * ticks * dt]


def test_a_network_of_zeros_is_a_drive_that_holds_the_pose(tmp_path: Path) -> None:
    """The motion equals, to the bit, that of the same impedance without a policy."""
    network = Plain(51, 14)
    network.w[:] = 0.0
    file = whole(tmp_path)
    network.save(tmp_path / "policy.onnx")
    controller = made(file)
    gains = np.full(14, 500.0), np.full(14, 10.0)
    held = Command(np.zeros(14), biped().posture, None, *gains)
    ends = []
    for guard in (Guard(controller, biped()), None):
        sim = Simulator(biped())
        seen = sim.reset()
        if guard is not None:
            guard.reset(seen)
        for _ in range(100):
            seen = sim.step(held if guard is None else guard.update(seen))
        ends.append((sim.q.tobytes(), sim.v.tobytes()))
    assert ends[0] == ends[1]


def test_without_an_attitude_it_stops(tmp_path: Path) -> None:
    controller = made(whole(tmp_path))
    blind = observed(0)
    blind.imu_orientation[:] = 0.0
    with refusal(MeasurementError, place="policy"):
        controller.reset(blind)
    controller.reset(observed(0))
    with refusal(MeasurementError, place="policy"):
        controller.update(blind)


def test_files_are_found_from_here_or_beside_the_robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(tmp_path)
    monkeypatch.chdir(tmp_path)
    made(Path("deploy.yaml"))
    Plain(51, 14, seed=4).save(tmp_path / "other.onnx")
    other = made(Path("deploy.yaml"), network="other.onnx", period=0.01)
    assert other.decimation == 10
    beside = replace(biped(), source=tmp_path / "robot.yaml")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert make_controller("policy", beside, {"file": "deploy.yaml"}).decimation == 20
    with refusal(place="controller 'policy': file"):
        make_controller("policy", biped())
    with refusal(place="nowhere.yaml", cause=FileNotFoundError):
        made(Path("nowhere.yaml"))
