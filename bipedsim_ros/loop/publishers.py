"""Publish everything that sim_node publishes, in a fixed order within a tick."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from std_msgs.msg import String

from bipedsim.config import ParameterChange
from bipedsim.contact import ContactResult, mode_name
from bipedsim.model import Chains, Robot, located
from bipedsim.numerics import Array
from bipedsim.plates import PlateGeometry, PlateSignals, as_json
from bipedsim.recording import schema
from bipedsim.recording.bag import NS_PER_S, labelled
from bipedsim.runs import ANKLES, HEIGHTS, IMU, IMUS, JOINTS, SWITCHES, FaultSchedule
from bipedsim.sim import GroundTruth, Observation, Simulator, VertexForces
from bipedsim_ros.loop.changes_publisher import ChangesPublisher
from bipedsim_ros.wire import (
    WORLD_FRAME,
    BundleWriter,
    PatientPublisher,
    conversions,
    listeners,
    make_transforms,
    publisher,
    topics,
)

Make = Callable[..., Any]
"""Creates a publisher of a topic, for a foot, or for a name that completes the topic's prefix."""
_SHOWN_NS = NS_PER_S // 60
"""Minimum wall time between two messages for viewers: a page needs no more, and each message takes time of the tick."""
_SHOWN_LATE_NS, _SHOWN_LAST_NS = NS_PER_S // 5, NS_PER_S
"""Time that viewers wait for a tick with spare time; and for one with just enough time, before a message is published
regardless. If the loop has no spare time, each such message may delay a command."""

_LOOK_S = 0.2
"""Time to wait for acknowledgements before checking for dead subscribers [s]."""


class _OnDemandPublisher:
    """Serialises and publishes the messages of a topic only while a node subscribes.

    Args:
        node: The node.
        make: Creates the publisher; the topic must not be latched.
        topic: The topic.
        write: Returns a serialised message. By default, from a stamp [ns] and the arrays of the topic's encoder.
        foot, name: See :func:`bipedsim_ros.wire.publisher`.

    Attributes:
        heard: Returns the number of subscriptions.
    """

    def __init__(
        self,
        node: Node,
        make: Make,
        topic: topics.Topic,
        write: Callable[..., bytes] | None = None,
        foot: str = "",
        name: str = "",
    ) -> None:
        self._publisher = make(node, topic, foot, name)
        self._write = topic.encoder(topic.frame_of(foot)).write if write is None else write
        self._name = topic.of(foot, name)
        self._newest: bytes | None = None
        self.heard = self._publisher.get_subscription_count

    def publish(self, *values: Any) -> None:
        """Publish the message ``write(*values)``."""
        self._newest = None
        if self.heard():
            self._newest = self._write(*values)
            self._publisher.publish(self._newest)

    def part(self, *values: Any) -> tuple[str, bytes]:
        """Return name and message for viewers."""
        return self._name, self._write(*values)

    def newest(self, *values: Any) -> tuple[str, bytes]:
        """Return name and message for viewers; reuse the message that was published in this tick, if any."""
        return self.part(*values) if self._newest is None else (self._name, self._newest)


