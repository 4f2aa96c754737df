"""The Gymnasium environment: its own checker, seeds, processes, and rewards of standing, falling and walking."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install bipedsim[gym]")

import gymnasium
import pinocchio as pin
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random
from state_support import same, traces

from bipedsim.errors import ConfigError, DivergenceError, UnknownNameError
from bipedsim.gym import EPISODE_STEPS, ID, BipedEnv


@pytest.fixture(scope="module")
def biped() -> BipedEnv:
    return BipedEnv(command=(0.0, 0.0, 0.0))


def episode(env: Any, actions: int = 20, **reset: Any) -> list[Any]:
    seen = [env.reset(**reset)[0]]
    random = np.random.default_rng(0)
    for _ in range(actions):
        observation, reward, *_ = env.step(random.uniform(-0.3, 0.3, env.action_space.shape).astype(np.float32))
        seen += [observation, reward]
    return seen


@pytest.mark.filterwarnings("ignore:.*A Box observation space:UserWarning")
def test_gymnasium_finds_it_and_its_checker_passes() -> None:
    env = gymnasium.make(ID)
    assert env.spec is not None
    assert env.spec.max_episode_steps == EPISODE_STEPS
    check_env(env.unwrapped, skip_render_check=True)


def test_a_seed_repeats_an_episode_to_the_bit(biped: BipedEnv) -> None:
    noisy = BipedEnv(hardware="realistic")
    for env in (biped, noisy):
        first, again, other = (episode(env, seed=seed) for seed in (3, 3, 4))
        for one, two in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, two)
        assert not np.array_equal(first[-2], other[-2])


def test_copies_in_processes_have_the_bits_of_one() -> None:
    copies = gymnasium.make_vec(f"bipedsim.gym:{ID}", num_envs=2, vectorization_mode="async")
    try:
        seen, _ = copies.reset(seed=[5, 6])
        action = np.full(copies.action_space.shape, 0.1, dtype=np.float32)
        after, rewards, *_ = copies.step(action)
    finally:
        copies.close()
    for i, seed in enumerate((5, 6)):
        env = BipedEnv()
        np.testing.assert_array_equal(env.reset(seed=seed)[0], seen[i])
        expected, reward, *_ = env.step(action[i])
        np.testing.assert_array_equal(expected, after[i])
        assert reward == rewards[i]


@pytest.mark.parametrize(("robot", "noise"), [("biped14", 0.01), ("g1", 0.0)])
def test_without_action_the_robot_stands(robot: str, noise: float) -> None:
    """G1's ankles are softer than m g h, so it stands only without a disturbance."""
    env = BipedEnv(robot, command=(0.0, 0.0, 0.0), start_noise=noise)
    env.reset(seed=1)
    for _ in range(100):
        observation, reward, terminated, truncated, info = env.step(np.zeros(env.action_space.shape, np.float32))
        assert not terminated
        assert not truncated
    assert reward == pytest.approx(sum(info["rewards"].values()))
    assert reward == pytest.approx(2.0, abs=0.1)
    np.testing.assert_allclose(observation[env.layout["up"]], [0.0, 0.0, 1.0], atol=0.02)


def test_an_observation_is_what_the_sensors_and_the_agent_know(biped: BipedEnv) -> None:
    biped.reset(seed=2, options={"command": (0.3, 0.1, -0.2)})
    action = np.linspace(-0.5, 0.5, biped.robot.nu, dtype=np.float32)
    observation = biped.step(action)[0]
    sim, robot, layout = biped.sim, biped.robot, biped.layout
    assert sorted((part.start, part.stop) for part in layout.values())[-1][1] == len(observation)
    np.testing.assert_allclose(observation[layout["command"]], [0.3, 0.1, -0.2], rtol=1e-6)
    np.testing.assert_array_equal(observation[layout["action"]], action)
    np.testing.assert_allclose(observation[layout["joint_position"]], sim.q[robot.idx_q] - robot.posture, atol=1e-6)
    np.testing.assert_allclose(observation[layout["joint_velocity"]], sim.v[robot.idx_v], rtol=1e-6, atol=1e-6)
    assert np.linalg.norm(observation[layout["up"]]) == pytest.approx(1.0)


def test_a_fall_ends_an_episode(biped: BipedEnv) -> None:
    biped.reset(seed=1, options={"v": np.r_[2.5, np.zeros(biped.robot.model.nv - 1)]})
    steps, terminated = 0, False
    while not terminated and steps < 200:
        *_, terminated, _truncated, _info = biped.step(np.zeros(biped.action_space.shape, np.float32))
        steps += 1
    assert terminated
    assert steps > 10


