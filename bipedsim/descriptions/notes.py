"""What an import has to say, kind by kind, for its report."""

from __future__ import annotations

from dataclasses import dataclass, field

FOUND, GUESSED, DROPPED, MENDED, DIFFERS, DOUBTS = "found", "guessed", "dropped", "mended", "differs", "doubts"
TITLES = {
    FOUND: "Found in the description",
    GUESSED: "Guessed, and why",
    DROPPED: "Dropped: not simulated",
    MENDED: "Mended",
    DIFFERS: "Where the two descriptions differ",
    DOUBTS: "Doubts and problems",
}


@dataclass
class Notes:
    """Sentences by kind, each once, in the order in which they were said.

    Attributes:
        said: Kind to its sentences.
    """

    said: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in TITLES})

    def _say(self, kind: str, text: str) -> None:
        if text not in self.said[kind]:
            self.said[kind].append(text)

    def found(self, text: str) -> None:
        """Say what the description holds."""
        self._say(FOUND, text)

    def guessed(self, text: str) -> None:
        """Say what it does not hold, what was taken instead, and why."""
        self._say(GUESSED, text)

    def dropped(self, text: str) -> None:
        """Say what it holds and the simulator does not simulate."""
        self._say(DROPPED, text)

    def mended(self, text: str) -> None:
        """Say what could not be, and what it is now."""
        self._say(MENDED, text)

    def differs(self, text: str) -> None:
        """Say in what two descriptions of the robot disagree."""
        self._say(DIFFERS, text)

    def doubts(self, text: str) -> None:
        """Say what is odd, or does not work."""
        self._say(DOUBTS, text)