class SensorPublishers:
    """Publishes the measurements, and last the joint states, for which a controller waits.

    Raises:
        ConfigError: A sensor of the robot has the topic of another quantity.
    """

    def __init__(
        self, node: Node, robot: Robot, ft_sign: float, make: Make = publisher, height_points: Array | None = None
    ) -> None:
        self._heights: _OnDemandPublisher | None = None
        self._height_points: _OnDemandPublisher | None = None
        if height_points is not None:
            writer = conversions.HeightScanWriter(height_points)
            self._heights = _OnDemandPublisher(node, make, topics.HEIGHT_SCAN, writer.write)
            cloud = conversions.HeightPointsWriter(height_points)
            self._height_points = _OnDemandPublisher(node, make, topics.HEIGHT_POINTS, cloud.write)
        imu = conversions.ImuWriter(topics.IMU.frame_of(imu=robot.imu_frame))
        chains = Chains(robot) if robot.loops else None
        self._joint_writer = conversions.JointStateWriter(robot.joint_names, topics.JOINT_STATES.frame, chains)
        self._imu = _OnDemandPublisher(node, make, topics.IMU, imu.write)
        named = topics.of_sensors(robot)
        self._imus = [
            _OnDemandPublisher(node, make, named[each.name], conversions.ImuWriter(each.frame).write_row)
            for each in robot.imus
        ]
        switch = conversions.SwitchWriter()
        self._switches = [
            _OnDemandPublisher(node, make, named[each.name], switch.write) for each in robot.contact_switches
        ]
        self._joint_states = make(node, topics.JOINT_STATES)
        self._newest = b""
        self._ft_sign = ft_sign
        self._ankles = [_OnDemandPublisher(node, make, topics.ANKLE_WRENCH, foot=sole.name) for sole in robot.soles]

    def subscribers(self) -> int:
        """Return the number of subscriptions to the joint states."""
        return int(self._joint_states.get_subscription_count())

    def publish(self, observation: Observation, t_ns: int) -> int:
        """Publish an observation; return the time of the monotonic clock [ns] before the joint states are sent."""
        self._publish_imu(observation, t_ns)
        self._publish_ankles(observation, t_ns)
        self._publish_heights(observation, t_ns)
        self._publish_imus(observation, t_ns)
        self._publish_switches(observation, t_ns)
        return self._publish_joints(observation, t_ns)

    def publish_faulty(self, observation: Observation, faults: FaultSchedule) -> int:
        """Publish the measurements that pass the faults, with their own stamps; return as :meth:`publish`."""
        publishers = {
            IMU: self._publish_imu,
            ANKLES: self._publish_ankles,
            HEIGHTS: self._publish_heights,
            IMUS: self._publish_imus,
            SWITCHES: self._publish_switches,
            JOINTS: self._publish_joints,
        }
        out_ns = time.monotonic_ns()
        for sensor, publish in publishers.items():
            if faults.sent[sensor]:
                out_ns = publish(observation, round(faults.stamp[sensor] * NS_PER_S)) or out_ns
        return out_ns

    def _publish_imu(self, observation: Observation, t_ns: int) -> None:
        self._imu.publish(observation, t_ns)

    def _publish_ankles(self, observation: Observation, t_ns: int) -> None:
        for k, ankle in enumerate(self._ankles):
            ankle.publish(t_ns, self._ft_sign * observation.foot_wrench[k])

    def _publish_heights(self, observation: Observation, t_ns: int) -> None:
        if self._heights is not None:
            self._heights.publish(observation)
        if self._height_points is not None:
            self._height_points.publish(observation, t_ns)

    def _publish_imus(self, observation: Observation, t_ns: int) -> None:
        for imu, row in zip(self._imus, observation.imus, strict=True):
            imu.publish(row, t_ns)

    def _publish_switches(self, observation: Observation, _t_ns: int) -> None:
        for switch, closed in zip(self._switches, observation.contact_switches, strict=True):
            switch.publish(closed)

    def _publish_joints(self, observation: Observation, t_ns: int) -> int:
        out_ns = time.monotonic_ns()
        self._newest = self._joint_writer.write(observation, t_ns)
        self._joint_states.publish(self._newest)
        return out_ns

    def parts(self) -> Iterator[tuple[str, bytes]]:
        """Yield the joint states for viewers as last published, because sensors may fail."""
        if self._newest:
            yield topics.JOINT_STATES.name, self._newest


class _FootPublishers:
    """Publishes the contact quantities of one foot that only a simulator has."""

    def __init__(self, node: Node, name: str, make: Make) -> None:
        self._wrench = _OnDemandPublisher(node, make, topics.SOLE_WRENCH, foot=name)
        self._cop = _OnDemandPublisher(node, make, topics.SOLE_COP, foot=name)
        self._cop_point = np.zeros(3)
        self._contact = _OnDemandPublisher(node, make, topics.CONTACT, conversions.ContactWriter().write, name)
        self._mode = publisher(node, topics.CONTACT_MODE, name)
        self._last_mode: tuple[int, bool, int] | None = None

    def publish(self, contact: ContactResult, k: int, t: float, t_ns: int) -> None:
        """Publish foot ``k``."""
        self._wrench.publish(t_ns, contact.wrench[k])
        # The sole is plane, so z remains 0.
        self._cop_point[:2] = contact.cop[k]
        self._cop.publish(t_ns, self._cop_point)
        self._contact.publish(contact, k, t)
        mode, sliding, n = int(contact.mode[k]), bool(contact.sliding[k]), int(contact.n_vertices[k])
        if (mode, sliding, n) != self._last_mode:
            self._last_mode = (mode, sliding, n)
            self._mode.publish(String(data=mode_name(mode, sliding, n)))

    def parts(self, contact: ContactResult, k: int, t: float, t_ns: int) -> Iterator[tuple[str, bytes]]:
        """Yield the messages about foot ``k`` for viewers."""
        yield self._wrench.newest(t_ns, contact.wrench[k])
        yield self._contact.newest(contact, k, t)


