"""Normal forces and Coulomb friction at acceleration level as LCPs, against closed forms."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refusal

from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim_studies.complementarity.coulomb import (
    CoulombContacts,
    CoulombOutcome,
    coulomb_lcp,
    planar_coulomb_lcp,
    pyramid,
    pyramid_radius,
    solve_coulomb,
)
from bipedsim_studies.complementarity.lcp import ComplementarityError
from bipedsim_studies.complementarity.normal_force_problem import gauss_principle, normal_force_lcp, normal_forces

GRAVITY = 9.81


def rigid_rows(points: Array, centre: Array) -> Array:
    """Return the Jacobians (m, 3, 6) of points of a free body, of (velocity of the centre, angular velocity)."""
    return np.array([np.hstack([np.eye(3), -pin.skew(point - centre)]) for point in points])


# Normal forces


def chair() -> tuple[Array, Array, Array, Array]:
    """Return M, h, J, bias of a chair of 5 kg on four legs, a heavy coat over its back."""
    legs = np.array([[0.2, 0.2, 0.0], [-0.2, 0.2, 0.0], [-0.2, -0.2, 0.0], [0.2, -0.2, 0.0]])
    M = np.diag([5.0, 5.0, 5.0, 0.2, 0.25, 0.3])
    h = np.array([0.0, 0.0, -5.0 * GRAVITY, 1.0, 2.0, 0.0])
    return M, h, rigid_rows(legs, np.array([0.0, 0.0, 0.5]))[:, 2], np.zeros(4)


def test_a_chair_on_four_legs_has_one_acceleration_and_many_forces() -> None:
    M, h, J, bias = chair()
    ours, gauss = normal_forces(M, h, J, bias), gauss_principle(M, h, J, bias)
    np.testing.assert_allclose(ours.acceleration, 0.0, atol=1e-12)
    np.testing.assert_allclose(gauss.acceleration, 0.0, atol=1e-12)
    null = np.array([1.0, -1.0, 1.0, -1.0])
    for forces in (ours.force, gauss.force):
        assert forces.min() >= 0.0
        assert forces.sum() == pytest.approx(5.0 * GRAVITY)
        np.testing.assert_allclose(J.T @ forces, -h, atol=1e-10)
    # Loads moved from one diagonal to the other hold the chair as well.
    other = ours.force + 0.5 * ours.force[ours.force > 0.0].min() * null * (-1.0 if ours.force[1] == 0.0 else 1.0)
    np.testing.assert_allclose(J.T @ other, -h, atol=1e-10)


def test_a_pushed_chair_tips_over_two_legs() -> None:
    M, h, J, bias = chair()
    h = h + np.array([0.0, 0.0, 0.0, 0.0, 30.0, 0.0])
    ours, gauss = normal_forces(M, h, J, bias), gauss_principle(M, h, J, bias)
    np.testing.assert_allclose(ours.acceleration, gauss.acceleration, atol=1e-10)
    assert ((ours.force > 0.0) == [True, False, False, True]).all()
    assert (ours.gap_acceleration[[1, 2]] > 1.0).all()


def test_lcp_and_gauss_agree_on_a_thousand_problems_with_dependent_constraints() -> None:
    rng = np.random.default_rng(0)
    for _ in range(1000):
        nv, m = int(rng.integers(2, 10)), int(rng.integers(1, 13))
        root = rng.normal(size=(nv, nv))
        M, h = root @ root.T + 0.1 * np.eye(nv), 10.0 * rng.normal(size=nv)
        J = rng.normal(size=(m, nv))
        if m > 2:
            J[-1] = J[0] + J[1]
        bias = J @ rng.normal(size=nv) + rng.uniform(0.0, 1.0, m) * (rng.random(m) < 0.5)
        ours, gauss = normal_forces(M, h, J, bias), gauss_principle(M, h, J, bias)
        scale = 1.0 + np.abs(ours.acceleration).max()
        assert np.abs(ours.acceleration - gauss.acceleration).max() < 1e-7 * scale
        for each in (ours, gauss):
            assert each.force.min() >= 0.0
            np.testing.assert_allclose(M @ each.acceleration, h + J.T @ each.force, atol=1e-9 * scale * M.max())


def test_the_forces_solve_the_quadratic_problems() -> None:
    """Eq. 14 and 15: no other admissible forces have a smaller objective."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(4, 4))
    M, h, J = root @ root.T + np.eye(4), 5.0 * rng.normal(size=4), rng.normal(size=(6, 4))
    A, b = normal_force_lcp(M, h, J, J @ rng.normal(size=4))
    force = gauss_principle(M, h, J, b - J @ np.linalg.solve(M, h)).force
    primal, dual = 0.5 * force @ A @ force + force @ b, 0.5 * force @ A @ force
    assert primal == pytest.approx(-dual)
    for _ in range(2000):
        other = np.maximum(force + 0.3 * rng.normal(size=6), 0.0)
        assert 0.5 * other @ A @ other + other @ b >= primal - 1e-12
        if (A @ other + b >= 0.0).all():
            assert 0.5 * other @ A @ other >= dual - 1e-12


