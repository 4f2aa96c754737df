"""A rejected call of the simulator changes neither its state, nor its outputs, nor the next steps."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st
from physics_support import standing_torque
from state_support import in_a_gantry, same, traces, with_loops

from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.sim import LIMIT, SETPOINT, Command, Participant
from bipedsim.sim.simulator import Simulator, Snapshot

PURE = {"check_start", "closed_at", "ground_truth", "snapshot", "warm_up"}
"""Methods that change nothing; ``check_start`` refuses what ``reset`` does."""
NOT_REFUSED = {"refuse", "watch"}


def amid_all(plates: float = 0.5) -> Simulator:
    """Return biped14 with imperfect hardware on a noisy plate, with a ball at rest and one that approaches."""
    lies: dict[str, Any] = {"shape": "ball", "radius": 0.1, "mass": 1.0, "position": (0.5, 0.0, 0.1)}
    comes: dict[str, Any] = {"shape": "ball", "radius": 0.1, "mass": 1.0, "position": (-0.6, 0.1, 0.5)}
    return Simulator(
        load_robot("biped14"),
        physics_dt=5e-4,
        control_dt=2e-3,
        hardware="realistic",
        seed=3,
        objects=[ObjectConfig(name="lies", **lies), ObjectConfig(name="comes", velocity=(4.0, 0.0, 2.0), **comes)],
        force_plates=[PlateConfig(name="plate", size=(2.0, 2.0), noise=plates)],
    )


def alone() -> Simulator:
    return Simulator(load_robot("biped14"))


SCENES = {"alone": alone, "amid all": amid_all, "gantry": in_a_gantry, "loops": with_loops}


def spoilt(values: np.ndarray, rng: np.random.Generator, bad: float) -> np.ndarray:
    out = np.array(values, dtype=np.float64)
    out.reshape(-1)[rng.integers(out.size)] = bad
    return out


def with_state(snapshot: Snapshot, name: str, state: Any) -> Snapshot:
    """Return a snapshot with another state of the participant ``name``; without one if ``state`` is None."""
    states = {key: value for key, value in snapshot.participants.items() if key != name}
    return replace(snapshot, participants=states if state is None else {**states, name: state})


def starts(sim: Simulator, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return invalid starts: arguments of ``reset``."""
    q, v = sim.robot.q_nominal, np.zeros(sim.robot.model.nv)
    bent = q.copy()
    bent[sim.robot.idx_q[0]] = 7.0
    found: list[dict[str, Any]] = [
        {"q": spoilt(q, rng, np.nan)},
        {"q": q[1:]},
        {"q": "upright"},
        {"q": bent},
        {"v": spoilt(v, rng, np.inf)},
        {"v": np.zeros((2, 2))},
    ]
    if sim.robot.free_flyer:
        found.append({"q": np.r_[q[:3], 0.0, 0.0, 0.0, 0.0, q[7:]]})
        if sim.reactions.touching is not None:
            found.append({"q": np.r_[q[:2], q[2] - 0.4, q[3:]]})
        if sim.objects is not None:
            found.append({"q": np.r_[0.5, q[1:]]})
    return found


