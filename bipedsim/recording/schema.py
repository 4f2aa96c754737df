"""Define the columns of a recording: shape, unit, type, source in a run, and topic in a bag.

A new column needs one entry of :class:`RecordedColumns` and the code that computes it. Files, tables, the builder, the
contact message, the bag reader and the table in docs/recording.md all follow from the entry.

The module also defines the topic names that a bag reader needs. ``bipedsim_ros/wire/topics.py`` imports these names and
adds message type, quality of service and frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bipedsim.model import CONTACT_SWITCH, IMU as IMU_SENSOR, MAIN_IMU_TOPIC, SENSOR_TOPICS
from bipedsim.numerics import Array, Flags, Integers, scalar_type

ABSENT_MODE = -1
"""Value of an integer column that was not recorded."""
WALL_CLOCK_NS = 10**18
"""Stamps beyond this limit (30 years) are wall-clock time; their recording starts at t = 0."""

JOINT_STATES = "/joint_states"
IMU = MAIN_IMU_TOPIC
ADDITIONAL_IMU, SWITCH = SENSOR_TOPICS[IMU_SENSOR], SENSOR_TOPICS[CONTACT_SWITCH]
"""Default topics of an additional IMU and of a contact switch, with ``{sensor}`` for its name."""
ANKLE_WRENCH = "/{foot}_foot_ft/wrench"
SOLE_WRENCH = "/{foot}_foot/wrench"
SOLE_COP = "/{foot}_foot/cop"
VERTEX_FORCES = "/{foot}_foot/vertex_forces"
CONTACT = "/{foot}_foot/contact"
BODY_CONTACTS = "/body_contacts"
JOINT_STOPS = "/joint_stops"
GANTRY = "/gantry"
COP = "/cop"
GROUND_TRUTH = "/ground_truth/odom"
ODOMETRY = "/odom"
FALLEN = "/fallen"
DIAGNOSTICS = "/diagnostics"
STOPPED = ("gave_up_at_s", "gave_up_why", "gave_up_kind")
"""Keys in summaries and /diagnostics: the time at which :class:`~bipedsim.control.Guard` stopped its controller [s],
the reason, and its kind as a value of :class:`~bipedsim.control.StopKind`."""
EFFORT_COMMANDS = "/effort_controller/commands"
IMPEDANCE_COMMANDS = "/impedance_controller/commands"
APPLIED = "/sim_node/command"
SETPOINTS = "/sim_node/setpoint"
RUN = "/sim_node/run"
STATISTICS = "statistics"
"""Key of the simulator's counters in its last message on the topic ``RUN``."""
EVENTS = {"push": "pushes", "gantry_action": "gantry_actions", "move": "moves"}
"""Key of a message on the topic ``RUN`` with an event to the key of all these events in :attr:`Recording.run`."""
ABOUT = "about"
"""Key of the labels for figures (name to text) in the first message on the topic ``RUN``."""
CONTROLLER_CHANGES, SIMULATOR_CHANGES = "/controller_node/changes", "/sim_node/changes"
CHANGES = {CONTROLLER_CHANGES: "controller", SIMULATOR_CHANGES: "drives"}
"""Topic of changed parameters to their owner: JSON with the ``stamp`` [ns] of the joint states
from which on the controller or the drives used the ``value`` of the parameter ``name``."""
SENSORS = "sensors"
"""Key in a bag's custom data: JSON with the topic of each additional IMU and contact switch, by its name."""
USER_TOPICS = "user_topics"
"""Key in a bag's custom data: names of the recorded topics of the user's own nodes, joined by commas."""
ROBOT_DESCRIPTION = "/robot_description"
READOUTS = "/controller/"
"""Prefix of the topics of a controller's debug signals."""
PLAN = "/plan/readouts"
"""Topic of the debug signals that describe a plan."""

OBJECTS = "/objects/"
"""Prefix of the topics of free objects."""

PLATE_SIGNALS = "/force_plates/{plate}/signals"
PLATE_GEOMETRY = "/force_plates/{plate}/geometry"
PLATE_WRENCH = "/force_plates/{plate}/wrench"
PLATE_COP = "/force_plates/{plate}/cop"
PLATE_FREE_MOMENT = "/force_plates/{plate}/free_moment"
CLIPPED = "clipped"
"""Label in the samples of a force plate: number of values so far beyond the range of the amplifier."""

