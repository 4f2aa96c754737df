"""Closed chains of a robot: valid entries of robot.yaml, and the postures that close the chains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from loop_support import BASE, CRANK, ROCKER, ROD, linkage, rocker_angle, with_loops
from refusals import faults_of, refusal

from bipedsim.errors import ConfigError
from bipedsim.model import Chains, LoopEquations, inverse_inertia, load_robot, standing_torque

_BIPED = load_robot("biped14")
_PARALLEL = load_robot("parallel_ankles")
LENGTHS = (CRANK, ROD, ROCKER, BASE)


def test_a_linkage_is_closed_where_two_circles_meet(tmp_path: Path) -> None:
    robot = linkage(tmp_path)
    for crank in np.linspace(-0.4, 1.2, 9):
        q = robot.settle([crank])
        assert q[2] == pytest.approx(rocker_angle(crank), abs=1e-11)
        assert LoopEquations(robot.model, robot.loops).gaps(q).max() < 1e-12


def test_what_cannot_be_closed_is_refused_with_its_name(tmp_path: Path) -> None:
    with refusal(place=f"{tmp_path / 'robot.yaml'}: posture"):
        linkage(tmp_path, (0.2, 0.1, 0.1, 0.8))
    robot = linkage(tmp_path)
    with refusal(place=f"{tmp_path / 'robot.yaml'}: posture"):
        linkage(tmp_path, posture={"a": 0.5}, joints=["a", "b", "c"], passive=[])
    q = robot.q_nominal.copy()
    q[1] += 1e-3
    with refusal(place="loop 'pin'"):
        robot.check_closed(q)
    robot.check_closed(robot.closed(q))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    loops: dict[str, Any] = {
        "one": {"frame1": "rod", "frame2": "wheel"},
        "two": {"frame1": "axle", "frame2": "wheel"},
        "three": {"frame1": "rod", "frame2": "rod"},
    }
    with pytest.raises(ConfigError) as caught:
        linkage(tmp_path, loops=loops)
    assert faults_of(caught.value) == {
        ("loops.one.frame2", "'wheel'"),
        ("loops.two.frame1", "'axle'"),
        ("loops.two.frame2", "'wheel'"),
        ("loops.three", "None"),
    }
    loops = {"one": {"type": "glue", "frame1": "rod", "frame2": "rocker", "placement": {}}, "two": {"frame1": "rod"}}
    with pytest.raises(ConfigError) as caught:
        linkage(tmp_path, loops=loops)
    assert faults_of(caught.value) == {
        ("loops.one", "'glue'"),
        ("loops.one", "'placement'"),
        ("loops.two.frame2", "None"),
    }


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 3), kind=st.sampled_from(["connect", "weld"]))
def test_the_jacobian_is_the_derivative_of_the_error(seed: int, count: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    q = pin.integrate(_BIPED.model, _BIPED.q_nominal, 0.4 * rng.normal(size=_BIPED.model.nv))
    robot = with_loops(_BIPED, q, seed, count, kind)
    equations = LoopEquations(robot.model, robot.loops)
    value, rows = equations.at(q)
    np.testing.assert_allclose(value, 0.0, atol=1e-13)
    rows = rows.copy()
    direction, e = rng.normal(size=robot.model.nv), 1e-6
    ahead, behind = (equations.at(pin.integrate(robot.model, q, s * e * direction))[0] for s in (1.0, -1.0))
    np.testing.assert_allclose((ahead - behind) / (2.0 * e), rows @ direction, atol=1e-7)


def test_parallel_ankles_stands_with_its_chains_closed() -> None:
    robot = _PARALLEL
    equations = LoopEquations(robot.model, robot.loops)
    assert equations.gaps(robot.q_nominal).max() < 1e-12
    data = robot.model.createData()
    com = pin.centerOfMass(robot.model, data, robot.q_nominal)
    soles = [(data.oMi[s.joint_id] * s.placement_joint_sole).act(np.append(s.centre, 0.0)) for s in robot.soles]
    centre = np.mean(soles, axis=0)
    np.testing.assert_allclose(centre, [com[0], com[1], 0.0], atol=1e-9)
    # Crank, rod, foot and shank are a parallelogram.
    angle = {name: robot.q_nominal[robot.model.joints[i].idx_q] for i, name in enumerate(robot.model.names) if i > 1}
    for side in "lr":
        for which in ("outer", "inner"):
            assert angle[f"{side}_crank_{which}"] == pytest.approx(angle[f"{side}_ankle_pitch"], abs=1e-9)
            assert angle[f"{side}_rod_{which}_pitch"] == pytest.approx(-angle[f"{side}_ankle_pitch"], abs=1e-9)


def test_standing_torques_do_no_work_in_motions_of_the_chains() -> None:
    """Virtual work: in any motion with constant feet and closed chains, drives and gravity balance."""
    robot = _PARALLEL
    model, data = robot.model, robot.model.createData()
    q = robot.q_nominal
    tau = np.zeros(model.nv)
    tau[robot.idx_v] = standing_torque(robot)
    gravity = pin.computeGeneralizedGravity(model, data, q)
    pin.computeJointJacobians(model, data, q)
    feet = [pin.getJointJacobian(model, data, sole.joint_id, pin.WORLD) for sole in robot.soles]
    rows = np.vstack([*feet, LoopEquations(model, robot.loops).at(q)[1]])
    _, sizes, across = np.linalg.svd(rows)
    motions = across[np.count_nonzero(sizes > 1e-9) :]
    assert len(motions) == model.nv - 12 - 12
    np.testing.assert_allclose(motions @ (tau - gravity), 0.0, atol=1e-9)


def test_the_inertia_that_drives_feel_is_that_with_the_chains_closed(tmp_path: Path) -> None:
    """Of a linkage of one coordinate: twice the kinetic energy over the square of its rate."""
    robot = linkage(tmp_path)
    model, data, crank = robot.model, robot.model.createData(), float(robot.q_nominal[0])
    e = 1e-6
    rate = (robot.settle([crank + e]) - robot.settle([crank - e])) / (2.0 * e)
    energy = pin.computeKineticEnergy(model, data, robot.q_nominal, rate)
    assert 1.0 / inverse_inertia(robot)[0, 0] == pytest.approx(2.0 * energy, rel=1e-8)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_chains_follow_what_the_drives_do(seed: int) -> None:
    """Angles by closing, rates by differences, torques by virtual work."""
    robot = _PARALLEL
    rng = np.random.default_rng(seed)
    chains = Chains(robot)
    assert chains.determined
    driven = robot.posture + rng.uniform(-0.15, 0.15, robot.nu)
    rates = rng.normal(size=robot.nu)
    chains.follow(driven, rates)
    q, v = robot.settle(driven), np.zeros(robot.model.nv)
    followed = q.copy()
    chains.fill(followed, v)
    np.testing.assert_allclose(followed, q, atol=1e-8)
    e = 1e-6
    passive = [robot.model.joints[robot.model.getJointId(name)].idx_q for name in chains.joint_names]
    ahead, behind = (robot.settle(driven + s * e * rates)[passive] for s in (1.0, -1.0))
    np.testing.assert_allclose(chains.rates, (ahead - behind) / (2.0 * e), atol=1e-5)
    torque = rng.normal(size=robot.model.nv)
    carried = torque.copy()
    chains.carry(carried)
    v[robot.idx_v] = rates
    assert carried @ v == pytest.approx(torque @ v, abs=1e-7)
    assert not carried[np.setdiff1d(np.arange(6, robot.model.nv), robot.idx_v)].any()


def test_from_tick_to_tick_one_iteration_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reset clears the tracked solution, to the bit."""
    chains, asked = Chains(_PARALLEL), []
    of = LoopEquations.at
    monkeypatch.setattr(LoopEquations, "at", lambda self, q: asked.append(0) or of(self, q))
    rates = np.random.default_rng(0).uniform(-1.0, 1.0, _PARALLEL.nu)
    ways = [_PARALLEL.posture + 1e-3 * i * rates for i in range(50)]
    followed = []
    for _ in range(2):
        chains.reset()
        for i, driven in enumerate(ways):
            asked.clear()
            chains.follow(driven, rates)
            assert i < 2 or len(asked) <= 2
        followed.append(chains.angles.copy())
    np.testing.assert_array_equal(*followed)


def test_a_measurement_that_is_missing_passes_on() -> None:
    chains = Chains(_PARALLEL)
    driven, still = _PARALLEL.posture.copy(), np.zeros(_PARALLEL.nu)
    chains.follow(driven, still)
    angles = chains.angles.copy()
    lost = driven.copy()
    lost[3] = np.nan
    chains.follow(lost, still)
    assert np.isnan(chains.angles).all()
    assert np.isnan(chains.rates).all()
    chains.follow(driven, still)
    np.testing.assert_allclose(chains.angles, angles, atol=1e-9)


def test_a_robot_without_loops_is_what_it_was() -> None:
    assert _BIPED.loops == ()
    q = pin.randomConfiguration(_BIPED.model, -np.ones(_BIPED.model.nq), np.ones(_BIPED.model.nq))
    np.testing.assert_array_equal(_BIPED.closed(q), q)
    _BIPED.check_closed(q)
    assert replace(_PARALLEL, loops=()).closed(_PARALLEL.q_nominal) is not _PARALLEL.q_nominal
