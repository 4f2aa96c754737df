"""Write any run as an MCAP file with the topics of a launch, for Foxglove, PlotJuggler and ``ros2 bag play``.

The file includes /tf. Log times, publish times and stamps are simulated time. This module does not need ROS.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.analysis import recorded_configurations
from bipedsim.contact import mode_name
from bipedsim.errors import RecordingError
from bipedsim.model import Robot, located
from bipedsim.numerics import Array, Indices, Integers
from bipedsim.plates import PlateSignals, as_json
from bipedsim.recording import COLUMNS, PLANNED, Recording, columns_on, plan_of, schema as names, without_plan
from bipedsim.recording.bag import NS_PER_S, BagWriter, Encoder, Topic as BagTopic, blank, labelled
from bipedsim_ros.wire import topics
from bipedsim_ros.wire.frames import jointed_links, moving_frame, root_link, static_frames
from bipedsim_ros.wire.message_definitions import definition_of, type_hash_of
from bipedsim_ros.wire.topics import BASE_FRAME, WORLD_FRAME, Topic

TF_RATE = 100.0
"""Maximum rate of the link poses [Hz]."""


class _TopicMessages(NamedTuple):
    """Messages of a topic: table row, name, times (n,) [ns] and serialised messages."""

    row: Topic
    name: str
    stamp: Integers
    data: Sequence[bytes]


def write_run_bag(recording: Recording, robot: Robot | None, path: Path) -> list[str]:
    """Write a :class:`Recording` as an .mcap file, on the topics from which a recorder would record it.

    Args:
        recording: The run.
        robot: Robot of the run. None omits /robot_description, /tf and /tf_static, so viewers show nothing in 3D.
        path: The file; it must not exist.

    Returns:
        Notes for the user, one per line.

    Raises:
        ConfigError: The file exists, or cannot be created.
        RecordingError: The disk cannot be written.
    """
    notes = [] if robot is not None else ["without the robot and /tf: its description is not known here"]
    sensors = _sensor_topics(recording, robot)
    messages = list(_columns(recording, robot))
    messages += [
        *_sensors(recording, sensors),
        *_controller_signals(recording),
        *_objects_and_vertices(recording),
        *_plates(recording),
        *_run_information(recording),
    ]
    if robot is not None:
        try:
            messages += _poses(recording, robot)
        except RecordingError as error:
            notes.append(f"without /tf: {error}")
    about = {"robot": recording.robot_source, "feet": ",".join(recording.feet)}
    if sensors:
        about[names.SENSORS] = json.dumps({sensor: row.name for sensor, row in sensors.items()})
    bag = BagWriter(path, about, alone=True)
    try:
        channels = [bag.add_topic(_bag_topic(topic)) for topic in messages]
        # Joint states come first: readers assign values without stamps to the preceding joint states.
        order = sorted((t, k, i) for k, topic in enumerate(messages) for i, t in enumerate(topic.stamp.tolist()))
        for n, (t, k, i) in enumerate(order, 1):
            bag.add_message(channels[k], t, t, messages[k].data[i])
            if n % 10_000 == 0:
                bag.flush()
        bag.close()
    except OSError as error:
        raise RecordingError(f"cannot be written ({error.strerror})", path) from error
    finally:
        bag.release()
    return notes


def _bag_topic(messages: _TopicMessages) -> BagTopic:
    msgtype = messages.row.msgtype
    return BagTopic(messages.name, msgtype, definition_of(msgtype), type_hash_of(msgtype), (messages.row.offered,))


def _stamps(t: Array) -> Integers:
    return np.asarray(np.rint(t * NS_PER_S), dtype=np.int64)


def _numbers(row: Topic, name: str, labels: Sequence[str], t: Array, values: Array) -> _TopicMessages:
    """Return labelled arrays; the first value of each is the time."""
    stamp = _stamps(t)
    table = np.column_stack([t, values.reshape(len(t), -1)])
    return _TopicMessages(row, name, stamp, labelled(("t", *labels)).write_all(stamp, table))


def _texts(row: Topic, name: str, t: Array, texts: Sequence[str]) -> _TopicMessages:
    stamp = _stamps(t)
    data = [Encoder(row.msgtype, {"data": text}).data(0) for text in texts]
    return _TopicMessages(row, name, stamp, data)


def _headed(row: Topic, name: str, frame: str, t: Array, fields: Mapping[str, Array]) -> _TopicMessages:
    """Return messages with a header; ``frame`` may contain the child frame after a comma."""
    stamp = _stamps(t)
    return _TopicMessages(row, name, stamp, row.encoder(frame, tuple(fields)).write_all(stamp, *fields.values()))


def _finite_rows(*columns: Array) -> Indices:
    """Return the rows in which at least one column has a finite value."""
    return np.flatnonzero(np.any([np.isfinite(c.reshape(len(c), -1)).any(axis=1) for c in columns], axis=0))


def _columns(r: Recording, robot: Robot | None) -> Iterator[_TopicMessages]:
    """Yield the topics that carry the recorded columns, joint states first."""
    joints = {field: getattr(r, f"joint_{field}") for field in ("position", "velocity", "effort")}
    for row, fields in ((topics.JOINT_STATES, joints), (topics.APPLIED, {"effort": r.joint_command})):
        stamp = _stamps(r.t)
        if row is topics.JOINT_STATES or len(_finite_rows(*fields.values())):
            fixed: dict[str, Any] = {"header.frame_id": row.frame, "name": list(r.joint_names)}
            fixed |= {field: np.zeros(len(r.joint_names)) for field in fields}
            data = Encoder(row.msgtype, fixed, tuple(fields)).write_all(stamp, *fields.values())
            yield _TopicMessages(row, row.name, stamp, data)
    feet = [(row, k) for k in range(len(r.feet)) for row in (topics.SOLE_WRENCH, topics.ANKLE_WRENCH, topics.SOLE_COP)]
    for row, k in feet:
        (column,) = row.columns
        values = getattr(r, column.name)[:, k]
        if len(_finite_rows(values)):
            field = {"wrench": values} if values.shape[1] == 6 else {"point": np.pad(values, ((0, 0), (0, 1)))}
            yield _headed(row, row.of(r.feet[k]), row.frame_of(r.feet[k]), r.t, field)
    for k, foot in enumerate(r.feet):
        columns = columns_on(names.CONTACT)
        values = np.column_stack([getattr(r, c.name)[:, k].reshape(len(r), -1).astype(float) for c in columns])
        labels = [label for c in columns for label in c.labels]
        yield _numbers(topics.CONTACT, topics.CONTACT.of(foot), labels, r.t, values)
        modes = np.column_stack([r.mode[:, k], r.sliding[:, k], r.n_vertices[:, k]])
        changed = np.flatnonzero(np.append(True, (np.diff(modes, axis=0) != 0).any(axis=1))[: len(r)])
        words = [mode_name(int(mode), bool(slides), int(n)) for mode, slides, n in modes[changed] if mode >= 0]
        if len(words) == len(changed):
            yield _texts(topics.CONTACT_MODE, topics.CONTACT_MODE.of(foot), r.t[changed], words)
    for row in (topics.BODY_CONTACTS, topics.JOINT_STOPS, topics.GANTRY, topics.SETPOINTS):
        columns = row.columns
        values = np.concatenate([getattr(r, c.name).reshape(len(r), -1) for c in columns], axis=1)
        rows = _finite_rows(values)
        # One more row follows each segment, so that a plotted curve ends where the values end.
        rows = np.unique(np.concatenate([rows, rows + 1]))
        rows = rows[rows < len(r)]
        if len(rows):
            labels = [label for c in columns for label in c.labels_of(r.joint_names)]
            yield _numbers(row, row.name, labels, r.t[rows], values[rows])
    if len(_finite_rows(r.cop_world)):
        yield _headed(topics.COP, topics.COP.name, topics.COP.frame, r.t, {"point": r.cop_world})
    for row, pose in ((topics.GROUND_TRUTH, r.base_pose), (topics.ODOMETRY, r.odometry)):
        rows = _finite_rows(pose)
        if len(rows):
            fields = {"pose.pose": pose[rows], "twist.twist": _twists(r.t[rows], pose[rows])}
            yield _headed(row, row.name, row.frame, r.t[rows], fields)
    imu = [column for column in COLUMNS.values() if column.topic == names.IMU]
    if len(_finite_rows(*(getattr(r, column.name) for column in imu))):
        frame = topics.IMU.frame_of(imu=robot.imu_frame if robot is not None else BASE_FRAME)
        yield _headed(topics.IMU, topics.IMU.name, frame, r.t, {c.field: getattr(r, c.name) for c in imu})


def _sensor_topics(r: Recording, robot: Robot | None) -> dict[str, Topic]:
    """Return the topic of each recorded additional sensor; without the robot, the default one."""
    known = topics.of_sensors(robot) if robot is not None else {}
    kinds = ((topics.ADDITIONAL_IMU, r.imu_names), (topics.SWITCH, r.switch_names))
    default = {name: replace(row, name=row.of("", name), frame="") for row, group in kinds for name in group}
    return {name: known.get(name, row) for name, row in default.items()}


def _sensors(r: Recording, rows_of: Mapping[str, Topic]) -> Iterator[_TopicMessages]:
    """Yield the additional IMUs and the contact switches."""
    for i, name in enumerate(r.imu_names):
        row, at = rows_of[name], _finite_rows(r.imus[:, i])
        values = r.imus[at, i]
        fields = {
            "orientation": values[:, :4],
            "angular_velocity": values[:, 4:7],
            "linear_acceleration": values[:, 7:],
        }
        yield _headed(row, row.name, row.frame, r.t[at], fields)
    states = [Encoder(topics.SWITCH.msgtype, {"data": closed}).data(0) for closed in (False, True)]
    for i, name in enumerate(r.switch_names):
        row, at = rows_of[name], _finite_rows(r.contact_switches[:, i])
        data = [states[closed > 0.5] for closed in r.contact_switches[at, i].tolist()]
        yield _TopicMessages(row, row.name, _stamps(r.t[at]), data)


def _twists(t: Array, pose: Array) -> Array:
    """Return the mean velocities (n, 6) between successive poses (n, 7), in the axes of the base; NaN in the first row.

    A step moves the base with its velocity at the end of the step, so these equal the published velocities.
    """
    result = np.full((len(t), 6), np.nan)
    placements = [pin.XYZQUATToSE3(row) for row in pose]
    for i in range(1, len(t)):
        result[i] = pin.log6(placements[i - 1].actInv(placements[i])).vector / (t[i] - t[i - 1])
    return result


def _controller_signals(r: Recording) -> Iterator[_TopicMessages]:
    """Yield the telemetry and the plan of the controller."""
    for name, values in without_plan(r.readouts).items():
        rows = np.flatnonzero(np.isfinite(values))
        stamp = _stamps(r.t[rows])
        messages = topics.READOUTS.encoder().write_all(stamp, values[rows])
        yield _TopicMessages(topics.READOUTS, topics.READOUTS.of("", name), stamp, messages)
    planned = {name: values for name, values in r.readouts.items() if name.startswith(PLANNED)}
    if not planned:
        return
    yield _numbers(topics.PLAN, topics.PLAN.name, tuple(planned), r.t, np.column_stack(list(planned.values())))
    row = topics.PLANNED_STEPS
    stamps: list[float] = []
    data: list[bytes] = []
    last: Any = None
    for i in _finite_rows(*planned.values()).tolist():
        plan = plan_of({name: float(values[i]) for name, values in planned.items()})
        steps = np.zeros((0, 4)) if plan is None or plan.footsteps is None else np.nan_to_num(plan.footsteps)
        if steps.tobytes() == last:
            continue
        last = steps.tobytes()
        pose = blank("geometry_msgs/msg/PoseStamped", {"header.frame_id": row.frame})
        encoder = Encoder(row.msgtype, {"header.frame_id": row.frame, "poses": [pose] * len(steps)}, ["poses.pose"])
        poses = [[x, y, z, 0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)] for x, y, z, yaw in steps.tolist()]
        stamps.append(float(r.t[i]))
        data += encoder.write_all(_stamps(r.t[i : i + 1]), np.array(poses).reshape(1, -1))
    yield _TopicMessages(row, row.name, _stamps(np.array(stamps)), data)


def _objects_and_vertices(r: Recording) -> Iterator[_TopicMessages]:
    """Yield the free objects and the forces at the vertices of the soles."""
    for name, states in r.objects.items():
        rows = _finite_rows(states)
        fields = {"pose.pose": states[rows, :7], "twist.twist": states[rows, 7:]}
        yield _headed(topics.OBJECTS, topics.OBJECTS.of("", name), f"{WORLD_FRAME}, {name}", r.t[rows], fields)
    for foot, forces in r.vertex_forces.items():
        labels = names.vertex_labels(forces.shape[1])[1:]
        yield _numbers(topics.VERTEX_FORCES, topics.VERTEX_FORCES.of(foot), labels, r.t, forces)


def _plates(r: Recording) -> Iterator[_TopicMessages]:
    """Yield every sample of the force plates, and wrench, CoP and free moment of the newest sample of each row."""
    for name, plate in r.force_plates.items():
        if not len(plate.t):
            continue
        yield _texts(topics.PLATE_GEOMETRY, topics.PLATE_GEOMETRY.of("", name), r.t[:1], [_geometry(plate)])
        # A recording only has the total number of clipped values, so the last sample carries it.
        clipped = np.zeros(len(plate.t))
        clipped[-1] = plate.clipped
        labels = (*plate.geometry.channel_names, names.CLIPPED)
        values = np.column_stack([plate.channels, clipped])
        yield _numbers(topics.PLATE_SIGNALS, topics.PLATE_SIGNALS.of("", name), labels, plate.t, values)
        newest = np.unique(np.searchsorted(plate.t, r.t + 1e-9, side="right") - 1)
        newest = newest[newest >= 0]
        latest = PlateSignals(plate.t[newest], plate.geometry, plate.channels[newest])
        wrench = np.hstack([latest.force(), latest.moment_about(plate.geometry.centre)])
        for row, field, values in ((topics.PLATE_WRENCH, "wrench", wrench), (topics.PLATE_COP, "point", latest.cop())):
            yield _headed(row, row.of("", name), row.frame, latest.t, {field: values})
        row, stamp = topics.PLATE_FREE_MOMENT, _stamps(latest.t)
        data = row.encoder().write_all(stamp, latest.free_moment())
        yield _TopicMessages(row, row.of("", name), stamp, data)


def _geometry(plate: PlateSignals) -> str:
    return json.dumps(as_json(plate.geometry))


def _run_information(r: Recording) -> Iterator[_TopicMessages]:
    """Yield the clock, the settings and statistics of the run, and the controller's fall."""
    if not len(r):
        return
    stamp = _stamps(r.t)
    yield _TopicMessages(topics.CLOCK, topics.CLOCK.name, stamp, topics.CLOCK.encoder().write_all(stamp))
    first, last = float(r.t[0]), float(r.t[-1])
    event_kinds = {key: kind for kind, key in names.EVENTS.items()}
    entries = (
        [{**{k: v for k, v in r.run.items() if k not in event_kinds}, names.ABOUT: dict(r.about)}] if r.run else []
    )
    entries += [{kind: event} for key, kind in event_kinds.items() for event in r.run.get(key, ())]
    times = [first] * len(entries)
    if r.statistics:
        entries, times = [*entries, {names.STATISTICS: dict(r.statistics)}], [*times, last]
    yield _texts(topics.RUN, topics.RUN.name, np.array(times), [json.dumps(entry) for entry in entries])
    if math.isfinite(r.gave_up_at):
        stamp = _stamps(np.array([first, r.gave_up_at]))
        data = [Encoder(topics.FALLEN.msgtype, {"data": fallen}).data(0) for fallen in (False, True)]
        yield _TopicMessages(topics.FALLEN, topics.FALLEN.name, stamp, data)
        yield _stop(r, stamp[1:])


