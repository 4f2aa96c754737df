"""Restrict the ROS graph to this machine, unless the user chooses otherwise. Does not need ROS.

ROS 2 reads the network range from the environment when rclpy starts. Its default announces every node to the whole
network, where any host may send torques.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bipedsim.config import param
from bipedsim.errors import ConfigError

NETWORKS = ("localhost", "subnet")
DISCOVERY_RANGE, _OLD = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"
# Fast DDS 2 and 3 read different variables and use different formats for durations.
_OLD_PROFILES = "FASTRTPS_DEFAULT_PROFILES_FILE"
_PROFILES = {_OLD_PROFILES: "_2.xml", "FASTDDS_DEFAULT_PROFILES_FILE": ".xml"}
_PROFILE_OF_RANGE = {"LOCALHOST": "this_machine", "SUBNET": "any_machine"}
CHOOSING = (
    *(DISCOVERY_RANGE, _OLD, "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "CYCLONEDDS_URI", *_PROFILES),
    *("ZENOH_SESSION_CONFIG_URI", "ZENOH_ROUTER_CONFIG_URI"),
)
"""Variables with which a user may already have chosen the network."""
THIS_MACHINE = f"the ROS graph is limited to this machine; {DISCOVERY_RANGE}=SUBNET admits others (docs/network.md)"
UNNAMED = "_NODE_NAME_UNKNOWN_"
"""Name that rcl reports for a node whose topics are known before its name."""
NO_NAME = "a node whose name is not known yet"
NAMING_S = 15.0
"""Time to wait for the name of a node whose topics are known [s]. Names arrive on a separate topic, on a busy machine
some seconds later."""
WHERE = (
    "a simulator may still be compiling; else start the robot (for a simulated one: bipedsim up), or look where it is: "
    "both need the same ROS_DOMAIN_ID, and ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET if it is on another machine "
    "(docs/network.md)"
)
"""Advice for the case that no robot is found."""


@dataclass(frozen=True)
class NetworkParams:
    """Network options of the user."""

    network: str = param(
        "",
        "reach of the ROS graph: localhost is this machine only, subnet every host of the network; localhost by "
        "default, unless variables such as ROS_AUTOMATIC_DISCOVERY_RANGE select it (docs/network.md)",
        choices=NETWORKS,
    )


def network_environment(network: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables to set before rclpy starts.

    Args:
        network: One of ``NETWORKS``; empty selects localhost unless ``env`` chooses a network.
        env: The present environment.
    """
    chosen = {name: env[name] for name in CHOOSING if env.get(name)}
    if not network and chosen and chosen != {DISCOVERY_RANGE: "LOCALHOST"}:
        return {}
    if network == "subnet":
        variables = {DISCOVERY_RANGE: "SUBNET"}
    else:
        variables = {DISCOVERY_RANGE: "LOCALHOST"}
        variables |= _profile("LOCALHOST", env)
    # ROS_LOCALHOST_ONLY would take precedence over the discovery range.
    return variables | ({_OLD: "0"} if env.get(_OLD) else {})


def node_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that a node sets for itself, however it was started, before rclpy starts.

    They give Fast DDS our profile for the network of the environment, which they do not change. Otherwise a node that
    is started by hand would wait longer for killed nodes than one of a launch.

    Args:
        env: The present environment.
    """
    if any(env.get(name) for name in CHOOSING if name != DISCOVERY_RANGE):
        return {}
    return _profile(env.get(DISCOVERY_RANGE) or "SUBNET", env)


def _profile(reach: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with our profile of Fast DDS for a discovery range; empty if the user chose otherwise."""
    fast_dds = "fastrtps" in env.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
    chosen = any(env.get(name) for name in ("FASTDDS_BUILTIN_TRANSPORTS", *_PROFILES))
    if not fast_dds or chosen or reach not in _PROFILE_OF_RANGE:
        return {}
    stem = _PROFILE_OF_RANGE[reach]
    return {name: str(Path(__file__).with_name(stem + _PROFILES[name])) for name in profile_variables(env)}


def require_rclpy(otherwise: str = "") -> None:
    """Raise an error with instructions if ROS is not available; ``otherwise`` ends the message.

    Raises:
        ConfigError: rclpy is not installed.
    """
    if importlib.util.find_spec("rclpy") is None:
        raise ConfigError(
            f"rclpy is not installed: run `make setup`, or source /opt/ros/<distro>/setup.bash{otherwise}"
        )


def join_graph(otherwise: str = "") -> None:
    """Prepare the environment of this process, before rclpy starts; tell the user if only this machine takes part.

    Args:
        otherwise: See :func:`require_rclpy`.

    Raises:
        ConfigError: rclpy is not installed.
    """
    require_rclpy(otherwise)
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    variables = network_environment("", os.environ)
    if variables:
        print(THIS_MACHINE, file=sys.stderr)
    os.environ.update(variables)


def profile_variables(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables from which Fast DDS reads its profiles; version 3 warns about the variable of version 2.

    Args:
        env: The environment. Its ``AMENT_PREFIX_PATH`` locates the ROS installation.
    """
    prefixes = [*filter(None, env.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    newer = next((name for at in prefixes for name in ("fastdds", "fastrtps") if Path(at, "share", name).is_dir()), "")
    return tuple(name for name in _PROFILES if name != _OLD_PROFILES or newer != "fastdds")
