"""Feet on several plates: the load of each plate, compared with a pressure that is integrated point by point."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq, root

from bipedsim.numerics import Array, call, zeros_of
from bipedsim.plates import Foot, PlateConfig, Surfaces, add_foot, add_point, clear

SOLE = np.array([[-0.12, -0.06, 0.0], [0.14, -0.06, 0.0], [0.14, 0.06, 0.0], [-0.12, 0.06, 0.0]])
number = st.floats(-1.0, 1.0)


def surfaces(*plates: PlateConfig) -> Surfaces:
    found = [one.geometry() for one in plates]
    made = zeros_of(
        Surfaces,
        {"P": len(found), "P+1": len(found) + 1, "W": 16},
        axes=np.array([one.rotation for one in found]),
        centre=np.array([one.centre for one in found]),
        half=0.5 * np.array([one.size for one in found]),
        origin=np.array([one.transducer_origin for one in found]),
    )
    call(clear, made)
    return made


def foot(
    impulse: Array,
    at: tuple[float, float] = (0.0, 0.0),
    yaw: float = 0.0,
    clamped: int = 15,
    forces: Array | None = None,
    vertices: Array = SOLE,
) -> Foot:
    turn = pin.rpy.rpyToMatrix(0.0, 0.0, yaw)
    none = np.zeros((0, 3)) if forces is None else forces
    return Foot(np.eye(3), np.array([*at, 0.0]), vertices @ turn.T, len(vertices), clamped, impulse, none, 0.5)


def total(s: Surfaces, plates: tuple[PlateConfig, ...]) -> Array:
    """Return the wrench of all plates and the floor about the world's origin."""
    found = s.load[-1].copy()
    for one, load in zip(plates, s.load, strict=False):
        g = one.geometry()
        f, m = g.rotation @ load[:3], g.rotation @ load[3:]
        found += np.concatenate([f, m + np.cross(g.transducer_origin, f)])
    return found


def wrench_at(point: Array, force: Array, twist: float, origin: Array) -> Array:
    """Return a wrench about ``origin`` of a force at a point and a moment about z."""
    return np.concatenate([force, np.cross(point - origin, force) + np.array([0.0, 0.0, twist])])


ROW = (
    PlateConfig(name="a", size=(0.6, 0.4), position=(-0.3, 0.0, 0.0), thickness=0.05),
    PlateConfig(name="b", size=(0.4, 0.6), position=(0.21, 0.0, 0.0), yaw=0.5 * np.pi),
    PlateConfig(name="c", size=(0.3, 0.2), position=(0.2, 0.5, 0.0), yaw=0.3),
)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.tuples(*[number] * 9), st.sampled_from([15, 15, 15, 7, 6, 3, 12, 4, 0]), st.booleans())
def test_shares_add_up_to_the_foot(drawn: tuple[float, ...], clamped: int, by_vertices: bool) -> None:
    x, y, yaw, u, v, fx, fy, tz, fz = drawn
    at, turn = (0.4 * x, 0.5 * y), 3.0 * yaw
    force = np.array([200.0 * fx, 200.0 * fy, 400.0 + 390.0 * fz])
    vertices = SOLE @ pin.rpy.rpyToMatrix(0.0, 0.0, turn).T
    forces = None
    if by_vertices:
        share = np.abs([u, v, fx, fy]) + 0.1
        forces = share[:, None] / share.sum() * force + np.array([[0, 0, 1], [0, 0, -1], [0, 0, 1], [0, 0, -1.0]])
        impulse = np.concatenate([forces.sum(axis=0), np.cross(vertices, forces).sum(axis=0)])
    else:
        # Inside the contact area, including its border.
        touching = vertices[[i for i in range(4) if clamped == 0 or clamped >> i & 1]]
        weights = np.abs([u, v, fx, fy])[: len(touching)] ** 3 + 1e-3
        point = weights @ touching / weights.sum()
        impulse = wrench_at(point, force, 5.0 * tz, np.zeros(3))
    s = surfaces(*ROW)
    call(add_foot, s, foot(impulse, at, turn, clamped, forces))
    origin = np.array([*at, 0.0])
    wanted = np.concatenate([impulse[:3], impulse[3:] + np.cross(origin, impulse[:3])])
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(total(s, ROW), wanted, atol=1e-12 * scale)
    assert s.fallbacks[0] == 0
    for one, load, hit in zip(ROW, s.load, s.at_once, strict=False):
        # No plate is pulled down, and half of the load was applied at once.
        assert (one.geometry().rotation @ load[:3])[2] >= -1e-9 if not by_vertices else True
        np.testing.assert_allclose(hit, 0.5 * load, atol=1e-12 * scale)


