"""Conditions on torques for feet that stick or lift: closed forms, and the next step of the simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from feasibility_support import Stances, each_biped
from physics_support import G, box_robot, rectangle, slope, standing_torque
from refusals import refusal

from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.feasibility.conditions import Reserve
from bipedsim_studies.feasibility.foot_rule import mode_of
from bipedsim_studies.feasibility.sticking import sticking_conditions
from bipedsim_studies.feasibility.support import SupportReader
from bipedsim_studies.feasibility.torques import TorqueSet, weakest

H = 1e-3
BAND = {"[N]": 0.2, "[N.m]": 0.02, "[m/s^2]": 0.02}
"""Within this around zero the conditions of continuous time and a step of 1 ms may differ."""

biped = each_biped


def test_a_box_on_a_slope_slips_and_tips_where_statics_says(tmp_path: Path) -> None:
    """f_n = m g cos a, friction m g sin a, and the CoP is where the vertical through the CoM meets the slope."""
    length, height, mu = 0.2, 0.1, 0.5
    box = box_robot(tmp_path, rectangle(length, 0.1), mass=2.0, height=height, mu_s=mu)
    for angle in (0.0, 0.2, 0.4, np.arctan(mu) + 0.01, 0.9):
        ground = slope(angle)
        q = pin.SE3ToXYZQUAT(pin.SE3(ground.patches[0].rotation_world_patch, np.zeros(3)))
        conditions = sticking_conditions(SupportReader(box, ground).at(q, np.zeros(6)))
        found = dict(zip(conditions.exact_labels, conditions.margins(np.zeros(0)), strict=True))
        normal = 2.0 * G * np.cos(angle)
        assert found["sole: normal force [N]"] == pytest.approx(normal)
        assert found["sole: friction [N]"] == pytest.approx(mu * normal - 2.0 * G * np.sin(angle))
        inside = 0.5 * length - height * np.tan(angle)
        moments = [value for label, value in found.items() if "CoP" in label]
        assert min(moments[0:4:2] + moments[1:4:2]) == pytest.approx(min(normal * inside, normal * 0.05))
        assert conditions.holds(np.zeros(0)) == (np.tan(angle) < mu)


def test_rows_of_a_point_in_a_plane_are_those_of_the_paper() -> None:
    """With two sides, 3 r_S + r_B rows for point contacts: force, CoP of a blade's ends, both ways of friction."""
    robot = load_robot("planar_biped")
    support = SupportReader(robot).at(robot.q_nominal, np.zeros(robot.model.nv))
    conditions = sticking_conditions(support, {"left": (0,)}, sides=2)
    assert conditions.A.shape == (3 * 1 + 3, robot.nu)
    assert conditions.labels[:4] == (
        "left: normal force [N]",
        "left: vertex 1 lifts [m/s^2]",
        "right: vertex 0 lifts [m/s^2]",
        "right: vertex 1 lifts [m/s^2]",
    )
    rng = np.random.default_rng(0)
    for _ in range(50):
        u = 30.0 * rng.normal(size=robot.nu)
        rows = conditions.A @ u + conditions.B
        exact = conditions.margins(u)
        np.testing.assert_allclose(rows[:4], exact[:4], rtol=1e-12, atol=1e-9)
        if exact[0] > 0.0:
            assert rows[4:].min() == pytest.approx(exact[4], rel=1e-9, abs=1e-9)


def test_broken_contacts_accelerate_as_the_equations_of_motion_say() -> None:
    """M a + forces = S u + J^T lambda with the wrenches of the conditions, in contact axes."""
    robot = load_robot("biped14")
    q = robot.q_nominal
    v = np.zeros(robot.model.nv)
    support = SupportReader(robot).at(q, v)
    conditions = sticking_conditions(support, {"left": range(4)})
    u = standing_torque(robot)
    wrench = np.concatenate([conditions.wrench(u)[0], np.zeros(6)])
    a = np.linalg.solve(support.M, support.selection @ u - support.forces + support.J.T @ wrench)
    moved = support.J @ a
    np.testing.assert_allclose(moved[:6], 0.0, atol=1e-9)
    lifts = [m for label, m in zip(conditions.labels, conditions.A @ u + conditions.B, strict=True) if "lifts" in label]
    r = support.feet[1].offsets
    np.testing.assert_allclose(lifts, moved[8] + moved[9] * r[:, 1] - moved[10] * r[:, 0], atol=1e-9)


