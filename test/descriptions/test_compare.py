"""Differences of limits between two descriptions: only relevant ones are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from description_support import small_urdf

from bipedsim.descriptions import import_robot


@pytest.mark.parametrize(
    ("key", "one", "other", "told"),
    [
        ("lower", "0", "-0.5", True),
        ("upper", "2", "0", True),
        ("lower", "-0.1", "-0.1005", False),
        ("lower", "-0.1", "-0.102", True),
        ("effort", "60", "40", True),
        ("effort", "60", "0", False),
        ("velocity", "0", "8", False),
        ("velocity", "8", "7", True),
    ],
)
def test_a_limit_of_zero_is_one_for_positions_and_none_for_drives(
    key: str, one: str, other: str, told: bool, tmp_path: Path
) -> None:
    """A percent is rounding; effort and velocity of 0 are unknown."""
    limits = {"lower": "-0.1", "upper": "2", "effort": "60", "velocity": "8"}
    for name, value in (("one", one), ("other", other)):
        limit = " ".join(f'{k}="{v}"' for k, v in {**limits, key: value}.items())
        (tmp_path / f"{name}.urdf").write_text(small_urdf(knee=f"<limit {limit}/>"))
    made = import_robot(tmp_path / "one.urdf", tmp_path / "made", tmp_path / "other.urdf")
    differences = made.notes.said["differs"]
    assert len(differences) == told
    assert all(key in text and "left_knee" in text and "right_knee" in text for text in differences)
