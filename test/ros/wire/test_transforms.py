"""Transforms on topics that a test plays, as tf2_msgs need not be installed: how often, and again after a reset."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
import yaml

pytest.importorskip("rclpy", reason="rclpy is not installed")

from bipedsim.model import load_robot
from bipedsim_ros.wire import frames, transforms
from bipedsim_ros.wire.topics import BASE_FRAME, WORLD_FRAME


class Message:
    """A replacement of TFMessage."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms


def test_poses_come_at_their_rate_and_anew_when_time_runs_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[float, float]] = []
    listeners = 1

    def publish(message: Message) -> None:
        (moving,) = message.transforms
        stamp = moving.header.stamp
        sent.append((stamp.sec + 1e-9 * stamp.nanosec, moving.transform.translation.x))

    def publisher(_node: Any, topic: Any) -> Any:
        said = publish if topic is transforms.topics.TF else lambda _message: None
        return SimpleNamespace(publish=said, get_subscription_count=lambda: listeners)

    monkeypatch.setattr(transforms, "publisher", publisher)
    played: Any = transforms.Transforms(None, load_robot("biped14"), 100.0, Message)
    for lap in range(2):
        for tick in range(35):
            q = np.array([tick + 100.0 * lap, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
            sim: Any = SimpleNamespace(t=1e-3 * tick, q=q)
            played.publish(sim, tick * 1_000_000)
    assert [x for _, x in sent] == [0.0, 10.0, 20.0, 30.0, 100.0, 110.0, 120.0, 130.0]
    assert [round(1e3 * t) for t, _ in sent] == [0, 10, 20, 30] * 2
    listeners = 0
    played.publish(SimpleNamespace(t=0.2, q=np.zeros(7)), 200_000_000)
    assert len(sent) == 8


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        # Names of listeners, and number of publishers, at each look.
        ([(["rviz"], 1)] * 7, [False, False, False, False, True, False, False]),
        ([(["rviz"], 1)] * 3 + [(["rviz"], 2)] + [(["rviz"], 1)] * 4, [False] * 8),
        ([([], 1), (["recorder_node"], 1)] * 5, [False] * 10),
    ],
)
def test_links_that_nobody_publishes_are_told_once_where_somebody_listens(
    seen: list[tuple[list[str], int]], told: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while robot_state_publisher may still start."""
    monkeypatch.setattr(transforms.topics, "HAS_TF", True)
    node: Any = SimpleNamespace()
    watch = transforms.TransformsWatch(node)
    said = []
    for listeners, publishers in seen:
        infos, subscribers = [SimpleNamespace(node_name=name) for name in listeners], len(listeners)
        node.count_subscribers = lambda _name, count=subscribers: count
        node.count_publishers = lambda _name, count=publishers: count
        node.get_subscriptions_info_by_topic = lambda _name, found=infos: found
        said.append(watch.look())
    assert [bool(text) for text in said] == told
    assert set(said) <= {"", transforms.NO_LINKS}


@pytest.mark.parametrize("name", ["biped14", "g1", "talos", "icub", "parallel_ankles"])
def test_each_link_has_one_parent_and_hangs_on_odom(name: str) -> None:
    """The transforms are ours and those that robot_state_publisher adds for this URDF: every joint of /joint_states,
    and fixed ones.
    """
    robot = load_robot(name)
    parents = [(frames.moving_frame(robot), WORLD_FRAME)]
    parents += [(child, parent) for parent, child, _ in frames.static_frames(robot)]
    stated = {*robot.model.names}
    for joint in ElementTree.fromstring(robot.urdf_xml).findall("joint"):
        ends: Any = (joint.find("child"), joint.find("parent"))
        mimic = joint.find("mimic")
        moves = joint.get("name") in stated or (mimic is not None and mimic.get("joint") in stated)
        if joint.get("type") == "fixed" or moves:
            parents.append((ends[0].get("link"), ends[1].get("link")))
    assert Counter(child for child, _ in parents).most_common(1)[0][1] == 1, "two transforms of one frame"
    tree = dict(parents)
    links = [link.get("name") for link in ElementTree.fromstring(robot.urdf_xml).findall("link")]
    for frame in (*links, BASE_FRAME, "l_sole", "r_sole", "l_ankle", "r_ankle"):
        up = frame
        while up != WORLD_FRAME:
            assert up in tree, f"{frame} hangs on {up}, which nobody places"
            up = tree[up]


def test_links_behind_locked_joints_are_where_the_whole_model_has_them(tmp_path: Path) -> None:
    file = Path(str(files("bipedsim.robots"))) / "g1" / "robot.yaml"
    told = yaml.safe_load(file.read_text())
    angles = {joint: 0.1 + 0.1 * k for k, joint in enumerate(j for j in told["joints"] if "shoulder" in j)}
    told["joints"] = [joint for joint in told["joints"] if joint not in angles]
    told["locked"] = angles
    for key, value in told.items():
        if isinstance(value, dict) and key not in ("locked", "feet"):
            told[key] = {name: one for name, one in value.items() if "shoulder" not in name}
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(told))
    robot = load_robot(str(tmp_path / "robot.yaml"))
    whole = pin.buildModelFromXML(robot.urdf_xml, pin.JointModelFreeFlyer())
    q = pin.neutral(whole)
    for joint, angle in angles.items():
        q[whole.joints[whole.getJointId(joint)].idx_q] = angle
    data = whole.createData()
    pin.framesForwardKinematics(whole, data, q)
    placed = {child: (parent, pose) for parent, child, pose in frames.static_frames(robot)}
    for number in map(whole.getJointId, angles):
        link = next(frame for frame in whole.frames if frame.parentJoint == number and frame.type == pin.FrameType.BODY)
        parent, pose = placed[link.name]
        ends = [data.oMf[whole.getFrameId(name, pin.FrameType.BODY)] for name in (parent, link.name)]
        assert pin.XYZQUATToSE3(np.array(pose)).isApprox(ends[0].actInv(ends[1]), 1e-9), link.name
