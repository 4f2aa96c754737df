"""Print the environment with which another Python interpreter can use this one's rclpy (``bipedsim env``)."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bipedsim.config import help_of
from bipedsim.errors import ConfigError
from bipedsim_ros.wire import NetworkParams, network_environment, require_rclpy

# Variables that select the ROS graph; the user's values are kept.
_GRAPH_VARIABLES = ("ROS_DOMAIN_ID", "RMW_IMPLEMENTATION")
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bipedsim env`` to its parser."""
    parser.add_argument(
        "--python",
        metavar="FILE",
        help="interpreter that will use rclpy; its version must be that of rclpy",
    )
    field = NetworkParams.__dataclass_fields__["network"]
    parser.add_argument("--network", default="", choices=field.metadata["choices"], help=help_of(field, ""))


def main(args: argparse.Namespace) -> int:
    """Print ``export`` lines for ``eval``, and notes on stderr; return 0.

    Raises:
        ConfigError: rclpy is not installed, or not for the version of the given interpreter.
    """
    require_rclpy()
    own_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    other_version = own_version if args.python is None else version_of(args.python)
    if other_version != own_version:
        raise ConfigError(
            f"{args.python} is Python {other_version}, but rclpy in {packages()} is for {own_version}. Use Python "
            f"{own_version}, or run `make PYTHON=python{other_version} setup` in another checkout and use that one"
        )
    for name, value in variables(args.network, os.environ).items():
        print(f"export {name}={shlex.quote(value)}")
    print(
        f'Run eval "$(bipedsim env)" in a shell, then start Python {own_version} of any environment. Its own packages '
        f"come after those of {packages()}. To have them first, unset PYTHONPATH and write that folder into a file "
        "bipedsim.pth in its site-packages",
        file=sys.stderr,
    )
    return 0


def packages() -> Path:
    """Return the folder from which rclpy is imported."""
    spec = importlib.util.find_spec("rclpy")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.parent


def version_of(python: str) -> str:
    """Return the version of an interpreter, such as ``"3.11"``.

    Raises:
        ConfigError: The interpreter cannot be started.
    """
    # With the libraries of this interpreter the other might not start.
    env = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    try:
        done = subprocess.run([python, "-c", _VERSION], env=env, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(f"cannot be started ({error})", "--python", python) from error
    return done.stdout.strip()


def variables(network: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that another interpreter needs before it starts.

    Args:
        network: See :func:`bipedsim_ros.wire.network_environment`.
        env: Environment of this process, with the paths of ROS's libraries.
    """
    site = packages()
    # The loader reads LD_LIBRARY_PATH only when a process starts, so an interpreter cannot set it for itself.
    libraries = sorted(site.glob("ros_*.libs"))
    wheels = [str(path) for path in (Path(sys.prefix, "lib"), *libraries)] if libraries else []
    before = [part for part in env.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part]
    paths = [part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
    needed = {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([*paths, str(site)])),
        "LD_LIBRARY_PATH": os.pathsep.join(dict.fromkeys([*wheels, *before])),
        "AMENT_PREFIX_PATH": env.get("AMENT_PREFIX_PATH") or sys.prefix,
        **{name: env[name] for name in _GRAPH_VARIABLES if env.get(name)},
        **network_environment(network, env),
    }
    return {name: value for name, value in needed.items() if value}
