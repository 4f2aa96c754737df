"""A bag of the simulator's topics -> :class:`bipedsim.recording.Recording`, aligned by the stamps in the messages."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.errors import ConfigError, RecordingError
from bipedsim.model import Robot, load_robot
from bipedsim.recording.bag.messages import Columns, columns, text
from bipedsim.recording.bag.reader import Bag
from bipedsim.recording.recording import CONTACT_FIELDS, READOUTS, WALL_CLOCK_NS, Recording

Array = NDArray[np.float64]
Stamps = NDArray[np.int64]

_IMPACT = tuple(name for name in CONTACT_FIELDS if name.startswith("impact_"))
_FOOT = re.compile(r"^/(\w+?)_foot(?:_ft)?/(?:wrench|cop|contact)$")


def recording_from_bag(path: Path, segment: int = -1) -> Recording:
    """Read a bag directory or an .mcap file; rows are the messages of ``/joint_states``.

    Every other topic is put into the row that has its stamp, to the nanosecond: what has no partner is NaN. The soles,
        limits and sole poses come from the robot that the recorder named in the bag, or from the robot name in
        ``/robot_description``.

    Args:
        path: The bag.
        segment: Which stretch between two jumps back of time, as an index of a list.

    Raises:
        RecordingError: No bag, or none with joint states; the message says what was found.
    """
    bag = Bag(path)
    if not bag.messages.get("/joint_states"):
        found = ", ".join(f"{name} ({len(m)})" for name, m in sorted(bag.messages.items())) or "no topics"
        raise RecordingError(f"{path}: no messages on /joint_states; found {found}")
    notes = [bag.recovered] if bag.recovered else []
    reader = _TopicReader(bag, segment)
    joints = reader.read("/joint_states")
    assert joints is not None
    if reader.segments > 1:
        notes.append(
            f"time jumps back {reader.segments - 1} times (reset); this is stretch {segment} of {reader.segments}"
        )
    names = {match[1]: None for topic in sorted(bag.messages) if (match := _FOOT.match(topic))}
    feet = [f for f in bag.custom_data.get("feet", "").split(",") if f in names] or list(names)
    out = Recording.empty(len(joints.stamp), joints.labels, feet)
    shift = joints.stamp[0] if joints.stamp[0] > WALL_CLOCK_NS else 0
    out.t[:] = (joints.stamp - shift) * 1e-9
    for name in ("position", "velocity", "effort"):
        if joints.values[name].shape[1] == len(joints.labels):
            getattr(out, f"joint_{name}")[:] = joints.values[name]
    rows = _Rows(joints.stamp)
    imu = reader.read("/imu/data")
    rows.put(out.imu_orientation, imu, "orientation")
    rows.put(out.imu_angular_velocity, imu, "angular_velocity")
    rows.put(out.imu_linear_acceleration, imu, "linear_acceleration")
    rows.put(out.base_pose, reader.read("/ground_truth/odom"), "pose")
    rows.put(out.odometry, reader.read("/odom"), "pose")
    rows.put(out.cop_world, reader.read("/cop"), "point")
    for k, foot in enumerate(feet):
        rows.put(out.wrench[:, k], reader.read(f"/{foot}_foot/wrench"), "wrench")
        rows.put(out.ankle_wrench[:, k], reader.read(f"/{foot}_foot_ft/wrench"), "wrench")
        point = np.full((len(out), 3), np.nan)
        rows.put(point, reader.read(f"/{foot}_foot/cop"), "point")
        out.cop[:, k] = point[:, :2]
        _put_contact(out, k, rows, reader.read(f"/{foot}_foot/contact"))
    _put_controller(out, reader)
    robot, problem = _robot_of(bag)
    if robot is not None:
        out.describe_robot(robot)
        _put_sole_poses(out, robot)
        out.about = {"robot": bag.custom_data.get("robot", "") or robot.name}
    else:
        out.robot = bag.custom_data.get("robot", "")
        notes.append(f"soles, limits and weight are unknown: {problem}")
    out.notes = tuple(notes)
    return out


class _TopicReader:
    """Decode topics, one stretch of rising stamps each."""

    def __init__(self, bag: Bag, segment: int) -> None:
        self._bag = bag
        self._segment = segment
        self.segments = 1
        # Messages of /joint_states in the stretch, and the row of each.
        self._stretch = range(0)
        self._row_of: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def read(self, topic: str) -> Columns | None:
        """Return the topic's stretch, each stamp once; None when it has no messages there."""
        messages = self._bag.messages.get(topic)
        if not messages:
            return None
        try:
            table = columns([m.data for m in messages], self._bag.types[topic])
        except RecordingError as error:
            raise RecordingError(f"{self._bag.path}: {topic}: {error}") from error
        stamp = table.stamp
        if "data" in table.values:
            t = table.values["data"][:, 0] if table.values["data"].shape[1] else np.zeros(len(messages))
            stamp = np.rint(t * 1e9).astype(np.int64)
        starts = [0, *(np.flatnonzero(np.diff(stamp) < 0) + 1), len(stamp)]
        if topic == "/joint_states":
            self.segments = len(starts) - 1
            if not -self.segments <= self._segment < self.segments:
                raise RecordingError(
                    f"{self._bag.path}: has no stretch {self._segment}: time jumps back {self.segments - 1} times"
                )
        # Counted from the end, where every topic has the same stretches, even those that joined late.
        back = self._segment - self.segments if self._segment >= 0 else self._segment
        if -back > len(starts) - 1:
            return None
        first, last = starts[back - 1], starts[back] if back < -1 else starts[-1]
        stamp = stamp[first:last]
        if topic == "/joint_states":
            self._stretch = range(first, last)
            self._row_of = np.unique(stamp, return_inverse=True)[1]
        _, keep = np.unique(stamp[::-1], return_index=True)
        keep = len(stamp) - 1 - keep
        values = {name: value[first:last][keep] for name, value in table.values.items()}
        return Columns(stamp[keep], values, table.labels)


    def numbers(self, prefix: str) -> list[str]:
        """Return the topics of single numbers that begin with ``prefix``."""
        types = self._bag.types.items()
        return sorted(topic for topic, kind in types if topic.startswith(prefix) and kind == "std_msgs/msg/Float64")

    def unstamped(self, topic: str) -> tuple[NDArray[np.intp], Array]:
        """Return (rows, numbers) of a topic whose messages say no time, in the order in which they came.

        A message belongs to the row whose joint states were the last to arrive before it.
        """
        joints, messages = self._bag.messages["/joint_states"], self._bag.messages.get(topic)
        if not messages:
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        numbers = columns([m.data for m in messages], self._bag.types[topic]).values["data"][:, 0]
        arrived = np.array([m.log_time for m in joints], dtype=np.int64)
        last = np.searchsorted(arrived, [m.log_time for m in messages], side="right") - 1
        here = (last >= self._stretch.start) & (last < self._stretch.stop)
        return self._row_of[last[here] - self._stretch.start], numbers[here]


