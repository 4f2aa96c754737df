"""Outlines of objects: on their surface, at the recorded position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bipedsim.objects import ObjectConfig
from bipedsim.recording.recording import Recording
from bipedsim.view.animation.outlines import moving_outlines, outline

KINDS: list[dict[str, Any]] = [
    {"shape": "ball", "radius": 0.2},
    {"shape": "box", "size": (0.2, 0.4, 0.6)},
    {"shape": "cylinder", "radius": 0.2, "length": 0.5},
]


def thing(**keys: Any) -> ObjectConfig:
    return ObjectConfig(name="thing", mass=1.0, **keys)


@pytest.mark.parametrize("keys", KINDS)
def test_lines_are_on_the_surface(keys: dict[str, Any]) -> None:
    points = np.vstack(outline(thing(**keys)))
    if keys["shape"] == "ball":
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), 0.2)
    elif keys["shape"] == "box":
        np.testing.assert_allclose(np.abs(points), np.tile([0.1, 0.2, 0.3], (len(points), 1)))
    else:
        np.testing.assert_allclose(np.hypot(points[:, 0], points[:, 1]), 0.2)
        np.testing.assert_allclose(np.abs(points[:, 2]), 0.25)


def test_lines_go_along_and_unknown_shapes_are_named() -> None:
    recording = Recording.empty(2, ["hip"], ["left"])
    turned = np.sqrt(0.5)
    pose = np.array([[1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0], [1.0, 2.0, 3.5, 0.0, 0.0, turned, turned]])
    recording.objects = {"thing": np.hstack([pose, np.zeros((2, 6))]), "other": np.zeros((2, 13))}
    recording.run = {"objects": [thing(**KINDS[1]).text()]}
    lines, shown, unknown = moving_outlines(recording)
    assert shown == ("thing",)
    assert "other" in unknown
    at_first, later = np.vstack([line[0] for line in lines]), np.vstack([line[1] for line in lines])
    np.testing.assert_allclose(np.ptp(at_first, axis=0), [0.2, 0.4, 0.6])
    np.testing.assert_allclose(np.ptp(later, axis=0), [0.4, 0.2, 0.6], atol=1e-12)
    np.testing.assert_allclose(0.5 * (later.min(axis=0) + later.max(axis=0)), [1.0, 2.0, 3.5], atol=1e-12)
