"""Exclusive ROS domains, and the environment in which a test's nodes use theirs.

Three mechanisms isolate tests. A name in the kernel locks a domain, so that parallel tests, suites and users have
different ones. A domain whose ports are in use is left out, so that a test does not join a running graph. The ports of
tests are not the standard ones, so that a graph that starts later cannot join a test. The last mechanism works with
Fast DDS, the first two with every DDS.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from paths import INSTALLED, ROOT

from bipedsim_ros.wire.domains import STANDARD_BASE, ClaimedDomain
from bipedsim_ros.wire.network import profile_variables

TEST_BASE = 7520
"""Lowest port of domain 0 in ros_ports.xml."""

_PORTS = str(Path(__file__).with_name("ros_ports.xml"))
APART = {
    **dict.fromkeys(profile_variables(os.environ), _PORTS),
    # The profile allows the loopback interface only. LOCALHOST would add shared memory to it.
    "ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT",
}


class Domain(ClaimedDomain):
    """A domain in which a test's nodes are alone, and their environment.

    Args:
        first: Where to begin to look.
    """

    def __init__(self, first: int | None = None) -> None:
        super().__init__(first, (STANDARD_BASE, TEST_BASE))

    def environment(self) -> dict[str, str]:
        """Return the environment of nodes and programs in this domain, with the modules of the tests on the path."""
        paths = [str(INSTALLED), str(ROOT / "test" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            **APART,
            "ROS_DOMAIN_ID": str(self.id),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(paths),
        }


def lasting_environment(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment of a process whose participant never times out, so that a kill does not remove it."""
    names, section = profile_variables(os.environ), "<discovery_config>"
    profile = Path(env[names[0]]).read_text(encoding="utf-8")
    assert profile.count(section) == 1
    path = folder / "lasting.xml"
    lease = "<leaseDuration><sec>DURATION_INFINITY</sec></leaseDuration>"
    path.write_text(profile.replace(section, section + lease), encoding="utf-8")
    return {**env, **dict.fromkeys(names, str(path))}