class _SporadicPublisher:
    """Publishes a topic of ground truth while it has values, and once more after they end."""

    def __init__(self, node: Node, topic: topics.Topic, robot: Robot, make: Make) -> None:
        self._writer = conversions.ColumnsWriter(topic, robot.joint_names)
        self._topic = _OnDemandPublisher(node, make, topic, self._writer.write)
        self.heard = self._topic.heard
        self._had_values = False

    def publish(self, truth: GroundTruth, t: float) -> None:
        """Publish the topic if it has values now or had values at the last call."""
        has_values = self._writer.has_values(truth)
        if has_values or self._had_values:
            self._had_values = has_values
            self._topic.publish(truth, t)

    def parts(self, truth: GroundTruth, t: float) -> Iterator[tuple[str, bytes]]:
        """Yield the message for viewers, if it has values."""
        if self._writer.has_values(truth):
            yield self._topic.part(truth, t)


class _PlatePublishers:
    """Publishes every sample of one force plate, and wrench, CoP and free moment of the newest sample."""

    def __init__(self, node: Node, geometry: PlateGeometry, make: Make) -> None:
        name = geometry.name
        self._geometry = geometry
        signals = labelled(("t", *geometry.channel_names, schema.CLIPPED))
        self._signals = _OnDemandPublisher(node, make, topics.PLATE_SIGNALS, signals.write, name=name)
        self._wrench = _OnDemandPublisher(node, make, topics.PLATE_WRENCH, name=name)
        self._cop = _OnDemandPublisher(node, make, topics.PLATE_COP, name=name)
        self._free_moment = _OnDemandPublisher(node, make, topics.PLATE_FREE_MOMENT, name=name)
        # The geometry is published once on a latched topic. The attribute keeps its publisher alive.
        self._geometry_publisher = publisher(node, topics.PLATE_GEOMETRY, name=name)
        self._geometry_publisher.publish(String(data=json.dumps(as_json(geometry))))

    def publish(self, samples: Array, clipped: int) -> None:
        """Publish the samples (n, 1 + c) of a tick, each a time [s] and c channels."""
        if not len(samples):
            return
        for sample in samples:
            self._signals.publish(0, np.append(sample, clipped))
        newest = PlateSignals(samples[-1:, 0], self._geometry, samples[-1:, 1:])
        t_ns = round(samples[-1, 0] * NS_PER_S)
        wrench = np.concatenate([newest.force()[0], newest.moment_about(self._geometry.centre)[0]])
        self._wrench.publish(t_ns, wrench)
        self._cop.publish(t_ns, newest.cop()[0])
        self._free_moment.publish(0, newest.free_moment()[0])


