"""Falls, heaps and hits: each engine has the same shapes, masses, friction and joint limits, and carries the weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.model import Robot, Shape, load_robot
from bipedsim.sim import steps
from bipedsim_studies.bench.engines.base import Engine, EngineUnavailableError, Soles
from bipedsim_studies.bench.engines.scene import Scene, body_shapes
from bipedsim_studies.bench.engines.table import make_engine
from bipedsim_studies.bench.hold import Hold
from bipedsim_studies.bench.measure import measure_creep, measure_rest, side_load
from bipedsim_studies.bench.suites import SuiteReplay, suites

H = 1e-3
ENGINES = ["mujoco", "one_step"]


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("biped14")


def engine_or_skip(name: str, robot: Robot, scene: Scene | None = None) -> Engine:
    try:
        return make_engine(name, robot, H, scene)
    except EngineUnavailableError as error:
        pytest.skip(str(error))


def distance_to_sole(robot: Robot, shape: Shape) -> np.ndarray:
    """Return the distance of the shape's points (P,) from the plane of the sole of the same joint; inf without one."""
    distance = np.full(len(shape.points), np.inf)
    for sole in robot.soles:
        if sole.joint_id == shape.joint_id:
            normal, origin = sole.placement_joint_sole.rotation[:, 2], sole.placement_joint_sole.translation
            distance = np.abs((shape.points - origin) @ normal - shape.radius)
    return distance


def geom_points(engine: Engine, name: str) -> np.ndarray:
    """Return the points of a geom of MuJoCo in the world, as bipedsim has them: ends, corners or vertices."""
    model, data = engine.model, engine.data
    geom = model.geom(name)
    kind, size = (
        ["plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"][geom.type[0]],
        geom.size,
    )
    if kind == "sphere":
        local = np.zeros((1, 3))
    elif kind in ("capsule", "cylinder"):
        local = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]) * size[1]
    elif kind == "box":
        local = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size
    else:
        first, number = model.mesh_vertadr[geom.dataid[0]], model.mesh_vertnum[geom.dataid[0]]
        local = model.mesh_vert[first : first + number]
    return local @ data.geom_xmat[geom.id].reshape(3, 3).T + data.geom_xpos[geom.id]


@pytest.mark.parametrize("name", ["biped14", "talos_legs", "g1"])
def test_bodies_have_the_same_shapes_in_both_engines(name: str) -> None:
    robot = load_robot(name)
    engine = engine_or_skip("mujoco", robot, Scene())
    rng = np.random.default_rng(0)
    q = pin.integrate(robot.model, robot.q_nominal, rng.uniform(-1.0, 1.0, robot.model.nv))
    engine.reset(q, np.zeros(robot.model.nv))
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    expected = {
        f"shape {i} of {shape.name}": shape
        for i, shape in enumerate(robot.shapes.shapes)
        if (distance_to_sole(robot, shape) > 5e-3).any()
    }
    names = {engine.model.geom(i).name for i in range(engine.model.ngeom)}
    assert names - {"ground", *(sole.name for sole in robot.soles)} == set(expected)
    compared = 0
    for geom, shape in expected.items():
        far = distance_to_sole(robot, shape) > 5e-3
        ours = shape.points @ data.oMi[shape.joint_id].rotation.T + data.oMi[shape.joint_id].translation
        theirs = geom_points(engine, geom)
        # The points of a sole are represented by its box, so they may be elsewhere.
        apart = np.linalg.norm(ours[far][:, None] - theirs, axis=2).min(axis=1)
        assert apart.max() < 1e-6
        if far.all():
            assert len(theirs) == len(ours)
        if shape.kind in ("sphere", "capsule", "cylinder"):
            assert engine.model.geom(geom).size[0] == pytest.approx(max(shape.radius + shape.ring, 1e-6))
        compared += far.sum()
    assert compared > 10


@pytest.mark.parametrize("name", ["biped14", "talos_legs"])
def test_lifted_points_cannot_support_the_foot(name: str) -> None:
    robot = load_robot(name)
    for sole in robot.soles:
        into = sole.placement_joint_sole.inverse()
        hulls = [s for s in body_shapes(robot) if s.joint_id == sole.joint_id and s.kind == "hull"]
        assert hulls
        for hull in hulls:
            assert (hull.vertices @ into.rotation[2] + into.translation[2]).min() > 4.9e-3


@pytest.mark.parametrize("name", ["biped14", "g1"])
def test_mujoco_has_the_same_joint_limits(name: str) -> None:
    robot = load_robot(name)
    engine = engine_or_skip("mujoco", robot, Scene())
    for j in range(2, robot.model.njoints):
        index = robot.model.joints[j].idx_q
        limits = robot.model.lowerPositionLimit[index], robot.model.upperPositionLimit[index]
        joint = engine.model.joint(robot.model.names[j])
        assert bool(joint.limited[0]) == (limits[1] - limits[0] < 1e3)
        if joint.limited[0]:
            assert joint.range == pytest.approx(limits)


def test_mujoco_uses_the_friction_of_soles_and_bodies(biped: Robot) -> None:
    engine = engine_or_skip("mujoco", biped, Scene())
    replay = SuiteReplay(engine, suites(biped)["fall"])
    assert replay.load[-1] > 0.0
    contact = engine.data.contact
    friction = {tuple(sorted(pair)): mu for pair, mu in zip(contact.geom.tolist(), contact.friction[:, 0], strict=True)}
    soles = {engine.model.geom(sole.name).id: sole.friction_static for sole in biped.soles}
    assert friction
    for (ground, geom), mu in friction.items():
        assert ground == engine.model.geom("ground").id
        assert mu == pytest.approx(soles.get(geom, 0.5))