def test_conditions_agree_with_the_next_step_on_1000_random_states(biped: Robot) -> None:
    """Outside a band around zero; half the torques lie on the boundary or near it."""
    states = Stances(biped, seed=1)
    # Drawn at random, joints are beyond their limits.
    sim = Simulator(biped, physics_dt=H, hardware={"joint_stops": False})
    rng = states.rng
    held = near = 0
    wrong = []
    for i, state in zip(range(1000), states.resting(H), strict=False):
        conditions = sticking_conditions(state.support, state.keep)
        u = rng.uniform(-1.0, 1.0, biped.nu) * biped.effort_limit * rng.choice([0.1, 0.5])
        if i % 2:
            inside = TorqueSet(conditions, biped.effort_limit).nearest(u)
            u = u if inside is None else inside + rng.choice([0.0, 1e-2, 1.0]) * rng.normal(size=biped.nu)
        stays = next_step(sim, state.q, state.v, u, conditions.modes)
        margins = conditions.margins(u)
        j = int(np.argmin(margins))
        band = BAND[conditions.exact_labels[j].split()[-1]]
        near += abs(margins[j]) < band
        held += stays
        if (margins[j] > 0.0) != stays:
            wrong.append((abs(margins[j]) / band, conditions.exact_labels[j]))
    print(f"\n{biped.name}: {held} of 1000 states stay, {near} in the band, {len(wrong)} differ: {sorted(wrong)[-5:]}")
    assert 200 < held < 800
    assert all(share < 1.0 for share, _ in wrong)


def next_step(sim: Simulator, q: np.ndarray, v: np.ndarray, u: np.ndarray, modes: tuple[int, ...]) -> bool:
    """Return whether the simulator's next step leaves the feet in these modes, sticking."""
    sim.reset(q, v)
    result = sim.advance(u)
    same = tuple(int(mode) for mode in result.mode) == modes
    return same and not result.sliding[np.array(modes) > 0].any() and result.unresolved == 0


def test_conditions_of_the_step_find_the_wrenches_of_the_simulator(biped: Robot) -> None:
    """The joints are damped and fast. The conditions are checked in every step that satisfies them."""
    damped = replace(biped, joint_damping=np.where(np.isin(np.arange(biped.model.nv), biped.idx_v), 2.0, 0.0))
    states = Stances(damped, seed=5)
    sim = Simulator(damped, physics_dt=H, hardware={"joint_stops": False})
    compared = 0
    for _, state in zip(range(100), states.resting(H), strict=False):
        conditions = sticking_conditions(state.support, state.keep, h=H)
        wish = 0.1 * states.rng.normal(size=damped.nu) * damped.effort_limit
        u = TorqueSet(conditions, damped.effort_limit).nearest(wish)
        if u is None or not next_step(sim, state.q, state.v, u, conditions.modes):
            continue
        compared += 1
        wrenches = dict(zip(conditions.held, conditions.wrench(u), strict=True))
        for foot, found in zip(state.support.feet, sim.contact.wrench, strict=True):
            in_sole = (wrenches.get(foot.name, np.zeros(6)).reshape(2, 3) @ foot.rotation).reshape(6)
            np.testing.assert_allclose(found, in_sole, atol=1e-4 * damped.weight)
    assert compared > 20


def test_conditions_of_the_step_tend_to_those_of_continuous_time(biped: Robot) -> None:
    """First order in h, where the state is one between two steps: wrenches, and how vertices lift from turning feet."""
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        wrench = lift = 0.0
        for _, state in zip(range(40), Stances(biped, seed=2).resting(h), strict=False):
            u = np.zeros(biped.nu)
            step = sticking_conditions(state.support, state.keep, h=h)
            smooth = sticking_conditions(state.support, state.keep)
            wrench = max(wrench, float(np.abs(step.wrench(u) - smooth.wrench(u)).max(initial=0.0)))
            lifts = ["lifts" in label for label in smooth.exact_labels]
            lift = max(lift, float(np.abs(step.margins(u) - smooth.margins(u))[lifts].max(initial=0.0)))
        errors.append((wrench, lift))
    np.testing.assert_allclose(np.divide(errors[0], errors[1]), 2.0, rtol=0.15)
    np.testing.assert_allclose(np.divide(errors[1], errors[2]), 2.0, rtol=0.15)


