"""Tracebacks of a controller begin at its own code. Errors of bipedsim show the whole traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bipedsim.control import Guard, construct, controller_traceback, find_controller, raised_line, raising_controller
from bipedsim.model import Robot, load_robot
from bipedsim.sim import Command, Observation

OWN = """
def gain(name):
    return {}[name]

class Bad:
    def __init__(self, robot, params, dt):
        if robot is None:
            gain("made")

    def reset(self, observation):
        if observation.t == 1.0:
            gain("reset")

    def update(self, observation):
        try:
            gain("updated")
        except KeyError as error:
            raise RuntimeError("no gain") from error

    def set_velocity(self, vx, vy, wz):
        gain("steered")
"""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Any]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "raises", raising=False)
    (tmp_path / "raises.py").write_text(OWN)
    return find_controller("raises:Bad")[1]


def at(robot: Robot, t: float) -> Observation:
    observation = Observation.zeros(robot.nu, len(robot.soles))
    observation.t = t
    return observation


@pytest.mark.parametrize(
    ("use", "frames", "said"),
    [
        (lambda bad, robot: construct(bad, None, None, 1e-3), ["__init__", "gain"], "KeyError: 'made'"),
        (lambda bad, robot: hosted(bad, robot).reset(at(robot, 1.0)), ["reset", "gain"], "KeyError: 'reset'"),
        (lambda bad, robot: hosted(bad, robot).steer((1.0, 0.0, 0.0)), ["set_velocity", "gain"], "KeyError: 'steered'"),
        # The cause has frames of its own, which begin where it was caught.
        (
            lambda bad, robot: hosted(bad, robot).update(at(robot, 1.0)),
            ["update", "gain", "update"],
            "RuntimeError: no gain",
        ),
    ],
)
def test_frames_begin_with_those_of_the_controller(
    use: Callable[[type[Any], Robot], object], frames: list[str], said: str, bad: type[Any], robot: Robot
) -> None:
    with pytest.raises(Exception, match=r"gain|made|reset|steered") as caught:
        use(bad, robot)
    lines = controller_traceback(caught.value).splitlines()
    named = [line for line in lines if line.startswith("  File ")]
    assert [line.rpartition(" in ")[2] for line in named] == frames
    assert all("raises.py" in line for line in named)
    assert lines[-1] == said
    assert raising_controller(caught.value) == "raises:Bad"


def hosted(bad: type[Any], robot: Robot) -> Guard:
    return Guard(bad(robot, None, 1e-3), robot)


def test_a_module_that_raises_is_shown_without_how_it_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "raises_at_once.py").write_text("import math\n\nmath.sqrt(-1.0)\n")
    with pytest.raises(ValueError, match="math domain") as caught:
        find_controller("raises_at_once:Bad")
    assert raising_controller(caught.value) == "raises_at_once:Bad"
    (named,) = (line for line in controller_traceback(caught.value).splitlines() if line.startswith("  File "))
    assert named == f'  File "{tmp_path / "raises_at_once.py"}", line 3, in <module>'


def test_what_the_guard_raises_is_not_the_controllers(robot: Robot) -> None:
    class Rests:
        def reset(self, observation: Observation) -> None:
            """Rest."""

        def update(self, observation: Observation) -> Command:
            return Command(np.zeros(robot.nu))

    observation = at(robot, 0.0)
    observation.imu_orientation = np.zeros(3)
    guard = Guard(Rests(), robot)
    guard.reset(observation)
    with pytest.raises(ValueError, match="not enough values to unpack") as caught:
        guard.update(observation)
    assert controller_traceback(caught.value) == ""
    assert raising_controller(caught.value) == ""
    assert controller_traceback(ValueError("raised nowhere")) == ""


def test_a_line_names_error_file_and_line(robot: Robot, bad: type[Any], tmp_path: Path) -> None:
    """The innermost line of the controller's code, also where a library raised it, and not the one that called it."""
    line = OWN.splitlines().index("    return {}[name]") + 1
    with pytest.raises(KeyError) as caught:
        Guard(construct(bad, robot, None, 1e-3), robot).reset(at(robot, 1.0))
    said = raised_line(caught.value)
    assert "\n" not in said
    assert all(part in said for part in ("raises:Bad", "KeyError: 'reset'", f"raises.py:{line} (gain)"))
    with pytest.raises(ValueError, match="shapes") as theirs:
        np.ones(2) + np.ones(3)
    assert "test_raised.py" in raised_line(theirs.value)
