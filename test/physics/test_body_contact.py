"""Bodies other than soles on the ground: rest, momentum, energy, closed forms, and another engine."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from physics_support import G
from refusals import refusal
from theory import MODELS, THEORY, Theory
from thing_support import INERTIA, ON_TOP, URDF, YAML, placed, thing

from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.ground import Ground, HeightField
from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator

VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]
H = 1e-3


def energy(robot: Robot, sim: Simulator) -> float:
    data = robot.model.createData()
    kinetic = pin.computeKineticEnergy(robot.model, data, sim.q, sim.v)
    return float(kinetic + pin.computePotentialEnergy(robot.model, data, sim.q))


def momentum(robot: Robot, sim: Simulator) -> np.ndarray:
    data = robot.model.createData()
    pin.ccrba(robot.model, data, sim.q, sim.v)
    return np.asarray(data.hg.linear.copy())


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
@pytest.mark.parametrize("friction", [0.1, 0.4])
def test_a_box_slides_as_coulomb_says(tmp_path: Path, model: str, friction: float) -> None:
    """v0^2 / (2 mu g), to first order in h, and then it stays."""
    robot = thing(tmp_path, '<box size="0.4 0.4 0.1"/>')
    sim = Simulator(robot, contact=model, hardware={"body_friction": friction})
    sim.reset(placed(0.05), np.array([1.0, 0.5, 0.0, 0.0, 0.0, 0.0]))
    speed = np.hypot(1.0, 0.5)
    for _ in range(round(1.2 * speed / (friction * G * H))):
        sim.advance(np.zeros(0))
    way = speed**2 / (2.0 * friction * G)
    assert np.hypot(*sim.q[:2]) == pytest.approx(way, abs=speed * H)
    assert sim.q[1] / sim.q[0] == pytest.approx(0.5, rel=1e-6)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-8)
    assert sim.body_impulse[1, 2] == pytest.approx(robot.weight * H, rel=1e-7)
    assert sim.contact.unresolved == 0


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_ball_that_slides_rolls_in_the_end(tmp_path: Path, model: str) -> None:
    """The final speed is 1 / (1 + I / (m r^2)) of the initial one, for any friction (5/7 for a full ball)."""
    radius = 0.2
    robot = thing(tmp_path, f'<sphere radius="{radius}"/>')
    sim = Simulator(robot, contact=model)
    sim.reset(placed(radius), np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    for _ in range(30):
        sim.advance(np.zeros(0))
    rolls = 1.0 / (1.0 + INERTIA / (2.0 * radius**2))
    world = pin.Quaternion(sim.q[3:7]).matrix() @ sim.v[:3]
    spin = pin.Quaternion(sim.q[3:7]).matrix() @ sim.v[3:]
    assert world[0] == pytest.approx(rolls, rel=1e-3)
    assert spin[1] * radius == pytest.approx(world[0], rel=1e-6)


@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL, 2))
def test_a_cylinder_stands_lies_and_rolls_down_a_slope(tmp_path: Path, model: str) -> None:
    """A rolling body accelerates by g sin(a) / (1 + I / (m r^2)). Its rims are round, so that it does not rattle."""
    radius, angle = 0.1, 0.2
    robot = thing(tmp_path, f'<cylinder radius="{radius}" length="0.3"/>')
    ground = Ground.slope(angle)
    sim = Simulator(robot, ground, contact=model)
    axes = ground.patches[0].rotation_world_patch
    # Its axis is level, at right angles to the way down.
    lying = np.column_stack([axes[:, 2], axes[:, 0], axes[:, 1]])
    sim.reset(np.array([*(radius * axes[:, 2]), *pin.Quaternion(lying).coeffs()]))
    for _ in range(500):
        sim.advance(np.zeros(0))
    speed = np.linalg.norm(sim.v[:3])
    expected = G * np.sin(angle) / (1.0 + INERTIA / (2.0 * radius**2)) * 0.5
    assert speed == pytest.approx(expected, rel=2e-3)
    standing = Simulator(robot, contact=model)
    standing.reset(placed(0.15))
    for _ in range(200):
        standing.advance(np.zeros(0))
    np.testing.assert_allclose(standing.q[:3], [0.0, 0.0, 0.15], atol=1e-9)
    np.testing.assert_allclose(standing.v, 0.0, atol=1e-9)


def test_a_ball_bounces_as_newton_says(tmp_path: Path) -> None:
    robot = thing(tmp_path, '<sphere radius="0.1"/>')
    sim = Simulator(robot, hardware={"body_restitution": 0.5})
    sim.reset(placed(0.6))
    speeds = []
    for _ in range(600):
        before = sim.v[2]
        sim.advance(np.zeros(0))
        if before < -0.5 and sim.v[2] > 0.0:
            speeds.append(-sim.v[2] / before)
    np.testing.assert_allclose(speeds[0], 0.5, atol=2.0 * G * H)


def fallen(name: str, model: str, seconds: float, **hardware: object) -> tuple[Robot, Simulator, list[str]]:
    """Return a robot after a fall forward and slightly sideways, with damped joints, and the monitors' reports."""
    robot = load_robot(name)
    sim = Simulator(robot, contact=model, hardware=dict(hardware))
    said: list[str] = []

    def note(monitor: str, text: str, begun: object) -> None:
        # Contacts of the feet alone are not tested here.
        if sim.reactions.touching is not None and sim.reactions.touching.carries:
            said.append(text)

    sim.watch(note)
    v = np.zeros(robot.model.nv)
    v[0], v[1], v[4] = 0.4, 0.1, 0.3
    sim.reset(sim.q.copy(), v)
    gain = 0.01 * robot.effort_limit
    for _ in range(round(seconds / H)):
        sim.advance(-np.clip(gain * sim.v[robot.idx_v], -robot.effort_limit, robot.effort_limit))
    return robot, sim, said


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "model"),
    [("biped14", model) for model in VELOCITY_LEVEL]
    + [
        pytest.param(name, model, marks=pytest.mark.slow)
        for name in ("talos", "g1", "icub")
        for model in VELOCITY_LEVEL
    ],
)
def test_a_fallen_robot_comes_to_rest_on_the_ground(name: str, model: str) -> None:
    # Under `lcp`, the sinking joints roll Talos over once more, 6 s after the fall.
    robot, sim, said = fallen(name, model, 4.0 if name == "biped14" else 10.0)
    before, energies, begun = momentum(robot, sim), [energy(robot, sim)], sim.v.copy()
    for _ in range(200):
        drop = -0.01 * robot.effort_limit * sim.v[robot.idx_v]
        sim.advance(np.clip(drop, -robot.effort_limit, robot.effort_limit))
        force = sim.body_impulse.sum(axis=0)
        feet = sum(axes @ f[:3] for axes, f in zip(sim.dynamics.ground_axes, sim.contact.impulse, strict=True))
        after = momentum(robot, sim)
        gravity = np.array([0.0, 0.0, -robot.weight * H])
        np.testing.assert_allclose(after - before, force + feet + gravity, atol=1e-8 * robot.weight)
        before = after
        energies.append(energy(robot, sim))
    # The friction of `lcp` is in its pyramids to the tolerance of Lemke's method: 1e-6 of the weight, and not 1e-7.
    near = [text for text in said if model == "lcp" and text.startswith("friction is beyond its cone")]
    assert [text for text in said if text not in near] == []
    assert sim.monitors is not None
    assert sim.monitors.figures()["friction_excess_N"]["worst"] < 1e-6 * robot.weight
    assert sim.q[2] > 0.0
    # Light joints still sink against dampers that are as strong as their drives, by 0.005 to 0.1 rad/s: in balance.
    assert np.abs(sim.v[:6]).max() < 1e-3
    assert np.abs(sim.v - begun).max() / (200 * H) < 0.1
    assert (force + feet)[2] / H == pytest.approx(robot.weight, abs=1e-3 * robot.weight)
    assert np.diff(energies).max() < 1e-6 * robot.weight
    verts = sim.reactions.touching.depths(sim.q) if sim.reactions.touching else {}
    assert max(verts.values(), default=0.0) < 1e-5
    limits = np.maximum(robot.position_lower - sim.q[robot.idx_q], sim.q[robot.idx_q] - robot.position_upper)
    assert limits.max() < 1e-6