def test_going_is_worth_most_at_the_velocity_that_is_wanted(biped: BipedEnv) -> None:
    v = np.zeros(biped.robot.model.nv)
    v[:2] = 0.4, 0.1
    worth = {}
    for wanted in (0.0, 0.4, 0.8):
        biped.reset(seed=1, options={"command": (wanted, 0.1, 0.0), "q": biped.robot.q_nominal, "v": v})
        worth[wanted] = biped.rewards()["going"]
    assert worth[0.4] == pytest.approx(1.0)
    assert worth[0.0] == pytest.approx(worth[0.8])
    assert worth[0.0] == pytest.approx(np.exp(-(0.4**2) / 0.25))


@pytest.mark.parametrize(
    ("kwargs", "place"), [({"render_mode": "human"}, "render_mode"), ({"robot": "compass"}, "robot")]
)
def test_what_cannot_be_is_refused(kwargs: dict[str, Any], place: str) -> None:
    with refusal(place=place):
        BipedEnv(**kwargs)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"action_scale": bad} for bad in (-1.0, 0.0, np.nan, np.inf, "wide")),
        *({"start_noise": bad} for bad in (-0.1, np.nan)),
        *({"command": bad} for bad in ((1, 2), (0.0, np.nan, 0.0), "ahead", 1.0, (0.1, 0.2, "left"))),
        *({"command_range": bad} for bad in ((1,), (0.5, -0.2, 0.5), (np.inf, 0.0, 0.0), None)),
    ],
)
def test_numbers_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ConfigError) as caught:
        BipedEnv(**wrong)
    assert caught.value.place.startswith(name)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        BipedEnv(action_scale=-1.0, start_noise=-1.0, command=(1, 2), command_range=(1,))  # type: ignore[arg-type]
    places = [fault.place for fault in caught.value.faults]
    assert places == ["action_scale", "start_noise", "command", "command_range"]


def shown(env: BipedEnv) -> dict[str, np.ndarray]:
    """Return all that an environment shows, and all that its next episodes depend on."""
    own = {"command": env.command, "action": env.action, "random": np.array(str(env.np_random.bit_generator.state))}
    return {**traces(env.sim), **own, "seed": np.array(env.np_random_seed)}


def test_what_is_refused_changes_no_bit_of_this_and_of_later_episodes() -> None:
    envs = [BipedEnv(hardware="realistic") for _ in range(2)]
    nothing = np.zeros(envs[0].robot.nu, np.float32)
    q = envs[0].robot.q_nominal
    spoilt = nothing.copy()
    spoilt[3] = np.nan
    calls: list[Callable[[BipedEnv], object]] = [
        lambda env: env.step(spoilt),
        lambda env: env.step(nothing[1:]),
        lambda env: env.reset(seed=-1),
        lambda env: env.reset(seed=1.5),  # type: ignore[arg-type]
        lambda env: env.reset(seed=9, options={"comand": (0.0, 0.0, 0.0)}),
        *(
            lambda env, bad=bad: env.reset(seed=9, options={"command": bad})
            for bad in ((0.1, np.nan, 0.0), (0.1, 0.2), "ahead")
        ),
        *(lambda env, bad=bad: env.reset(options={"q": bad}) for bad in (q[1:], np.full_like(q, np.nan), "upright")),
        lambda env: env.reset(seed=9, options={"v": np.full(env.robot.model.nv, np.inf)}),
    ]
    for env in envs:
        env.reset(seed=2)
        env.step(nothing + 0.1)
    for call in calls:
        before = shown(envs[0])
        with pytest.raises(ConfigError):
            call(envs[0])
        same(shown(envs[0]), before)
    for env in envs:
        env.step(nothing - 0.1)
        env.reset()
        env.step(nothing)
    same(shown(envs[0]), shown(envs[1]))


def test_later_episodes_go_on_with_the_random_numbers_of_the_seed() -> None:
    """As in Gymnasium, a seed is set once. Every later reset continues its random sequence."""
    env = BipedEnv()
    rng, nu = np_random(6)[0], env.robot.nu
    for seed in (6, None, None):
        env.reset(seed=seed)
        np.testing.assert_array_equal(env.command, rng.uniform([-0.5, -0.2, -0.5], [0.5, 0.2, 0.5]))
        rng.normal(size=2 * nu)
        rng.integers(2**31)
        assert env.np_random.bit_generator.state == rng.bit_generator.state


