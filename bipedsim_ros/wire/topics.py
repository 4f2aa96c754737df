"""Define the table of topics: name, type, QoS, frame and publisher of each, and whether the recorder subscribes.

Publishers, subscriptions, the recorder, ``bipedsim check-robot`` and the table in docs/ros_interface.md use it. A
third-party package adds a :class:`Topic` by an entry point of the group ``bipedsim.topics``, such as
``payload = my_package.topics:PAYLOAD``. The recorder then records it with all others. This module does not need ROS.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bipedsim.config import Table
from bipedsim.errors import ConfigError
from bipedsim.recording import Column, columns_on, schema
from bipedsim.recording.bag import Encoder, Qos

if TYPE_CHECKING:
    from bipedsim.model import Robot

WORLD_FRAME = "odom"
BASE_FRAME = "base_link"
FEET_FRAME = "feet"
"""Frame of footsteps: midway between the standing feet, level, x forward."""
_SOLE, _ANKLE, _IMU = "{side}_sole", "{side}_ankle", "{imu}"
_SIDES = {"left": "l", "right": "r"}

STATE = Qos(depth=1000)
"""Deep enough that a recorder without processor time for a second at 1 kHz loses nothing."""
LATCHED = Qos(durability="transient_local", depth=1)
CHANGES = Qos(durability="transient_local", depth=STATE.depth)
"""For topics that are published only on change: as deep as ``STATE``, and latched for late subscribers."""
HISTORY = Qos(durability="transient_local", depth=1000)
"""The complete history of a topic, also for late subscribers."""
NEWEST = Qos(depth=1)
"""For a controller's subscriptions: the newest message, reliably, so that a lock-step simulator never waits in vain."""
NEWEST_OF_ANY = Qos(reliability="best_effort", depth=1)
"""The newest message of a third-party publisher; a best-effort subscription accepts reliable publishers too."""
STEERING = Qos(depth=10)
"""For commands by hand or from a schedule: few messages, of which the last is valid, but all are received."""

HAS_TF = importlib.util.find_spec("tf2_msgs") is not None
"""Whether the message type of /tf is installed. Without it, /tf is neither published nor recorded."""

ROBOT, SIMULATOR, CONTROLLER, USER, NODES = "robot or simulator", "simulator", "controller", "user", "every node"


def _in_frame(pattern: str, foot: str = "", imu: str = "") -> str:
    return pattern.format(side=_SIDES.get(foot, foot), imu=imu)


def sole_frame(foot: str) -> str:
    """Return the frame of a foot's sole: l_sole and r_sole for left and right."""
    return _in_frame(_SOLE, foot)


def ankle_frame(foot: str) -> str:
    """Return the frame of a foot's force-torque sensor: l_ankle and r_ankle for left and right."""
    return _in_frame(_ANKLE, foot)


def incompatible(offered: Qos, requested: Qos) -> str:
    """Return why a subscription with ``requested`` receives nothing from a publisher with ``offered``; else empty."""
    reasons = []
    if offered.reliability == "best_effort" and requested.reliability == "reliable":
        reasons.append("reliability: best_effort is offered, reliable requested")
    if offered.durability == "volatile" and requested.durability == "transient_local":
        reasons.append("durability: volatile is offered, transient_local requested")
    return "; ".join(reasons)


