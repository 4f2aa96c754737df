"""Bags of another robot: other names, stamps and joints than ours, written with the package rosbags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from recording_support import NS, STORE, T0, header, joint_state, serialise, wrench
from rosbags import rosbag2

from bipedsim.numerics import Array
from bipedsim.recording.recording import Recording

JOINTS, IMU, WRENCH = "sensor_msgs/msg/JointState", "sensor_msgs/msg/Imu", "geometry_msgs/msg/WrenchStamped"
NAMES = {"joints": "/robot1/joint_states", "imu": "/robot1/imu", "left": "/robot1/l_ft", "right": "/robot1/r_ft"}
"""Topics of the other robot."""
REMAP = {
    "/robot1/imu": "/imu/data",
    "/robot1/l_ft": "/left_foot_ft/wrench",
    "/robot1/r_ft": "/right_foot_ft/wrench",
    "/robot1/*": "/*",
}
"""Names under which bipedsim reads them."""


@dataclass(frozen=True)
class Clock:
    """Times at which a sensor measures.

    Attributes:
        rate: Measurements a second.
        begin: Time of the first one [s].
        jitter: Each measurement is at most this later [s].
    """

    rate: float
    begin: float = 0.0
    jitter: float = 0.0

    def times(self, end: float) -> Array:
        """Return the times before ``end`` [s]."""
        n = int((end - self.begin - self.jitter) * self.rate)
        return self.begin + np.arange(n) / self.rate + np.random.default_rng(1).uniform(0.0, self.jitter or 1e-15, n)


def write_messages(path: Path, messages: Sequence[tuple[int, str, str, bytes]]) -> Path:
    """Write (stamp [ns], topic, type, data) with the package rosbags, in the order of the stamps."""
    with rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as bag:
        connections: dict[str, object] = {}
        for stamp, topic, msgtype, data in sorted(messages, key=lambda message: message[0]):
            if topic not in connections:
                connections[topic] = bag.add_connection(topic, msgtype, typestore=STORE)
            bag.write(connections[topic], T0 + stamp, data)
    return path


def write_other_bag(
    path: Path,
    run: Recording,
    clocks: Mapping[str, Clock],
    names: Mapping[str, str] = NAMES,
    joints: Sequence[str] = (),
    without: Sequence[str] = (),
) -> Path:
    """Write what the sensors of a run have measured as the bag of another robot.

    Args:
        path: The bag.
        run: The run, with more rows a second than all clocks together need, without noise.
        clocks: Sensor to its clock; the joint states have the rows of the run.
        names: Sensor to its topic.
        joints: Joints in their order; those that the run does not have are at 0.
        without: Fields of the joint states that are empty.
    """
    at = {name: k for k, name in enumerate(run.joint_names)}
    order = list(joints or run.joint_names)
    messages: list[tuple[int, str, str, bytes]] = []
    columns = {name: getattr(run, f"joint_{name}") for name in ("position", "velocity", "effort")}
    for k, t in enumerate(run.t):
        stamp = round(t * NS)
        values = {
            name: [] if name in without else [column[k, at[joint]] if joint in at else 0.0 for joint in order]
            for name, column in columns.items()
        }
        messages.append((stamp, names["joints"], JOINTS, joint_state(stamp, order, *values.values())))
    for sensor, clock in clocks.items():
        for t in clock.times(float(run.t[-1])):
            stamp = round(t * NS)
            if sensor == "imu":
                numbers = {
                    name: dict(zip("xyzw", between(run, getattr(run, f"imu_{name}"), t), strict=False))
                    for name in ("orientation", "angular_velocity", "linear_acceleration")
                }
                messages.append((stamp, names[sensor], IMU, serialise(IMU, header=header(stamp), **numbers)))
            else:
                numbers = between(run, run.ankle_wrench[:, run.feet.index(sensor)], t)
                messages.append((stamp, names[sensor], WRENCH, wrench(stamp, numbers)))
    return write_messages(path, messages)


def between(run: Recording, column: Array, t: float) -> Array:
    """Return the row of a column at a time between two rows, on the straight line."""
    k = int(np.clip(np.searchsorted(run.t, t), 1, len(run) - 1))
    share = (t - run.t[k - 1]) / (run.t[k] - run.t[k - 1])
    return np.asarray((1.0 - share) * column[k - 1] + share * column[k])
