"""The compiled kernels against dense linear algebra, on random trees and random states."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st

from bipedsim.dynamics.protocol import Outcome
from bipedsim.dynamics.step import Dynamics
from bipedsim.ground.ground import Ground
from bipedsim.model.sole import Sole
from bipedsim.numerics.linear import (
    solve_cholesky,
    solve_dense,
    solve_least_norm,
    solve_pseudo_inverse,
    solve_singular,
)

H = 1e-3


def random_tree(seed: int, with_base: bool) -> SimpleNamespace:
    """Return a random branched robot with two feet on leaves of different branches."""
    rng = np.random.default_rng(seed)
    model = pin.Model()
    root = 0
    if with_base:
        root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
        model.appendBodyToJoint(root, pin.Inertia.Random(), pin.SE3.Identity())
    kinds = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
    leaves = []
    for branch in range(3):
        parent = root
        for i in range(int(rng.integers(3, 8))):
            placement = pin.SE3(pin.exp3(rng.normal(size=3)), 0.3 * rng.normal(size=3))
            parent = model.addJoint(parent, kinds[rng.integers(3)](), placement, f"j{branch}_{i}")
            inertia = pin.Inertia.FromEllipsoid(1.0 + rng.random(), *(0.1 + rng.random(3)))
            model.appendBodyToJoint(parent, inertia, pin.SE3(pin.exp3(rng.normal(size=3)), 0.1 * rng.normal(size=3)))
        leaves.append(parent)
    model.armature = 0.05 * rng.random(model.nv)
    soles = tuple(
        Sole(
            name=name,
            frame=name,
            joint_id=leaf,
            placement_joint_sole=pin.SE3(pin.exp3(rng.normal(size=3)), 0.2 * rng.normal(size=3)),
            vertices=np.array([[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]]),
            friction_static=0.5,
            friction_dynamic=0.5,
        )
        for name, leaf in zip(("left", "right"), leaves, strict=False)
    )
    return SimpleNamespace(
        model=model,
        soles=soles,
        joint_damping=rng.random(model.nv),
        loops=(),
        source="random tree",
        rng=rng,
        nv=model.nv,
        idx_v=np.arange(model.nv),
        free_flyer=with_base,
    )


def world_axes_jacobian(model: pin.Model, q: np.ndarray, sole: Sole) -> np.ndarray:
    """Return the (6, nv) Jacobian of the sole origin in world axes by pinocchio's frames."""
    copy = pin.Model(model)
    frame = copy.addFrame(pin.Frame("probe", sole.joint_id, 0, sole.placement_joint_sole, pin.FrameType.OP_FRAME))
    return pin.computeFrameJacobian(copy, copy.createData(), q, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("with_base", [True, False])
def test_projection_and_advance_agree_with_dense_algebra(seed: int, with_base: bool) -> None:
    robot = random_tree(seed, with_base)
    rng, model = robot.rng, robot.model
    axes = pin.exp3(rng.normal(size=3))
    point = rng.normal(size=3)
    dynamics = Dynamics(robot, Ground.plane(point, axes), H)
    q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
    v, tau = rng.normal(size=model.nv), 10.0 * rng.normal(size=model.nv)
    projection = dynamics.project(q, v, tau)

    data = model.createData()
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    rhs = H * (tau - pin.nonLinearEffects(model, data, q, v) - robot.joint_damping * v)
    implicit = M + H * np.diag(robot.joint_damping)
    turn = np.kron(np.eye(2), axes.T)
    J = np.vstack([turn @ world_axes_jacobian(model, q, sole) for sole in robot.soles])
    v_free = v + np.linalg.solve(implicit, rhs)
    G = J @ np.linalg.solve(implicit, J.T)
    np.testing.assert_allclose(projection.G, G, rtol=1e-10, atol=1e-10 * abs(G).max())
    np.testing.assert_allclose(projection.w_free, J @ v_free, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(projection.w_before, J @ v, rtol=1e-10, atol=1e-9)

    pin.framesForwardKinematics(model, data, q)
    for k, sole in enumerate(robot.soles):
        pose = data.oMi[sole.joint_id].act(sole.placement_joint_sole)
        np.testing.assert_allclose(projection.rotation[k], axes.T @ pose.rotation, atol=1e-12)
        np.testing.assert_allclose(projection.position[k], axes.T @ (pose.translation - point), atol=1e-12)
        flat = np.column_stack([sole.vertices, np.zeros(4)])
        np.testing.assert_allclose(projection.offsets[k], flat @ pose.rotation.T @ axes, atol=1e-12)

    placed = [pin.Frame(s.name, s.joint_id, 0, s.placement_joint_sole, pin.FrameType.OP_FRAME) for s in robot.soles]
    probed = pin.Model(model)
    frames = [probed.addFrame(frame) for frame in placed]
    moving = probed.createData()
    pin.forwardKinematics(probed, moving, q, v, np.zeros(model.nv))
    pin.updateFramePlacements(probed, moving)
    world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    bias = [turn @ pin.getFrameClassicalAcceleration(probed, moving, i, world).vector for i in frames]
    np.testing.assert_allclose(projection.bias, np.concatenate(bias), rtol=1e-9, atol=1e-9)

    impulse = rng.normal(size=(2, 6))
    v_next = v.copy()
    assert dynamics.advance(v_next, impulse) == Outcome.TAKEN
    fastest = dynamics.progress.fastest[0]
    expected = v_free + np.linalg.solve(implicit, J.T @ impulse.reshape(-1))
    np.testing.assert_allclose(v_next, expected, rtol=1e-9, atol=1e-9)
    assert fastest == pytest.approx(abs(expected).max(), rel=1e-9)
    np.testing.assert_allclose(dynamics.displacement, H * expected, rtol=1e-9, atol=1e-12)

    # Impulses within the step: the displacement is h v + h M^-1 (half the effect of the torques + the early impulses).
    late = rng.random((2, 1)) * impulse
    v_next = v.copy()
    dynamics.advance(v_next, impulse, late)
    np.testing.assert_allclose(v_next, expected, rtol=1e-9, atol=1e-9)
    change = 0.5 * (v_free - v) + np.linalg.solve(implicit, J.T @ late.reshape(-1))
    np.testing.assert_allclose(dynamics.displacement, H * (v + change), rtol=1e-9, atol=1e-12)


def test_advance_reports_what_is_not_finite() -> None:
    robot = random_tree(0, True)
    dynamics = Dynamics(robot, Ground.flat(), H)
    q, v = pin.neutral(robot.model), np.zeros(robot.nv)
    dynamics.project(q, v, v)
    impulse = np.zeros((2, 6))
    impulse[0, 2] = np.inf
    assert dynamics.advance(v, impulse) == Outcome.DIVERGED
    assert np.isnan(dynamics.progress.fastest[0])
    np.testing.assert_array_equal(v, 0.0)


@settings(max_examples=200)
@given(n=st.integers(1, 12), deficiency=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
def test_dense_solve_of_consistent_systems(n: int, deficiency: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = max(n - deficiency, 1)
    A = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))
    b = A @ rng.normal(size=n)
    x = np.zeros(n)
    work = [np.zeros(n, dtype=np.int64) for _ in range(2)]
    found = solve_dense(A.copy(), b.copy(), n, x, *work)
    assert found == rank
    np.testing.assert_allclose(A @ x, b, atol=1e-6 * max(abs(b).max(), 1.0))


@settings(max_examples=200)
@given(n=st.integers(1, 12), deficiency=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
def test_cholesky_solves_or_says_that_the_rank_is_missing(n: int, deficiency: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = max(n - deficiency, 1)
    half = rng.normal(size=(n, rank))
    A = half @ half.T
    b = A @ rng.normal(size=n)
    x = np.zeros(n)
    # Just above the tolerance of the rank, a solution may be returned: it then is one.
    if solve_cholesky(A, b, n, np.zeros((n, n)), x):
        np.testing.assert_allclose(A @ x, b, atol=1e-6 * max(abs(b).max(), 1.0))
    else:
        assert np.linalg.cond(A) > 1e11


@settings(max_examples=200)
@given(n=st.integers(2, 12), deficiency=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_singular_solve_gives_the_solution_of_least_norm(n: int, deficiency: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = max(n - deficiency, 1)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :rank]
    A = basis @ np.diag(10.0 ** rng.uniform(-3, 0, rank)) @ basis.T
    b = A @ rng.normal(size=n)
    x = np.zeros(n)
    solve_singular(A, b, n, np.zeros((n, n)), x, np.zeros(n), np.zeros(n))
    np.testing.assert_allclose(A @ x, b, atol=1e-12 * max(abs(b).max(), 1.0))
    np.testing.assert_allclose(x, np.linalg.pinv(A, rcond=1e-9) @ b, atol=1e-5 * max(abs(x).max(), 1.0))


@settings(max_examples=200)
@given(n=st.integers(1, 14), deficiency=st.integers(0, 9), seed=st.integers(0, 2**32 - 1))
def test_pseudo_inverse_of_equations_that_contradict_each_other(n: int, deficiency: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n, max(n - deficiency, 1)))
    A, b = half @ half.T, rng.normal(size=n)
    x, V, work = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    solve_pseudo_inverse(np.tril(A), b, n, V, work, x)
    expected = np.linalg.pinv(A, rcond=1e-10, hermitian=True) @ b
    np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_two_points_of_one_body_are_dependent_however_they_lie() -> None:
    """Their distance is constant, so the six rows have rank five.

    Near an axis, the pivots before the zero pivot are small, and the rounding error of the zero pivot is large.
    """
    rng = np.random.default_rng(0)
    x, L, work = np.zeros(6), np.zeros((6, 6)), np.zeros((6, 6))
    for off_axis in 10.0 ** rng.uniform(-6.0, 0.0, 500):
        along = np.array([off_axis, 1.0, off_axis * rng.uniform()])
        points = [rng.normal(size=3)]
        points.append(points[0] + along)
        J = np.vstack([np.hstack([np.eye(3), -pin.skew(point)]) for point in points])
        A = J @ np.diag([1.0, 1.0, 1.0, *rng.uniform(2.0, 9.0, 3)]) @ J.T
        b = rng.normal(size=6)
        solve_least_norm(np.tril(A), b, 6, L, work, x)
        expected = np.linalg.pinv(A, rcond=1e-10, hermitian=True) @ b
        np.testing.assert_allclose(x, expected, atol=1e-5 * np.abs(expected).max())
