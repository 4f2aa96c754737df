"""Convert joint commands (torques, positions, impedances) to serialised messages and back.

They are Float64MultiArray in the order of the robot's joints, as in ros2_control's forward_command_controller, or
JointState with names, as its topic-based hardware interfaces send. Invalid commands are refused, with the kind under
which they are counted and a remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from std_msgs.msg import Float64MultiArray

from bipedsim.numerics import Array, Flags, Indices, is_finite
from bipedsim.recording.bag import Encoder, blank
from bipedsim.sim import DAMPING, EFFORT, LIMIT, POSITION, SETPOINT, STIFFNESS, VELOCITY, Command
from bipedsim_ros.wire.topics import COMMANDS, IMPEDANCE, JOINT_COMMANDS
from bipedsim_ros.wire.wire import Layout, MessageError, WireReader, parse

BLOCKS = SETPOINT[:LIMIT]
"""Names of the blocks of an impedance command, in the order that this project's own messages use."""
_AT_LEAST_ZERO = ("stiffness", "damping")
_UNITS = dict(zip(BLOCKS, ("rad", "rad/s", "N.m", "N.m/rad", "N.m.s/rad"), strict=True))


class CommandFault(NamedTuple):
    """Reason why a message was dropped: the kind under which it is counted, and a text with the remedy."""

    kind: str
    text: str


class CommandWriter:
    """Writes messages of joint torques [N.m] for ros2_control's effort controllers."""

    def __init__(self, n: int) -> None:
        self._wire = Encoder(COMMANDS.msgtype, {"data": np.zeros(n)})

    def write(self, tau_joint: Array) -> bytes:
        """Return the message for the torques (nu,)."""
        self._wire.groups[0][:] = tau_joint
        return self._wire.data(0)


class ImpedanceWriter:
    """Writes impedance commands of five blocks, named by the label of the layout's first dimension."""

    def __init__(self, n: int) -> None:
        total = n * len(BLOCKS)
        dims = [
            blank("std_msgs/msg/MultiArrayDimension", {"label": label, "size": size, "stride": stride})
            for label, size, stride in ((",".join(BLOCKS), len(BLOCKS), total), ("joint", n, n))
        ]
        self._wire = Encoder(IMPEDANCE.msgtype, {"layout.dim": dims, "data": np.zeros(total)})
        self._unbounded = np.full(n, np.inf)

    def write(self, command: Command, order: Indices | slice = slice(None)) -> bytes:
        """Return the message for an impedance command, with its joints in ``order``."""
        return self._wire.write(0, command.packed(self._unbounded)[:LIMIT, order].ravel())


class CommandReader:
    """Reads one value per joint (torques or positions) and refuses invalid values."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._joint_names = tuple(joint_names)
        self._wire = WireReader(COMMANDS.msgtype)

    def read(self, data: bytes, values: Array) -> CommandFault | None:
        """Copy a serialised command into ``values`` (nu,) if it is valid.

        Returns:
            None, or the fault of the message; in this case ``values`` is unchanged.
        """
        names = self._joint_names
        try:
            received = self._wire.read(data)[0]
        except MessageError as error:
            return CommandFault("unreadable", f"{error}; send std_msgs/msg/Float64MultiArray")
        if len(received) != len(names):
            listed = ", ".join(names)
            return CommandFault(
                "size", f"it has {len(received)} values, expected {len(names)} ({listed}), one for each joint"
            )
        if not is_finite(received):
            return _not_finite([f"{names[i]} = {received[i]}" for i in np.flatnonzero(~np.isfinite(received))])
        values[:] = received
        return None


class ImpedanceReader:
    """Reads impedance commands by the names of their blocks and refuses invalid values."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._joint_names = tuple(joint_names)
        self._wire = WireReader(COMMANDS.msgtype)
        self._layout: Layout | None = None
        self._names: tuple[str, ...] = BLOCKS
        self._rows: list[int] = []

    def read(self, data: bytes, setpoint: Array) -> CommandFault | None:
        """Copy a serialised command into ``setpoint`` (6, nu), rows as in ``SETPOINT``, if it is valid.

        The row of limits does not change. Blocks that the message lacks become zero.

        Returns:
            None, or the fault of the message; in this case ``setpoint`` is unchanged.
        """
        names, n = self._joint_names, len(self._joint_names)
        try:
            received = self._wire.read(data)[0]
            if self._wire.layout is not self._layout:
                fault = self._learn(data)
                if fault is not None:
                    return fault
        except MessageError as error:
            return CommandFault("unreadable", f"{error}; send std_msgs/msg/Float64MultiArray")
        if len(received) != n * len(self._names):
            return CommandFault(
                "size",
                f"it has {len(received)} values, expected {len(self._names)} blocks ({', '.join(self._names)}) of {n}, "
                f"one for each joint ({', '.join(names)})",
            )
        blocks = received.reshape(len(self._names), n)
        if not is_finite(received):
            bad = np.argwhere(~np.isfinite(blocks))
            return _not_finite([f"{self._names[i]} of {names[j]} = {blocks[i, j]}" for i, j in bad])
        for name, block in zip(self._names, blocks, strict=True):
            if name in _AT_LEAST_ZERO and (block < 0.0).any():
                j = int(np.argmin(block))
                return CommandFault(
                    "negative", f"{name} of {names[j]} = {block[j]:g} {_UNITS[name]} must be at least 0"
                )
        setpoint[:LIMIT] = 0.0
        setpoint[self._rows] = blocks
        return None

    def _learn(self, data: bytes) -> CommandFault | None:
        """Take the names of the blocks from the layout of a message; return the fault if they are invalid."""
        dims = parse(data, Float64MultiArray).layout.dim
        # A message with an empty layout contains all blocks.
        names = tuple(name.strip() for name in dims[0].label.split(",")) if dims and dims[0].label else BLOCKS
        unknown = [name for name in names if name not in BLOCKS]
        if unknown or len(set(names)) < len(names):
            problem = f"no block is called {', '.join(map(repr, unknown))}" if unknown else "a block is there twice"
            return CommandFault(
                "layout",
                f"{problem}: the label of the layout's first dimension is {dims[0].label!r}, and names some of "
                f"{', '.join(BLOCKS)}, separated by commas",
            )
        if "stiffness" in names and "position" not in names:
            return CommandFault(
                "layout", "it has a stiffness, and no position that it is about: add the block 'position'"
            )
        self._names, self._rows = names, [BLOCKS.index(name) for name in names]
        self._layout = self._wire.layout
        return None


