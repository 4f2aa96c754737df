"""Convert external values to dataclasses of parameters; all errors in names, types and ranges are reported at once.

Every message has the format ``FILE: key.sub[2] = value must ...``. The type of a field defines its valid values:

* a number, a text, another dataclass, or ``T | None``;
* ``tuple[T, ...]`` or ``list[T]`` for a list, ``tuple[float, float, float]`` for that many numbers;
* ``dict[str, T]`` or ``Mapping[str, T]``;
* a union of these.

A dataclass may have a method ``problems()`` that yields inconsistencies between its fields: texts, or
:class:`ConfigError` with the name of a field as the place.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from xml.etree import ElementTree

import yaml

from bipedsim.config.fields import choices_of
from bipedsim.config.files import open_file
from bipedsim.config.syntax import DuplicateKeyError, decoded_xml, parse_xml, yaml_fault
from bipedsim.errors import BipedSimError, ConfigError, UnknownNameError

T = TypeVar("T")

_SCALARS = {float: "a finite number", int: "a whole number", bool: "true or false", str: "a text"}
_PLURALS = {float: "numbers", int: "whole numbers", bool: "true or false", str: "texts"}
_COUNTS = {2: "two", 3: "three", 4: "four", 6: "six"}
_SPELT = {True: ("y", "yes", "on", "true"), False: ("n", "no", "off", "false")}
"""Unquoted texts that YAML 1.1 or ROS convert to true or false."""
_WRONG: Any = object()
HEIGHT_SUFFIXES = (".png", ".npy", ".tif", ".tiff")
"""Suffixes of files with heights of the ground, in lower case."""
SCENE_SUFFIX = ".xml"
"""Suffix of MJCF scenes, in lower case."""
LONGEST = 32 << 20
"""Maximum size of a parameter file [bytes]."""
FAULTS = 50
"""Maximum number of errors in a message."""
MOST, DEEPEST, LARGEST = 300_000, 40, 10**300
"""Maximum number of values in a file, nesting depth of lists, and largest integer."""
KEPT = 64 << 10
"""Maximum length of a text whose value is cached, so that a file that is read repeatedly is parsed once."""


def together(faults: Sequence[BipedSimError], kind: type[BipedSimError] = ConfigError) -> None:
    """Raise all collected errors: a single one unchanged, several as one error with a line for each.

    Args:
        faults: The errors.
        kind: Class of the error that holds several.

    Raises:
        BipedSimError: There are errors.
    """
    faults = [one for fault in faults for one in fault.faults or (fault,)]
    if len(faults) == 1:
        raise faults[0]
    if faults:
        rest = [f"and {len(faults) - FAULTS} more"] * (len(faults) > FAULTS)
        error = kind("\n  ".join([f"{len(faults)} errors:", *map(str, faults[:FAULTS]), *rest]))
        error.faults = tuple(faults)
        raise error


def check_all(checks: Iterable[Callable[[], object]]) -> None:
    """Call all checks, and raise their errors as :func:`together` does.

    Raises:
        ConfigError: At least one check raised it.
    """
    faults = []
    for check in checks:
        try:
            check()
        except ConfigError as fault:
            faults.append(fault)
    together(faults)


def from_mapping(cls: type[T], values: Mapping[str, Any] | None, where: str, folder: Path | None = None) -> T:
    """Build the dataclass ``cls`` from ``values``, checking names, types and ranges.

    Args:
        cls: A dataclass whose fields are declared with :func:`bipedsim.config.param`.
        values: Field name to value; missing fields keep their default.
        where: File or argument that contains the values, for messages.
        folder: Base folder of relative paths in the values.

    Raises:
        ConfigError: A value has the wrong type or is out of range, or there are several errors.
        UnknownNameError: A key is not a field of ``cls``; the message lists the fields.
    """
    if values is not None and not isinstance(values, Mapping):
        raise ConfigError(f"must be a mapping of {cls.__name__} parameters", where, values)
    reader = _ConfigReader(where, folder)
    result = reader.build(cls, values or {}, "")
    together(reader.faults)
    return result


def valid_part(cls: type[T], values: Mapping[str, Any], where: str) -> tuple[T, frozenset[str], list[ConfigError]]:
    """Build the dataclass ``cls`` from the valid keys, for a caller that raises these errors with its own.

    Args:
        cls, values, where: As for :func:`from_mapping`.

    Returns:
        The dataclass, with defaults for wrong and missing keys; the names of these keys; and all errors.
    """
    reader = _ConfigReader(where, None)
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        before = len(reader.faults)
        found = reader.arguments(cls, {name: value}, "")
        if len(reader.faults) == before:
            arguments |= found
    missing = reader.missing(cls, values, "")
    known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**arguments), frozenset(known & {*values} - {*arguments}) | missing, reader.faults


def from_file(cls: type[T], path: Path) -> T:
    """Build the dataclass ``cls`` from a YAML file; paths in it are relative to its folder.

    Raises:
        ConfigError: As for :func:`read_yaml` and :func:`from_mapping`.
    """
    return from_mapping(cls, read_yaml(path), str(path), path.parent)


def check(config: Any, where: str) -> None:
    """Check a dataclass that the caller has filled, with the rules of :func:`from_mapping`.

    Raises:
        ConfigError: As for :func:`from_mapping`.
    """
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    # None stands for the default, for any type of field.
    assigned = {f.name: values[f.name] for f in dataclasses.fields(config) if values[f.name] is not None}
    from_mapping(type(config), assigned, where)


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return the types of the fields of a dataclass; cached, because they are evaluated at every call."""
    return get_type_hints(cls)


