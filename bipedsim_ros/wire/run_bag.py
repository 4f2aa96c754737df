"""Any run as an MCAP file with the topics of a bring-up, /tf included, for Foxglove, PlotJuggler and ``ros2 bag play``.

Nothing here needs ROS. Times are those of the run: log time, publish time and stamps are simulated time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
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
from bipedsim.recording.bag import BagWriter, Encoder, Topic as BagTopic, blank, definition
from bipedsim_ros.wire import topics
from bipedsim_ros.wire.frames import jointed_links, moving_frame, root_link, static_frames
from bipedsim_ros.wire.topics import BASE_FRAME, WORLD_FRAME, Topic

TF_RATE = 100.0
"""Poses of the links per second, at most [Hz]."""
NS = 1_000_000_000


class _Told(NamedTuple):
    """Messages of a topic: its row and name, their times (n,) [ns], and they."""

    row: Topic
    name: str
    stamp: Integers
    data: Sequence[bytes]


def write_run_bag(recording: Recording, robot: Robot | None, path: Path) -> list[str]:
    """Write a run as an .mcap file: what :class:`Recording` holds, on the topics that a bring-up records it from.

    Args:
        recording: The run.
        robot: What ran; None: without /robot_description, /tf and /tf_static, so that nothing is seen in 3D.
        path: The file; it must not exist.

    Returns:
        What a reader should know, a line each.

    Raises:
        ConfigError: The file exists, or cannot be made.
        RecordingError: The disk takes nothing.
    """
    notes = [] if robot is not None else ["without the robot and /tf: its description is not known here"]
    told = list(_columns(recording, robot))
    told += [*_readouts(recording), *_things(recording), *_plates(recording), *_said(recording)]
    if robot is not None:
        try:
            told += _poses(recording, robot)
        except RecordingError as error:
            notes.append(f"without /tf: {error}")
    about = {"robot": recording.robot_source, "feet": ",".join(recording.feet)}
    bag = BagWriter(path, about, alone=True)
    try:
        channels = [bag.add_topic(_described(one)) for one in told]
        # Joint states come first: readers give numbers without stamps to those that came before them.
        order = sorted((t, k, i) for k, one in enumerate(told) for i, t in enumerate(one.stamp.tolist()))
        for n, (t, k, i) in enumerate(order, 1):
            bag.add_message(channels[k], t, t, told[k].data[i])
            if n % 10_000 == 0:
                bag.flush()
        bag.close()
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        bag.release()
    return notes


def _described(told: _Told) -> BagTopic:
    text, known = definition(told.row.msgtype)
    return BagTopic(told.name, told.row.msgtype, text, known, (told.row.offered,))


def _stamps(t: Array) -> Integers:
    return np.asarray(np.rint(t * NS), dtype=np.int64)


def _dims(labels: Sequence[str]) -> dict[str, Any]:
    """Return what is fixed in an array whose layout names its numbers."""
    n = len(labels)
    dim = blank("std_msgs/msg/MultiArrayDimension", {"label": ",".join(labels), "size": n, "stride": n})
    return {"layout.dim": [dim], "data": np.zeros(n)}


def _numbers(row: Topic, name: str, labels: Sequence[str], t: Array, values: Array) -> _Told:
    """Return labelled arrays, their time first."""
    stamp = _stamps(t)
    table = np.column_stack([t, values.reshape(len(t), -1)])
    return _Told(row, name, stamp, Encoder(row.msgtype, _dims(("t", *labels)), ["data"]).write(stamp, table))


def _texts(row: Topic, name: str, t: Array, texts: Sequence[str]) -> _Told:
    stamp = _stamps(t)
    return _Told(row, name, stamp, [Encoder(row.msgtype, {"data": text}).write(stamp[:1])[0] for text in texts])


def _headed(row: Topic, name: str, frame: str, t: Array, fields: Mapping[str, Array]) -> _Told:
    """Return messages with a header; ``frame`` may name the child's behind a comma."""
    parent, _, child = frame.partition(", ")
    fixed: dict[str, Any] = {"header.frame_id": parent}
    if child:
        fixed["child_frame_id"] = child
    stamp = _stamps(t)
    return _Told(row, name, stamp, Encoder(row.msgtype, fixed, tuple(fields)).write(stamp, *fields.values()))


def _some(*columns: Array) -> Indices:
    """Return the rows in which a column says something."""
    return np.flatnonzero(np.any([np.isfinite(c.reshape(len(c), -1)).any(axis=1) for c in columns], axis=0))