class JointCommandReader:
    """Reads commands of type JointState, and refuses invalid ones.

    The senders are the topic-based hardware interfaces of ros2_control. They send NaN for a joint that no controller
    commands. They append a value only for an interface that the joint has, so if the joints of a robot have different
    interfaces, values cannot be matched to names; such a message is refused.

    Args:
        joint_names: Joints of the robot, in its order.
        gains: (2, nu) stiffness [N.m/rad] and damping [N.m.s/rad] of the drives, live.
        uses: (2, nu) whether the setpoint contains these gains; :meth:`read` updates it.
    """

    _FIELDS = "position", "velocity", "effort"

    def __init__(self, joint_names: Sequence[str], gains: Array, uses: Flags) -> None:
        self._joint_names = tuple(joint_names)
        self._gains, self._uses = gains, uses
        self._wire = WireReader(JOINT_COMMANDS.msgtype)
        self._layout: Layout | None = None
        self._target: Indices = np.zeros(0, dtype=np.intp)
        self.commanded: Flags = np.zeros(len(self._joint_names), dtype=bool)
        """(nu,) joints that a message has commanded since the caller cleared this array."""

    def read(self, data: bytes, setpoint: Array) -> CommandFault | None:
        """Write a serialised command into the columns of its joints of ``setpoint`` (6, nu), rows as in ``SETPOINT``.

        A position goes to the drive with its stiffness and damping, a velocity with its damping alone, and an effort is
        added. An effort alone is a torque. A joint with NaN only keeps its column. The row of limits does not change.

        Returns:
            None, or the fault of the message; in this case ``setpoint`` is unchanged.
        """
        try:
            fields = self._wire.read(data)
        except MessageError as error:
            return CommandFault("unreadable", f"{error}; send sensor_msgs/msg/JointState")
        if self._wire.layout is not self._layout:
            fault = self._match()
            if fault is not None:
                return fault
        n = len(self._target)
        for name, field in zip(self._FIELDS, fields, strict=True):
            if len(field) not in (0, n):
                return CommandFault(
                    "size",
                    f"{name} has {len(field)} values for {n} names. Give all joints the same command interfaces, or "
                    "leave the field empty",
                )
            if np.isinf(field).any():
                bad = np.flatnonzero(np.isinf(field))
                return _not_finite([f"{name} of {self._joint_names[self._target[i]]} = {field[i]}" for i in bad])
        position, velocity, effort = (field if len(field) else np.full(n, np.nan) for field in fields)
        has_position, has_velocity = np.isfinite(position), np.isfinite(velocity)
        commanded = has_position | has_velocity | np.isfinite(effort)
        columns = self._target[commanded]
        stiffness, damping = self._gains[:, self._target]
        has_damping = has_position | has_velocity
        for row, values in (
            (POSITION, np.where(has_position, position, 0.0)),
            (VELOCITY, np.where(has_velocity, velocity, 0.0)),
            (EFFORT, np.nan_to_num(effort)),
            (STIFFNESS, np.where(has_position, stiffness, 0.0)),
            (DAMPING, np.where(has_damping, damping, 0.0)),
        ):
            setpoint[row, columns] = values[commanded]
        self._uses[:, columns] = has_position[commanded], has_damping[commanded]
        self.commanded[columns] = True
        return None

    def _match(self) -> CommandFault | None:
        """Match the names of a new layout with the joints; return the fault if one does not fit."""
        layout = self._wire.layout
        assert layout is not None
        names = [text.partition(b"\0")[0].decode("utf-8", "replace") for path, text in layout.texts if path == "name"]
        unknown = [name for name in names if name not in self._joint_names]
        if not names or unknown or len(set(names)) < len(names):
            listed = ", ".join(map(repr, unknown))
            problem = (
                f"no joint is called {listed}" if unknown else "a joint is there twice" if names else "it is empty"
            )
            return CommandFault("names", f"{problem}: name some of {', '.join(self._joint_names)}, each once")
        self._layout = layout
        self._target = np.array([self._joint_names.index(name) for name in names], dtype=np.intp)
        return None


def _not_finite(invalid: Sequence[str]) -> CommandFault:
    way_out = "the last sound one stays; look for a division by zero or a missing measurement in the controller"
    return CommandFault("not_finite", f"it is not finite: {', '.join(invalid)}; {way_out}")