def _stop(r: Recording, stamp: Integers) -> _TopicMessages:
    """Return the diagnostics that the controller's node publishes when it stops."""
    values = zip(names.STOPPED, (str(r.gave_up_at), r.gave_up_why, r.gave_up_kind or ""), strict=True)
    pairs = [blank("diagnostic_msgs/msg/KeyValue", {"key": key, "value": value}) for key, value in values]
    fields = {"level": 2, "name": topics.CONTROLLER_STATUS, "message": f"stopped: {r.gave_up_why}", "values": pairs}
    row, status = topics.DIAGNOSTICS, blank("diagnostic_msgs/msg/DiagnosticStatus", fields)
    return _TopicMessages(row, row.name, stamp, Encoder(row.msgtype, {"status": [status]}).write_all(stamp))


def _poses(r: Recording, robot: Robot) -> list[_TopicMessages]:
    """Return the description of the robot and the poses of its links.

    Raises:
        RecordingError: The recording does not determine the poses.
    """
    first = r.t[:1]
    turning, fixed = jointed_links(robot)
    text, row = located(robot.urdf_xml, robot.urdf_path), topics.ROBOT_DESCRIPTION
    messages = [_texts(row, row.name, first, [text])]
    messages.append(_transforms(topics.TF_STATIC, first, [*fixed, *static_frames(robot)]))
    every = max(1, int(np.ceil(1.0 / (TF_RATE * float(np.median(np.diff(r.t)))) - 1e-9))) if len(r) > 1 else 1
    rows = r.rows(slice(None, None, every))
    if robot.free_flyer and not np.isfinite(rows.base_pose).any():
        # A bag of a real robot has no ground truth, so the controller's estimate places the robot.
        rows.base_pose = rows.odometry
    q = recorded_configurations(rows, robot)
    model, data = robot.model, robot.model.createData()
    links = [(model.getFrameId(parent), model.getFrameId(child)) for parent, child in turning]
    root = model.getFrameId(root_link(robot))
    frames = [(WORLD_FRAME, moving_frame(robot) if robot.free_flyer else root_link(robot)), *turning]
    known = np.flatnonzero(np.isfinite(q).all(axis=1))
    poses = np.empty((len(known), len(frames), 7))
    for i, at in enumerate(known.tolist()):
        pin.framesForwardKinematics(model, data, q[at])
        poses[i, 0] = q[at, :7] if robot.free_flyer else pin.SE3ToXYZQUAT(data.oMf[root])
        for k, (parent, child) in enumerate(links, 1):
            poses[i, k] = pin.SE3ToXYZQUAT(data.oMf[parent].actInv(data.oMf[child]))
    messages.append(_transforms(topics.TF, rows.t[known], [(*pair, []) for pair in frames], poses))
    return messages


def _transforms(
    row: Topic, t: Array, frames: Sequence[tuple[str, str, Sequence[float]]], poses: Array | None = None
) -> _TopicMessages:
    """Return messages with all ``frames`` (parent, child, pose); ``poses`` (n, frames, 7) replaces their poses."""
    if poses is None:
        poses = np.array([[pose for _, _, pose in frames]])
    kind = "geometry_msgs/msg/TransformStamped"
    links = [blank(kind, {"header.frame_id": parent, "child_frame_id": child}) for parent, child, _ in frames]
    stamp = _stamps(t)
    data = Encoder(row.msgtype, {"transforms": links}, ["transforms.transform"]).write_all(stamp, poses)
    return _TopicMessages(row, row.name, stamp, data)
