"""Show a running robot on a page in the browser (docs/view.md).

``view_node`` does so, and ``bipedsim view`` without a recording.

The node only observes. It reads the newest messages of the robot and its simulator with best effort, as often as the
page is updated. No other node waits for it. The controls of the page use the public services and topics.
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

from bipedsim.ground import get_ground
from bipedsim.model import load_robot
from bipedsim.view.page import History, Instant, Page, check_page
from bipedsim_ros.live import CONTROLLER, Answer, Panel, Presence, Readings, Remote, RunningRobot, ViewParams
from bipedsim_ros.loop import Background
from bipedsim_ros.nodes.duplicate_nodes import DISCOVERY_S, where_is_it
from bipedsim_ros.nodes.node_main import NodeProgram, run_node

READY = "the page is at"
"""Beginning of the output line with the address of the page."""
_REMINDER_S = 60.0
_STANDS = "if time stands still, one step shows the robot"
_PANEL_S = 0.25
NICE = 10
"""Nice value of the node, because the page may be late but the simulator's loop may not."""


@dataclass(frozen=True, eq=False)
class _OpenPage:
    """A page with its data, its controls and its history."""

    page: Page
    readings: Readings
    panel: Panel
    history: History


class ViewNode(NodeProgram):
    """Shows one page of the robot in the namespace of the node.

    Raises:
        ConfigError: A parameter is invalid, or viser is not installed.
    """

    def __init__(self) -> None:
        super().__init__("view_node")
        node, parameters = self._node, self._parameters
        self._params = params = parameters.declare(ViewParams)
        parameters.refuse_unknown()
        check_page()
        # A misspelt name is reported now, not when a robot appears.
        if params.robot:
            load_robot(params.robot)
        get_ground(params.ground)
        self._remote = Remote(node, self._answered)
        self._presence = Presence(node, params.robot, params.ground, self._controller_robot, self._log)
        self._background = Background(node)
        self._running: RunningRobot | None = None
        self._open_page: _OpenPage | None = None
        self._settings: dict[str, str] = {}
        self._settings_requested = False
        self._present = self._was_absent = False
        self._unseen = True
        self._opened = False

    def run(self) -> int:
        """Show the robot until :meth:`stop`; return the exit code."""
        self._background.start()
        period, due, panel_due = 1.0 / self._params.frame_rate, time.monotonic(), 0.0
        remind_at = due + DISCOVERY_S
        try:
            while not self._stop:
                now = time.monotonic()
                self._update_presence()
                if self._running is None:
                    # If a robot is present, _presence has already reported what the page lacks.
                    if now >= remind_at and not self._presence.there:
                        remind_at = now + _REMINDER_S
                        topic = self._node.resolve_topic_name("joint_states")
                        self._log(f"the page opens when there is a robot on {topic}: {where_is_it(self._node)}")
                elif self._open_page is not None:
                    self._show(self._open_page, now >= panel_due)
                    panel_due = now + _PANEL_S if now >= panel_due else panel_due
                self._remote.look()
                # A late frame is skipped.
                due = max(due + period, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
        finally:
            self._remote.stand()
            self._background.stop()
            self._close()
        return 0

    def _log(self, text: str) -> None:
        self._node.get_logger().info(text)

    def _answered(self, answer: Answer) -> None:
        if self._open_page is not None:
            self._open_page.panel.answered(answer)

    def _controller_robot(self) -> str:
        """Return the robot that the controller reports, or an empty text before it does."""
        if not self._settings_requested:
            self._settings_requested = self._remote.read(CONTROLLER, ("robot",), self._settings.update)
        return str(self._settings.get("robot", ""))

    def _update_presence(self) -> None:
        """Open or update the page for the robot that is present."""
        running, before = self._presence.look(), self._running
        if self._present != self._presence.there:
            self._present = self._presence.there
            self._settings.clear()
            self._settings_requested = False
            # At the start, information about the run may arrive before the graph contains the joint states.
            if before is not None and self._present and self._was_absent:
                self._log("it is back")
            elif before is not None and not self._present:
                self._was_absent = True
                self._log("nothing is up any more: waiting for it to come back")
            if self._present and self._open_page is not None:
                self._open_page.readings.forget()
        if running is None or running is before:
            return
        self._running = running
        if before is None or not running.looks_like(before):
            self._open(running)
        elif self._open_page is not None:
            # After a reset or in the next run of the same robot, earlier messages are no longer valid.
            self._open_page.readings.forget()
            self._open_page.panel.renew(running)

    def _open(self, running: RunningRobot) -> None:
        self._close()
        params = self._params
        title = running.robot.name + self._node.get_namespace().rstrip("/").replace("/", " ")
        page = Page(running.robot, running.ground, params.host, params.port, running.objects, title)
        readings = Readings(self._node, running, params.ft_sign, self._node.get_logger().warning)
        panel = Panel(page, running, self._remote, params)
        # NaN coordinates hide the robot until its first message.
        page.show(Instant(t=0.0, q=np.full(running.robot.model.nq, np.nan)))
        self._open_page = _OpenPage(page, readings, panel, History(page))
        kind = "simulated" if running.simulated else "a robot, with no simulator"
        # Other programs wait for this line.
        print(f"{READY} {page.address}: {running.robot.name}, {kind}", flush=True)
        if params.browser and not self._opened:
            self._opened = webbrowser.open(page.address)

    def _close(self) -> None:
        if self._open_page is not None:
            self._open_page.readings.close()
            self._open_page.page.close()
        self._open_page = None

    def _show(self, shown: _OpenPage, panel: bool) -> None:
        """Update the page with new data, if a browser is connected."""
        readings = shown.readings
        new = readings.take(time.monotonic())
        shown.panel.look()
        if not shown.page.server.get_clients():
            # A browser that connects gets the newest data, even if they are not new.
            self._unseen = True
            return
        if not (new or panel or self._unseen):
            return
        self._unseen = False
        notes = () if self._present else ("nothing is up any more",)
        instant = readings.instant(self._presence.pushes, notes)
        # Before the first message, the page remains empty or shows the previous state.
        began = not math.isnan(readings.t)
        if began:
            shown.history.add(instant)
        if panel:
            shown.panel.show(instant.q, readings.health, self._present, () if began else (*readings.lacks, _STANDS))
            shown.history.show()


def run_behind_others() -> None:
    """Lower the priority of this process and its threads, so that they never preempt others."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        # On Linux, a woken SCHED_BATCH thread waits until the running thread leaves the core.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def main(args: Sequence[str] | None = None) -> int:
    """Run view_node; return 0, or 2 after bad parameters."""
    run_behind_others()
    return run_node(ViewNode, args)


if __name__ == "__main__":
    sys.exit(main())
