"""Parameters as frozen dataclasses: declared once, read from YAML, exposed as ROS parameters.

A parameter is a dataclass field made by :func:`param`, with its unit, range and meaning as metadata. YAML, command
line and ROS read the same fields; an unknown key or a value out of range is a :class:`ConfigError`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import yaml

from bipedsim.errors import ConfigError, UnknownNameError

T = TypeVar("T")


def param(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare a dataclass field with unit, inclusive range [low, high], choices and meaning."""
    metadata = {"doc": doc, "unit": unit, "low": low, "high": high, "choices": choices}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _converted(value: Any, kind: Any, key: str, where: str) -> Any:
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind in (int, bool, str) and type(value) is kind:
        return value
    if kind not in (float, int, bool, str):
        return value
    raise ConfigError(f"{where}: {key} = {value!r} must be of type {kind.__name__}, not {type(value).__name__}")


def _check_range(value: Any, field: dataclasses.Field[Any], where: str) -> None:
    meta = field.metadata
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: {field.name} = {value} must be finite")
    if meta.get("choices") and value not in meta["choices"]:
        raise UnknownNameError(field.name, value, meta["choices"], where)
    low, high = meta.get("low"), meta.get("high")
    unit = f" {meta['unit']}" if meta.get("unit") else ""
    if low is not None and value < low:
        raise ConfigError(f"{where}: {field.name} = {value}{unit} is below its minimum {low}{unit}")
    if high is not None and value > high:
        raise ConfigError(f"{where}: {field.name} = {value}{unit} is above its maximum {high}{unit}")


def from_mapping(cls: type[T], values: Mapping[str, Any] | None, where: str) -> T:
    """Build the dataclass ``cls`` from ``values``, checking names, types and ranges.

    Args:
        cls: A dataclass whose fields were declared with :func:`param`.
        values: Field name to value; missing fields keep their default.
        where: File or argument that the values came from, for messages.

    Raises:
        ConfigError: A value has the wrong type or is out of range.
        UnknownNameError: A key is no field of ``cls``; the message lists the fields.
    """
    if values is not None and not isinstance(values, Mapping):
        raise ConfigError(f"{where}: expected a mapping of {cls.__name__} parameters, got {values!r}")
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    hints = get_type_hints(cls)
    given: dict[str, Any] = {}
    for key, value in (values or {}).items():
        if key not in names:
            raise UnknownNameError("parameter", key, names, where)
        given[key] = _converted(value, hints[key], key, where)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name in given and field.metadata:
            _check_range(given[field.name], field, where)
    return cls(**given)


class _UniqueKeys(yaml.SafeLoader):
    """A loader that refuses a key given twice, where plain YAML would keep the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float)) and key in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(str(key) if isinstance(key, (dict, list)) else key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping from ``path``.

    Raises:
        ConfigError: The file is missing, is no YAML in UTF-8, gives a key twice, or holds no mapping.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not text in UTF-8 (byte {error.start})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping at top level, got {type(data).__name__}")
    return data
