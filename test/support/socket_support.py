"""Sockets and shared memory of a process, as Linux lists them in /proc."""

from __future__ import annotations

import os
import re
import socket
import time
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from bipedsim_ros.wire.shared_memory import FOLDER

LISTEN = "0A"
"""State of a TCP socket that accepts connections."""


@dataclass(frozen=True)
class Endpoint:
    """A local address at which a process may receive: a UDP socket, or a TCP socket that accepts connections."""

    protocol: str
    address: IPv4Address | IPv6Address
    port: int


def _address(hexadecimal: str) -> IPv4Address | IPv6Address:
    """Read an address; the kernel prints each group of four bytes as one little-endian number."""
    raw = bytes.fromhex(hexadecimal)
    return ip_address(b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4)))


def _rows(pid: int, table: str) -> list[list[str]]:
    path = Path(f"/proc/{pid}/net/{table}")
    return [line.split() for line in path.read_text().splitlines()[1:]] if path.exists() else []


def endpoints(pid: int) -> set[Endpoint]:
    """Return all addresses at which a process may receive."""
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    inodes = {match[1] for link in links if (match := re.fullmatch(r"socket:\[(\d+)\]", link))}
    result = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for row in _rows(pid, table):
            if row[9] in inodes and (table.startswith("udp") or row[3] == LISTEN):
                address, port = row[1].split(":")
                result.add(Endpoint(table[:3], _address(address), int(port, 16)))
    return result


def is_read(port: int, patience: float = 0.5) -> bool:
    """Return whether a process receives datagrams at a UDP port of this machine.

    A socket that only sends leaves them in its queue.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"?", ("127.0.0.1", port))
    end = time.monotonic() + patience
    while time.monotonic() < end:
        queued = [row[4].split(":")[1] for row in _rows(os.getpid(), "udp") if row[1].endswith(f":{port:04X}")]
        if not any(int(n, 16) for n in queued):
            return True
        time.sleep(0.02)
    return False


def memory_of(pid: int) -> set[str]:
    """Return the ports and segments of a process: those whose lock files it has open."""
    files = [Path(os.readlink(link)) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return {file.name.removesuffix("_el") for file in files if file.match(f"{FOLDER}/fast*_el")}
