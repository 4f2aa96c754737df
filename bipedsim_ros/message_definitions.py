"""Text and type hash of installed message types, from the ``share`` folders of ROS, which the wheels have too."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from pathlib import Path

from bipedsim.errors import ConfigError

_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_PRIMITIVES = {"bool", "byte", "char", "float32", "float64", "string", "wstring", *_INTEGERS}
_FIELD = re.compile(r"^([A-Za-z][\w/]*)(?:<=\d+)?(?:\[[^\]]*\])?\s+[A-Za-z]\w*")


def _share_file(msgtype: str, suffix: str) -> Path | None:
    package, kind, name = msgtype.split("/")
    prefixes = [p for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    for prefix in [*prefixes, sys.prefix]:
        path = Path(prefix) / "share" / package / kind / (name + suffix)
        if path.is_file():
            return path
    return None


@functools.cache
def _text(msgtype: str) -> str:
    if msgtype.count("/") != 2:
        raise ConfigError(f"{msgtype!r} is no ROS message type: expected package/msg/Name")
    path = _share_file(msgtype, ".msg")
    if path is None:
        package = msgtype.split("/")[0]
        raise ConfigError(
            f"no definition of {msgtype} in share/{package} below AMENT_PREFIX_PATH or {sys.prefix}: "
            f"install {package}, or source its workspace"
        )
    return path.read_text(encoding="utf-8")


def _nested(msgtype: str) -> list[str]:
    """Return the message types that ``msgtype`` has as fields, in order of appearance."""
    found = []
    for line in _text(msgtype).splitlines():
        match = _FIELD.match(line.split("#")[0].strip())
        if match is None or match[1] in _PRIMITIVES:
            continue
        parts = match[1].split("/")
        package = parts[0] if len(parts) > 1 else "std_msgs" if parts == ["Header"] else msgtype.split("/")[0]
        found.append(f"{package}/msg/{parts[-1]}")
    return found


def definition_of(msgtype: str) -> str:
    """Return the definition as rosbag2 stores it: the type's own text, then each nested type once under a ruler.

    Raises:
        ConfigError: The type, or one nested in it, is not installed.
    """
    order = [msgtype]
    for name in order:
        order += [n for n in dict.fromkeys(_nested(name)) if n not in order]
    parts = [_text(msgtype)]
    for name in order[1:]:
        package, _msg, short = name.split("/")
        parts.append(f"{'=' * 80}\nMSG: {package}/{short}\n{_text(name)}")
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def type_hash_of(msgtype: str) -> str:
    """Return the RIHS01 hash, or an empty string for a distribution older than the hashes (Humble)."""
    path = _share_file(msgtype, ".json")
    if path is None:
        return ""
    for entry in json.loads(path.read_text(encoding="utf-8"))["type_hashes"]:
        if entry["type_name"] == msgtype:
            return str(entry["hash_string"])
    return ""
