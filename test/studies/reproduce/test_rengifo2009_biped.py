"""Five steps under feedback linearisation: the metrics of sections IV and V of the paper, and their assumptions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from bipedsim_studies.reproduce.common import Series
from bipedsim_studies.reproduce.papers import get_paper
from bipedsim_studies.reproduce.rengifo2009 import biped

runs = lru_cache(lambda: {epsilon: biped.walk(epsilon) for epsilon in biped.EPSILONS})


@pytest.mark.slow
def test_the_figures_are_met() -> None:
    assert [check.quantity for check in biped.checks(runs()) if not check.ok] == []
    assert "biped" in get_paper("rengifo2009").cases


@pytest.mark.slow
def test_with_epsilon_four_vertices_share_the_weight() -> None:
    """In the middle of the foot, each vertex has a quarter of the load, and none is above the ground."""
    run = runs()[1e-6]
    for step in (1, 3):
        # The left foot lands a moment before the planned time.
        rows = biped.alone(run.t, step, 0.4) & (run.t < biped.GAIT.ends[2 * step + 2] - 0.1)
        assert run.force[rows, biped.LEFT].max() == 0.0
        share = run.force[rows, biped.RIGHT] / run.force[rows, biped.RIGHT].sum(axis=1, keepdims=True)
        assert share == pytest.approx(np.full_like(share, 0.25), abs=0.01)
        assert run.height[rows, biped.RIGHT].max() < 0.0


def test_false_impacts_are_counted_vertex_by_vertex() -> None:
    """Of the right foot, in its single supports only, and only when a force becomes zero."""
    t = np.arange(0.0, biped.GAIT.ends[-1], 1e-3)
    force = np.full((len(t), 2, 4), 100.0)
    run = Series(t=t, force=force)
    assert biped.false_impacts(run, 1.0) == 0
    begin, end = biped.GAIT.ends[3], biped.GAIT.ends[4]
    early, late = int((begin + 0.1) * 1000), int((end - 0.1) * 1000)
    force[early : early + 5, biped.RIGHT, 0] = 0.0
    force[late : late + 5, biped.RIGHT, 1:3] = 0.0
    force[late : late + 5, biped.LEFT] = 0.0
    force[int((end + 0.1) * 1000), biped.RIGHT] = 0.0
    assert biped.false_impacts(run, 1.0) == 3
    assert biped.false_impacts(run, 0.5) == 2
