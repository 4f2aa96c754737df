"""Declare parameters as fields of frozen dataclasses, with unit, range, choices and description.

:mod:`bipedsim.config.read` reads YAML files, command-line options, launch arguments and ROS parameters with these
declarations.
"""

from __future__ import annotations

import dataclasses
import importlib
import operator
from collections.abc import Mapping
from typing import Any

from bipedsim.errors import ConfigError

Vector = tuple[float, float, float]
"""Three numbers; a list in files."""
Polygon = tuple[tuple[float, float], ...]
"""Points [x, y]."""
PerJoint = float | Mapping[str, float]
"""One number for all joints, or joint name or regular expression to number."""


def param(  # noqa: PLR0913 -- each keyword states one property of the parameter, and most parameters have few
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
    live: bool = False,
) -> Any:
    """Declare a field of a dataclass as a parameter.

    Args:
        default: Default value.
        doc: Description in one line.
        unit: Unit of the value, or of each number in it.
        low, high: Inclusive range of the value, or of each number in it.
        choices: Allowed texts, or ``module:TABLE`` with these texts as keys, imported on demand.
        names: ``module:TABLE`` with names as keys that are allowed in addition to other texts, such as paths.
        required: Whether a value is required.
        path: Whether a text with ``/`` or the suffix of a file is a path relative to the file that contains it.
        live: Whether it can change while its owner runs.
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
        "live": live,
    }
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


_SAME: Any = object()


def like(cls: type[Any], name: str, default: Any = _SAME, doc: str = "", live: bool = False) -> Any:
    """Return the parameter ``name`` of another dataclass as a field, with its unit, range and choices.

    Args:
        cls: Dataclass that declares the parameter.
        name: Name in this dataclass.
        default: Default value, if it differs.
        doc: Description, if it differs.
        live: Whether it can change while its owner runs.
    """
    field = cls.__dataclass_fields__[name]
    metadata = {**field.metadata, "live": live, **({"doc": doc} if doc else {})}
    if default is _SAME and field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=field.default_factory, metadata=metadata)
    return dataclasses.field(default=field.default if default is _SAME else default, metadata=metadata)


def part_of(kind: type[Any], whole: Any, **overrides: Any) -> Any:
    """Build a ``kind``, a dataclass or named tuple, from the equally named fields of ``whole`` and ``overrides``."""
    names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    return kind(**{name: overrides[name] if name in overrides else getattr(whole, name) for name in names})


def without_prefix(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Remove the prefix NAME. that ROS parameters of a controller or contact model have.

    Args:
        values: Parameters with or without the prefix.
        name: Name of the controller or contact model, also as ``package.module:Class``.
    """
    prefix = f"{name.rpartition(':')[2]}."
    return {key.removeprefix(prefix): value for key, value in values.items()}


def choices_of(field: dataclasses.Field[Any], key: str = "choices") -> tuple[str, ...]:
    """Return the allowed texts (``key="choices"``), or the names allowed in addition to other texts (``"names"``)."""
    options = field.metadata.get(key, ())
    if not isinstance(options, str):
        return tuple(options)
    module, _, table = options.partition(":")
    return tuple(getattr(importlib.import_module(module), table)) if options else ()


def meaning_of(field: dataclasses.Field[Any]) -> str:
    """Return a line with names, description and unit of a parameter."""
    meta = field.metadata
    names = choices_of(field, "names")
    text = f"{', '.join(names)}, or {meta['doc']}" if names else str(meta.get("doc", ""))
    return text + (f" [{meta['unit']}]" if meta.get("unit") else "")


def help_of(field: dataclasses.Field[Any], default: str | None = None) -> str:
    """Return a line with description, choices and default of a parameter.

    Args:
        field: The parameter.
        default: Text for the default instead of its value; empty for no text.
    """
    choices = choices_of(field)
    text = meaning_of(field) + (f" ({', '.join(choices)})" if choices else "")
    default = str(field.default) if default is None else default
    return f"{text}; default {default}" if default else text


def checked_seed(seed: Any, name: str = "seed") -> int:
    """Check a random seed and return it as an integer.

    Args:
        seed: An integer of at least 0, also of a NumPy type.
        name: Name of the seed in the message.

    Raises:
        ConfigError: The seed is invalid.
    """
    try:
        number = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise ConfigError("must be an integer of at least 0", name, seed)
    return number
