"""A bag of the simulator's topics -> :class:`bipedsim.recording.Recording`, aligned by the stamps in the messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.errors import ConfigError, RecordingError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Indices
from bipedsim.recording.bag.messages import Columns, columns, text
from bipedsim.recording.bag.reader import Bag
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import (
    CARRIERS,
    CONTACT_FIELDS,
    FALLEN,
    FOOT,
    JOINT_STATES,
    READOUTS,
    ROBOT_DESCRIPTION,
    WALL_CLOCK_NS,
    Column,
    columns_on,
)

Stamps = NDArray[np.int64]

# The field of messages whose numbers have labels.
_LABELLED = "data"


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
    if not bag.messages.get(JOINT_STATES):
        found = ", ".join(f"{name} ({len(m)})" for name, m in sorted(bag.messages.items())) or "no topics"
        raise RecordingError(f"{path}: no messages on {JOINT_STATES}; found {found}")
    notes = [bag.recovered] if bag.recovered else []
    reader = _TopicReader(bag, segment)
    joints = reader.read(JOINT_STATES)
    assert joints is not None
    if reader.segments > 1:
        notes.append(
            f"time jumps back {reader.segments - 1} times (reset); this is stretch {segment} of {reader.segments}"
        )
    names = {match[match.lastindex or 0]: None for topic in sorted(bag.messages) if (match := FOOT.match(topic))}
    feet = [f for f in bag.custom_data.get("feet", "").split(",") if f in names] or list(names)
    out = Recording.empty(len(joints.stamp), joints.labels, feet)
    shift = joints.stamp[0] if joints.stamp[0] > WALL_CLOCK_NS else 0
    out.t[:] = (joints.stamp - shift) * 1e-9
    rows = _Rows(joints.stamp)
    for topic in CARRIERS:
        for k, foot in enumerate(feet) if "{foot}" in topic else ((None, ""),):
            table = joints if topic == JOINT_STATES else reader.read(topic.format(foot=foot))
            if table is None:
                continue
            for column in columns_on(topic):
                target = getattr(out, column.name)
                rows.put(target if k is None else target[:, k], table, column)
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
        self._row_of: Indices = np.zeros(0, dtype=np.intp)

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
        if _LABELLED in table.values:
            t = table.values[_LABELLED][:, 0] if table.values[_LABELLED].shape[1] else np.zeros(len(messages))
            stamp = np.rint(t * 1e9).astype(np.int64)
        starts = [0, *(np.flatnonzero(np.diff(stamp) < 0) + 1), len(stamp)]
        if topic == JOINT_STATES:
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
        if topic == JOINT_STATES:
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

    def unstamped(self, topic: str) -> tuple[Indices, Array]:
        """Return (rows, numbers) of a topic whose messages say no time, in the order in which they came.

        A message belongs to the row whose joint states were the last to arrive before it.
        """
        joints, messages = self._bag.messages[JOINT_STATES], self._bag.messages.get(topic)
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

    def match(self, stamp: Stamps) -> tuple[Indices, Indices]:
        """Return (rows, entries of ``stamp``) with equal stamps."""
        _, rows, entries = np.intersect1d(self._stamp, stamp, assume_unique=True, return_indices=True)
        return rows, entries

    def put(self, target: NDArray[Any], table: Columns, column: Column) -> None:
        """Copy a column into the rows of ``target`` that its messages belong to, if they hold it."""
        values = _values_of(table, column)
        if values is None or (column.per == "joint" and values.shape[1] != target.shape[1]):
            return
        rows, entries = self.match(table.stamp)
        width = int(np.prod(target.shape[1:]))
        target[rows] = values[entries, :width].reshape(-1, *target.shape[1:]).astype(target.dtype)


def _values_of(table: Columns, column: Column) -> Array | None:
    """Return the numbers (n, k) of a column in the messages of its topic, None where they hold no such thing."""
    if column.field != _LABELLED:
        return table.values.get(column.field)
    values = table.values[_LABELLED]
    # Bags of before there were labels.
    labels = (table.labels if len(table.labels) > 1 else CONTACT_FIELDS)[: values.shape[1]]
    if not set(column.labels) <= set(labels):
        return None
    return values[:, [labels.index(label) for label in column.labels]]


def _put_controller(out: Recording, reader: _TopicReader) -> None:
    """Fill what the controller told without a stamp: its readouts, and when it was found fallen."""
    for topic in reader.numbers(READOUTS):
        column = np.full(len(out), np.nan)
        rows, numbers = reader.unstamped(topic)
        column[rows] = numbers
        out.readouts[topic.removeprefix(READOUTS)] = column
    rows, fallen = reader.unstamped(FALLEN)
    if fallen.any():
        out.gave_up_at = float(out.t[rows[np.argmax(fallen)]])


def _robot_of(bag: Bag) -> tuple[Robot | None, str]:
    """Return the robot of the bag, or None and why it is unknown."""
    name = bag.custom_data.get("robot", "")
    if not name and bag.messages.get(ROBOT_DESCRIPTION):
        try:
            name = ElementTree.fromstring(text(bag.messages[ROBOT_DESCRIPTION][-1].data)).get("name", "")
        except ElementTree.ParseError as error:
            return None, f"{ROBOT_DESCRIPTION} is no XML ({error})"
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
