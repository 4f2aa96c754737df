"""Footsteps: displacements of a heading, and lists of footsteps that a robot cannot take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refusal

from bipedsim.control.walking.footsteps import FootstepPlanner, GaitGround, Heading
from bipedsim.control.walking.stride import GaitBuild, GaitParams, Stride
from bipedsim.numerics import Array

PARAMS = GaitParams(single_support=0.6, double_support=0.1)
BUILD = GaitBuild(width=0.2, omega=3.4, left=0, room=0.02)


def planner(build: GaitBuild = BUILD) -> FootstepPlanner:
    """Return a planner on level ground."""
    stride = Stride(PARAMS, build)
    return FootstepPlanner(stride, GaitGround(None, np.array([0.0, 0.0, 1.0]), stride.longest))


@pytest.mark.parametrize(
    ("steps", "place"),
    [
        (np.zeros((0, 3)), "footsteps"),
        (np.zeros(3), "footsteps"),
        ([[0.1, 0.1, np.nan]], "footsteps"),
        ([[0.6, 0.1, 0.0]], "footsteps[0]"),
        ([[-0.6, 0.1, 0.0]], "footsteps[0]"),
        ([[0.0, 0.03, 0.0]], "footsteps[0]"),
        ([[0.0, 0.31, 0.0]], "footsteps[0]"),
        ([[0.1, 0.1, 0.0], [0.1, 0.1, 0.0]], "footsteps[1]"),
        ([[0.0, 0.1, 1.5], [0.4, -0.1, 0.0]], "footsteps[1]"),
        ([[0.1, -0.1, 0.0], [0.1, -0.2, 0.0]], "footsteps[1]"),
    ],
)
def test_footsteps_that_cannot_be_taken_are_refused(steps: Any, place: str) -> None:
    with refusal(place=place):
        planner().check(np.array(steps))


@given(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0), st.floats(-3.0, 3.0), st.floats(-1.0, 1.0), st.floats(-3.0, 3.0))
def test_moves_of_a_heading_are_products_of_planar_displacements(
    x: float, y: float, yaw: float, ahead: float, turn: float
) -> None:
    def matrix(h: Heading) -> Array:
        c, s = np.cos(h.yaw), np.sin(h.yaw)
        return np.array([[c, -s, h.x], [s, c, h.y], [0.0, 0.0, 1.0]])

    here = Heading(x, y, yaw)
    step = Heading(ahead, 0.3, turn)
    assert matrix(here.moved(ahead, 0.3, turn)) == pytest.approx(matrix(here) @ matrix(step), abs=1e-12)


def test_no_footstep_is_farther_away_than_legs_reach() -> None:
    long = np.array([[0.2, 0.1, 0.0], [0.55, -0.1, 0.0]])
    planner().check(long)
    with refusal(place="footsteps[1]", value=[0.55, -0.1, 0.0]):
        planner(BUILD._replace(longest=0.3)).check(long)
