"""The table of kinds of deployment files: each is told by its keys, and translated to the keys of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bipedsim.config import from_mapping, read_yaml
from bipedsim.control.policy.config import PolicyConfig
from bipedsim.control.policy.readers import isaac_lab, mjlab, unitree_rl_gym, unitree_rl_lab
from bipedsim.errors import ConfigError
from bipedsim.model import Robot

Translation = Callable[[Path, Mapping[str, Any], Robot], dict[str, Any]]


class Kind(NamedTuple):
    """One row of the table.

    Attributes:
        name: What it is called in messages.
        keys: All of them, and no other kind, are in such a file.
        translate: From its path, its contents and the robot to keys of :class:`PolicyConfig`.
    """

    name: str
    keys: tuple[str, ...]
    translate: Translation


KINDS = (
    Kind("unitree_rl_gym", ("policy_path", "num_obs"), unitree_rl_gym.translate),
    Kind("unitree_rl_lab", ("joint_ids_map", "observations"), unitree_rl_lab.translate),
    Kind("Isaac Lab's IO descriptors", ("actions", "articulations", "observations"), isaac_lab.translate),
    Kind("Isaac Lab's env.yaml", ("scene", "sim", "decimation", "observations"), isaac_lab.refuse),
)
"""Kinds in YAML; ONNX files with mjlab's metadata are read by themselves."""

DEEPEST = 8
"""Files that may extend each other."""


def read_deployment(path: Path, robot: Robot, network: Path | None = None, period: float = 0.0) -> PolicyConfig:
    """Return what a deployment file says, of whatever kind.

    Args:
        path: The file.
        robot: Names joints where the file has none.
        network: File of the network instead of that which the file names.
        period: Between two updates [s] instead of the file's; 0: the file's.

    Raises:
        ConfigError: The file cannot be read, is of no kind, or says something wrong.
    """
    values = _translated(path, robot, 0)
    if network is not None:
        values["network"] = str(network)
    if period:
        values["period"] = period
    return from_mapping(PolicyConfig, values, str(path))


def _translated(path: Path, robot: Robot, depth: int) -> dict[str, Any]:
    """Return a file in our own keys, those of files that it extends included; the path of its network is whole."""
    if depth > DEEPEST:
        raise ConfigError(f"{path}: more than {DEEPEST} files extend each other")
    if path.suffix == ".onnx":
        return mjlab.translate(path)
    values = read_yaml(path, dumped=True)
    for kind in KINDS:
        if set(kind.keys) <= set(values):
            try:
                return kind.translate(path, values, robot)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise ConfigError(
                    f"{path}: looks like {kind.name}, and is not written as these are ({type(error).__name__}: {error})"
                ) from error
    if isinstance(values.get("network"), str) and values["network"]:
        values["network"] = str(path.parent / values["network"])
    base = values.pop("extends", None)
    if isinstance(base, str) and base:
        return {**_translated(path.parent / base, robot, depth + 1), **values}
    own = set(PolicyConfig.__dataclass_fields__)
    if not own & set(values):
        kinds = "; ".join(f"{kind.name}: {', '.join(kind.keys)}" for kind in KINDS)
        raise ConfigError(
            f"{path}: no deployment file of a policy: it has neither keys of our own "
            f"({', '.join(PolicyConfig.__dataclass_fields__)}) nor those of {kinds}"
        )
    return values