@pytest.mark.parametrize("cop", [(0.0, 0.0), (0.06, 0.01), (0.1, 0.04), (-0.115, -0.055), (0.0, 0.059)])
def test_pressure_is_that_of_springs_that_cannot_pull(cop: tuple[float, float]) -> None:
    """Brute force: p = max(0, a + b x + c y) found by minimising over a fine grid, and summed up on each side."""
    n = 700
    xs, ys = (np.linspace(lo, hi, n + 1)[:-1] + 0.5 * (hi - lo) / n for lo, hi in ((-0.12, 0.14), (-0.06, 0.06)))
    X, Y = np.meshgrid(xs, ys, indexing="ij")
    cell = 0.26 * 0.12 / n**2

    def pressure(p: Array) -> Array:
        return np.maximum(0.0, p[0] + p[1] * (X - cop[0]) + p[2] * (Y - cop[1]))

    def off(p: Array) -> Array:
        q = pressure(p) * cell
        return np.array([q.sum() - 1.0, 20.0 * (q * (X - cop[0])).sum(), 20.0 * (q * (Y - cop[1])).sum()])

    start = np.array([1.0 / (0.26 * 0.12), 800.0 * cop[0] / 0.13 * 2, 1500.0 * cop[1] / 0.06 * 2])
    found = root(off, start, method="hybr")
    assert np.abs(off(found.x)).max() < 1e-5
    q = pressure(found.x) * cell
    border = 0.03
    left = border > X
    force, twist = np.array([50.0, -20.0, 600.0]), 4.0
    impulse = wrench_at(np.array([*cop, 0.0]), force, twist, np.zeros(3))
    plates = (
        PlateConfig(name="a", size=(0.6, 1.0), position=(border - 0.3, 0.0, 0.0)),
        PlateConfig(name="b", size=(0.6, 1.0), position=(border + 0.3, 0.0, 0.0)),
    )
    s = surfaces(*plates)
    call(add_foot, s, foot(impulse))
    k = twist / (q * ((X - cop[0]) ** 2 + (Y - cop[1]) ** 2)).sum()
    for one, load, here in zip(plates, s.load, (left, ~left), strict=False):
        g = one.geometry()
        w = q[here]
        dx, dy = X[here] - cop[0], Y[here] - cop[1]
        tx, ty, tz = w * (force[0] - k * dy), w * (force[1] + k * dx), w * force[2]
        wanted = np.array([tx.sum(), ty.sum(), tz.sum(), (Y[here] * tz).sum(), -(X[here] * tz).sum()])
        wanted = np.append(wanted, (X[here] * ty - Y[here] * tx).sum())
        f = g.rotation @ load[:3]
        m = g.rotation @ load[3:] + np.cross(g.transducer_origin, f)
        np.testing.assert_allclose(np.concatenate([f, m]), wanted, atol=2e-3 * force[2])
    np.testing.assert_allclose(s.load[-1], 0.0, atol=1e-9)


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(*[number] * 6), st.tuples(*[number] * 6), st.sampled_from([15, 15, 7, 3, 0]), st.booleans(), st.booleans()
)
def test_a_turned_and_moved_scene_shares_alike(
    drawn: tuple[float, ...], moved: tuple[float, ...], clamped: int, by_vertices: bool, own_axes: bool
) -> None:
    """Ground, plates and foot are tilted together, about any axis. A foot may have axes at another yaw."""
    x, y, yaw, u, v, tz = drawn
    # Off the round numbers that are tried first: a vertex on a border may fall to either side.
    at = np.array([0.4 * x + 0.00123, 0.4 * y + 0.00217, 0.0])
    vertices = SOLE @ pin.rpy.rpyToMatrix(0.0, 0.0, yaw).T
    touch = [i for i in range(4) if clamped == 0 or clamped >> i & 1]
    weights = np.array([0.3 + 0.2 * u, 0.3 + 0.2 * v, 0.2, 0.2])[touch]
    force = np.array([60.0 * u, 40.0 * v, 500.0])
    impulse = wrench_at(weights @ vertices[touch] / weights.sum(), force, 4.0 * tz, np.zeros(3))
    forces = np.zeros((0, 3))
    if by_vertices:
        forces = np.zeros((4, 3))
        forces[touch] = weights[:, None] / weights.sum() * force
        impulse = np.concatenate([forces.sum(axis=0), np.cross(vertices, forces).sum(axis=0)])

    def loads(Q: Array, way: Array, twist: float) -> Array:
        """Return the loads of plates and floor, with the floor's turned back; ``twist`` turns the axes of the foot
        alone.
        """
        axes = Q @ pin.rpy.rpyToMatrix(0.0, 0.0, twist)
        back = pin.rpy.rpyToMatrix(0.0, 0.0, -twist)
        s = surfaces(*ROW)
        for i in range(len(ROW)):
            s.axes[i] = Q @ s.axes[i]
            s.centre[i], s.origin[i] = Q @ s.centre[i] + way, Q @ s.origin[i] + way
        turned = np.concatenate([back @ impulse[:3], back @ impulse[3:]])
        call(add_foot, s, Foot(axes, Q @ at + way, vertices @ back.T, 4, clamped, turned, forces @ back.T, 0.5))
        found = s.load.copy()
        found[-1, :3] = Q.T @ found[-1, :3]
        # About the world's origin.
        found[-1, 3:] = Q.T @ (s.load[-1, 3:] - np.cross(way, s.load[-1, :3]))
        return found

    Q = pin.exp3(np.array(moved[:3]) * 1.5)
    plain, turned = loads(np.eye(3), np.zeros(3), 0.0), loads(Q, np.array(moved[3:]), 2.0 * yaw * own_axes)
    np.testing.assert_allclose(turned, plain, atol=1e-9 * 500.0)


