"""The controls of a live page, and the command of the next run as a shell reads it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from hypothesis import given, strategies as st

from bipedsim.ground import Ground
from bipedsim.model import load_robot
from bipedsim.view.page import Page
from bipedsim_ros.live import Panel, RunningRobot, TeleopParams
from bipedsim_ros.live.gains import STEPS, slider_range
from bipedsim_ros.live.panel import command_of
from bipedsim_ros.live.remote import SIM, Answer, LiveParameter, Remote
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
        self.there = self.changed_by_others = True
        self.starts = 1
        self.read_names: list[str] = []
        self.described = 0
        self.gains = [LiveParameter("posture.stiffness", 10.0, 0.0, 1000.0, "kp / kd")]
        self.drives = [LiveParameter("drive_damping.l_knee", 5.0, 0.0, 1e300, "damping")]
        self.changes: list[tuple[str, float, str]] = []
        self.pushes: list[tuple[list[float], str]] = []
        self.velocities: list[tuple[float, ...]] = []

    def push(self, force: np.ndarray, body: str) -> None:
        self.pushes.append((force.tolist(), body))

    def steer(self, velocity: tuple[float, ...]) -> None:
        self.velocities.append(velocity)

    def read_live(self, take: Callable[[list[LiveParameter]], None], of: str, groups: Sequence[str]) -> bool:
        assert groups == (("drive_stiffness", "drive_damping") if of == SIM else ())
        self.described += 1
        take(self.drives if of == SIM else self.gains)
        return True

    def start_of(self, of: str) -> tuple[bytes, ...]:
        return (bytes([self.starts]),) if self.there else ()

    def changed(self, of: str) -> bool:
        return self.changed_by_others

    def read(self, of: str, names: Sequence[str], take: Callable[[dict[str, Any]], None]) -> bool:
        self.read_names += names
        take({each.name: each.value for each in (self.drives if of == SIM else self.gains) if each.name in names})
        return True

    def change(self, asked: str, name: str, value: float, of: str) -> None:
        self.changes.append((name, value, of))


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


def test_a_slider_sends_its_newest_value_and_shows_what_the_controller_has(panel: Panel) -> None:
    """A drag makes many values; each change is sent after the answer to the one before."""
    gains, _ = panel._gains
    panel.look()
    (slider,) = gains._sliders.values()
    assert (slider.value, slider.min, slider.max) == (10.0, 0.0, 40.0)
    # Without a controller there are no sliders, and none for a number that cannot change.
    ASKED.there, gains._due = False, 0.0
    panel.look()
    assert not gains._sliders
    ASKED.there, gains._due = True, 0.0
    ASKED.gains.append(LiveParameter("posture.fixed", 0.0, 0.0, 0.0, ""))
    panel.look()
    (slider,) = gains._sliders.values()
    for value in (11.0, 12.0, 13.0):
        slider.value = value
        gains._slid(SimpleNamespace(client_id=1, target=slider), "posture.stiffness")
    panel.look()
    assert ASKED.changes == [("posture.stiffness", 13.0, "controller_node")]
    slider.value = 14.0
    gains._slid(SimpleNamespace(client_id=1, target=slider), "posture.stiffness")
    gains._slid(SimpleNamespace(client_id=None, target=slider), "posture.stiffness")
    panel.look()
    assert len(ASKED.changes) == 1
    panel.answered(Answer("posture.stiffness", True, "posture.stiffness = 13"))
    panel.look()
    assert ASKED.changes[1:] == [("posture.stiffness", 14.0, "controller_node")]
    # The controller refuses it, and another program has set a value beyond the slider.
    ASKED.gains = [LiveParameter("posture.stiffness", 90.0, 0.0, 1000.0, "kp / kd")]
    panel.answered(Answer("posture.stiffness", False, "it is refused"))
    panel.look()
    assert (slider.value, slider.max) == (90.0, 90.0)
    ASKED.gains = []
    ASKED.starts += 1
    gains._due = 0.0
    panel.look()
    assert not gains._sliders


def test_a_node_is_asked_only_after_its_start_and_after_changes(panel: Panel) -> None:
    """sim_node answers in the process of its real-time loop, and has two gains for each joint."""
    _, drives = panel._gains
    ASKED.there, ASKED.changed_by_others = True, False

    def look() -> tuple[int, int]:
        ASKED.described, ASKED.read_names = 0, []
        drives._due = 0.0
        drives.look()
        return ASKED.described, len(ASKED.read_names)

    ASKED.starts += 1
    assert look() == (1, 0)
    assert look() == (0, 0)
    ASKED.changed_by_others = True
    ASKED.drives = [LiveParameter("drive_damping.l_knee", 7.0, 0.0, 1e300, "damping")]
    assert look() == (0, 1)
    assert drives._sliders["drive_damping.l_knee"].value == 7.0
    ASKED.changed_by_others = False
    assert look() == (0, 0)
    ASKED.starts += 1
    assert look() == (1, 0)


def test_a_slider_of_the_drives_changes_the_simulator(panel: Panel) -> None:
    ASKED.there, ASKED.changes = True, []
    _, drives = panel._gains
    drives._due = 0.0
    panel.look()
    ((name, slider),) = drives._sliders.items()
    assert slider.label == name == "drive_damping.l_knee", "stiffness and damping of a joint have other names"
    slider.value = 6.0
    drives._slid(SimpleNamespace(client_id=1, target=slider), name)
    panel.look()
    assert ASKED.changes == [(name, 6.0, SIM)]


@given(value=st.floats(-1e4, 1e4), low=st.sampled_from([-math.inf, -1e300, 0.0]), wide=st.floats(1e-3, 1e300))
def test_the_range_of_a_slider_holds_its_value_within_the_limits(value: float, low: float, wide: float) -> None:
    low = min(low, value)
    parameter = LiveParameter("gain", value, low, value + wide, "")
    first, last, step = slider_range(parameter)
    if value > 0.0 and math.isinf(low):
        assert first == 0.0
    assert low <= first <= value <= last <= value + wide
    assert first < last
    assert 0.0 < step <= (last - first) / STEPS


@pytest.mark.parametrize(
    ("value", "low", "high", "first"),
    [
        (1.5, -1.0, 20.0, -1.0),
        (1.5, -10.0, 10.0, -6.0),
        (0.0, -math.inf, math.inf, -1.0),
        (0.0, -10.0, 0.0, -1.0),
        (-2.0, -100.0, 5.0, -8.0),
    ],
)
def test_a_slider_reaches_the_negative_values_that_a_parameter_may_have(
    value: float, low: float, high: float, first: float
) -> None:
    assert slider_range(LiveParameter("gain", value, low, high, ""))[0] == first