_FORCE = ("fx[N]", "fy[N]", "fz[N]", "tx[N.m]", "ty[N.m]", "tz[N.m]")
_IMPULSE = ("fx[N.s]", "fy[N.s]", "fz[N.s]", "tx[N.m.s]", "ty[N.m.s]", "tz[N.m.s]")
_SETPOINT = (
    *("position[rad]", "velocity[rad/s]", "effort[N.m]"),
    *("stiffness[N.m/rad]", "damping[N.m.s/rad]", "limit[N.m]"),
)
_IMU = (
    *("qx", "qy", "qz", "qw"),
    *("wx[rad/s]", "wy[rad/s]", "wz[rad/s]", "ax[m/s^2]", "ay[m/s^2]", "az[m/s^2]"),
)
_POSITION = ("x[m]", "y[m]", "z[m]")
_QUATERNION = ("qx", "qy", "qz", "qw")
_POSE = (*_POSITION, *_QUATERNION)
OBJECT_COMPONENTS = (*_POSE, "vx[m/s]", "vy[m/s]", "vz[m/s]", "wx[rad/s]", "wy[rad/s]", "wz[rad/s]")
"""Numbers of an object in each row: its pose in the world and its velocities in its own axes."""


def vertex_labels(n: int) -> tuple[str, ...]:
    """Return the labels of the message with the forces at ``n`` vertices: the time, then each force."""
    return ("t", *(f"v{i}_f{axis}" for i in range(n) for axis in "xyz"))