def refused(sim: Simulator, rng: np.random.Generator) -> dict[str, list[Callable[[], object]]]:
    """Return calls that each method must refuse."""
    nu = sim.robot.nu
    torque, rows = np.zeros(nu), np.ones((len(SETPOINT), nu))
    below = rows.copy()
    below[LIMIT, rng.integers(nu)] = -1.0
    unlimited = rows.copy()
    unlimited[LIMIT, rng.integers(nu)] = np.nan
    whole = Command(torque, sim.robot.posture, torque, np.ones(nu), np.ones(nu))
    commands: list[Any] = [
        *(spoilt(torque, rng, bad) for bad in (np.nan, np.inf, -np.inf)),
        *(spoilt(rows[:LIMIT], rng, np.nan), spoilt(rows, rng, np.inf)[:, 1:], below, unlimited),
        *(np.zeros(nu + 1), np.zeros((nu, 1)), "rest", None, [*torque[1:], "x"]),
        Command(spoilt(torque, rng, np.nan)),
        *(replace(whole, **{name: spoilt(torque, rng, np.nan)}) for name in ("position", "velocity", "damping")),
        *(replace(whole, position=None), replace(whole, velocity=np.zeros(nu + 1)), replace(whole, tau_joint=rows)),
    ]
    finite = np.concatenate([spoilt(rows[:LIMIT], rng, np.inf), rows[LIMIT:]])
    commands.append(finite)
    pushes: list[dict[str, Any]] = [
        {"wrench_world": spoilt(np.zeros(6), rng, np.nan)},
        {"wrench_world": np.full(6, 1e10)},
        {"wrench_world": np.zeros(3)},
        {"wrench_world": np.zeros(6), "body": "tail"},
        *({"wrench_world": np.zeros(6), "duration": bad} for bad in (0.0, -1.0, np.nan)),
        *({"wrench_world": np.zeros(6), "after": bad} for bad in (-1.0, np.nan)),
    ]
    here, robot = sim.snapshot(), sim.robot
    far = here.q.copy()
    far[robot.idx_q[0]] = 9.0
    snapshots = [
        replace(here, q=spoilt(here.q, rng, np.nan)),
        replace(here, q=here.q[1:]),
        replace(here, q=far),
        replace(here, v=spoilt(here.v, rng, np.nan)),
        with_state(here, "reactions", {**here.participants["reactions"], "stop": np.zeros(3)}),
        with_state(here, "drives", None),
        replace(here, contact={}),
        replace(here, footing={**here.footing, "patch": np.zeros(7, dtype=np.int64)}),
        with_state(here, "tick", None if "tick" in here.participants else sim.contact),
        with_state(here, "objects", {"position": np.zeros((1, 3))}),
        with_state(here, "gantry", None if "gantry" in here.participants else {}),
        with_state(here, "force_plates", None if "force_plates" in here.participants else {}),
        OTHER.snapshot(),
    ]
    actions = ["fly", "", *(["lower"] if sim.gantry is not None and sim.gantry.doing == "release" else [])]
    return {
        "reset": [
            *(partial(sim.reset, **start) for start in starts(sim, rng)),
            *(partial(sim.reset, seed=seed) for seed in (-1, 1.5, True, "3", np.nan)),
        ],
        "check_start": [partial(sim.check_start, **start) for start in starts(sim, rng)],
        "step": [partial(sim.step, command) for command in commands],
        "advance": [partial(sim.advance, command) for command in commands],
        "push": [partial(sim.push, **push) for push in pushes],
        "hang": [partial(sim.hang, action) for action in actions],
        "restore": [partial(sim.restore, snapshot) for snapshot in snapshots],
        "add": [partial(sim.add, sim.drives), partial(sim.add, Participant())],
        "remove": [partial(sim.remove, sim.drives)],
    }


OTHER = Simulator(load_robot("compass"))
PULL = np.array([40.0, 25.0, 0.0, 0.0, 3.0, 0.0])


def stir(sim: Simulator, rng: np.random.Generator) -> None:
    """Take a tick of a run in which everything happens that is allowed."""
    torque = 0.8 * standing_torque(sim.robot) + rng.normal(size=sim.robot.nu)
    if rng.random() < 0.1:
        sim.push(PULL, duration=rng.uniform(1e-4, 0.02), after=rng.uniform(0.0, 2e-3))
    if sim.gantry is not None and rng.random() < 0.1:
        sim.hang("lift" if sim.gantry.doing == "release" else rng.choice(["lower", "release", "lift"]))
    if sim.t > 15 * sim.control_dt and rng.random() < 0.3:
        nu = sim.robot.nu
        sim.step(Command(torque, sim.robot.posture, None, np.full(nu, 20.0), np.full(nu, 0.1)))
    else:
        sim.step(torque)


def test_every_method_is_either_tried_here_or_changes_nothing() -> None:
    public = {name for name in dir(Simulator) if not name.startswith("_") and callable(getattr(Simulator, name))}
    assert public == {*refused(alone(), np.random.default_rng(0)), *PURE, *NOT_REFUSED}


@pytest.mark.long
@pytest.mark.parametrize("scene", SCENES)
# A failure names the call already: to look for a shorter run takes minutes.
@settings(max_examples=2, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 2**32 - 1), moments=st.sets(st.integers(0, 59), min_size=1, max_size=2))
def test_what_is_refused_at_any_moment_changes_no_bit(scene: str, seed: int, moments: set[int]) -> None:
    """Of the state, of all that is shown, and of the run that goes on."""
    sim, twin = TWINS.setdefault(scene, (SCENES[scene](), SCENES[scene]()))
    for one in (sim, twin):
        one.reset(seed=3)
    of_sim, of_twin = (np.random.default_rng(seed) for _ in range(2))
    for tick in range(60):
        # Also while the drives get torques alone.
        if tick in {5, *moments}:
            before = traces(sim)
            for name, calls in refused(sim, np.random.default_rng(tick)).items():
                for k, call in enumerate(calls):
                    with pytest.raises(ConfigError):
                        call()
                    after = traces(sim)
                    assert [key for key in after if after[key].tobytes() != before[key].tobytes()] == [], (name, k)
            sim.snapshot(), sim.drives.loads(sim.v), sim.check_start()
        stir(sim, of_sim)
        stir(twin, of_twin)
    same(traces(sim), traces(twin))


