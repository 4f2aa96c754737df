"""The least that two processes do who send each other the messages of a control loop: raw bytes and a wait set.

``python -m bipedsim_ros.bench.bare there ...`` answers every message on /joint_states with one on
/effort_controller/commands; ``here`` sends the former, waits for the latter, and prints what that took.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from typing import Any

from rclpy.node import Node

from bipedsim.model import load_robot
from bipedsim.sim import Observation
from bipedsim_ros.loop import NS_PER_S, Histogram, Inbox, RateKeeper, StayAwake, run_urgently, sleep_on_time
from bipedsim_ros.nodes import end_with_parent, run_node
from bipedsim_ros.wire import CommandWriter, conversions, publisher, topics

PATIENCE_S = 60.0
"""How long each of the two waits for the other, or for a message."""
WARM = 200
"""Rounds that are not counted."""


class Bare:
    """One of the two.

    Args:
        args: ``role``, ``robot``, ``rounds``, ``rate`` [Hz], 0 for as fast as it goes, and ``priority``.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        robot = load_robot(args.robot)
        here = args.role == "here"
        self._node = node = Node(f"bare_{args.role}")
        sends, takes = (topics.JOINT_STATES, topics.COMMANDS) if here else (topics.COMMANDS, topics.JOINT_STATES)
        self._publisher: Any = publisher(node, sends)
        self._inbox = Inbox(node, takes)
        observation = Observation.zeros(robot.nu, len(robot.soles))
        states = conversions.JointStateWriter(robot.joint_names, topics.JOINT_STATES.frame)
        command = CommandWriter(robot.nu).write(observation.joint_effort)
        self._message = states.write(observation, 0) if here else command
        self._stop = False

    def run(self) -> int:
        """Send, or answer; return 1 if the other one does not."""
        if self._args.priority:
            run_urgently(self._args.priority)
        sleep_on_time()
        awake = StayAwake(self._args.priority > 0)
        awake.hold()
        gc.collect()
        gc.freeze()
        end = time.monotonic() + PATIENCE_S
        while not (self._publisher.get_subscription_count() and self._inbox.publishers()) and not self._stop:
            if time.monotonic() > end:
                return 1
            time.sleep(0.01)
        return self._ask() if self._args.role == "here" else self._answer()

    def _answer(self) -> int:
        while not self._stop:
            if self._inbox.wait(100_000_000) and self._inbox.take() is not None:
                self._publisher.publish(self._message)
        return 0

    def _ask(self) -> int:
        histogram, rate = Histogram(), self._args.rate
        keeper = RateKeeper(1.0 / rate) if rate else None
        # One participant finds the other before that finds it: the first messages may go to nobody.
        while not self._stop and not self._round(NS_PER_S // 5):
            pass
        begin = 0
        for number in range(WARM + self._args.rounds):
            if number == WARM:
                histogram.clear()
                begin = time.monotonic_ns()
            sent = time.monotonic_ns()
            if self._stop or not self._round(round(PATIENCE_S * NS_PER_S)):
                return 1
            histogram.record(time.monotonic_ns() - sent)
            if keeper is not None:
                keeper.wait()
        seconds = (time.monotonic_ns() - begin) / NS_PER_S
        print(json.dumps({"round_trip_us": histogram.summary_us(), "per_s": self._args.rounds / seconds}), flush=True)
        return 0

    def _round(self, patience_ns: int) -> bool:
        """Send a message and take the answer; return whether it came."""
        self._publisher.publish(self._message)
        end = time.monotonic_ns() + patience_ns
        while not self._stop and (left := end - time.monotonic_ns()) > 0:
            if self._inbox.wait(min(left, 100_000_000)) and self._inbox.take() is not None:
                return True
        return False

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stop = True
        self._inbox.wake()

    def destroy_node(self) -> None:
        """Release the node."""
        self._node.destroy_node()


def main() -> int:
    """Run one of the two; return its exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("here", "there"))
    parser.add_argument("--robot", required=True)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--priority", type=int, default=0)
    args = parser.parse_args()
    if not end_with_parent():
        return 0
    return run_node(lambda: Bare(args), [])


if __name__ == "__main__":
    sys.exit(main())
