"""Detect a running robot: a simulator, which publishes its settings, or a real robot, which does not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from bipedsim.errors import BipedSimError, ConfigError
from bipedsim.ground import Ground, get_ground
from bipedsim.model import Robot, load_robot
from bipedsim.objects import ObjectConfig, parse_objects
from bipedsim.recording import schema
from bipedsim.view.page import pushes_at
from bipedsim_ros.live.newest import Newest
from bipedsim_ros.wire import MessageError, parse, relative, topics

GRAPH_PERIOD = 0.25
"""Interval between two checks of the ROS graph [s]."""
ALONE = 3.0
"""Time with joint states but without a simulator, after which a real robot is assumed [s]. The topics of a simulator
that ends do not disappear at the same time."""
MOST_PUSHES = 20
"""Maximum number of stored pushes; the newest are kept, of which one for each body may act."""
MOST_RUN = 1 << 24
"""Maximum size of the settings of a run [bytes]; a ground of many patches is large."""


@dataclass(frozen=True, eq=False)
class RunningRobot:
    """A running robot and its environment.

    Attributes:
        robot, ground, objects: Visible objects.
        run: Settings of the simulated run (:func:`bipedsim.runs.describe_run`); empty for a real robot.
    """

    robot: Robot
    ground: Ground
    objects: tuple[ObjectConfig, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        """Whether the robot is simulated."""
        return bool(self.run)

    def looks_like(self, other: RunningRobot) -> bool:
        """Return whether both look the same, so that the same page can show them."""
        keys = ("robot", "ground", "objects")
        same = all(self.run.get(key) == other.run.get(key) for key in keys)
        return same and self.robot.source == other.robot.source and self.simulated == other.simulated


class Presence:
    """Detects the running robot in the namespace of the node.

    Args:
        node: The node.
        robot: Name of the robot; empty for the one that the simulator or the controller reports.
        ground: Name of the ground of a real robot; a simulator reports its own.
        controller_robot: Returns the robot that the controller reports; empty without an answer.
        tell: Called with messages for the user.

    Attributes:
        there: Whether any node publishes joint states now.
        found: The running robot, or the last one; None before the first.
        pushes: Newest pushes of the run, as published by the simulator.
    """

    def __init__(
        self,
        node: Node,
        robot: str,
        ground: str,
        controller_robot: Callable[[], str],
        tell: Callable[[str], None],
    ) -> None:
        self._node = node
        self._robot, self._ground = robot, ground
        self._controller_robot = controller_robot
        self._log = tell
        self._run = Newest(node, topics.RUN, qos=topics.RUN.offered)
        self._checked_at = -GRAPH_PERIOD
        self._since: float | None = None
        self._last_message = ""
        self._lost = False
        self.there = False
        self.found: RunningRobot | None = None
        self.pushes: list[Mapping[str, Any]] = []

    def look(self) -> RunningRobot | None:
        """Return the running robot, or the last one; None before the first.

        Raises:
            ConfigError: The robot cannot be shown; the message contains reason and remedy.
        """
        now = time.monotonic()
        if now - self._checked_at >= GRAPH_PERIOD:
            self._checked_at = now
            self.there = bool(self._node.count_publishers(relative(topics.JOINT_STATES.name)))
            # After an interruption, another robot may start.
            self._lost = self._lost or not self.there
            if not self.there or self._node.count_publishers(relative(topics.RUN.name)):
                self._since = None
            elif self._since is None:
                self._since = now
        for data in self._run.all():
            self._read_run(data)
        alone = self._since is not None and now - self._since > ALONE
        if alone and (self.found is None or self.found.simulated or self._lost):
            self._find_robot()
        return self.found

    def _read_run(self, data: bytes) -> None:
        """Read a message on /run: settings at every reset, or a push."""
        try:
            entry = json.loads(parse(data, String, MOST_RUN).data)
            if not isinstance(entry, dict) or not isinstance(entry.get(schema.ABOUT, {}), dict):
                raise ValueError("it is no JSON object that tells of a run")
            if "push" in entry:
                # Raise an error now if the push is invalid.
                push = entry["push"]
                pushes_at({"pushes": [push]}, push["t"] + push["after"])
        except (MessageError, ValueError, TypeError, KeyError, RecursionError) as error:
            self._log(f"message on {topics.RUN.name} dropped: {error}")
            return
        if "push" in entry:
            self.pushes = [*self.pushes[1 - MOST_PUSHES :], entry["push"]]
        elif "robot" in entry:
            self.pushes = []
            self.found, self._lost = self._simulated(entry), False

    def _simulated(self, run: Mapping[str, Any]) -> RunningRobot:
        before = self.found
        if before is not None and before.looks_like(RunningRobot(before.robot, before.ground, run=run)):
            return RunningRobot(before.robot, before.ground, before.objects, run)
        name = self._robot or str(run["robot"])
        try:
            return RunningRobot(
                load_robot(name), Ground.of_saved(run["ground"]), parse_objects(run.get("objects", ())), run
            )
        except BipedSimError as error:
            raise ConfigError(
                f"the simulator runs the robot {name}, which cannot be shown: {error}. Name another one: --robot"
            ) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = "what the simulator says of its run is damaged, or of another version of bipedsim"
            raise ConfigError(f"{problem} ({type(error).__name__}: {error})") from error

    def _find_robot(self) -> None:
        name = self._robot or self._controller_robot()
        if name:
            self.found, self._lost = RunningRobot(load_robot(name), get_ground(self._ground)), False
            self.pushes = []
            return
        message = (
            f"a robot publishes {topics.JOINT_STATES.name}, but its model is unknown. Name it, as in "
            "bipedsim view --robot talos (bipedsim robots lists them; a robot.yaml does as well)"
        )
        if message != self._last_message:
            self._last_message = message
            self._log(message)
