"""Read commands from the topics of a controller, for bags of robots that do not report the commands they received."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bipedsim.errors import some
from bipedsim.model import Robot
from bipedsim.numerics import Array, Integers
from bipedsim.recording.bag.decoding import TopicDecoders
from bipedsim.recording.bag.segments import AlignedRows
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import COLUMNS, EFFORT_COMMANDS, IMPEDANCE_COMMANDS

_HELD, _ROWS_HELD = 0.05, 1.5
"""Maximum age of a torque command: this time [s], or this number of rows if that is longer. A drive keeps an impedance
until the next command, but not an old torque."""
_NEGLIGIBLE = 1e-6
"""Difference of times that rounding can cause [s]."""
_COLUMN = {column.sent: column for column in COLUMNS.values() if column.sent}
EFFORT = "effort"
"""Field of joint states with the torques of a controller."""
*_BLOCKS, _ = (component.partition("[")[0] for component in _COLUMN[IMPEDANCE_COMMANDS].components)


class _Sent(NamedTuple):
    """Messages of a topic: times of reception [ns], times of the rows before them [s], and numbers (n, nu, k)."""

    arrived: Integers
    t: Array
    numbers: Array

    def rows(self, rows: Any) -> _Sent:
        """Return some of the messages."""
        return _Sent(self.arrived[rows], self.t[rows], self.numbers[rows])

    def and_then(self, later: _Sent) -> _Sent:
        """Return these messages and later ones."""
        return _Sent(
            np.concatenate([self.arrived, later.arrived]),
            np.concatenate([self.t, later.t]),
            np.concatenate([self.numbers, later.numbers]),
        )


class SentCommands:
    """Write the commands that a controller sent to the columns of commands.

    These messages have no stamps. A message that is sent after a row acts in the step to the next row, and until a
    newer one replaces it.

    Args:
        decoders: Decoders of the topics.
    """

    def __init__(self, decoders: TopicDecoders) -> None:
        self._decoders = decoders
        self._segment, self._period = -1, 0.0
        # The newest message of each topic, for the next rows of the segment.
        self._newest: dict[str, _Sent] = {}
        # Topics whose numbers have no joint names.
        self._unnamed: dict[str, None] = {}

    @property
    def notes(self) -> list[str]:
        """Assumptions about the messages, once the bag has been read."""
        return [f"{topic} names no joints: its numbers are taken in the order of the robot" for topic in self._unnamed]

    def put(self, out: Recording, rows: AlignedRows, robot: Robot | None) -> None:
        """Write the commands of ``rows``.

        Args:
            out: Recording of these rows, with times and joint names.
            rows: The rows. All rows of a bag must be given, in their order.
            robot: Robot of the bag, whose joints define the order of the numbers. None refuses all messages.
        """
        if rows.segment != self._segment:
            self._segment, self._newest = rows.segment, {}
        torque, impedance = (self._in_force(name, out, rows, robot) for name in (EFFORT_COMMANDS, IMPEDANCE_COMMANDS))
        names = robot.joint_names if robot else ()
        pairs = [(i, out.joint_names.index(name)) for i, name in enumerate(names) if name in out.joint_names]
        joints, columns = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        # The drives follow the kind of command that came last.
        if len(out) > 1:
            self._period = float(np.median(np.diff(out.t)))
        young = out.t - torque.t < max(_HELD, _ROWS_HELD * self._period) + _NEGLIGIBLE
        by_torque = np.flatnonzero((torque.arrived > impedance.arrived) & young)
        by_impedance = np.flatnonzero(impedance.arrived > torque.arrived)
        if len(by_torque) and out.joint_command.flags.writeable:
            out.joint_command[np.ix_(by_torque, columns)] = torque.numbers[np.ix_(by_torque, joints)][..., 0]
        if len(by_impedance) and out.setpoint.flags.writeable:
            out.setpoint[np.ix_(by_impedance, columns)] = impedance.numbers[np.ix_(by_impedance, joints)]

    def _in_force(self, topic: str, out: Recording, rows: AlignedRows, robot: Robot | None) -> _Sent:
        """Return the newest message of a topic before each row; if there is none, it arrived at -1."""
        shape = 1, robot.nu if robot else 0, _COLUMN[topic].width
        absent = _Sent(np.array([-1]), np.array([-np.inf]), np.full(shape, np.nan))
        sent, before = self._newest.get(topic, absent), np.array([-1])
        at, table = rows.sent_after(topic)
        numbers = None
        # The report of the drives counts more than the messages to them.
        if table is not None and not self._decoders.counts[_COLUMN[topic].topic]:
            numbers = self._per_joint(topic, table.values, robot)
        if table is not None and numbers is not None:
            sound = np.isfinite(numbers[..., : len(_BLOCKS)]).all(axis=(1, 2))
            early = np.where(at < 0, np.maximum(rows.joints.arrived[0] - table.arrived, 0), 0)
            newer = _Sent(table.arrived, out.t[np.maximum(at, 0)] - 1e-9 * early, numbers)
            sent, before = sent.and_then(newer.rows(sound)), np.append(before, at[sound])
        newest = np.searchsorted(before, np.arange(len(out))) - 1
        self._newest[topic] = sent.rows(slice(-1, None))
        return sent.rows(newest)

    def _per_joint(self, topic: str, columns: Mapping[str, Array], robot: Robot | None) -> Array | None:
        """Return the numbers (n, nu, 1 or 6) of the messages; None if they do not fit the robot."""
        decoder = self._decoders.get(topic)
        assert decoder is not None
        values = columns[next(iter(columns))]
        if robot is None:
            reason = "the robot is unknown, and with it the order of the joints; pass --robot"
            self._decoders.count_unfit(topic, len(values), reason)
            return None
        if EFFORT in columns:
            names = decoder.labels or ()
            if not set(robot.joint_names) <= set(names) or values.shape[1] != len(names):
                problem = f"they have {values.shape[1]} efforts of {some(names)}, and not of all joints of {robot.name}"
                self._decoders.count_unfit(topic, len(values), problem)
                return None
            values = values[:, [names.index(name) for name in robot.joint_names]]
        else:
            self._unnamed[topic] = None
        n = values.shape[1] // max(robot.nu, 1)
        blocks: tuple[str, ...] = (EFFORT,)
        if topic == IMPEDANCE_COMMANDS:
            # The label of the layout's first dimension names the blocks; an empty one stands for all of them.
            named = tuple(label.strip() for label in (decoder.labels or ())[:n])
            blocks = named if any(named) else tuple(_BLOCKS)
        if values.shape[1] != len(blocks) * robot.nu or not set(blocks) <= set(_BLOCKS) or len(set(blocks)) < n:
            hold = f"they hold {values.shape[1]} numbers for {', '.join(blocks)}"
            wanted = f"one block for each of some of {', '.join(_BLOCKS)}"
            wanted = f"{wanted}, each with a number for the {robot.nu} joints of {robot.name}"
            self._decoders.count_unfit(topic, len(values), f"{hold}, and not {wanted}")
            return None
        finite = np.isfinite(values)
        self._decoders.count_unfit(topic, int((finite.any(axis=1) & ~finite.all(axis=1)).sum()), "they are not finite")
        by_joint = np.moveaxis(values.reshape(len(values), len(blocks), robot.nu), 1, 2)
        if topic == EFFORT_COMMANDS:
            return by_joint
        setpoint = np.zeros((*by_joint.shape[:2], len(_BLOCKS) + 1))
        setpoint[..., [_BLOCKS.index(block) for block in blocks]] = by_joint
        setpoint[..., -1] = robot.effort_limit
        gains = setpoint[..., [_BLOCKS.index(name) for name in ("stiffness", "damping")]]
        negative = (gains < 0.0).any(axis=(1, 2))
        setpoint[negative] = np.nan
        self._decoders.count_unfit(topic, int(negative.sum()), "a stiffness or a damping is negative")
        return setpoint