@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL))
def test_contact_gives_no_energy_while_a_robot_falls(model: str) -> None:
    """The robot falls without drives. The monitors check all contacts and joint limits in every step."""
    robot = load_robot("biped14")
    sim = Simulator(robot, contact=model)
    monitors = sim.watch(lambda monitor, text, begun: None)
    v = np.zeros(robot.model.nv)
    v[0], v[4] = 0.4, 0.3
    sim.reset(sim.q.copy(), v)
    begun = energy(robot, sim)
    for _ in range(1500):
        sim.advance(np.zeros(robot.nu))
    figures = monitors.figures()
    assert figures["contact_work_J"]["worst"] <= 1e-9
    assert figures["momentum_error"]["worst"] < 1e-12
    assert figures["joint_limit_rad"]["worst"] < 1e-6
    assert energy(robot, sim) < 0.5 * begun


def test_same_bits_again_and_from_a_snapshot() -> None:
    robot, sim, _ = fallen("biped14", "one_step", 1.5)
    assert sim.reactions.touching is not None
    assert sim.reactions.touching.carries
    snapshot = sim.snapshot()
    runs = []
    for _ in range(2):
        sim.restore(snapshot)
        for _ in range(100):
            sim.advance(np.zeros(robot.nu))
        runs.append((sim.q.copy(), sim.v.copy(), sim.body_impulse.copy()))
    for one, two in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_robot_stands_as_without_body_contact() -> None:
    """The motion is equal to the bit while no other body is in contact."""
    robot = load_robot("biped14")
    sims = [Simulator(robot, hardware={"body_contact": on}) for on in (True, False)]
    for _ in range(200):
        for sim in sims:
            sim.advance(5.0 * np.sin(40.0 * sim.t + np.arange(robot.nu)))
    np.testing.assert_array_equal(sims[0].q, sims[1].q)
    np.testing.assert_array_equal(sims[0].v, sims[1].v)


