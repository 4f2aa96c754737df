"""The loop in a simulated environment with its own clock: the wait for a command, resets, and pauses."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import refusal

pytest.importorskip("rclpy", reason="rclpy is not installed")

from builtin_interfaces.msg import Time
from drives_support import knee_goal

from bipedsim.config import from_mapping
from bipedsim.errors import BipedSimError
from bipedsim.model import load_robot
from bipedsim.recording.bag import NS_PER_S
from bipedsim.runs import Fault, FaultSchedule, Push, Rollout
from bipedsim.sim import LARGEST_PUSH, Command, Simulator
from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.sim_loop import SimLoop
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.loop.sim_statistics import Statistics
from bipedsim_ros.loop.tracking import ErrorCode, Tracking
from bipedsim_ros.wire import Topic, topics
from bipedsim_ros.wire.joint_commands import CommandWriter, ImpedanceWriter

ROBOT = load_robot("biped14")
SOUND = CommandWriter(ROBOT.nu).write(np.zeros(ROBOT.nu))
KEPT = ImpedanceWriter(ROBOT.nu).write(
    Command(np.zeros(ROBOT.nu), ROBOT.posture, np.zeros(ROBOT.nu), np.ones(ROBOT.nu), np.ones(ROBOT.nu))
)
"""An impedance, which the drives keep."""
US = 1000


class Surroundings:
    """Inbox, publishers and clock at once; each look at the clock takes a microsecond.

    Attributes:
        events: Result of each wait in turn: its time [us], and whether it is a command or a wake-up.
        command: Content of the commands, and their topic.
        sensed, ground: Publication times of the sensors, and of all other topics [ns].
        shown: Times at which viewers may get messages, and the remaining time [ns].
        late: Delay of a wait that times out [us].
        unheard_looks: Number of looks at which no recorder listens yet.
    """

    def __init__(self, events: list[tuple[int, bool]]) -> None:
        self.events = events
        self.now = 0
        self.command: tuple[Topic, bytes] = (topics.COMMANDS, SOUND)
        self.ground: list[int] = []
        self.shown: list[tuple[int, float]] = []
        self.late = 0
        self.sensed: list[int] = []
        self.on_wake: Callable[[], None] = lambda: None
        self.unheard_looks = 0
        self._message: tuple[Topic, bytes] | None = None

    def clock(self) -> int:
        self.now += US
        return self.now

    def wait(self, timeout_ns: int) -> bool:
        if not self.events or self.events[0][0] * US > timeout_ns:
            self.now += timeout_ns + self.late * US
            return False
        after, is_command = self.events.pop(0)
        self.now += after * US
        if not is_command:
            self.on_wake()
        self._message = self.command if is_command else None
        return is_command

    def take_any(self) -> tuple[Topic, bytes] | None:
        message, self._message = self._message, None
        return message

    def wake(self) -> None: ...

    def subscribers(self) -> int:
        return 1

    publishers = subscribers

    def unheard(self) -> list[str]:
        self.unheard_looks -= 1
        return ["/joint_states"] if self.unheard_looks >= 0 else []

    def publish_sensors(self, _observation: Any) -> int:
        self.sensed.append(self.now)
        return self.now

    def publish_run(self, _said: Any) -> None: ...

    def publish_changes(self, _changes: Any) -> None: ...

    def publish_ground(self) -> None:
        self.ground.append(self.now)

    def publish_clock(self) -> None: ...

    def show(self, left_ns: float = math.inf) -> None:
        self.shown.append((self.now, left_ns))


def a_loop(
    around: list[tuple[int, bool]] | Surroundings,
    log: Callable[[str], Any] = pytest.fail,
    pushes: tuple[Push, ...] = (),
    faults: tuple[Fault, ...] = (),
    **params: Any,
) -> tuple[Any, Statistics, SimLoop]:
    """Return a loop with ticks of a millisecond, two of them by default."""
    played: Any = Surroundings(around) if isinstance(around, list) else around
    settings = SimParams(**{"start": "immediately", "duration": 0.002, "priority": 0, **params})
    statistics = Statistics(ROBOT.name, "one_step", settings.clock, settings.rate)
    commands = Commands(ROBOT, settings, lambda _text: None)
    sim = Simulator(ROBOT)
    schedule = FaultSchedule(faults, ROBOT, sim.control_dt, 0)
    rollout = Rollout(sim, pushes, schedule, log, on_event=played.publish_run)
    loop = SimLoop(rollout, settings, played, commands, played, statistics, log, played.clock)
    return played, statistics, loop


def run(events: list[tuple[int, bool]], pushes: bool = False, **more: Any) -> tuple[Surroundings, Statistics]:
    """Simulate them."""
    played, statistics, loop = a_loop(events, **more)
    if pushes:
        played.on_wake = lambda: loop.requests.post(lambda: loop.push(np.zeros(6), "", 0.1), pytest.fail)
    loop.run(lambda: None)
    return played, statistics


@pytest.mark.parametrize("clock", ["real_time", "lock_step"])
@pytest.mark.parametrize("pushes", [False, True])
def test_a_wake_up_does_not_end_the_wait_for_a_command(clock: str, pushes: bool) -> None:
    wake, command = (50, False), (100, True)
    played, statistics = run([wake, wake, command, wake, command], pushes, clock=clock)
    assert played.events == []
    assert statistics.missed_commands == 0
    assert statistics.round_trip.count == 2
    # Each was in hand when it came.
    assert statistics.round_trip.maximum_ns < 300 * US


def test_every_answer_to_the_first_state_is_taken_before_time_begins() -> None:
    """The state at t = 0 is repeated: a second answer to it, 30 ms later, must not count for the state that follows."""
    played, statistics = run([(50, True), (30_000, True)], clock="lock_step", start="wait_for_command")
    assert (statistics.ticks, statistics.missed_commands, played.events) == (2, 2, []), "nobody answers the others"


def test_a_command_that_does_not_come_is_a_miss() -> None:
    _, statistics = run([(50, True)], clock="real_time")
    assert (statistics.ticks, statistics.missed_commands, statistics.round_trip.count) == (2, 1, 1)


def test_a_fall_after_late_commands_is_explained_by_them() -> None:
    """One command, and then none: a robot without torques falls."""
    limp = {"clock": "real_time", "duration": 1.5, "command_timeout": 1e6}
    _, statistics, loop = a_loop([(50, True)], **limp)
    loop.run(lambda: None)
    fell_at = statistics.outcome["fell_at_s"]
    late = loop._late.before(fell_at)
    assert late is not None
    assert late.ticks == pytest.approx(1000.0 * fell_at, abs=3)
    plain = loop._rollout.outcome()["verdict"]
    assert statistics.outcome["verdict"] == f"{plain}; {late}"
    assert run([(50, True)] * 1500, **limp)[1].outcome["verdict"] == plain


@pytest.mark.parametrize("start", ["wait_for_command", "immediately", "hold_position"])
def test_any_start_waits_for_its_recorder(start: str) -> None:
    around = Surroundings([(50, True)] * 20)
    around.unheard_looks = 5
    _, statistics, loop = a_loop(around, clock="as_fast_as_possible", start=start, wait_for_recorder=True)
    assert statistics.ticks == 0
    loop.run(lambda: None)
    assert around.unheard_looks < 0
    assert statistics.ticks == 2


@pytest.mark.parametrize("after", [50, 900])
def test_viewers_are_shown_in_what_is_left_of_a_tick_once_its_command_is_there(after: int) -> None:
    played, statistics = run([(after, True)] * 5, clock="real_time", duration=5e-3)
    assert statistics.missed_commands == 0
    # The first two are of the start, before which nothing is late.
    shown = [one for one in played.shown if one[1] < math.inf]
    assert len(shown) == 5
    for begin, (at, left) in zip(played.ground[-5:], shown, strict=True):
        assert at > begin
        # The time of spinning before the deadline is not available.
        assert left == pytest.approx(1e6 - 1e3 * after - 40e3, abs=20e3)


def test_an_impedance_that_drives_keep_is_measured_from_the_newest_state() -> None:
    played = Surroundings([(50, True)])
    played.command = (topics.IMPEDANCE, KEPT)
    _, statistics, loop = a_loop(played, clock="real_time", duration=0.02)
    real = played.publish_sensors
    states: list[int] = []

    def publish(observation: Any) -> int:
        states.append(played.now)
        if len(states) == 10:
            played.events.append((50, True))
        return real(observation)

    played.publish_sensors = publish  # type: ignore[method-assign]
    loop.run(lambda: None)
    assert statistics.round_trip.count == 2
    assert statistics.round_trip.maximum_ns < 300 * US


def test_a_reply_after_all_the_rest_was_published_is_taken_before_the_deadline() -> None:
    played = Surroundings([(50, True)])
    played.command = (topics.IMPEDANCE, KEPT)
    _, statistics, loop = a_loop(played, clock="real_time", duration=0.005)
    published = played.publish_ground

    def publish_ground() -> None:
        published()
        if len(played.ground) == 4:
            played.events.append((100, True))

    played.publish_ground = publish_ground  # type: ignore[method-assign]
    loop.run(lambda: None)
    assert statistics.round_trip.count == 2
    # The rest is published in the middle of a tick of a millisecond.
    assert 500 * US < statistics.round_trip.maximum_ns < 800 * US


def test_ticks_without_a_command_end_in_time_while_drives_keep_one() -> None:
    """Of a controller at 50 Hz nothing comes in 19 of 20 ticks, and a wait in vain ends later than a sleep."""
    played = Surroundings([(50, True)])
    played.late = 150
    played.command = (topics.IMPEDANCE, KEPT)
    _, statistics, loop = a_loop(played, clock="real_time", duration=0.02)
    loop.run(lambda: None)
    assert (statistics.ticks, statistics.missed_commands, statistics.overruns) == (20, 0, 0)
    # All the rest goes out where there is time for it, and not in the last moment.
    assert np.all(np.array(played.ground[-19:]) - played.sensed[-19:] < 700 * US)


@pytest.mark.long
@pytest.mark.parametrize("factor", [0.01, 0.5, 1.0, 4.0])
def test_a_second_of_the_wall_clock_has_as_many_simulated_ones_as_it_is_told(factor: float) -> None:
    """Ticks have their length in simulated time, and their deadlines are nearer, or farther apart."""
    played, statistics = run([(50, True)] * 20, duration=0.02, real_time_factor=factor)
    assert statistics.ticks == 20
    assert statistics.simulated_ns == 20_000_000
    assert statistics.missed_commands == 0
    assert np.diff(played.ground)[1:] == pytest.approx(1e6 / factor, rel=0.05)
    assert statistics.real_time_factor == pytest.approx(factor, rel=0.05)


def test_the_pace_may_change_while_it_runs() -> None:
    played, _, loop = a_loop([(50, True)] * 20, duration=0.02)
    published = played.publish_ground

    def publish_ground() -> None:
        published()
        if len(played.ground) == 10:
            loop.keep_pace(0.1)

    played.publish_ground = publish_ground
    loop.run(lambda: None)
    # The existing deadline does not change.
    apart = np.diff(played.ground)
    assert apart[1:9] == pytest.approx(1e6, rel=0.05)
    assert apart[10:] == pytest.approx(1e7, rel=0.05)


@pytest.mark.parametrize("clock", ["lock_step", "as_fast_as_possible"])
def test_a_pace_needs_a_wall_clock(clock: str) -> None:
    with refusal(place="parameters: real_time_factor", value=2.0):
        from_mapping(SimParams, {"clock": clock, "real_time_factor": 2.0}, "parameters")


def test_a_robot_that_nobody_commands_any_more_falls_for_want_of_commands() -> None:
    said_of_joints: list[str] = []
    _, statistics = run([(50, True)] * 50, log=said_of_joints.append, duration=1.0, command_timeout=0.05)
    assert statistics.outcome["fell_at_s"] > 0.2
    said = statistics.outcome["verdict"]
    begun = float(said.partition("no commands from ")[2].split()[0])
    assert begun == pytest.approx(0.1, abs=0.01), said


def test_torques_at_their_limits_are_counted_behind_topics_too() -> None:
    knee = ROBOT.joint_names.index("l_knee")
    played = Surroundings([(50, True)] * 40)
    torque, waited = np.zeros(ROBOT.nu), played.wait

    def wait(timeout_ns: int) -> bool:
        came = waited(timeout_ns)
        if came:
            # Twice the effort limit, in alternating directions.
            torque[knee] = 2.0 * (-1.0) ** len(played.events) * ROBOT.effort_limit[knee]
            played._message = (topics.COMMANDS, CommandWriter(ROBOT.nu).write(torque))
        return came

    played.wait = wait
    _, statistics, loop = a_loop(played, duration=0.04, log=lambda _text: None)
    loop.run(lambda: None)
    outcome = statistics.outcome
    # The first tick has no command yet.
    assert outcome["torque_limited"] == {"l_knee": 39 / 40}
    assert outcome["torque_swings_hz"] == {"l_knee": pytest.approx(38 / 0.04)}
    assert "l_knee at its torque limit in 98 % of ticks and driven from side to side" in outcome["verdict"]
    told = statistics.diagnostics(Time())
    assert "torque_limited.l_knee" in {pair.key for status in told.status for pair in status.values}


def test_who_asks_when_the_loop_has_ended_is_answered() -> None:
    """A service request during the end of the node would delay it until the answer."""
    _, _, loop = a_loop([], clock="real_time")
    loop.run(lambda: None)
    assert loop.requests.ask(loop.pause) == (False, "the simulation has ended")


def test_a_reset_waits_half_a_second_at_most_for_commands_that_never_end() -> None:
    """A caller gets an answer within a second. This includes a call during the start, which waits as long."""
    played, _, loop = a_loop([(20_000, True)] * 100, clock="real_time")
    before = played.now
    loop.reset()
    assert 200_000 * US < played.now - before < 500_000 * US


FAULTS = (
    Fault("joints", "lost", share=0.1),
    Fault("joints", "late", amount=0.004, at=0.02, duration=0.01),
    Fault("commands", "lost", share=0.3),
    Fault("drives", "scaled", joint="l_knee", amount=0.5, at=0.01),
)
PUSHES = (Push(0.02, 0.05, (3000.0, 0.0, 0.0)),)


class Answering(Surroundings):
    """A controller that answers each state after 100 us with torques that follow from its time.

    Attributes:
        told: Messages since the last reset, in order.
        silent: Ticks [ms] without an answer.
        do: Actions during the wait for the answer to a tick, once.
    """

    def __init__(self, silent: range) -> None:
        super().__init__([])
        self.told: list[Any] = []
        self.silent, self.do = silent, dict[int, Callable[[], None]]()
        self._tick, self._open = 0, False

    def publish_run(self, said: Any) -> None:
        if "push" in said:
            self.told.append(said)
        elif "draw" in said:
            self.told = []

    def publish_sensors(self, observation: Any) -> int:
        self._tick, self._open = round(1000 * observation.t), True
        values = (getattr(observation, name) for name in type(observation).__slots__)
        self.told.append([np.array(value).tobytes() for value in values])
        return self.now

    def publish_faulty_sensors(self, observation: Any, faults: FaultSchedule) -> int:
        self.told.append((dict(faults.sent), dict(faults.stamp)))
        # Of states that are lost no time is known.
        tick = self._tick + 1
        self.publish_sensors(observation)
        self._tick = tick
        return self.now

    def wait(self, timeout_ns: int) -> bool:
        # One that no longer steps publishes nothing either: its clock goes on.
        assert self.now < 100_000_000 * US, "it never ends"
        assert len(self.told) < 10_000, "it never ends"
        action = self.do.pop(self._tick, None)
        if action is not None:
            action()
        elif self._open and self._tick not in self.silent and timeout_ns > 100 * US:
            self._open = False
            self.now += 100 * US
            self._message = (topics.COMMANDS, CommandWriter(ROBOT.nu).write(np.full(ROBOT.nu, 3.0 + 0.1 * self._tick)))
            return True
        else:
            self.now += timeout_ns
        return False


def laps(ends: list[int], faults: tuple[Fault, ...], last: Callable[[SimLoop], None], **params: Any) -> dict[str, Any]:
    """Run to each of these ticks, and reset the loop between them; return the messages of the last lap.

    Args:
        ends: Ticks [ms].
        faults: Injected faults.
        last: Called with the loop just before each reset.
        params: Of sim_node.
    """
    played, statistics, loop = a_loop(
        Answering(range(5, 15)),
        lambda _text: None,
        PUSHES,
        faults,
        **{"duration": 0.0, "command_timeout": 0.005, **params},
    )
    sim = loop._sim
    counted = np.zeros(2, dtype=int)

    def again() -> None:
        last(loop)
        loop.count()
        assert statistics.outcome["steps"] is not None
        counted[:] += sim.contact.state_changes, sim.contact.unresolved
        loop.requests.post(loop.reset, pytest.fail)
        ends.pop(0)
        played.do[ends[0]] = again if len(ends) > 1 else loop.stop

    played.do[ends[0]] = again if len(ends) > 1 else loop.stop
    loop.run(lambda: None)
    counted += sim.contact.state_changes, sim.contact.unresolved
    assert counted[0] > 0
    assert (statistics.state_changes, statistics.unresolved_steps) == tuple(counted), "over all laps"
    assert not statistics.error
    stale = statistics.commands_dropped_by_kind.get("stale", 0)
    return {"told": played.told, "outcome": statistics.outcome, "lost": statistics.commands_lost, "stale": stale}


def falls(loop: SimLoop) -> None:
    """Push it for as long as it runs; it has fallen already."""
    loop.count()
    assert loop._statistics.outcome["fell_at_s"] is not None
    loop.push(np.array([0.0, 500.0, 0.0, 0.0, 0.0, 0.0]), "", 10.0)


def diverges(loop: SimLoop) -> None:
    loop.push(np.array([LARGEST_PUSH, 0.0, 0.0, 0.0, 0.0, 0.0]), "", 10.0)
    assert not loop._step()
    assert loop._statistics.error


@pytest.mark.long
@pytest.mark.parametrize("faults", [(), FAULTS], ids=["sound", "faulty"])
@pytest.mark.parametrize(("clock", "last"), [("real_time", falls), ("lock_step", diverges)])
def test_a_reset_begins_anew_to_the_bit(clock: str, last: Callable[[SimLoop], None], faults: tuple[Fault, ...]) -> None:
    """States, pushes, faults and outcome equal those of a new loop."""
    fresh = laps([60], faults, last, clock=clock)
    again = laps([700, 60], faults, last, clock=clock)
    assert len(fresh["told"]) > 60
    assert again["told"] == fresh["told"]
    assert again["outcome"] == fresh["outcome"]
    assert again["lost"] == fresh["lost"]
    # In lock step it comes while the answer to a state is on its way.
    assert again["stale"] == (clock == "lock_step")


@pytest.mark.parametrize("clock", ["real_time", "lock_step"])
def test_a_start_that_is_refused_leaves_the_run_and_its_commands_alone(clock: str) -> None:
    """The run continues to the bit, delayed commands are not dropped, and nothing is counted twice."""
    shown = []
    for wrong in (False, True):
        said: list[str] = []
        played, statistics, loop = a_loop(Answering(range(0)), said.append, clock=clock, duration=0.06)
        q, v = loop._sim.q.copy(), loop._sim.v.copy()
        q[2] = np.nan
        refused: list[str] = []

        def ask(loop: SimLoop = loop, q: Any = q, v: Any = v, refused: list[str] = refused) -> None:
            loop.requests.post(lambda: loop.begin_at(q, v), refused.append)

        if wrong:
            played.do[30] = ask
        loop.run(lambda: None)
        loop.count()
        assert len(refused) == wrong
        dropped, counted = statistics.commands_dropped_by_kind, (statistics.state_changes, statistics.unresolved_steps)
        shown.append((played.told, dropped, counted, statistics.outcome, statistics.missed_commands, said))
    assert counted[0] > 0
    assert shown[0] == shown[1]


class OnlyWhatComes(Answering):
    """A controller that answers the joint states that reach it, and no others."""

    def publish_faulty_sensors(self, observation: Any, faults: FaultSchedule) -> int:
        at = super().publish_faulty_sensors(observation, faults)
        self._open = faults.sent["joints"]
        return at


@pytest.mark.parametrize("clock", ["real_time", "lock_step"])
def test_to_joint_states_that_are_lost_on_purpose_no_command_is_missed(clock: str) -> None:
    """No controller can answer a lost state. The fault is counted, and no missed command is reported."""
    lost = Fault("joints", "lost", at=0.02, duration=0.01)
    played, statistics, loop = a_loop(
        OnlyWhatComes(range(0)), lambda _text: None, (), (lost,), clock=clock, duration=0.06
    )
    loop.run(lambda: None)
    told = [one[0]["joints"] for one in played.told if isinstance(one, tuple)]
    assert told.count(False) == 10
    assert statistics.ticks == 60
    assert statistics.missed_commands == 0
    assert statistics.silences == []
    # Where the controller is to blame, it is.
    played, statistics, loop = a_loop(
        OnlyWhatComes(range(40, 45)), lambda _text: None, (), (lost,), clock=clock, duration=0.06
    )
    loop.run(lambda: None)
    assert statistics.missed_commands > 0


def test_a_pause_ends_the_wait_for_a_command_and_is_no_miss() -> None:
    """In lock step; and a single step takes the command that came meanwhile."""
    played, statistics, loop = a_loop(Answering(range(5, 9)), clock="lock_step", duration=0.0)
    asked: list[int] = []
    paused: list[int] = []

    def pause() -> None:
        asked.append(played.now)
        loop.requests.post(loop.pause, pytest.fail)

    def publish_clock() -> None:
        paused.append(played.now)
        loop.stop()

    played.do[5], played.publish_clock = pause, publish_clock
    loop.run(lambda: None)
    assert statistics.state == "paused"
    assert paused[0] - asked[0] < 500_000 * US
    assert statistics.missed_commands == 0
    played._message = (topics.COMMANDS, CommandWriter(ROBOT.nu).write(np.full(ROBOT.nu, 7.0)))
    loop.single_step()
    np.testing.assert_array_equal(loop._sim.command.tau_joint, 7.0)


def test_an_end_of_the_node_during_the_wait_for_a_command_is_no_miss() -> None:
    """In lock step, where nearly every interrupt comes during a wait."""
    played, statistics, loop = a_loop([(50, True), (60, False)], clock="lock_step", duration=0.0)
    played.on_wake = loop.stop
    loop.run(lambda: None)
    assert statistics.ticks == 2
    assert (statistics.commands_received, statistics.missed_commands, statistics.silence) == (1, 0, None)


class Connected(Surroundings):
    """The states have a subscriber, and no node sends a command.

    Attributes:
        published: Times of the states [ns].
    """

    def __init__(self) -> None:
        super().__init__([])
        self.published: list[int] = []
        self.do = deque[Callable[[], None]]()

    def publish_sensors(self, _observation: Any) -> int:
        self.published.append(self.now)
        return self.now

    def wait(self, timeout_ns: int) -> bool:
        self.now += timeout_ns
        if self.now - self.published[-1] > 100_000 * US and self.do:
            self.do.popleft()()
        return False


def test_a_reset_repeats_the_state_at_once_for_who_waits_for_it_as_the_begin_does() -> None:
    """Its first message may have been lost on the way, and each half second is one in which nothing moves."""
    played, _, loop = a_loop(Connected(), duration=0.0, start="wait_for_command")
    begun: list[int] = []

    def reset() -> None:
        begun.append(len(played.published))
        loop.requests.post(loop.reset, pytest.fail)

    played.do.extend([reset, loop.stop])
    loop.run(lambda: None)
    laps = played.published[: begun[0]], played.published[begun[0] :]
    assert [len(lap) for lap in laps] == [2, 2]
    assert all(lap[1] - lap[0] < 100_000 * US for lap in laps)


def test_lock_step_needs_no_commands_while_a_goal_runs_and_waits_for_one_afterwards() -> None:
    played, statistics, loop = a_loop([], clock="lock_step", duration=1.005, lock_step_timeout=0.5)
    goal = knee_goal()
    loop.requests.post(lambda: loop.follow(goal), pytest.fail)
    ends: list[int] = []

    def sense(_observation: Any) -> int:
        if goal.end is not None:
            ends.append(played.now)
        return int(played.now)

    played.publish_sensors = sense
    loop.run(lambda: None)
    assert goal.end is not None
    assert goal.end.code == ErrorCode.SUCCESSFUL
    assert ends[0] < 0.1 * NS_PER_S, "no state of the goal has waited"
    assert (np.diff(ends) >= 0.5 * NS_PER_S).all()
    assert statistics.missed_commands == len(ends)


def test_in_lock_step_a_command_ends_a_goal() -> None:
    played, _, loop = a_loop([], clock="lock_step", duration=0.05, lock_step_timeout=0.5)
    goal = knee_goal()
    loop.requests.post(lambda: loop.follow(goal), pytest.fail)
    commands = iter([None, None, (topics.COMMANDS, SOUND)])
    played.take_any = lambda: next(commands, None)
    loop.run(lambda: None)
    assert goal.end is not None
    assert topics.COMMANDS.name in goal.end.text


def test_the_end_of_the_loop_ends_a_goal_and_the_next_one_is_refused() -> None:
    _, _, loop = a_loop([], duration=0.05, clock="as_fast_as_possible")
    goal, late = knee_goal(), knee_goal()
    loop.requests.post(lambda: loop.follow(goal), pytest.fail)
    loop.run(lambda: None)
    assert goal.end is not None
    assert goal.end.code == ErrorCode.INVALID_GOAL
    with pytest.raises(BipedSimError):
        loop.check_goal(late.goal)
    assert loop.requests.ask(lambda: loop.follow(late))[0] is False


def test_a_goal_that_ends_in_the_past_is_refused_and_one_that_has_begun_is_not() -> None:
    _, _, loop = a_loop([], duration=1.5, clock="as_fast_as_possible")
    answers: list[str] = []
    past, begun = knee_goal(), knee_goal(start=1)
    past = Tracking(past.goal._replace(waypoints=past.goal.waypoints._replace(start=0.2)), ROBOT.joint_names)

    def ask(_seconds: Any = None) -> int:
        if loop.simulator.t > 1.3 and not answers:
            for goal in (past, begun):
                loop.requests.post(lambda goal=goal: loop.follow(goal), answers.append)  # type: ignore[misc]
        return 0

    loop._publishers.publish_sensors = ask  # type: ignore[method-assign, assignment]
    loop.run(lambda: None)
    assert answers
    assert all("1.200" in answer for answer in answers)
    assert begun.state() is not None


def test_a_divergence_ends_a_goal() -> None:
    log: list[str] = []
    _, _, loop = a_loop([], log.append, duration=0.0)
    goal = knee_goal()
    loop.follow(goal)
    diverges(loop)
    assert goal.end is not None
    assert goal.end.code == ErrorCode.INVALID_GOAL
    with pytest.raises(BipedSimError):
        loop.follow(knee_goal())
