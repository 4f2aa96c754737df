"""Who on the network sees and commands what is started here: this machine alone, unless somebody says otherwise.

ROS 2 reads it from the environment when rclpy starts. Its own default announces every node to the whole network, where
anybody may send torques. Nothing here needs ROS.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bipedsim.config import help_of, param

NETWORKS = ("localhost", "subnet")
DISCOVERY_RANGE, _OLD = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"
# Fast DDS 2 and 3 read different names, and spell out their times differently.
_OLD_PROFILES = "FASTRTPS_DEFAULT_PROFILES_FILE"
_PROFILES = {
    _OLD_PROFILES: str(Path(__file__).with_name("this_machine_2.xml")),
    "FASTDDS_DEFAULT_PROFILES_FILE": str(Path(__file__).with_name("this_machine.xml")),
}
CHOOSING = (
    *(DISCOVERY_RANGE, _OLD, "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "CYCLONEDDS_URI", *_PROFILES),
    *("ZENOH_SESSION_CONFIG_URI", "ZENOH_ROUTER_CONFIG_URI"),
)
"""Variables by which a user has already said it."""
THIS_MACHINE = "only this machine takes part in the ROS graph; --network subnet lets others in (docs/network.md)"
UNNAMED = "_NODE_NAME_UNKNOWN_"
"""What rcl calls a node whose topics are known and whose name is not yet."""
NO_NAME = "a node whose name is not known yet"
NAMING_S = 15.0
"""How long to wait for the name of a node whose topics are known [s]: names come on a topic of their own, on a busy
machine some seconds later."""
WHERE = (
    "a simulator may still be compiling; else start the robot (for a simulated one: bipedsim up), or look where it is: "
    "both need the same ROS_DOMAIN_ID, and --network subnet if it is on another machine (docs/network.md)"
)
"""What to do where no robot is found."""


@dataclass(frozen=True)
class NetworkParams:
    """What a user may say of it."""

    network: str = param(
        "",
        "who takes part in the ROS graph: localhost is this machine alone, subnet every host of the network; localhost "
        "by default, unless variables such as ROS_AUTOMATIC_DISCOVERY_RANGE say it (docs/network.md)",
        choices=NETWORKS,
    )


def network_environment(network: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are to be set before rclpy starts.

    Args:
        network: One of ``NETWORKS``; empty is localhost where ``env`` says nothing else.
        env: The environment as it is.
    """
    chosen = {name: env[name] for name in CHOOSING if env.get(name)}
    if not network and chosen and chosen != {DISCOVERY_RANGE: "LOCALHOST"}:
        return {}
    if network == "subnet":
        found = {DISCOVERY_RANGE: "SUBNET"}
    else:
        found = {DISCOVERY_RANGE: "LOCALHOST"}
        fast_dds = "fastrtps" in env.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
        # Whoever has chosen transports or profiles keeps them.
        if fast_dds and not any(env.get(name) for name in ("FASTDDS_BUILTIN_TRANSPORTS", *_PROFILES)):
            found |= {name: _PROFILES[name] for name in profile_variables(env)}
    # It would win.
    return found | ({_OLD: "0"} if env.get(_OLD) else {})


def profile_variables(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables by which Fast DDS is told its profiles: its version 3 warns of the name that 2 reads.

    Args:
        env: The environment, whose ``AMENT_PREFIX_PATH`` says where ROS is installed.
    """
    prefixes = [*filter(None, env.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    newer = next((name for at in prefixes for name in ("fastdds", "fastrtps") if Path(at, "share", name).is_dir()), "")
    return tuple(name for name in _PROFILES if name != _OLD_PROFILES or newer != "fastdds")


def add_network_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--network`` of a command that takes part in the graph by itself."""
    field = NetworkParams.__dataclass_fields__["network"]
    parser.add_argument("--network", default="", choices=NETWORKS, help=help_of(field, ""))