def test_without_body_contact_no_shapes_are_loaded_on_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the meshes takes long, and may fail for the robots that need ``body_contact: false``."""

    def unreadable(*_: object) -> None:
        raise ConfigError("are loaded", "shapes")

    monkeypatch.setattr("bipedsim.model.robot.read_shapes", unreadable)
    field = HeightField(np.zeros((81, 81)), 0.05)
    sim = Simulator(load_robot("biped14"), Ground(field=field), hardware={"body_contact": False})
    sim.advance(np.zeros(sim.robot.nu))
    assert sim.reactions.touching is not None
    assert sim.reactions.touching.depths(sim.q) == {}


def test_the_bodies_of_a_robot_lie_on_a_patch_and_fall_past_its_edge(tmp_path: Path) -> None:
    robot = thing(tmp_path, '<box size="0.2 0.2 0.1"/>')
    ground = Ground.stairs(rise=0.1, run=0.5, steps=2, start=-0.25)
    sim = Simulator(robot, ground)
    for x, height in ((0.0, 0.1), (0.5, 0.2), (-2.0, 0.0)):
        q = placed(height + 0.1)
        q[0] = x
        sim.reset(q)
        for _ in range(500):
            sim.advance(np.zeros(0))
        assert sim.q[2] == pytest.approx(height + 0.05, abs=1e-6)


def test_a_start_in_the_ground_is_refused_by_name(tmp_path: Path) -> None:
    robot = thing(tmp_path, '<box size="0.2 0.2 0.1"/>')
    sim = Simulator(robot)
    with refusal(place="thing: body"):
        sim.reset(placed(0.02))
    Simulator(robot, hardware={"body_contact": False}).reset(placed(0.02))


def test_a_tumbling_box_ends_where_mujoco_has_it(tmp_path: Path) -> None:
    """The same box, dropped on an edge with little speed, falls on the same side and rests at the same height."""
    mujoco = pytest.importorskip("mujoco")
    robot = thing(tmp_path, '<box size="0.4 0.3 0.1"/>')
    tilt = pin.rpy.rpyToMatrix(0.9, 0.4, 0.0)
    sim = Simulator(robot)
    sim.reset(placed(0.4, tilt), np.zeros(6))
    quaternion = pin.Quaternion(tilt)
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.0005" cone="elliptic" impratio="10"/><worldbody>
        <geom type="plane" size="5 5 1" friction="0.5 0 0" condim="3"/>
        <body pos="0 0 0.4" quat="{quaternion.w} {quaternion.x} {quaternion.y} {quaternion.z}"><freejoint/>
        <inertial pos="0 0 0" mass="2" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/>
        <geom type="box" size="0.2 0.15 0.05" friction="0.5 0 0" condim="3" solref="0.004 1"/></body>
        </worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    for _ in range(3000):
        sim.advance(np.zeros(0))
        mujoco.mj_step(model, data, 2)
    up = pin.Quaternion(sim.q[3:7]).matrix()[2]
    other = np.zeros(9)
    mujoco.mju_quat2Mat(other, data.qpos[3:7])
    np.testing.assert_allclose(np.abs(up), np.abs(other.reshape(3, 3)[2]), atol=2e-3)
    assert sim.q[2] == pytest.approx(data.qpos[2], abs=1e-3)
    np.testing.assert_allclose(sim.q[:2], data.qpos[:2], atol=0.05)


FLAP = """<link name="flap"><inertial><origin xyz="0.1 0 0"/><mass value="0.01"/>
<inertia ixx="1e-6" ixy="0" ixz="0" iyy="1e-6" iyz="0" izz="1e-6"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="body"/><child link="flap"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="{limit}" effort="1" velocity="100"/></joint></robot>"""


@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL))
@pytest.mark.parametrize(("limit", "moved"), [(0.003, "joints: [hinge]"), (0.01, "joints: []\npassive: [hinge]")])
def test_a_blow_turns_no_joint_through_its_stop(tmp_path: Path, model: str, limit: float, moved: str) -> None:
    """A box falls flat on the ground. The flap on it was at rest, farther from its joint limit than one step of motion.

    The impulse of the limit is reported for joints with and without a drive.
    """
    urdf = URDF.format(shape='<box size="0.4 0.3 0.1"/>', i=INERTIA, x=0.0)
    (tmp_path / "thing.urdf").write_text(urdf.replace("</robot>", FLAP.format(limit=limit)))
    (tmp_path / "robot.yaml").write_text(YAML.format(foot=list(ON_TOP), roll=np.pi).replace("joints: []", moved))
    sim = Simulator(load_robot(tmp_path / "robot.yaml"), contact=model)
    monitors = sim.watch(lambda monitor, said, begun: None)
    sim.reset(np.append(placed(0.07), 0.0), np.array([0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0]))
    turned, stopped = 0.0, False
    for _ in range(40):
        sim.advance(np.zeros(sim.robot.nu))
        turned, stopped = max(turned, float(sim.q[7])), stopped or bool(sim.stop_impulse[6])
    assert stopped
    assert limit - 1e-9 < turned < limit + 1e-6
    assert all(figure["steps_beyond"] == 0 for figure in monitors.figures().values())


ARMS = """<robot name="arms"><link name="ceiling"/>{links}{joints}</robot>"""
ROD = """<link name="{name}"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.08" ixy="0" ixz="0" iyy="0.08" iyz="0" izz="0.001"/></inertial></link>"""
HINGE = """<joint name="{name}" type="revolute"><parent link="ceiling"/><child link="{child}"/>
<origin xyz="{x} 0 3"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="50"/></joint>"""
ARMS_YAML = """name: arms
urdf: arms.urdf
root: fixed
gravity: 0
joints: [a, b]
feet: {tip: {frame: one, vertices: [[0.0, 0.0]], placement: {xyz: [0.0, 0.0, -1.0]}}}
imu: {frame: one}
bodies:
  one: [{kind: capsule, radius: 0.05, length: 0.6, placement: {xyz: [0.0, 0.0, -0.5]}}]
  two: [{kind: capsule, radius: 0.05, length: 0.6, placement: {xyz: [0.0, 0.0, -0.5]}}]
self_collision: [[one, two]]
"""


