"""Nodes that are killed and started again: the others go on, and the counters contain the gap.

The tests compare counters and order, because a busy machine may need any time for a start.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSProfile, ReliabilityPolicy
from recorder_support import RecorderProcess, ticks_in, wait_for
from ros_domains import lasting_environment
from ros_support import NodeUnderTest, RosWorld
from rosgraph_msgs.msg import Clock
from sim_node_support import statistics

from bipedsim.recording.bag.reader import Bag
from bipedsim_ros.wire import topics

pytestmark = [pytest.mark.ros, pytest.mark.long]

RUN = {"rate": 100.0, "physics_dt": 0.01}
LOSSY = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
FEW = 20
"""Ticks after which a controller counts as connected."""


class Watched:
    """The simulator's counters in /diagnostics, and its clock."""

    def __init__(self, ros: RosWorld) -> None:
        self._ros = ros
        self._diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
        self.clock = ros.collect(Clock, "/clock", LOSSY)

    def counter(self, key: str) -> int:
        """Return the newest value of a counter; 0 before the first."""
        values = (
            int(value.value)
            for array in reversed(self._diagnostics)
            for status in array.status
            for value in status.values
            if status.name.startswith("bipedsim: ") and value.key == key
        )
        return next(values, 0)

    def levels(self, name: str) -> Callable[[], list[bytes]]:
        """Return a function that returns the levels of a status so far."""
        return lambda: [status.level for array in self._diagnostics for status in array.status if status.name == name]

    def forget(self) -> None:
        """Receive the last messages of a dead simulator, and discard all."""
        self._ros.spin(lambda: False, 0.5)
        self._diagnostics.clear()

    def more(self, key: str, by: int = FEW) -> None:
        """Wait until a counter has grown."""
        end = self.counter(key) + by
        self._ros.until(lambda: self.counter(key) >= end, f"{by} more {key}")

    @property
    def ticks(self) -> list[int]:
        """Ticks of all clock messages."""
        return [round(RUN["rate"] * (one.clock.sec + 1e-9 * one.clock.nanosec)) for one in self.clock]


def halt(node: NodeUnderTest, how: str) -> None:
    """Kill a node, or stop it first as a breakpoint does."""
    if how == "stopped and killed":
        node.process.send_signal(signal.SIGSTOP)
    node.kill()


def controller(ros: RosWorld, clock: str) -> NodeUnderTest:
    return ros.start("controller_node", lock_step=clock == "lock_step", rate=RUN["rate"])


@pytest.mark.parametrize("how", ["killed", "stopped and killed"])
@pytest.mark.parametrize("clock", ["lock_step", "real_time"])
def test_a_controller_takes_over_from_a_killed_one(ros: RosWorld, clock: str, how: str) -> None:
    watched, stats = Watched(ros), ros.folder / "stats.json"
    waits: dict[str, Any] = {"lock_step_timeout": 0.5} if clock == "lock_step" else {"rate_check": "off"}
    sim = ros.start("sim_node", clock=clock, stats_file=str(stats), **waits, **RUN)
    first = controller(ros, clock)
    watched.more("commands_received")
    halt(first, how)
    watched.more("missed_commands", 2)
    controller(ros, clock)
    watched.more("commands_received")
    assert sim.stop() == 0
    counted = statistics(stats)
    spans = counted["command_silences_s"]
    walls, repeated = counted["command_silences_wall_s"], counted["command_silences_ticks"]
    assert len(spans) == len(walls) == len(repeated) > 0
    assert any(end is not None for _, end in spans), "the new controller ended the silence"
    # A tick without an answer begins the next one with the same command, except after the last tick.
    if clock == "lock_step":
        assert 0 <= counted["missed_commands"] - sum(repeated) <= 1
        assert max(walls) >= 0.5, "each tick without an answer has waited"
        assert watched.ticks == sorted(watched.ticks), "time goes on"
    else:
        assert sum(repeated) <= counted["missed_commands"]
        assert max(repeated) <= 20, "then the joints are damped"


@pytest.mark.parametrize("clock", ["lock_step", "real_time"])
def test_a_controller_goes_on_with_the_successor_of_a_killed_simulator(
    ros: RosWorld, clock: str, tmp_path: Path
) -> None:
    """The killed one does not count as another robot, although its participant never times out."""
    watched = Watched(ros)
    more: dict[str, Any] = {} if clock == "lock_step" else {"rate_check": "off"}
    usual, ros.env = ros.env, lasting_environment(ros.env, tmp_path)
    first = ros.start("sim_node", clock=clock, **more, **RUN)
    ros.env = usual
    node = controller(ros, clock)
    watched.more("commands_received")
    statuses = watched.levels(topics.CONTROLLER_STATUS)
    # The controller has seen the process alive, once a second.
    ros.until(lambda: len(statuses()) > 2, "reports of the controller")
    halt(first, "stopped and killed")
    watched.forget()
    ros.start("sim_node", clock=clock, **more, **RUN)
    watched.more("commands_received")
    assert watched.counter("ticks") > 0
    ros.until(lambda: statuses()[-1:] == [DiagnosticStatus.OK], "a controller without warnings")
    assert node.process.poll() is None


@pytest.mark.parametrize("how", ["killed", "stopped and killed"])
def test_a_recorder_that_replaces_a_killed_one_gets_every_tick(ros: RosWorld, tmp_path: Path, how: str) -> None:
    """In lock step the simulator waits for a reliable subscriber, but not for a dead one."""
    watched = Watched(ros)
    ros.start("sim_node", clock="lock_step", **RUN)
    controller(ros, "lock_step")
    watched.more("ticks")
    wanted = "topics:=['/joint_states']"
    with RecorderProcess(ros.env, tmp_path / "first", wanted) as first:
        watched.more("ticks")
        if how == "stopped and killed":
            first.process.send_signal(signal.SIGSTOP)
        first.process.kill()
    # More than the simulator stores for a reliable subscriber.
    watched.more("ticks", 6000)
    with RecorderProcess(ros.env, tmp_path / "second", wanted) as second:
        wait_for(lambda: len(recorded(tmp_path / "second")) > FEW, "messages in the second bag")
        second.finish(signal.SIGINT)
    ticks = recorded(tmp_path / "second")
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))
    assert min(ticks) > max(recorded(tmp_path / "first"), default=0)


def recorded(bag: Path) -> list[int]:
    """Return the recorded ticks of the joint states."""
    if not any(file.stat().st_size for file in bag.glob("*.mcap")):
        return []
    return [round(tick * RUN["rate"] / 1000) for tick in ticks_in(Bag(bag), "/joint_states")]