@dataclass(frozen=True)
class Topic:
    """Entry of the table of topics.

    Attributes:
        name: Name, with ``{foot}`` if each foot has its own topic, ``{plate}`` if each force plate has, or ``{sensor}``
            if each additional sensor has (:func:`of_sensors`). A name that ends in "/" is the common prefix of several
            topics of this type.
        msgtype: Type, such as ``sensor_msgs/msg/Imu``.
        by: Publisher: ``ROBOT`` for measurements of a robot, ``SIMULATOR`` for data that only a simulator has,
            ``CONTROLLER``, ``USER`` for steering and pushing, or ``NODES``.
        holds: Content, as in the documentation.
        offered: Quality of service of this project's publisher.
        requested: Quality of service of this project's subscription, if a node other than the recorder subscribes.
        frame: ``frame_id`` of the header, with ``{side}`` for l, r or the name of a foot, and ``{imu}`` for the frame
            of the IMU. ``child_frame_id`` follows after a comma.
        recorded: Whether the recorder subscribes to it.
        sporadic: Whether it is published only at times.
    """

    name: str
    msgtype: str
    by: str
    holds: str
    offered: Qos = STATE
    requested: Qos | None = None
    frame: str = ""
    recorded: bool = True
    sporadic: bool = False

    @property
    def per_foot(self) -> bool:
        """Whether each foot has its own topic."""
        return "{foot}" in self.name

    @property
    def per_sensor(self) -> bool:
        """Whether each additional sensor has its own topic."""
        return "{sensor}" in self.name

    @property
    def is_prefix(self) -> bool:
        """Whether the entry stands for an unknown number of topics, whose names begin with :attr:`prefix`."""
        return self.name.endswith("/") or "{plate}" in self.name

    @property
    def prefix(self) -> str:
        """Common prefix of the names of such topics."""
        return self.name.partition("{plate}")[0]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Recorded columns that the topic carries."""
        return columns_on(self.name)

    @property
    def expected(self) -> bool:
        """Whether it is published continually as long as a robot or simulator runs."""
        return self.by in (ROBOT, SIMULATOR) and not self.sporadic and not self.is_prefix

    @property
    def recorder_qos(self) -> Qos:
        """QoS that a recorder requests at first: our subscription's for third-party publishers, else the offer."""
        return self.offered if self.requested is None or self.by in (ROBOT, CONTROLLER) else self.requested

    def of(self, foot: str, name: str = "") -> str:
        """Return the topic's name for a foot, or for the thing called ``name`` if each has its own topic."""
        return self.name.format(foot=foot, plate=name, sensor=name) + (name if self.name.endswith("/") else "")

    def frame_of(self, foot: str = "", imu: str = "") -> str:
        """Return the topic's ``frame_id`` for a foot, or for a robot whose IMU has the frame ``imu``."""
        return _in_frame(self.frame, foot, imu)

    def encoder(self, frame: str = "", fields: Sequence[str] | None = None) -> Encoder:
        """Return an encoder of messages whose header has this frame, see :meth:`frame_of`.

        Args:
            frame: ``frame_id``; ``child_frame_id`` follows after a comma.
            fields: See :class:`bipedsim.recording.bag.Encoder`.
        """
        names = zip(("header.frame_id", "child_frame_id"), frame.split(", "), strict=False)
        return Encoder(self.msgtype, {name: value for name, value in names if value}, fields)

    def names(self, feet: Sequence[str]) -> Iterator[str]:
        """Yield the topic's names for a robot with these feet and without additional sensors."""
        if not self.per_sensor:
            yield from map(self.of, feet) if self.per_foot else (self.name,)


_CLOUD = "sensor_msgs/msg/PointCloud2"
_JOINT_STATE, _WRENCH, _POINT = (
    "sensor_msgs/msg/JointState",
    "geometry_msgs/msg/WrenchStamped",
    "geometry_msgs/msg/PointStamped",
)
_ODOMETRY, _NUMBERS, _TEXT, _TRANSFORMS = (
    "nav_msgs/msg/Odometry",
    "std_msgs/msg/Float64MultiArray",
    "std_msgs/msg/String",
    "tf2_msgs/msg/TFMessage",
)

