"""The controls of a live page, and the command of the next run as a shell reads it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from hypothesis import given, strategies as st

from bipedsim.ground import Ground
from bipedsim.model import load_robot
from bipedsim.view.page import Page
from bipedsim_ros.live import Panel, RunningRobot, TeleopParams
from bipedsim_ros.live.panel import command_of
from bipedsim_ros.live.remote import Answer, Remote
from bipedsim_ros.loop import SimParams

WORDS = st.dictionaries(st.sampled_from(["robot", "controller", "scenario", "ground", "record"]), st.text(max_size=12))


@given(WORDS)
def test_a_shell_reads_back_what_was_meant(words: dict[str, str]) -> None:
    line = shlex.split(command_of(words))
    assert line[:3] == ["bipedsim", "up", "--view"]
    assert dict(zip(line[3::2], line[4::2], strict=True)) == {f"--{name}": word for name, word in words.items() if word}


class Asked:
    """The requests of the controls to the nodes."""

    def __init__(self) -> None:
        self.pushes: list[tuple[list[float], str]] = []
        self.velocities: list[tuple[float, ...]] = []

    def push(self, force: np.ndarray, body: str) -> None:
        self.pushes.append((force.tolist(), body))

    def steer(self, velocity: tuple[float, ...]) -> None:
        self.velocities.append(velocity)


ASKED = Asked()


@pytest.fixture(scope="module")
def panel() -> Iterator[Panel]:
    """The controls of a page before the first answer of the simulator."""
    robot, ground = load_robot("biped14"), Ground.flat()
    page = Page(robot, ground, port=0)
    found = RunningRobot(robot, ground, run={"robot": "biped14"})
    yield Panel(page, found, cast(Remote, ASKED), TeleopParams())
    page.close()


def test_a_push_lasts_as_long_as_the_simulator_has_it_by_default(panel: Panel) -> None:
    assert panel._lasts.value == SimParams().push_timeout


def test_time_stands_after_a_pause_and_one_step_and_goes_on_after_the_others(panel: Panel) -> None:
    for asked, label in (("Pause", "Resume"), ("Resume", "Pause"), ("One step", "Resume"), ("Reset", "Pause")):
        panel.answered(Answer(asked, False, "it was refused"))
        panel.answered(Answer("Push", True, "it was done"))
        assert panel._pause.label != label
        panel.answered(Answer(asked, True, "it was done"))
        assert panel._pause.label == label


def test_a_page_that_is_closed_ends_its_drag_and_its_walk(panel: Panel) -> None:
    """A push lasts until its drag ends, which a closed page cannot do by itself."""
    weight = load_robot("biped14").weight
    panel._drag("torso", np.array([0.0, 0.5, 0.0]), True)
    panel.look()
    assert ASKED.pushes == [([0.0, pytest.approx(0.5 * weight), 0.0], "torso")]
    panel._press("w", 7)
    panel._on_disconnect(3)
    assert any(ASKED.velocities[-1])
    panel._on_disconnect(7)
    assert not any(ASKED.velocities[-1])
    count = len(ASKED.pushes)
    panel.look()
    assert len(ASKED.pushes) == count
