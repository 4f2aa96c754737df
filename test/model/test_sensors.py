"""The key ``sensors`` of robot.yaml: its meaning, and the error of every kind of invalid input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from additional_sensors_support import instrumented
from refusals import faults_of

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot

SWITCH = {"type": "contact_switch", "foot": "left"}
IMU = {"type": "imu", "frame": "l_shank"}


def test_a_robot_has_its_sensors_in_the_order_of_the_file(tmp_path: Path) -> None:
    robot = instrumented(tmp_path)
    assert [(imu.name, imu.topic, imu.frame) for imu in robot.imus] == [
        ("shank_imu", "/shank_imu/data", "l_shank"),
        ("sole_imu", "/right/sole/imu", "r_sole"),
    ]
    assert [(each.name, each.topic, each.foot, each.threshold) for each in robot.contact_switches] == [
        ("left_switch", "/left_switch/closed", "left", 30.0),
        ("right_switch", "/right/sole/loaded", "right", 20.0),
    ]
    for imu in robot.imus:
        frame = robot.model.frames[robot.model.getFrameId(imu.frame)]
        assert imu.joint_id == frame.parentJoint
        np.testing.assert_array_equal(imu.placement_joint_imu.homogeneous, frame.placement.homogeneous)


def test_the_robots_that_come_along_have_none() -> None:
    robot = load_robot("biped14")
    assert (robot.imus, robot.contact_switches) == ((), ())


@pytest.mark.parametrize(
    ("sensors", "place", "value"),
    [
        ({"a": {"type": "sonar"}}, "sensors.a", "'sonar'"),
        ({"a": {"type": "imu", "frame": "tail"}}, "sensors.a.frame", "'tail'"),
        ({"a": {"type": "imu"}}, "frame", "None"),
        ({"a": IMU | {"foot": "left"}}, "foot", "'left'"),
        ({"a": SWITCH | {"foot": "middle"}}, "sensors.a.foot", "'middle'"),
        ({"a": SWITCH | {"frame": "l_sole"}}, "frame", "'l_sole'"),
        ({"a": SWITCH | {"threshold": -1.0}}, "sensors.a.threshold", "-1.0"),
        ({"a": IMU | {"threshold": 20.0}}, "threshold", "20.0"),
        ({"two words": IMU}, "sensors.two words", "'two words'"),
        ({"größe": IMU}, "sensors.größe", "'größe'"),
        ({"1st": IMU}, "sensors.1st", "'1st'"),
        ({"a": IMU | {"topic": "/a/2nd"}}, "sensors.a.topic", "'/a/2nd'"),
        ({"a": IMU | {"topic": "a/data"}}, "sensors.a.topic", "'a/data'"),
        ({"imu": IMU}, "sensors.imu.topic", "'/imu/data'"),
        ({"a": IMU | {"topic": "/x"}, "b": SWITCH | {"topic": "/x"}}, "sensors.b.topic", "'/x'"),
        ({"a": IMU, "b": IMU | {"topic": "/a/data"}}, "sensors.b.topic", "'/a/data'"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(
    tmp_path: Path, sensors: dict[str, Any], place: str, value: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        instrumented(tmp_path, sensors)
    assert faults_of(caught.value) == {(place, value)}


def test_one_error_has_all_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        instrumented(tmp_path, {"a": {"type": "imu", "frame": "tail"}, "b": SWITCH | {"foot": "middle"}})
    assert faults_of(caught.value) == {("sensors.a.frame", "'tail'"), ("sensors.b.foot", "'middle'")}
