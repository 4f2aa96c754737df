"""The content of all that runs come from: code, robots, grounds, scenarios, and the files that parameters name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bipedsim.config import Files, code_content, digest_of, own_content, read_yaml
from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import find_controller
from bipedsim.errors import BipedSimError
from bipedsim.ground import GROUNDS
from bipedsim.model import robot_content, robot_file
from bipedsim.runs.names import SCENARIO_FILES

_YAML = (".yaml", ".yml", ".json")
_TABLES: Mapping[str, Files] = {"scenario": SCENARIO_FILES, "ground": GROUNDS}
_LONGEST = 4096
"""Characters of the longest path that a text may be."""


def run_content(parts: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return the digests of all that runs depend on beside the parameters themselves, by name.

    These are the simulator and its libraries, the modules of controllers and contact models with all that they import
    (:func:`bipedsim.config.code_content`), the files of robots, grounds and scenarios, and every file that a text
    among the parameters names, with the files that these name in turn.

    Args:
        parts: Names of parameters of a run and their values, such as ``("robot", "biped14")``; names may repeat.

    Raises:
        BipedSimError: A controller, robot, ground or scenario is not there.
    """
    found = dict(own_content())
    given = list(parts)
    folders = [Path()]
    for name, value in given:
        if name == "robot":
            folders.append(robot_file(value).parent)
    _add(found, given, folders)
    return found


def _add(found: dict[str, str], parts: Iterable[tuple[str, Any]], folders: list[Path]) -> None:
    for name, value in parts:
        if not value:
            continue
        if isinstance(value, str) and name == "robot":
            found |= {f"robot {value}: {file}": digest for file, digest in robot_content(value).items()}
        elif isinstance(value, str) and name == "controller":
            found |= _code(value.partition(":")[0] if ":" in value else "", find_controller(value)[1])
        elif isinstance(value, str) and name == "contact_model":
            found |= _code("", CONTACT_MODELS[value])
        elif isinstance(value, str) and name in _TABLES:
            path = _TABLES[name].find(value)
            found[f"{name} {value}"] = digest_of(path)
            _add(found, read_yaml(path).items(), [path.parent, *folders])
        elif isinstance(value, Mapping) and name in _TABLES:
            _add(found, value.items(), folders)
        else:
            _add_files(found, value, folders)


def _code(named: str, cls: type[Any]) -> dict[str, str]:
    """Return the content of the module of a class, and of the one in which it was ``named``, if it was."""
    modules = {named.removeprefix("./"), cls.__module__} - {""}
    return {name: digest for module in sorted(modules) for name, digest in code_content(module).items()}


def _add_files(found: dict[str, str], value: Any, folders: list[Path]) -> None:
    """Add the files that the texts in ``value`` name; relative paths are looked for in ``folders``, in order."""
    for text in _texts(value):
        path = next((path for folder in folders if (path := folder / text).is_file()), None)
        if path is None or text in found:
            continue
        found[text] = digest_of(path)
        if path.suffix in _YAML:
            # What cannot be read is told where it is used.
            with suppress(BipedSimError):
                _add_files(found, read_yaml(path), [path.parent, *folders])


def _texts(value: Any) -> Iterator[str]:
    """Yield the words in a value that may be paths of files: those with a point or a slash."""
    if isinstance(value, Mapping):
        for entry in value.values():
            yield from _texts(entry)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, str) and len(value) < _LONGEST and "\0" not in value:
        words = [value]
        with suppress(ValueError):
            words += shlex.split(value)
        yield from (word for word in dict.fromkeys(words) if "." in word or "/" in word)