def test_linear_conditions_are_exact_where_they_were_made_and_the_pyramid_is_around_the_cone(biped: Robot) -> None:
    states = Stances(biped, seed=3)
    for _, state in zip(range(60), states.resting(H), strict=False):
        conditions = sticking_conditions(state.support, state.keep, sides=16)
        u = 0.2 * states.rng.normal(size=biped.nu) * biped.effort_limit
        A, B = conditions.linear(u)
        exact = conditions.margins(u)
        pressing = [m for label, m in zip(conditions.exact_labels, exact, strict=True) if "lifts" not in label]
        if pressing and min(pressing[: -len(conditions.held)]) > 0.0:
            np.testing.assert_allclose(A @ u + B, exact, rtol=1e-6, atol=1e-5)
        if conditions.holds(u):
            assert (conditions.A @ u + conditions.B > 0.0).all()


def test_the_nearest_torques_are_no_farther_than_others_of_the_set(biped: Robot) -> None:
    """In a plane the set is convex and the result is exact to rounding.

    With torsion, whose limit depends on the CoP, it is approximate.
    """
    slack = 1e-2 if biped.free_flyer else 1e-4
    states = Stances(biped, seed=4)
    rng = states.rng
    limit = biped.effort_limit
    changed = 0
    for _, state in zip(range(12), states.resting(H), strict=False):
        torques = TorqueSet(sticking_conditions(state.support), limit)
        wanted = rng.uniform(-1.0, 1.0, biped.nu) * limit
        nearest = torques.nearest(wanted)
        if nearest is None:
            continue
        changed += not torques.contains(wanted)
        assert torques.contains(nearest)
        assert (np.abs(nearest) <= limit).all()
        distance = np.linalg.norm((nearest - wanted) / limit)
        for _ in range(60):
            other = nearest + rng.choice([1e-3, 1e-2, 0.1]) * rng.normal(size=biped.nu) * limit
            if torques.contains(other):
                assert np.linalg.norm((other - wanted) / limit) > distance - slack
    assert changed > 5


def test_the_safest_torques_can_be_off_by_their_radius_in_any_direction(biped: Robot) -> None:
    conditions = sticking_conditions(SupportReader(biped).at(biped.q_nominal, np.zeros(biped.model.nv)))
    torques = TorqueSet(conditions, biped.effort_limit)
    torque, radius = torques.safest()
    assert radius > 0.05
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(300, biped.nu))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    assert all(torques.contains(torque + 0.98 * radius * d * biped.effort_limit) for d in directions)


def test_the_weakest_condition_ends_where_it_says(biped: Robot) -> None:
    """That far along the normal of its plane, and nearer for none of the others."""
    conditions = sticking_conditions(SupportReader(biped).at(biped.q_nominal, np.zeros(biped.model.nv)))
    torque, _ = TorqueSet(conditions, biped.effort_limit).safest()
    distance, what = weakest(conditions, torque)
    i = conditions.exact_labels.index(what)
    assert "friction" not in what
    normal = conditions.linear(torque)[0][i]
    end = torque - distance * normal / np.linalg.norm(normal)
    assert distance > 1.0
    assert conditions.margins(end)[i] == pytest.approx(0.0, abs=1e-6)
    assert np.delete(conditions.margins(end), i).min() > -1e-6


def test_torques_beyond_the_limits_are_not_in_the_set() -> None:
    robot = load_robot("biped14")
    conditions = sticking_conditions(SupportReader(robot).at(robot.q_nominal, np.zeros(robot.model.nv)))
    u = standing_torque(robot)
    assert TorqueSet(conditions, np.abs(u) + 1e-6).contains(u)
    assert not TorqueSet(conditions, np.abs(u).max() * np.full(robot.nu, 0.99)).contains(u)


