"""Mass matrix, bias forces and motions against pinocchio, for every robot and for trees of all kinds of joints."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refusal

from bipedsim.dynamics.equations import Equations, fill
from bipedsim.dynamics.joints import Joints, integrate
from bipedsim.model import ROBOTS, load_robot
from bipedsim.numerics import Array, call

ROUNDING = 1e-12

loaded = lru_cache(load_robot)


def check(model: pin.Model, q: Array, v: Array) -> None:
    """Compare everything at (q, v) with pinocchio, relative to the largest entry."""
    e, data = Equations.of_model(model), model.createData()
    call(fill, e, q, v)
    pin.crba(model, data, q, pin.Convention.WORLD)
    pin.nonLinearEffects(model, data, q, v)
    # pinocchio fills the other triangle.
    close(e.M, np.triu(data.M).T)
    close(e.nle, data.nle)
    close(e.J, np.asarray(data.J).reshape(6, model.nv).T)
    close(e.com, data.com[0])
    s = e.joints
    gravity = pin.Motion(model.gravity.linear, np.zeros(3))
    for j in range(1, model.njoints):
        placement = data.oMi[j]
        close(s.poses[j], np.concatenate([placement.rotation.T.reshape(-1), placement.translation]))
        # From the frame of the joint to the point at which motions are taken, along the axes of the world.
        there = pin.SE3(placement.rotation, placement.translation - s.origin)
        close(s.twists[j], there.act(data.v[j]).vector, np.abs(v).max())
        close(s.accelerations[j], there.act(data.a_gf[j]).vector, np.abs(v).max() ** 2 + np.abs(gravity.vector).max())


def close(ours: Array, wanted: Array, scale: float = 0.0) -> None:
    """Compare relative to the largest expected entry, or to ``scale`` if that is larger."""
    np.testing.assert_allclose(ours, wanted, rtol=0.0, atol=ROUNDING * max(scale, np.abs(wanted).max(), 1e-3))


@pytest.mark.parametrize("name", sorted(ROBOTS))
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), speed=st.sampled_from([0.0, 0.1, 10.0]))
def test_robots_have_the_equations_of_pinocchio(name: str, seed: int, speed: float) -> None:
    model = loaded(name).model
    rng = np.random.default_rng(seed)
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-2.0, 2.0, model.nv))
    check(model, q, speed * rng.normal(size=model.nv))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), floats=st.booleans())
def test_trees_of_all_kinds_of_joints_have_the_equations_of_pinocchio(seed: int, floats: bool) -> None:
    rng = np.random.default_rng(seed)
    model = tree(rng, floats)
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-2.0, 2.0, model.nv))
    check(model, q, rng.normal(size=model.nv))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), floats=st.booleans(), size=st.floats(1e-9, 30.0))
def test_configurations_move_as_in_pinocchio(seed: int, floats: bool, size: float) -> None:
    rng = np.random.default_rng(seed)
    model = tree(rng, floats)
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-2.0, 2.0, model.nv))
    moved = np.zeros(model.nq)
    for step in (size * rng.normal(size=model.nv), np.zeros(model.nv)):
        call(integrate, Joints.of_model(model), q, step, moved)
        np.testing.assert_allclose(moved, pin.integrate(model, q, step), rtol=1e-14, atol=1e-14 * size)


def test_poses_follow_every_change_of_the_configuration() -> None:
    """The equations skip the poses only for the configuration that they were computed for."""
    model = load_robot("biped14").model
    e, v = Equations.of_model(model), np.zeros(model.nv)
    q = np.zeros(model.nq)
    q[6] = 1.0
    call(fill, e, q, v)
    for i in (0, 10, model.nq - 1):
        q[i] += 0.3
        call(fill, e, q, v)
        fresh = Equations.of_model(model)
        call(fill, fresh, q, v)
        np.testing.assert_array_equal(e.M, fresh.M)
        np.testing.assert_array_equal(e.joints.poses, fresh.joints.poses)


def tree(rng: np.random.Generator, floats: bool) -> pin.Model:
    """Return a branched model with revolute and prismatic joints along any axes; some bodies have no mass."""
    model = pin.Model()
    if floats:
        model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Random(), "root")
    for i in range(int(rng.integers(3, 12))):
        x, y, z = rng.normal(size=3) + 0.1
        axis = np.array([x, y, z]) / np.linalg.norm([x, y, z])
        kinds = [
            pin.JointModelRX(),
            pin.JointModelRY(),
            pin.JointModelRZ(),
            pin.JointModelPX(),
            pin.JointModelPY(),
            pin.JointModelPZ(),
            pin.JointModelRevoluteUnaligned(axis),
            pin.JointModelPrismaticUnaligned(axis),
        ]
        place = pin.SE3(pin.exp3(rng.normal(size=3)), 0.3 * rng.normal(size=3))
        # pinocchio numbers depth first: a branch begins anywhere on the way to the last joint.
        parent = int(rng.choice(list(model.supports[model.njoints - 1])))
        model.addJoint(parent, kinds[rng.integers(len(kinds))], place, f"joint {i}")
    for j in range(1, model.njoints):
        if j == model.njoints - 1 or rng.random() < 0.8:
            body = pin.Inertia.FromEllipsoid(1.0 + rng.random(), *(0.1 + rng.random(3)))
            model.appendBodyToJoint(j, body, pin.SE3(pin.exp3(rng.normal(size=3)), 0.1 * rng.normal(size=3)))
    model.armature = 0.05 * rng.random(model.nv)
    model.gravity.linear = rng.normal(size=3)
    return model


def test_far_from_the_origin_forces_are_those_at_the_origin() -> None:
    """A kilometre on, in steps that have no rounding of their own; pinocchio's M, taken in the world, loses digits."""
    model = load_robot("talos").model
    rng = np.random.default_rng(3)
    here = pin.integrate(model, pin.neutral(model), rng.uniform(-1.0, 1.0, model.nv))
    here[:3] = 0.5, -0.25, 1.0
    there, v = here.copy(), rng.normal(size=model.nv)
    there[:3] += 1024.0, 512.0, 0.0
    near, far = Equations.of_model(model), Equations.of_model(model)
    call(fill, near, here, v)
    call(fill, far, there, v)
    np.testing.assert_allclose(far.M, near.M, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(far.nle, near.nle, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("joint", [pin.JointModelSpherical(), pin.JointModelRUBX(), pin.JointModelPlanar()])
def test_a_joint_of_another_kind_is_named(joint: pin.JointModel) -> None:
    model = pin.Model()
    model.addJoint(0, joint, pin.SE3.Identity(), "hip")
    with refusal(place="joint 'hip'"):
        Joints.of_model(model)


def test_joints_that_nobody_needs_are_left_out() -> None:
    model = load_robot("talos").model
    ankle = model.getJointId("leg_left_6_joint")
    assert list(Joints.of_model(model, {ankle}).order) == [j for j in model.supports[ankle] if j]
