"""The real-time clock of sim_node: the rest of a tick after its measurements were published."""

from __future__ import annotations

from collections.abc import Callable

from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.publishers import Publishers
from bipedsim_ros.loop.realtime import LONGEST_WAIT_NS, RateKeeper
from bipedsim_ros.loop.replies import Replies

# A wait that times out returns later than a sleep does, so a sleep covers the last part of a tick.
_WAKE_NS = 200_000


class RealTimeClock:
    """Wait for the reply to the measurements, publish everything else in time, and sleep until the deadline.

    Args:
        rate: Keeps the deadlines.
        replies: Receives the commands.
        commands: The stored command.
        publishers: Publish everything else.
        stopped: Returns whether the node must end, which ends every wait.
        clock_ns: Monotonic clock [ns].
    """

    def __init__(
        self,
        rate: RateKeeper,
        replies: Replies,
        commands: Commands,
        publishers: Publishers,
        stopped: Callable[[], bool],
        clock_ns: Callable[[], int],
    ) -> None:
        self._rate = rate
        self._replies = replies
        self._commands = commands
        self._publishers = publishers
        self._stopped = stopped
        self._clock_ns = clock_ns
        self._ground_cost_ns = 0

    def finish(self) -> None:
        """Finish a tick; return at its deadline, or when the node must end."""
        rate = self._rate
        reserve = self._ground_cost_ns + self._ground_cost_ns // 4
        if self._commands.kept:
            # Most ticks then receive no command. Publishing at the last moment would make many of them late.
            reserve = max(reserve, rate.period_ns // 2)
        self._wait_until(reserve)
        begin = self._clock_ns()
        self._publishers.publish_ground()
        self._ground_cost_ns += (self._clock_ns() - begin - self._ground_cost_ns) // 8
        self._wait_until(_WAKE_NS)
        self._publishers.show(rate.sleep_budget_ns())
        # In slow motion, a sleep until the deadline would delay signals.
        while not self._stopped() and rate.sleep_budget_ns() > LONGEST_WAIT_NS:
            self._replies.wait(LONGEST_WAIT_NS)
        rate.wait()
        # A command from the last microseconds is still in time, and the last of several commands counts.
        self._replies.receive()

    def _wait_until(self, reserve_ns: int) -> None:
        """Wait for the reply, until ``reserve_ns`` [ns] before the deadline at the latest."""
        # A push or a service also wakes the loop, but is served between two ticks, so the wait continues.
        while not (self._replies.answered or self._stopped()):
            budget = self._rate.sleep_budget_ns() - reserve_ns
            if budget <= 0:
                return
            self._replies.wait(budget)
