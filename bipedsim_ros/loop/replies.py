"""Commands of a controller as replies to the measurements that sim_node publishes."""

from __future__ import annotations

from collections.abc import Callable

from bipedsim.runs import Rollout
from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.inbox import Inbox
from bipedsim_ros.loop.realtime import LONGEST_WAIT_NS, Histogram
from bipedsim_ros.loop.tracking import Tracking

# A command that was sent before a change of the state (reset, repeated state) arrives within this time.
_QUIET_NS = 200_000_000
# Upper bound of the wait for silence, since a controller that sends at its own rate never stops. A reset during the
# start waits for this time twice, and should respond within a second.
_DRAIN_NS = 400_000_000


class Replies:
    """Receive commands, and determine which of them answers the last published measurements.

    Args:
        inbox: Receives the messages.
        commands: Validates and stores the commands.
        rollout: The run, whose faults may lose commands.
        round_trip: Collects the times from measurements to command.
        clock_ns: Monotonic clock [ns].

    Attributes:
        answered: Whether the last measurements have a reply, or need none.
        running: Whether the simulation runs, so that faults act on commands.
    """

    def __init__(
        self, inbox: Inbox, commands: Commands, rollout: Rollout, round_trip: Histogram, clock_ns: Callable[[], int]
    ) -> None:
        self._inbox = inbox
        self._commands = commands
        self._rollout = rollout
        self._round_trip = round_trip
        self._clock_ns = clock_ns
        self._out_ns = 0
        self.answered = True
        self.running = False

    def published(self, out_ns: int) -> None:
        """Note that measurements were published at ``out_ns`` [ns]."""
        # A command that the drives hold replies to the newest state, not to the first state since the last command.
        if self.answered or self._commands.kept:
            self._out_ns = out_ns

    def take(self) -> bool:
        """Process the newest command, if one has arrived.

        Returns:
            Whether it was valid, or was lost by an injected fault.
        """
        valid = False
        for _ in self._commands.kinds:
            message = self._inbox.take_any()
            if message is None:
                break
            if self.running and not self._rollout.hears():
                valid = True
                continue
            topic, data = message
            valid = self._commands.accept(data, self._rollout.sim.t, topic) or valid
        return valid

    def follow(self, tracking: Tracking) -> bool:
        """Process the goal of an action as a command; return False if an injected fault loses it."""
        if self.running and not self._rollout.hears():
            return False
        self._commands.follow(tracking, self._rollout.sim.t)
        self.answered = True
        return True

    def take_untimed(self) -> None:
        """Process the newest command of a paused simulation, without its round trip."""
        self.answered = self.take() or self.answered

    def wait(self, timeout_ns: int) -> None:
        """Wait for a command or a wake-up, for ``timeout_ns`` [ns] at most, and process arrived commands."""
        self._inbox.wait(min(timeout_ns, LONGEST_WAIT_NS))
        self.receive()

    def receive(self) -> None:
        """Process arrived commands. The first valid one of a tick ends the round trip."""
        silent = self._commands.silence is not None
        if self.take() and not self.answered:
            self.answered = True
            if not silent:
                self._round_trip.record(self._clock_ns() - self._out_ns)

    def drain(self, take: Callable[[], object], stopped: Callable[[], bool]) -> None:
        """Call ``take`` for commands until none has arrived for a while.

        Args:
            take: Called after each wake-up. A request also wakes the loop, so there need not be a command.
            stopped: Returns whether the node must end, which ends the wait.
        """
        now = self._clock_ns()
        end, quiet = now + _DRAIN_NS, now + _QUIET_NS
        while (remaining := min(end, quiet) - self._clock_ns()) > 0 and not stopped():
            if self._inbox.wait(remaining):
                take()
                quiet = self._clock_ns() + _QUIET_NS

    def drop_stale(self) -> None:
        """Drop and count the newest command, which answers a state from before a reset."""
        if (message := self._inbox.take_any()) is not None:
            text = f"{message[0].name} dropped: it answers a state from before the reset"
            self._commands.drops.add("stale", text)
