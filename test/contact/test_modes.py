"""The admissible set of Table I, its names, and the constraints that each mode means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from physics_support import regular_polygon

from bipedsim.contact.modes import (
    FootMode,
    ModeRows,
    Sliding,
    clamped_range,
    constraints,
    face_mode,
    mode_masks,
    mode_name,
    mode_parts,
    n_modes,
)


@given(n=st.integers(3, 64))
def test_admissible_set_is_none_vertices_edges_face(n: int) -> None:
    masks = mode_masks(n)
    assert len(masks) == 2 * n + 2 == n_modes(n)
    assert len({tuple(row) for row in masks}) == len(masks)
    assert sorted(masks.sum(axis=1)) == sorted([0] + [1] * n + [2] * n + [n])
    for row in masks[n + 1 : 2 * n + 1]:
        i, j = np.flatnonzero(row)
        assert j - i in (1, n - 1)
    assert masks[face_mode(n)].all()


def test_small_feet_have_no_face() -> None:
    assert mode_masks(1).tolist() == [[0], [1]]
    assert mode_masks(2).tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_clamped_range_is_the_mask(n: int) -> None:
    for mode, mask in enumerate(mode_masks(n)):
        first, count = clamped_range(mode, n)
        assert sorted((first + k) % n for k in range(count)) == np.flatnonzero(mask).tolist()


def test_names_say_what_is_clamped() -> None:
    assert mode_name(0, True, 4) == "none"
    assert mode_name(3, False, 4) == "vertex 2 stick"
    assert mode_name(5, True, 4) == "edge 0-1 slide"
    assert mode_name(8, False, 4) == "edge 3-0 stick"
    assert mode_name(9, False, 4) == "face stick"
    assert mode_name(3, False, 2) == "edge 0-1 stick"
    assert [mode_parts(mode, 4) for mode in (0, 3, 8, 9)] == [("none",), ("vertex", "2"), ("edge", "3-0"), ("face",)]


@pytest.mark.parametrize("sliding", [False, True])
@pytest.mark.parametrize(("mode", "stick_rows", "slide_rows"), [(2, 3, 1), (6, 5, 2), (9, 6, 3)])
def test_constraints_hold_the_clamped_vertices_and_nothing_else(
    mode: int, stick_rows: int, slide_rows: int, sliding: bool
) -> None:
    """The motions that T leaves free are those that move no clamped vertex (normal direction only while sliding)."""
    n = 4
    offsets = np.column_stack([regular_polygon(n, 0.1), np.zeros(n)]) + np.array([0.03, -0.02, -0.05])
    rows = ModeRows(T=np.zeros((6, 6)), F=np.zeros((6, 6)), b=np.zeros(6), r_vj=np.zeros(3))
    slip = np.array([0.6, 0.0, 0.8])
    foot = FootMode(mode, sliding, n, offsets, np.zeros(n), np.zeros((n, 2)), h=1e-3, gamma=0.2)
    m = constraints(foot, Sliding(0.5, 0.07, slip), rows)
    T, F = rows.T, rows.F
    assert m == (slide_rows if sliding else stick_rows)
    if m == 6:
        # A sticking face holds all six velocities; its matrices are not written.
        T = np.eye(6)
        F = np.eye(6)
    np.testing.assert_array_equal(rows.b[:m], 0.0)
    velocities = []
    for i in np.flatnonzero(mode_masks(n)[mode]):
        x, y, z = offsets[i]
        velocity = np.hstack([np.eye(3), [[0, z, -y], [-z, 0, x], [y, -x, 0]]])
        velocities.append(velocity[2:] if sliding else velocity)
    held = np.vstack(velocities)
    assert np.linalg.matrix_rank(held) == m
    assert np.linalg.matrix_rank(np.vstack([held, T[:m]]), tol=1e-9) == m
    if not sliding:
        np.testing.assert_array_equal(F[:, :m], T[:m].T)


@given(heights=st.lists(st.floats(-2e-4, 1e-3), min_size=3, max_size=3))
def test_targets_close_gaps_and_let_penetration_decay(heights: list[float]) -> None:
    """A triangle follows any heights: the wanted motion gives each vertex its own wanted velocity."""
    n, h, gamma = 3, 1e-3, 0.2
    z = np.array(heights)
    offsets = np.column_stack([regular_polygon(n, 0.1), np.zeros(n)])
    rows = ModeRows(T=np.zeros((6, 6)), F=np.zeros((6, 6)), b=np.zeros(6), r_vj=np.zeros(3))
    foot = FootMode(face_mode(n), True, n, offsets, z, np.zeros((n, 2)), h, gamma)
    m = constraints(foot, Sliding(0.5, 0.0, np.zeros(3)), rows)
    motion = np.linalg.lstsq(rows.T[:m], rows.b[:m], rcond=None)[0]
    speeds = motion[2] + motion[3] * offsets[:, 1] - motion[4] * offsets[:, 0]
    np.testing.assert_allclose(z + h * speeds, np.where(z < 0.0, (1.0 - gamma) * z, 0.0), atol=1e-15)
