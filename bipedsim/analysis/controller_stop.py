"""The stop of a controller as a value, as guards report it, and as recordings and summaries contain it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.control import Guard, StopKind
from bipedsim.recording import Recording, schema


@dataclass(frozen=True)
class ControllerStop:
    """Store when and why a controller was stopped.

    Attributes:
        at: Time stamp of the observation without an answer [s].
        why: The reason in words; empty if unknown.
        kind: Kind of the reason; None if unknown, as in older recordings.
    """

    at: float
    why: str = ""
    kind: StopKind | None = None

    @classmethod
    def of(cls, guard: Guard) -> ControllerStop | None:
        """Return the stop of the controller that ``guard`` hosts; None while the controller runs."""
        # The thread of the loop may reset the guard meanwhile, so each attribute is read once.
        fell_at, reason = guard.fell_at, guard.reason
        if fell_at is None or reason is None:
            return None
        return cls(fell_at, str(reason), reason.kind)

    @classmethod
    def recorded(cls, recording: Recording) -> ControllerStop | None:
        """Return the stop of a recording; None if the controller was not stopped."""
        if not np.isfinite(recording.gave_up_at):
            return None
        return cls(recording.gave_up_at, recording.gave_up_why, StopKind.read(recording.gave_up_kind))

    def note(self, recording: Recording) -> None:
        """Add the stop to a recording."""
        recording.gave_up_at, recording.gave_up_why = self.at, self.why
        recording.gave_up_kind = None if self.kind is None else self.kind.value

    @classmethod
    def read(cls, summary: Mapping[str, Any]) -> ControllerStop | None:
        """Return the stop in a summary; None without one."""
        at, why, kind = (summary.get(key) for key in schema.STOPPED)
        return None if at is None else cls(at, why or "", StopKind.read(kind))

    def figures(self) -> dict[str, Any]:
        """Return the metrics from which :meth:`read` makes the stop again."""
        kind = None if self.kind is None else self.kind.value
        return dict(zip(schema.STOPPED, (self.at, self.why or None, kind), strict=True))

    @property
    def failed(self) -> bool:
        """Whether the controller was stopped because of an error in it, rather than a fall."""
        return self.kind is not None and self.kind.failed

    def explains(self, fell_at: float | None) -> bool:
        """Return whether the outcome of a robot that fell at ``fell_at`` [s], or never, must mention the stop.

        The stop is the cause of a fall if the controller failed before it. Otherwise the fall explains the stop.
        """
        return fell_at is None or (self.failed and self.at <= fell_at)

    def __str__(self) -> str:
        return f"the controller was stopped at t = {self.at:.3f} s{f': {self.why}' if self.why else ''}"
