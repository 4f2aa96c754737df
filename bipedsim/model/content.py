"""Compute digests of the files that define a robot."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from bipedsim.config import digest_of, read_xml
from bipedsim.model.names import robot_file
from bipedsim.model.schema import read_robot_config, urdf_path
from bipedsim.model.shapes import mesh_path

_URDF = "URDF"


def robot_content(name_or_path: str | Path) -> dict[str, str]:
    """Return the digests of all files that influence the motion of a robot, by file name in robot.yaml or the URDF.

    Args:
        name_or_path: A robot for :func:`bipedsim.model.load_robot`.

    Raises:
        ConfigError: The robot or its URDF does not exist, or robot.yaml cannot be read.
    """
    source = robot_file(name_or_path).absolute()
    files = _described(source, digest_of(source))
    urdf = files[_URDF]
    names = {"robot.yaml": source, **files, **_meshes(urdf, digest_of(urdf))}
    return {name: digest_of(path) for name, path in names.items()}


@lru_cache(maxsize=64)
def _described(source: Path, _digest: str) -> dict[str, Path]:
    """Return the files that a robot.yaml names; the result is cached until its content changes."""
    config = read_robot_config(source)
    loops = {config.loops_from: source.parent / config.loops_from} if config.loops_from else {}
    return {_URDF: urdf_path(config.urdf, source), **loops}


@lru_cache(maxsize=64)
def _meshes(urdf: Path, _digest: str) -> dict[str, Path]:
    """Return the existing meshes of a URDF's collision geometry."""
    names = [mesh.get("filename", "") for mesh in read_xml(urdf)[0].iterfind(".//collision//mesh")]
    paths = {name: mesh_path(name, urdf) for name in names}
    return {name: path for name, path in paths.items() if path is not None}
