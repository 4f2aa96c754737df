"""The colours of plots and pages: everybody can distinguish them, and read texts in the colours of feet."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from bipedsim.view import palette

# Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
SCENE = {
    **palette.MODE_COLOURS,
    "left foot": palette.FOOT_COLOURS[0],
    "right foot": palette.FOOT_COLOURS[1],
    **{
        name: getattr(palette, f"{name.upper()}_COLOUR")
        for name in ("total", "limit", "force", "push", "cop", "capture", "support", "plan")
    },
}
"""Colours that the page shows at the same time."""


def lab(colour: str, sight: str) -> np.ndarray:
    """Return a colour in CIELAB (D65), as it appears with this colour vision."""
    rgb = np.array([value / 255.0 for value in bytes.fromhex(colour.removeprefix("#"))])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(np.array(SIGHT[sight]) @ linear, 0.0, 1.0) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16.0 / 116.0)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


def nearest(colours: dict[str, str], sight: str) -> tuple[float, str, str]:
    seen = {name: lab(colour, sight) for name, colour in colours.items()}
    return min((float(np.linalg.norm(seen[a] - seen[b])), a, b) for a, b in combinations(seen, 2))


@pytest.mark.parametrize("sight", SIGHT)
def test_everybody_can_distinguish_the_colours_of_the_scene(sight: str) -> None:
    distance, a, b = nearest(SCENE, sight)
    # 2.3 is just noticeable next to each other; small marks at a distance need several times as much.
    assert distance > 15.0, f"{a} and {b}"


@pytest.mark.parametrize("sight", SIGHT)
def test_everybody_can_distinguish_the_curves_of_a_plot(sight: str) -> None:
    distance, a, b = nearest({colour: colour for colour in palette.FOOT_COLOURS}, sight)
    assert distance > 10.0, f"{a} and {b}"


@pytest.mark.parametrize("colour", [*palette.FOOT_COLOURS, palette.TOTAL_COLOUR, palette.LIMIT_COLOUR])
def test_texts_in_the_colour_of_a_curve_have_contrast_on_white(colour: str) -> None:
    assert 1.05 / (palette.luminance(colour) + 0.05) >= 4.5


@pytest.mark.parametrize("colour", palette.MODE_COLOURS.values())
def test_texts_on_the_colour_of_a_mode_have_contrast(colour: str) -> None:
    a, b = sorted((palette.luminance(colour), palette.luminance(palette.text_colour(colour))))
    assert (b + 0.05) / (a + 0.05) >= 4.5
