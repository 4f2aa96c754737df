"""ROS domains in which nobody else is, and the environment that keeps a test's nodes in theirs.

Three things keep worlds apart. A domain is claimed by a name in the kernel, so that parallel tests, suites and users
have different ones; one on whose ports anybody listens is left out, so that a test does not walk into a graph that is
up; and the ports of tests are not those of the standard, so that a graph that comes up later cannot walk into a test.
The last holds for Fast DDS, the first two for every DDS.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from paths import ROOT

from bipedsim_ros.wire.domains import FIRST, LAST, STANDARD_BASE, in_use
from bipedsim_ros.wire.network import profile_variables

TEST_BASE = 7520
"""Lowest port of domain 0 in ros_ports.xml."""

# Shared memory would outlive a SIGKILL.
_PORTS = str(Path(__file__).with_name("ros_ports.xml"))
APART = {
    **dict.fromkeys(profile_variables(os.environ), _PORTS),
    "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
    "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
}


class Domain:
    """A domain of one's own until :meth:`release`, or until the process ends, however it does.

    The claim is the name of an abstract Unix socket. It exists once on a machine, or in a container with a network of
    its own, which is as far as packets to localhost go; it needs no folder that all users may write to, and leaves
    none behind.

    Args:
        first: Where to begin to look.
    """

    def __init__(self, first: int | None = None) -> None:
        start = os.getpid() if first is None else first - FIRST
        count = LAST - FIRST + 1
        for k in range(count):
            domain = FIRST + (start + k) % count
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(f"\0bipedsim test on ROS domain {domain}")
            except OSError as error:
                claim.close()
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            if not any(in_use(domain, base) for base in (STANDARD_BASE, TEST_BASE)):
                self.id, self._claim = domain, claim
                return
            claim.close()
        raise RuntimeError(f"all ROS domains from {FIRST} to {LAST} of this machine are in use: end some ROS programs")

    def environment(self) -> dict[str, str]:
        """Return the environment of nodes and programs in this domain, which can import what tests define."""
        paths = [str(ROOT), str(ROOT / "test" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            **APART,
            "ROS_DOMAIN_ID": str(self.id),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(paths),
        }

    def release(self) -> None:
        """Let others have it."""
        self._claim.close()
