"""Whether a bring-up would be the only robot in its ROS domain, found out before any of its nodes starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bipedsim.errors import ConfigError
from bipedsim_ros.wire import free_domain, surely_empty

# The other process looks for some seconds; the rest is for a busy machine.
_PATIENCE_S = 30.0


@contextmanager
def looking_for_robots(env: Mapping[str, str], namespace: str = "") -> Iterator[Callable[[], None]]:
    """Look in a process beside this one, if anybody may be there, while the context prepares the bring-up.

    Args:
        env: Environment of the nodes.
        namespace: Of the nodes; robots in others do not matter.

    Yields:
        A function that waits for what was seen, and raises :class:`ConfigError` where it was another robot.
    """
    given = env.get("ROS_DOMAIN_ID") or "0"
    # What is no domain is refused by the nodes.
    if not given.isdecimal() or surely_empty(int(given), env):
        yield lambda: None
        return
    command = [sys.executable, "-m", "bipedsim_ros.nodes.duplicate_nodes"]
    if namespace:
        command += ["--ros-args", "-r", f"__ns:=/{namespace.strip('/')}", "--"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=env, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:

        def refuse() -> None:
            try:
                found = process.communicate(timeout=_PATIENCE_S)[0].strip()
            except subprocess.TimeoutExpired:
                process.kill()
                print(
                    f"bipedsim up: {_PATIENCE_S:g} s were too short to see who else is in ROS domain {given}, this "
                    "machine is too busy; where another robot is there too, the nodes warn once they meet",
                    file=sys.stderr,
                )
                return
            if found:
                raise ConfigError(
                    f"another robot or simulation is in ROS domain {given} ({found}): end it, give this one a name of "
                    "its own, such as --namespace r2, or choose another domain: "
                    f"ROS_DOMAIN_ID={free_domain(int(given))} bipedsim up ..."
                )

        try:
            yield refuse
        finally:
            # Whatever else is wrong with the bring-up is said at once.
            process.kill()
