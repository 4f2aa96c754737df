"""The loop of sim_node: command in, one step, state out, in one of three clocks.

A tick publishes what the robot measures first, then waits for the command, and publishes everything else when the
command is there or when time runs short, in the middle of a tick in which none need come: on a machine with few cores
the controller would otherwise wait for plots and recordings. In lock step, which has no deadline to miss, everything
else comes while the controller computes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bipedsim.config import is_path
from bipedsim.errors import BipedSimError, DivergenceError
from bipedsim.numerics import Array
from bipedsim.recording import schema
from bipedsim.runs import JOINTS, FaultSchedule, Push, Rollout, start_state
from bipedsim.sim import Simulator
from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.inbox import Inbox
from bipedsim_ros.loop.publishers import Publishers
from bipedsim_ros.loop.realtime import NS_PER_S, RateKeeper, StayAwake, sleep_on_time
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.loop.sim_statistics import Statistics
from bipedsim_ros.wire import topics

# Signals reach Python between two waits only.
_LONGEST_WAIT_NS = 100_000_000
# While the physics is held, the state is repeated in case that nobody got it.
_REPEAT_NS = 500_000_000
# A command on its way when the state changed under it (reset, repeated state) arrives within this.
_QUIET_NS = 200_000_000
# A wait for a command that none ends comes back later than a sleep, which therefore has the last of a tick.
_WAKE_NS = 200_000
# A controller that sends without being asked never falls quiet. A reset that comes upon the start waits for two of
# these, and is to be answered within a second.
_DRAIN_NS = 400_000_000
_REQUEST_TIMEOUT_S = 10.0
_RECORDER_PATIENCE_NS = 10 * NS_PER_S


def _name_of(given: str) -> str:
    """Return what pictures call something that is a name or a file."""
    return Path(given).stem if is_path(given) else given


@dataclass
class _Request:
    action: Callable[[], str]
    done: threading.Event = field(default_factory=threading.Event)
    success: bool = False
    message: str = "the simulation did not answer; is the node shutting down?"
    refused: Callable[[str], None] | None = None


class SimLoop:
    """Runs a simulator against a controller in another process.

    Args:
        sim: The simulator; only the loop touches it.
        params: Clock, rate, timeouts.
        pushes: Scheduled pushes.
        faults: What fails on purpose.
        inbox: Where commands arrive.
        commands: Judges and keeps them.
        publishers: Where states go.
        statistics: What is counted.
        log: Called with an error message.

    Attributes:
        exit_code: 0, or 1 when a run with a ``duration`` ended by divergence.
    """

    def __init__(
        self,
        sim: Simulator,
        params: SimParams,
        pushes: Sequence[Push],
        faults: FaultSchedule,
        inbox: Inbox,
        commands: Commands,
        publishers: Publishers,
        statistics: Statistics,
        log: Callable[[str], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._sim = sim
        self._rollout = Rollout(sim, pushes, faults, log, on_event=publishers.publish_run)
        self._rollout.warm_up(loops=True)
        self._params = params
        self._faults = faults
        self._inbox = inbox
        self._commands = commands
        self._publishers = publishers
        self._statistics = statistics
        self._log = log
        self._clock_ns = clock_ns
        self._awake = StayAwake(params.priority > 0)
        self._tick_ns = round(sim.control_dt * NS_PER_S)
        self._rate = RateKeeper(sim.control_dt / params.real_time_factor, clock_ns=clock_ns)
        self._requests: deque[_Request] = deque()
        self._stop = self._ended = False
        self._running_since: int | None = None
        self._out_ns = 0
        self._answered = True
        self._ground_cost_ns = 0
        self._repeat_at = 0
        self._repeats = 0
        self._recorder_until = 0
        self._counted_changes = 0
        self._counted_unresolved = 0
        self._changes = 0
        self.exit_code = 0
        self._reset()

    # What other threads may call.

    @property
    def stopped(self) -> bool:
        """Whether :meth:`run` is to end."""
        return self._stop

    @property
    def state(self) -> str:
        """waiting (for the first command), running, paused, diverged or finished."""
        return self._state

    def stop(self) -> None:
        """End :meth:`run` soon; may be called from any thread and from a signal handler."""
        self._stop = True
        self._inbox.wake()

    def ask(self, action: Callable[[], str]) -> tuple[bool, str]:
        """Have the loop do ``action`` between two ticks; return whether it worked, and its message."""
        request = _Request(action)
        self._requests.append(request)
        if self._ended:
            # Whoever appends after the loop has looked for the last time finds this.
            return False, "the simulation has ended"
        self._inbox.wake()
        request.done.wait(_REQUEST_TIMEOUT_S)
        return request.success, request.message

    def post(self, action: Callable[[], str], refused: Callable[[str], None]) -> None:
        """Have the loop do ``action`` between two ticks, without waiting for it; ``refused`` hears why if it cannot."""
        self._requests.append(_Request(action, refused=refused))
        self._inbox.wake()

    def keep_pace(self, factor: float) -> None:
        """Have a second of the wall clock hold ``factor`` simulated ones; may be called from any thread."""
        self._rate.period_ns = round(self._tick_ns / factor)

    # What ``ask`` and ``post`` take.

    def reset(self) -> str:
        """Go back to t = 0 and to the start policy."""
        self._until_quiet(self._throw_away)
        self._reset()
        return "back at t = 0" + (", waiting for a command" if self._state == "waiting" else "")

    def begin_at(self, q: Array, v: Array) -> str:
        """Go back to t = 0, at (q, v): (nq,), (nv,); a pause goes on.

        Raises:
            ConfigError: Nobody can be there; the run goes on as it was.
        """
        self._sim.check_start(q, v)
        paused = self._state == "paused"
        self._until_quiet(self._throw_away)
        self._reset(q, v)
        return self.pause() if paused else "at t = 0"

    def pause(self) -> str:
        """Stop stepping."""
        if self._state in ("diverged", "finished"):
            raise BipedSimError(f"the simulation is {self._state}; call reset")
        self._go("paused")
        return f"paused at t = {self._sim.t:.6f} s"

    def resume(self) -> str:
        """Step again, or wait for the first command if there was none."""
        if self._state == "paused":
            self._go("running" if self._commands.started or self._params.start == "immediately" else "waiting")
        if self._state not in ("running", "waiting"):
            raise BipedSimError(f"the simulation is {self._state}; call reset")
        return f"{self._state} at t = {self._sim.t:.6f} s"

    def single_step(self) -> str:
        """Take one tick of a paused simulation, with the last command; in lock_step, with the answer to the last state.

        Raises:
            BipedSimError: The simulation is not paused, or diverges.
        """
        if self._state != "paused":
            raise BipedSimError(f"single steps need a paused simulation, this one is {self._state}; call pause first")
        self._answered = self._take_commands() or self._answered
        answers = self._params.clock == "lock_step" and self._commands.started
        if answers and not self._answered:
            # The pause came before the answer to the state that is out.
            self._finish_lock_step(told=True)
        if not self._step():
            raise BipedSimError(self._statistics.error)
        if answers:
            self._answered = False
            self._finish_lock_step()
        else:
            self._publish_ground()
        return f"t = {self._sim.t:.6f} s"

    def push(self, wrench: Array, body: str, duration: float) -> str:
        """Apply an external wrench; see :meth:`Simulator.push`."""
        self._sim.push(wrench, body or None, duration)
        return f"pushed at t = {self._sim.t:.6f} s"

    def hang(self, action: str) -> str:
        """Have the gantry do something; see :meth:`Simulator.hang`."""
        self._sim.hang(action)
        return f"{action} at t = {self._sim.t:.6f} s"

    # The loop.

    def run(self, each_second: Callable[[], None]) -> None:
        """Run until :meth:`stop` or the end of ``duration``; call ``each_second`` about once a second of wall time."""
        sleep_on_time()
        next_report = self._clock_ns() + NS_PER_S
        while not self._stop and self._state != "finished":
            while self._requests:
                self._serve(self._requests.popleft())
            if self._state == "running":
                self._tick()
            elif self._state == "waiting":
                self._hold()
            else:
                self._inbox.wait(_LONGEST_WAIT_NS)
                self._answered = self._take_commands() or self._answered
                self._publishers.publish_clock()
            if self._clock_ns() >= next_report:
                next_report += NS_PER_S
                self.count()
                each_second()
        self._go(self._state)
        self.count()
        self._ended = True
        self._publishers.publish_run({schema.STATISTICS: self._statistics.as_dict()})
        while self._requests:
            self._requests.popleft().done.set()

    def count(self) -> None:
        """Bring the statistics up to date."""
        statistics, contact, commands = self._statistics, self._sim.contact, self._commands
        self._split_wall_time()
        statistics.state = self._state
        statistics.t = self._sim.t
        statistics.overruns = self._rate.overruns
        statistics.deadlines_dropped = self._rate.dropped
        statistics.lateness = self._rate.lateness
        statistics.commands_received = commands.received
        statistics.commands_dropped_by_kind = dict(commands.drops.by_kind)
        statistics.commands_clipped = commands.clipped
        statistics.silences = list(commands.silences)
        statistics.silent_since, statistics.silent_wall_s = commands.silent_since, commands.silent_wall
        statistics.command_timeouts = commands.timeouts
        statistics.outcome = self._rollout.outcome()
        statistics.commands_lost = self._faults.lost_commands
        statistics.state_changes = self._counted_changes + contact.state_changes
        statistics.unresolved_steps = self._counted_unresolved + contact.unresolved

    def _serve(self, request: _Request) -> None:
        try:
            request.message = request.action()
            request.success = True
        except BipedSimError as error:
            request.message = str(error)
            if request.refused is not None:
                request.refused(request.message)
            elif not isinstance(error, DivergenceError):
                self._log(request.message)
        request.done.set()

    def _go(self, state: str) -> None:
        self._split_wall_time()
        self._changes += 1
        self._state = state
        self._running_since = self._clock_ns() if state == "running" else None
        if state != "running":
            self._awake.release()
        else:
            self._awake.hold()
            self._answered = True
            self._rate.start()

    def _split_wall_time(self) -> None:
        if self._running_since is not None:
            now = self._clock_ns()
            self._statistics.wall_ns += now - self._running_since
            self._running_since = now

    def _reset(self, q: Array | None = None, v: Array | None = None) -> None:
        contact = self._sim.contact
        changes, unresolved = contact.state_changes, contact.unresolved
        if q is None:
            sim, params = self._sim, self._params
            q = start_state(sim.robot, sim.ground, params.posture, params.drop_height, sim.config.gantry)
        self._rollout.start(q, v)
        self._counted_changes += changes
        self._counted_unresolved += unresolved
        about = {"scenario": _name_of(self._params.title), "ground": _name_of(self._params.ground)}
        self._publishers.publish_run({**self._rollout.described(), schema.ABOUT: about})
        self._commands.clear()
        self._statistics.error = ""
        self._repeat_at = self._repeats = 0
        self._state = "waiting"
        self._go("running" if self._params.start == "immediately" else "waiting")
        self._publish_all()

    def _publish_all(self) -> None:
        self._publishers.publish_sensors(self._rollout.measured)
        self._publish_ground()

    def _publish_ground(self) -> None:
        """Publish all the rest, where no deadline waits."""
        self._publishers.publish_ground()
        self._publishers.show()

    def _until_quiet(self, take: Callable[[], object]) -> None:
        """Have ``take`` take commands until none has come for a while, or until it is clear that they never end.

        A wake-up for a request ends a wait, and says nothing of commands.
        """
        now = self._clock_ns()
        end, quiet = now + _DRAIN_NS, now + _QUIET_NS
        while (left := min(end, quiet) - self._clock_ns()) > 0 and not self._stop:
            if self._inbox.wait(left):
                take()
                quiet = self._clock_ns() + _QUIET_NS

    def _throw_away(self) -> None:
        if (message := self._inbox.take_any()) is not None:
            text = f"{message[0].name} dropped: it answers a state from before the reset"
            self._commands.drops.add("stale", text)

    def _take_commands(self) -> bool:
        """Take the newest command, if one has arrived; return whether it was sound, or is lost on purpose."""
        found = False
        for _ in topics.COMMAND_KINDS:
            message = self._inbox.take_any()
            if message is None:
                break
            if self._faults.faults and self._state == "running" and not self._faults.hears(self._sim.t):
                found = True
                continue
            topic, data = message
            found = self._commands.accept(data, self._sim.t, topic) or found
        return found

    def _hold(self) -> None:
        """Wait for the first command with the physics at rest, and repeat the state for whoever comes late."""
        now = self._clock_ns()
        connected = self._publishers.subscribers() > 0 and self._inbox.publishers() > 0
        if now >= self._repeat_at or (connected and self._repeats == 0):
            self._publish_all()
            self._repeat_at = now + _REPEAT_NS
            self._repeats = self._repeats + 1 if connected else 0
        self._inbox.wait(min(_LONGEST_WAIT_NS // 5, self._repeat_at - now))
        self._take_commands()
        if not self._commands.started or self._recorder_missing():
            return
        if self._params.wait_for_recorder:
            # A recorder finds the topics one after the other: only this time each of them has a listener.
            self._publish_all()
        # The state at t = 0 has been published more than once, and each may bring an answer: none of them must be taken
        # for an answer to the states that follow.
        self._until_quiet(self._take_commands)
        self._go("running")

    def _recorder_missing(self) -> bool:
        """Whether the start has to wait until a recorder listens to every topic."""
        if not self._params.wait_for_recorder:
            return False
        now = self._clock_ns()
        self._recorder_until = self._recorder_until or now + _RECORDER_PATIENCE_NS
        unheard = self._publishers.unheard()
        if unheard and now >= self._recorder_until:
            self._log(f"nobody listens to {', '.join(unheard)}; starting without")
            return False
        return bool(unheard)

    def _step(self) -> bool:
        """Step once and publish what the robot measures; return False if the simulation has diverged."""
        rollout = self._rollout
        command = self._commands.command(rollout.measured, self._sim.t)
        try:
            observation = rollout.tick(command, self._commands.timed_out)
        except DivergenceError as error:
            self._diverge(error)
            return False
        self._statistics.ticks += 1
        if self._faults.faults:
            out_ns = self._publishers.publish_faulty_sensors(observation, self._faults)
        else:
            out_ns = self._publishers.publish_sensors(observation)
        # What the drives keep answers the newest state, and not the first one since the last command.
        if self._answered or self._commands.kept:
            self._out_ns = out_ns
        return True

    def _diverge(self, error: DivergenceError) -> None:
        self._go("diverged")
        self._statistics.error = str(error)
        self._log(f"{error}; stopped at t = {error.t:.6f} s, call the service ~/reset to go on")
        if self._params.duration > 0.0:
            self.exit_code = 1
            self._stop = True

    def _tick(self) -> None:
        if not self._step():
            return
        self._statistics.simulated_ns += self._tick_ns
        expected, changes = self._commands.started, self._changes
        # To measurements that were lost on purpose nobody will answer.
        self._answered = bool(self._faults.faults) and not self._faults.sent[JOINTS]
        clock = self._params.clock
        if clock == "real_time":
            self._finish_real_time()
        elif clock == "lock_step":
            self._finish_lock_step()
        else:
            self._publish_ground()
            self._receive()
        if expected and not self._answered and changes == self._changes:
            # What the drives keep need not come at every tick, unless the clock waits for it.
            if clock == "lock_step":
                self._statistics.missed_commands += 1
                self._commands.miss(self._params.lock_step_timeout)
            elif not self._commands.kept:
                self._statistics.missed_commands += 1
        duration = self._params.duration
        if duration > 0.0 and self._sim.t >= duration - 0.5 * self._sim.physics_dt:
            self._go("finished")

    def _receive(self) -> None:
        """Take what has arrived; the first sound command of a tick ends its round trip, if it can be an answer."""
        silent = self._commands.silent_since is not None
        if self._take_commands() and not self._answered:
            self._answered = True
            if not silent:
                self._statistics.round_trip.record(self._clock_ns() - self._out_ns)

    def _finish_real_time(self) -> None:
        rate = self._rate
        reserve = self._ground_cost_ns + self._ground_cost_ns // 4
        if self._commands.kept:
            # Most ticks bring no command then: each of them would end in a hurry, and many late.
            reserve = max(reserve, rate.period_ns // 2)
        # Whoever wakes the loop for a push or a service is served between two ticks: the wait for the command goes on.
        while not (self._answered or self._stop) and (budget := rate.sleep_budget_ns() - reserve) > 0:
            self._inbox.wait(min(budget, _LONGEST_WAIT_NS))
            self._receive()
        begin = self._clock_ns()
        self._publishers.publish_ground()
        self._ground_cost_ns += (self._clock_ns() - begin - self._ground_cost_ns) // 8
        while not (self._answered or self._stop) and (budget := rate.sleep_budget_ns() - _WAKE_NS) > 0:
            self._inbox.wait(min(budget, _LONGEST_WAIT_NS))
            self._receive()
        self._publishers.show(rate.sleep_budget_ns())
        # In slow motion, a sleep until the deadline would keep signals waiting.
        while not self._stop and rate.sleep_budget_ns() > _LONGEST_WAIT_NS:
            self._inbox.wait(_LONGEST_WAIT_NS)
            self._receive()
        rate.wait()
        # What came during the last microseconds is in time too, and of several commands the last one counts.
        self._receive()

    def _finish_lock_step(self, told: bool = False) -> None:
        """Wait for the answer to the state that is out; ``told`` says that all the rest of it is out, too."""
        # While the controller computes, and before a service may change the state.
        if not told:
            self._publish_ground()
        end = self._clock_ns() + round(self._params.lock_step_timeout * NS_PER_S)
        changes = self._changes
        while not (self._answered or self._stop) and (budget := end - self._clock_ns()) > 0:
            if self._requests:
                self._serve(self._requests.popleft())
                if changes != self._changes:
                    return
                continue
            self._inbox.wait(min(budget, _LONGEST_WAIT_NS))
            self._receive()