@pytest.mark.parametrize("twin", [deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copied", "pickled"])
def test_a_copy_goes_on_with_the_same_bits_and_apart(twin: Callable[[BipedEnv], BipedEnv]) -> None:
    """In the middle of an episode, with the noise and the episodes that come next."""
    env = BipedEnv(hardware="realistic", start_noise=0.02)
    env.reset(seed=4)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.3, 0.3, (8, env.robot.nu)).astype(np.float32)
    for action in actions[:3]:
        env.step(action)
    copy = twin(env)
    same(shown(copy), shown(env))
    for action in actions[3:]:
        env.step(action)
    env.reset()
    after = shown(env)
    for action in actions[3:]:
        copy.step(action)
    copy.reset()
    same(shown(copy), after)
    env.step(actions[0])
    same(shown(copy), after)


def test_an_episode_that_diverges_has_all_terms_and_is_worth_nothing_in_its_last_step() -> None:
    """Learners that log each term by its name can find it in every step."""
    env = BipedEnv()
    env.reset(seed=1)
    rest = np.zeros(env.robot.nu, np.float32)
    *_, info = env.step(rest)
    env.sim.push(np.full(6, 1e9))
    _, reward, terminated, _, last = env.step(rest)
    assert terminated
    assert last["diverged"]
    assert last["rewards"] == dict.fromkeys(info["rewards"], 0.0)
    assert reward == 0.0
    with pytest.raises(DivergenceError):
        env.sim.snapshot()
    env.reset(seed=1)
    env.step(rest)


def test_what_has_bounds_is_within_them() -> None:
    env = BipedEnv(hardware="realistic")
    space, layout = env.observation_space, env.layout
    for name, part in layout.items():
        bound = 1.0 if name in ("up", "action") else np.inf
        np.testing.assert_array_equal(space.high[part], bound)
        np.testing.assert_array_equal(space.low[part], -bound)
    assert space.contains(env.reset(seed=0)[0])
    for _ in range(30):
        assert space.contains(env.step(np.full(env.robot.nu, 3.0, np.float32))[0])


def test_options_are_checked_by_name(biped: BipedEnv) -> None:
    with refusal(place="options", value=["comand"]):
        biped.reset(options={"comand": (0.0, 0.0, 0.0)})
    with refusal(place="action"):
        biped.step(np.zeros(3, np.float32))


def test_it_starts_on_the_ground_and_not_in_it() -> None:
    env = BipedEnv(start_noise=0.05)
    for seed in range(10):
        env.reset(seed=seed)
        env.step(np.zeros(env.action_space.shape, np.float32))
        assert env.sim.contact.wrench[:, 2].sum() < 20.0 * env.robot.weight


def turned(env: BipedEnv, axis: list[float], velocity: list[float], spin: list[float]) -> None:
    """Put the robot in the air, turned by a rotation vector, with velocities in the world."""
    q, v = env.robot.q_nominal.copy(), np.zeros(env.robot.model.nv)
    rotation = pin.exp3(np.array(axis))
    q[2] += 1.0
    q[3:7] = pin.Quaternion(rotation).coeffs()
    v[:3], v[3:6] = rotation.T @ velocity, rotation.T @ spin
    env.reset(seed=1, options={"q": q, "v": v, "command": (0.4, 0.1, 0.3)})


def test_ahead_and_to_the_left_are_the_robots_and_turning_is_to_the_left(biped: BipedEnv) -> None:
    yaw = 2.0
    ahead, left = np.array([np.cos(yaw), np.sin(yaw), 0.0]), np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    turned(biped, [0.0, 0.0, yaw], list(0.4 * ahead + 0.1 * left), [0.0, 0.0, 0.3])
    terms = biped.rewards()
    assert terms["going"] == pytest.approx(1.0)
    assert terms["turning"] == pytest.approx(0.5)
    turned(biped, [0.0, 0.0, yaw], list(0.4 * ahead - 0.1 * left), [0.0, 0.0, -0.3])
    terms = biped.rewards()
    assert terms["going"] == pytest.approx(np.exp(-(0.2**2) / 0.25))
    assert terms["turning"] == pytest.approx(0.5 * np.exp(-(0.6**2) / 0.25))


def test_up_leans_back_in_a_robot_that_leans_forward(biped: BipedEnv) -> None:
    """Pitched about y by 0.3: the vertical has a part against x. Rolled about x: one along y."""
    for axis, expected in (([0.0, 0.3, 0.0], [-np.sin(0.3), 0.0]), ([0.3, 0.0, 0.0], [0.0, np.sin(0.3)])):
        turned(biped, axis, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
        observation = biped.step(np.zeros(biped.action_space.shape, np.float32))[0]
        np.testing.assert_allclose(observation[biped.layout["up"]][:2], expected, atol=5e-3)
        assert biped.rewards()["upright"] == pytest.approx(0.5, abs=1e-3), "as it began"


def test_episodes_begin_at_the_posture_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "crouched.yaml"
    file.write_text("{.*_knee: 0.9, .*_hip_pitch: -0.45, .*_ankle_pitch: -0.45}\n")
    env = BipedEnv(posture=str(file), start_noise=0.0, command=(0.0, 0.0, 0.0))
    knee = env.robot.joint_names.index("l_knee")
    env.reset(seed=1)
    assert env.sim.q[env.robot.idx_q][knee] == pytest.approx(0.9)
    for _ in range(10):
        observation = env.step(np.zeros(env.action_space.shape, np.float32))[0]
    assert abs(observation[env.layout["joint_position"]][knee]) < 0.05, "counted from there, and held there"
    with refusal(UnknownNameError, kind="posture"):
        BipedEnv(posture="sitting")
