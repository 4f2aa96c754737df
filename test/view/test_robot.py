"""Figures of robots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.view import draw_robot, robot as robot_module


@pytest.mark.long
@pytest.mark.parametrize("name", ["biped14", "compass", "talos", "g1"])
def test_labels_of_ticks_do_not_overlap(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    drawn = robot_module.picture

    @contextmanager
    def keep(*args: Any) -> Iterator[Figure]:
        with drawn(*args) as figure:
            figures.append(figure)
            yield figure

    monkeypatch.setattr(robot_module, "picture", keep)
    try:
        robot = load_robot(name)
    except ConfigError as error:
        pytest.skip(str(error))
    draw_robot(robot, tmp_path / "robot.png")
    (figure,) = figures
    for axes in figure.axes:
        low, high = sorted(axes.get_xlim())
        labels = [
            label.get_window_extent()
            for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
            if low <= place <= high
        ]
        labels.sort(key=lambda box: float(box.x0))
        assert len(labels) > 1
        assert all(left.x1 < right.x0 for left, right in pairwise(labels))


@pytest.mark.long
@pytest.mark.parametrize("name", ["biped14", "parallel_ankles", "compass", "ball", "mass"])
def test_any_robot_is_drawn(name: str, tmp_path: Path) -> None:
    import bipedsim

    try:
        robot = load_robot(name)
    except ConfigError:
        robot = load_robot(Path(bipedsim.__file__).parents[1] / "bipedsim_studies" / "bodies" / name)
    draw_robot(robot, tmp_path / "robot.png")
    with Image.open(tmp_path / "robot.png") as image:
        assert image.width > 600
