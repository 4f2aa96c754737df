"""Declare ROS parameters from dataclass fields, which define name, default, unit, range, choices and meaning.

A node reads its parameters through :class:`Parameters`. It checks them with the same rules as YAML files and the
command line. It also refuses undeclared parameters, so that a misspelt name is an error and not silently ignored.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter

from bipedsim.config import choices_of, from_mapping, meaning_of
from bipedsim.errors import ConfigError, UnknownNameError

T = TypeVar("T")

_OF_ROS = ("use_sim_time", "start_type_description_service", "qos_overrides.")
_MOST_LISTED = 12
_LARGEST = sys.float_info.max
_LARGEST_INT = 2**63 - 1


def descriptor_of(field: dataclasses.Field[Any], kind: Any, read_only: bool) -> ParameterDescriptor:
    """Return the ROS descriptor of a dataclass field created by :func:`bipedsim.config.fields.param`."""
    meta = field.metadata
    result = ParameterDescriptor(name=field.name, description=meaning_of(field), read_only=read_only)
    choices = choices_of(field)
    if choices:
        result.additional_constraints = "one of: " + ", ".join(choices)
    low, high = meta.get("low"), meta.get("high")
    if low is None and high is None:
        return result
    if kind is float:
        bounds = FloatingPointRange(
            from_value=float(-_LARGEST if low is None else low), to_value=float(_LARGEST if high is None else high)
        )
        result.floating_point_range = [bounds]
    elif kind is int:
        whole = IntegerRange(
            from_value=int(-_LARGEST_INT if low is None else low), to_value=int(_LARGEST_INT if high is None else high)
        )
        result.integer_range = [whole]
    return result


@dataclasses.dataclass
class _Group(Generic[T]):
    """Dataclass whose fields are parameters of the node, and the listener for its changes."""

    cls: type[T]
    prefix: str
    values: dict[str, Any]
    live: frozenset[str]
    listener: Callable[[T], None] | None


def _to_ros(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _to_python(value: Any) -> Any:
    return (
        list(value) if not isinstance(value, (bool, int, float, str, bytes)) and hasattr(value, "__iter__") else value
    )


class ParameterNode(Node):
    """ROS node that says which parameter needs a restart, where rclpy would only say that it is read-only.

    Args:
        name: Name of the node.
        context: Context of rclpy; the default one if None.
    """

    def __init__(self, name: str, context: Context | None = None) -> None:
        super().__init__(name, context=context, automatically_declare_parameters_from_overrides=True)

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """Set all parameters or none; see :meth:`rclpy.node.Node.set_parameters_atomically`."""
        names = [each.name for each in parameter_list if self.has_parameter(each.name)]
        fixed = [name for name in names if self.describe_parameter(name).read_only]
        if not fixed:
            return super().set_parameters_atomically(parameter_list)
        declared = (name for name in self.get_parameters_by_prefix("") if not name.startswith(_OF_ROS))
        live = [name for name in declared if not self.describe_parameter(name).read_only]
        shown = ", ".join(live[:_MOST_LISTED]) + (f" and {len(live) - _MOST_LISTED} more" * (len(live) > _MOST_LISTED))
        these = f"These can change while it runs: {shown}" if live else "None can change while it runs"
        reason = f"{', '.join(fixed)}: needs a restart of {self.get_name()} to change. {these}"
        return SetParametersResult(successful=False, reason=reason)


class Parameters:
    """Parameters of one node.

    Args:
        node: Node created with ``allow_undeclared_parameters=False`` and
            ``automatically_declare_parameters_from_overrides=True``. The latter is the public way to see every
            parameter that the user has set, known or not.
        where: Source of the values for messages, such as ``"parameters of sim_node"``.
    """

    def __init__(self, node: Node, where: str) -> None:
        self._node = node
        self._where = where
        self._groups: list[_Group[Any]] = []
        self._overrides: dict[str, Any] = {}
        for name, parameter in node.get_parameters_by_prefix("").items():
            if not name.startswith(_OF_ROS):
                self._overrides[name] = _to_python(parameter.value)
                node.undeclare_parameter(name)
        self._unused = set(self._overrides)
        node.add_on_set_parameters_callback(self._on_set)
        node.add_post_set_parameters_callback(self._after_set)

    def given(self, prefix: str) -> dict[str, Any]:
        """Return the parameters under ``prefix`` that the user has set, without the prefix."""
        return {name[len(prefix) :]: value for name, value in self._overrides.items() if name.startswith(prefix)}

    def declare(
        self,
        cls: type[T],
        prefix: str = "",
        defaults: Mapping[str, Any] | None = None,
        listener: Callable[[T], None] | None = None,
    ) -> T:
        """Declare every field of the dataclass ``cls`` and return an instance with the values.

        Args:
            cls: Dataclass with fields from :func:`bipedsim.config.fields.param`. A mapping becomes one parameter per
                key.
            prefix: Prefix of every name, such as ``"posture."``.
            defaults: Values that replace the defaults of ``cls``, such as those of a robot.
            listener: Called with the new dataclass after a change of a ``live`` field. Other fields are read-only;
                without a listener, all are.

        Raises:
            ConfigError: A value has the wrong type or is out of range.
            UnknownNameError: A default is not a field of ``cls``.
        """
        hints = get_type_hints(cls)
        fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        overrides: dict[str, Any] = {}
        for name, value in self.given(prefix).items():
            head, _, key = name.partition(".")
            if head in fields and not key and not _is_mapping(hints[head]):
                overrides[head] = value
            elif head in fields and key and _is_mapping(hints[head]):
                overrides.setdefault(head, dict((defaults or {}).get(head) or {}))[key] = value
            else:
                continue
            self._unused.discard(prefix + name)
        result = from_mapping(cls, {**(defaults or {}), **overrides}, self._where)
        live = frozenset(name for name, field in fields.items() if listener and field.metadata.get("live"))
        group = _Group(cls, prefix, {name: getattr(result, name) for name in fields}, live, listener)
        for name, value in group.values.items():
            self._declare_field(fields[name], hints[name], prefix, value, name not in group.live)
        self._groups.append(group)
        return result

    def _declare_field(
        self, field: dataclasses.Field[Any], kind: Any, prefix: str, value: Any, read_only: bool
    ) -> None:
        # rclpy keeps the descriptor and writes the name into it, so each parameter needs its own.
        if _is_mapping(kind):
            for key, entry in (value or {}).items():
                descriptor = descriptor_of(field, _entry_kind(kind), read_only)
                self._node.declare_parameter(f"{prefix}{field.name}.{key}", entry, descriptor, ignore_override=True)
        elif value is not None:
            descriptor = descriptor_of(field, kind, read_only)
            self._node.declare_parameter(prefix + field.name, _to_ros(value), descriptor, ignore_override=True)

    def refuse_unknown(self) -> None:
        """Raise an error for the first parameter that was set but not declared.

        Raises:
            UnknownNameError: The message lists the parameters of the node.
        """
        for name in sorted(self._unused):
            known = [n for n in self._node.get_parameters_by_prefix("") if not n.startswith(_OF_ROS)]
            raise UnknownNameError("parameter", name, sorted(known), self._where)

    def _on_set(self, changes: list[Parameter]) -> SetParametersResult:
        """Check changes with the rules of the dataclass; other callbacks may still refuse them."""
        try:
            self._updated(changes)
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _after_set(self, changes: list[Parameter]) -> None:
        """Apply changes that all callbacks have accepted."""
        for group, values in self._updated(changes):
            group.values = {name: getattr(values, name) for name in group.values}
            if group.listener is not None:
                group.listener(values)

    def _updated(self, changes: list[Parameter]) -> list[tuple[_Group[Any], Any]]:
        """Return the affected groups, each with its new values.

        Raises:
            ConfigError: A change violates the rules of the dataclass.
        """
        updated: list[tuple[_Group[Any], Any]] = []
        for group in self._groups:
            changed: dict[str, Any] = {}
            for parameter in changes:
                name, _, key = parameter.name.removeprefix(group.prefix).partition(".")
                if not parameter.name.startswith(group.prefix) or name not in group.live:
                    continue
                value = _to_python(parameter.value)
                changed[name] = {**changed.get(name, group.values[name]), key: value} if key else value
            if changed:
                updated.append((group, from_mapping(group.cls, {**group.values, **changed}, self._where)))
        return updated


def _entry_kind(kind: Any) -> Any:
    """Return the type of the values of a mapping; None if it is not declared."""
    return next(iter(get_args(kind)[1:]), None)


def _is_mapping(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, Mapping)
