"""The stop of a controller, read from its guard by another thread."""

from __future__ import annotations

from typing import cast

from bipedsim.analysis.controller_stop import ControllerStop
from bipedsim.control.monitor import Guard
from bipedsim.control.stop import StopKind, StopReason


class ResetWhileRead:
    """A guard that the loop resets after ``reads`` reads of its attributes."""

    def __init__(self, reads: int) -> None:
        self._reads = reads

    def _read(self, value: object) -> object:
        self._reads -= 1
        return value if self._reads >= 0 else None

    @property
    def fell_at(self) -> object:
        return self._read(2.0)

    @property
    def reason(self) -> object:
        return self._read(StopReason(StopKind.GAVE_UP))


def test_a_guard_that_is_reset_meanwhile_has_a_whole_stop_or_none() -> None:
    whole = ControllerStop(2.0, str(StopReason(StopKind.GAVE_UP)), StopKind.GAVE_UP)
    found = [ControllerStop.of(cast(Guard, ResetWhileRead(reads))) for reads in range(7)]
    assert found == [None, None, *[whole] * 5]
