"""Code and files that results depend on, and whether a process has the same."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bipedsim_studies
from bipedsim.config import changes, package_digest
from bipedsim.errors import BipedSimError, some
from bipedsim.runs import run_content


class ChangedError(BipedSimError):
    """Code or files are other ones than those that results came from."""


@dataclass(frozen=True)
class Needs:
    """What some work depends on beside its parameters; to be sent to other processes.

    Attributes:
        parts: Names of parameters of runs and their values, see :func:`bipedsim.runs.run_content`.
        content: Digests of the code and the files that they stand for, by name.
    """

    parts: tuple[tuple[str, Any], ...] = ()
    content: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Iterable[tuple[str, Any]]) -> Needs:
        """Return what runs with such parameters depend on.

        Raises:
            BipedSimError: Something that the parameters name is not there.
        """
        given: list[tuple[str, Any]] = []
        for part in parts:
            if part[1] and part not in given:
                given.append(part)
        return cls(tuple(given), _content(given))

    def differences(self) -> list[str]:
        """Return in words what differs in this process."""
        try:
            return changes(self.content, _content(self.parts))
        except (BipedSimError, OSError) as error:
            return [str(error)]

    def check(self) -> None:
        """See to it that this process has the same code and files; it looks once.

        Raises:
            ChangedError: Something differs.
        """
        key = tuple(sorted(self.content.items()))
        if key in _checked:
            return
        differ = self.differences()
        if differ:
            text = f"code or files on {platform.node()} differ from those at the start ({some(differ)})"
            raise ChangedError(f"{text}; undo that, or run everything again with --restart")
        _checked.add(key)


_checked: set[tuple[tuple[str, str], ...]] = set()


def _content(parts: Iterable[tuple[str, Any]]) -> dict[str, str]:
    return run_content(parts) | {"bipedsim_studies": package_digest(Path(bipedsim_studies.__file__).parent)}