class _ConfigReader:
    """Reader of one source that collects all errors in ``faults``."""

    def __init__(self, source: str, folder: Path | None) -> None:
        self.faults: list[ConfigError] = []
        self._source = source
        self._folder = folder

    def _at(self, key: str) -> str:
        return f"{self._source}: {key}" if key else self._source

    def _fault(self, key: str, value: Any, text: str) -> Any:
        self.faults.append(ConfigError(text, self._at(key), value))
        return _WRONG

    def build(self, cls: type[Any], values: Mapping[str, Any], key: str) -> Any:
        """Return a filled ``cls``, or ``_WRONG`` if there are errors."""
        before = len(self.faults)
        arguments = self.arguments(cls, values, key)
        self.missing(cls, values, key)
        if len(self.faults) > before:
            return _WRONG
        result = cls(**arguments)
        for problem in getattr(result, "problems", tuple)():
            fault = problem if isinstance(problem, ConfigError) else ConfigError(problem)
            self.faults.append(fault.within(self._at(key)))
        return result

    def arguments(self, cls: type[Any], values: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return the values for the fields of ``cls``; wrong ones are ``_WRONG``, or contain it."""
        fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
        hints = _hints(cls)  # type: ignore[arg-type]
        arguments: dict[str, Any] = {}
        for name, value in values.items():
            if name not in fields:
                self.faults.append(UnknownNameError("parameter", str(name), fields, self._at(key)))
            elif not (value is None and _may_be_left_empty(hints[name])):
                arguments[name] = self.value(value, hints[name], f"{key}.{name}" if key else name, fields[name])
        return arguments

    def missing(self, cls: type[Any], values: Mapping[str, Any], key: str) -> frozenset[str]:
        """Report the required fields of ``cls`` that have no value, and return their names."""
        required = [field.name for field in dataclasses.fields(cls) if field.metadata.get("required")]
        names = [name for name in required if values.get(name) in (None, "", [], {})]
        for name in names:
            self.faults.append(ConfigError("this key is missing", self._at(f"{key}.{name}" if key else name)))
        return frozenset(names)

    def value(self, value: Any, kind: Any, key: str, field: dataclasses.Field[Any]) -> Any:
        """Return ``value`` converted to ``kind``, or ``_WRONG`` if it is invalid."""
        kinds = _alternatives(kind)
        if any(map(dataclasses.is_dataclass, kinds)):
            # A dataclass that a caller has filled is also checked.
            value = vars(value) if dataclasses.is_dataclass(value) else {} if value is None else value
        if value is None and types.NoneType in kinds:
            return None
        kinds = tuple(candidate for candidate in kinds if candidate is not types.NoneType)
        if isinstance(value, bool) and str in kinds and bool not in kinds:
            matching = [name for name in choices_of(field) if name.lower() in _SPELT[value]]
            if len(matching) != 1:
                expected, word = " or ".join(map(_described, kinds)), _SPELT[value][0]
                explanation = f"{', '.join(_SPELT[value])} say {str(value).lower()} where they are not quoted"
                return self._fault(
                    key, value, f"must be {expected}; {explanation}: '{word}' in a file, \"'{word}'\" in a shell"
                )
            value = matching[0]
        candidate = next((candidate for candidate in kinds if _fits(value, candidate)), kinds[0])
        origin, arguments = get_origin(candidate) or candidate, get_args(candidate)
        if not _fits(value, candidate):
            quoted = f"; in quotes it is one: '{value}' in a file, \"'{value}'\" in a shell"
            hint = quoted if str in kinds and isinstance(value, (int, float)) else _digits_hint(value)
            return self._fault(key, value, f"must be {' or '.join(map(_described, kinds))}{hint}")
        if dataclasses.is_dataclass(origin):
            return self.build(candidate, value, key)
        if _is_mapping(origin):
            entry = arguments[1] if arguments else Any
            return {str(k): self.value(v, entry, f"{key}.{k}", field) for k, v in value.items()}
        if origin in (tuple, list, Sequence):
            entries = _entries(arguments, len(value))
            if len(entries) != len(value):
                return self._fault(key, value, f"must be {_described(candidate)}")
            pairs = enumerate(zip(value, entries, strict=True))
            items = [self.value(v, entry, f"{key}[{i}]", field) for i, (v, entry) in pairs]
            return items if origin is list else tuple(items)
        return self._scalar(value, origin, key, field)

    def _scalar(self, value: Any, kind: Any, key: str, field: dataclasses.Field[Any]) -> Any:
        if kind is float:
            if not _is_finite(value):
                return self._fault(key, value, "must be a finite number")
            value = float(value)
        meta = field.metadata
        if kind is str:
            if meta.get("choices") and value not in choices_of(field):
                parent, _, name = key.rpartition(".")
                self.faults.append(UnknownNameError(name, value, choices_of(field), self._at(parent)))
                return _WRONG
            keep_text = self._folder is None or not meta.get("path")
            return value if keep_text else from_folder(value, self._folder)
        low, high = meta.get("low"), meta.get("high")
        unit = f"{meta['unit']} " if meta.get("unit") else ""
        numeric = kind in (float, int)
        for bound, violated, text in (
            (low, numeric and low is not None and value < low, "below its minimum"),
            (high, numeric and high is not None and value > high, "above its maximum"),
        ):
            if violated:
                return self._fault(key, value, f"{unit}is {text} {bound} {unit}".rstrip())
        return value


def _is_mapping(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Mapping)


def _may_be_left_empty(kind: Any) -> bool:
    """Return whether a key without a value, such as ``feet:``, counts as missing."""
    return any(
        _is_mapping(get_origin(alternative) or alternative) or get_origin(alternative) in (tuple, list)
        for alternative in _alternatives(kind)
    )


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _fits(value: Any, kind: Any) -> bool:
    """Return whether ``value`` has the outer type of ``kind``; its content is checked later."""
    origin = get_origin(kind) or kind
    if dataclasses.is_dataclass(origin) or _is_mapping(origin):
        return isinstance(value, Mapping)
    if origin in (tuple, list, Sequence):
        return isinstance(value, (tuple, list))
    if origin is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return origin not in _SCALARS or type(value) is origin


def _is_finite(value: float) -> bool:
    # Python integers can be larger than any float.
    return abs(value) <= sys.float_info.max


def _digits_hint(value: Any) -> str:
    """Return how to write a number that YAML 1.1 reads with base 8 or 60; empty for other values."""
    if not isinstance(value, str) or not re.fullmatch(r"[-+]?\d+(:\d+)*", value):
        return ""
    return "; write one number, without a colon" if ":" in value else "; write it without leading zeros or quotes"


def _entries(arguments: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Return the type of each entry of a list."""
    if not arguments:
        return (Any,) * count
    return (arguments[0],) * count if len(arguments) == 1 or arguments[1] is Ellipsis else arguments


def _described(kind: Any) -> str:
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin in _SCALARS:
        return _SCALARS[origin]
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return f"{_COUNTS.get(len(arguments), len(arguments))} numbers"
    if origin in (tuple, list, Sequence):
        return "a list" + _of(" of ", arguments[0] if arguments else Any)
    return "a mapping" + _of(" of names to ", arguments[1] if len(arguments) > 1 else Any)


def _of(joint: str, kind: Any) -> str:
    """Describe the entries of a list or mapping, as a suffix to its name."""
    origin = get_origin(kind) or kind
    if origin in _SCALARS:
        return joint + _PLURALS[origin]
    if origin in (tuple, list, Sequence):
        return f"{joint}lists"
    return "" if kind is Any else f"{joint}mappings"


def from_folder(text: str, folder: Path | None) -> str:
    """Resolve the path of a file relative to ``folder``; a name is returned unchanged."""
    return os.path.realpath(folder / text) if folder is not None and is_path(text) else text


def is_path(text: str) -> bool:
    """Return whether a text is the path of a file and not a name; suffixes may have any letter case."""
    return not text.lstrip().startswith("{") and (
        "/" in text or text.lower().endswith((".yaml", ".yml", *HEIGHT_SUFFIXES, SCENE_SUFFIX))
    )


def flow_text(values: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text in braces, on one line."""
    return str(yaml.safe_dump(dict(values), default_flow_style=True, width=math.inf, sort_keys=False)).strip()


def in_braces(text: str, where: str) -> dict[str, Any] | None:
    """Return the mapping that a text in braces contains; None for another text.

    Raises:
        ConfigError: The text begins with a brace and is no valid YAML.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        return dict(yaml_value(text))
    except (yaml.YAMLError, TypeError, ValueError) as error:
        if isinstance(error, yaml.YAMLError):
            raise yaml_fault(error, text, where) from error
        raise ConfigError("is no mapping", where, text) from error


def number(value: Any, where: str) -> float:
    """Return ``value`` as a finite float.

    Raises:
        ConfigError: The value is not a finite number.
    """
    if not _fits(value, float) or not _is_finite(value):
        raise ConfigError(f"must be {_SCALARS[float]}{_digits_hint(value)}", where, value)
    return float(value)


def per_joint(values: Any, names: Sequence[str], where: str) -> dict[str, Any]:
    """Expand ``{joint name or regular expression: value}`` to the joints; the last matching entry is used.

    A key that is the name of a joint matches only this joint.

    Args:
        values: The mapping, one value for every joint, or None for nothing.
        names: Valid joint names.
        where: File and key, for messages.

    Raises:
        UnknownNameError: A key matches no joint; the message lists the joints.
        ConfigError: A key is not a valid regular expression, or several keys are wrong.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        return dict.fromkeys(names, values)
    value_of: dict[str, Any] = {}
    faults: list[ConfigError] = []
    for pattern, value in values.items():
        try:
            matches = [pattern] if pattern in names else [n for n in names if re.fullmatch(str(pattern), n)]
        except re.error as error:
            faults.append(
                ConfigError(f"is neither a joint nor a regular expression ({error})", f"{where}: name", pattern)
            )
            continue
        if not matches:
            faults.append(UnknownNameError("joint", str(pattern), names, where))
        value_of.update(dict.fromkeys(matches, value))
    together(faults)
    return value_of


def numbers_per_joint(values: Any, names: Sequence[str], where: str, low: float = -math.inf) -> dict[str, float]:
    """Expand values as :func:`per_joint` does, and check that they are finite numbers of at least ``low``."""
    numbers = {n: number(v, f"{where}.{n}") for n, v in per_joint(values, names, where).items()}
    for name, value in numbers.items():
        if value < low:
            raise ConfigError(f"is below its minimum {low}", f"{where}.{name}", value)
    return numbers


class _Loader(yaml.SafeLoader):
    """Loader that refuses duplicate keys, where plain YAML keeps the last one, and reads numbers as people do.

    1e-3 is a number. 010 and 1:30 are texts, which YAML 1.1 reads as 8 and 90.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._checked: set[int] = set()

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            # Invalid dates and numbers of thousands of digits raise these errors, without their position.
            raise yaml.constructor.ConstructorError(problem=str(error), problem_mark=node.start_mark) from error

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # A merge adds keys to the node, which its own keys may override, so only its first state is checked.
        if id(node) not in self._checked:
            self._checked.add(id(node))
            self._check_keys(node)
        super().flatten_mapping(node)

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key_node, _ in node.value:
            special = key_node.tag in ("tag:yaml.org,2002:merge", "tag:yaml.org,2002:value")
            key = key_node.value if special else self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float)) and key in seen:
                raise DuplicateKeyError(problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(str(key) if isinstance(key, (dict, list)) else key)


_Loader.yaml_implicit_resolvers = {
    first: [entry for entry in entries if entry[0] not in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in (
    ("float", r"\.(nan|NaN|NAN)$"),
    ("int", r"[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0b[01_]+)$"),
    (
        "float",
        r"[-+]?(([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.inf|\.Inf|\.INF)$",
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list("-+.0123456789"))


class _DumpLoader(_Loader):
    """Loader that reads dumped Python objects as plain lists, mappings and texts, without creating objects."""


def _plain(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return str(node.value) or suffix


_DumpLoader.add_multi_constructor("tag:yaml.org,2002:python/", _plain)


def yaml_value(text: str, dumped: bool = False) -> Any:
    """Parse a YAML text.

    Args:
        text: The text.
        dumped: Allow objects that a program has dumped; they are read as lists, mappings and texts.

    Raises:
        yaml.YAMLError: The text is invalid, or its value is too large for a parameter file.
    """
    return copy.deepcopy(_known_value(text, dumped) if len(text) <= KEPT else _value(text, dumped))


def _value(text: str, dumped: bool) -> Any:
    try:
        value = yaml.load(text, Loader=_DumpLoader if dumped else _Loader)
    except RecursionError as error:
        raise yaml.YAMLError("brackets are nested too deeply") from error
    _check_size(value)
    return value


# The YAML parser is pure Python and takes most of the time for loading a robot.
_known_value = lru_cache(maxsize=64)(_value)


def _check_size(value: Any) -> None:
    """Refuse values that contain themselves or that nested anchors make too large for a message."""
    pending, depth, count = [value], 0, 0
    while pending:
        depth, count = depth + 1, count + len(pending)
        if depth > DEEPEST or count > MOST:
            raise yaml.YAMLError(f"it holds itself, more than {MOST} values, or lists in lists {DEEPEST} deep")
        for item in pending:
            if isinstance(item, int) and abs(item) > LARGEST:
                raise yaml.YAMLError(f"a whole number of {item.bit_length()} bits is too large")
        inner = (
            item.values() if isinstance(item, dict) else item
            for item in pending
            if isinstance(item, (dict, list, tuple))
        )
        pending = list(itertools.islice(itertools.chain.from_iterable(inner), MOST + 1))


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        ConfigError: The file is missing, is not text in UTF-8, or is far too large.
    """
    try:
        return _raw(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not text in UTF-8 (byte {error.start})", path) from error


def read_xml(path: Path) -> tuple[ElementTree.Element, str, list[str]]:
    """Return the root element of an XML file in any encoding, its text, and warnings (:func:`decoded_xml`).

    Raises:
        ConfigError: The file is missing, is far too large, or is not valid XML.
    """
    text, warning = decoded_xml(_raw(path), str(path))
    return parse_xml(text, str(path)), text, [warning] if warning else []


def _raw(path: Path) -> bytes:
    """Return the content of a file."""
    with open_file(path) as file:
        raw = file.read(LONGEST + 1)
    if len(raw) > LONGEST:
        raise ConfigError(f"larger than {LONGEST >> 20} MiB, the maximum of such a file", path)
    return raw


def read_yaml(path: Path, dumped: bool = False) -> dict[str, Any]:
    """Read a YAML mapping from ``path``; ``dumped`` is as for :func:`yaml_value`.

    Raises:
        ConfigError: The file is missing, is not YAML in UTF-8, has a duplicate key, or is not a mapping.
    """
    text = read_text(path)
    try:
        data = yaml_value(text, dumped)
    except yaml.YAMLError as error:
        raise yaml_fault(error, text, str(path)) from error
    if not isinstance(data, dict):
        raise ConfigError(f"expected a mapping at top level, got {type(data).__name__}", path)
    return data
