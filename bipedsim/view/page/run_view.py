"""Show a run without ROS on a page while it is simulated, and then replay it with a slider."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.recording import Recording, plan_of, without_plan
from bipedsim.runs import describe_push
from bipedsim.sim import Simulator, VertexForces
from bipedsim.view.page.frames import RATE, ThinnedFrames, frames_of, pushes_at
from bipedsim.view.page.history import History
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.page import Page, check_page
from bipedsim.view.page.params import LOCAL, PORT
from bipedsim.view.page.replay import Replay

BEHIND = 0.1
"""Maximum backlog [s]; a longer one is dropped, so that a slow run does not hurry afterwards."""
AHEAD = 0.003
"""Maximum lead of the simulation over the clock [s]; a sleep in every tick would be longer than the ticks."""
PATIENCE = 10.0
"""Maximum time to wait for a browser before the start [s]."""
CURVES = 5
"""Interval in frames between updates of the curves, which cost more than moving the robot."""


class RunView:
    """Observer (:class:`bipedsim.runs.Observer`) that shows the run at the pace of the wall clock.

    It only reads the simulator, so the run has the same bits without it.

    Args:
        factor: Simulated seconds per second; 0 for maximum speed.
        host, port: See :class:`Page`.
        opened: Called with the page when it is available.
        patience: Maximum time to wait for a browser before the start [s].

    Raises:
        ConfigError: viser is not installed, or the factor is negative.
    """

    def __init__(
        self,
        factor: float = 1.0,
        host: str = LOCAL,
        port: int = PORT,
        opened: Callable[[Page], None] = lambda _page: None,
        patience: float = PATIENCE,
    ) -> None:
        if not (np.isfinite(factor) and factor >= 0.0):
            raise ConfigError("must be positive, or 0 for no limit", "factor", factor)
        check_page()
        self._factor = factor
        self._address, self._opened, self._patience = (host, port), opened, patience
        self._running = Event()
        self._running.set()
        self._steps = 0
        self._pushes: list[dict[str, Any]] = []
        self._due = self._frame_due = 0.0
        self._frames = 0
        self._replay: Replay | None = None
        self.page: Page | None = None

    def start(self, sim: Simulator, readouts: Mapping[str, float]) -> None:
        """Open the page with the initial state of the simulator."""
        self._sim, self._readouts = sim, readouts
        objects = () if sim.objects is None else sim.objects.configs
        self.page = page = Page(sim.robot, sim.ground, *self._address, objects, sim.robot.name)
        self._vertices = VertexForces(sim)
        previous = sim.pushes.on_push

        def on_push(*push: Any) -> None:
            if previous is not None:
                previous(*push)
            self._pushes.append(describe_push(sim.t, *push))

        sim.pushes.on_push = on_push
        with page.gui.add_folder("Run", order=10.0) as self._folder:
            self._pause = page.gui.add_button("Pause")
            step = page.gui.add_button("One step", hint="one tick, while the simulation is paused")
            factor = page.gui.add_number(
                "Real-time factor", self._factor, min=0.0, max=100.0, step=0.01, hint="0: no limit"
            )
        self._pause.on_click(lambda _: self._toggle_pause())
        step.on_click(lambda _: self._step())
        factor.on_update(lambda _: self._set_factor(float(factor.value)))
        self._history = History(page)
        self._show(None)
        self._opened(page)
        end = time.monotonic() + self._patience
        while not page.server.get_clients() and time.monotonic() < end:
            time.sleep(0.02)
        self._restart()

    def tick(self, tau_joint: Array, seconds: float) -> None:
        """Show a tick simulated under ``tau_joint`` (nu,) [N.m], when it is due."""
        now = time.monotonic()
        if not self._running.is_set():
            self._show(tau_joint)
            # Short waits permit an interrupt in between.
            while not (self._steps or self._running.wait(0.02)):
                pass
            self._steps = max(0, self._steps - 1)
            self._restart()
            return
        if self._factor > 0.0:
            self._due += self._sim.control_dt / self._factor
            ahead = self._due - now
            if ahead > AHEAD:
                time.sleep(ahead)
            elif ahead < -BEHIND:
                self._due = now
        if now >= self._frame_due:
            self._frame_due = max(self._frame_due + 1.0 / RATE, now)
            self._show(tau_joint)

    def replay(self, recording: Recording) -> None:
        """Show the run with a slider on the same page; then call :meth:`wait`.

        Raises:
            RecordingError: The recording contains no configurations.
        """
        assert self.page is not None
        thinned = ThinnedFrames()
        thinned.add(recording)
        self._folder.remove()
        self._history.remove()
        self._replay = Replay(self.page, self._sim.robot, frames_of(thinned.recording, self._sim.robot))
        self._replay.go(float(recording.t[-1]))

    def wait(self) -> None:
        """Play until Ctrl-C."""
        try:
            if self._replay is not None:
                self._replay.run()
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the page."""
        if self.page is not None:
            self.page.close()

    def _restart(self) -> None:
        self._due = time.monotonic()

    def _toggle_pause(self) -> None:
        if self._running.is_set():
            self._running.clear()
            self._pause.label = "Resume"
        else:
            self._pause.label = "Pause"
            self._running.set()

    def _step(self) -> None:
        if not self._running.is_set():
            self._steps += 1

    def _set_factor(self, factor: float) -> None:
        self._factor = factor
        self._restart()

    def _show(self, tau_joint: Array | None) -> None:
        self._history.add(self._instant(tau_joint))
        self._frames += 1
        if self._frames % CURVES == 0 or not self._running.is_set():
            self._history.show()

    def _instant(self, tau_joint: Array | None) -> Instant:
        sim, contact, robot = self._sim, self._sim.contact, self._sim.robot
        truth = sim.ground_truth()
        q, v = sim.q.copy(), sim.v.copy()
        # Before the first step there are no contact results.
        began = tau_joint is not None
        bodies = np.vstack([truth.base_contact, truth.link_contact])
        return Instant(
            t=sim.t,
            q=q,
            v=v,
            wrench=contact.wrench.copy() if began else None,
            cop=contact.cop.copy() if began else None,
            mode=contact.mode.copy() if began else None,
            clamped=contact.clamped.copy() if began else None,
            sliding=contact.sliding.copy() if began else None,
            cop_margin=contact.cop_margin.copy() if began else None,
            friction_used=contact.friction_used.copy() if began else None,
            n_vertices=contact.n_vertices.copy() if began else None,
            vertex_forces=self._vertices.read(truth.pose_world_sole) if began and not self._vertices.lacking else None,
            joint_position=q[robot.idx_q],
            joint_velocity=v[robot.idx_v],
            joint_effort=None if tau_joint is None else tau_joint.copy(),
            joint_command=sim.command.tau_joint.copy(),
            body_forces=bodies if np.isfinite(bodies).all() else None,
            objects={}
            if sim.objects is None
            else dict(zip(sim.objects.names, sim.objects.states()[:, :7].copy(), strict=True)),
            push=pushes_at({"pushes": self._pushes}, sim.t),
            plan=plan_of(self._readouts) if began else None,
            readouts=without_plan(self._readouts) if began else {},
        )
