"""Main loop of sim_node: command in, one step, state out, with one of three clocks.

A tick first publishes the measurements of the robot, and then waits for the command. It publishes everything else when
the command has arrived or when the deadline is near. If the drives hold the command, so that none is expected, it does
so in the middle of the tick. Otherwise, on a machine with few cores, the controller would wait for plots and
recordings. Lock step has no deadline, so everything else is published while the controller computes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from bipedsim.errors import BipedSimError, DivergenceError
from bipedsim.numerics import Array
from bipedsim.recording import schema
from bipedsim.recording.bag import NS_PER_S
from bipedsim.runs import Rollout, label_of
from bipedsim.sim import Simulator
from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.inbox import Inbox
from bipedsim_ros.loop.late_commands import LateCommands
from bipedsim_ros.loop.publishers import Publishers
from bipedsim_ros.loop.real_time_clock import RealTimeClock
from bipedsim_ros.loop.realtime import LONGEST_WAIT_NS, RateKeeper, StayAwake, sleep_on_time
from bipedsim_ros.loop.replies import Replies
from bipedsim_ros.loop.requests import Requests
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.loop.sim_statistics import Statistics
from bipedsim_ros.loop.tracking import Tracking
from bipedsim_ros.wire import Goal

# Before the start, the state is repeated at this period, in case no controller received it.
_REPEAT_NS = 500_000_000
_RECORDER_PATIENCE_NS = 10 * NS_PER_S


class SimLoop:
    """Run a simulator with a controller in another process.

    Args:
        rollout: The simulator with pushes and faults; only the loop accesses it.
        params: Clock, rate, timeouts.
        inbox: Receives commands.
        commands: Validates and stores the commands.
        publishers: Publish the states.
        statistics: Counters of the run.
        log: Called with an error message.
        clock_ns: Monotonic clock [ns].

    Attributes:
        requests: Actions of other threads, which the loop runs between two ticks.
        exit_code: 0, or 1 when a run with a ``duration`` ended by divergence.
    """

    def __init__(
        self,
        rollout: Rollout,
        params: SimParams,
        inbox: Inbox,
        commands: Commands,
        publishers: Publishers,
        statistics: Statistics,
        log: Callable[[str], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._sim = sim = rollout.sim
        self._rollout = rollout
        rollout.warm_up(loops=True)
        self._params = params
        self._inbox = inbox
        self._commands = commands
        self._late = LateCommands(self._sim.control_dt)
        self._publishers = publishers
        self._statistics = statistics
        self._log = log
        self._clock_ns = clock_ns
        self._awake = StayAwake(params.priority > 0)
        self._tick_ns = round(sim.control_dt * NS_PER_S)
        self._rate = RateKeeper(sim.control_dt / params.real_time_factor, clock_ns=clock_ns)
        self.requests = Requests(inbox.wake, log)
        self._replies = Replies(inbox, commands, rollout, statistics.round_trip, clock_ns)
        self._real_time = RealTimeClock(self._rate, self._replies, commands, publishers, lambda: self._stop, clock_ns)
        self._stop = False
        self._running_since: int | None = None
        self._repeat_at = 0
        self._repeats = 0
        self._recorder_until = 0
        self._changes = 0
        self.exit_code = 0
        self._reset()

    # Other threads may call these methods.

    @property
    def stopped(self) -> bool:
        """Whether :meth:`stop` was called."""
        return self._stop

    @property
    def simulator(self) -> Simulator:
        """The simulator; only actions for :attr:`requests` may access it."""
        return self._sim

    @property
    def state(self) -> str:
        """State of the loop: waiting (for the first command), running, paused, diverged or finished."""
        return self._state

    def stop(self) -> None:
        """End :meth:`run` soon; any thread and a signal handler may call this."""
        self._stop = True
        self._inbox.wake()

    def keep_pace(self, factor: float) -> None:
        """Set the real-time factor: simulated seconds per second of wall time; any thread may call this."""
        self._rate.period_ns = round(self._tick_ns / factor)

    # These methods are actions for :attr:`requests`.

    def reset(self) -> str:
        """Reset to t = 0, and start again as the parameter ``start`` requires."""
        self._drop_stale()
        self._reset()
        return "back at t = 0" + (", waiting for a command" if self._state == "waiting" else "")

    def begin_at(self, q: Array, v: Array) -> str:
        """Reset to t = 0 in the state (q, v): (nq,), (nv,); a paused simulation stays paused.

        Raises:
            ConfigError: The robot cannot start in this state; the run continues unchanged.
        """
        self._sim.check_start(q, v)
        paused = self._state == "paused"
        self._drop_stale()
        self._reset(q, v)
        return self.pause() if paused else "at t = 0"

    def pause(self) -> str:
        """Stop stepping."""
        if self._state in ("diverged", "finished"):
            raise BipedSimError(f"the simulation is {self._state}; call reset")
        self._set_state("paused")
        return f"paused at t = {self._sim.t:.6f} s"

    def resume(self) -> str:
        """Continue to step, or wait for the first command if there was none."""
        if self._state == "paused":
            self._set_state("waiting" if self._awaits_command else "running")
        if self._state not in ("running", "waiting"):
            raise BipedSimError(f"the simulation is {self._state}; call reset")
        return f"{self._state} at t = {self._sim.t:.6f} s"

    def single_step(self) -> str:
        """Take one tick of a paused simulation with the last command; in lock_step, with the reply to the last state.

        Raises:
            BipedSimError: The simulation is not paused, or diverges.
        """
        if self._state != "paused":
            raise BipedSimError(f"single steps need a paused simulation, this one is {self._state}; call pause first")
        self._replies.take_untimed()
        answers = self._params.clock == "lock_step" and self._commands.started
        if answers and not self._replies.answered:
            # The pause came before the reply to the published state.
            self._finish_lock_step(published=True)
        if not self._step():
            raise BipedSimError(self._statistics.error)
        if answers:
            self._replies.answered = False
            self._finish_lock_step()
        else:
            self._publish_ground()
        return f"t = {self._sim.t:.6f} s"

    def push(self, wrench: Array, body: str, duration: float, point: Array | None = None, ramp: float = 0.0) -> str:
        """Apply an external wrench; see :meth:`Simulator.push`."""
        self._sim.push(wrench, body or None, duration, 0.0, point, ramp)
        return f"pushed at t = {self._sim.t:.6f} s"

    def move(self, states: Mapping[str, Array]) -> str:
        """Move the objects of a simulation that has some; see :meth:`bipedsim.sim.Objects.move`."""
        assert self._sim.objects is not None
        self._sim.objects.move(self._sim, states)
        if self._state != "running":
            self._publish_ground()
        return f"moved {', '.join(states)} at t = {self._sim.t:.6f} s"

    def tune_drives(self, gains: Mapping[str, float]) -> str:
        """Give the drives new gains from the next tick on.

        Args:
            gains: Names as in :class:`DriveParams` with the joint, such as ``drive_stiffness.l_knee``, to the value.
        """
        self._publishers.publish_changes(self._commands.tuning.set(self._sim.t, gains))
        return f"changed {', '.join(gains)} at t = {self._sim.t:.6f} s"

    def check_goal(self, goal: Goal) -> str:
        """Check that the drives can follow the trajectory of an action's goal now.

        Raises:
            BipedSimError: The simulation has ended, or the trajectory ends in the past.
        """
        if self._state in ("diverged", "finished"):
            raise BipedSimError(f"the simulation is {self._state}; call reset")
        t = self._sim.t
        if (end := goal.end(t)) < t:
            raise BipedSimError(f"it ends at t = {end:.3f} s, but now is t = {t:.3f} s; set its stamp to 0")
        return f"valid at t = {t:.6f} s"

    def follow(self, tracking: Tracking) -> str:
        """Make the drives follow the trajectory of an action's goal from the next tick on.

        Raises:
            BipedSimError: They cannot, see :meth:`check_goal`, or an injected fault loses the goal.
        """
        self.check_goal(tracking.goal)
        if not self._replies.follow(tracking):
            raise BipedSimError("an injected fault of commands loses it")
        return f"followed from t = {self._sim.t:.6f} s"

    def cancel(self, tracking: Tracking) -> str:
        """Make the drives hold their setpoint, if they still follow this goal."""
        self._commands.cancel(tracking)
        return f"at t = {self._sim.t:.6f} s"

    def hang(self, action: str) -> str:
        """Start an action of the gantry; see :meth:`Simulator.hang`."""
        self._sim.hang(action)
        return f"{action} at t = {self._sim.t:.6f} s"

    # The loop.

    def run(self, each_second: Callable[[], None]) -> None:
        """Run until :meth:`stop` or the end of ``duration``; call ``each_second`` about once a second of wall time."""
        sleep_on_time()
        next_report = self._clock_ns() + NS_PER_S
        while not self._stop and self._state != "finished":
            while self.requests.serve():
                pass
            if self._state == "running":
                self._tick()
            elif self._state == "waiting":
                self._wait_for_start()
            else:
                self._inbox.wait(LONGEST_WAIT_NS)
                self._replies.take_untimed()
                self._publishers.publish_clock()
            if self._clock_ns() >= next_report:
                next_report += NS_PER_S
                self.count()
                each_second()
        self._set_state(self._state)
        self.count()
        self.requests.close()
        self._commands.end_goal("the simulation has ended")
        self._publishers.publish_run({schema.STATISTICS: self._statistics.as_dict()})

    def count(self) -> None:
        """Update the statistics."""
        statistics, rollout, commands = self._statistics, self._rollout, self._commands
        self._split_wall_time()
        statistics.state = self._state
        statistics.t = self._sim.t
        statistics.overruns = self._rate.overruns
        statistics.deadlines_dropped = self._rate.dropped
        statistics.lateness = self._rate.lateness
        statistics.commands_received = commands.received
        statistics.commands_dropped_by_kind = dict(commands.drops.by_kind)
        statistics.commands_clipped = commands.clipped
        statistics.silences, statistics.silence = list(commands.silences), commands.silence
        statistics.command_timeouts = commands.timeouts
        statistics.outcome = self._late.explain(rollout.outcome())
        statistics.commands_lost = rollout.faults.lost_commands
        statistics.state_changes, statistics.unresolved_steps = rollout.state_changes, rollout.unresolved_steps

    def _set_state(self, state: str) -> None:
        self._split_wall_time()
        self._changes += 1
        self._state = state
        self._replies.running = state == "running"
        self._running_since = self._clock_ns() if state == "running" else None
        if state != "running":
            self._awake.release()
        else:
            self._awake.hold()
            self._replies.answered = True
            self._rate.start()

    @property
    def _first_state(self) -> str:
        """State before the first command."""
        return "waiting" if self._awaits_command or self._params.wait_for_recorder else "running"

    @property
    def _awaits_command(self) -> bool:
        """Whether time stands still until the first command."""
        return self._params.start == "wait_for_command" and not self._commands.started

    def _split_wall_time(self) -> None:
        if self._running_since is not None:
            now = self._clock_ns()
            self._statistics.wall_ns += now - self._running_since
            self._running_since = now

    def _reset(self, q: Array | None = None, v: Array | None = None) -> None:
        if q is None:
            self._rollout.begin(self._params.posture, self._params.drop_height)
        else:
            self._rollout.start(q, v)
        about = {"scenario": label_of(self._params.title), "ground": label_of(self._params.ground)}
        self._publishers.publish_run({**self._rollout.described(), schema.ABOUT: about})
        self._commands.clear()
        self._late.clear()
        self._statistics.error = ""
        self._repeat_at = self._repeats = 0
        self._state = "waiting"
        self._set_state(self._first_state)
        self._publish_all()
        self._publishers.publish_changes(self._commands.tuning.restart(self._sim.t))

    def _drop_stale(self) -> None:
        self._replies.drain(self._replies.drop_stale, lambda: self._stop)

    def _publish_all(self) -> None:
        self._publishers.publish_sensors(self._rollout.measured)
        self._publish_ground()

    def _publish_ground(self) -> None:
        """Publish everything except the measurements, without regard to a deadline."""
        self._publishers.publish_ground()
        self._publishers.show()

    def _wait_for_start(self) -> None:
        """Wait for the first command while time stands still, and repeat the state for late subscribers."""
        now = self._clock_ns()
        connected = self._publishers.subscribers() > 0 and self._inbox.publishers() > 0
        if now >= self._repeat_at or (connected and self._repeats == 0):
            self._publish_all()
            self._repeat_at = now + _REPEAT_NS
            self._repeats = self._repeats + 1 if connected else 0
        self._inbox.wait(min(LONGEST_WAIT_NS // 5, self._repeat_at - now))
        self._replies.take()
        if self._awaits_command or self._recorder_missing():
            return
        if self._params.wait_for_recorder:
            # A recorder discovers the topics one after the other, and only now each topic has a subscriber.
            self._publish_all()
        # The state at t = 0 was published more than once, and each message may cause a reply. None of these may count
        # as the reply to a later state.
        self._replies.drain(self._replies.take, lambda: self._stop)
        self._set_state("running")

    def _recorder_missing(self) -> bool:
        """Return whether the start must wait until a recorder subscribes to every topic."""
        if not self._params.wait_for_recorder:
            return False
        now = self._clock_ns()
        self._recorder_until = self._recorder_until or now + _RECORDER_PATIENCE_NS
        unheard = self._publishers.unheard()
        if unheard and now >= self._recorder_until:
            self._log(f"no node listens to {', '.join(unheard)}; starting without listeners")
            return False
        return bool(unheard)

    def _step(self) -> bool:
        """Step once and publish the measurements of the robot; return False if the simulation has diverged."""
        rollout = self._rollout
        command = self._commands.command(rollout.measured, self._sim.t)
        try:
            observation = rollout.tick(command, self._commands.timed_out)
        except DivergenceError as error:
            self._diverge(error)
            return False
        self._statistics.ticks += 1
        if rollout.faults.faults:
            out_ns = self._publishers.publish_faulty_sensors(observation, rollout.faults)
        else:
            out_ns = self._publishers.publish_sensors(observation)
        self._replies.published(out_ns)
        return True

    def _diverge(self, error: DivergenceError) -> None:
        self._set_state("diverged")
        self._commands.end_goal("the simulation has diverged")
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
        # No controller replies to measurements that an injected fault has dropped.
        self._replies.answered = not self._rollout.is_measured
        clock = self._params.clock
        if clock == "real_time":
            self._real_time.finish()
        elif clock == "lock_step":
            self._finish_lock_step()
        else:
            self._publish_ground()
            self._replies.receive()
        if expected and not (self._replies.answered or self._stop) and changes == self._changes:
            # A command that the drives hold need not arrive at every tick, unless the clock waits for it.
            if clock == "lock_step":
                self._statistics.missed_commands += 1
                self._commands.miss(self._params.lock_step_timeout)
            elif not self._commands.kept:
                self._statistics.missed_commands += 1
                if self._rollout.verdict.fell_at is None:
                    self._late.add(self._sim.t)
        duration = self._params.duration
        if duration > 0.0 and self._sim.t >= duration - 0.5 * self._sim.physics_dt:
            self._set_state("finished")

    def _finish_lock_step(self, published: bool = False) -> None:
        """Wait for the reply to the published state; ``published`` means that everything else is published as well."""
        # Everything else is published while the controller computes, and before a service can change the state.
        if not published:
            self._publish_ground()
        if self._commands.follows_goal:
            # A goal replies to all states until its end, so that no client needs to send commands meanwhile.
            self._replies.answered = True
            self._replies.receive()
        end = self._clock_ns() + round(self._params.lock_step_timeout * NS_PER_S)
        changes = self._changes
        while not (self._replies.answered or self._stop) and (budget := end - self._clock_ns()) > 0:
            if self.requests.serve():
                if changes != self._changes:
                    return
                continue
            self._replies.wait(budget)
