"""Provide tables that other packages extend by entry points, without changes to bipedsim.

Groups of single objects: ``bipedsim.contact_models``, ``bipedsim.controllers``, ``bipedsim.policy_terms``,
``bipedsim.commands``, ``bipedsim.live``, ``bipedsim.formats``, ``bipedsim.topics``, ``bipedsim.interfaces``. Groups of
packages with files: ``bipedsim.robots``, ``bipedsim.grounds``, ``bipedsim.scenarios``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from bipedsim.config.read import is_path
from bipedsim.errors import ConfigError, UnknownNameError, closest


@cache
def _entries() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of bipedsim's groups, by group; cached, because reading all metadata is slow."""
    all_entry_points = entry_points()
    return {group: tuple(sorted(set(all_entry_points.select(group=group)))) for group in _GROUPS}


_GROUPS = tuple(
    f"bipedsim.{name}"
    for name in (
        *("contact_models", "controllers", "policy_terms", "commands", "live", "formats", "topics", "interfaces"),
        *("robots", "grounds", "scenarios"),
    )
)


def import_own_module(module_name: str, kind: str, name: str) -> ModuleType:
    """Import a module of the user, also from the current folder. Other exceptions of the import propagate.

    Args:
        module_name: Its import name.
        kind, name: The object that is in it and its full name, for messages, such as ``controller`` and ``mine:Mine``.

    Raises:
        ConfigError: The module or one of its imports is not found, or it has a syntax error.
    """
    if "" not in sys.path:
        # A console script does not search the current folder, where users put their first controller.
        sys.path.append("")
    try:
        return importlib.import_module(module_name)
    except (ImportError, SyntaxError) as error:
        text = f"cannot be imported: {module_name!r} ({error})"
        # The error may also name a different module that an existing module imports.
        if isinstance(error, ModuleNotFoundError) and module_name.startswith(error.name or module_name):
            text += f"; searched {Path.cwd()}, PYTHONPATH and the installed packages"
        raise ConfigError(text, kind, name) from error


class Table(Mapping[str, Any]):
    """Mapping from names to objects of bipedsim and of other packages, which are imported on access.

    Args:
        kind: Kind of the entries, for messages.
        group: Group of entry points that adds entries.
        own: Name to ``module:attribute``, or to an object that needs no import.
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, Any]) -> None:
        self.kind = kind
        self._group = group
        self._own = own

    def _targets(self) -> dict[str, Any]:
        targets = dict(self._own)
        for entry in _entries().get(self._group, ()):
            if targets.setdefault(entry.name, entry.value) != entry.value:
                raise ConfigError(
                    f"two packages call their {self.kind} {entry.name!r}: {targets[entry.name]} and "
                    f"{entry.value}; uninstall one, or rename its entry point in {self._group}"
                )
        return targets

    def __getitem__(self, name: str) -> Any:
        target = self._targets()[name]
        if not isinstance(target, str):
            return target
        module, _, attribute = target.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"{self.kind} {name!r} is {target}, which cannot be imported ({error})") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets())

    def __len__(self) -> int:
        return len(self._targets())


class Files(Mapping[str, Path]):
    """Mapping from names to files in a folder of bipedsim and in other packages.

    Args:
        kind: Kind of the files, for messages.
        group: Group of entry points that name packages with further files.
        folder: Folder of bipedsim's own files.
        pattern: Pattern of the files in a folder, such as ``*.yaml`` or ``*/robot.yaml``.
        name: Function from a file to its name.
    """

    def __init__(self, kind: str, group: str, folder: Path, pattern: str, name: Callable[[Path], str]) -> None:
        self.kind = kind
        self._group = group
        self._folder = folder
        self._pattern = pattern
        self._name = name

    def _folders(self) -> Iterator[tuple[str, Path]]:
        yield "", self._folder
        for entry in _entries().get(self._group, ()):
            spec = importlib.util.find_spec(entry.value)
            if spec is None or not spec.submodule_search_locations:
                raise ConfigError(f"entry point {entry.name!r} of {self._group}: {entry.value!r} is not a package")
            for folder in spec.submodule_search_locations:
                yield entry.value, Path(folder)

    def _files_by_name(self) -> dict[str, tuple[str, Path]]:
        """Return name to package and file; the package of bipedsim's own files is empty."""
        files: dict[str, tuple[str, Path]] = {}
        for package, folder in self._folders():
            for path in sorted(folder.glob(self._pattern)):
                name = self._name(path)
                if name in files:
                    raise ConfigError(
                        f"two files are the {self.kind} {name!r}: {files[name][1]} and {path}; uninstall the package "
                        "of one, or rename its file"
                    )
                files[name] = package, path
        return files

    def find(self, name_or_path: str | Path, otherwise: str = "the path of a YAML file") -> Path:
        """Return the file of a name; a path is returned unchanged.

        Args:
            name_or_path: A text is a path if it contains ``/``, has the suffix of a YAML file, or is a file's folder.
            otherwise: Alternative to a name, for the message.

        Raises:
            UnknownNameError: The name is unknown; the message lists the names.
            ConfigError: The file does not exist, and its name without the suffix is nearly one of the names.
        """
        text = str(name_or_path)
        if text in self:
            return self[text]
        if isinstance(name_or_path, Path) or is_path(text) or ("/" in self._pattern and os.path.isdir(text)):
            path = Path(name_or_path)
            meant = "" if os.path.lexists(path) else closest(self._name(path), self)
            if meant:
                raise ConfigError(f"does not exist; did you mean the {self.kind} {meant!r}?", text)
            return path
        packages = {name: package for name, (package, _) in self._files_by_name().items() if package}
        raise UnknownNameError(self.kind, text, self, otherwise=otherwise, packages=packages)

    def kept(self, name_or_path: str | Path) -> str:
        """Return a text with which another process finds the same file: its name or its absolute path.

        The name is preferred, because it is also valid for another installation.

        Args:
            name_or_path: Argument or result of :meth:`find`.
        """
        text = str(name_or_path)
        if text in self:
            return text
        path = Path(os.path.realpath(text))
        name = self._name(path)
        return name if name in self and os.path.realpath(self[name]) == str(path) else str(path)

    def package(self, name: str) -> str:
        """Return the package that adds ``name``; empty for bipedsim."""
        return self._files_by_name()[name][0]

    def __getitem__(self, name: str) -> Path:
        return self._files_by_name()[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files_by_name())

    def __len__(self) -> int:
        return len(self._files_by_name())
