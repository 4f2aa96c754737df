"""Which foot of a walker carries: the one that landed last."""

from __future__ import annotations

from bipedsim.numerics import Flags


class StanceFoot:
    """The foot that carries a walker of two feet, which changes at touch-downs of the other.

    Args:
        early: Time after a touch-down before which another one is what the ground does just after it [s], unless the
            foot that carried is off the ground.

    Attributes:
        index: Of the foot.
        began: When it began to carry [s].
        known: Whether one carries at all.
    """

    def __init__(self, early: float) -> None:
        self._early = early
        self.index = 0
        self.began = 0.0
        self.known = False

    def reset(self) -> None:
        """Forget which foot carries."""
        self.known = False

    def lands(self, t: float, loaded: Flags) -> bool:
        """Return whether the other foot has landed, ``loaded`` (2,) at ``t`` [s]."""
        late = t - self.began > self._early
        return self.known and bool(loaded[1 - self.index] and (late or not loaded[self.index]))

    def take(self, t: float, index: int) -> None:
        """Let the foot ``index`` carry from ``t`` [s] on."""
        self.index, self.began, self.known = index, t, True
