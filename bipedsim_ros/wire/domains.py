"""Find the ROS domains in use on this machine, by the UDP ports on which their participants listen."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping, Sequence

from bipedsim.errors import BipedSimError
from bipedsim_ros.wire.network import CHOOSING, DISCOVERY_RANGE, network_environment

FIRST, LAST = 1, 101
"""Domains whose ports are below Linux's ephemeral ports. Domain 0 is excluded because it is everybody's default."""
STANDARD_BASE = 7400
"""Lowest port of domain 0 according to the standard (DDSI-RTPS 9.6.1.1)."""
# Participants of a domain take the lowest free ports, so checking the first few is enough.
_PARTICIPANTS = 12


def ports(domain: int, base: int = STANDARD_BASE) -> list[int]:
    """Return the ports of the first participants of a domain: two multicast ports, then two for each participant."""
    first = base + 250 * domain
    return [first, first + 1, *range(first + 10, first + 10 + 2 * _PARTICIPANTS)]


def _bindable(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True


def in_use(domain: int, base: int = STANDARD_BASE) -> bool:
    """Return whether any program of any user takes part in a domain, that is, listens on one of its ports."""
    return not all(map(_bindable, ports(domain, base)))


def participants(domain: int) -> int:
    """Return how many local processes take part in a domain and use the standard's ports."""
    return sum(not _bindable(port) for port in ports(domain)[2::2])


def free_domain(beside: int) -> int:
    """Return the next unused domain after ``beside``, or simply the next one if all are in use."""
    others = [FIRST + (beside + k) % LAST for k in range(LAST)]
    return next((domain for domain in others if domain != beside and not in_use(domain)), others[0])


def surely_empty(domain: int, env: Mapping[str, str]) -> bool:
    """Return whether nodes in the environment ``env`` meet no others: they see only this machine, and it is empty."""
    ours = network_environment("localhost", {})
    if any(env.get(name) for name in CHOOSING if name not in ours) or "zenoh" in env.get("RMW_IMPLEMENTATION", ""):
        return False
    # A user's own profiles do not usually change the ports.
    return env.get(DISCOVERY_RANGE) == ours[DISCOVERY_RANGE] and not in_use(domain)


class ClaimedDomain:
    """Reserves a domain until :meth:`release`, or until the process ends for any reason.

    The claim is the name of an abstract Unix socket. The name is unique on a machine, or in a container with its own
    network. This matches the reach of packets to localhost. The socket needs no writable folder and leaves no file.
    Domains on whose ports a program already listens are skipped.

    Args:
        first: First domain to try.
        bases: Lowest ports of domain 0 that other nodes may use.

    Attributes:
        id: Number of the domain.

    Raises:
        BipedSimError: All domains are in use.
    """

    def __init__(self, first: int | None = None, bases: Sequence[int] = (STANDARD_BASE,)) -> None:
        start = os.getpid() if first is None else first - FIRST
        count = LAST - FIRST + 1
        for k in range(count):
            domain = FIRST + (start + k) % count
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(f"\0bipedsim on ROS domain {domain}")
            except OSError as error:
                claim.close()
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            if not any(in_use(domain, base) for base in bases):
                self.id, self._claim = domain, claim
                return
            claim.close()
        raise BipedSimError(f"all ROS domains from {FIRST} to {LAST} of this machine are in use: end some ROS programs")

    def release(self) -> None:
        """Release the domain for other processes."""
        self._claim.close()
