"""Convert joint commands (torques, positions, impedances) to serialised messages and back.

All are Float64MultiArray in the order of the robot's joints, as in ros2_control's forward_command_controller. Invalid
commands are refused, with the kind under which they are counted and a remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from std_msgs.msg import Float64MultiArray

from bipedsim.numerics import Array, Indices, is_finite
from bipedsim.recording.bag import Encoder, blank
from bipedsim.sim import LIMIT, SETPOINT, Command
from bipedsim_ros.wire.topics import COMMANDS, IMPEDANCE
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


def _not_finite(invalid: Sequence[str]) -> CommandFault:
    way_out = "the last sound one stays; look for a division by zero or a missing measurement in the controller"
    return CommandFault("not_finite", f"it is not finite: {', '.join(invalid)}; {way_out}")
