"""A page without a browser: its nodes after a frame, and its texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray
from refusals import refusal

pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from bipedsim.ground import Ground, get_ground
from bipedsim.model import Robot, load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.recording import Plan
from bipedsim.view.page import Instant, Page, Pushed
from bipedsim.view.page.figures import body, now
from bipedsim.view.page.plots import Plots
from bipedsim.view.page.signals import LARGEST_TORQUE, Signals, SignalTable, axis
from bipedsim.view.page.state import state_of

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture
def page(robot: Robot) -> Iterator[Page]:
    made = Page(
        robot, Ground.flat(), port=0, objects=[ObjectConfig(name="box", shape="box", mass=1.0, size=(0.1, 0.1, 0.1))]
    )
    yield made
    made.close()


def standing(robot: Robot, **more: object) -> Instant:
    wrench = np.zeros((2, 6))
    wrench[:, 2] = 0.5 * robot.weight
    return Instant(
        t=1.5,
        q=robot.q_nominal,
        v=np.zeros(robot.model.nv),
        wrench=wrench,
        cop=np.array([[0.03, 0.0], [0.05, 0.01]]),
        mode=np.array([9, 9]),
        clamped=np.array([15, 15]),
        sliding=np.array([False, True]),
        n_vertices=np.array([4, 4]),
        joint_effort=np.full(14, 10.0),
        **more,  # type: ignore[arg-type]
    )


def node(page: Page, name: str) -> object:
    """Return the node whose name ends with ``name``."""
    names = [known for known in page.server.scene._handle_from_node_name if known.endswith(name)]
    assert len(names) == 1, names
    return page.server.scene.get_handle_by_name(names[0])


def in_picture(page: Page, name: str) -> pin.SE3:
    """Return the position of a node in the axes of the scene, through its parents."""
    handle = page.server.scene.get_handle_by_name(name)
    if handle is None:
        return pin.SE3.Identity()
    w, x, y, z = handle.wxyz
    here = pin.SE3(pin.Quaternion(w, x, y, z).normalized().toRotationMatrix(), np.asarray(handle.position))
    parent = name.rpartition("/")[0]
    return in_picture(page, parent) * here if parent else here


def test_every_joint_is_where_pinocchio_has_it(page: Page, robot: Robot) -> None:
    rng = np.random.default_rng(1)
    data = robot.model.createData()
    for _ in range(5):
        q = pin.integrate(robot.model, robot.q_nominal, rng.uniform(-1.0, 1.0, robot.model.nv))
        page.show(Instant(t=0.0, q=q))
        pin.forwardKinematics(robot.model, data, q)
        for joint in range(1, robot.model.njoints):
            name = next(n for n in page.server.scene._handle_from_node_name if n.endswith(f"/{joint}") and "robot" in n)
            found = in_picture(page, name)
            np.testing.assert_allclose(found.translation - page.scene.offset, data.oMi[joint].translation, atol=1e-3)
            np.testing.assert_allclose(found.rotation, data.oMi[joint].rotation, atol=1e-3)


def test_arrows_are_as_long_as_their_forces(page: Page, robot: Robot) -> None:
    page.show(standing(robot))
    tail, tip = node(page, "sole_0/force").points[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(tail, [0.03, 0.0, 0.0], atol=1e-4)
    # 0.35 times the size of the robot for its weight.
    np.testing.assert_allclose(tip - tail, [0.0, 0.0, 0.5 * 0.35 * page.scene.size], atol=1e-4)
    lifted = standing(robot)
    lifted.cop[0], lifted.wrench[0] = np.nan, 0.0  # type: ignore[index]
    page.show(lifted)
    assert not node(page, "sole_0/force").visible  # type: ignore[attr-defined]
    assert node(page, "sole_1/force").visible  # type: ignore[attr-defined]


def test_layers_are_switched_and_stay_so(page: Page, robot: Robot) -> None:
    page.show(standing(robot))
    forces = node(page, "sole_0/force")
    page.scene.layers["forces"].switch(False)
    page.show(standing(robot))
    assert not forces.visible  # type: ignore[attr-defined]
    page.scene.layers["forces"].switch(True)
    assert forces.visible  # type: ignore[attr-defined]


def test_the_robot_stays_in_the_middle_while_it_is_followed(page: Page, robot: Robot) -> None:
    q = robot.q_nominal.copy()
    q[0] += 5.0
    page.show(Instant(t=0.0, q=robot.q_nominal))
    page.show(Instant(t=9.0, q=q))
    com = pin.centerOfMass(robot.model, robot.model.createData(), q)
    np.testing.assert_allclose(page.scene.offset[:2], -com[:2])
    page.scene.follows = False
    page.scene.reset_offset()
    page.show(Instant(t=9.1, q=q))
    np.testing.assert_allclose(in_picture(page, "/world").translation, 0.0)


def test_what_is_not_known_is_not_shown(page: Page, robot: Robot) -> None:
    page.show(standing(robot, objects={"box": np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0])}))
    assert node(page, "object_box").visible  # type: ignore[attr-defined]
    assert node(page, "world/com").visible  # type: ignore[attr-defined]
    page.show(Instant(t=0.0, q=np.full(robot.model.nq, np.nan)))
    for name in ("object_box", "world/com", "world/capture", "world/robot", "world/support"):
        assert not node(page, name).visible, name  # type: ignore[attr-defined]


def test_pushes_end_where_they_push_and_plans_lie_where_they_say(page: Page, robot: Robot) -> None:
    push = Pushed(np.array([100.0, 0.0, 0.0]), np.array([0.2, 0.1, 0.9]))
    plan = Plan(np.array([[0.4, 0.1, 0.0, 0.0]]), np.array([0]), com=np.array([0.1, 0.0, 0.8]))
    page.show(standing(robot, push=(push,), plan=plan))
    tail, tip = node(page, "world/pushes").points[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(tip, [0.2, 0.1, 0.9], atol=1e-4)
    assert tail[0] < tip[0]
    outline: Array = node(page, "step_0").points  # type: ignore[attr-defined]
    np.testing.assert_allclose(outline[:, 0, :2], robot.soles[0].vertices + np.array([0.4, 0.1]), atol=1e-4)
    assert not node(page, "step_1").visible  # type: ignore[attr-defined]


def test_the_text_says_time_modes_and_readouts(robot: Robot) -> None:
    instant = standing(robot, readouts={"zmp_margin": 0.0412, "steps": 3.0, "turned_rad": 1.5}, notes=("<fallen>",))
    text = now(instant, robot, state_of(robot, Ground.flat(), robot.model.createData(), instant))
    readouts = "controller: ZMP margin 41.2 mm, steps 3, turned 1.5 rad"
    for part in ("t = 1.500 s", "face stick", "face slide", readouts, "&lt;fallen&gt;"):
        assert part in text


def test_a_body_says_its_mass_and_the_share_of_its_torque(robot: Robot) -> None:
    joint = robot.model.getJointId("l_knee")
    instant = standing(robot)
    text = body(instant, robot, None, "l_shank", joint)
    limit = robot.effort_limit[robot.joint_names.index("l_knee")]
    assert f"{robot.model.inertias[joint].mass:.3g} kg" in text
    assert f"10.0 N.m, {10.0 / limit:.0%} of {limit:.0f}" in text


def test_curves_begin_at_the_first_value_that_was_measured(page: Page, robot: Robot) -> None:
    """A bag begins with the state at t = 0, before the first step, which has no contact yet."""
    told = standing(robot)
    begin = replace(told, t=0.0, wrench=np.zeros((2, 6)), joint_effort=np.zeros(14))
    in_air = replace(told, t=0.1, wrench=None)
    table = SignalTable(robot)
    for instant in (begin, *(replace(told, t=t) for t in (0.03, 0.06)), in_air, replace(told, t=0.13)):
        table.add(instant, None)
    plots = Plots(page.gui, table, [["left foot force z [N]", "right foot force z [N]"], [LARGEST_TORQUE]])
    plots.show(now=0.13)
    force, torque = plots.drawn
    left = force[1]
    assert np.isnan(left[0])
    np.testing.assert_allclose(left[[1, 2, 4]], 0.5 * robot.weight, rtol=1e-6)
    low, high = axis(left[1], left[1], 1e-3 * robot.weight)
    assert left[3] < low - 5.0 * (high - low), "what lacks in between is not joined"
    assert np.isnan(torque[1][0])
    assert np.isfinite(torque[1][1:]).all()
    # A robot that falls from the start has forces of zero, later than t = 0.
    falls = Signals(robot).values(replace(begin, t=0.001), None)
    assert not falls[table.number("left foot force z [N]")]


@pytest.mark.parametrize("ground", ["patches", "stairs", "tiles", "slope"])
def test_every_ground_is_drawn(robot: Robot, ground: str) -> None:
    page = Page(robot, get_ground(ground), port=0)
    try:
        page.show(standing(robot))
        for i, patch in enumerate(get_ground(ground).patches):
            pose = in_picture(page, f"/world/patch_{i}")
            np.testing.assert_allclose(pose.rotation, patch.rotation_world_patch, atol=1e-3)
    finally:
        page.close()


def test_a_height_field_is_drawn_as_a_mesh(robot: Robot) -> None:
    ground = get_ground("rough")
    assert ground.field is not None
    page = Page(robot, ground, port=0)
    try:
        mesh = page.server.scene.get_handle_by_name("/world/field")
        x, y, z = np.asarray(mesh.vertices).T
        np.testing.assert_allclose(z, ground.height(x, y), atol=1e-5)
        assert len(mesh.faces) == 2 * 120 * 120
    finally:
        page.close()


def test_a_host_that_is_none_is_refused(robot: Robot) -> None:
    with refusal(place="256.1.1.1, port 0"):
        Page(robot, Ground.flat(), host="256.1.1.1", port=0)
