"""Parameters as fields of frozen dataclasses: each is declared once, with its unit, range, choices and meaning.

YAML files, the command line, launch arguments and ROS parameters are read from these declarations by
:mod:`bipedsim.config.read`, and described from them.
"""

from __future__ import annotations

import dataclasses
import importlib
import operator
from collections.abc import Mapping
from typing import Any

from bipedsim.errors import ConfigError, shown

Vector = tuple[float, float, float]
"""Three numbers, in files a list."""
Polygon = tuple[tuple[float, float], ...]
"""Points [x, y]."""


def param(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | str = (),
    names: str = "",
    required: bool = False,
    path: bool = False,
) -> Any:
    """Declare a field of a dataclass as a parameter.

    Args:
        default: What holds where nothing is given.
        doc: What it means, in one line.
        unit: Of the value, or of each number in it.
        low, high: Inclusive range of the value, or of each number in it.
        choices: What a text may be; or ``module:TABLE`` whose keys these are, imported when they are needed.
        names: ``module:TABLE`` whose keys a text may be beside others, such as paths.
        required: Whether it must be given.
        path: Whether a text with ``/`` or the suffix of a YAML file is a path from the folder of the file that says it.
    """
    metadata = {
        "doc": doc,
        "unit": unit,
        "low": low,
        "high": high,
        "choices": choices,
        "names": names,
        "required": required,
        "path": path,
    }
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


_SAME: Any = object()


def like(cls: type[Any], name: str, default: Any = _SAME, doc: str = "") -> Any:
    """Return the parameter ``name`` of another dataclass as a field, with its unit, range and choices.

    Args:
        cls: Where the parameter is declared.
        name: Its name there.
        default: What holds here where nothing is given, if that differs.
        doc: What it means here, if there is more to say.
    """
    field = cls.__dataclass_fields__[name]
    metadata = {**field.metadata, **({"doc": doc} if doc else {})}
    if default is _SAME and field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=field.default_factory, metadata=metadata)
    return dataclasses.field(default=field.default if default is _SAME else default, metadata=metadata)


def part_of(kind: type[Any], whole: Any, **given: Any) -> Any:
    """Return a ``kind``, a dataclass or named tuple, of the fields of ``whole`` by its names, or those ``given``."""
    names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    return kind(**{name: given[name] if name in given else getattr(whole, name) for name in names})


def without_prefix(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return parameters by their own names: NAME.kp, as ROS calls that of the controller NAME, is kp.

    Args:
        values: What was given.
        name: Of controller or contact model, ``package.module:Class`` too.
    """
    prefix = f"{name.rpartition(':')[2]}."
    return {key.removeprefix(prefix): value for key, value in values.items()}


def choices_of(field: dataclasses.Field[Any], key: str = "choices") -> tuple[str, ...]:
    """Return what a text may be (``key="choices"``), or the names that it may be beside others (``"names"``)."""
    given = field.metadata.get(key, ())
    if not isinstance(given, str):
        return tuple(given)
    module, _, table = given.partition(":")
    return tuple(getattr(importlib.import_module(module), table)) if given else ()


def meaning_of(field: dataclasses.Field[Any]) -> str:
    """Return what a parameter means in a line: its names, its meaning and its unit."""
    meta = field.metadata
    names = choices_of(field, "names")
    text = f"{', '.join(names)}, or {meta['doc']}" if names else str(meta.get("doc", ""))
    return text + (f" [{meta['unit']}]" if meta.get("unit") else "")


def help_of(field: dataclasses.Field[Any], default: str | None = None) -> str:
    """Return meaning, choices and default of a parameter in a line.

    Args:
        field: The parameter.
        default: What to say of its default instead of the value; nothing if it is empty.
    """
    choices = choices_of(field)
    text = meaning_of(field) + (f" ({', '.join(choices)})" if choices else "")
    default = str(field.default) if default is None else default
    return f"{text}; default {default}" if default else text


def checked_seed(seed: Any, name: str = "seed") -> int:
    """Return a seed of random numbers as an integer.

    Args:
        seed: An integer of at least 0, one of NumPy too.
        name: What the message calls it.

    Raises:
        ConfigError: It is none.
    """
    try:
        number = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise ConfigError(f"{name} = {shown(seed)} must be an integer of at least 0")
    return number