JOINT_STATES = Topic(
    schema.JOINT_STATES,
    _JOINT_STATE,
    ROBOT,
    "match joints by name; joints that [closed chains](robots.md#closed-chains) turn come last, found from the "
    "measured ones, effort 0",
    requested=NEWEST,
    frame=BASE_FRAME,
)
IMU = Topic(
    schema.IMU,
    "sensor_msgs/msg/Imu",
    ROBOT,
    "specific force, +g upward at rest (REP-145)",
    requested=NEWEST_OF_ANY,
    frame=_IMU,
)
ANKLE_WRENCH = Topic(
    schema.ANKLE_WRENCH,
    _WRENCH,
    ROBOT,
    "ankle sensor: ground on foot, less the foot's own weight and inertia",
    requested=NEWEST_OF_ANY,
    frame=_ANKLE,
)
ADDITIONAL_IMU = Topic(
    schema.ADDITIONAL_IMU,
    IMU.msgtype,
    ROBOT,
    "of an IMU in the list [`sensors`](robots.md#sensors) of robot.yaml, unless it has a `topic` there",
    requested=NEWEST_OF_ANY,
    frame=_IMU,
)
SWITCH = Topic(
    schema.SWITCH,
    "std_msgs/msg/Bool",
    ROBOT,
    "of a contact switch in the same list: whether it is closed; before the joint states of the same tick",
    requested=NEWEST_OF_ANY,
)
HEIGHT_SCAN = Topic(
    "/height_scan",
    _NUMBERS,
    ROBOT,
    "with `height_scan: [length, width, resolution]`: x, y of each point in the heading frame of the base, and the "
    "height of the base above the ground there [m]",
    requested=NEWEST_OF_ANY,
    sporadic=True,
)
HEIGHT_POINTS = Topic(
    "/height_scan/points",
    _CLOUD,
    ROBOT,
    "with `height_scan`: the same points of the ground, x, y, z (float32) in the frame of the base [m]; NaN where "
    "there is no ground",
    frame=BASE_FRAME,
    sporadic=True,
)
SOLE_WRENCH = Topic(
    schema.SOLE_WRENCH, _WRENCH, SIMULATOR, "ground on sole: standing gives sum F_z = +m g", frame=_SOLE
)
SOLE_COP = Topic(
    schema.SOLE_COP, _POINT, SIMULATOR, "centre of pressure; x, y are NaN when the foot is in the air", frame=_SOLE
)
CONTACT = Topic(schema.CONTACT, _NUMBERS, SIMULATOR, "see below; the layout's label names the values")
VERTEX_FORCES = Topic(
    schema.VERTEX_FORCES,
    _NUMBERS,
    SIMULATOR,
    "with `vertex_forces: true`, of contact models that find them, on level ground: forces at the vertices in the "
    "sole's axes; the layout's label names the values",
    sporadic=True,
)
BODY_CONTACTS = Topic(
    schema.BODY_CONTACTS,
    _NUMBERS,
    SIMULATOR,
    "while a body, or a sole by a riser, is touched, and once more: forces on the body of the root and on those that "
    "the joints move, in odom axes; the layout's label names the values",
    sporadic=True,
)
JOINT_STOPS = Topic(
    schema.JOINT_STOPS,
    _NUMBERS,
    SIMULATOR,
    "while a joint is at its limit, and once more: torques of the joint limits; the layout's label names the values",
    sporadic=True,
)
GANTRY = Topic(
    schema.GANTRY,
    _NUMBERS,
    SIMULATOR,
    "while the robot is in a gantry, and once more: its force on the trunk, in odom axes; the layout's label names "
    "the values",
    sporadic=True,
)
CONTACT_MODE = Topic(
    "/{foot}_foot/contact_mode", _TEXT, SIMULATOR, 'on change: "none", "edge 0-1 slide", "face stick"', CHANGES
)
COP = Topic(schema.COP, _POINT, SIMULATOR, "of all feet; NaN when nothing touches", frame=WORLD_FRAME)
GROUND_TRUTH = Topic(
    schema.GROUND_TRUTH,
    _ODOMETRY,
    SIMULATOR,
    "true base pose and twist: for plots, not for controllers",
    frame=f"{WORLD_FRAME}, {BASE_FRAME}",
)
OBJECTS = Topic(
    schema.OBJECTS,
    _ODOMETRY,
    SIMULATOR,
    "true pose and twist of a free object, one topic for each by its name; the twist is in the object's own axes",
    frame=f"{WORLD_FRAME}, the object's name",
)
PLATE_SIGNALS = Topic(
    schema.PLATE_SIGNALS,
    _NUMBERS,
    SIMULATOR,
    "a sample of a [force plate](force_plates.md): time, channels, and how many values were clipped so far; the "
    "layout's label names the values",
)
PLATE_GEOMETRY = Topic(
    schema.PLATE_GEOMETRY, _TEXT, SIMULATOR, "JSON: where the plate is, and what its channels mean", LATCHED
)
PLATE_WRENCH = Topic(
    schema.PLATE_WRENCH,
    _WRENCH,
    SIMULATOR,
    "newest sample: reaction on who stands on the plate, moment about the middle of its surface",
    frame=WORLD_FRAME,
)
PLATE_COP = Topic(
    schema.PLATE_COP, _POINT, SIMULATOR, "newest sample: CoP on its surface; NaN up to 20 N", frame=WORLD_FRAME
)
PLATE_FREE_MOMENT = Topic(
    schema.PLATE_FREE_MOMENT,
    "std_msgs/msg/Float64",
    SIMULATOR,
    "newest sample: moment through the CoP about the normal of its surface, on who stands there; NaN up to 20 N",
)
ROBOT_DESCRIPTION = Topic(
    schema.ROBOT_DESCRIPTION,
    _TEXT,
    ROBOT,
    "URDF, meshes as file:// of this machine; with a `<ros2_control>` element if `command_interface` is `topic_based`",
    LATCHED,
)
CLOCK = Topic("/clock", "rosgraph_msgs/msg/Clock", SIMULATOR, "simulated time", NEWEST_OF_ANY)
TF = Topic(
    "/tf",
    _TRANSFORMS,
    SIMULATOR,
    "odom -> base_link at `tf_rate`; only where tf2_msgs is installed",
    recorded=HAS_TF,
    sporadic=True,
)
TF_STATIC = Topic(
    "/tf_static",
    _TRANSFORMS,
    SIMULATOR,
    "frames that the URDF lacks, and links behind locked joints",
    LATCHED,
    recorded=HAS_TF,
    sporadic=True,
)
DIAGNOSTICS = Topic(
    schema.DIAGNOSTICS,
    "diagnostic_msgs/msg/DiagnosticArray",
    NODES,
    "once a second: loop, commands, contact, outcome of the run, physics",
)
CONTROLLER_STATUS = "bipedsim: controller"
"""Name of the status in which controller_node reports its own state on /diagnostics."""
COMMANDS = Topic(
    schema.EFFORT_COMMANDS,
    _NUMBERS,
    CONTROLLER,
    "joint torques [N.m] in the order of the robot's `joints`",
    STATE,
    NEWEST_OF_ANY,
)
IMPEDANCE = Topic(
    schema.IMPEDANCE_COMMANDS,
    _NUMBERS,
    CONTROLLER,
    "blocks of one number for each of the robot's `joints`, named by the layout: position [rad], velocity [rad/s], "
    "effort [N.m], stiffness [N.m/rad], damping [N.m.s/rad], which each drive holds until the next message or "
    "`command_timeout`",
    STATE,
    NEWEST_OF_ANY,
    sporadic=True,
)
POSITIONS = Topic(
    "/forward_position_controller/commands",
    _NUMBERS,
    USER,
    "joint positions [rad] in the order of the robot's `joints`, which each drive holds with gains of its own until "
    "the next message or `command_timeout`",
    STATE,
    NEWEST_OF_ANY,
    sporadic=True,
)
TRAJECTORY = Topic(
    "/joint_trajectory_controller/joint_trajectory",
    "trajectory_msgs/msg/JointTrajectory",
    USER,
    "waypoints of some joints, matched by name, which the drives go with gains of their own; the last one is kept",
    STEERING,
    NEWEST_OF_ANY,
    sporadic=True,
)
JOINT_COMMANDS = Topic(
    "/robot_joint_commands",
    _JOINT_STATE,
    USER,
    "for [ros2_control](ros2_control.md) by topics: position, velocity, effort or several of these for some joints, "
    "matched by name, which the drives keep; NaN commands nothing",
    STATE,
    NEWEST_OF_ANY,
    sporadic=True,
)
ROBOT_JOINT_STATES = "/robot_joint_states"
"""Name of ``JOINT_STATES`` for a controller manager; a broadcaster of its own publishes under the usual name."""
COMMAND_KINDS = (COMMANDS, IMPEDANCE, POSITIONS, TRAJECTORY)
"""Topics on which a simulated robot accepts commands, unless ``TOPIC_BASED`` is selected."""
TOPIC_BASED = (JOINT_COMMANDS,)
"""Topics on which it accepts those of a controller manager, whose controllers use the names of ``COMMAND_KINDS``."""