@pytest.mark.parametrize("name", ENGINES)
def test_a_lying_robot_is_carried_by_the_ground(name: str, biped: Robot) -> None:
    engine = engine_or_skip(name, biped, Scene())
    replay = SuiteReplay(engine, suites(biped)["fall"])
    assert engine.state()[0][2] < 0.5 * biped.q_nominal[2], "it has fallen"
    # MuJoCo's robot still rocks a little.
    assert abs(replay.load[-100:].mean() - biped.weight) < (0.1 if name == "mujoco" else 1e-3)
    assert Soles(biped).depth(engine.state()[0]) < 5e-3


@pytest.mark.parametrize("name", ENGINES)
def test_a_heap_comes_to_rest_on_the_ground(name: str, biped: Robot) -> None:
    heap = suites(biped)["heap"]
    engine = engine_or_skip(name, biped, Scene(heap.objects))
    SuiteReplay(engine, heap)
    positions = object_positions(engine, [config.name for config in heap.objects])
    assert (positions[:, 2] > 0.049).all()
    apart = np.linalg.norm(positions[:, None] - positions, axis=2) + np.eye(len(positions))
    assert apart.min() > 0.099
    assert abs(engine.load()[2] - biped.weight) < 0.1, "the heap does not touch the robot"


@pytest.mark.parametrize("robot_name", ["biped14", "g1"])
@pytest.mark.parametrize("name", ENGINES)
def test_the_ball_hits_the_robot(name: str, robot_name: str) -> None:
    robot = load_robot(robot_name)
    kick = suites(robot)["kick"]
    engine = engine_or_skip(name, robot, Scene(kick.objects))
    replay = SuiteReplay(engine, kick)
    (x, _, _), (speed, _, _) = kick.objects[0].position, kick.objects[0].velocity
    assert object_positions(engine, ["ball"])[0, 0] > x + 0.5 * kick.seconds * speed, "the robot stops the ball"
    assert replay.load.shape == (round(kick.seconds / H),)


def test_mujoco_has_the_same_objects(biped: Robot) -> None:
    objects = suites(biped)["heap"].objects + suites(biped)["kick"].objects
    engine = engine_or_skip("mujoco", biped, Scene(objects))
    engine.reset(biped.q_nominal, np.zeros(biped.model.nv))
    for config in objects:
        body, geom = engine.model.body(config.name), engine.model.geom(config.name)
        solid = config.make()
        assert body.mass[0] == pytest.approx(solid.mass)
        assert np.sort(body.inertia) == pytest.approx(np.sort(np.diag(solid.inertia)))
        assert engine.data.body(config.name).xpos == pytest.approx(config.position)
        if config.shape == "ball":
            assert geom.size[0] == pytest.approx(config.radius)
        else:
            assert 2.0 * geom.size == pytest.approx(config.size)
        velocity = engine.data.qvel[engine.model.joint(config.name).dofadr[0] :][:3]
        assert velocity == pytest.approx(config.velocity)


def object_positions(engine: Engine, names: list[str]) -> np.ndarray:
    if engine.simulator is not None:
        return np.array(engine.simulator.objects.poses()[:, :3])
    return np.array([engine.data.body(name).xpos for name in names])


def test_an_engine_without_bodies_is_refused_for_a_scene(biped: Robot) -> None:
    with pytest.raises(EngineUnavailableError) as caught:
        make_engine("pinocchio_pgs", biped, H, Scene())
    assert caught.value.status == "not supported"


@pytest.mark.parametrize("name", ["biped14", "talos", "g1"])
def test_the_side_load_is_a_fraction_of_the_tipping_load(name: str) -> None:
    robot = load_robot(name)
    com = pin.centerOfMass(robot.model, robot.model.createData(), robot.q_nominal)
    force = side_load(robot, 1.0)
    # Moments about the ground below the CoM: the load moves the centre of pressure by so much.
    moved = force * robot.q_nominal[2] / robot.weight
    y = [
        placement.act(np.append(vertex, 0.0))[1]
        for sole, placement in zip(robot.soles, Soles(robot).placements(robot.q_nominal), strict=True)
        for vertex in sole.vertices
    ]
    tips, slips = com[1] + moved - max(y), force / (0.45 * robot.weight) - 1.0
    assert max(tips, slips) == pytest.approx(0.0, abs=1e-9)
    assert side_load(robot, 0.3) == pytest.approx(0.3 * force)


@pytest.mark.parametrize("name", ENGINES)
def test_g1_stands_under_the_default_side_load(name: str) -> None:
    robot = load_robot("g1")
    engine, hold = engine_or_skip(name, robot), Hold(robot, H)
    creep = measure_creep(engine, hold, measure_rest(engine, hold), side_load(robot, 0.3), 0.2)
    assert 0.1 < creep.friction_used < 0.9


@pytest.mark.parametrize("name", ["fall", "drop", "walk"])
def test_a_repetition_takes_the_recorded_steps(name: str, biped: Robot) -> None:
    suite = suites(biped)[name]
    engine = engine_or_skip("one_step", biped, Scene(suite.objects))
    replay = SuiteReplay(engine, suite)
    q, v = (x.copy() for x in engine.state())
    times = replay.time()
    np.testing.assert_array_equal(engine.state()[0], q)
    np.testing.assert_array_equal(engine.state()[1], v)
    assert len(times) == len(replay.load)
    assert (times > 0.0).all()


def test_truncated_steps_are_counted_and_their_depth_is_reported(biped: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_BUDGET", 0)
    fall = suites(biped)["fall"]
    replay = SuiteReplay(engine_or_skip("one_step", biped, Scene()), replace(fall, seconds=1.5))
    assert replay.unresolved.sum() > 0
    assert 0.0 < replay.depth.max() < 5e-3
    assert not replay.depth[~replay.unresolved].any()
