"""Collect the results about the contact of feet and ground."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.errors import BipedSimError
from bipedsim.model import Robot
from bipedsim_studies.identify.equations import Equations
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.feet import Feet
from bipedsim_studies.identify.friction import GroundFriction, friction
from bipedsim_studies.identify.outline import Outline, outlines, outlines_text
from bipedsim_studies.identify.signals import Signals

NO_FRICTION = (
    "friction of the ground: unknown; no foot with a sole was flat on the ground under load, or the ankle sensors do "
    "not measure tangential forces"
)


@dataclass(frozen=True)
class Contact:
    """Contact of feet and ground.

    Attributes:
        friction: Friction of the ground; None if unknown.
        outlines: Soles of the feet.
    """

    friction: GroundFriction | None
    outlines: tuple[Outline, ...]

    @classmethod
    def of(cls, robot: Robot, result: Estimate, recordings: Sequence[Signals], sources: Sequence[str]) -> Contact:
        """Return the contact in some recordings.

        Args:
            robot: The robot as described.
            result: The estimate.
            recordings: The signals.
            sources: Names of the recordings.
        """
        equations = Equations(robot, result.parameters)
        feet = [Feet.of(equations, signals, result, recording) for recording, signals in enumerate(recordings)]
        return cls(friction(robot, result, feet, sources), outlines(robot, result, feet))

    @classmethod
    def tried(
        cls, robot: Robot, result: Estimate, recordings: Sequence[Signals], sources: Sequence[str]
    ) -> tuple[Contact | None, tuple[str, ...]]:
        """Return what :meth:`of` returns and no note; or None and a note with the reason if it fails.

        The estimate before it takes minutes, and is of use without the contact.
        """
        try:
            return cls.of(robot, result, recordings, sources), ()
        except (BipedSimError, np.linalg.LinAlgError) as error:
            return None, (f"no friction of the ground and no soles of {', '.join(sources)}: {error}",)

    def text(self) -> Iterator[str]:
        """Yield lines of text for the reader."""
        yield from [NO_FRICTION] if self.friction is None else self.friction.text()
        if self.outlines:
            yield from outlines_text(self.outlines)

    def as_json(self) -> dict[str, Any]:
        """Return the contact as JSON values."""
        return {
            "friction": None if self.friction is None else self.friction.as_json(),
            "soles": [outline.as_json() for outline in self.outlines],
        }
