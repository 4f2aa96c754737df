"""Loops of an MJCF file, against the same in robot.yaml and against MuJoCo's own reading of the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from loop_support import BASE, CRANK, ROD, TOP, linkage
from refusals import faults_of, refusal

from bipedsim.errors import ConfigError
from bipedsim.model import LoopEquations, Robot
from bipedsim.model.mjcf import read_equality

MJCF = f"""<mujoco><worldbody>
<body name="crank" pos="0 0 {TOP}"><joint name="a" axis="0 1 0"/><geom size="0.01" mass="1"/>
  <body name="rod" pos="0 0 {-CRANK}"><joint name="b" axis="0 1 0"/><geom size="0.01" mass="2"/></body></body>
<body name="rocker" pos="{BASE} 0 {TOP}"><joint name="c" axis="0 1 0"/><geom size="0.01" mass="1"/></body>
</worldbody><equality>{{}}</equality></mujoco>"""
# Where the rod's end is in the rocker when all joints are at 0: not where the rocker's is.
CLOSED = f'<connect name="pin" body1="rod" body2="rocker" anchor="{ROD} 0 0"/>'


def from_mjcf(folder: Path, equality: str, **changes: object) -> Robot:
    (folder / "linkage.xml").write_text(MJCF.format(equality))
    return linkage(folder, loops={}, loops_from="linkage.xml", **changes)


def test_a_connect_holds_the_points_that_are_one_at_zero(tmp_path: Path) -> None:
    robot = from_mjcf(tmp_path, CLOSED)
    (loop,) = robot.loops
    assert (loop.name, loop.kind, loop.joints) == ("pin", "connect", (2, 3))
    np.testing.assert_allclose(loop.placements[0].translation, [ROD, 0.0, 0.0])
    np.testing.assert_allclose(loop.placements[1].translation, [ROD - BASE, 0.0, -CRANK], atol=1e-15)
    equations = LoopEquations(robot.model, robot.loops)
    assert equations.gaps(np.zeros(3)).max() < 1e-15
    assert equations.gaps(robot.q_nominal).max() < 1e-12


@pytest.mark.parametrize(
    "equality",
    [
        CLOSED,
        '<connect body1="rocker" body2="crank" anchor="0.1 0 -0.2"/>',
        '<weld body1="crank" body2="rocker"/>',
        '<weld body1="crank" body2="rocker" relpose="0.3 0 0.05 0.9 0 0.3 0"/>',
        '<connect body1="rod" anchor="0.2 0 0"/>',
    ],
)
def test_mujoco_measures_the_same_errors(tmp_path: Path, equality: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    gaps = []
    text = MJCF.format(equality)
    (tmp_path / "linkage.xml").write_text(text)
    robot = linkage(tmp_path)
    frames = {frame.name: frame for frame in robot.model.frames if frame.name in ("crank", "rod", "rocker")}
    loops, left_out = read_equality(tmp_path / "linkage.xml", robot.model, lambda name, where: frames[name])
    assert left_out == []
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for q in np.random.default_rng(0).uniform(-0.5, 0.5, (5, 3)):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        expected = data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY][:3]
        found = LoopEquations(robot.model, loops).at(q)[0][:3]
        gaps.append(np.linalg.norm(expected))
        assert np.linalg.norm(found) == pytest.approx(gaps[-1], abs=1e-9)
    assert max(gaps) > 0.01


def test_what_is_not_read_is_said(tmp_path: Path) -> None:
    robot = from_mjcf(
        tmp_path,
        CLOSED
        + '<joint name="gear" joint1="a" joint2="b"/><connect name="off" body1="rod" anchor="0 0 0" active="false"/>',
    )
    told = "\n".join(robot.warnings)
    assert "<joint name='gear'> is left out" in told
    assert "<connect name='off'> is not active" in told
    with pytest.raises(ConfigError) as caught:
        from_mjcf(
            tmp_path,
            '<connect name="one" body1="rod" body2="wheel" anchor="0 0 0"/>'
            '<connect name="two" body1="rod" body2="rocker" anchor="0 0"/>'
            '<weld name="three" site1="x" site2="y"/><connect name="four" body2="rod" anchor="0 0 0"/>'
            '<weld name="five" body1="rod" body2="rod"/>',
        )
    assert faults_of(caught.value) == {
        ("<connect name='one'>", "'wheel'"),
        ("anchor", "'0 0'"),
        ("<weld name='three'>", "None"),
        ("<connect name='four'>", "None"),
        ("<weld name='five'>", "None"),
    }
    (tmp_path / "linkage.xml").write_text("<robot/>")
    with refusal(place=tmp_path / "linkage.xml"):
        linkage(tmp_path, loops={}, loops_from="linkage.xml")
    with refusal(place=tmp_path / "none.xml", cause=FileNotFoundError):
        linkage(tmp_path, loops={}, loops_from="none.xml")
    (tmp_path / "linkage.xml").write_text(MJCF.format(CLOSED))
    with refusal(place=f"{tmp_path / 'robot.yaml'}: loops: pin"):
        linkage(tmp_path, loops_from="linkage.xml")
