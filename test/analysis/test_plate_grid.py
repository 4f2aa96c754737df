"""Known loads on a grid over a plate. An ideal plate is exact, and errors have their specified size."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refusal

from bipedsim.analysis import grid_lines, grid_test, read_plate
from bipedsim.errors import UnknownNameError

TYPES = (
    "type: 1",
    "type: 2",
    "type: 3, half_base: [0.12, 0.2]",
    f"type: 4, calibration: {(2 * np.eye(6)).tolist()}",
)
QUICK = {"points": 3, "seconds": 0.2}


def plate(text: str = "") -> str:
    return f"{{size: [0.6, 0.4], thickness: 0.05{', ' if text else ''}{text}}}"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("more", ["", "natural_frequency: 300, damping: 0.05, anti_alias: 200"])
def test_an_ideal_plate_is_exact(kind: str, more: str) -> None:
    found = grid_test(read_plate(plate(f"{kind}, {more}" if more else kind)), **QUICK)
    # A ringing plate is at rest after half a second.
    assert np.abs(found.bias).max() < 1e-9
    assert np.abs(found.force_bias).max() < 1e-6
    assert found.scatter.max() < 1e-9
    assert np.abs(found.expected_bias).max() < 1e-12


@pytest.mark.parametrize("kind", TYPES[1:])
def test_noise_scatters_as_theory_says(kind: str) -> None:
    """sigma(x) = sqrt(s_My^2 + (h s_Fx)^2 + (x s_Fz)^2) / F_z, also for the noise that passes a low-pass filter."""
    found = grid_test(read_plate(plate(f"{kind}, noise: 0.5")), loads=(200.0, 800.0), points=3, seconds=2.0)
    # A deviation of 2000 samples, of 36 places and axes.
    np.testing.assert_allclose(found.scatter, found.expected_scatter, rtol=4.5 / np.sqrt(2.0 * found.samples))
    assert np.abs(found.bias / (found.scatter / np.sqrt(found.samples))).max() < 5.0
    np.testing.assert_allclose(found.scatter[0].mean() / found.scatter[1].mean(), 4.0, rtol=0.05)
    if kind == "type: 2":
        load, x = found.loads[0], found.points[:, 0]
        # The shear of a tenth comes in over the thickness: x = -M'_y / F_z is that of the surface.
        wanted = np.sqrt(0.5**2 + (0.05 * 0.5) ** 2 + (x * 0.5) ** 2) / load
        np.testing.assert_allclose(found.expected_scatter[0, :, 0], wanted, rtol=1e-9)
        smooth = grid_test(read_plate(plate(f"{kind}, noise: 0.5")), (200.0,), 3, 4.0, cutoff=20.0)
        ratio = smooth.scatter.mean() / found.scatter[0].mean()
        assert ratio == pytest.approx(smooth.expected_scatter.mean() / found.expected_scatter[0].mean(), rel=0.1)
        # Of the band up to 500 Hz some 20 Hz are left.
        assert ratio == pytest.approx(np.sqrt(20.0 / 500.0), rel=0.1)


def test_cross_talk_moves_the_cop_by_what_it_is() -> None:
    """One per cent of F_z in M_y moves the CoP by 10 mm; one per cent in F_x by that times the thickness."""
    rows = np.eye(6)
    rows[4, 2] = 0.01
    found = grid_test(read_plate(plate(f"cross_talk: {rows.tolist()}")), **QUICK)
    np.testing.assert_allclose(found.bias[..., 0], -0.01, atol=1e-9)
    np.testing.assert_allclose(found.bias[..., 1], 0.0, atol=1e-9)
    rows = np.eye(6)
    rows[0, 2] = 0.01
    found = grid_test(read_plate(plate(f"cross_talk: {rows.tolist()}")), **QUICK)
    np.testing.assert_allclose(np.abs(found.bias[..., 0]), 0.01 * 0.05, atol=1e-9)
    np.testing.assert_allclose(found.bias, found.expected_bias, atol=1e-9)


def test_steps_of_the_converter_are_noise_where_there_is_noise() -> None:
    found = grid_test(read_plate(plate("noise: 1.0, range: 5000, bits: 12")), loads=(300.0,), points=3, seconds=2.0)
    np.testing.assert_allclose(found.scatter, found.expected_scatter, rtol=0.1)
    assert found.clipped == 0
    loud = grid_test(read_plate(plate("range: 250, bits: 12")), loads=(300.0,), **QUICK)
    assert loud.clipped > 0
    assert "exceeded the range" in grid_lines(loud)[-1]


def test_what_is_no_plate_says_so() -> None:
    with refusal(place="--grid", value="{size: ["):
        read_plate("{size: [")
    with refusal(UnknownNameError, kind="force plate", meant="kistler_9281c"):
        read_plate("kistler9281c")
    with refusal(place="--grid: size"):
        read_plate("kistler_9281c")
