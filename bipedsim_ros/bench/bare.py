"""Exchange the messages of a control loop between two processes with minimum effort: raw bytes and a wait set.

``python -m bipedsim_ros.bench.bare there ...`` answers every message on /joint_states with a message on
/effort_controller/commands. It reads the messages of the other sensors first. The process ``here`` sends the
measurements, waits for the commands, and prints the round-trip times.
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
from bipedsim.recording.bag import NS_PER_S
from bipedsim.sim import Observation
from bipedsim_ros.loop import (
    ANY,
    AUTO,
    Histogram,
    Inbox,
    OwnCore,
    RateKeeper,
    StayAwake,
    run_urgently,
    sleep_on_time,
)
from bipedsim_ros.nodes import end_with_parent, run_node
from bipedsim_ros.wire import CommandWriter, conversions, publisher, topics

PATIENCE_S = 60.0
"""Maximum time for which each process waits for the other, or for a message [s]."""
WARM = 200
"""Number of initial rounds that are not measured."""


class Bare:
    """One of the two processes.

    Args:
        args: ``role``, ``robot``, ``rounds``, ``rate`` ([Hz], 0 for maximum speed), ``priority`` and ``helped``. The
            last one applies the measures of the nodes: idle cores stay awake, and each process has its own core.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._stop = False
        robot = load_robot(args.robot)
        self._here = args.role == "here"
        self._node = node = Node(f"bare_{args.role}")
        observation = Observation.zeros(robot.nu, len(robot.soles))
        self._inbox = Inbox(node, topics.COMMANDS if self._here else topics.JOINT_STATES)
        self._sensors: list[Any] = []
        self._messages: list[tuple[Any, bytes]] = []
        if not self._here:
            feet = [sole.name for sole in robot.soles]
            self._sensors = [
                self._inbox.subscribe(topics.IMU),
                *(self._inbox.subscribe(topics.ANKLE_WRENCH, k) for k in feet),
            ]
            self._messages = [
                (publisher(node, topics.COMMANDS), CommandWriter(robot.nu).write(observation.joint_effort))
            ]
            return
        imu = topics.IMU.encoder(topics.IMU.frame_of(imu=robot.imu_frame)).data(0)
        self._messages = [(publisher(node, topics.IMU), imu)]
        for sole in robot.soles:
            wrench = topics.ANKLE_WRENCH.encoder(topics.ANKLE_WRENCH.frame_of(sole.name)).data(0)
            self._messages.append((publisher(node, topics.ANKLE_WRENCH, sole.name), wrench))
        states = conversions.JointStateWriter(robot.joint_names, topics.JOINT_STATES.frame)
        self._messages.append((publisher(node, topics.JOINT_STATES), states.write(observation, 0)))

    def run(self) -> int:
        """Send or answer messages; return 1 if the other process does not respond."""
        if self._args.priority:
            run_urgently(self._args.priority)
        sleep_on_time()
        awake, core = StayAwake(self._args.helped), OwnCore(AUTO if self._args.helped else ANY)
        awake.hold()
        core.take(deadlines=self._args.priority > 0)
        gc.collect()
        gc.freeze()
        end = time.monotonic() + PATIENCE_S
        while not (self._is_connected() and self._inbox.publishers()) and not self._stop:
            if time.monotonic() > end:
                return 1
            time.sleep(0.01)
        return self._ask() if self._here else self._answer()

    def _is_connected(self) -> bool:
        return all(publisher.get_subscription_count() for publisher, _ in self._messages) and all(
            sensor.get_publisher_count() for sensor in self._sensors
        )

    def _answer(self) -> int:
        while not self._stop:
            if self._inbox.wait(100_000_000) and self._inbox.take() is not None:
                for sensor in self._sensors:
                    self._inbox.take_from(sensor)
                self._send()
        return 0

    def _send(self) -> int:
        """Publish all messages; return the time before the last one is sent [ns], which the other process awaits."""
        sent = 0
        for message_publisher, message in self._messages:
            sent = time.monotonic_ns()
            message_publisher.publish(message)
        return sent

    def _ask(self) -> int:
        histogram, rate = Histogram(), self._args.rate
        keeper = RateKeeper(1.0 / rate) if rate else None
        # Discovery is not simultaneous in both directions, so the first messages may be lost.
        while not self._stop:
            self._send()
            if self._wait_for_answer(NS_PER_S // 5):
                break
        begin = 0
        for number in range(WARM + self._args.rounds):
            if number == WARM:
                histogram.clear()
                begin = time.monotonic_ns()
            sent = self._send()
            if self._stop or not self._wait_for_answer(round(PATIENCE_S * NS_PER_S)):
                return 1
            histogram.record(time.monotonic_ns() - sent)
            if keeper is not None:
                keeper.wait()
        seconds = (time.monotonic_ns() - begin) / NS_PER_S
        print(json.dumps({"round_trip_us": histogram.summary_us(), "per_s": self._args.rounds / seconds}), flush=True)
        return 0

    def _wait_for_answer(self, patience_ns: int) -> bool:
        """Read the answer; return whether it has arrived in time."""
        end = time.monotonic_ns() + patience_ns
        while not self._stop and (remaining := end - time.monotonic_ns()) > 0:
            if self._inbox.wait(min(remaining, 100_000_000)) and self._inbox.take() is not None:
                return True
        return False

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stop = True
        self._inbox.wake()

    def destroy_node(self) -> None:
        """Destroy the ROS node."""
        self._node.destroy_node()


def main() -> int:
    """Run one of the two processes; return its exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("here", "there"))
    parser.add_argument("--robot", required=True)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--helped", action="store_true")
    args = parser.parse_args()
    if not end_with_parent():
        return 0
    return run_node(lambda: Bare(args), [])


if __name__ == "__main__":
    sys.exit(main())