def test_contradicting_constraints_have_no_answer_either_way() -> None:
    J, bias = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0])
    with refusal(ComplementarityError, place="normal forces"):
        normal_forces(np.eye(2), np.zeros(2), J, bias)
    with refusal(ComplementarityError, place="gaps"):
        gauss_principle(np.eye(2), np.zeros(2), J, bias)
    with refusal(ComplementarityError, place="gap 0"):
        gauss_principle(np.eye(2), np.zeros(2), np.zeros((1, 2)), np.array([-1.0]))


def test_a_humanoid_on_eight_vertices_agrees_with_gauss() -> None:
    robot = load_robot("biped14")
    model, q = robot.model.copy(), robot.q_nominal
    data = model.createData()
    rng = np.random.default_rng(2)
    v = np.zeros(model.nv)
    pin.computeAllTerms(model, data, q, v)
    upper = pin.crba(model, data, q)
    M = np.triu(upper) + np.triu(upper, 1).T
    rows = []
    for sole in robot.soles:
        for vertex in sole.vertices:
            T = sole.placement_joint_sole * pin.SE3(np.eye(3), np.array([*vertex, 0.0]))
            index = model.addFrame(pin.Frame("vertex", sole.joint_id, 0, T, pin.FrameType.OP_FRAME))
            fresh = model.createData()
            rows.append(pin.computeFrameJacobian(model, fresh, q, index, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[2])
    J = np.array(rows)
    loaded = 0
    for tau in (np.zeros(model.nv), *(5.0 * rng.normal(size=(10, model.nv)))):
        tau[:6] = 0.0
        ours = normal_forces(M, tau - data.nle, J, np.zeros(len(J)))
        gauss = gauss_principle(M, tau - data.nle, J, np.zeros(len(J)))
        scale = np.abs(ours.acceleration).max()
        np.testing.assert_allclose(ours.acceleration, gauss.acceleration, atol=1e-8 * scale)
        loaded += ours.force.sum() > 0.0
    assert loaded > 1  # limp, and under some of the torques


# Coulomb friction at acceleration level


def block(
    angle: float, load: float, *, sides: int, mu: float = 0.5, slip: tuple[float, float] = (0.0, 0.0)
) -> CoulombOutcome:
    """Return the outcome for a point of 2 kg on a plane under a horizontal force of ``load`` times its weight."""
    contacts = CoulombContacts(np.array([[0.0, 0.0, 1.0]]), np.eye(3)[None, :2], np.array(mu))
    h = 2.0 * GRAVITY * np.array([load * np.cos(angle), load * np.sin(angle), -1.0])
    lcp = coulomb_lcp(2.0 * np.eye(3), h, contacts, [slip], [0.0], [[0.0, 0.0]], sides=sides)
    return solve_coulomb(lcp, largest=0)


@pytest.mark.parametrize("sides", [4, 5, 8, 13])
def test_a_block_sticks_up_to_mu_in_the_corners_of_the_pyramid(sides: int) -> None:
    for corner in pyramid(sides):
        # Friction points against the load, and so must a corner.
        angle = float(np.arctan2(-corner[1], -corner[0]))
        held = block(angle, 0.5 - 1e-6, sides=sides).answer
        np.testing.assert_allclose(held.acceleration, 0.0, atol=1e-9)
        pushed = block(angle, 0.6, sides=sides).answer
        expected = 0.1 * GRAVITY * np.array([np.cos(angle), np.sin(angle), 0.0])
        np.testing.assert_allclose(pushed.acceleration, expected, atol=1e-9)
        assert pushed.normal[0] == pytest.approx(2.0 * GRAVITY)


@pytest.mark.parametrize("sides", [4, 6, 9])
def test_measured_anisotropy_is_that_of_a_polygon(sides: int) -> None:
    for angle in np.linspace(0.1, 6.0, 12):
        low, high = 0.0, 1.0
        for _ in range(24):
            middle = 0.5 * (low + high)
            moves = np.abs(block(angle + np.pi, middle, sides=sides).answer.acceleration).max() > 1e-9
            low, high = (low, middle) if moves else (middle, high)
        assert low / 0.5 == pytest.approx(float(pyramid_radius(angle, sides)), abs=1e-6)


def test_the_polygon_tends_to_the_cone() -> None:
    angles = np.linspace(0.0, 7.0, 1001)
    for sides in (4, 8, 16, 32):
        radius = pyramid_radius(angles, sides)
        assert radius.max() <= 1.0 + 1e-15
        assert radius.min() == pytest.approx(np.cos(np.pi / sides), abs=1e-4)


def test_a_sliding_contact_is_braked_along_its_velocity_in_any_direction() -> None:
    for angle in np.linspace(0.0, 6.0, 9):
        moving = block(0.0, 0.0, sides=4, slip=(np.cos(angle), np.sin(angle))).answer
        np.testing.assert_allclose(
            moving.acceleration, -0.5 * GRAVITY * np.array([np.cos(angle), np.sin(angle), 0.0]), atol=1e-12
        )


def test_static_friction_holds_what_dynamic_friction_would_not() -> None:
    contacts = CoulombContacts(np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0]]]), np.array(0.6), np.array(0.3))
    h = np.array([0.5 * GRAVITY, -GRAVITY])
    for slip, expected in ((0.0, 0.0), (1.0, 0.2 * GRAVITY), (-1.0, 0.8 * GRAVITY)):
        outcome = solve_coulomb(planar_coulomb_lcp(np.eye(2), h, contacts, [[slip]], [0.0], [[0.0]]))
        np.testing.assert_allclose(outcome.answer.acceleration, [expected, 0.0], atol=1e-12)


