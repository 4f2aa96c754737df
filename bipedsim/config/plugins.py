"""Tables that other packages add to: an entry point of theirs is a row, and nothing of bipedsim is touched.

Groups: ``bipedsim.contact_models``, ``bipedsim.controllers``, ``bipedsim.commands``, ``bipedsim.live``,
``bipedsim.formats``, ``bipedsim.topics``, ``bipedsim.interfaces`` (an object each), and ``bipedsim.robots``,
``bipedsim.grounds``, ``bipedsim.scenarios`` (a package each, whose folder is listed).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from bipedsim.config.read import is_path
from bipedsim.errors import ConfigError, UnknownNameError


@cache
def _entries() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points whose groups are ours, by group; reading the metadata of all packages takes a while."""
    found = entry_points()
    return {group: tuple(sorted(set(found.select(group=group)))) for group in _GROUPS}


_GROUPS = tuple(
    f"bipedsim.{name}"
    for name in (
        *("contact_models", "controllers", "commands", "live", "formats", "topics", "interfaces"),
        *("robots", "grounds", "scenarios"),
    )
)


class Table(Mapping[str, Any]):
    """Names and what they stand for: our own rows, then those of other packages; each is imported when it is asked for.

    Args:
        kind: What a row is, for messages.
        group: Group of entry points that adds rows.
        own: Name to ``module:attribute``, or to a row that costs nothing itself.
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, Any]) -> None:
        self.kind = kind
        self._group = group
        self._own = own

    def _places(self) -> dict[str, Any]:
        places = dict(self._own)
        for entry in _entries().get(self._group, ()):
            if places.setdefault(entry.name, entry.value) != entry.value:
                raise ConfigError(
                    f"two packages call their {self.kind} {entry.name!r}: {places[entry.name]} and "
                    f"{entry.value}; uninstall one, or rename its entry point in {self._group}"
                )
        return places

    def __getitem__(self, name: str) -> Any:
        place = self._places()[name]
        if not isinstance(place, str):
            return place
        module, _, attribute = place.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"{self.kind} {name!r} is {place}, which cannot be imported ({error})") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._places())

    def __len__(self) -> int:
        return len(self._places())


class Files(Mapping[str, Path]):
    """Names and files: those of a folder of ours, then those in the packages that other distributions name.

    Args:
        kind: What a file holds, for messages.
        group: Group of entry points, each the name of a package, that adds folders.
        folder: Our own.
        pattern: Which files of a folder count, such as ``*.yaml`` or ``*/robot.yaml``.
        name: From the file to its name.
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
                raise ConfigError(f"entry point {entry.name!r} of {self._group}: {entry.value!r} is no package")
            for folder in spec.submodule_search_locations:
                yield entry.value, Path(folder)

    def _found(self) -> dict[str, tuple[str, Path]]:
        """Return package and file by name; the package of our own is empty."""
        found: dict[str, tuple[str, Path]] = {}
        for package, folder in self._folders():
            for path in sorted(folder.glob(self._pattern)):
                name = self._name(path)
                if name in found:
                    raise ConfigError(
                        f"two files are the {self.kind} {name!r}: {found[name][1]} and {path}; uninstall the package "
                        "of one, or rename its file"
                    )
                found[name] = package, path
        return found

    def find(self, name_or_path: str | Path, otherwise: str = "the path of a YAML file") -> Path:
        """Return the file of a name, or a path as it is.

        Args:
            name_or_path: A text is a path if it has a ``/`` or the suffix of a YAML file, or is the folder of a file.
            otherwise: What may be given beside a name, for the message.

        Raises:
            UnknownNameError: No such name; the message lists the names.
        """
        text = str(name_or_path)
        if text in self:
            return self[text]
        if isinstance(name_or_path, Path) or is_path(text) or ("/" in self._pattern and os.path.isdir(text)):
            return Path(name_or_path)
        raise UnknownNameError(self.kind, text, self, otherwise=otherwise)

    def kept(self, name_or_path: str | Path) -> str:
        """Return the text by which another process finds the same file: its name, or its path from the root.

        What was installed elsewhere still has its name there.

        Args:
            name_or_path: As :meth:`find` takes it, or what that returned.
        """
        text = str(name_or_path)
        if text in self:
            return text
        path = Path(os.path.realpath(text))
        name = self._name(path)
        return name if name in self and os.path.realpath(self[name]) == str(path) else str(path)

    def package(self, name: str) -> str:
        """Return which package adds ``name``, an empty text for our own."""
        return self._found()[name][0]

    def __getitem__(self, name: str) -> Path:
        return self._found()[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())