def arms(folder: Path) -> Robot:
    links = "".join(ROD.format(name=name) for name in ("one", "two"))
    joints = HINGE.format(name="a", child="one", x=-0.1) + HINGE.format(name="b", child="two", x=0.1)
    (folder / "arms.urdf").write_text(ARMS.format(links=links, joints=joints))
    (folder / "robot.yaml").write_text(ARMS_YAML)
    return load_robot(folder / "robot.yaml")


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_two_arms_meet_as_newton_says(tmp_path: Path, model: str, restitution: float) -> None:
    """One swings against the other, which rests. Equal ones share its speed, or swap it, and never overlap."""
    robot = arms(tmp_path)
    sim = Simulator(robot, contact=model, hardware={"body_restitution": restitution, "body_friction": 0.0})
    sim.reset(np.array([0.2, 0.0]), np.array([-1.0, 0.0]))
    closest = np.inf
    for _ in range(500):
        sim.advance(np.zeros(2))
        one, two = (np.array([x - 0.8 * np.sin(q), 0.8 * np.cos(q)]) for x, q in zip((-0.1, 0.1), sim.q, strict=True))
        closest = min(closest, float(np.linalg.norm(one - two)))
    assert closest > 0.1 - 1e-5
    expected = [-0.5, -0.5] if restitution == 0.0 else [0.0, -1.0]
    np.testing.assert_allclose(sim.v, expected, atol=0.02)