def test_both_forms_of_the_plane_agree() -> None:
    """Eq. 31 to 37 and a pyramid of two sides: the same verdict and the same accelerations."""
    rng = np.random.default_rng(8)
    verdicts = set()
    for case in range(80):
        m = int(rng.integers(1, 3))
        root = rng.normal(size=(3, 3))
        M, h = root @ root.T + 0.3 * np.eye(3), 5.0 * rng.normal(size=3)
        contacts = CoulombContacts(
            rng.normal(size=(m, 3)), rng.normal(size=(m, 1, 3)), rng.uniform(0.0, 1.5, m), rng.uniform(0.0, 1.5, m)
        )
        slip = rng.normal(size=(m, 1)) * (rng.random((m, 1)) < 0.5)
        first = solve_coulomb(planar_coulomb_lcp(M, h, contacts, slip, np.zeros(m), np.zeros((m, 1))))
        second = solve_coulomb(coulomb_lcp(M, h, contacts, slip, np.zeros(m), np.zeros((m, 1))))
        assert first.verdict == second.verdict, case
        verdicts.add(first.verdict)
        for each in first.candidates:
            scale = 1.0 + np.abs(each.acceleration).max()
            gaps = [np.abs(each.acceleration - other.acceleration).max() for other in second.candidates]
            assert min(gaps) < 1e-6 * scale
    assert verdicts == {"unique", "several", "none"}


def painleve(mu: float, angle: float, spin: float, slip: float) -> tuple[CoulombOutcome, float, float]:
    """Return the outcome for a sliding rod of 1 kg and 2 m, and A and b of its only unknown, derived by hand.

    The rod rises from its lower end towards +x by ``angle``; q = (x, y, angle), the end is at (x - cos, y - sin).
    """
    c, s = np.cos(angle), np.sin(angle)
    contacts = CoulombContacts(np.array([[0.0, 1.0, -c]]), np.array([[[1.0, 0.0, s]]]), np.array(mu))
    lcp = planar_coulomb_lcp(
        np.diag([1.0, 1.0, 1.0 / 3.0]),
        [0.0, -GRAVITY, 0.0],
        contacts,
        [[slip]],
        [s * spin**2],
        [[c * spin**2]],
    )
    return solve_coulomb(lcp), 1.0 + 3.0 * c * (c + np.sign(slip) * mu * s), -GRAVITY + s * spin**2


