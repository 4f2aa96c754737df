"""Provide definition and type hash of message types, from ``rosbags`` or from the package of the type.

Only a type that ``rosbags`` lacks needs ROS.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

from bipedsim.errors import ConfigError


@functools.cache
def _store() -> Any:
    """Return the types of the sourced ROS distribution; of Jazzy if none is sourced, as with wheels."""
    distribution = f"ros2_{os.environ.get('ROS_DISTRO', '')}"
    known = distribution in {store.value for store in Stores}
    return get_typestore(Stores(distribution) if known else Stores.ROS2_JAZZY)


def _nested(description: Any) -> Iterator[str]:
    """Yield the message type in a field's description, if the field is a message or a sequence of messages."""
    kind, content = description
    if kind == Nodetype.NAME:
        yield content
    elif kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        yield from _nested(content[0])


@functools.cache
def _require(msgtype: str) -> None:
    """Register a type and all types nested in it with the store."""
    store = _store()
    if msgtype not in store.fielddefs:
        if msgtype.count("/") != 2:
            raise ConfigError("is none: expected package/msg/Name", "message type", msgtype)
        package = msgtype.split("/")[0]
        try:
            from ament_index_python import get_package_share_directory

            path = Path(get_package_share_directory(package), *msgtype.split("/")[1:]).with_suffix(".msg")
            store.register(get_types_from_msg(path.read_text(encoding="utf-8"), msgtype))
        except (ImportError, KeyError, ValueError, OSError, TypesysError) as error:
            raise ConfigError(
                f"no definition here: install {package}, or source its workspace ({error})", f"message type {msgtype}"
            ) from error
    for _name, description in store.fielddefs[msgtype][1]:
        for name in _nested(description):
            _require(name)


def definition_of(msgtype: str) -> str:
    """Return a type's definition as rosbag2 stores it: its own text, then each nested type once under a ruler.

    Raises:
        ConfigError: A type is not installed, or contains a wide string, which rosbags cannot read.
    """
    _require(msgtype)
    return str(_store().generate_msgdef(msgtype, ros_version=2)[0])


def type_hash_of(msgtype: str) -> str:
    """Return the RIHS01 hash of a type.

    Raises:
        ConfigError: See :func:`definition_of`.
    """
    _require(msgtype)
    return str(_store().hash_rihs01(msgtype))
