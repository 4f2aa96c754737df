"""Identify the code and files that results depend on, and compare them between processes."""

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
    """Code or files differ from those that produced the results."""


@dataclass(frozen=True)
class Needs:
    """Code and files that affect results in addition to the parameters. Instances are sent to other processes.

    Attributes:
        parts: Names and values of run parameters, see :func:`bipedsim.runs.run_content`.
        content: Digests of the code and the files that they refer to, by name.
    """

    parts: tuple[tuple[str, Any], ...] = ()
    content: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Iterable[tuple[str, Any]]) -> Needs:
        """Return the dependencies of runs with the given parameters.

        Raises:
            BipedSimError: A parameter refers to code or a file that does not exist.
        """
        distinct: list[tuple[str, Any]] = []
        for part in parts:
            if part[1] and part not in distinct:
                distinct.append(part)
        return cls(tuple(distinct), _content(distinct))

    def differences(self) -> list[str]:
        """Describe the differences in this process."""
        try:
            return changes(self.content, _content(self.parts))
        except (BipedSimError, OSError) as error:
            return [str(error)]

    def check(self) -> None:
        """Check that this process has the same code and files. The check is done once per process.

        Raises:
            ChangedError: Code or files differ.
        """
        key = tuple(sorted(self.content.items()))
        if key in _checked:
            return
        differences = self.differences()
        if differences:
            remedy = "undo that, or delete the folder of the results to run everything again"
            raise ChangedError(f"not as at the start on {platform.node()}; {remedy}", some(differences))
        _checked.add(key)


_checked: set[tuple[tuple[str, str], ...]] = set()


def _content(parts: Iterable[tuple[str, Any]]) -> dict[str, str]:
    return run_content(parts) | {"bipedsim_studies": package_digest(Path(bipedsim_studies.__file__).parent)}
