"""The adaptive law of a biped: its dynamics against pinocchio's, its function of Lyapunov along true accelerations."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose

from bipedsim.control.output import PlanarWalk
from bipedsim.model import load_robot
from bipedsim.sim import Simulator
from bipedsim_studies.planar import AdaptiveGains, AdaptiveWalk, BelievedDynamics
from bipedsim_studies.reproduce.hurmuzlu2001.adaptive_walk import GAIT, GROUPS
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import Z, mechanics, of_soles

ROBOT = load_robot("planar_biped")
MODEL = ROBOT.model
GAINS = AdaptiveGains(slope=7.0, damping=12.0, gain=0.02)
BELIEF = np.array([0.7, 1.3, 0.8, 1.2])


@lru_cache
def law(adapts: bool = True) -> AdaptiveWalk:
    """Return the control law; planning takes a second."""
    return AdaptiveWalk(ROBOT, PlanarWalk(ROBOT, GAIT, "test"), GROUPS, BELIEF, 1e-3, gains=GAINS, adapts=adapts)


def mass_matrix(q: np.ndarray) -> np.ndarray:
    data = MODEL.createData()
    pin.crba(MODEL, data, q)
    return np.triu(data.M) + np.triu(data.M, 1).T


def state(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return ROBOT.q_nominal + 0.2 * rng.normal(size=9), rng.normal(size=9)


def test_believed_dynamics_are_linear_in_masses_and_true_for_true_ones() -> None:
    dynamics = BelievedDynamics(ROBOT, GROUPS)
    assert_allclose(dynamics.masses.sum(), ROBOT.mass)
    for seed in range(4):
        q, v = state(seed)
        a = np.random.default_rng(9).normal(size=9)
        Y = dynamics.by_group(q, v, v, a)
        # pinocchio's rnea knows the rotors of the drives.
        assert_allclose(Y.sum(axis=1) + dynamics.known(v, a), pin.rnea(MODEL, MODEL.createData(), q, v, a), atol=1e-9)
        heavy = ROBOT
        for joint in GROUPS["thighs"]:
            i = MODEL.getJointId(joint)
            body = MODEL.inertias[i]
            heavy = heavy.with_inertia(i, pin.Inertia(2.0 * body.mass, body.lever, 2.0 * body.inertia))
        forces = Y @ [1.0, 2.0, 1.0, 1.0] + dynamics.known(v, a)
        assert_allclose(forces, pin.rnea(heavy.model, heavy.model.createData(), q, v, a), atol=1e-9)


def test_coriolis_forces_have_no_power_beside_the_change_of_the_mass_matrix() -> None:
    """s^T (M' - 2 C(q, v)) s = 0 for every s."""
    dynamics = BelievedDynamics(ROBOT, GROUPS)
    for seed in range(4):
        q, v = state(seed)
        s = np.random.default_rng(5).normal(size=9)
        Cs = (dynamics.by_group(q, v, s, np.zeros(9)) - dynamics.by_group(q, v, np.zeros(9), np.zeros(9))).sum(axis=1)
        h = 1e-6
        change = (mass_matrix(q + h * v) - mass_matrix(q - h * v)) / (2.0 * h)
        assert s @ change @ s == pytest.approx(2.0 * s @ Cs, rel=1e-6, abs=1e-6)


def rows(q: np.ndarray, v: np.ndarray, feet: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    points = mechanics(ROBOT, q, v, of_soles(ROBOT))
    at = [2 * foot + k for foot in feet for k in range(2)]
    return points.rows[at].reshape(-1, 9), points.drift[at].ravel()


@pytest.mark.parametrize("adapts", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_v_falls_as_fast_as_the_law_says_whatever_the_truth(seed: int, adapts: bool) -> None:
    """On one foot, by differences along the accelerations of pinocchio's constrained robot; a reference at rest."""
    control = law(adapts)
    control.share = np.array([1.0, 0.0])
    q, v = state(seed)
    J, drift = rows(q, v, (0,))
    v = v - np.linalg.pinv(J, 1e-9) @ (J @ v)
    J, drift = rows(q, v, (0,))
    goal = ROBOT.q_nominal[3:]

    def found(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        tau, learns = control.law(q, v, rows(q, v, (0,))[0], q[3:] - goal, v[3:], np.zeros(6))
        return tau, learns, control.s.copy()

    def lyapunov(q: np.ndarray, v: np.ndarray, belief: np.ndarray) -> float:
        s = found(q, v)[2]
        gain = GAINS.gain * ROBOT.mass / control.dynamics.masses
        return float(0.5 * s @ mass_matrix(q) @ s + 0.5 * np.sum((belief - 1.0) ** 2 / gain))

    control.belief = BELIEF.copy()
    tau, learns, s = found(q, v)
    assert_allclose(J @ s, 0.0, atol=1e-10)
    M = mass_matrix(q)
    nle = pin.nonLinearEffects(MODEL, MODEL.createData(), q, v) + ROBOT.joint_damping * v
    free = np.linalg.solve(M, np.concatenate([np.zeros(3), tau]) - nle)
    held = np.linalg.solve(M, J.T)
    a = free - held @ (np.linalg.pinv(J @ held, 1e-9) @ (J @ free + drift))
    h = 1e-5
    # Along the parabola, on which the foot stays to third order.
    sides = [lyapunov(q + k * v + 0.5 * k * k * a, v + k * a, BELIEF + k * learns) for k in (-h, h)]
    change = (sides[1] - sides[0]) / (2.0 * h)
    falls = -GAINS.damping * s @ M @ s - s @ (ROBOT.joint_damping * s)
    # Beliefs that stay leave s^T Y (belief - truth).
    left = 0.0 if adapts else float(s @ disturbance(control, q, v, goal))
    assert change == pytest.approx(falls + left, rel=1e-4)
    assert falls < -1.0
    assert adapts or abs(left) > 1.0


def disturbance(control: AdaptiveWalk, q: np.ndarray, v: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return Y (belief - truth) of the reference motion, from the torques under true beliefs."""
    J = rows(q, v, (0,))[0]
    taus = []
    for belief in (BELIEF, np.ones(4)):
        control.belief = belief
        taus.append(control.law(q, v, J, q[3:] - goal, v[3:], np.zeros(6))[0])
    control.belief = BELIEF.copy()
    # The ground forces have no power on s, so the difference of the drive torques is the full result.
    return np.concatenate([np.zeros(3), taus[0] - taus[1]])


def test_feet_share_what_drives_cannot_do() -> None:
    control = law()
    control.belief = np.ones(4)
    q, v = ROBOT.q_nominal, np.zeros(9)
    for share in ([0.5, 0.5], [0.8, 0.2], [1.0, 0.0]):
        control.share = np.array(share)
        feet = tuple(k for k in range(2) if share[k] > 0.0)
        J, _ = rows(q, v, feet)
        tau, _ = control.law(q, v, J, np.zeros(6), v[3:], np.zeros(6))
        # At rest, the ground supports gravity minus the torques.
        carried = pin.computeGeneralizedGravity(MODEL, MODEL.createData(), q) - np.concatenate([np.zeros(3), tau])
        force = np.linalg.lstsq(J.T, carried, rcond=None)[0].reshape(-1, 2, 3)
        assert_allclose(J.T @ force.ravel(), carried, atol=1e-8)
        assert force[..., Z].sum() == pytest.approx(ROBOT.weight)
        assert_allclose(force[..., Z].sum(axis=1) / ROBOT.weight, np.array(share)[list(feet)], atol=1e-6)


def test_a_reset_forgets_what_was_learned() -> None:
    control = law()
    sim = Simulator(ROBOT)
    torques = []
    for _ in range(2):
        observation = sim.reset()
        control.reset(observation)
        for _ in range(5):
            observation = sim.step(control.update(observation).tau_joint)
        torques.append(control.update(observation).tau_joint.copy())
        assert np.abs(control.belief - BELIEF).max() > 1e-5
    assert np.array_equal(*torques)
