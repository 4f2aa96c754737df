"""Recordings and bags with known contents, written without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_typestore

from bipedsim.recording.bag.reader import BagWriter, Qos, Topic
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import CONTACT_FIELDS

STORE = get_typestore(Stores.ROS2_JAZZY)

NS = 1_000_000_000
T0 = 1_700_000_000 * NS
SOLE = np.array([[0.12, -0.065], [0.12, 0.065], [-0.12, 0.065], [-0.12, -0.065]])


def topic(name: str, msgtype: str, qos: tuple[Qos, ...] = (Qos(),)) -> Topic:
    """Return a topic described by rosbags."""
    definition, _ = STORE.generate_msgdef(msgtype, ros_version=2)
    return Topic(name, msgtype, definition, STORE.hash_rihs01(msgtype), qos)


def serialise(msgtype: str, **values: Any) -> bytes:
    """Serialise a message with rosbags; nested messages are given as nested dicts."""
    return bytes(STORE.serialize_cdr(_message(msgtype, values), msgtype))


_NESTED = {name.replace("/", "__"): name for name in STORE.types}
"""Message types by how rosbags names them in a field of another one."""


def _message(msgtype: str, values: dict[str, Any]) -> Any:
    cls = STORE.types[msgtype]
    filled = {}
    for name, hint in cls.__annotations__.items():
        value = values.get(name)
        nested = _NESTED.get(str(hint))
        if nested:
            value = _message(nested, value or {})
        elif value is None:
            value = 0.0 if len(name) == 1 else np.zeros(9 if "Imu" in msgtype else 36)
        filled[name] = value
    return cls(**filled)


def header(stamp_ns: int, frame: str = "odom") -> dict[str, Any]:
    """Return the fields of a std_msgs/Header."""
    return {"stamp": {"sec": stamp_ns // NS, "nanosec": stamp_ns % NS}, "frame_id": frame}


def joint_state(stamp_ns: int, names: list[str], position: Any, velocity: Any, effort: Any) -> bytes:
    """Serialise a JointState."""
    arrays = {"position": position, "velocity": velocity, "effort": effort}
    arrays = {key: np.array(value, dtype=np.float64) for key, value in arrays.items()}
    return serialise("sensor_msgs/msg/JointState", header=header(stamp_ns, "base_link"), name=names, **arrays)


def wrench(stamp_ns: int, values: Any, frame: str = "l_sole") -> bytes:
    """Serialise a WrenchStamped from six numbers."""
    force, torque = (dict(zip("xyz", map(float, part), strict=True)) for part in (values[:3], values[3:]))
    fields = {"force": force, "torque": torque}
    return serialise("geometry_msgs/msg/WrenchStamped", header=header(stamp_ns, frame), wrench=fields)


def point(stamp_ns: int, values: Any) -> bytes:
    """Serialise a PointStamped."""
    fields = dict(zip("xyz", map(float, values), strict=True))
    return serialise("geometry_msgs/msg/PointStamped", header=header(stamp_ns, "l_sole"), point=fields)


def contact(values: list[float]) -> bytes:
    """Serialise a contact topic's Float64MultiArray."""
    return labelled(CONTACT_FIELDS, values)


def labelled(labels: Sequence[str], values: Sequence[float]) -> bytes:
    """Serialise a Float64MultiArray with its names in the layout."""
    cls = STORE.types
    label = ",".join(labels)
    dimension = cls["std_msgs/msg/MultiArrayDimension"](label=label, size=len(values), stride=len(values))
    layout = cls["std_msgs/msg/MultiArrayLayout"](dim=[dimension], data_offset=0)
    message = cls["std_msgs/msg/Float64MultiArray"](layout=layout, data=np.asarray(values, dtype=np.float64))
    return bytes(STORE.serialize_cdr(message, "std_msgs/msg/Float64MultiArray"))


def write_bag(path: Path, messages: list[tuple[str, str, bytes]], custom: dict[str, str] | None = None) -> BagWriter:
    """Write (topic, type, data) in order, 1 ms of log time apart; the bag is flushed; close or release it."""
    bag = BagWriter(path, custom)
    channels: dict[str, int] = {}
    for i, (name, msgtype, data) in enumerate(messages):
        if name not in channels:
            channels[name] = bag.add_topic(topic(name, msgtype))
        bag.add_message(channels[name], T0 + i * 1_000_000, T0 + i * 1_000_000, data, i)
    bag.flush()
    return bag


def standing(n: int = 3000, rate: float = 1000.0, weight: float = 700.0) -> Recording:
    """Return two feet standing level at y = +-0.1 m, each carrying half, the CoP 1 cm before the left sole's origin."""
    r = Recording.empty(n, ["l_knee", "r_knee", "torso"], ["left", "right"], "twofoot")
    r.t[:] = np.arange(n) / rate
    r.weight = weight
    r.sole_vertices = (SOLE, SOLE)
    r.effort_limit = np.array([10.0, 10.0, np.nan])
    r.joint_position[:], r.joint_velocity[:] = 0.1, 0.0
    r.joint_effort[:] = np.sin(r.t)[:, None] * [8.0, 1.0, 2.0]
    r.wrench[:], r.wrench[:, :, 2] = 0.0, 0.5 * weight
    r.cop[:] = 0.0
    r.cop[:, 0, 0] = 0.01
    r.wrench[:, 0, 4] = -0.01 * 0.5 * weight
    r.mode[:], r.sliding[:] = 9, False
    r.sole_poses[:] = [0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0]
    r.sole_poses[:, 1, 1] = -0.1
    return r
