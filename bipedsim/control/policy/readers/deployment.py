"""The table of deployment file formats: keys identify each format, and a function translates it to bipedsim's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bipedsim.config import read_yaml, valid_part
from bipedsim.control.policy.config import MINIMAL, PolicyConfig
from bipedsim.control.policy.network import NETWORKS
from bipedsim.control.policy.readers import (
    agibot_x1,
    berkeley_humanoid_lite,
    booster_gym,
    isaac_lab,
    limx_tron1,
    mjlab,
    rl_sar,
    unitree_rl_gym,
    unitree_rl_lab,
)
from bipedsim.errors import ConfigError
from bipedsim.model import Robot

Translation = Callable[[Path, Mapping[str, Any], Robot], dict[str, Any]]


class DeploymentFormat(NamedTuple):
    """One entry of the table.

    Attributes:
        name: Name of the format in messages.
        keys: Keys that identify the format: a file of this format, and of no other, has all of them, perhaps within its
            only key.
        translate: From the path, content and robot to keys of :class:`PolicyConfig`.
    """

    name: str
    keys: tuple[str, ...]
    translate: Translation


FORMATS = (
    DeploymentFormat("unitree_rl_gym", ("policy_path", "num_obs"), unitree_rl_gym.translate),
    DeploymentFormat("unitree_rl_lab", ("joint_ids_map", "observations"), unitree_rl_lab.translate),
    DeploymentFormat("rl_sar", ("model_name", "observations", "clip_obs"), rl_sar.translate),
    DeploymentFormat(
        "Berkeley Humanoid Lite",
        ("policy_checkpoint_path", "joints", "num_actions"),
        berkeley_humanoid_lite.translate,
    ),
    DeploymentFormat("booster_gym", ("common", "policy", "mech"), booster_gym.translate),
    DeploymentFormat("LimX Tron1", ("loop_frequency", "init_state", "control", "size"), limx_tron1.translate),
    DeploymentFormat("AgiBot X1", ("control_frequecy", "robot_states", "controllers"), agibot_x1.translate),
    DeploymentFormat("Isaac Lab's IO descriptors", ("actions", "articulations", "observations"), isaac_lab.translate),
    DeploymentFormat("Isaac Lab's env.yaml", ("scene", "sim", "decimation", "observations"), isaac_lab.refuse),
)
"""Formats in YAML; ONNX files with mjlab's metadata are recognised by their suffix."""

DEEPEST = 8
"""Largest depth to which files may extend each other."""


class Deployment(NamedTuple):
    """Content of a deployment file.

    Attributes:
        config: The valid keys, and defaults for the others.
        unread: Names of wrong or missing keys.
        faults: Their errors, which the caller raises together with its own.
    """

    config: PolicyConfig
    unread: frozenset[str]
    faults: list[ConfigError]


def read_deployment(path: Path, robot: Robot, network: Path | None = None, period: float = 0.0) -> Deployment:
    """Read a deployment file of any known format.

    Args:
        path: The file.
        robot: Supplies joint names if the file has none.
        network: File of the network, to replace the file's.
        period: Time between two updates [s], to replace the file's; 0 uses the file's.

    Raises:
        ConfigError: The file cannot be read, or has no known format.
    """
    values = _translated(path, robot, 0)
    if network is not None:
        values["network"] = str(network)
    if period:
        values["period"] = period
    return Deployment(*valid_part(PolicyConfig, values, str(path)))


@contextmanager
def _as_of(name: str, path: Path) -> Iterator[None]:
    """Convert what goes wrong with the values of a file into an error that names its kind and, if known, the key."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        why = f"has no key {error.args[0]!r}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        raise ConfigError(f"looks like a file of {name}, and is not written as these are ({why})", path) from error


def _translated(path: Path, robot: Robot, depth: int) -> dict[str, Any]:
    """Return a file in bipedsim's keys, merged with files that it extends; the network path includes the folder."""
    if depth > DEEPEST:
        raise ConfigError(f"more than {DEEPEST} files extend each other", f"{path}: extends")
    if path.suffix == ".onnx":
        with _as_of("mjlab", path):
            return mjlab.translate(path)
    if path.suffix in NETWORKS:
        raise ConfigError(
            f"is a network, which does not say what it reads and moves. Write a deployment file next to it: {MINIMAL}",
            path,
        )
    values = read_yaml(path, dumped=True)
    only = next(iter(values.values())) if len(values) == 1 else None
    keys = set(values) | set(only if isinstance(only, Mapping) else ())
    for kind in FORMATS:
        if set(kind.keys) <= keys:
            with _as_of(kind.name, path):
                return kind.translate(path, values, robot)
    encoders = values.get("encoders")
    for part in (values, *(encoders.values() if isinstance(encoders, Mapping) else ())):
        if isinstance(part, dict) and isinstance(part.get("network"), str) and part["network"]:
            part["network"] = str(path.parent / part["network"])
    base = values.pop("extends", None)
    if isinstance(base, str) and base:
        return {**_translated(path.parent / base, robot, depth + 1), **values}
    own_keys = set(PolicyConfig.__dataclass_fields__)
    if not own_keys & set(values):
        kinds = "; ".join(f"{kind.name}: {', '.join(kind.keys)}" for kind in FORMATS)
        raise ConfigError(
            "no deployment file of a policy: it has neither keys of our own "
            f"({', '.join(PolicyConfig.__dataclass_fields__)}) nor those of {kinds}",
            path,
        )
    return values
