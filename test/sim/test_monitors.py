"""Monitors of the physics: silent for every valid model, and each of them reports its kind of error."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from physics_support import box_robot, rectangle, rigid_body
from refusals import refusal
from scipy.optimize import nnls
from theory import MODELS
from uncompiled import InPython

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.contact.base import ContactResult
from bipedsim.contact.modes import distance_outside, n_modes
from bipedsim.contact.selection.arrays import begin
from bipedsim.contact.selection.candidate import centre_of_pressure, solve
from bipedsim.errors import RecordingError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import call
from bipedsim.runs.runner import run
from bipedsim.runs.saved_step import is_step, replay_step, save_step, watch
from bipedsim.sim.monitors import MONITORS
from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)
H = 1e-3
CASE = Path(__file__).parents[1] / "contact" / "selection" / "energy_gain.json"


@pytest.mark.parametrize(
    ("scenario", "duration"),
    [("stand", 0.5), ("jump", 2.0), pytest.param("walk", 4.0, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_beyond_the_theory_in_sound_runs(model: str, scenario: str, duration: float) -> None:
    said: list[str] = []
    _, summary = run(RunConfig(scenario=scenario, contact_model=model, duration=duration), log=said.append)
    assert said == []
    assert list(summary["physics"]) == list(MONITORS)
    assert not any(figure["steps_beyond"] for figure in summary["physics"].values())
    # Rounding, where theory is exact.
    assert summary["physics"]["momentum_error"]["worst"] < 1e-13


class Broken(InPython):
    """A contact model with an error: ``spoil`` changes its result, and may return another impulse than it reports.

    Args:
        model: The correct model.
        spoil: Takes the result, and returns the impulse that acts.
    """

    late = None

    def __init__(self, model: Any, spoil: Callable[[ContactResult], np.ndarray]) -> None:
        super().__init__(model)
        self._spoil, self.result = spoil, model.result

    def solve(self, projection: Any) -> Any:
        self._model.solve(projection)
        return SimpleNamespace(impulse=self._spoil(self.result))


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return box_robot(tmp_path_factory.mktemp("box"), rectangle(0.3, 0.2))


def changed(index: int, factor: float, added: float = 0.0) -> Callable[[ContactResult], np.ndarray]:
    """Return a function that scales one entry of all impulses, and adds to it."""

    def spoil(result: ContactResult) -> np.ndarray:
        result.impulse[:, index] = factor * result.impulse[:, index] + added
        return result.impulse

    return spoil


def untold(result: ContactResult) -> np.ndarray:
    other: np.ndarray = result.impulse * [1.0, 1.0, 1.001, 1.0, 1.0, 1.0]
    return other


def none(result: ContactResult) -> np.ndarray:
    result.impulse[:] = 0.0
    return result.impulse


def heard(sim: Simulator, steps: int) -> Iterator[str]:
    """Yield the monitors that speak, in their order in time."""
    monitors = sim.watch(lambda name, said, begun: None)
    known: set[str] = set()
    for _ in range(steps):
        sim.advance(NOTHING)
        now = {name for name, figure in monitors.figures().items() if figure["steps_beyond"]}
        yield from sorted(now - known)
        known |= now


@pytest.mark.parametrize(
    ("spoil", "first"),
    [
        (untold, "momentum_error"),
        (changed(0, -1.0), "contact_work_J"),
        (changed(0, 1.5), "friction_excess_N"),
        # Between dynamic friction, which a foot that slides has, and static friction.
        (changed(0, 1.1), "friction_excess_N"),
        (changed(2, -1.0), "pull_N"),
        (changed(2, 1.5), "push_gap_m"),
        (changed(4, 1.0, 0.004), "cop_outside_m"),
        (none, "depth_m"),
    ],
)
def test_each_monitor_hears_an_error_of_its_kind(box: Robot, spoil: Any, first: str) -> None:
    sim = Simulator(box)
    sim.reset(None, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    assert list(heard(sim, 50)) == []
    sim.reset(None, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    sim.solver = sim.stepper._contact = Broken(sim.solver, spoil)
    assert first in list(heard(sim, 16))


def of_pushing_vertices(p: Any, impulse: np.ndarray, mu: float) -> float:
    """Return how far the impulse (6,) on one foot is from any of vertices that begin or end a step in the ground.

    Each pushes, with friction in a cone 0.1 % too wide; how they share it is for the least squares to find.
    """
    angle = 2.0 * np.pi / 64 * np.arange(64)
    reach = mu / np.cos(np.pi / 64)
    ways = np.column_stack([reach * np.cos(angle), reach * np.sin(angle), np.ones(64)])
    after = p.w_free + p.G @ impulse
    cones = []
    for r in p.offsets[0, : p.n_vertices[0]]:
        z = p.position[0, 2] + r[2]
        ends = [z + H * (w[2] + w[3] * r[1] - w[4] * r[0]) for w in (p.w_before, after)]
        if min(z, *ends) < 1e-6:
            cones += [np.concatenate([way, np.cross(r, way)]) for way in ways]
    return float(nnls(np.array(cones).T, impulse)[1] / np.linalg.norm(impulse))


def test_friction_at_other_heights_is_no_cop_outside(turned: Callable[[np.random.Generator], Simulator]) -> None:
    """Vertices of a tilted sole are at different depths in the ground, and slide in different directions.

    Friction has a torque about the point where their normal forces act. The wrench is nevertheless one of vertex
    forces, as non-negative least squares shows.
    """
    rng = np.random.default_rng(0)
    outside = 0
    for _ in range(6):
        sim = turned(rng)
        monitors = sim.watch(lambda name, said, begun: None)
        for _ in range(200):
            sim.advance(NOTHING)
            p, f = sim.dynamics.projection, sim.contact.impulse[0]
            if f[2] > 1e-6 and p.rotation[0, 2, 2] > 0.9:
                cop = np.zeros(2)
                centre_of_pressure(f, p.rotation[0], cop, np.zeros(3))
                if distance_outside(p.vertices[0], p.edges[0], 4, (0, 4), cop[0], cop[1]) > 1e-4:
                    outside += 1
                    assert of_pushing_vertices(p, f, 1.2) < 1e-12
        assert not any(figure["steps_beyond"] for figure in monitors.figures().values())
    assert outside > 10


@pytest.fixture
def turned() -> Callable[[np.random.Generator], Simulator]:
    """Return a function that throws a tilted, spinning brick onto its sole, under a compliant model."""

    def thrown(rng: np.random.Generator) -> Simulator:
        brick = rigid_body([np.array(rectangle(0.2, 0.12))], 2.0, [0.0, 0.0, 0.05], [0.008, 0.008, 0.01], 1.2)
        sim = Simulator(brick, contact="feedback_linearised")
        pose = pin.SE3(pin.rpy.rpyToMatrix(*np.radians(rng.uniform(-20.0, 20.0, 3))), np.array([0.0, 0.0, 0.1]))
        linear = pose.rotation.T @ rng.uniform([-2.0, -2.0, -2.0], [2.0, 2.0, -1.0])
        sim.reset(pin.SE3ToXYZQUAT(pose), np.concatenate([linear, rng.uniform(-6.0, 6.0, 3)]))
        return sim

    return thrown


@pytest.mark.parametrize("model", ["feedback_linearised", "nonlinear_damping"])
def test_what_happens_within_a_step_is_not_beyond_theory(model: str, box: Robot, tmp_path: Path) -> None:
    """Static friction changes to dynamic friction within a step.

    A light body hits the ground, pushes and slows down in one step.
    """
    sim = Simulator(box, contact=model)
    sim.reset(None, np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.3]))
    assert list(heard(sim, 400)) == []
    light = Simulator(box_robot(tmp_path, rectangle(0.3, 0.2), mass=0.05, inertia=[1e-4] * 3), contact=model)
    pose = light.q.copy()
    # A third of the way of a step above the ground.
    pose[2] += 0.001
    light.reset(pose, np.array([0.0, 0.0, -3.0, 0.0, 0.0, 0.0]))
    assert list(heard(light, 200)) == []


def test_a_joint_beyond_its_limit_is_named() -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot, hardware={"joint_stops": False})
    said: list[str] = []
    monitors = watch(sim, said.append)
    q = sim.q.copy()
    knee = robot.joint_names.index("l_knee")
    q[robot.idx_q[knee]] = robot.position_upper[knee] + 0.01
    q[2] += 1.0
    none = monitors.figures()
    for lap in (1, 2):
        sim.reset(q)
        assert monitors.figures() == none, "a reset forgets what was found"
        for _ in range(3):
            sim.advance(np.zeros(robot.nu))
        assert monitors.figures()["joint_limit_rad"]["steps_beyond"] == 3
        assert len(said) == lap, "once since each reset"
    assert said[0] == said[1]
    assert said[0].endswith("its joints have no stops")
    assert said[0].startswith("a joint is beyond its limits at t = 0.001000 s (l_knee): 0.01 rad")
    # The energy check uses the velocity at the beginning of the step, also after restore().
    middle = sim.snapshot()
    sim.advance(np.full(robot.nu, 5.0))
    sim.restore(middle)
    np.testing.assert_array_equal(monitors.before, middle.v)


@pytest.mark.parametrize(
    ("spoil", "first"), [(0.0, "momentum_error"), (-1.0, "stop_pull_Nm"), (None, "joint_limit_rad")]
)
def test_what_is_wrong_with_a_stop_is_heard(spoil: float | None, first: str) -> None:
    """The limit reports a wrong impulse, pulls, or is missing at a joint that should have one."""
    robot = load_robot("biped14")
    sim = Simulator(robot)
    monitors = sim.watch(lambda name, said, begun: None)
    q = sim.q.copy()
    q[2] += 1.0
    knee = robot.joint_names.index("l_knee")
    q[robot.idx_q[knee]] = robot.position_lower[knee]
    sim.reset(q)
    torque = np.zeros(robot.nu)
    torque[knee] = -20.0
    for _ in range(5):
        sim.advance(torque)
    assert sim.stop_impulse[robot.idx_v[knee]] > 0.0
    assert not any(figure["steps_beyond"] for figure in monitors.figures().values())
    look, stops = monitors.look, sim.dynamics.stops

    def spoilt(steps: int, q: Any, v: Any, share: float, begins: bool) -> int:
        if spoil is not None:
            stops.impulse[:] *= spoil
        return look(steps, q, v, share, begins)

    monitors.look = spoilt
    if spoil is None:
        stops.lower[:] = -9.0
    for _ in range(20):
        sim.advance(torque)
    assert monitors.figures()[first]["steps_beyond"] > 0
    name, said = next(monitors.described(1 << MONITORS.index(first)))
    assert name == first
    assert "l_knee" in said or first == "momentum_error"


def exploding(folder: Path) -> Simulator:
    """Return the body whose sliding edge has no solution, with a contact model that accepts it."""
    case = json.loads(CASE.read_text())
    robot = box_robot(folder, case["sole_vertices"], case["mass"], case["com"][2], case["inertia_diag"], 2.0, 2.0)
    sim = Simulator(robot, contact="exact")
    sim.reset(np.array(case["q"]), np.array(case["v"]))
    sound = sim.solver
    p, s = sound._projection, sound.arrays

    def unsound(result: ContactResult) -> np.ndarray:
        fastest = 0.0
        call(begin, p, s)
        for mode in range(1, n_modes(len(case["sole_vertices"]))):
            s.trial.mode[0] = mode
            call(solve, p, s)
            if s.trial.converged[0] and s.trial.impulse[0, 2] > 0.0 and abs(s.trial.w_next).max() > fastest:
                fastest = abs(s.trial.w_next).max()
                result.impulse[:] = s.trial.impulse
        return result.impulse

    sim.solver = sim.stepper._contact = Broken(sound, unsound)
    return sim


@pytest.mark.long
def test_a_step_that_makes_energy_is_kept_and_taken_again_under_every_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sim, said, kept = exploding(tmp_path), [], tmp_path / "step.npz"
    monitors = watch(sim, said.append, kept)
    q, v = sim.q.copy(), sim.v.copy()
    sim.advance(NOTHING)
    assert monitors.figures()["contact_work_J"]["worst"] > 1e4
    assert "contact gives energy at t = 0.001000 s" in said[0]
    assert f"bipedsim replay {kept}" in said[0]
    with np.load(kept) as file:
        np.testing.assert_array_equal(file["q"], q)
        np.testing.assert_array_equal(file["v"], v)
    done = {one.model: one for one in replay_step(kept)}
    assert list(done) == MODELS
    assert all(one.fastest < 20.0 for one in done.values())
    assert not done["exact"].violated
    assert main(["replay", str(kept)]) == 0
    printed = capsys.readouterr().out
    assert all(model in printed for model in MODELS)
    assert main(["replay", str(kept), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == MODELS
    assert main(["replay", str(CASE)]) == 2


@pytest.mark.long
def test_two_runs_keep_their_steps_in_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said: list[str] = []
    for _ in range(2):
        sim = exploding(tmp_path)
        watch(sim, said.append)
        sim.advance(NOTHING)
    kept = sorted(tmp_path.glob("bipedsim_step_*_exact_*.npz"))
    assert len(kept) == 2
    assert all(f"bipedsim replay {file}" in " ".join(said) for file in kept)
    assert all(replay_step(file) for file in kept)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.95])
def test_a_kept_step_that_is_cut_short_is_no_step(box: Robot, tmp_path: Path, keep: float) -> None:
    sim, path = Simulator(replace(box)), tmp_path / "step.npz"
    rest = {"q": sim.q, "v": sim.v, "torque": NOTHING, "push": sim.v, "damping": sim.plant.joint_damping}
    save_step(path, sim, rest)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    assert not is_step(path)
    with refusal(RecordingError, place=path):
        replay_step(path)


def test_a_kept_step_repeats_to_the_bit(box: Robot, tmp_path: Path) -> None:
    """On a ground of patches, under a push."""
    sim = Simulator(replace(box), contact="ncp")
    sim.reset(None, np.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.5]))
    sim.push(np.array([1.0, 2.0, 0.0, 0.0, 0.1, 0.0]))
    sim.pushes.before_step(sim)
    begun = {
        "q": sim.q.copy(),
        "v": sim.v.copy(),
        "torque": NOTHING,
        "push": sim.dynamics.push.copy(),
        "damping": sim.plant.joint_damping,
    }
    save_step(tmp_path / "step.npz", sim, begun)
    contact = sim.advance(NOTHING)
    again = next(one for one in replay_step(tmp_path / "step.npz") if one.model == "ncp")
    np.testing.assert_array_equal(again.force, contact.impulse[:, 2] / H)
    assert again.fastest == np.abs(sim.v).max()


def test_a_step_that_is_kept_while_a_stop_carries_repeats_to_the_bit(tmp_path: Path) -> None:
    """A foot is on the ground with its knee at the joint limit of the previous step. The file contains that state."""
    robot = load_robot("biped14")
    sim, kept = Simulator(robot), tmp_path / "step.npz"
    knee = robot.joint_names.index("l_knee")
    q, torque = sim.q.copy(), np.zeros(robot.nu)
    q[robot.idx_q[knee]], torque[knee] = robot.position_lower[knee], -20.0
    q[2] += 0.5
    sim.reset(q)
    pose = sim.ground_truth().pose_world_sole[0]
    sole = pin.XYZQUATToSE3(pose)
    vertices = np.column_stack([robot.soles[0].vertices, np.zeros(robot.soles[0].n_vertices)])
    q[2] -= (vertices @ sole.rotation.T + sole.translation)[:, 2].min()
    sim.reset(q)
    monitors, stops = watch(sim, lambda said: None, kept), sim.dynamics.stops
    stop = sim.dynamics.stopped_joints.index("l_knee")
    stops.held[stop] = -1
    monitors.go_on(sim.v)
    monitors.look = lambda *step: 1
    sim.advance(torque)
    assert sim.contact.impulse[0, 2] > 0.0
    assert stops.held[stop] == -1
    with np.load(kept) as file:
        assert list(np.flatnonzero(file["held"])) == [stop]
    again = next(one for one in replay_step(kept) if one.model == "one_step")
    np.testing.assert_array_equal(again.force, sim.contact.impulse[:, 2] / H)
    assert again.fastest == np.abs(sim.v).max()


def test_places_within_a_step_are_no_violation(tmp_path: Path) -> None:
    """A joint may turn back in the step in which a foot lands: beyond its limit in between, within it at the end."""
    robot = load_robot("biped14")
    sim = Simulator(robot)
    monitors = sim.watch(lambda name, said, begun: None)
    q = sim.q.copy()
    sim.reset(q)
    look, knee = monitors.look, robot.joint_names.index("l_knee")
    beyond = q.copy()
    beyond[robot.idx_q[knee]] = robot.position_upper[knee] + 1e-3
    sim.advance(np.zeros(robot.nu))
    for begins in (False, True):
        look(2, beyond, sim.v, 1.0, begins)
        assert monitors.figures()["joint_limit_rad"]["steps_beyond"] == int(begins)