@pytest.mark.parametrize("height", [0.04, -0.03])
@pytest.mark.parametrize("clamped", [15, 3, 0])
def test_shares_do_not_depend_on_where_the_origin_of_the_sole_is(height: float, clamped: int) -> None:
    """Above the contact or below it: the same forces about another point, with friction along both axes."""
    vertices = SOLE @ pin.rpy.rpyToMatrix(0.0, 0.0, 0.4).T
    touch = [i for i in range(4) if clamped == 0 or clamped >> i & 1]
    point = np.array([0.3, 0.25, 0.2, 0.25])[: len(touch)] @ vertices[touch] / sum([0.3, 0.25, 0.2, 0.25][: len(touch)])
    found = []
    for z in (0.0, height):
        origin = np.array([0.02, -0.03, z])
        impulse = wrench_at(np.array([0.02, -0.03, 0.0]) + point, np.array([70.0, -50.0, 500.0]), 3.0, origin)
        s = surfaces(*ROW)
        call(add_foot, s, Foot(np.eye(3), origin, vertices - [0.0, 0.0, z], 4, clamped, impulse, np.zeros((0, 3)), 0.0))
        assert s.fallbacks[0] == 0
        found.append(s.load.copy())
    assert (np.abs(found[0][:2, 2]) > 50.0).all()
    np.testing.assert_allclose(found[1], found[0], atol=1e-9 * 500.0)


@pytest.mark.parametrize("centre", [(0.105, 0.0), (-0.085, 0.0), (0.01, 0.035), (0.01, -0.035)])
def test_a_plate_smaller_than_the_sole_carries_its_share_of_the_area(centre: tuple[float, float]) -> None:
    """All corners of the foot are on the floor; a resultant in the middle of the sole spreads evenly."""
    s = surfaces(PlateConfig(name="a", size=(0.06, 0.04), position=(*centre, 0.0)))
    force = np.array([0.0, 0.0, 90.0])
    call(add_foot, s, foot(wrench_at(np.array([0.01, 0.0, 0.0]), force, 0.0, np.zeros(3))))
    here = 90.0 * 0.06 * 0.04 / (0.26 * 0.12)
    np.testing.assert_allclose(s.load[:, 2], [-here, 90.0 - here], atol=1e-12)


def test_an_edge_carries_along_its_line() -> None:
    """A resultant a quarter along an edge of two metres that is cut in the middle: 3 c = 1.5 m, a triangle."""
    vertices = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 1.0, 0.3], [0.0, 1.0, 0.3]])
    s = surfaces(
        PlateConfig(name="a", size=(1.0, 1.0), position=(0.5, 0.0, 0.0)),
        PlateConfig(name="b", size=(1.0, 1.0), position=(1.5, 0.0, 0.0)),
    )
    impulse = wrench_at(np.array([0.5, 0.0, 0.0]), np.array([0.0, 0.0, 90.0]), 0.0, np.zeros(3))
    call(add_foot, s, foot(impulse, clamped=3, vertices=vertices))
    # The pressure falls linearly to zero at 1.5 m: (0.5 / 1.5)^2 of it is beyond 1 m.
    np.testing.assert_allclose(-s.load[:2, 2], [80.0, 10.0], atol=1e-12)


