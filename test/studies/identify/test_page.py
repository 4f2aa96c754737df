"""The page and the intervals of an estimate."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from estimates import estimate_with
from hypothesis import given, strategies as st

from bipedsim.model import Robot, load_robot
from bipedsim_studies.identify.contact import Contact
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.page import write_estimate
from bipedsim_studies.identify.parameters import parameters_of
from bipedsim_studies.identify.report import changed, intervals


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def estimate_of(robot: Robot, seed: int) -> Estimate:
    """Return an estimate of which a part agrees with the description."""
    p, rng = parameters_of(robot), np.random.default_rng(seed)
    deviation = p.spread * rng.uniform(0.01, 1.0, len(p))
    values = p.with_free(p.start + rng.normal(0.0, 1.5, len(p)) * deviation)
    return estimate_with(p, values, np.diag(deviation**2))


@given(seed=st.integers(0, 10_000))
def test_an_interval_has_the_estimate_and_no_impossible_number(robot: Robot, seed: int) -> None:
    result = estimate_of(robot, seed)
    low, high = result.interval
    assert np.all(low[result.parameters.positive] >= 0.0)
    assert np.all((low <= result.values) & (result.values <= high))
    # Numbers that are possible are not excluded: the interval covers as often as the symmetric one.
    for x in (result.values + 0.99 * result.half_width, np.maximum(result.values - 0.99 * result.half_width, 0.0)):
        possible = result.parameters.positive
        assert np.all((low <= x)[possible] & (x <= high)[possible])
    low_kg, high_kg = intervals(result)
    mass = result.parameters.at["mass"][:, 0]
    assert np.all((low_kg[mass] > 0.0) & (low_kg[mass] < result.parameters.in_units(result.values)[mass]))
    assert np.all(high_kg >= low_kg)


def test_a_number_has_changed_if_its_interval_leaves_out_the_description(robot: Robot) -> None:
    result = estimate_of(robot, 1)
    far = np.abs(result.values - result.parameters.start) > result.half_width
    assert 0 < far.sum() < len(far)
    assert np.array_equal(changed(result), far)


def test_the_page_shows_each_number_once_and_those_that_changed_outside_of_the_folds(
    robot: Robot, tmp_path: Path
) -> None:
    result = estimate_of(robot, 2)
    page = tmp_path / "page.html"
    write_estimate(page, "title", result, [], [], ["a note"], Contact(None, ()))
    text = page.read_text()
    labels = [result.parameters.label(i) for i in range(len(result.values))]
    open_part = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    for label, moved in zip(labels, changed(result), strict=True):
        assert text.count(f"<td>{label}</td>") == 1
        assert (f"<td>{label}</td>" in open_part) == bool(moved)
    assert 'class="warnings"' not in text
    write_estimate(page, "title", result, [], ["no predictions"], [], Contact(None, ()))
    assert 'class="warnings"' in page.read_text()
