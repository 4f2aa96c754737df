"""``view_node`` and ``bipedsim view`` without a recording: a running robot on a page in the browser (docs/view.md).

It looks on: it takes the newest of what the robot and its simulator publish, best effort, as often as the page shows
it, and nothing waits for it. What its user asks for goes by the services and topics that everybody has.
"""

from __future__ import annotations

import math
import os
import sys
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from rclpy.node import Node

from bipedsim.ground import get_ground
from bipedsim.model import load_robot
from bipedsim.view.page import Instant, Page, Trail, check_page
from bipedsim_ros.live import CONTROLLER, Answer, Found, Panel, Presence, Readings, Remote, ViewParams
from bipedsim_ros.loop import Background
from bipedsim_ros.nodes.duplicate_nodes import DISCOVERY_S, where_is_it
from bipedsim_ros.nodes.node_main import run_node
from bipedsim_ros.nodes.parameters import Parameters

READY = "the page is at"
"""What the line begins with that says where to look."""
_REMINDER_S = 60.0
_STANDS = "if time stands still, one step shows the robot"
_PANEL_S = 0.25
NICE = 10
"""Nice value of the node: a page may be late, the loop that it shows may not."""


@dataclass(frozen=True, eq=False)
class _Shown:
    """A page, what it shows, the controls and the curves on it."""

    page: Page
    readings: Readings
    panel: Panel
    trail: Trail


class ViewNode:
    """One page, of whatever is up in the namespace of the node.

    Raises:
        ConfigError: A parameter is wrong, or viser is not installed.
    """

    def __init__(self) -> None:
        self._node = node = Node("view_node", automatically_declare_parameters_from_overrides=True)
        parameters = Parameters(node, "parameters of view_node")
        self._params = params = parameters.declare(ViewParams)
        parameters.refuse_unknown()
        check_page()
        # What is misspelt is told now, and not when a robot comes.
        if params.robot:
            load_robot(params.robot)
        get_ground(params.ground)
        self._remote = Remote(node, self._answered)
        self._presence = Presence(node, params.robot, params.ground, self._controller_robot, self._say)
        self._background = Background(node)
        self._found: Found | None = None
        self._shown: _Shown | None = None
        self._settings: dict[str, str] = {}
        self._asked = False
        self._there = self._gone = False
        self._unseen = True
        self._opened = False
        self._stop = False

    def run(self) -> int:
        """Show until :meth:`stop`; return the exit code."""
        self._background.start()
        period, due, panel_due = 1.0 / self._params.frame_rate, time.monotonic(), 0.0
        remind_at = due + DISCOVERY_S
        try:
            while not self._stop:
                now = time.monotonic()
                self._look_who_is_there()
                if self._found is None:
                    # Of one that is there, what lacks has been said.
                    if now >= remind_at and not self._presence.there:
                        remind_at = now + _REMINDER_S
                        topic = self._node.resolve_topic_name("joint_states")
                        self._say(f"the page opens when there is a robot on {topic}: {where_is_it(self._node)}")
                elif self._shown is not None:
                    self._show(self._shown, now >= panel_due)
                    panel_due = now + _PANEL_S if now >= panel_due else panel_due
                self._remote.look()
                # A frame that is late is left out.
                due = max(due + period, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
        finally:
            self._remote.stand()
            self._background.stop()
            self._close()
        return 0

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler."""
        self._stop = True

    def destroy_node(self) -> None:
        """Release the node."""
        self._node.destroy_node()

    def _say(self, text: str) -> None:
        self._node.get_logger().info(text)

    def _answered(self, answer: Answer) -> None:
        if self._shown is not None:
            self._shown.panel.answered(answer)

    def _controller_robot(self) -> str:
        """Return the robot that the controller runs, once it has said so."""
        if not self._asked:
            self._asked = self._remote.read(CONTROLLER, ("robot",), self._settings.update)
        return str(self._settings.get("robot", ""))

    def _look_who_is_there(self) -> None:
        """Bring the page up to what is there."""
        found, before = self._presence.look(), self._found
        if self._there != self._presence.there:
            self._there = self._presence.there
            self._settings.clear()
            self._asked = False
            # At first, what a simulator says of its run may be here before the graph shows its joint states.
            if before is not None and self._there and self._gone:
                self._say("it is back")
            elif before is not None and not self._there:
                self._gone = True
                self._say("nothing is up any more: waiting for it to come back")
            if self._there and self._shown is not None:
                self._shown.readings.forget()
        if found is None or found is before:
            return
        self._found = found
        if before is None or not found.looks_like(before):
            self._open(found)
        elif self._shown is not None:
            # A reset, or the next run of the same: what was said of the one before means nothing.
            self._shown.readings.forget()
            self._shown.panel.renew(found)

    def _open(self, found: Found) -> None:
        self._close()
        params = self._params
        title = found.robot.name + self._node.get_namespace().rstrip("/").replace("/", " ")
        page = Page(found.robot, found.ground, params.host, params.port, found.objects, title)
        readings = Readings(self._node, found, params.ft_sign, self._node.get_logger().warning)
        panel = Panel(page, found, self._remote, params)
        # The robot is nowhere yet.
        page.show(Instant(t=0.0, q=np.full(found.robot.model.nq, np.nan)))
        self._shown = _Shown(page, readings, panel, Trail(page.gui, found.robot))
        kind = "simulated" if found.simulated else "a robot, with no simulator"
        # The line is waited for.
        print(f"{READY} {page.address}: {found.robot.name}, {kind}", flush=True)
        if params.browser and not self._opened:
            self._opened = webbrowser.open(page.address)

    def _close(self) -> None:
        if self._shown is not None:
            self._shown.readings.close()
            self._shown.page.close()
        self._shown = None

    def _show(self, shown: _Shown, panel: bool) -> None:
        """Show what is new, where somebody looks."""
        readings = shown.readings
        new = readings.take(time.monotonic())
        shown.panel.look()
        if not shown.page.server.get_clients():
            # Whoever comes is shown the newest, whether or not it is new.
            self._unseen = True
            return
        if not (new or panel or self._unseen):
            return
        self._unseen = False
        notes = () if self._there else ("nothing is up any more",)
        instant = readings.instant(self._presence.pushes, notes)
        # Before its first message there is nothing to see, or what was there last.
        began = not math.isnan(readings.t)
        if began:
            shown.page.show(instant)
            shown.trail.add(instant)
        if panel:
            shown.panel.show(instant.q, readings.health, self._there, () if began else (*readings.lacks, _STANDS))
            shown.trail.show()


def run_behind_others() -> None:
    """Have this process and its threads to come get a core after others, and never take it from one that works."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        # Linux: who is woken waits until the one that has the core leaves it.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def main(args: Sequence[str] | None = None) -> int:
    """Run view_node; return 0, or 2 after bad parameters."""
    run_behind_others()
    return run_node(ViewNode, args)


if __name__ == "__main__":
    sys.exit(main())
