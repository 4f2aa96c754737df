"""Sway metrics of paths whose values are known."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refusal

from bipedsim.analysis import stood_still, sway_figures
from bipedsim.plates import PlateGeometry, PlateSignals

RATE, N = 100.0, 6000
T = np.arange(N) / RATE


def test_a_circle_has_its_radius_speed_area_and_frequency() -> None:
    radius, f = 0.01, 0.5
    cop = radius * np.column_stack([np.cos(2.0 * np.pi * f * T), np.sin(2.0 * np.pi * f * T)]) + [0.3, -0.2]
    found = sway_figures(cop, RATE)
    assert found["mean_distance_m"] == pytest.approx(radius, rel=1e-9)
    assert found["rms_distance_m"] == pytest.approx(radius, rel=1e-9)
    assert found["mean_velocity_m_per_s"] == pytest.approx(2.0 * np.pi * f * radius, rel=1e-3)
    assert found["mean_frequency_hz"] == pytest.approx(f, rel=1e-3)
    assert found["circle_area_m2"] == pytest.approx(np.pi * radius**2, rel=1e-3)
    assert found["sway_area_m2_per_s"] == pytest.approx(f * np.pi * radius**2, rel=1e-3)
    for way in ("_ap", "_ml"):
        assert found[f"range{way}_m"] == pytest.approx(2.0 * radius, rel=1e-6)
        # The mean frequency of a sine is its frequency times pi / (2 sqrt 2), because Prieto's formula assumes a
        # triangle wave.
        assert found[f"mean_frequency{way}_hz"] == pytest.approx(f * np.pi / (2.0 * np.sqrt(2.0)), rel=1e-3)
        assert found[f"median_frequency{way}_hz"] == pytest.approx(f, abs=0.1)
        assert found[f"power{way}_m2"] == pytest.approx(0.5 * radius**2, rel=0.05)


def test_the_ellipse_holds_95_percent_of_new_points() -> None:
    rng = np.random.default_rng(1)
    shape = np.array([[0.004, 0.0], [0.002, 0.001]])
    few = rng.normal(size=(12, 2)) @ shape.T
    figures = sway_figures(few, RATE)
    centre, inverse = few.mean(axis=0), np.linalg.inv(np.cov(few, rowvar=False))
    # Of an ellipse x' S^-1 x < r^2 the area is pi r^2 sqrt(det S).
    square = figures["ellipse_area_m2"] / (np.pi * np.sqrt(1.0 / np.linalg.det(inverse)))
    inside = []
    for _ in range(2000):
        few = rng.normal(size=(12, 2)) @ shape.T
        centre, inverse = few.mean(axis=0), np.linalg.inv(np.cov(few, rowvar=False))
        new = rng.normal(size=(50, 2)) @ shape.T - centre
        inside.append((np.einsum("ij,jk,ik->i", new, inverse, new) < square).mean())
    assert np.mean(inside) == pytest.approx(0.95, abs=0.006)


def test_a_missing_cop_is_told() -> None:
    cop = np.zeros((50, 2))
    cop[3] = np.nan
    with refusal(place="sway: missing", value=1):
        sway_figures(cop, RATE)


@pytest.mark.parametrize(
    ("sway", "bounce", "seconds", "said"),
    [
        (0.01, 0.01, 20.0, ""),
        (0.0, 0.0, 20.0, "motionless"),
        (0.3, 0.0, 20.0, "no quiet standing"),
        (0.01, 0.2, 20.0, "no quiet standing"),
        (0.01, 0.0, 5.0, "less than 9.9 s"),
    ],
)
def test_only_quiet_standing_has_figures_of_sway(sway: float, bounce: float, seconds: float, said: str) -> None:
    t = np.arange(int(seconds * RATE)) / RATE
    corners = np.array([[0.5, -0.5, 0.0], [-0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    geometry = PlateGeometry("floor", corners, 2, RATE)
    force = np.zeros((len(t), 3))
    force[:, 2] = 700.0 * (1.0 + 0.5 * bounce * np.sin(2.0 * np.pi * 0.3 * t))
    at = np.zeros_like(force)
    at[:, 0] = 0.5 * sway * np.sin(2.0 * np.pi * 0.2 * t)
    moment = np.cross(at - geometry.transducer_origin, force)
    plate = PlateSignals(t, geometry, np.hstack([force @ geometry.rotation, moment @ geometry.rotation]))
    found = stood_still({"floor": plate})
    if said:
        assert isinstance(found, str)
        assert said in found
    else:
        cop, rate = found
        assert rate == RATE
        np.testing.assert_allclose(cop, at[:, :2], atol=1e-9)