class _Rows:
    """Find the rows that topics belong to."""

    def __init__(self, stamp: Stamps) -> None:
        self._stamp = stamp

    def match(self, stamp: Stamps) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return (rows, entries of ``stamp``) with equal stamps."""
        _, rows, entries = np.intersect1d(self._stamp, stamp, assume_unique=True, return_indices=True)
        return rows, entries

    def put(self, target: Array, table: Columns | None, name: str) -> None:
        """Copy the field ``name`` of a topic into the rows of ``target`` that it belongs to."""
        if table is None or name not in table.values:
            return
        rows, entries = self.match(table.stamp)
        target[rows] = table.values[name][entries]


def _put_contact(out: Recording, foot: int, rows: _Rows, table: Columns | None) -> None:
    if table is None:
        return
    labels = table.labels if len(table.labels) > 1 else CONTACT_FIELDS
    at, entries = rows.match(table.stamp)
    data = table.values["data"][entries]
    for column, name in enumerate(labels[: data.shape[1]]):
        if name.startswith("impact_"):
            out.impact[at, foot, _IMPACT.index(name)] = data[:, column]
        elif name in CONTACT_FIELDS and name != "t":
            target = getattr(out, name)
            target[at, foot] = data[:, column].astype(target.dtype)


def _put_controller(out: Recording, reader: _TopicReader) -> None:
    """Fill what the controller told without a stamp: its readouts, and when it was found fallen."""
    for topic in reader.numbers(READOUTS):
        column = np.full(len(out), np.nan)
        rows, numbers = reader.unstamped(topic)
        column[rows] = numbers
        out.readouts[topic.removeprefix(READOUTS)] = column
    rows, fallen = reader.unstamped("/fallen")
    if fallen.any():
        out.gave_up_at = float(out.t[rows[np.argmax(fallen)]])


def _robot_of(bag: Bag) -> tuple[Robot | None, str]:
    """Return the robot of the bag, or None and why it is unknown."""
    name = bag.custom_data.get("robot", "")
    if not name and bag.messages.get("/robot_description"):
        try:
            name = ElementTree.fromstring(text(bag.messages["/robot_description"][-1].data)).get("name", "")
        except ElementTree.ParseError as error:
            return None, f"/robot_description is no XML ({error})"
    if not name:
        return None, "the bag does not name its robot"
    try:
        return load_robot(name), ""
    except ConfigError as error:
        return None, str(error)


def _put_sole_poses(out: Recording, robot: Robot) -> None:
    """Fill ``sole_poses`` by forward kinematics from the true base pose and the measured joints.

    They stay unknown where joints are, such as those of a planar base, that nothing measures.
    """
    if set(robot.joint_names) - set(out.joint_names) or robot.model.nq > robot.nu + (7 if robot.free_flyer else 0):
        return
    order = [out.joint_names.index(name) for name in robot.joint_names]
    soles = [
        (robot.soles[i], k)
        for k, foot in enumerate(out.feet)
        for i in range(len(robot.soles))
        if robot.soles[i].name == foot
    ]
    data, q = robot.model.createData(), pin.neutral(robot.model)
    for row in range(len(out)):
        if robot.free_flyer:
            q[:7] = out.base_pose[row]
        q[robot.idx_q] = out.joint_position[row, order]
        if not np.isfinite(q).all():
            continue
        pin.forwardKinematics(robot.model, data, q)
        for sole, k in soles:
            out.sole_poses[row, k] = pin.SE3ToXYZQUAT(data.oMi[sole.joint_id] * sole.placement_joint_sole)
