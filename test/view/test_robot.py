"""Pictures of robots."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.view import draw_robot


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
