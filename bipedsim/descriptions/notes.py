"""Collect the notes of an import by kind, for its report."""

from __future__ import annotations

from dataclasses import dataclass, field

FOUND, GUESSED, DROPPED, MENDED, DIFFERS, DOUBTS = "found", "guessed", "dropped", "mended", "differs", "doubts"
TITLES = {
    FOUND: "In the description",
    GUESSED: "Inferred defaults",
    DROPPED: "Dropped (not simulated)",
    MENDED: "Fixed",
    DIFFERS: "Differences between the two descriptions",
    DOUBTS: "Warnings and errors",
}


@dataclass
class Notes:
    """Notes by kind, without duplicates, in the order in which they were added.

    Attributes:
        said: Kind to its notes.
    """

    said: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in TITLES})

    def _add(self, kind: str, text: str) -> None:
        if text not in self.said[kind]:
            self.said[kind].append(text)

    def found(self, text: str) -> None:
        """Add a property that the description contains."""
        self._add(FOUND, text)

    def guessed(self, text: str) -> None:
        """Add a property that the description lacks, its estimate, and the reason for the value."""
        self._add(GUESSED, text)

    def dropped(self, text: str) -> None:
        """Add a property of the description that is not simulated."""
        self._add(DROPPED, text)

    def mended(self, text: str) -> None:
        """Add an impossible value and its correction."""
        self._add(MENDED, text)

    def differs(self, text: str) -> None:
        """Add a difference between two descriptions of the robot."""
        self._add(DIFFERS, text)

    def doubts(self, text: str) -> None:
        """Add an implausible property or a problem."""
        self._add(DOUBTS, text)