class GroundPublishers:
    """Publishes sole wrenches, CoP, contact and ground truth, which a robot cannot measure, and the clock last."""

    def __init__(
        self,
        node: Node,
        robot: Robot,
        make: Make = publisher,
        objects: Sequence[str] = (),
        gantry: bool = False,
        plates: Sequence[PlateGeometry] = (),
        vertices: VertexForces | None = None,
    ) -> None:
        self._vertices = vertices
        self._vertex_publishers = [
            _OnDemandPublisher(
                node, make, topics.VERTEX_FORCES, labelled(schema.vertex_labels(sole.n_vertices)).write, sole.name
            )
            for sole in robot.soles
            if vertices is not None
        ]
        self._plates = [_PlatePublishers(node, geometry, make) for geometry in plates]
        self._objects = [
            _OnDemandPublisher(
                node, make, topics.OBJECTS, topics.OBJECTS.encoder(f"{WORLD_FRAME}, {name}").write, name=name
            )
            for name in objects
        ]
        self._feet = [_FootPublishers(node, sole.name, make) for sole in robot.soles]
        efforts = conversions.effort_encoder(robot.joint_names, topics.APPLIED.frame)
        setpoints = conversions.ColumnsWriter(topics.SETPOINTS, robot.joint_names)
        self._applied = _OnDemandPublisher(node, make, topics.APPLIED, efforts.write)
        self._setpoints = _OnDemandPublisher(node, make, topics.SETPOINTS, setpoints.write)
        self._bodies = _SporadicPublisher(node, topics.BODY_CONTACTS, robot, make)
        sporadic = (topics.JOINT_STOPS, *((topics.GANTRY,) if gantry else ()))
        self._sporadic = [self._bodies, *(_SporadicPublisher(node, topic, robot, make) for topic in sporadic)]
        self._cop = _OnDemandPublisher(node, make, topics.COP)
        self._clock = _OnDemandPublisher(node, publisher, topics.CLOCK)
        self._odometry = _OnDemandPublisher(node, make, topics.GROUND_TRUTH) if robot.free_flyer else None
        odometry = () if self._odometry is None else (self._odometry,)
        of_truth = (self._cop, *self._vertex_publishers, *self._sporadic, *odometry)
        self._truth_heard = [topic.heard for topic in of_truth]
        self._truth: GroundTruth | None = None

    def publish(self, sim: Simulator, t_ns: int) -> None:
        """Publish the contact forces and the ground truth of the last step."""
        contact, t = sim.contact, sim.t
        for k, foot in enumerate(self._feet):
            foot.publish(contact, k, t, t_ns)
        self._applied.publish(t_ns, sim.command.tau_joint)
        if sim.command.closes_loop:
            self._setpoints.publish(sim.command, t)
        self._truth = None
        if any(heard() for heard in self._truth_heard):
            self._truth = truth = sim.ground_truth()
            self._cop.publish(t_ns, truth.cop_world)
            if self._vertices is not None:
                vertex_forces = self._vertices.read(truth.pose_world_sole)
                for vertex_publisher, forces in zip(self._vertex_publishers, vertex_forces, strict=True):
                    vertex_publisher.publish(0, np.append(t, forces))
            for sporadic in self._sporadic:
                sporadic.publish(truth, t)
            if self._odometry is not None:
                self._odometry.publish(t_ns, truth.pose_world_base, truth.twist_base)
        if sim.objects is not None:
            for odometry, state in zip(self._objects, sim.objects.states(), strict=True):
                odometry.publish(t_ns, state[:7], state[7:])
        if sim.force_plates is not None:
            amplifiers = sim.force_plates.amplifiers
            for p, plate in enumerate(self._plates):
                plate.publish(amplifiers.samples(p), amplifiers.clipped[p])
        self.publish_clock(t_ns)

    def publish_clock(self, t_ns: int) -> None:
        """Publish only the time."""
        self._clock.publish(t_ns)

    def parts(self, sim: Simulator, t_ns: int) -> Iterator[tuple[str, bytes]]:
        """Yield the messages for viewers."""
        for k, foot in enumerate(self._feet):
            yield from foot.parts(sim.contact, k, sim.t, t_ns)
        yield self._applied.newest(t_ns, sim.command.tau_joint)
        truth = sim.ground_truth() if self._truth is None else self._truth
        yield from self._bodies.parts(truth, sim.t)
        if self._odometry is not None:
            yield self._odometry.part(t_ns, truth.pose_world_base, truth.twist_base)
        if sim.objects is not None:
            for odometry, state in zip(self._objects, sim.objects.states(), strict=True):
                yield odometry.newest(t_ns, state[:7], state[7:])


