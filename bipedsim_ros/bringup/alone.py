"""Check whether a launch would be the only robot in its ROS domain, before any of its nodes starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bipedsim.errors import ConfigError
from bipedsim_ros.wire import free_domain, surely_empty

# The other process searches for some seconds; the rest is a margin for a busy machine.
_PATIENCE_S = 30.0


@contextmanager
def looking_for_robots(env: Mapping[str, str], namespace: str = "") -> Iterator[Callable[[], None]]:
    """Search for other robots in a separate process while the context prepares the launch, unless none is possible.

    Args:
        env: Environment of the nodes.
        namespace: Namespace of the nodes; robots in other namespaces are ignored.

    Yields:
        A function that waits for the result, and raises :class:`ConfigError` if there is another robot.
    """
    domain = env.get("ROS_DOMAIN_ID") or "0"
    # The nodes themselves refuse an invalid domain.
    if not domain.isdecimal() or surely_empty(int(domain), env):
        yield lambda: None
        return
    command = [sys.executable, "-m", "bipedsim_ros.nodes.duplicate_nodes"]
    if namespace:
        command += ["--ros-args", "-r", f"__ns:=/{namespace.strip('/')}", "--"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=env, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:

        def refuse() -> None:
            try:
                robots = process.communicate(timeout=_PATIENCE_S)[0].strip()
            except subprocess.TimeoutExpired:
                process.kill()
                print(
                    f"bipedsim up: the search for other robots in ROS domain {domain} did not end within "
                    f"{_PATIENCE_S:g} s, because this machine is busy. The nodes warn if they find another robot",
                    file=sys.stderr,
                )
                return
            if robots:
                raise ConfigError(
                    f"another robot or simulation is in ROS domain {domain} ({robots}). End it, give this one a "
                    "namespace, such as --namespace r2, or choose another domain: "
                    f"ROS_DOMAIN_ID={free_domain(int(domain))} bipedsim up ..."
                )

        try:
            yield refuse
        finally:
            # If the launch fails for another reason, the search must not delay the error.
            process.kill()