@pytest.mark.parametrize("at", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
@pytest.mark.parametrize("border", [0.15, 0.5, 0.95])
def test_a_line_carries_as_springs_that_cannot_pull(at: float, border: float) -> None:
    """Brute force, with the resultant from one end to the other: p = max(0, cos a + u sin a), u from -1 to 1."""
    x = (np.arange(20_000) + 0.5) / 20_000
    u = 2.0 * x - 1.0

    def pressure(angle: float) -> Array:
        p = np.maximum(0.0, np.cos(angle) + u * np.sin(angle))
        return p / p.sum()

    p = pressure(brentq(lambda angle: float(pressure(angle) @ x) - at, -0.74 * np.pi, 0.74 * np.pi, xtol=1e-13))
    vertices = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.3], [0.0, 1.0, 0.3]])
    plates = (
        PlateConfig(name="a", size=(border + 1.0, 1.0), position=(0.5 * border - 0.5, 0.0, 0.0)),
        PlateConfig(name="b", size=(2.0 - border, 1.0), position=(0.5 * border + 1.0, 0.0, 0.0)),
    )
    s = surfaces(*plates)
    force = np.array([0.0, 0.0, 90.0])
    call(add_foot, s, foot(wrench_at(np.array([at, 0.0, 0.0]), force, 0.0, np.zeros(3)), clamped=3, vertices=vertices))
    for one, load, here in zip(plates, s.load, (x < border, x >= border), strict=False):
        g = one.geometry()
        carried = g.rotation @ load[:3]
        moment = g.rotation @ load[3:] + np.cross(g.transducer_origin, carried)
        np.testing.assert_allclose(carried[2], 90.0 * p[here].sum(), atol=1e-5)
        np.testing.assert_allclose(-moment[1], 90.0 * (p[here] @ x[here]), atol=1e-5)
    np.testing.assert_allclose(
        total(s, plates), wrench_at(np.array([at, 0.0, 0.0]), force, 0.0, np.zeros(3)), atol=1e-9
    )


def test_each_vertex_and_each_point_goes_to_the_plate_under_it() -> None:
    plates = (PlateConfig(name="a", size=(1.0, 1.0), position=(0.5, 0.0, 0.0)),)
    s = surfaces(*plates)
    forces = np.array([[1.0, 0, 10], [2.0, 0, 20], [3.0, 0, 30], [4.0, 0, 40]])
    impulse = 1e-3 * np.concatenate([forces.sum(axis=0), np.cross(SOLE, forces).sum(axis=0)])
    call(add_foot, s, foot(impulse, forces=forces))
    np.testing.assert_allclose(s.load[0, :3], [0.005, 0.0, -0.05], atol=1e-15)
    np.testing.assert_allclose(s.load[1, :3], [0.005, 0.0, 0.05], atol=1e-15)
    call(clear, s)
    turn = pin.rpy.rpyToMatrix(0.0, 0.0, 0.5 * np.pi)
    call(add_point, s, np.array([0.2, 0.3, -0.001]), turn, np.array([1.0, 2.0, 3.0]), -1.0)
    np.testing.assert_allclose(s.load[0, :3], [2.0, 1.0, 3.0], atol=1e-12)
    call(add_point, s, np.array([0.2, 0.3, 0.5]), turn, np.array([1.0, 2.0, 3.0]), 1.0)
    np.testing.assert_allclose(s.load[1, :3], [-2.0, 1.0, 3.0], atol=1e-12)


@given(st.tuples(*[number] * 3), st.tuples(*[number] * 3))
def test_a_force_at_a_point_is_turned_by_its_axes(turn: tuple[float, ...], drawn: tuple[float, ...]) -> None:
    """For any axes, as on a ball, the plate has the force and its moment about the transducers."""
    s, axes, force = surfaces(ROW[0]), pin.exp3(2.0 * np.array(turn)), 50.0 * np.array(drawn)
    point = np.array([-0.2, 0.1, 0.0])
    call(add_point, s, point, axes, force, 1.0)
    np.testing.assert_allclose(total(s, ROW[:1]), wrench_at(point, axes @ force, 0.0, np.zeros(3)), atol=1e-12)
    np.testing.assert_allclose(s.load[-1], 0.0, atol=1e-12)