READOUTS = Topic(
    schema.READOUTS,
    "std_msgs/msg/Float64",
    CONTROLLER,
    "`readouts`, a dict of numbers: one topic for each name, such as /controller/zmp_margin",
)
PLAN = Topic(
    schema.PLAN,
    _NUMBERS,
    CONTROLLER,
    "readouts called `plan_...`, which are [drawn](view.md#what-a-controller-shows-of-its-plan): together, at 100 Hz "
    "while a node listens; the layout's label names the values, their time first",
    sporadic=True,
)
READOUTS_SHOWN = Topic(
    "/controller_node/shown",
    _NUMBERS,
    CONTROLLER,
    "for `view_node`: all `readouts`, those of a plan too, together, at 30 Hz of the wall clock while a node "
    "listens; the layout's label names the values, their time first",
    NEWEST_OF_ANY,
    recorded=False,
    sporadic=True,
)
PLANNED_STEPS = Topic(
    "/plan/footsteps",
    "nav_msgs/msg/Path",
    CONTROLLER,
    "the footsteps of it as poses of the soles, on change while a node listens",
    LATCHED,
    frame=WORLD_FRAME,
    sporadic=True,
)
TUNED = Topic(
    schema.CONTROLLER_CHANGES,
    _TEXT,
    CONTROLLER,
    "JSON: `name` and new `value` of a parameter that changed, and the `stamp` [ns] of the joint states from which on "
    "the controller uses it; at every reset all that differ from the start of the node",
    HISTORY,
    sporadic=True,
)
ODOMETRY = Topic(
    schema.ODOMETRY,
    _ODOMETRY,
    CONTROLLER,
    "`estimate`: where it believes the robot to be, from measurements alone",
    frame=f"{WORLD_FRAME}, {BASE_FRAME}",
)
FALLEN = Topic(
    schema.FALLEN, "std_msgs/msg/Bool", CONTROLLER, "whether it was found fallen: at the start, and on change", LATCHED
)
VELOCITY = Topic(
    "/cmd_vel",
    "geometry_msgs/msg/Twist",
    USER,
    "for `set_velocity(vx, vy, wz)`: `linear.x`, `linear.y` [m/s], `angular.z` [rad/s] in the robot's heading frame",
    STEERING,
    STEERING,
)
REMOTE = Topic(
    "/remote",
    _TEXT,
    USER,
    "for an [interface](unitree.md) of a vendor: words of its remote control, `start`, `ly=0.5`",
    STEERING,
    STEERING,
    sporadic=True,
)
FOOTSTEPS = Topic(
    "/footsteps",
    "nav_msgs/msg/Path",
    USER,
    "for `set_footsteps(steps)`: x, y and yaw of the next footsteps, alternating between the feet; midway between the "
    "feet as they stand is the origin of the frame, which may be left empty",
    STEERING,
    NEWEST,
    FEET_FRAME,
)
APPLIED = Topic(
    schema.APPLIED,
    _JOINT_STATE,
    SIMULATOR,
    "`effort`: torques that the drives were asked for over the step before, commands or what stands for them",
    frame=BASE_FRAME,
)
SETPOINTS = Topic(
    schema.SETPOINTS,
    _NUMBERS,
    SIMULATOR,
    "once drives close their loops: what they followed over the step before; the layout's label names the values",
    sporadic=True,
)
DRIVES_TUNED = Topic(
    schema.SIMULATOR_CHANGES,
    _TEXT,
    SIMULATOR,
    "JSON: `name` and new `value` of a gain of the drives that changed, and the `stamp` [ns] of the joint states from "
    "which on they use it; at every reset all that differ from the start of the node",
    HISTORY,
    sporadic=True,
)
RUN = Topic(
    schema.RUN,
    _TEXT,
    SIMULATOR,
    "JSON, for `bipedsim replay`: at every reset all that the run follows from, and every push with the time it began; "
    "for `bipedsim summary` at the end what the simulator counted",
    HISTORY,
)
SHOWN = Topic(
    "/sim_node/shown",
    "std_msgs/msg/UInt8MultiArray",
    SIMULATOR,
    "for `view_node`: the newest of what it shows of a simulator, together, at 60 Hz of the wall clock while a node "
    "listens; serialised messages one behind the other, the layout's labels name their topics",
    NEWEST_OF_ANY,
    recorded=False,
    sporadic=True,
)
PUSH = Topic(
    "/push",
    _WRENCH,
    USER,
    "force and torque in odom axes on the body `header.frame_id` (base_link if empty), until the next message or "
    "`push_timeout`",
    STEERING,
    STEERING,
)

