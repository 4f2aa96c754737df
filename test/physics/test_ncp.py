"""Difficult steps solved again as per-vertex Coulomb contacts, without any sets: the deviation of the models."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from motion_support import Motion
from physics_support import SELECTION_MODELS, G, box_robot, rectangle
from reference_contact import Step
from reference_vertices import VertexSolution, solve_vertices

from bipedsim.contact.base import ContactResult
from bipedsim.contact.models import make_contact_model
from bipedsim.dynamics.step import Dynamics
from bipedsim.ground.ground import Ground
from bipedsim.model import load_robot
from bipedsim.runs.scenario import SCENARIOS

H = 1e-3
ROBOTS = ("biped14", "talos", "g1")
MOTIONS = {"squat": 2.0, "sway": 4.0, "shift": 5.0, "push": 3.0, "toe_fall": 4.0, "drop": 1.0, "jump": 2.5}
EACH = 48


@dataclass
class Hard:
    """A difficult step: its initial state, and the state of the model from the step before."""

    name: str
    step: Step
    memory: dict[str, Any]


def is_hard(result: ContactResult, before: np.ndarray, weight: float) -> bool:
    """Whether both feet bear load, and one is near its edge, near its cone, hit, or changes its mode."""
    if not (result.impulse[:, 2] > 0.0).all():
        return False
    near_edge = (result.cop_margin < 5e-3).any()
    near_cone = (result.friction_used > 0.5).any()
    hit = result.wrench[:, 2].sum() > 1.5 * weight
    return bool(near_edge or near_cone or hit or (result.mode != before).any())


@pytest.fixture(scope="module")
def hard() -> list[Hard]:
    """Return difficult steps of all robots in all motions, with ordinary double-support steps where a motion has too
    few.

    The models solve each step from the modes of the step before, with the feet anchored at their positions. Even
    position errors of a millionth of a millimetre would otherwise set the vertices against each other.
    """
    rng = np.random.default_rng(8)
    steps = []
    for name in ROBOTS:
        robot = load_robot(name)
        weight = robot.weight
        dynamics = Dynamics(robot, Ground.flat(), H)
        for motion_name, seconds in MOTIONS.items():
            motion = Motion(robot, SCENARIOS[motion_name], "one_step", tilt=0.02 if motion_name == "drop" else 0.0)
            hard, plain = [], []
            for _ in range(round(seconds / H)):
                tau = motion.torque()
                before = motion.sim.q.copy(), motion.sim.v.copy(), tau.copy()
                memory = motion.sim.snapshot().contact
                result = motion.step(tau)
                if motion.fallen:
                    break
                if is_hard(result, memory["mode"], weight):
                    hard.append((before, memory))
                elif (result.impulse[:, 2] > 0.0).all():
                    plain.append((before, memory))
            chosen = _some(rng, hard, EACH)
            chosen += _some(rng, plain, EACH - len(chosen))
            for (q, v, tau), memory in chosen:
                memory["anchored"][:] = False
                projection = copy.deepcopy(dynamics.project(q, v, tau))
                steps.append(Hard(f"{name} {motion_name}", Step.fresh(projection, robot.soles, H), memory))
    return steps


@pytest.fixture(scope="module")
def judged(hard: list[Hard]) -> VertexSolution:
    """Return the per-vertex contact forces of these steps."""
    mu = np.array([[sole.friction_static for sole in h.step.soles] for h in hard])
    return solve_vertices([h.step for h in hard], mu)


def solved_by(model: str, hard: list[Hard]) -> list[ContactResult]:
    """Return the solutions of a contact model for the steps."""
    results = []
    for h in hard:
        contact = make_contact_model(model, h.step.projection, H)
        contact.set_state(h.memory)
        results.append(contact.solve(h.step.projection))
    return results


def _some(rng: np.random.Generator, items: list, count: int) -> list:
    if len(items) <= count:
        return items
    return [items[i] for i in sorted(rng.choice(len(items), count, replace=False))]


def quantiles(values: np.ndarray) -> str:
    shares = (0.5, 0.9, 0.99, 1.0)
    return "  ".join(
        f"{share:.0%} {value:.2g}" for share, value in zip(shares, np.quantile(values, shares), strict=True)
    )


@functools.cache
def limit_surface_gap(length: float, width: float) -> float:
    """Return the largest distance of an ellipsoid of force and torsion from a rectangle on its four vertices, over mu
    f_z.

    Another distribution of the load over the vertices differs by less. Both surfaces are convex in (f_x, f_y, torsion /
    c), so their distance is the largest difference of their support functions. A support function is the dissipation at
    slips (u_x, u_y, c w_z) of length one. It is 1 for the ellipsoid, and the mean of |u + w x r| for the vertices. Load
    and CoP are in the middle; c is then the distance to the vertices.
    """
    arms = 0.5 * np.array([[length, width], [-length, width], [-length, -width], [length, -width]])
    c = np.linalg.norm(arms[0])
    heading, share = np.meshgrid(np.linspace(0.0, np.pi, 181), np.linspace(0.0, 0.5 * np.pi, 91))
    u = np.cos(share)[..., None] * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    spin = np.sin(share)[..., None, None] / c
    slips = u[:, :, None, :] + spin * np.stack([-arms[:, 1], arms[:, 0]], axis=-1)
    dissipated = np.linalg.norm(slips, axis=-1).mean(axis=2)
    return float(np.abs(dissipated - 1.0).max())


def spin_over_slip(step: Step, result: ContactResult, k: int) -> float:
    """Return c |w_z| / |u_t| of foot ``k`` at its CoP after the step, c the distance of the farthest vertex."""
    p = step.projection
    w = (p.w_free + p.G @ result.impulse.ravel())[6 * k : 6 * k + 6]
    arm = p.rotation[k, :, :2] @ result.cop[k]
    slip = w[:3] + np.cross(w[3:], arm)
    reach = np.linalg.norm(step.arms(k) - arm, axis=1).max()
    return float(reach * abs(w[5]) / max(np.hypot(slip[0], slip[1]), 1e-12))


def test_limit_surfaces_of_four_vertices_and_of_the_ellipsoid_are_near() -> None:
    """For a square, worst where one vertex stands still: of sqrt 2 the vertices dissipate (2 + 2 sqrt 2) / 4."""
    assert limit_surface_gap(0.2, 0.2) == pytest.approx(1.0 - (2.0 + np.sqrt(8.0)) / np.sqrt(32.0), abs=1e-3)
    assert 0.14 < limit_surface_gap(0.2, 0.1) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_sticking_feet_carry_what_per_vertex_coulomb_contacts_carry(
    hard: list[Hard], judged: VertexSolution, model: str
) -> None:
    results = solved_by(model, hard)
    solved = judged.residual <= 1e-10
    differences = np.array([(wrench - r.impulse) / H for wrench, r in zip(judged.wrench, results, strict=True)])
    forces = np.linalg.norm(differences[:, :, :3], axis=2)
    torques = np.linalg.norm(differences[:, :, 3:], axis=2)
    loaded = np.array([r.impulse[:, 2] > 0.0 for r in results])
    sliding = np.array([r.sliding for r in results])
    share = forces / np.array([r.wrench[:, 2].sum() for r in results])[:, None]
    print(
        f"\n{model}: {len(hard)} steps, {solved.mean():.1%} solved to 1e-10 m/s, "
        f"the worst to {judged.residual.max():.1e} m/s"
    )
    for kind, chosen in (("sticking", loaded & ~sliding), ("sliding", loaded & sliding)):
        sharp = chosen & solved[:, None]
        print(f"{kind}, {sharp.sum()} feet: force [N] {quantiles(forces[sharp])}")
        print(f"   torque [N.m] {quantiles(torques[sharp])};  force over load {quantiles(share[sharp])}")
    for i in np.argsort(-np.where(solved[:, None] & loaded, forces, 0.0).max(axis=1))[:8]:
        r = results[i]
        print(
            f"   {hard[i].name}: {forces[i].round(2)} N, modes {r.mode}, sliding {r.sliding}, "
            f"f_z {r.wrench[:, 2].round(1)} N"
        )
    assert len(hard) >= 1000
    assert solved.mean() > 0.9
    sticking = loaded & ~sliding & solved[:, None]
    assert np.median(forces[sticking]) < 0.1
    assert np.median(torques[sticking]) < 0.1
    # The tail contains feet that are about to slip or turn, whose vertices share the load differently, and candidates
    # between two sets.
    assert np.quantile(share[sticking], 0.99) < 1e-3
    assert share[sticking].max() < 0.05
    # Sliding feet: the load may be shared otherwise.
    slipping = loaded & sliding & solved[:, None]
    spin = np.array([[spin_over_slip(h.step, r, k) for k in range(2)] for h, r in zip(hard, results, strict=True)])
    mu = np.array([[sole.friction_dynamic for sole in h.step.soles] for h in hard])
    gap = np.array([[limit_surface_gap(*np.ptp(sole.vertices, axis=0)) for sole in h.step.soles] for h in hard])
    print(f"gap of limit surfaces {gap.max():.3f}; spin over slip {quantiles(spin[slipping])}")
    for limit in (1e-3, 1e-2, 1e-1):
        slow = slipping & (spin < limit)
        print(f"   spin below {limit}, {slow.sum()} feet: force over load {quantiles(share[slow])}")
    assert slipping.sum() >= 50
    assert (share[slipping] <= gap[slipping] * mu[slipping]).all()
    assert np.median(share[slipping]) < 1e-3
    # Without spin both forces are mu f_z opposite to the slip. The effect of spin is of second order.
    for spin_limit, share_limit in ((1e-3, 1e-6), (1e-2, 1e-3)):
        straight = slipping & (spin < spin_limit)
        assert straight.sum() >= 10
        assert share[straight].max() < share_limit


@pytest.mark.parametrize("push", [0.3, 0.9])
def test_the_judge_knows_a_box(tmp_path: Path, push: float) -> None:
    """A box pushed at its centre of pressure: at rest below mu m g, beyond it accelerated by the rest."""
    robot = box_robot(tmp_path, rectangle(0.3, 0.2), mu_s=0.5, mu_d=0.5)
    dynamics = Dynamics(robot, Ground.flat(), H)
    projection = dynamics.project(robot.q_nominal, np.zeros(6), np.zeros(0))
    mass, height = robot.mass, 0.1
    force = push * mass * G
    projection.w_free[:] += H * projection.G @ np.array([force, 0.0, 0.0, 0.0, 0.0, 0.0])
    solution = solve_vertices([Step.fresh(projection, robot.soles, H)], np.array([[0.5]]))
    assert solution.residual[0] < 1e-12
    carried = min(force, 0.5 * mass * G)
    np.testing.assert_allclose(solution.wrench[0, 0, :3] / H, [-carried, 0.0, mass * G], atol=1e-8)
    # The push and friction act at the sole. The box turns about its centre of mass only by its acceleration.
    assert solution.wrench[0, 0, 4] / H == pytest.approx((force - carried) * height, abs=1e-8)