def test_a_push_counts_as_a_force_on_the_robot(tmp_path: Path) -> None:
    """Upwards it takes weight from the sole, sideways it uses friction; the sole origin is the root of the box."""
    box = box_robot(tmp_path, rectangle(0.2, 0.1), mass=2.0, height=0.05, mu_s=0.5)
    q = pin.SE3ToXYZQUAT(pin.SE3.Identity())
    up = np.array([3.0, 0.0, 8.0, 0.0, 0.0, 0.0])
    conditions = sticking_conditions(SupportReader(box).at(q, np.zeros(6), up))
    wrench = conditions.wrench(np.zeros(0))[0]
    np.testing.assert_allclose(wrench, [-3.0, 0.0, 2.0 * G - 8.0, 0.0, 0.0, 0.0], atol=1e-9)
    assert conditions.margins(np.zeros(0))[-1] == pytest.approx(0.5 * (2.0 * G - 8.0) - 3.0)


def test_there_are_no_torques_that_hold_a_robot_that_is_tipping() -> None:
    robot = load_robot("biped14")
    v = np.zeros(robot.model.nv)
    support = SupportReader(robot).at(robot.q_nominal, v)
    assert TorqueSet(sticking_conditions(support), robot.effort_limit).safest().radius > 0.0
    torques = TorqueSet(sticking_conditions(support.with_friction(0.0)), robot.effort_limit)
    assert torques.safest().radius <= 0.0
    assert torques.nearest(np.zeros(robot.nu)) is None


def test_what_cannot_be_asked_is_refused() -> None:
    robot = load_robot("biped14")
    support = SupportReader(robot).at(robot.q_nominal, np.zeros(robot.model.nv))
    with refusal(place="foot 'left': vertices", value=[0, 2]):
        sticking_conditions(support, {"left": (0, 2)})
    with refusal(UnknownNameError, name="middle", choices=("left", "right")):
        sticking_conditions(support, {"middle": (0,)})
    with refusal(place="foot 'left': vertices", value=[7]):
        mode_of(support.feet[0], (7,))
    with refusal(place="foot 'left': reserve"):
        sticking_conditions(support, reserve=Reserve(edge=0.07))
    with pytest.raises(ConfigError):
        Reserve(friction=1.0)
    q = robot.q_nominal.copy()
    q[2] += 0.1
    air = SupportReader(robot).at(q, np.zeros(robot.model.nv))
    with refusal(place="foot 'left': vertices [0, 1, 2, 3]"):
        sticking_conditions(air, {"left": range(4)})
    assert weakest(sticking_conditions(air), np.zeros(robot.nu)) == (np.inf, "")
    with refusal(place="limit"):
        TorqueSet(sticking_conditions(support), np.zeros(14))


def test_a_reserve_moves_the_limits_by_what_it_says() -> None:
    robot = load_robot("biped14")
    support = SupportReader(robot).at(robot.q_nominal, np.zeros(robot.model.nv))
    u = standing_torque(robot)
    plain = sticking_conditions(support)
    less = sticking_conditions(support, reserve=Reserve(force=10.0, edge=0.01, friction=0.1))
    force = plain.wrench(u)[0, 2]
    change = plain.margins(u) - less.margins(u)
    np.testing.assert_allclose(change[:5], [10.0, *[0.01 * force] * 4], rtol=1e-9)
    np.testing.assert_allclose(change[10], 0.1 * 0.45 * force, rtol=1e-9)


def test_a_reserve_holds_the_cop_off_both_ends_of_a_blade() -> None:
    robot = load_robot("planar_biped")
    support = SupportReader(robot).at(robot.q_nominal, np.zeros(robot.model.nv))
    u = np.zeros(robot.nu)
    plain = sticking_conditions(support)
    change = plain.margins(u) - sticking_conditions(support, reserve=Reserve(edge=0.01)).margins(u)
    expected = [0.0 if "CoP" not in label else 0.01 for label in plain.exact_labels]
    forces = [plain.wrench(u)[plain.held.index(label.split(":")[0]), 2] for label in plain.exact_labels]
    np.testing.assert_allclose(change, np.multiply(expected, forces), atol=1e-9)
