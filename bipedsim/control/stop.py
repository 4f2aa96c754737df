"""The reasons for which a controller is stopped, as values; their text is made here alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class StopKind(Enum):
    """Name the kind of reason for which a controller is stopped; recordings and /diagnostics contain the values."""

    NOT_FINITE = "not_finite"
    """A value of its command was not finite."""
    RAISED = "raised"
    """Its update raised an error."""
    RETURNED = "returned"
    """Its update returned an invalid command."""
    TILTED = "tilted"
    """The robot tilted too far."""
    GAVE_UP = "gave_up"
    """The controller itself reported a fall."""

    @property
    def failed(self) -> bool:
        """Whether the controller was stopped because of an error in it, rather than a fall."""
        return self in (StopKind.NOT_FINITE, StopKind.RAISED, StopKind.RETURNED)

    @classmethod
    def read(cls, value: object) -> StopKind | None:
        """Return the kind with a recorded value; None if the value is absent or unknown."""
        return next((kind for kind in cls if kind.value == value), None)


_SENTENCES = {
    StopKind.NOT_FINITE: "its {}",
    StopKind.RAISED: "its update raised {}",
    StopKind.RETURNED: "its update returned {}",
    StopKind.TILTED: "the IMU is tilted by {} degrees",
    StopKind.GAVE_UP: "the controller has given up",
}


@dataclass(frozen=True)
class StopReason:
    """Store why a controller was stopped; as text it is one sentence.

    Attributes:
        kind: Kind of the reason.
        detail: Which value is not finite, the error, the returned value, or the tilt [degrees]; empty for ``GAVE_UP``.
    """

    kind: StopKind
    detail: str = ""

    def __str__(self) -> str:
        return _SENTENCES[self.kind].format(self.detail)
