"""What the topics of a robot say at one instant, as a page shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from std_msgs.msg import Bool, Float64, Float64MultiArray

from bipedsim.analysis import CARRIES, centre_of_pressure, sole_wrench
from bipedsim.model import Chains, Robot, passive_columns
from bipedsim.numerics import Array
from bipedsim.recording import CONTACT_FIELDS, WALL_CLOCK_NS, plan_of, without_plan
from bipedsim.recording.bag import Qos
from bipedsim.sim import Observation
from bipedsim.view.page import Instant, pushes_at
from bipedsim_ros.live.newest import Newest
from bipedsim_ros.live.presence import Found
from bipedsim_ros.loop import Drops
from bipedsim_ros.wire import (
    NS_PER_S,
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
"""How often the graph is asked for readouts that a controller has."""
FEW = Qos(reliability="best_effort", depth=20)
"""For what several nodes publish: the newest of each."""
_AT = {label: i for i, label in enumerate(CONTACT_FIELDS)}


class Readings:
    """The subscriptions of a viewer, and the last that each of them said.

    Args:
        node: The node.
        found: What is up.
        ft_sign: Of the ankle wrenches, see :class:`bipedsim_ros.loop.SimParams`.
        warn: Called with what is wrong with a message.

    Attributes:
        t: Time of the newest joint states [s]; NaN before the first.
        health: Of each subject of /diagnostics its level, message and values.
    """

    def __init__(self, node: Node, found: Found, ft_sign: float, warn: Callable[[str], None]) -> None:
        self._node, self._found = node, found
        self._drops = Drops(warn)
        robot = found.robot
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
        self._object_readers = {one.name: _odometry() for one in found.objects}
        self._body_reader = _numbers()
        self._command_reader = JointStateReader(robot.joint_names)
        self._command = Observation.zeros(robot.nu, 0)
        self._take: list[tuple[Newest, Callable[[bytes], None]]] = []
        self._shown: dict[str, Callable[[bytes], None]] = {}
        self._bundle_reader = BundleReader()
        self._readouts: dict[str, float] = {}
        self._together: frozenset[str] = frozenset()
        self._alone: dict[str, Newest] = {}
        self._looked = 0.0
        self._begin_ns = 0
        self._base: Array | None = None
        self._base_twist = np.zeros(6)
        self._imu_came = False
        self._wrench = np.full((feet, 6), np.nan)
        self._contact = np.full((feet, len(CONTACT_FIELDS)), np.nan)
        self._bodies: Array | None = None
        self._objects: dict[str, Array] = {}
        self._commanded = False
        self.t = np.nan
        self.fallen = False
        self.health: dict[str, tuple[int, str, dict[str, str]]] = {}
        self._subscribe()

    @property
    def robot(self) -> Robot:
        """What is shown."""
        return self._found.robot

    def _subscribe(self) -> None:
        self._listen(topics.DIAGNOSTICS, self._on_diagnostics, qos=FEW)
        self._listen(topics.READOUTS_SHOWN, self._on_readouts(topics.READOUTS_SHOWN))
        self._listen(topics.FALLEN, self._on_fallen, qos=topics.FALLEN.offered)
        if self._found.simulated:
            self._subscribe_to_simulator()
            return
        self._listen(topics.JOINT_STATES, self._on_joints)
        for k, sole in enumerate(self.robot.soles):
            self._listen(topics.ANKLE_WRENCH, self._on_ankle(k), sole.name)
        self._listen(topics.IMU, self._on_imu)
        if self.robot.free_flyer:
            self._listen(topics.ODOMETRY, self._on_base)

    def _subscribe_to_simulator(self) -> None:
        """Listen to the one topic that has all; its parts are read as messages of their topics."""
        self._listen(topics.SHOWN, self._on_shown)
        self._shown = {
            topics.JOINT_STATES.name: self._on_joints,
            topics.APPLIED.name: self._on_command,
            topics.BODY_CONTACTS.name: self._on_bodies,
            topics.GROUND_TRUTH.name: self._on_base,
        }
        for k, sole in enumerate(self.robot.soles):
            self._shown[topics.SOLE_WRENCH.of(sole.name)] = self._on_foot(self._sole_readers, self._wrench, k)
            self._shown[topics.CONTACT.of(sole.name)] = self._on_contact(k)
        for name in self._object_readers:
            self._shown[topics.OBJECTS.of("", name)] = self._on_object(name)

    def _listen(self, topic: topics.Topic, take: Callable[[bytes], None], foot: str = "", **more: Any) -> Newest:
        newest = Newest(self._node, topic, foot, **more)
        self._take.append((newest, take))
        return newest

    def _ignore(self, newest: Newest) -> None:
        self._take = [one for one in self._take if one[0] is not newest]
        newest.close()

    def close(self) -> None:
        """End all subscriptions."""
        for newest, _ in self._take:
            newest.close()
        self._take.clear()

    def forget(self) -> None:
        """Forget what was said, as another robot of the same looks may come."""
        self._base, self._bodies, self.t = None, None, np.nan
        for one in fields(self._observation):
            values = getattr(self._observation, one.name)
            if isinstance(values, np.ndarray):
                values.fill(0.0)
        self._imu_came = self._commanded = self.fallen = False
        self._begin_ns = 0
        self._wrench.fill(np.nan)
        self._contact.fill(np.nan)
        self._objects.clear()
        self._readouts.clear()
        self.health.clear()

    def take(self, now: float) -> bool:
        """Take what has come by the time ``now`` [s]; return whether there is anything new to show."""
        if now - self._looked >= READOUT_PERIOD_S and self.t > 0.0:
            self._looked = now
            self._find_readouts()
        came = False
        for newest, take in tuple(self._take):
            for data in newest.all():
                came = self._read(newest.name, data, take) or came
        return came

    def _read(self, name: str, data: bytes, take: Callable[[bytes], None]) -> bool:
        """Have a message of a topic taken; tell, and return False, where it cannot be read."""
        try:
            take(data)
        except MessageError as error:
            self._drops.add(name, f"message on {name} dropped: {error}")
            return False
        return True

    def _find_readouts(self) -> None:
        """Listen one by one to readouts that the controller, which may be another's, does not tell together."""
        if not self._node.count_publishers(relative(topics.READOUTS_SHOWN.name)):
            self._together = frozenset()
        elif not self._together:
            # They come.
            return
        alone = {} if self._together else {topics.PLAN.name: (topics.PLAN, "", self._on_readouts(topics.PLAN))}
        prefix = self._node.resolve_topic_name(relative(topics.READOUTS.name + "x"))[:-1]
        for full, types in self._node.get_topic_names_and_types():
            name = full.removeprefix(prefix)
            if name != full and "/" not in name and name not in self._together and "std_msgs/msg/Float64" in types:
                alone[full] = (topics.READOUTS, name, self._on_readout(name))
        for full in self._alone.keys() - alone.keys():
            self._ignore(self._alone.pop(full))
        for full in alone.keys() - self._alone.keys():
            topic, name, take = alone[full]
            self._alone[full] = self._listen(topic, take, name=name)

    # One for each topic.

    def _on_shown(self, data: bytes) -> None:
        # Of what touches nothing the simulator says nothing.
        self._bodies = None
        for name, part in self._bundle_reader.read(data):
            take = self._shown.get(name)
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
        self._imu_came = True

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
        # When the last body is let go, all is NaN once.
        self._bodies = np.where(touched, forces, np.nan) if np.isfinite(forces).all() else None

    def _on_command(self, data: bytes) -> None:
        self._command_reader.read(data, self._command)
        self._commanded = True

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
                # What others named is of another controller.
                for name in names:
                    self._readouts.pop(name, None)
                names = dims[0].label.split(",") if dims else []
                layout = reader.layout
                if topic is topics.READOUTS_SHOWN:
                    self._together = frozenset(names)
            if len(names) != len(numbers):
                raise MessageError(f"it has {len(numbers)} numbers, and its layout names {len(names)}")
            self._readouts |= zip(names[1:], numbers[1:].tolist(), strict=True)

        return take

    def _on_diagnostics(self, data: bytes) -> None:
        for status in parse(data, DiagnosticArray).status:
            values = {pair.key: pair.value for pair in status.values}
            self.health[status.name] = (int.from_bytes(status.level, "little"), status.message, values)

    # What follows.

    @property
    def lacks(self) -> tuple[str, ...]:
        """What a reader should know is missing, in words."""
        found, robot = self._found, self.robot
        lacks = []
        if np.isnan(self.t):
            return (f"no message on {(topics.SHOWN if found.simulated else topics.JOINT_STATES).name} yet",)
        missing = [name for name in robot.joint_names if name in self._joints_reader.missing]
        if missing:
            lacks.append(f"{topics.JOINT_STATES.name} lacks {', '.join(missing)}: the robot cannot be shown")
        elif not np.isfinite(self._observation.joint_position[: robot.nu]).all():
            lacks.append(f"{topics.JOINT_STATES.name} has positions that are not finite: the robot cannot be shown")
        if self._passive_names and self._chains is None and self._unmeasured():
            named = ", ".join(self._passive_names)
            lacks.append(f"no topic says where {named} are: shown as the robot stands")
        if robot.free_flyer and self._base is None:
            name = topics.GROUND_TRUTH.name if found.simulated else topics.ODOMETRY.name
            turned = f"its attitude is that of {topics.IMU.name}" if self._imu_came else "it stands upright"
            lacks.append(f"nothing on {name}: it is shown where it began, {turned}")
        if not found.simulated and np.isnan(self._wrench).all() and robot.soles:
            lacks.append("nothing on the topics of the ankle wrenches: no forces")
        return tuple(lacks)

    def _unmeasured(self) -> bool:
        return bool(np.isnan(self._observation.joint_position[self.robot.nu :]).any())

    def instant(self, pushes: Sequence[Mapping[str, Any]], notes: tuple[str, ...] = ()) -> Instant:
        """Return what the topics say now.

        Args:
            pushes: Of the run, as the simulator tells them.
            notes: What a reader should know besides.
        """
        robot, seen, contact = self.robot, self._observation, self._contact
        q, v = self._configuration()
        known = np.isfinite(contact[:, _AT["mode"]])
        if self._found.simulated:
            # In the air there is neither a CoP nor a margin.
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
            joint_position=seen.joint_position[: robot.nu].copy(),
            joint_velocity=seen.joint_velocity[: robot.nu].copy(),
            joint_effort=seen.joint_effort[: robot.nu].copy(),
            joint_command=self._command.joint_effort.copy() if self._commanded else None,
            body_forces=self._bodies,
            objects=dict(self._objects),
            push=pushes_at({"pushes": pushes}, self.t),
            plan=plan_of(self._readouts),
            readouts=without_plan(self._readouts),
            estimated=not self._found.simulated and self._base is not None,
            notes=(*notes, *(("fallen",) if self.fallen else ()), *self.lacks),
        )

    def _configuration(self) -> tuple[Array, Array]:
        """Return configuration and velocities of pinocchio's model."""
        robot, seen = self.robot, self._observation
        q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
        q[robot.idx_q] = seen.joint_position[: robot.nu]
        v[robot.idx_v] = np.nan_to_num(seen.joint_velocity[: robot.nu])
        if len(self._passive) and not self._unmeasured():
            q[self._passive_q] = seen.joint_position[robot.nu :]
            v[self._passive] = np.nan_to_num(seen.joint_velocity[robot.nu :])
        elif self._chains is not None:
            self._chains.follow(q[robot.idx_q], v[robot.idx_v])
            self._chains.fill(q, v)
        if not robot.free_flyer:
            return q, v
        if self._base is not None:
            q[:7] = self._base
            v[:6] = self._base_twist
        else:
            q = self._found.ground.place(self._turned(q))
        return q, v

    def _turned(self, q: Array) -> Array:
        """Return a configuration with the attitude that the IMU measures, about the origin of the base."""
        robot, orientation = self.robot, self._observation.imu_orientation
        length = float(np.linalg.norm(orientation))
        if not (self._imu_came and np.isfinite(length) and abs(length - 1.0) < 0.1):
            return q
        pin.forwardKinematics(robot.model, self._data, np.where(np.isfinite(q), q, robot.q_nominal))
        world_imu = self._data.oMi[robot.imu_joint_id] * robot.placement_joint_imu
        base_imu = pin.XYZQUATToSE3(q[:7]).rotation.T @ world_imu.rotation
        measured = pin.Quaternion(orientation / length).toRotationMatrix()
        q[3:7] = pin.Quaternion(measured @ base_imu.T).coeffs()
        return q


def _numbers() -> WireReader:
    return WireReader(Float64MultiArray, ("data",))


def _odometry() -> WireReader:
    return WireReader(Odometry, ("pose.pose", "twist.twist"))
