"""Rules of a valid set, one by one and in their order."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given, strategies as st
from physics_support import rectangle, regular_polygon

from bipedsim.contact.base import ContactResult
from bipedsim.contact.modes import RECOVERY, clamped_range, face_mode, mode_masks, n_modes
from bipedsim.contact.selection import rules
from bipedsim.contact.selection.arrays import PUBLISHED, REVISED, THRESHOLDS, Selection, Settings
from bipedsim.contact.selection.rules import nearest_feature, nearest_mode
from bipedsim.dynamics.projection import Projection
from bipedsim.model.sole import Sole
from bipedsim.numerics import call

H, BAND = 1e-3, 1e-3
FACE = face_mode(4)
SOLE = np.array(rectangle(0.2, 0.1))
FRONT = 8
FLAT = np.zeros(4)
TOLERANCE = 1e-9


def one_foot(vertices: np.ndarray, fz: float, cop: tuple[float, float], kind: int) -> tuple[Projection, Selection]:
    """Return a level foot with load ``fz`` [N.s] at ``cop``, as a solved candidate."""
    p = Projection.of_soles((Sole("sole", "sole", 0, pin.SE3.Identity(), vertices, 0.5, 0.5),))
    p.offsets[0, :, :2] = vertices
    settings = Settings(H, gamma=0.2, threshold=BAND, tolerance=TOLERANCE, rules=kind)
    s = Selection.of_feet(1, len(vertices), ContactResult.empty(1), settings)
    s.trial.impulse[0] = [0.0, 0.0, fz, cop[1] * fz, -cop[0] * fz, 0.0]
    s.trial.cop[0] = cop
    return p, s


def choose(
    mode: int,
    heights: np.ndarray = FLAT,
    speeds: np.ndarray = FLAT,
    fz: float = 1.0,
    cop: tuple[float, float] = (0.0, 0.0),
    kind: int = REVISED,
) -> int:
    """Return the set that the rules select for the rectangle.

    Its vertices have the rigid-body motion nearest to ``speeds``.
    """
    p, s = one_foot(SOLE, fz, cop, kind)
    s.trial.mode[0] = mode
    s.scratch.heights[0] = heights
    columns = np.column_stack([np.ones(4), SOLE[:, 1], -SOLE[:, 0]])
    s.trial.w_next[2:5] = np.linalg.lstsq(columns, speeds, rcond=None)[0]
    first, count = clamped_range(mode, 4)
    clamped = [(first + k) % 4 for k in range(count)]
    s.scratch.r_vj[0, :2] = SOLE[clamped].mean(axis=0) if clamped else 0.0
    _, _, outside = nearest_feature(SOLE, 4, (first, count), *cop, TOLERANCE)
    s.trial.outside[0] = outside
    changed = call(rules.choose, p, s)
    assert changed == (s.trial.chosen[0] != mode)
    return int(s.trial.chosen[0])


def test_a_valid_state_stays() -> None:
    for mode in range(1, 10):
        mask = mode_masks(4)[mode].astype(bool)
        cop = SOLE[mask].mean(axis=0)
        assert choose(mode, heights=np.where(mask, 0.0, 5e-3), cop=(cop[0], cop[1])) == mode


def test_cop_beyond_an_edge_releases_to_that_edge() -> None:
    assert choose(FACE, cop=(0.1 + 1e-6, 0.02)) == FRONT
    assert choose(FACE, cop=(0.1 - 1e-6, 0.02)) == FACE
    assert choose(FACE, cop=(0.11, 0.06)) == 1
    assert choose(FRONT, cop=(0.1, 0.051)) == 1
    assert choose(FRONT, cop=(0.1, -0.051)) == 4


@pytest.mark.parametrize("mode", [FACE, FRONT])
def test_a_torque_without_load_is_a_pull(mode: int) -> None:
    """It has no CoP outside, but some vertex would have to pull."""
    p, s = one_foot(SOLE, 0.0, (0.0, 0.0), REVISED)
    s.trial.mode[0] = mode
    s.trial.converged[0] = True
    assert call(rules.judge, p, s)
    s.trial.impulse[0, 4] = 0.1
    assert not call(rules.judge, p, s)
    assert s.trial.violations.tolist() == [0, 0, 0, 1, 0]
    assert call(rules.choose, p, s)
    assert s.trial.chosen[0] == 0


def test_a_face_is_judged_by_its_cop_not_by_minimum_norm_vertex_forces() -> None:
    """Outside the diamond, a rectangle has negative minimum-norm vertex forces, but the face contact is still valid."""
    assert choose(FACE, cop=(0.08, 0.04)) == FACE


def test_pulling_releases_all() -> None:
    for mode in range(1, 10):
        assert choose(mode, fz=-1e-9) == 0


def test_only_what_is_about_to_penetrate_is_clamped() -> None:
    falling = np.full(4, -0.1)
    assert choose(0, speeds=falling) == FACE
    assert choose(0, heights=np.full(4, 0.5e-3), speeds=falling) == 0
    assert choose(0, heights=np.full(4, 5e-3), speeds=np.full(4, -6.0)) == FACE
    assert choose(0, heights=np.full(4, -0.5e-3), speeds=-falling) == 0
    assert choose(FRONT, speeds=np.array([0.0, 0.1, 0.1, 0.0]), cop=(0.1, 0.0)) == FRONT
    assert choose(FRONT, speeds=np.array([0.0, -0.1, -0.1, 0.0]), cop=(0.1, 0.0)) == FACE


def test_a_deep_foot_is_held_unless_it_rises_as_fast_as_a_held_one_would() -> None:
    deep = np.full(4, -2e-3)
    recovery = min(0.2 * 2e-3 / H, RECOVERY)
    assert choose(0, heights=deep) == FACE
    assert choose(0, heights=deep, speeds=np.full(4, 0.9 * recovery)) == FACE
    assert choose(0, heights=deep, speeds=np.full(4, 1.1 * recovery)) == 0
    assert choose(FACE, heights=deep, fz=-1e-3) == 0


@given(
    n=st.sampled_from([1, 2, 3, 4, 5, 9]),
    mode=st.integers(0, 100),
    bits=st.lists(st.booleans(), min_size=9, max_size=9),
    ranks=st.lists(st.integers(0, 3), min_size=9, max_size=9),
)
def test_nearest_mode_by_brute_force(n: int, mode: int, bits: list[bool], ranks: list[int]) -> None:
    """Least sum of a_i |p_i - s_i| over the admissible set; the present mode wins ties."""
    mode %= n_modes(n)
    perfect = np.array(bits[:n], dtype=np.int64)
    cost = np.array([float(max(n, 2)) ** -rank for rank in ranks[:n]])
    distances = abs(mode_masks(n) - perfect) @ cost
    chosen = nearest_mode(mode, n, perfect, cost)
    assert distances[chosen] == pytest.approx(distances.min(), abs=1e-12)
    if distances[mode] <= distances.min() + 1e-13:
        assert chosen == mode


def test_the_printed_rules_release_a_face_by_minimum_norm_forces() -> None:
    """Outside the diamond a vertex force is negative, though the CoP is inside: the flaw of the published rule."""
    for kind in (PUBLISHED, THRESHOLDS):
        assert choose(FACE, cop=(0.08, 0.04), kind=kind) != FACE
        assert choose(FACE, cop=(0.02, 0.01), kind=kind) == FACE


def test_the_printed_rules_clamp_whatever_rests_near_the_ground() -> None:
    assert choose(0, heights=np.full(4, 0.5e-3), kind=PUBLISHED) == FACE
    assert choose(0, heights=np.full(4, 0.5e-3)) == 0


def test_only_the_published_cop_rule_sees_the_cop() -> None:
    """The CoP of an edge is beyond its end.

    The weight of the CoP rule dominates; without that rule, the force decides.
    """
    on_edge = np.array([0.0, 5e-3, 5e-3, 0.0])
    assert choose(FRONT, heights=on_edge, cop=(0.1, 0.051), kind=PUBLISHED) == 1
    assert choose(FACE, cop=(0.1 + 1e-6, 0.0), kind=PUBLISHED) == FRONT
    single = np.array([0.0, 5e-3, 5e-3, 5e-3])
    assert choose(1, heights=single, cop=(0.1, 0.05), kind=THRESHOLDS) == 1


@given(n=st.integers(3, 9), x=st.floats(-0.3, 0.3), y=st.floats(-0.3, 0.3))
def test_nearest_feature_by_brute_force(n: int, x: float, y: float) -> None:
    vertices = np.array(regular_polygon(n, 0.1))
    point = np.array([x, y])
    ends = np.roll(vertices, -1, axis=0)
    edge = ends - vertices
    lengths = np.linalg.norm(edge, axis=1)
    inward = (edge[:, 0] * (y - vertices[:, 1]) - edge[:, 1] * (x - vertices[:, 0])) / lengths
    assume(abs(inward.min()) > 1e-6)
    first, count, outside = nearest_feature(vertices, n, (0, n), x, y, TOLERANCE)
    if inward.min() > 0.0:
        assert (first, count) == (0, n)
        assert outside == pytest.approx(-inward.min())
        return
    share = np.linspace(0.0, 1.0, 4001)
    boundary = vertices[:, None] + share[None, :, None] * edge[:, None]
    distances = np.linalg.norm(boundary - point, axis=2)
    assert outside == pytest.approx(distances.min(), abs=1e-7)
    i, s = np.unravel_index(distances.argmin(), distances.shape)
    clamped = {(first + k) % n for k in range(count)}
    if 0.01 < share[s] < 0.99:
        assert clamped == {i, (i + 1) % n}
    elif count == 1:
        assert clamped <= {i, (i + 1) % n}