_OWN = {name.lower(): f"{__name__}:{name}" for name, row in tuple(globals().items()) if isinstance(row, Topic)}


class _Topics(Table):
    """Table that checks the type of its entries."""

    def __getitem__(self, name: str) -> Topic:
        row = super().__getitem__(name)
        if not isinstance(row, Topic):
            raise ConfigError("must be a bipedsim_ros.wire.Topic", f"topic {name!r}", row)
        return row


TOPICS = _Topics("topic", "bipedsim.topics", _OWN)
"""All topics by name of the entry, including those of third-party packages."""


def of_user(names: Iterable[str], feet: Sequence[str]) -> list[str]:
    """Return those topics that are not of bipedsim, for a robot with these feet."""
    rows = [TOPICS[entry] for entry in _OWN]
    own = {name for row in rows if not row.is_prefix for name in row.names(feet)}
    prefixes = tuple(row.prefix for row in rows if row.is_prefix)
    return [name for name in names if name not in own and not name.startswith(prefixes)]


def of_sensors(robot: Robot) -> dict[str, Topic]:
    """Return the topic of each additional sensor of ``robot`` by its name, those of IMUs first.

    Raises:
        ConfigError: A topic has the name of another topic of bipedsim.
    """
    named = {imu.name: replace(ADDITIONAL_IMU, name=imu.topic, frame=imu.frame) for imu in robot.imus}
    named |= {switch.name: replace(SWITCH, name=switch.topic) for switch in robot.contact_switches}
    feet = [sole.name for sole in robot.soles]
    for sensor, topic in named.items():
        if not of_user([topic.name], feet):
            raise ConfigError(
                "is a topic with another meaning; set another one",
                f"{robot.source}: sensors.{sensor}.topic",
                topic.name,
            )
    return named


RESET, STEP, PAUSE = "~/reset", "~/step", "~/pause"
"""Services of sim_node: reset to t = 0, advance by one tick, and pause or resume."""
REQUEST = "~/{request}"
"""Services of sim_node that start, push, move and step, see :mod:`bipedsim_ros.nodes.request_services`."""
FOLLOW_TRAJECTORY = "joint_trajectory_controller/follow_joint_trajectory"
"""Action of sim_node, see :mod:`bipedsim_ros.nodes.trajectory_action`; a controller manager has its own."""
GANTRY_ACTION = "~/{action}"
"""Services of sim_node with a gantry, one for each of :data:`bipedsim.sim.GANTRY_ACTIONS`."""
