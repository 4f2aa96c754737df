"""Object descriptions: all errors are reported at once, and the text format is exact to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refusal

from bipedsim.config import from_mapping
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.objects import ObjectConfig, World, check_names, parse_objects

BALL = {"name": "ball", "shape": "ball", "mass": 0.4, "radius": 0.1}


def test_everything_wrong_is_told_at_once() -> None:
    texts = [
        json.dumps({**BALL, "name": "Ball 1"}),
        json.dumps({"name": "crate", "shape": "box", "mass": 1.0, "radius": 0.1}),
        json.dumps({**BALL, "name": "odd", "inertia": [1.0, 1.0, 3.0]}),
        json.dumps({**BALL, "friction_static": 0.2, "friction_dynamic": 0.3}),
        json.dumps(BALL),
        json.dumps(BALL),
        "{",
    ]
    with pytest.raises(ConfigError) as raised:
        parse_objects(texts)
    assert [(fault.place, fault.value) for fault in raised.value.faults] == [
        ("objects[0]: name", "Ball 1"),
        ("objects[1]: radius", None),
        ("objects[1]: size", None),
        ("objects[2]: inertia", [1.0, 1.0, 3.0]),
        ("objects[3]: friction_dynamic", 0.3),
        ("objects[6]", "{"),
        ("objects: name", "ball"),
    ]


@pytest.mark.parametrize("key", ["shape", "mass", "name"])
def test_what_must_be_given_is_asked_for(key: str) -> None:
    with refusal(place=f"here: {key}"):
        from_mapping(ObjectConfig, {name: value for name, value in BALL.items() if name != key}, "here")


def test_too_many_are_refused() -> None:
    many = [ObjectConfig(**{**BALL, "name": f"b{i}"}) for i in range(40)]
    assert [fault.place for fault in check_names(many)] == ["objects"]


@given(st.floats(1e-6, 1e5), st.tuples(*[st.floats(-100.0, 100.0)] * 3), st.none() | st.floats(0.0, 1.0))
def test_a_text_holds_every_bit(mass: float, velocity: tuple[float, float, float], restitution: float | None) -> None:
    one = ObjectConfig(
        name="ball", shape="ball", radius=0.1, mass=mass, velocity=velocity, ground_restitution=restitution
    )
    assert parse_objects([one.text()]) == (one,)


@pytest.mark.parametrize(
    ("keys", "moments"),
    [
        ({"shape": "ball", "radius": 0.3}, [0.072, 0.072, 0.072]),
        ({"shape": "box", "size": (0.3, 0.6, 0.9)}, [0.195, 0.15, 0.075]),
        ({"shape": "cylinder", "radius": 0.3, "length": 0.6}, [0.105, 0.105, 0.09]),
        ({"shape": "ball", "radius": 0.3, "inertia": (0.1, 0.1, 0.1)}, [0.1, 0.1, 0.1]),
    ],
)
def test_inertia_is_that_of_a_solid(keys: dict[str, Any], moments: list[float]) -> None:
    made = ObjectConfig(name="thing", mass=2.0, **keys).make()
    np.testing.assert_allclose(np.diag(made.inertia), moments, rtol=1e-12)


CRATE = """<?xml version="1.0"?>
<robot name="crate"><link name="crate">
  <inertial><origin xyz="0.02 0 0.01"/><mass value="3"/>
    <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>
  <collision><geometry><box size="0.3 0.3 0.2"/></geometry></collision>
  <collision><origin xyz="0 0 0.15"/><geometry><capsule radius="0.05" length="0.1"/></geometry></collision>
</link></robot>
"""


def test_a_urdf_is_one_body(tmp_path: Path) -> None:
    path = tmp_path / "crate.urdf"
    path.write_text(CRATE, encoding="utf-8")
    made = ObjectConfig(name="crate", shape="urdf", urdf=str(path)).make()
    assert made.mass == 3.0
    np.testing.assert_allclose(made.com, [0.02, 0.0, 0.01])
    np.testing.assert_allclose(np.diag(made.inertia), [0.03, 0.03, 0.04])
    assert len(made.shapes) == 4
    w = World([made], Ground.flat(), 1e-3, np.array([0.0, 0.0, -9.81]))
    for _ in range(1500):
        w.step()
    # Its frame is in the middle of the box, and that stands on the floor.
    np.testing.assert_allclose(w.poses()[0, :3], [0.0, 0.0, 0.1], atol=1e-4)
    assert np.abs(w.bodies.v).max() < 1e-9


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<mass value="3"/>', '<mass value="0"/>'),
        ("<robot name", "<robt name"),
        ("<collision>", "<visual>"),
    ],
)
def test_a_urdf_that_is_no_body_is_refused_by_name(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "crate.urdf"
    path.write_text(CRATE.replace(old, new), encoding="utf-8")
    with refusal(place=f"object 'odd': {path}"):
        ObjectConfig(name="odd", shape="urdf", urdf=str(path)).make()
