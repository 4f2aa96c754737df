"""Which ROS domains of this machine somebody takes part in: who does listens on ports that follow from the domain."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping

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