def _columns(r: Recording, robot: Robot | None) -> Iterator[_Told]:
    """Yield what carries the columns of the schema; joint states first."""
    joints = {field: getattr(r, f"joint_{field}") for field in ("position", "velocity", "effort")}
    for row, fields in ((topics.JOINT_STATES, joints), (topics.APPLIED, {"effort": r.joint_command})):
        stamp = _stamps(r.t)
        if row is topics.JOINT_STATES or len(_some(*fields.values())):
            fixed: dict[str, Any] = {"header.frame_id": row.frame, "name": list(r.joint_names)}
            fixed |= {field: np.zeros(len(r.joint_names)) for field in fields}
            yield _Told(row, row.name, stamp, Encoder(row.msgtype, fixed, tuple(fields)).write(stamp, *fields.values()))
    feet = [(row, k) for k in range(len(r.feet)) for row in (topics.SOLE_WRENCH, topics.ANKLE_WRENCH, topics.SOLE_COP)]
    for row, k in feet:
        (column,) = row.columns
        values = getattr(r, column.name)[:, k]
        if len(_some(values)):
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
        rows = _some(values)
        # And once more, so that a curve ends where it does.
        rows = np.unique(np.concatenate([rows, rows + 1]))
        rows = rows[rows < len(r)]
        if len(rows):
            labels = [label for c in columns for label in c.labels_of(r.joint_names)]
            yield _numbers(row, row.name, labels, r.t[rows], values[rows])
    if len(_some(r.cop_world)):
        yield _headed(topics.COP, topics.COP.name, topics.COP.frame, r.t, {"point": r.cop_world})
    for row, pose in ((topics.GROUND_TRUTH, r.base_pose), (topics.ODOMETRY, r.odometry)):
        rows = _some(pose)
        if len(rows):
            fields = {"pose.pose": pose[rows], "twist.twist": _twists(r.t[rows], pose[rows])}
            yield _headed(row, row.name, row.frame, r.t[rows], fields)
    imu = [column for column in COLUMNS.values() if column.topic == names.IMU]
    if len(_some(*(getattr(r, column.name) for column in imu))):
        frame = topics.IMU.frame_of(imu=robot.imu_frame if robot is not None else BASE_FRAME)
        yield _headed(topics.IMU, topics.IMU.name, frame, r.t, {c.field: getattr(r, c.name) for c in imu})


def _twists(t: Array, pose: Array) -> Array:
    """Return the mean velocities (n, 6) over the time to each pose (n, 7), in the axes of the base; NaN at first.

    A step moves the base along its velocity at the end of the step, so that these are what the simulator publishes.
    """
    result = np.full((len(t), 6), np.nan)
    places = [pin.XYZQUATToSE3(one) for one in pose]
    for i in range(1, len(t)):
        result[i] = pin.log6(places[i - 1].actInv(places[i])).vector / (t[i] - t[i - 1])
    return result


def _readouts(r: Recording) -> Iterator[_Told]:
    """Yield what the controller showed, and its plan."""
    for name, values in without_plan(r.readouts).items():
        rows = np.flatnonzero(np.isfinite(values))
        stamp = _stamps(r.t[rows])
        told = Encoder(topics.READOUTS.msgtype, {}, ["data"]).write(stamp, values[rows])
        yield _Told(topics.READOUTS, topics.READOUTS.of("", name), stamp, told)
    planned = {name: values for name, values in r.readouts.items() if name.startswith(PLANNED)}
    if not planned:
        return
    yield _numbers(topics.PLAN, topics.PLAN.name, tuple(planned), r.t, np.column_stack(list(planned.values())))
    row = topics.PLANNED_STEPS
    stamps: list[float] = []
    data: list[bytes] = []
    shown: Any = None
    for i in _some(*planned.values()).tolist():
        plan = plan_of({name: float(values[i]) for name, values in planned.items()})
        steps = np.zeros((0, 4)) if plan is None or plan.footsteps is None else np.nan_to_num(plan.footsteps)
        if steps.tobytes() == shown:
            continue
        shown = steps.tobytes()
        pose = blank("geometry_msgs/msg/PoseStamped", {"header.frame_id": row.frame})
        encoder = Encoder(row.msgtype, {"header.frame_id": row.frame, "poses": [pose] * len(steps)}, ["poses.pose"])
        poses = [[x, y, z, 0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)] for x, y, z, yaw in steps.tolist()]
        stamps.append(float(r.t[i]))
        data += encoder.write(_stamps(r.t[i : i + 1]), np.array(poses).reshape(1, -1))
    yield _Told(row, row.name, _stamps(np.array(stamps)), data)


def _things(r: Recording) -> Iterator[_Told]:
    """Yield free objects and the forces at vertices."""
    for name, states in r.objects.items():
        rows = _some(states)
        fields = {"pose.pose": states[rows, :7], "twist.twist": states[rows, 7:]}
        yield _headed(topics.OBJECTS, topics.OBJECTS.of("", name), f"{WORLD_FRAME}, {name}", r.t[rows], fields)
    for foot, forces in r.vertex_forces.items():
        labels = names.vertex_labels(forces.shape[1])[1:]
        yield _numbers(topics.VERTEX_FORCES, topics.VERTEX_FORCES.of(foot), labels, r.t, forces)