TWINS: dict[str, tuple[Simulator, Simulator]] = {}


@pytest.mark.parametrize("scene", SCENES)
def test_a_copy_goes_on_with_the_same_bits_and_apart(scene: str) -> None:
    """A simulator copied and pickled in the middle of a run continues like the original, also after a reset."""
    sim = SCENES[scene]()
    rng = np.random.default_rng(6)
    for _ in range(20):
        stir(sim, rng)
    copies = [copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))]
    before = traces(sim)
    after = []
    for one in (sim, *copies):
        same(traces(one), before)
        assert all(np.array_equal(a, b) for a, b in zip(one.start, sim.start, strict=True))
        again = np.random.default_rng(7)
        for _ in range(10):
            stir(one, again)
        one.reset()
        stir(one, again)
        after.append(traces(one))
        same(after[-1], after[0])


@pytest.mark.parametrize("scene", ["amid all", "loops"])
def test_a_warm_up_in_the_middle_of_a_run_changes_no_bit(scene: str) -> None:
    sim, twin = TWINS.setdefault(scene, (SCENES[scene](), SCENES[scene]()))
    seen: list[float] = []
    for one in (sim, twin):
        one.reset(seed=3)
        rng = np.random.default_rng(8)
        for tick in range(30):
            if one is sim and tick == 20:
                sim.on_physics_step = lambda *_: seen.append(sim.t)
                sim.warm_up(loops=True)
                sim.on_physics_step = None
            stir(one, rng)
    assert seen == []
    same(traces(sim), traces(twin))


def test_a_reset_into_an_object_leaves_the_run_as_it_was() -> None:
    """Also the objects stay where they are, though the start is compared with where they begin."""
    sim = amid_all()
    rng = np.random.default_rng(0)
    for _ in range(20):
        stir(sim, rng)
    before = sim.t, sim.q.copy(), sim.draw, sim.objects.states() if sim.objects else None
    with pytest.raises(ConfigError):
        sim.reset(np.r_[0.5, sim.robot.q_nominal[1:]])
    assert (sim.t, sim.draw) == (before[0], before[2])
    np.testing.assert_array_equal(sim.q, before[1])
    assert sim.objects is not None
    np.testing.assert_array_equal(sim.objects.states(), before[3])


def test_torques_that_overflow_in_the_drives_are_a_divergence_and_no_wrong_command() -> None:
    """All numbers of the command are finite, but the product with the state is not."""
    sim = alone()
    nu = sim.robot.nu
    huge = Command(np.full(nu, -1e308), np.full(nu, 1e308), np.full(nu, -1e308), np.full(nu, 1e10), np.full(nu, 1e10))
    rows = huge.packed(np.full(nu, np.inf))
    with pytest.raises(DivergenceError):
        sim.step(rows)
    with pytest.raises(DivergenceError):
        sim.step(np.zeros(nu))
    sim.reset()
    sim.step(np.zeros(nu))


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1", np.nan, None])
def test_what_is_no_seed_makes_no_simulator(seed: Any) -> None:
    """This includes simulations without noise: the seed is recorded, and the repetition would reject it."""
    with pytest.raises(ConfigError):
        Simulator(load_robot("biped14"), seed=seed)


@pytest.mark.parametrize("name", ["position", "quaternion", "contact", "where", "failed"])
def test_objects_take_a_state_whole_or_not_at_all(name: str) -> None:
    """This includes the objects alone, as in the replay of a captured step."""
    sim = amid_all()
    objects = sim.objects
    assert objects is not None
    before = objects.state()
    other = {key: values + 1 for key, values in before.items()}
    for wrong in ({key: values for key, values in other.items() if key != name}, {**other, name: np.zeros((7, 5, 3))}):
        with pytest.raises((KeyError, ValueError)):
            objects.set_state(wrong, sim)
        assert all(np.array_equal(values, before[key]) for key, values in objects.state().items())
