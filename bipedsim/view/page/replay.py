"""Play a run on a page with time slider, play and pause, single steps and speed."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from bipedsim.model import Robot
from bipedsim.view.page.frames import RATE, Frames
from bipedsim.view.page.page import Page
from bipedsim.view.page.plots import Plots
from bipedsim.view.page.signals import SignalTable, usual_plots

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
LONGEST = 0.25
"""Maximum time by which one frame advances [s]."""
EVERY = 3
"""Interval in frames between updates of plots and slider, which cost more than moving the robot."""


class Replay:
    """Plays frames on a page.

    Args:
        page: The page.
        robot: Robot of the run.
        frames: Frames to play.
        speed: Initial speed, simulated seconds per second.
    """

    def __init__(self, page: Page, robot: Robot, frames: Frames, speed: float = 1.0) -> None:
        self._page, self._frames = page, frames
        self._lock = threading.RLock()
        self._playing, self._stopped = threading.Event(), threading.Event()
        self._speed = speed
        self._first, self._last = float(frames.t[0]), float(frames.t[-1])
        self._now = self._first
        table = SignalTable(robot)
        for i in range(len(frames)):
            instant = frames.instant(i)
            table.add(instant, page.scene.derive(instant))
        self._add_controls(page.gui)
        page.plots = self._plots = Plots(page.gui, table, usual_plots(robot))
        self.go(self._first)

    def _add_controls(self, gui: Any) -> None:
        step = round(1.0 / RATE, 3)
        with gui.add_folder("Run", order=10.0):
            self._slider = gui.add_slider(
                "time [s]", self._first, max(self._last, self._first + step), step, self._first
            )
            self._play = gui.add_button("Play")
            steps = gui.add_button_group("one step", ("back", "forward"))
            speed = gui.add_dropdown(
                "speed",
                tuple(f"{value:g}" for value in sorted({*SPEEDS, self._speed})),
                initial_value=f"{self._speed:g}",
            )
        self._slider.on_update(lambda event: self._seek(event))
        self._play.on_click(lambda _: self.pause() if self._playing.is_set() else self.play())
        steps.on_click(lambda _: self.step(-1 if steps.value == "back" else 1))
        speed.on_update(lambda _: self._set_speed(float(speed.value)))

    @property
    def now(self) -> float:
        """Displayed time [s]."""
        return self._now

    def go(self, t: float) -> None:
        """Show the frame nearest to time ``t`` [s]."""
        with self._lock:
            i = self._frames.nearest(t)
            self._show(i, float(self._frames.t[i]), everything=True)

    def step(self, frames: int) -> None:
        """Pause and advance by ``frames``; negative values go back."""
        self.pause()
        with self._lock:
            i = int(np.clip(self._frames.nearest(self._now) + frames, 0, len(self._frames) - 1))
            self._show(i, float(self._frames.t[i]), everything=True)

    def play(self) -> None:
        """Continue; restart from the begin if the end is displayed."""
        with self._lock:
            if self._now >= self._last - 1e-9:
                self.go(self._first)
            self._play.label = "Pause"
            self._playing.set()

    def play_when_seen(self) -> None:
        """Start when the first browser connects."""
        waits = threading.Lock()

        def seen(_client: Any) -> None:
            # A later browser must not continue a paused run.
            if waits.acquire(blocking=False):
                self.play()

        self._page.server.on_client_connect(seen)

    def pause(self) -> None:
        """Pause at the present time."""
        with self._lock:
            self._play.label = "Play"
            self._playing.clear()
            self.go(self._now)

    def run(self) -> None:
        """Play until :meth:`stop` is called."""
        count, before = 0, time.monotonic()
        while not self._stopped.is_set():
            if not self._playing.wait(0.2):
                before = time.monotonic()
                continue
            with self._lock:
                begin = time.monotonic()
                # Another thread may have paused while it held the lock.
                if not self._playing.is_set():
                    continue
                # A slow machine skips frames. After a long interruption, playing continues from the same time.
                now = min(self._now + self._speed * min(begin - before, LONGEST), self._last)
                before = begin
                count += 1
                self._show(self._frames.nearest(now), now, everything=count % EVERY == 0)
                if now >= self._last:
                    self.pause()
            self._stopped.wait(max(0.0, begin + 1.0 / RATE - time.monotonic()))

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stopped.set()

    def _show(self, i: int, now: float, everything: bool) -> None:
        self._now = now
        self._page.show(self._frames.instant(i, now))
        if everything:
            with self._page.server.atomic():
                self._plots.show(now)
                self._slider.value = now

    def _seek(self, event: Any) -> None:
        # The slider also reports its own moves during playing; they have no client.
        if event.client is not None:
            self.go(float(event.target.value))

    def _set_speed(self, speed: float) -> None:
        with self._lock:
            self._speed = speed
