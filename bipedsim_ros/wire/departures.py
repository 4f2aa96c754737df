"""Report the death of a local process to Fast DDS at once, instead of after its participant's lease (20 s).

A participant that ends normally disposes of itself on the discovery topic (DDSI-RTPS 8.5.3.2). A killed participant
cannot. Until its lease ends, a reliable publisher stores the samples that the dead subscriber has not acknowledged.
With ``keep_all`` the publisher then blocks. :class:`Departures` sends the missing message, to this process only.

A process is reported only if it was seen alive, through a file descriptor of that process. The process number in a GUID
alone proves nothing, because a container may have its own process numbers.
"""

from __future__ import annotations

import os
import re
import select
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rclpy.node import Node

_PREFIX = 12
"""Bytes of the participant's part of a GUID: vendor (2), host (2), process (2), random (2), participant (4)."""
_VENDOR = bytes((1, 15))
_LIBRARY = re.compile(r"/lib(fastrtps|fastdds)[^/]*\.so")
_PIDS = range(0, 1 << 22, 1 << 16)
"""Possible offsets between the 16-bit process number in a GUID and the real one; Linux counts up to 2**22."""
_ANY_SEQUENCE = (1 << 31) - 1
"""Sequence number of the message; it must exceed all others of the participant."""


class Departures:
    """Watches the processes that subscribe or publish to some topics.

    Args:
        node: Node whose participant receives the reports.
        names: Names of the topics.
    """

    def __init__(self, node: Node, names: Iterable[str]) -> None:
        self._node = node
        self._names = tuple(dict.fromkeys(node.resolve_topic_name(name) for name in names))
        self._known: set[bytes] = set()
        self._host = next((participant[2:4] for participant in self._participants() if _is_ours(participant)), b"")
        self._alive: dict[int, bytes] = {}  # file descriptor of a process to its participant
        self._lock = threading.Lock()

    def look(self) -> int:
        """Report the processes that have died and find new ones; return the number of dead processes."""
        with self._lock:
            gone = self._dead_participants()
            for participant in gone:
                _send(_leave(participant), own_ports())
            for participant in self._participants():
                self._learn(participant)
        return len(gone)

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            for descriptor in self._alive:
                os.close(descriptor)
            self._alive.clear()

    def _participants(self) -> Iterator[bytes]:
        """Yield the participants on the watched topics."""
        for name in self._names:
            subscriptions = self._node.get_subscriptions_info_by_topic(name)
            for info in (*subscriptions, *self._node.get_publishers_info_by_topic(name)):
                yield bytes(info.endpoint_gid)[:_PREFIX]

    def _dead_participants(self) -> list[bytes]:
        """Return the participants whose process has died since the last call."""
        poll = select.poll()
        for descriptor in self._alive:
            poll.register(descriptor, select.POLLIN)
        gone = []
        for descriptor, _events in poll.poll(0):
            os.close(descriptor)
            gone.append(self._alive.pop(descriptor))
        return gone

    def _learn(self, participant: bytes) -> None:
        """Watch the process of a participant if it is a local process that can be identified."""
        if participant in self._known:
            return
        self._known.add(participant)
        number = int.from_bytes(participant[4:6], "little")
        if participant[:2] != _VENDOR or participant[2:4] != self._host or not hasattr(os, "pidfd_open"):
            return
        candidates = [pid for pid in (number + more for more in _PIDS) if pid != os.getpid() and _takes_part(pid)]
        if len(candidates) == 1:
            # The process may end at this moment.
            with suppress(OSError):
                self._alive[os.pidfd_open(candidates[0])] = participant


def machine_of(gid: Sequence[int]) -> str:
    """Return a name for the machine of a DDS endpoint.

    Fast DDS puts the host into the GUID. Of another DDS only the process is known, and it stands for its machine.
    """
    host = bytes(gid)[:4]
    return (host if host[:2] == _VENDOR else bytes(gid)[:_PREFIX]).hex()


def _is_ours(participant: bytes) -> bool:
    """Return whether a participant belongs to this process."""
    return participant[:2] == _VENDOR and participant[4:6] == (os.getpid() & 0xFFFF).to_bytes(2, "little")


def _takes_part(pid: int) -> bool:
    """Return whether a process has loaded Fast DDS; false if its memory map cannot be read."""
    try:
        return _LIBRARY.search(Path(f"/proc/{pid}/maps").read_text()) is not None
    except OSError:
        return False


def own_ports() -> set[int]:
    """Return the UDP ports of this process."""
    own = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link)):
                own.add(match[1])
    rows = (line.split() for line in Path("/proc/self/net/udp").read_text().splitlines()[1:])
    return {int(row[1].partition(":")[2], 16) for row in rows if row[9] in own}


def _leave(participant: bytes) -> bytes:
    """Return the message with which a participant leaves: DATA without payload, disposed and unregistered."""
    key = struct.pack("<HH", 0x70, 16) + participant + b"\0\0\1\xc1"  # PID_KEY_HASH: its GUID
    status = struct.pack("<HH", 0x71, 4) + b"\0\0\0\3"  # PID_STATUS_INFO
    end = struct.pack("<HH", 1, 0)  # PID_SENTINEL
    entities = b"\0\1\0\xc7\0\1\0\xc2"  # reader and writer of participant discovery
    data = struct.pack("<HH", 0, 16) + entities + struct.pack("<iI", 0, _ANY_SEQUENCE) + key + status + end
    return b"RTPS\2\3" + _VENDOR + participant + struct.pack("<BBH", 0x15, 0b11, len(data)) + data


def _send(message: bytes, ports: Iterable[int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for port in ports:
            with suppress(OSError):
                out.sendto(message, ("127.0.0.1", port))
