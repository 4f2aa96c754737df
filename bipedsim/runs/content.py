"""Digests of everything that a run depends on: code, robots, grounds, scenarios, and files named by parameters."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bipedsim.config import SCENE_SUFFIX, Files, code_content, digest_of, in_braces, own_content, read_yaml
from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import find_controller
from bipedsim.descriptions import mjcf_files
from bipedsim.errors import BipedSimError
from bipedsim.ground import GROUNDS
from bipedsim.model import robot_content, robot_file
from bipedsim.runs.names import SCENARIO_FILES

_YAML = (".yaml", ".yml", ".json")
_TABLES: Mapping[str, Files] = {"scenario": SCENARIO_FILES, "ground": GROUNDS}
_LONGEST = 4096
"""Length above which a text is not treated as a path [characters]."""


def run_content(parts: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return the digests of everything that runs depend on in addition to the parameters, by name.

    They cover:

    - the simulator and its libraries,
    - the modules of controllers and contact models with their imports (:func:`bipedsim.config.code_content`),
    - the files of robots, grounds and scenarios,
    - every file that a text among the parameters names, and the files that these name in turn.

    Args:
        parts: Names of parameters of a run and their values, such as ``("robot", "biped14")``; names may repeat.

    Raises:
        BipedSimError: A controller, robot, ground or scenario does not exist.
    """
    digests = dict(own_content())
    parameters = list(parts)
    folders = [Path()]
    for name, value in parameters:
        if name == "robot":
            folders.append(robot_file(value).parent)
    _add(digests, parameters, folders)
    return digests


def _add(digests: dict[str, str], parts: Iterable[tuple[str, Any]], folders: list[Path]) -> None:
    for name, value in parts:
        if not value:
            continue
        if isinstance(value, str) and name == "robot":
            digests |= {f"robot {value}: {file}": digest for file, digest in robot_content(value).items()}
        elif isinstance(value, str) and name == "controller":
            digests |= _code(value.partition(":")[0] if ":" in value else "", find_controller(value)[1])
        elif isinstance(value, str) and name == "contact_model":
            digests |= _code("", CONTACT_MODELS[value])
        elif isinstance(value, str) and name in _TABLES and (mapping := in_braces(value, name)) is not None:
            _add(digests, mapping.items(), folders)
        elif isinstance(value, str) and name in _TABLES:
            path = _TABLES[name].find(value)
            digests[f"{name} {value}"] = digest_of(path)
            if path.suffix.lower() == SCENE_SUFFIX:
                _add_files(digests, _named_in_scene(path), [path.parent, *folders])
            elif not path.suffix or path.suffix.lower() in _YAML:
                _add(digests, read_yaml(path).items(), [path.parent, *folders])
        elif isinstance(value, Mapping) and name in _TABLES:
            _add(digests, value.items(), folders)
        else:
            _add_files(digests, value, folders)


def _code(module_name: str, cls: type[Any]) -> dict[str, str]:
    """Return the digests of the module of a class, and of the module ``named`` by the user, if any."""
    modules = {module_name.removeprefix("./"), cls.__module__} - {""}
    return {name: digest for module in sorted(modules) for name, digest in code_content(module).items()}


def _add_files(digests: dict[str, str], value: Any, folders: list[Path]) -> None:
    """Add the files that the texts in ``value`` name; relative paths are resolved in ``folders``, in order."""
    for text in _texts(value):
        path = next((path for folder in folders if (path := folder / text).is_file()), None)
        if path is None or text in digests:
            continue
        digests[text] = digest_of(path)
        # The code that uses this file reports the error if it cannot be read.
        with suppress(BipedSimError):
            if path.suffix.lower() in _YAML:
                _add_files(digests, read_yaml(path), [path.parent, *folders])
            elif path.suffix.lower() == SCENE_SUFFIX:
                _add_files(digests, _named_in_scene(path), [path.parent, *folders])


def _named_in_scene(path: Path) -> list[str]:
    """Return the files of an MJCF scene, relative to its folder."""
    return [os.path.relpath(file, path.parent) for file in mjcf_files(path)]


def _texts(value: Any) -> Iterator[str]:
    """Yield the words in a value that may be paths of files: words that contain a dot or a slash."""
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
