"""Who is up: a simulator, which says what it simulates, or a robot that keeps the contract and says nothing more."""

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
from bipedsim.runs import patches_of
from bipedsim.view.page import pushes_at
from bipedsim_ros.live.newest import Newest
from bipedsim_ros.wire import MessageError, parse, relative, topics

GRAPH_PERIOD = 0.25
"""How often the graph is asked who is there [s]."""
ALONE = 3.0
"""How long joint states are published, and no word of a simulator, until they are taken for those of a robot [s]: a
simulator that ends does not take all back at once."""
MOST_PUSHES = 20
"""Pushes that are kept: the last ones, of which one for each body may act."""
MOST_RUN = 1 << 24
"""Bytes of what a simulator says of its run: a ground of many patches has some."""


@dataclass(frozen=True, eq=False)
class Found:
    """What is up.

    Attributes:
        robot, ground, objects: What there is to be seen.
        run: What a simulator says of its run (:func:`bipedsim.runs.describe_run`); empty for a robot.
    """

    robot: Robot
    ground: Ground
    objects: tuple[ObjectConfig, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        """Whether it is simulated."""
        return bool(self.run)

    def looks_like(self, other: Found) -> bool:
        """Return whether both look the same, so that a page of one does for the other."""
        keys = ("robot", "ground", "objects")
        same = all(self.run.get(key) == other.run.get(key) for key in keys)
        return same and self.robot.source == other.robot.source and self.simulated == other.simulated


class Presence:
    """Looks who is up in the namespace of the node.

    Args:
        node: The node.
        robot: Name of the robot; empty: what the simulator says, or the controller.
        ground: Name of the ground of a robot; a simulator says its own.
        controller_robot: Returns what the controller has as its robot; empty if nobody answers.
        tell: Called with what a reader of the terminal should know.

    Attributes:
        there: Whether anybody publishes joint states now.
        pushes: What acts, or acted, from outside: the pushes of the run as the simulator tells them.
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
        self._tell = tell
        self._run = Newest(node, topics.RUN, qos=topics.RUN.offered)
        self._looked = -GRAPH_PERIOD
        self._since: float | None = None
        self._told = ""
        self._lost = False
        self.there = False
        self.found: Found | None = None
        self.pushes: list[Mapping[str, Any]] = []

    def look(self) -> Found | None:
        """Return what is up, or was last; None while nothing has been.

        Raises:
            ConfigError: It cannot be shown here; the message says why and what to do.
        """
        now = time.monotonic()
        if now - self._looked >= GRAPH_PERIOD:
            self._looked = now
            self.there = bool(self._node.count_publishers(relative(topics.JOINT_STATES.name)))
            # Another one may come.
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
        """Take in what a simulator says: at every reset what it runs, and each push."""
        try:
            said = json.loads(parse(data, String, MOST_RUN).data)
            if not isinstance(said, dict) or not isinstance(said.get(schema.ABOUT, {}), dict):
                raise ValueError("it is no JSON object that tells of a run")
            if "push" in said:
                # Whether it can be shown.
                push = said["push"]
                pushes_at({"pushes": [push]}, push["t"] + push["after"])
        except (MessageError, ValueError, TypeError, KeyError, RecursionError) as error:
            self._tell(f"message on {topics.RUN.name} dropped: {error}")
            return
        if "push" in said:
            self.pushes = [*self.pushes[1 - MOST_PUSHES :], said["push"]]
        elif "robot" in said:
            self.pushes = []
            self.found, self._lost = self._simulated(said), False

    def _simulated(self, run: Mapping[str, Any]) -> Found:
        before = self.found
        if before is not None and before.looks_like(Found(before.robot, before.ground, run=run)):
            return Found(before.robot, before.ground, before.objects, run)
        name = self._robot or str(run["robot"])
        try:
            return Found(
                load_robot(name), Ground(patches_of(run["ground"])), parse_objects(run.get("objects", ())), run
            )
        except BipedSimError as error:
            raise ConfigError(
                f"the simulator runs the robot {name}, which cannot be shown: {error}. Name another one: --robot"
            ) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = "what the simulator says of its run is damaged, or of another version of bipedsim"
            raise ConfigError(f"{said} ({type(error).__name__}: {error})") from error

    def _find_robot(self) -> None:
        name = self._robot or self._controller_robot()
        if name:
            self.found, self._lost = Found(load_robot(name), get_ground(self._ground)), False
            self.pushes = []
            return
        told = (
            f"a robot publishes {topics.JOINT_STATES.name}, and nobody says which one: name it, as in "
            "bipedsim view --robot talos (bipedsim robots lists them; a robot.yaml does as well)"
        )
        if told != self._told:
            self._told = told
            self._tell(told)