class Publishers:
    """All publishers of sim_node.

    Args:
        node: The node.
        sim: Simulator whose state is published.
        ft_sign, tf_rate: See :class:`bipedsim_ros.loop.SimParams`.
        go_on: If given, no message of a tick is lost to a slow reliable subscriber: see
            :class:`bipedsim_ros.wire.PatientPublisher`.
        vertices: If given, the forces at the vertices are published too.
        description: URDF to publish; empty for that of the robot.
    """

    def __init__(
        self,
        node: Node,
        sim: Simulator,
        ft_sign: float,
        tf_rate: float,
        go_on: Callable[[str], bool] | None = None,
        vertices: VertexForces | None = None,
        description: str = "",
    ) -> None:
        self._sim = sim
        self._node = node

        def patient(node: Node, topic: topics.Topic, foot: str = "", name: str = "") -> Any:
            assert go_on is not None
            return PatientPublisher(node, topic, foot, go_on, name)

        make: Make = publisher if go_on is None else patient
        existing = set(node.publishers)
        self._sensors = SensorPublishers(node, sim.robot, ft_sign, make, sim.sensors.height_points)
        objects = () if sim.objects is None else sim.objects.names
        plates = () if sim.force_plates is None else sim.force_plates.amplifiers.geometries
        self._ground = GroundPublishers(node, sim.robot, make, objects, sim.gantry is not None, plates, vertices)
        self._description = publisher(node, topics.ROBOT_DESCRIPTION)
        self._run = publisher(node, topics.RUN)
        self._changes = ChangesPublisher(node, topics.DRIVES_TUNED)
        urdf = description or located(sim.robot.urdf_xml, sim.robot.urdf_path)
        self._description.publish(String(data=urdf))
        self._recordable = [created for created in node.publishers if created not in existing]
        self._transforms = make_transforms(node, sim.robot, tf_rate)
        self._viewer_publisher, self._bundle = publisher(node, topics.SHOWN), BundleWriter()
        self._show_at = 0
        self._show_cost_ns = 0

    def _t_ns(self) -> int:
        return round(self._sim.t * NS_PER_S)

    def subscribers(self) -> int:
        """Return the number of subscriptions to the joint states."""
        return self._sensors.subscribers()

    @property
    def names(self) -> list[str]:
        """Resolved names of the topics that a recorder records."""
        return [recordable.topic_name for recordable in self._recordable]

    def unheard(self) -> list[str]:
        """Return the topics without a reliable subscriber, except /tf and /tf_static."""
        return [recordable.topic_name for recordable in self._recordable if not listeners(self._node, recordable)]

    def drain(self, seconds: float, look: Callable[[], object]) -> bool:
        """Wait until every reliable subscriber has acknowledged all messages; return whether all have.

        A publisher that is destroyed discards the messages that a busy recorder has not received yet.

        Args:
            seconds: Maximum time to wait [s].
            look: Called repeatedly during the wait, such as :meth:`bipedsim_ros.wire.Departures.look`: a dead
                subscriber acknowledges nothing.
        """
        deadline = time.monotonic() + seconds
        pending = list(self._recordable)
        while pending:
            wait = min(_LOOK_S, deadline - time.monotonic())
            if wait < 0.0:
                return False
            if pending[-1].wait_for_all_acked(Duration(nanoseconds=round(wait * NS_PER_S))):
                pending.pop()
            else:
                look()
        return True

    def publish_sensors(self, observation: Observation) -> int:
        """Publish the measurements, the joint states last; return the time at which those were sent [ns]."""
        return self._sensors.publish(observation, self._t_ns())

    def publish_faulty_sensors(self, observation: Observation, faults: FaultSchedule) -> int:
        """Publish the measurements that pass ``faults``; return the time at which the last was sent [ns]."""
        return self._sensors.publish_faulty(observation, faults)

    def publish_run(self, entry: dict[str, Any]) -> None:
        """Publish the settings needed to simulate the run again, or an event of the run."""
        self._run.publish(String(data=json.dumps(entry)))

    def publish_changes(self, changes: Sequence[ParameterChange]) -> None:
        """Publish and log gains of the drives that apply from now on."""
        self._changes.publish(changes, self._t_ns())

    def publish_ground(self) -> None:
        """Publish everything except the measurements, /clock last."""
        t_ns = self._t_ns()
        if self._transforms is not None:
            self._transforms.publish(self._sim, t_ns)
        self._ground.publish(self._sim, t_ns)

    def publish_clock(self) -> None:
        """Publish only /clock, as during a pause. Viewers get the state again, because they may have just started."""
        self._ground.publish_clock(self._t_ns())
        self.show()

    def show(self, left_ns: float = math.inf) -> None:
        """Publish the state for viewers, if one subscribes and the last message is old enough.

        Args:
            left_ns: Remaining time of the tick [ns]. If it is less than this call needs, viewers wait for another tick,
                at most 1 s, because a viewer must not delay a command.
        """
        now = time.monotonic_ns()
        if now < self._show_at or not self._viewer_publisher.get_subscription_count():
            return
        waited = now - self._show_at
        needed = self._show_cost_ns if waited > _SHOWN_LATE_NS else 2 * self._show_cost_ns
        if left_ns < needed and waited < _SHOWN_LAST_NS:
            return
        self._show_at = now + _SHOWN_NS
        parts = (*self._sensors.parts(), *self._ground.parts(self._sim, self._t_ns()))
        self._viewer_publisher.publish(self._bundle.write(parts))
        self._show_cost_ns += (time.monotonic_ns() - now - self._show_cost_ns) // 8