@dataclass(frozen=True)
class Column:
    """Column definition: one array of a recording, with one or several numbers per tick.

    Attributes:
        per: "joint", "foot", "imu" or "switch" if each of them has its own numbers; else empty.
        components: Names of the numbers with their units; a single one may be only a unit, or empty.
        doc: Description of the numbers.
        source: Attribute of observation, contact, truth, command, controller or tick from which a run reads the
            numbers; empty if they are computed.
        topic: Topic of the numbers in a bag, with ``{foot}`` for the name of a foot; empty if there is none.
        field: Field of the decoded message; "data" for a labelled array, where :attr:`labels` are the column's.
        sent: Topic of a controller with the numbers, for the bag of a robot that does not report them.
        free_base: Only robots with a floating base have the column.
        rare: Most runs lack the column. It takes memory only from its first number on; its source may be None.
        name, dtype: Name and type of the attribute, taken from its declaration.
    """

    per: str
    components: tuple[str, ...]
    doc: str
    source: str = ""
    topic: str = ""
    field: str = ""
    sent: str = ""
    free_base: bool = False
    rare: bool = False
    name: str = ""
    dtype: Any = np.float64

    @property
    def width(self) -> int:
        """Numbers per tick, for each joint or foot."""
        return len(self.components)

    @property
    def absent(self) -> Any:
        """Value of an entry that was not recorded."""
        return {np.float64: np.nan, np.int64: ABSENT_MODE, np.bool_: False}[self.dtype]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the column's numbers in a message, without units."""
        parts = (component.partition("[")[0] for component in self.components)
        return tuple(f"{self.name}_{part}" if part else self.name for part in parts)

    def labels_of(self, joints: Sequence[str]) -> tuple[str, ...]:
        """Return :attr:`labels`, repeated for each joint if the column is per joint."""
        if self.per != "joint":
            return self.labels
        return tuple(f"{joint}_{label}" for joint in joints for label in self.labels)

    def empty(self, n: int, owners: Mapping[str, Sequence[str]]) -> NDArray[Any]:
        """Return an array of ``n`` empty rows; ``owners`` as for :meth:`headers`."""
        each = (len(owners[self.per]),) if self.per else ()
        inner = (self.width,) if self.width > 1 else ()
        return np.full((n, *each, *inner), self.absent, dtype=self.dtype)

    def headers(self, owners: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the table headers of the column, with units: ``left_foot_wrench_fx[N]``, ``shank_imu_wx[rad/s]``.

        Args:
            owners: Value of :attr:`per` to the names of these joints, feet or sensors.
        """
        if not self.per:
            return list(self._headers())
        if self.per in ("imu", "switch"):
            # A sensor has only this column.
            return [f"{name}_{component}" for name in owners[self.per] for component in self.components]
        suffix = "_foot" if self.per == "foot" else ""
        return [f"{name}{suffix}_{header}" for name in owners[self.per] for header in self._headers()]

    def _headers(self) -> Iterator[str]:
        units = (component[len(component.partition("[")[0]) :] for component in self.components)
        for label, unit in zip(self.labels, units, strict=True):
            yield label + unit


@dataclass(eq=False, kw_only=True)
class RecordedColumns:
    """Schema of a recording: arrays (n,), (n, joints) or (n, feet), with one more axis for several numbers.

    Entries that were not recorded are NaN, -1 in integer columns and False in boolean columns. The order is that of
    exported tables and of the contact message.
    """

    t: Annotated[Array, Column("", ("[s]",), "time of the measurements, rising", "tick.t")]
    joint_position: Annotated[
        Array, Column("joint", ("[rad]",), "", "observation.joint_position", JOINT_STATES, "position")
    ]
    joint_velocity: Annotated[
        Array, Column("joint", ("[rad/s]",), "", "observation.joint_velocity", JOINT_STATES, "velocity")
    ]
    joint_effort: Annotated[
        Array,
        Column("joint", ("[N.m]",), "torque over the step before", "observation.joint_effort", JOINT_STATES, "effort"),
    ]
    joint_command: Annotated[
        Array,
        Column(
            "joint",
            ("[N.m]",),
            "torque that the drives were asked for over the step before; in the bag of a robot, the last command on "
            f"{EFFORT_COMMANDS} before the row",
            "command.tau_joint",
            APPLIED,
            "effort",
            EFFORT_COMMANDS,
        ),
    ]
    setpoint: Annotated[
        Array,
        Column(
            "joint",
            _SETPOINT,
            "what its drive followed in the step before by closing its loop, and the torque that bounds it; NaN under "
            "torque commands",
            "command.setpoint",
            SETPOINTS,
            "data",
            IMPEDANCE_COMMANDS,
            rare=True,
        ),
    ]
    wrench: Annotated[
        Array,
        Column(
            "foot",
            _FORCE,
            "of the ground on the foot at the sole's origin, in the sole frame",
            "contact.wrench",
            SOLE_WRENCH,
            "wrench",
        ),
    ]
    cop: Annotated[
        Array,
        Column(
            "foot",
            _POSITION[:2],
            "centre of pressure in the sole frame, NaN in the air",
            "contact.cop",
            SOLE_COP,
            "point",
        ),
    ]
    mode: Annotated[Integers, Column("foot", ("",), "contact mode (contact/modes.py)", "contact.mode", CONTACT, "data")]
    clamped: Annotated[
        Integers, Column("foot", ("",), "the same as bits, one a vertex", "contact.clamped", CONTACT, "data")
    ]
    sliding: Annotated[Flags, Column("foot", ("",), "whether friction is dynamic", "contact.sliding", CONTACT, "data")]
    cop_margin: Annotated[
        Array,
        Column(
            "foot",
            ("[m]",),
            "of the CoP to the nearest edge, positive inside, NaN in the air",
            "contact.cop_margin",
            CONTACT,
            "data",
        ),
    ]
    friction_used: Annotated[
        Array,
        Column("foot", ("",), "force along the ground over mu f_z", "contact.friction_used", CONTACT, "data"),
    ]
    n_vertices: Annotated[
        Integers,
        Column("foot", ("",), "of the polygon that modes and bits refer to", "contact.n_vertices", CONTACT, "data"),
    ]
    impact: Annotated[
        Array,
        Column(
            "foot",
            _IMPULSE,
            "part of the step's impulse that stopped velocities at once, in the sole frame",
            "contact.impact",
            CONTACT,
            "data",
        ),
    ]
    base_contact: Annotated[
        Array,
        Column(
            "",
            _FORCE[:3],
            "of all contacts of the body of the root, of its soles only risers, in the world; NaN without contact",
            "truth.base_contact",
            BODY_CONTACTS,
            "data",
        ),
    ]
    link_contact: Annotated[
        Array,
        Column(
            "joint",
            _FORCE[:3],
            "the same of the body that the joint moves",
            "truth.link_contact",
            BODY_CONTACTS,
            "data",
        ),
    ]
    stop_torque: Annotated[
        Array,
        Column(
            "joint",
            ("[N.m]",),
            "of the joint limit (position) on its joint, over the step before; NaN while no joint is at its limit",
            "truth.stop_torque",
            JOINT_STOPS,
            "data",
        ),
    ]
    gantry_force: Annotated[
        Array,
        Column(
            "",
            _FORCE[:3],
            "of the gantry on the trunk in the world, over the step before; NaN once it has let go",
            "truth.gantry_force",
            GANTRY,
            "data",
            rare=True,
        ),
    ]
    ankle_wrench: Annotated[
        Array,
        Column(
            "foot",
            _FORCE,
            "what the force-torque sensor measured of the ground on the foot, in its frame",
            "observation.foot_wrench",
            ANKLE_WRENCH,
            "wrench",
        ),
    ]
    sole_poses: Annotated[Array, Column("foot", _POSE, "of the sole frame in the world", "truth.pose_world_sole")]
    cop_world: Annotated[
        Array,
        Column("", _POSITION, "centre of pressure of all feet, NaN in the air", "truth.cop_world", COP, "point"),
    ]
    base_pose: Annotated[
        Array,
        Column(
            "",
            _POSE,
            "true pose of the base in the world",
            "truth.pose_world_base",
            GROUND_TRUTH,
            "pose",
            free_base=True,
        ),
    ]
    odometry: Annotated[
        Array,
        Column(
            "",
            _POSE,
            "the same as the controller estimated it from the row, in axes of its own",
            "controller.odometry",
            ODOMETRY,
            "pose",
        ),
    ]
    imu_orientation: Annotated[
        Array,
        Column("", _QUATERNION, "of the IMU frame in the world", "observation.imu_orientation", IMU, "orientation"),
    ]
    imu_angular_velocity: Annotated[
        Array,
        Column(
            "",
            ("x[rad/s]", "y[rad/s]", "z[rad/s]"),
            "in the IMU frame",
            "observation.imu_angular_velocity",
            IMU,
            "angular_velocity",
        ),
    ]
    imu_linear_acceleration: Annotated[
        Array,
        Column(
            "",
            ("x[m/s^2]", "y[m/s^2]", "z[m/s^2]"),
            "specific force in the IMU frame, +g upwards at rest",
            "observation.imu_linear_acceleration",
            IMU,
            "linear_acceleration",
        ),
    ]
    imus: Annotated[
        Array,
        Column(
            "imu",
            _IMU,
            "of an additional IMU: orientation, angular velocity and specific force, as of the main one",
            "observation.imus",
            ADDITIONAL_IMU,
        ),
    ]
    contact_switches: Annotated[
        Array,
        Column("switch", ("closed",), "1 if the switch is closed, 0 if open", "observation.contact_switches", SWITCH),
    ]


def _columns() -> dict[str, Column]:
    result = {}
    for name, hint in get_type_hints(RecordedColumns, include_extras=True).items():
        kind, row = get_args(hint)
        result[name] = replace(row, name=name, dtype=scalar_type(kind))
    return result


COLUMNS = _columns()
"""Name of the attribute to its column definition."""


def columns_on(topic: str) -> tuple[Column, ...]:
    """Return the columns of a topic; its name contains ``{foot}`` in place of a foot's name."""
    return tuple(column for column in COLUMNS.values() if column.topic == topic)


CARRIERS = tuple(dict.fromkeys(column.topic for column in COLUMNS.values() if column.topic))
"""Topics that carry columns."""
MEASURED = tuple(column.topic for column in COLUMNS.values() if column.source.startswith("observation."))
"""Topics of sensors, which a robot has too."""
LABELLED_TOPICS = tuple(topic for topic in CARRIERS if all(column.field == "data" for column in columns_on(topic)))
"""Topics whose messages are labelled arrays; the first number is the time [s]."""
CONTACT_FIELDS = ("t", *(label for column in columns_on(CONTACT) for label in column.labels))
"""Labels of the contact message, in order: the time, then the data that no other message type contains."""
FOOT = re.compile("|".join(f"{re.escape(t).replace(re.escape('{foot}'), '(.+)')}$" for t in CARRIERS if "{foot}" in t))
"""Matches the topics of feet; one of its groups is the name of the foot."""