def test_a_start_with_links_in_each_other_is_refused_by_name(tmp_path: Path) -> None:
    sim = Simulator(arms(tmp_path))
    # Axes 0.1 m apart at the lower end where they hang side by side, as far as both radii reach.
    sim.reset(np.array([0.0, 0.0]))
    with refusal(place="one and two"):
        sim.reset(np.array([-0.15, 0.15]))
    Simulator(arms(tmp_path), hardware={"body_contact": False}).reset(np.array([-0.15, 0.15]))


@pytest.mark.parametrize(("depth", "refused"), [(0.009, False), (0.011, True)])
def test_a_start_may_be_a_centimetre_deep(tmp_path: Path, depth: float, refused: bool) -> None:
    """Two arms, 0.2 m apart and 0.05 m thick, tilt towards each other by the same angle. Their ends meet first."""
    angle = np.arcsin((0.1 + depth) / 1.6)
    sim = Simulator(arms(tmp_path))
    with pytest.raises(ConfigError) if refused else nullcontext():
        sim.reset(np.array([-angle, angle]))


def test_pairs_need_capsules_and_bodies_links(tmp_path: Path) -> None:
    arms(tmp_path)
    path = tmp_path / "robot.yaml"
    path.write_text(ARMS_YAML.replace("  two: [{kind: capsule", "  two: []\n  ceiling: [{kind: capsule"))
    with refusal(place="self_collision: link", value="two"):
        Simulator(load_robot(path))
    path.write_text(ARMS_YAML.replace("[[one, two]]", "[[one, three]]"))
    with refusal(UnknownNameError, name="three"):
        load_robot(path)