def _plates(r: Recording) -> Iterator[_Told]:
    """Yield every sample of force plates, and wrench, CoP and free moment of the newest one of each row."""
    for name, plate in r.force_plates.items():
        if not len(plate.t):
            continue
        yield _texts(topics.PLATE_GEOMETRY, topics.PLATE_GEOMETRY.of("", name), r.t[:1], [_geometry(plate)])
        # How many values were clipped until each sample is not known any more: the last one has their number.
        clipped = np.zeros(len(plate.t))
        clipped[-1] = plate.clipped
        labels = (*plate.geometry.channel_names, names.CLIPPED)
        values = np.column_stack([plate.channels, clipped])
        yield _numbers(topics.PLATE_SIGNALS, topics.PLATE_SIGNALS.of("", name), labels, plate.t, values)
        newest = np.unique(np.searchsorted(plate.t, r.t + 1e-9, side="right") - 1)
        newest = newest[newest >= 0]
        one = PlateSignals(plate.t[newest], plate.geometry, plate.channels[newest])
        wrench = np.hstack([one.force(), one.moment_about(plate.geometry.centre)])
        for row, field, found in ((topics.PLATE_WRENCH, "wrench", wrench), (topics.PLATE_COP, "point", one.cop())):
            yield _headed(row, row.of("", name), row.frame, one.t, {field: found})
        row, stamp = topics.PLATE_FREE_MOMENT, _stamps(one.t)
        yield _Told(row, row.of("", name), stamp, Encoder(row.msgtype, {}, ["data"]).write(stamp, one.free_moment()))


def _geometry(plate: PlateSignals) -> str:
    return json.dumps(as_json(plate.geometry))


def _said(r: Recording) -> Iterator[_Told]:
    """Yield what was run, whether it fell, and the clock."""
    if not len(r):
        return
    stamp = _stamps(r.t)
    yield _Told(topics.CLOCK, topics.CLOCK.name, stamp, Encoder(topics.CLOCK.msgtype, {}).write(stamp))
    first, last = float(r.t[0]), float(r.t[-1])
    events = {"pushes": "push", "gantry_actions": "gantry_action"}
    said = [{**{k: v for k, v in r.run.items() if k not in events}, names.ABOUT: dict(r.about)}] if r.run else []
    said += [{kind: one} for key, kind in events.items() for one in r.run.get(key, ())]
    at = [first] * len(said)
    if r.statistics:
        said, at = [*said, {names.STATISTICS: dict(r.statistics)}], [*at, last]
    yield _texts(topics.RUN, topics.RUN.name, np.array(at), [json.dumps(one) for one in said])
    if math.isfinite(r.gave_up_at):
        stamp = _stamps(np.array([first, r.gave_up_at]))
        told = [Encoder(topics.FALLEN.msgtype, {"data": fallen}).write(stamp[:1])[0] for fallen in (False, True)]
        yield _Told(topics.FALLEN, topics.FALLEN.name, stamp, told)
        yield _stop(r, stamp[1:])


def _stop(r: Recording, stamp: Integers) -> _Told:
    """Return what the controller's node says when it is stopped."""
    values = zip(names.STOPPED, (str(r.gave_up_at), r.gave_up_why), strict=True)
    pairs = [blank("diagnostic_msgs/msg/KeyValue", {"key": key, "value": value}) for key, value in values]
    said = {"level": 2, "name": topics.CONTROLLER_STATUS, "message": f"stopped: {r.gave_up_why}", "values": pairs}
    row, status = topics.DIAGNOSTICS, blank("diagnostic_msgs/msg/DiagnosticStatus", said)
    return _Told(row, row.name, stamp, Encoder(row.msgtype, {"status": [status]}).write(stamp))


def _poses(r: Recording, robot: Robot) -> list[_Told]:
    """Return the description of the robot and the poses of its links.

    Raises:
        RecordingError: They do not follow from the recording.
    """
    first = r.t[:1]
    turning, fixed = jointed_links(robot)
    text, row = located(robot.urdf_xml, robot.urdf_path), topics.ROBOT_DESCRIPTION
    told = [_texts(row, row.name, first, [text])]
    told.append(_transforms(topics.TF_STATIC, first, [*fixed, *static_frames(robot)]))
    every = max(1, int(np.ceil(1.0 / (TF_RATE * float(np.median(np.diff(r.t)))) - 1e-9))) if len(r) > 1 else 1
    rows = r.rows(slice(None, None, every))
    if robot.free_flyer and not np.isfinite(rows.base_pose).any():
        # A robot's own bag has no truth: it stands where its controller believed it.
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
    told.append(_transforms(topics.TF, rows.t[known], [(*pair, []) for pair in frames], poses))
    return told


def _transforms(
    row: Topic, t: Array, frames: Sequence[tuple[str, str, Sequence[float]]], poses: Array | None = None
) -> _Told:
    """Return messages with all ``frames``: parent, child and pose, unless ``poses`` (n, frames, 7) has these."""
    if poses is None:
        poses = np.array([[pose for _, _, pose in frames]])
    kind = "geometry_msgs/msg/TransformStamped"
    links = [blank(kind, {"header.frame_id": parent, "child_frame_id": child}) for parent, child, _ in frames]
    stamp = _stamps(t)
    data = Encoder(row.msgtype, {"transforms": links}, ["transforms.transform"]).write(stamp, poses)
    return _Told(row, row.name, stamp, data)
