"""Text and type hash of message types: ``rosbags`` knows the standard ones, others are read from their packages."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ament_index_python import PackageNotFoundError, get_package_share_directory
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

from bipedsim.errors import ConfigError


@functools.cache
def _store() -> Any:
    """Return the types of the ROS distribution at hand, of Jazzy where none is sourced, as from wheels."""
    distribution = f"ros2_{os.environ.get('ROS_DISTRO', '')}"
    known = distribution in {store.value for store in Stores}
    return get_typestore(Stores(distribution) if known else Stores.ROS2_JAZZY)


def _nested(description: Any) -> Iterator[str]:
    """Yield the message type in the description of a field, if it is one or a sequence of one."""
    kind, content = description
    if kind == Nodetype.NAME:
        yield content
    elif kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        yield from _nested(content[0])


@functools.cache
def _require(msgtype: str) -> None:
    """Have the store know a type and all that is nested in it."""
    store = _store()
    if msgtype not in store.fielddefs:
        if msgtype.count("/") != 2:
            raise ConfigError(f"{msgtype!r} is no ROS message type: expected package/msg/Name")
        package = msgtype.split("/")[0]
        try:
            path = Path(get_package_share_directory(package), *msgtype.split("/")[1:]).with_suffix(".msg")
            store.register(get_types_from_msg(path.read_text(encoding="utf-8"), msgtype))
        except (PackageNotFoundError, ValueError, OSError, TypesysError) as error:
            raise ConfigError(
                f"no definition of {msgtype}: install {package}, or source its workspace ({error})"
            ) from error
    for _name, description in store.fielddefs[msgtype][1]:
        for name in _nested(description):
            _require(name)


def definition_of(msgtype: str) -> str:
    """Return the definition as rosbag2 stores it: the type's own text, then each nested type once under a ruler.

    Raises:
        ConfigError: The type, or one nested in it, is not installed; or holds a wide string, which rosbags cannot read.
    """
    _require(msgtype)
    return str(_store().generate_msgdef(msgtype, ros_version=2)[0])


def type_hash_of(msgtype: str) -> str:
    """Return the RIHS01 hash.

    Raises:
        ConfigError: As :func:`definition_of`.
    """
    _require(msgtype)
    return str(_store().hash_rihs01(msgtype))