def test_the_rod_of_painleve() -> None:
    """A lam + b with A = 1/m + (l^2/I) cos (cos - mu sin): no solution if A < 0 > b, two if A < 0 < b, else one."""
    seen = set()
    for mu in (0.3, 1.0, 1.32, 1.35, 2.0, 4.0):
        for angle in np.linspace(0.05, 1.5, 30):
            for spin in (0.0, 2.0, 5.0, 15.0):
                for slip in (-1.0, 1.0):
                    outcome, A, b = painleve(mu, angle, spin, slip)
                    expected = "unique" if A > 0.0 else "none" if b < 0.0 else "several"
                    assert outcome.verdict == expected, (mu, angle, spin, slip)
                    seen.add(expected)
                    if expected == "unique":
                        force = max(0.0, -b / A)
                        assert outcome.answer.normal[0] == pytest.approx(force, rel=1e-9, abs=1e-9)
                    else:
                        assert mu > 4.0 / 3.0  # the smallest friction with a paradox, at tan(angle) = 2
                        with pytest.raises(ComplementarityError):
                            _ = outcome.answer
    assert seen == {"unique", "none", "several"}
    assert painleve(1.33, np.arctan(2.0), 0.0, -1.0)[0].verdict == "unique"
    assert painleve(1.34, np.arctan(2.0), 0.0, -1.0)[0].verdict == "none"


def test_a_block_on_four_points_has_one_acceleration_and_many_forces() -> None:
    """Too large for enumeration in space; in the plane two points share the friction of the block as they like."""
    contacts = CoulombContacts(
        np.array([[0.0, 1.0, -0.1], [0.0, 1.0, 0.1]]), np.array([[[1.0, 0.0, 0.05]]] * 2), np.array(0.5)
    )
    h, zeros = np.array([2.0, -GRAVITY, 0.0]), np.zeros((2, 1))
    outcome = solve_coulomb(planar_coulomb_lcp(np.eye(3), h, contacts, zeros, zeros[:, 0], zeros))
    assert outcome.verdict == "unique"
    assert outcome.indeterminate_forces
    np.testing.assert_allclose(outcome.answer.acceleration, 0.0, atol=1e-9)
    legs = np.array([[0.1, 0.1, 0.0], [-0.1, 0.1, 0.0], [-0.1, -0.1, 0.0], [0.1, -0.1, 0.0]])
    J = rigid_rows(legs, np.array([0.0, 0.0, 0.05]))
    space = CoulombContacts(J[:, 2], J[:, :2], np.array(0.5))
    load = np.array([2.0, 1.0, -GRAVITY, 0.0, 0.0, 0.0])
    large = solve_coulomb(coulomb_lcp(np.eye(6), load, space, np.zeros((4, 2)), np.zeros(4), np.zeros((4, 2))))
    assert large.verdict == "unchecked"
    np.testing.assert_allclose(large.answer.acceleration, 0.0, atol=1e-9)


# Errors


def test_errors_name_what_is_wrong() -> None:
    n, t = np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0]]])
    good = CoulombContacts(n, t, np.array(0.5))
    with refusal(place="shapes of normal and tangent"):
        CoulombContacts(n, t[0], np.array(0.5))
    with refusal(place="friction_static", value=[-0.1]):
        CoulombContacts(n, t, np.array([-0.1]))
    with refusal(place="sides", value=3):
        pyramid(3)
    with refusal(place="mass matrix"):
        normal_forces(np.zeros((2, 2)), np.zeros(2), n, [0.0])
    with refusal(place="mass matrix"):
        normal_forces([[1.0, 2.0], [0.0, 1.0]], np.zeros(2), n, [0.0])
    with refusal(place="shapes of h, J, bias"):
        normal_forces(np.eye(2), np.zeros(2), n, [0.0, 0.0])
    with refusal(place="shape of slip"):
        coulomb_lcp(np.eye(2), np.zeros(2), good, [0.0], [0.0], [[0.0]])
    space = CoulombContacts(np.eye(3)[2:], np.eye(3)[None, :2], np.array(0.5))
    with refusal(place="tangents"):
        planar_coulomb_lcp(np.eye(3), np.zeros(3), space, [[0.0, 0.0]], [0.0], [[0.0, 0.0]])
