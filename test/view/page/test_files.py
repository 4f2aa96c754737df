"""Layouts and states: what is saved is loaded again, and what is none is refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import yaml
from refusals import refusal

pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from bipedsim import Ground, load_robot
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.view.page import History, Instant, Page, PosturePage
from bipedsim.view.page.files import read_layout, read_posture, state_of_instant, to_yaml


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture
def page(robot: Robot) -> Iterator[Page]:
    page = Page(robot, Ground.flat(), port=0)
    yield page
    page.close()


def walking(robot: Robot, t: float) -> Instant:
    q = robot.q_nominal.copy()
    q[0] = t
    return Instant(t=t, q=q, v=np.zeros(robot.model.nv), joint_position=np.full(14, t), readouts={"zmp_margin": t})


def test_a_layout_that_was_saved_is_loaded_again(page: Page, robot: Robot) -> None:
    history = History(page)
    for t in (0.1, 0.2, 0.3):
        history.add(walking(robot, t))
    page.switch("axes", True)
    assert page.plots is not None
    page.plots.names = [["l_knee position [rad]", "zmp_margin [m]"], ["CoM z [m]"]]
    saved = to_yaml(page.layout())
    page.plots.names = [["base z [m]"]]
    page.switch("axes", False)
    page.load_layout(read_layout(saved, "layout.yaml"))
    assert page.plots.names == [["l_knee position [rad]", "zmp_margin [m]"], ["CoM z [m]"]]
    assert page.scene.layers["axes"].on


@pytest.mark.parametrize(
    "text",
    ["[1", "3", "{}", "{plot: []}", "{layers: {nothing: true}}", "{plots: 3}", "{camera: [1, 2]}", "{opacity: 2}"],
)
def test_a_file_that_is_no_layout_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        read_layout(text.encode(), "layout.yaml")


def test_a_state_is_a_posture_of_a_robot_yaml(robot: Robot) -> None:
    q = robot.q_nominal.copy()
    q[robot.idx_q] += 0.01
    saved = to_yaml(state_of_instant(robot, Instant(t=2.0, q=q, v=np.ones(robot.model.nv))))
    state = yaml.safe_load(saved)
    assert state["t"] == 2.0
    np.testing.assert_array_equal(state["base_pose"], q[:7])
    posture = read_posture(saved, "state.yaml", robot)
    np.testing.assert_array_equal([posture[name] for name in robot.joint_names], q[robot.idx_q])
    with refusal(ConfigError, place="state.yaml: posture", value="wing"):
        read_posture(b"posture: {wing: 1.0}", "state.yaml", robot)
    with refusal(ConfigError, place="state.yaml: posture: l_knee", value="bent"):
        read_posture(b"posture: {l_knee: bent}", "state.yaml", robot)


def test_sliders_move_the_joints_of_a_robot_at_rest(robot: Robot) -> None:
    shown = PosturePage(robot, port=0)
    try:
        shown.move({"l_knee": 1.1, "r_knee": 1.1})
        joints = dict(zip(robot.joint_names, shown.q[robot.idx_q].tolist(), strict=True))
        assert joints["l_knee"] == joints["r_knee"] == 1.1
        assert joints["l_hip_pitch"] == pytest.approx(robot.posture[2], abs=6e-4)
        shown.move({"l_knee": 99.0})
        limit = robot.position_upper[robot.joint_names.index("l_knee")]
        assert shown.q[robot.idx_q[robot.joint_names.index("l_knee")]] == pytest.approx(limit, abs=1e-3)
    finally:
        shown.page.close()


def test_a_live_page_is_rewound_while_the_robot_goes_on(page: Page, robot: Robot) -> None:
    history = History(page)
    for t in np.arange(1, 60) / 30.0:
        history.add(walking(robot, float(t)))
    history.go(1.0)
    assert page.layout()["follow"]
    history.add(walking(robot, 2.0))
    assert page._instant is not None
    assert page._instant.t == 1.0, "the page stays at the earlier instant"
    history.go(None)
    assert page._instant.t == 2.0
    history.go(1.0)
    history.add(walking(robot, 0.1))
    assert history.live, "after a reset there is nothing to look back at"
    assert page._instant.t == pytest.approx(0.1)
