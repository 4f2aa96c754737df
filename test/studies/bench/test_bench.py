"""The benchmark measures the same robot in every engine; how long a step takes is no test's business."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from refusals import refusal

from bipedsim.cli import main as cli
from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import Robot, load_robot
from bipedsim_studies.bench import events, own, suites
from bipedsim_studies.bench.engines.base import Engine, EngineUnavailableError, Soles, sole_box, wrench_about
from bipedsim_studies.bench.engines.mjcf_export import mjcf
from bipedsim_studies.bench.engines.table import ENGINES, EngineSpec, engine_version, make_engine
from bipedsim_studies.bench.hold import Hold
from bipedsim_studies.bench.measure import Rest, measure_creep, measure_rest, polygon_soles, run
from bipedsim_studies.bench.own import MotionReplay
from bipedsim_studies.bench.report import plot, table
from bipedsim_studies.bench.run import Bench, pieces
from bipedsim_studies.bench.settings import BenchSettings
from bipedsim_studies.bench.urdf_export import urdf

H = 1e-3
ROW_KEYS = {
    "label",
    "status",
    "note",
    "rest_force_error_N",
    "penetration_um",
    "creep_um_s",
    "creep_um",
    "friction_used",
    "push_N",
    "inside_cone",
    "step_us",
    "ratio_to_mujoco",
}


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("biped14")


def engine_or_skip(name: str, robot: Robot) -> Engine:
    try:
        return make_engine(name, robot, H)
    except EngineUnavailableError as error:
        pytest.skip(str(error))


def robot_or_skip(name: str) -> Robot:
    try:
        return load_robot(name)
    except ConfigError as error:
        pytest.skip(str(error))


def random_state(robot: Robot, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    tangent = rng.uniform(-1.0, 1.0, robot.model.nv)
    return pin.integrate(robot.model, robot.q_nominal, tangent), rng.normal(size=robot.model.nv)


@pytest.mark.parametrize("name", ["biped14", "talos_legs", "talos", "g1"])
def test_mujoco_has_the_same_mass_matrix_and_bias_forces(name: str) -> None:
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    from bipedsim_studies.bench.engines.mujoco_engine import MujocoEngine

    robot = robot_or_skip(name)
    engine, data = MujocoEngine(robot, H), robot.model.createData()
    for seed in range(5):
        q, v = random_state(robot, seed)
        engine.reset(q, v)
        pin.crba(robot.model, data, q)
        mass = np.triu(data.M) + np.triu(data.M, 1).T
        # To axes of the body, in which pinocchio has the velocity of the base.
        T, full = np.eye(engine.model.nv), np.zeros((engine.model.nv, engine.model.nv))
        T[:3, :3] = engine.data.xmat[1].reshape(3, 3).T
        mujoco.mj_fullM(engine.model, engine.data, full)
        np.testing.assert_allclose(T @ full[np.ix_(engine._v, engine._v)] @ T.T, mass, rtol=0.0, atol=1e-9)
        # The base acceleration that MuJoCo calls zero is that of the world: -w x v in the axes of the body.
        a = np.zeros(robot.model.nv)
        a[:3] = -np.cross(v[3:6], v[:3])
        expected = pin.rnea(robot.model, data, q, v, a)
        np.testing.assert_allclose(T @ engine.data.qfrc_bias[engine._v], expected, rtol=0.0, atol=1e-9)


def test_mujoco_has_spheres_for_ball_feet() -> None:
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    robot = robot_or_skip("ball_3d")
    geom = mujoco.MjModel.from_xml_string(mjcf(robot, H, {})).geom(robot.soles[0].name)
    assert geom.size[0] == robot.soles[0].radius
    np.testing.assert_allclose(geom.pos, robot.soles[0].vertices_joint[0], atol=1e-12)


def test_mujoco_refuses_a_link_that_no_body_can_be() -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    with pytest.raises(EngineUnavailableError) as caught:
        make_engine("mujoco", robot_or_skip("icub"), H)
    assert caught.value.status == "not supported"


@pytest.mark.parametrize("name", ["biped14", "talos"])
def test_the_urdf_is_the_same_robot(name: str) -> None:
    robot = robot_or_skip(name)
    model = pin.buildModelFromXML(urdf(robot, soles=True), pin.JointModelFreeFlyer())
    assert list(model.names)[2:] == list(robot.model.names)[2:]
    q, v = random_state(robot, 0)
    theirs, ours = model.createData(), robot.model.createData()
    plain = pin.Model(robot.model)
    plain.armature = np.zeros(plain.nv)
    np.testing.assert_allclose(
        np.triu(pin.crba(model, theirs, q)), np.triu(pin.crba(plain, ours, q)), rtol=0.0, atol=1e-9
    )
    expected = pin.nonLinearEffects(robot.model, ours, q, v)
    np.testing.assert_allclose(pin.nonLinearEffects(model, theirs, q, v), expected, rtol=0.0, atol=1e-9)


def test_reflected_inertia_on_links_counts_fully_about_the_axis(biped: Robot) -> None:
    model = pin.buildModelFromXML(urdf(biped, soles=False, reflected_inertia=True), pin.JointModelFreeFlyer())
    for j in range(2, model.njoints):
        added = model.inertias[j].inertia - biped.model.inertias[j].inertia
        armature = biped.model.armature[biped.model.joints[j].idx_v]
        np.testing.assert_allclose(np.linalg.eigvalsh(added), armature * np.array([0.5, 0.5, 1.0]), atol=1e-12)


@pytest.fixture(scope="module", params=list(ENGINES))
def standing(request: pytest.FixtureRequest, biped: Robot) -> Iterator[tuple[str, Engine, Hold, Rest]]:
    """Name of an engine, biped14 standing in it, its controller, and the other state."""
    engine, hold = engine_or_skip(request.param, biped), Hold(biped, H)
    yield request.param, engine, hold, measure_rest(engine, hold)
    engine.close()


def test_every_engine_carries_the_weight(standing: tuple[str, Engine, Hold, Rest], biped: Robot) -> None:
    name, engine, hold, rest = standing
    engine.reset(rest.q, rest.v)
    run(engine, hold, 20)
    wrenches = engine.wrenches()
    assert rest.force_error < ENGINES[name].rest_tolerance
    assert (wrenches[:, 2] > 0.3 * biped.weight).all()
    # At rest the ground's moment about the centre of mass is zero: the torques have the right sign and point.
    q = engine.state()[0]
    com = pin.centerOfMass(biped.model, biped.model.createData(), q)
    soles = Soles(biped).positions(q)
    moment = wrenches[:, 3:].sum(axis=0) + np.cross(soles - com, wrenches[:, :3]).sum(axis=0)
    assert np.abs(moment).max() < 0.2  # 0.3 mm of the weight


def test_a_push_arrives_at_the_feet(standing: tuple[str, Engine, Hold, Rest]) -> None:
    _, engine, hold, rest = standing
    creep = measure_creep(engine, hold, rest, 50.0, 0.2)
    assert 0.1 < creep.friction_used < 0.6
    engine.push(np.array([0.0, 50.0, 0.0]))
    engine.reset(rest.q, rest.v)
    run(engine, hold, 50)
    assert abs(engine.wrenches()[:, 1].sum()) < 1.0, "a reset takes the push away"


def test_a_state_goes_in_and_comes_out(standing: tuple[str, Engine, Hold, Rest], biped: Robot) -> None:
    _, engine, _, _ = standing
    q, v = biped.q_nominal.copy(), 0.1 * random_state(biped, 1)[1]
    q[2] += 0.5  # in the air, away from contacts that might act at once
    engine.reset(q, v)
    q_back, v_back = engine.state()
    np.testing.assert_allclose(q_back, q, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(v_back, v, rtol=0.0, atol=1e-6)


@pytest.mark.ci
def test_our_feet_do_not_creep(biped: Robot) -> None:
    for name in ("one_step", "exact"):
        engine, hold = make_engine(name, biped, H), Hold(biped, H)
        creep = measure_creep(engine, hold, measure_rest(engine, hold), 50.0, 1.0)
        assert creep.displacement < 1e-9


def test_a_missing_engine_is_a_readable_row(monkeypatch: pytest.MonkeyPatch, biped: Robot) -> None:
    missing = EngineSpec("Absent", "absent_engine:Absent", "absent-engine")
    monkeypatch.setitem(ENGINES, "absent", missing)
    with refusal(EngineUnavailableError, status="not installed"):
        make_engine("absent", biped, H)
    settings = BenchSettings(
        robots=("biped14",), engines=("absent", "one_step"), blocks=1, steps=5, repetitions=0, own=False
    )
    report = Bench(settings).report()
    row = report["robots"]["biped14"]["absent"]
    assert row["status"] == "not installed"
    assert "step_us" not in row
    assert report["robots"]["biped14"]["one_step"]["status"] == "ok"
    assert "not installed: pip install absent-engine" in table(report)


def test_an_engine_that_fails_costs_only_its_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EngineSpec("Broken", "ours:BipedSimEngine", "", {"contact": "no such model"})
    monkeypatch.setitem(ENGINES, "broken", broken)
    settings = BenchSettings(
        robots=("biped14",), engines=("broken", "one_step"), blocks=1, steps=5, repetitions=0, own=False
    )
    rows = Bench(settings).report()["robots"]["biped14"]
    assert rows["broken"]["status"] == "failed"
    assert "no such model" in rows["broken"]["note"]
    assert rows["one_step"]["status"] == "ok"


def test_the_command_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(own, "MOTION_SECONDS", 0.5)
    monkeypatch.setattr(suites, "FALL_SECONDS", 1.0)
    monkeypatch.setattr(events, "ROBOTS", ("biped14",))
    monkeypatch.setattr(events, "SECONDS", {**events.SECONDS, "touch-down": 2.6, "bodies": 1.0})
    engines = list(CONTACT_MODELS)
    if engine_version("mujoco"):
        engines.append("mujoco")
    settings = f"{{robots: [biped14], engines: {engines}, blocks: 2, steps: 20, creep_seconds: 0.1, repetitions: 1}}"
    assert cli.main(["bench", settings, "--json", "--output", str(tmp_path / "out")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report == json.loads((tmp_path / "out" / "report.json").read_text())
    rows = report["robots"]["biped14"]
    assert list(rows) == engines
    for name, row in rows.items():
        assert set(row) == ROW_KEYS - (set() if "mujoco" in engines else {"ratio_to_mujoco"})
        assert 0.0 < row["step_us"]["min"] <= row["step_us"]["median"]
        assert row["inside_cone"]
        assert row["rest_force_error_N"] < ENGINES[name].rest_tolerance
    assert set(report["scaling"]["one_step"]) == {"4", "8", "16", "32"}
    assert set(report["motion"]) == {"squat", "sway", "jump"}
    assert report["motion"]["sway"]["one_step"]["ratio_to_one_step"] == 1.0
    assert set(report["events"]["biped14"]) == {"one_step", "exact", "lcp", "ncp"}
    for row in report["events"]["biped14"].values():
        assert all(ratio > 0.0 and row["steps"][kind] > 0 for kind, ratio in row["event_ratio"].items())
    assert report["parameters"]["blocks"] == 2
    measured = report["suites"]["biped14"]
    assert list(measured) == ["fall", "lying", "drop", "heap", "kick", "walk"]
    for suite, rows in measured.items():
        assert set(rows) == {"one_step", "exact", "lcp", "ncp"} | ({"mujoco"} & set(engines))
        for name, row in rows.items():
            if (suite, name) == ("walk", "mujoco"):
                assert row["status"] == "not supported"
                continue
            times = row["step_us"]
            assert 0.0 < times["mean"] <= times["worst"]
            assert times["p99"] <= times["worst"]
            if name != "mujoco":
                assert 0.0 < row["budget_used"] < 1.05
                assert row["unresolved"] > 0 or row["unresolved_depth_um"] == 0.0
    assert {"python", "pin", "numba"} <= set(report["versions"])
    assert (tmp_path / "out" / "table.md").read_text() == table(report)
    assert (tmp_path / "out" / "plot.png").stat().st_size > 10_000


def test_the_command_forces_one_thread(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    settings = "{robots: [biped14], engines: [one_step], blocks: 1, steps: 5, creep_seconds: 0.1, own: false"
    settings += ", repetitions: 0}"
    assert cli.main(["bench", settings, "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["machine"]["omp_num_threads"] == "1"
    assert report["scaling"] == report["motion"] == report["events"] == {}


def test_wrong_options_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with refusal(UnknownNameError, name="mujocco", meant="mujoco"):
        Bench(BenchSettings(engines=("mujocco",)))
    with refusal(place="blocks", value=0):
        Bench(BenchSettings(blocks=0))
    with refusal(place="dt"):
        Bench(BenchSettings(dt=float("nan")))


def test_the_progress_bar_ends_where_the_work_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "VERTICES", (4, 8))
    monkeypatch.setattr(own, "MOTIONS", ("squat", "jump"))
    monkeypatch.setattr(own, "MOTION_SECONDS", 0.2)
    monkeypatch.setattr(events, "ROBOTS", ("biped14",))
    monkeypatch.setattr(events, "SECONDS", dict.fromkeys(events.SECONDS, 0.02))
    done: list[str] = []
    monkeypatch.setattr(suites, "FALL_SECONDS", 0.1)
    one = ("one_step",)
    settings = BenchSettings(robots=("biped14",), engines=one, blocks=1, steps=5, creep_seconds=0.1, repetitions=2)
    Bench(settings, done.append).report()
    assert len(done) == pieces(settings)


def test_a_repeated_motion_ends_where_the_recorded_one_did(biped: Robot) -> None:
    replay = MotionReplay(biped, "one_step", "squat", H)
    replay.time()
    np.testing.assert_array_equal(replay.q, replay.q_end)


def test_a_sole_becomes_a_box_under_the_foot(biped: Robot) -> None:
    sole = biped.soles[0]
    box = sole_box(sole)
    corners = np.array([[x, y, -1.0] for x in (-1, 1) for y in (-1, 1)]) * 0.5 * box.size
    bottom = corners @ box.placement_joint_box.rotation.T + box.placement_joint_box.translation
    assert {tuple(p) for p in bottom.round(9)} == {tuple(p) for p in sole.vertices_joint.round(9)}
    with refusal(EngineUnavailableError, status="not supported", place=f"sole {biped.soles[0].name!r}"):
        sole_box(polygon_soles(biped, 8).soles[0])


def test_a_wrench_about_a_point() -> None:
    wrench = wrench_about(np.array([1.0, 0.0, 0.0]), np.array([[2.0, 3.0, 0.0]]), np.array([[0.0, 0.0, 10.0]]))
    np.testing.assert_allclose(wrench, [0.0, 0.0, 10.0, 30.0, -10.0, 0.0])


def test_a_plot_without_any_result_is_drawn_too(tmp_path: Path) -> None:
    parameters = {"dt": 1e-3, "push_fraction": 0.3}
    plot({"robots": {"biped14": {}}, "parameters": parameters}, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").exists()
