"""Combine the newest messages of a robot's topics into the state that a page shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from std_msgs.msg import Bool, Float64, Float64MultiArray

from bipedsim.analysis import CARRIES, centre_of_pressure, sole_wrench
from bipedsim.model import Chains, Robot, passive_columns
from bipedsim.numerics import Array
from bipedsim.recording import CONTACT_FIELDS, WALL_CLOCK_NS, plan_of, without_plan
from bipedsim.recording.bag import NS_PER_S, Qos
from bipedsim.sim import Observation
from bipedsim.view.page import Instant, pushes_at
from bipedsim_ros.live.newest import Newest
from bipedsim_ros.live.presence import RunningRobot
from bipedsim_ros.loop import Drops
from bipedsim_ros.wire import (
    BundleReader,
    ImuReader,
    JointStateReader,
    Layout,
    MessageError,
    WireReader,
    WrenchReader,
    parse,
    relative,
    topics,
)

READOUT_PERIOD_S = 1.0
"""Interval between two searches of the ROS graph for telemetry topics [s]."""
FEW = Qos(reliability="best_effort", depth=20)
"""For topics with several publishers: the newest message of each."""
_AT = {label: i for i, label in enumerate(CONTACT_FIELDS)}


class Readings:
    """Subscriptions of a viewer, and the newest value of each.

    Args:
        node: The node.
        running: The running robot.
        ft_sign: Sign of the ankle wrenches, see :class:`bipedsim_ros.loop.SimParams`.
        warn: Called with a warning about an invalid message.

    Attributes:
        t: Time of the newest joint states [s]; NaN before the first.
        fallen: Whether the controller has detected a fall.
        health: Level, message and values of each status on /diagnostics.
    """

    def __init__(self, node: Node, running: RunningRobot, ft_sign: float, warn: Callable[[str], None]) -> None:
        self._node, self._running = node, running
        self._drops = Drops(warn)
        robot = running.robot
        model, feet = robot.model, len(robot.soles)
        self._data = model.createData()
        self._passive = passive_columns(model, robot.idx_v)
        joints = [int(np.flatnonzero(np.asarray(model.idx_vs) == column)[-1]) for column in self._passive]
        self._passive_q = np.array([model.idx_qs[joint] for joint in joints], dtype=np.intp)
        self._passive_names = [model.names[joint] for joint in joints]
        self._chains = Chains(robot) if robot.loops else None
        names = (*robot.joint_names, *self._passive_names)
        self._observation = Observation.zeros(len(names), feet)
        self._joints_reader = JointStateReader(names)
        self._imu_reader = ImuReader()
        self._sole_readers = [WrenchReader() for _ in robot.soles]
        self._ankle_readers = [WrenchReader(ft_sign) for _ in robot.soles]
        self._contact_readers = [_numbers() for _ in robot.soles]
        self._odometry_reader = _odometry()
        self._object_readers = {body.name: _odometry() for body in running.objects}
        self._body_reader = _numbers()
        self._command_reader = JointStateReader(robot.joint_names)
        self._command = Observation.zeros(robot.nu, 0)
        self._take: list[tuple[Newest, Callable[[bytes], None]]] = []
        self._bundle_readers: dict[str, Callable[[bytes], None]] = {}
        self._bundle_reader = BundleReader()
        self._readouts: dict[str, float] = {}
        self._bundled: frozenset[str] = frozenset()
        self._single: dict[str, Newest] = {}
        self._searched_at = 0.0
        self._begin_ns = 0
        self._base: Array | None = None
        self._base_twist = np.zeros(6)
        self._has_imu = False
        self._wrench = np.full((feet, 6), np.nan)
        self._contact = np.full((feet, len(CONTACT_FIELDS)), np.nan)
        self._bodies: Array | None = None
        self._objects: dict[str, Array] = {}
        self._has_command = False
        self.t = np.nan
        self.fallen = False
        self.health: dict[str, tuple[int, str, dict[str, str]]] = {}
        self._subscribe()

    @property
    def robot(self) -> Robot:
        """The robot that is shown."""
        return self._running.robot

    def _subscribe(self) -> None:
        self._subscribe_to(topics.DIAGNOSTICS, self._on_diagnostics, qos=FEW)
        self._subscribe_to(topics.READOUTS_SHOWN, self._on_readouts(topics.READOUTS_SHOWN))
        self._subscribe_to(topics.FALLEN, self._on_fallen, qos=topics.FALLEN.offered)
        if self._running.simulated:
            self._subscribe_to_simulator()
            return
        self._subscribe_to(topics.JOINT_STATES, self._on_joints)
        for k, sole in enumerate(self.robot.soles):
            self._subscribe_to(topics.ANKLE_WRENCH, self._on_ankle(k), sole.name)
        self._subscribe_to(topics.IMU, self._on_imu)
        if self.robot.free_flyer:
            self._subscribe_to(topics.ODOMETRY, self._on_base)

    def _subscribe_to_simulator(self) -> None:
        """Subscribe to the bundle of all topics; its parts are read as messages of these topics."""
        self._subscribe_to(topics.SHOWN, self._on_shown)
        self._bundle_readers = {
            topics.JOINT_STATES.name: self._on_joints,
            topics.APPLIED.name: self._on_command,
            topics.BODY_CONTACTS.name: self._on_bodies,
            topics.GROUND_TRUTH.name: self._on_base,
        }
        for k, sole in enumerate(self.robot.soles):
            self._bundle_readers[topics.SOLE_WRENCH.of(sole.name)] = self._on_foot(self._sole_readers, self._wrench, k)
            self._bundle_readers[topics.CONTACT.of(sole.name)] = self._on_contact(k)
        for name in self._object_readers:
            self._bundle_readers[topics.OBJECTS.of("", name)] = self._on_object(name)

    def _subscribe_to(self, topic: topics.Topic, take: Callable[[bytes], None], foot: str = "", **more: Any) -> Newest:
        newest = Newest(self._node, topic, foot, **more)
        self._take.append((newest, take))
        return newest

    def _unsubscribe(self, newest: Newest) -> None:
        self._take = [entry for entry in self._take if entry[0] is not newest]
        newest.close()

    def close(self) -> None:
        """Destroy all subscriptions."""
        for newest, _ in self._take:
            newest.close()
        self._take.clear()

    def forget(self) -> None:
        """Discard all values, because another robot of the same appearance may start."""
        self._base, self._bodies, self.t = None, None, np.nan
        for info in fields(self._observation):
            values = getattr(self._observation, info.name)
            if isinstance(values, np.ndarray):
                values.fill(0.0)
        self._has_imu = self._has_command = self.fallen = False
        self._begin_ns = 0
        self._wrench.fill(np.nan)
        self._contact.fill(np.nan)
        self._objects.clear()
        self._readouts.clear()
        self.health.clear()

    def take(self, now: float) -> bool:
        """Read the messages that have arrived by the time ``now`` [s]; return whether any value is new."""
        if now - self._searched_at >= READOUT_PERIOD_S and self.t > 0.0:
            self._searched_at = now
            self._find_readouts()
        changed = False
        for newest, take in tuple(self._take):
            for data in newest.all():
                changed = self._read(newest.name, data, take) or changed
        return changed

    def _read(self, name: str, data: bytes, take: Callable[[bytes], None]) -> bool:
        """Process a message of a topic; log and return False if it cannot be read."""
        try:
            take(data)
        except MessageError as error:
            self._drops.add(name, f"message on {name} dropped: {error}")
            return False
        return True

    def _find_readouts(self) -> None:
        """Subscribe to single telemetry topics if the controller, which may be third-party, does not bundle them."""
        if not self._node.count_publishers(relative(topics.READOUTS_SHOWN.name)):
            self._bundled = frozenset()
        elif not self._bundled:
            # The publisher exists, so its first bundle will arrive.
            return
        single = {} if self._bundled else {topics.PLAN.name: (topics.PLAN, "", self._on_readouts(topics.PLAN))}
        prefix = self._node.resolve_topic_name(relative(topics.READOUTS.name + "x"))[:-1]
        for full, types in self._node.get_topic_names_and_types():
            name = full.removeprefix(prefix)
            if name != full and "/" not in name and name not in self._bundled and "std_msgs/msg/Float64" in types:
                single[full] = (topics.READOUTS, name, self._on_readout(name))
        for full in self._single.keys() - single.keys():
            self._unsubscribe(self._single.pop(full))
        for full in single.keys() - self._single.keys():
            topic, name, take = single[full]
            self._single[full] = self._subscribe_to(topic, take, name=name)

    # Readers of the topics.

    def _on_shown(self, data: bytes) -> None:
        # The bundle contains body contacts only while there are any.
        self._bodies = None
        for name, part in self._bundle_reader.read(data):
            take = self._bundle_readers.get(name)
            if take is not None:
                self._read(name, part, take)

    def _on_joints(self, data: bytes) -> None:
        self._joints_reader.read(data, self._observation)
        t_ns = self._joints_reader.t_ns
        if t_ns > WALL_CLOCK_NS:
            self._begin_ns = self._begin_ns or t_ns
            t_ns -= self._begin_ns
        self.t = t_ns / NS_PER_S

    def _on_imu(self, data: bytes) -> None:
        self._imu_reader.read(data, self._observation)
        self._has_imu = True

    def _on_foot(self, readers: Sequence[WrenchReader], wrench: Array, k: int) -> Callable[[bytes], None]:
        return lambda data: readers[k].read(data, wrench[k])

    def _on_ankle(self, k: int) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            self._ankle_readers[k].read(data, self._observation.foot_wrench[k])
            self._wrench[k] = sole_wrench(self.robot, k, self._observation.foot_wrench[k])

        return take

    def _on_contact(self, k: int) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            numbers = self._contact_readers[k].read(data)[0]
            if len(numbers) != len(CONTACT_FIELDS):
                raise MessageError(f"it has {len(numbers)} numbers, and this version has {len(CONTACT_FIELDS)}")
            self._contact[k] = numbers

        return take

    def _on_base(self, data: bytes) -> None:
        pose, twist = self._odometry_reader.read(data)
        self._base, self._base_twist = pose, twist

    def _on_object(self, name: str) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            self._objects[name] = self._object_readers[name].read(data)[0]

        return take

    def _on_bodies(self, data: bytes) -> None:
        numbers = self._body_reader.read(data)[0]
        if len(numbers) != 1 + 3 * (self.robot.nu + 1):
            raise MessageError(f"it has {len(numbers)} numbers, not those of a robot of {self.robot.nu} joints")
        forces = numbers[1:].reshape(-1, 3)
        touched = np.any(forces != 0.0, axis=1, keepdims=True)
        # After the end of the last contact, one message contains only NaN.
        self._bodies = np.where(touched, forces, np.nan) if np.isfinite(forces).all() else None

    def _on_command(self, data: bytes) -> None:
        self._command_reader.read(data, self._command)
        self._has_command = True

    def _on_fallen(self, data: bytes) -> None:
        self.fallen = bool(parse(data, Bool).data)

    def _on_readout(self, name: str) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            self._readouts[name] = float(parse(data, Float64).data)

        return take

    def _on_readouts(self, topic: topics.Topic) -> Callable[[bytes], None]:
        reader = _numbers()
        layout: Layout | None = None
        names: list[str] = []

        def take(data: bytes) -> None:
            nonlocal layout, names
            numbers = reader.read(data)[0]
            if reader.layout is not layout:
                dims = parse(data, Float64MultiArray).layout.dim
                # Names of an earlier layout belong to another controller.
                for name in names:
                    self._readouts.pop(name, None)
                names = dims[0].label.split(",") if dims else []
                layout = reader.layout
                if topic is topics.READOUTS_SHOWN:
                    self._bundled = frozenset(names)
            if len(names) != len(numbers):
                raise MessageError(f"it has {len(numbers)} numbers, and its layout names {len(names)}")
            self._readouts |= zip(names[1:], numbers[1:].tolist(), strict=True)

        return take

    def _on_diagnostics(self, data: bytes) -> None:
        for status in parse(data, DiagnosticArray).status:
            values = {pair.key: pair.value for pair in status.values}
            self.health[status.name] = (int.from_bytes(status.level, "little"), status.message, values)

    # Values derived from the messages.

    @property
    def lacks(self) -> tuple[str, ...]:
        """Texts about missing data, for the user."""
        running, robot = self._running, self.robot
        notes = []
        if np.isnan(self.t):
            return (f"no message on {(topics.SHOWN if running.simulated else topics.JOINT_STATES).name} yet",)
        missing = [name for name in robot.joint_names if name in self._joints_reader.missing]
        if missing:
            notes.append(f"{topics.JOINT_STATES.name} lacks {', '.join(missing)}: the robot cannot be shown")
        elif not np.isfinite(self._observation.joint_position[: robot.nu]).all():
            notes.append(f"{topics.JOINT_STATES.name} has positions that are not finite: the robot cannot be shown")
        if self._passive_names and self._chains is None and self._unmeasured():
            named = ", ".join(self._passive_names)
            notes.append(f"no topic says where {named} are: shown as the robot stands")
        if robot.free_flyer and self._base is None:
            name = topics.GROUND_TRUTH.name if running.simulated else topics.ODOMETRY.name
            attitude = f"its attitude is that of {topics.IMU.name}" if self._has_imu else "it stands upright"
            notes.append(f"nothing on {name}: it is shown where it began, {attitude}")
        if not running.simulated and np.isnan(self._wrench).all() and robot.soles:
            notes.append("nothing on the topics of the ankle wrenches: no forces")
        return tuple(notes)

    def _unmeasured(self) -> bool:
        return bool(np.isnan(self._observation.joint_position[self.robot.nu :]).any())

    def instant(self, pushes: Sequence[Mapping[str, Any]], notes: tuple[str, ...] = ()) -> Instant:
        """Return the present state of the robot.

        Args:
            pushes: Pushes of the run, as published by the simulator.
            notes: Further notes for the user.
        """
        robot, measured, contact = self.robot, self._observation, self._contact
        q, v = self._configuration()
        known = np.isfinite(contact[:, _AT["mode"]])
        if self._running.simulated:
            # A foot in the air has neither a CoP nor a margin.
            margin = contact[:, _AT["cop_margin"]].reshape(-1, 1)
            cop = np.where(np.isfinite(margin), centre_of_pressure(self._wrench, 0.0), np.nan)
        else:
            cop = centre_of_pressure(self._wrench, CARRIES * robot.weight)

        def whole(label: str) -> Any:
            return np.where(known, contact[:, _AT[label]], -1).astype(np.int64)

        return Instant(
            t=self.t,
            q=q,
            v=v,
            wrench=self._wrench.copy(),
            cop=cop,
            mode=whole("mode"),
            clamped=whole("clamped"),
            sliding=whole("sliding") == 1,
            cop_margin=contact[:, _AT["cop_margin"]].copy(),
            friction_used=contact[:, _AT["friction_used"]].copy(),
            n_vertices=np.maximum(whole("n_vertices"), 0),
            joint_position=measured.joint_position[: robot.nu].copy(),
            joint_velocity=measured.joint_velocity[: robot.nu].copy(),
            joint_effort=measured.joint_effort[: robot.nu].copy(),
            joint_command=self._command.joint_effort.copy() if self._has_command else None,
            body_forces=self._bodies,
            objects=dict(self._objects),
            push=pushes_at({"pushes": pushes}, self.t),
            plan=plan_of(self._readouts),
            readouts=without_plan(self._readouts),
            estimated=not self._running.simulated and self._base is not None,
            notes=(*notes, *(("fallen",) if self.fallen else ()), *self.lacks),
        )

    def _configuration(self) -> tuple[Array, Array]:
        """Return configuration and velocities of the pinocchio model."""
        robot, measured = self.robot, self._observation
        q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
        q[robot.idx_q] = measured.joint_position[: robot.nu]
        v[robot.idx_v] = np.nan_to_num(measured.joint_velocity[: robot.nu])
        if len(self._passive) and not self._unmeasured():
            q[self._passive_q] = measured.joint_position[robot.nu :]
            v[self._passive] = np.nan_to_num(measured.joint_velocity[robot.nu :])
        elif self._chains is not None:
            self._chains.follow(q[robot.idx_q], v[robot.idx_v])
            self._chains.fill(q, v)
        if not robot.free_flyer:
            return q, v
        if self._base is not None:
            q[:7] = self._base
            v[:6] = self._base_twist
        else:
            q = self._running.ground.place(self._with_imu_attitude(q))
        return q, v

    def _with_imu_attitude(self, q: Array) -> Array:
        """Return a configuration with the attitude measured by the IMU, rotated about the origin of the base."""
        robot, orientation = self.robot, self._observation.imu_orientation
        length = float(np.linalg.norm(orientation))
        if not (self._has_imu and np.isfinite(length) and abs(length - 1.0) < 0.1):
            return q
        pin.forwardKinematics(robot.model, self._data, np.where(np.isfinite(q), q, robot.q_nominal))
        world_imu = self._data.oMi[robot.imu_joint_id] * robot.placement_joint_imu
        base_imu = pin.XYZQUATToSE3(q[:7]).rotation.T @ world_imu.rotation
        measured = pin.Quaternion(orientation / length).toRotationMatrix()
        q[3:7] = pin.Quaternion(measured @ base_imu.T).coeffs()
        return q


def _numbers() -> WireReader:
    return WireReader(topics.CONTACT.msgtype)


def _odometry() -> WireReader:
    return WireReader(topics.GROUND_TRUTH.msgtype)
