"""Which ROS domains of this machine somebody takes part in: who does listens on ports that follow from the domain."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping, Sequence

from bipedsim.errors import BipedSimError
from bipedsim_ros.wire.network import CHOOSING, DISCOVERY_RANGE, network_environment

FIRST, LAST = 1, 101
"""Domains whose ports lie below the ephemeral ones of Linux, but for 0, which is everybody's."""
STANDARD_BASE = 7400
"""Lowest port of domain 0, by the standard (DDSI-RTPS 9.6.1.1)."""
# Participants of one domain take the first that are free; who runs more than these has not left all of them.
_PARTICIPANTS = 12


def ports(domain: int, base: int = STANDARD_BASE) -> list[int]:
    """Return the ports on which the first participants of a domain listen: those of multicast, then two for each."""
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
    """Whether any program of any user takes part in a domain: it listens on one of its ports."""
    return not all(map(_bindable, ports(domain, base)))


def participants(domain: int) -> int:
    """Return how many processes of this machine take part in a domain, as far as they use the ports of the standard."""
    return sum(not _bindable(port) for port in ports(domain)[2::2])


def free_domain(beside: int) -> int:
    """Return the next domain after ``beside`` of which nobody on this machine is; the next one if there is none."""
    others = [FIRST + (beside + k) % LAST for k in range(LAST)]
    return next((domain for domain in others if domain != beside and not in_use(domain)), others[0])


def surely_empty(domain: int, env: Mapping[str, str]) -> bool:
    """Whether nodes in the environment ``env`` meet nobody: they see this machine alone, and nobody is there."""
    ours = network_environment("localhost", {})
    if any(env.get(name) for name in CHOOSING if name not in ours) or "zenoh" in env.get("RMW_IMPLEMENTATION", ""):
        return False
    # Profiles that somebody chose do not change the ports, as a rule.
    return env.get(DISCOVERY_RANGE) == ours[DISCOVERY_RANGE] and not in_use(domain)


class ClaimedDomain:
    """A domain of one's own until :meth:`release`, or until the process ends, however it does.

    The claim is the name of an abstract Unix socket. It exists once on a machine, or in a container with a network of
    its own, which is as far as packets to localhost go; it needs no folder that all users may write to, and leaves
    none behind. One on whose ports anybody listens is left out.

    Args:
        first: Where to begin to look.
        bases: Lowest ports of domain 0, as the nodes that may be met have them.

    Attributes:
        id: Of the domain.

    Raises:
        BipedSimError: All are in use.
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
        """Let others have it."""
        self._claim.close()
