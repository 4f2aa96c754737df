"""Change live parameters of a controller or of drives between two ticks, at once or at scheduled times."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bipedsim.config import ParameterChange, differences, with_changes
from bipedsim.errors import ConfigError

DATE = 1e9
"""Time beyond which stamps are those of a wall clock [s]."""


class Tuning:
    """Give a controller, or drives, new values of live parameters, and list them.

    Args:
        tune: Applies parameters; None if the owner cannot change any. It may raise ConfigError and change nothing.
        params: Parameters with which the owner was made; None if it has none.
        scheduled: Changes that :meth:`due` applies.
        where: Source of the changes, for messages.
        of: Owner of the parameters, as in :class:`bipedsim.config.ParameterChange`.

    Attributes:
        applied: All changes since the last :meth:`restart`, in order.

    Raises:
        ConfigError: A scheduled change is not valid, or the owner has no live parameters.
    """

    def __init__(
        self,
        tune: Callable[[Any], None] | None,
        params: Any,
        scheduled: Sequence[ParameterChange] = (),
        where: str = "changes",
        of: str = "controller",
    ) -> None:
        self._tune = tune
        self._of = of
        self._first = self._params = params
        self._where = where
        self._scheduled = sorted(scheduled, key=lambda change: change.at)
        if scheduled and (params is None or tune is None):
            raise _nothing_live(where)
        for change in self._scheduled:
            params = with_changes(params, {change.name: change.value}, f"{where} at {change.at:g} s")
        self._waiting = deque(self._scheduled)
        self._zero = 0.0
        self.applied: list[ParameterChange] = []

    def restart(self, t: float) -> Sequence[ParameterChange]:
        """Begin the schedule again; return the changes since the start of the owner, which stay, at ``t`` [s].

        Simulated time begins at 0. If ``t`` is a date, the schedule counts from it.
        """
        self._zero = t if t > DATE else 0.0
        self._waiting = deque(self._scheduled)
        self.applied = self._described(t, self._first) if self._params is not None else []
        return self.applied

    def due(self, t: float) -> Sequence[ParameterChange]:
        """Apply the scheduled changes up to ``t`` [s]; return them.

        Raises:
            ConfigError: The owner refuses a value; it keeps its parameters.
        """
        changes: list[ParameterChange] = []
        while self._waiting and self._waiting[0].at <= t - self._zero + 1e-6:
            change = self._waiting.popleft()
            changes += self.set(t, {change.name: change.value})
        return changes

    def set(self, t: float, values: Mapping[str, Any]) -> Sequence[ParameterChange]:
        """Apply new values from ``t`` [s] on; return the changes.

        Args:
            t: Time of the next update or tick.
            values: As in :func:`bipedsim.config.with_changes`.

        Raises:
            ConfigError: A value is not valid, or the owner refuses it; it keeps its parameters.
        """
        if self._tune is None:
            raise _nothing_live(self._where)
        before, params = self._params, with_changes(self._params, values, self._where)
        self._tune(params)
        self._params = params
        changes = self._described(t, before)
        self.applied += changes
        return changes

    def _described(self, t: float, before: Any) -> list[ParameterChange]:
        return [ParameterChange(t, name, value, self._of) for name, value in differences(before, self._params).items()]


def _nothing_live(where: str) -> ConfigError:
    return ConfigError("none of the parameters can change during a run", where)
