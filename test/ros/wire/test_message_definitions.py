"""Definitions and hashes of messages: those of the installed packages, and of a user's own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal

os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String

from bipedsim_ros.wire.message_definitions import definition_of, type_hash_of

pytestmark = pytest.mark.ros


@pytest.mark.parametrize("cls", [JointState, Imu, Odometry, Float64MultiArray, String, WrenchStamped])
def test_definitions_and_hashes_are_those_of_the_installed_messages(cls: Any) -> None:
    from ament_index_python import get_package_share_directory
    from rosbags.typesys import get_types_from_msg

    package = cls.__module__.partition(".")[0]
    msgtype = f"{package}/msg/{cls.__name__}"
    folder = Path(get_package_share_directory(package), "msg")
    ours = get_types_from_msg(definition_of(msgtype), msgtype)
    (installed,) = get_types_from_msg((folder / f"{cls.__name__}.msg").read_text(), msgtype).values()
    assert [field[:2] for field in ours[msgtype][1]] == [field[:2] for field in installed[1]]
    hashes = json.loads((folder / f"{cls.__name__}.json").read_text())["type_hashes"]
    assert type_hash_of(msgtype) == {entry["type_name"]: entry["hash_string"] for entry in hashes}[msgtype]


def install(prefix: Path, package: str, **messages: str) -> None:
    """Install messages as ament does: a marker in the index, and the definitions."""
    marker = prefix / "share" / "ament_index" / "resource_index" / "packages" / package
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    folder = prefix / "share" / package / "msg"
    folder.mkdir(parents=True)
    for name, text in messages.items():
        (folder / f"{name}.msg").write_text(text)


def test_own_messages_are_described_with_all_that_is_nested_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "their_parts", Toe="float64[3] force  # newtons\nstring label\n")
    install(
        tmp_path,
        "their_robot",
        Feet="uint8 MAX=2\nHeader header\ntheir_parts/Toe[<=5] toes\nLimit limit\n",
        Limit="float64 effort\n",
        Lost="no_such/Thing thing\n",
        Wide="wstring label\n",
    )
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join([str(tmp_path), sys.prefix]))
    parts = definition_of("their_robot/msg/Feet").split("=" * 80 + "\n")
    assert {part.splitlines()[0] for part in parts[1:]} == {
        "MSG: std_msgs/Header",
        "MSG: builtin_interfaces/Time",
        "MSG: their_parts/Toe",
        "MSG: their_robot/Limit",
    }
    assert parts[0].splitlines() == [
        "uint8 MAX=2",
        "std_msgs/Header header",
        "their_parts/Toe[<=5] toes",
        "their_robot/Limit limit",
    ]
    assert type_hash_of("their_robot/msg/Feet").startswith("RIHS01_")
    with refusal(place="message type no_such/msg/Thing"):
        definition_of("their_robot/msg/Lost")
    with refusal(place="message type their_robot/msg/wstring"):
        definition_of("their_robot/msg/Wide")
    with refusal(place="message type", value="chatter"):
        definition_of("chatter")
