"""Change parameters that a dataclass declares live, and describe the changes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from bipedsim.config.fields import param
from bipedsim.config.read import from_mapping, yaml_value
from bipedsim.errors import ConfigError, UnknownNameError

T = TypeVar("T")


@dataclass(frozen=True)
class ParameterChange:
    """Describe a new value of a live parameter: an entry of ``changes`` in a scenario file."""

    at: float = param(0.0, "time from which on it applies", unit="s", low=0.0, high=1e9)
    name: str = param("", "live parameter of the controller, such as stiffness or kp.l_knee", required=True)
    value: bool | int | float | str = param(0.0, "its new value", required=True)
    of: str = param("controller", "owner of the parameter", choices=("controller", "drives"))

    def text(self) -> str:
        """Return the change as a text for :func:`parse_changes`, without loss of precision."""
        return f"{float(self.at)!r} {self.name} {json.dumps(self.value)}"

    def __str__(self) -> str:
        value = f"{self.value:.6g}" if isinstance(self.value, float) else self.value
        return f"{self.name} = {value}"


def parse_changes(texts: Sequence[str]) -> tuple[ParameterChange, ...]:
    """Read changes from ``'at name value'``, with the time in s.

    Raises:
        ConfigError: A text has another form.
    """
    result = []
    for text in texts:
        form = "must be 'at name value', such as '1.5 stiffness 20.0'"
        try:
            at, name, value = text.split(maxsplit=2)
            values = {"at": float(at), "name": name, "value": yaml_value(value)}
            result.append(from_mapping(ParameterChange, values, "it says"))
        except (ValueError, yaml.YAMLError, ConfigError) as error:
            raise ConfigError(f"{form}; {error}", "changes", text) from error
    return tuple(result)


def with_changes(params: T, values: Mapping[str, Any], where: str) -> T:
    """Return a dataclass of parameters with new values of live fields, checked as at the start.

    Args:
        params: The dataclass.
        values: Name of the field to its new value; ``kp.l_knee`` is an entry of the mapping ``kp``.
        where: Source of the values, for messages.

    Raises:
        UnknownNameError: A name is not a field; the message lists the live fields.
        ConfigError: A field is not live, or a value is not valid.
    """
    fields = {field.name: field for field in dataclasses.fields(params)}  # type: ignore[arg-type]
    live = [name for name, field in fields.items() if field.metadata.get("live")]
    new = {name: getattr(params, name) for name in fields}
    for path, value in values.items():
        name, _, key = path.partition(".")
        if name not in fields:
            raise UnknownNameError("live parameter", name, live, where)
        if name not in live:
            these = f"these can change while it runs: {', '.join(live)}" if live else "none of them can"
            raise ConfigError(f"needs a restart to change; {these}", f"{where}: {name}")
        new[name] = {**(new[name] or {}), key: value} if key else value
    return from_mapping(type(params), {name: value for name, value in new.items() if value is not None}, where)


def differences(old: Any, new: Any) -> dict[str, Any]:
    """Return the fields of the dataclass ``new`` that differ from ``old``, as :func:`with_changes` takes them."""
    result: dict[str, Any] = {}
    for name in (field.name for field in dataclasses.fields(new)):
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(after, Mapping):
            known = before if isinstance(before, Mapping) else {}
            result |= {f"{name}.{key}": value for key, value in after.items() if known.get(key) != value}
        elif before != after:
            result[name] = after
    return result
