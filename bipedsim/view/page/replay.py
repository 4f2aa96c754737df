"""A page that plays a run: time slider, play and pause, steps, speed."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from bipedsim.model import Robot
from bipedsim.view.page.frames import RATE, Frames
from bipedsim.view.page.page import Page
from bipedsim.view.page.plots import Plots, values_of

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
LONGEST = 0.25
"""Time that a frame stands for at most [s]."""
EVERY = 3
"""Plots and slider follow every so many frames: moving them costs more than moving the robot."""


class Replay:
    """Plays frames on a page.

    Args:
        page: Where.
        robot: What ran.
        frames: What is played.
        speed: At first, simulated seconds per second.
    """

    def __init__(self, page: Page, robot: Robot, frames: Frames, speed: float = 1.0) -> None:
        self._page, self._frames = page, frames
        self._lock = threading.RLock()
        self._playing, self._stopped = threading.Event(), threading.Event()
        self._speed = speed
        self._first, self._last = float(frames.t[0]), float(frames.t[-1])
        self._now = self._first
        over = [values_of(robot, frames.instant(i)) for i in range(len(frames))]
        self._values = {name: np.array([one[name] for one in over]) for name in over[0]}
        self._add_controls(page.gui)
        self._plots = Plots(page.gui, robot)
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
        """The time that is shown [s]."""
        return self._now

    def go(self, t: float) -> None:
        """Show the frame that is nearest to time ``t`` [s]."""
        with self._lock:
            i = self._frames.nearest(t)
            self._show(i, float(self._frames.t[i]), everything=True)

    def step(self, frames: int) -> None:
        """Pause, and go ``frames`` forward."""
        self.pause()
        with self._lock:
            i = int(np.clip(self._frames.nearest(self._now) + frames, 0, len(self._frames) - 1))
            self._show(i, float(self._frames.t[i]), everything=True)

    def play(self) -> None:
        """Play on; from the begin where the end is shown."""
        with self._lock:
            if self._now >= self._last - 1e-9:
                self.go(self._first)
            self._play.label = "Pause"
            self._playing.set()

    def play_when_seen(self) -> None:
        """Play as soon as a browser is there: what is played before, nobody sees."""
        waits = threading.Lock()

        def seen(_client: Any) -> None:
            # Whoever comes later does not set going what was paused.
            if waits.acquire(blocking=False):
                self.play()

        self._page.server.on_client_connect(seen)

    def pause(self) -> None:
        """Stay where it is."""
        with self._lock:
            self._play.label = "Play"
            self._playing.clear()
            self.go(self._now)

    def run(self) -> None:
        """Play what is asked for until :meth:`stop` is called."""
        count, before = 0, time.monotonic()
        while not self._stopped.is_set():
            if not self._playing.wait(0.2):
                before = time.monotonic()
                continue
            with self._lock:
                begin = time.monotonic()
                # Whoever held the lock may have paused.
                if not self._playing.is_set():
                    continue
                # A machine that is too slow for every frame leaves some out; after a long pause it goes on from there.
                now = min(self._now + self._speed * min(begin - before, LONGEST), self._last)
                before = begin
                count += 1
                self._show(self._frames.nearest(now), now, everything=count % EVERY == 0)
                if now >= self._last:
                    self.pause()
            self._stopped.wait(max(0.0, begin + 1.0 / RATE - time.monotonic()))

    def stop(self) -> None:
        """Let :meth:`run` return."""
        self._stopped.set()

    def _show(self, i: int, now: float, everything: bool) -> None:
        self._now = now
        self._page.show(self._frames.instant(i, now))
        if everything:
            with self._page.server.atomic():
                self._plots.show(self._frames.t, self._values, now)
                self._slider.value = now

    def _seek(self, event: Any) -> None:
        # The slider also tells of its own moves by the player.
        if event.client is not None:
            self.go(float(event.target.value))

    def _set_speed(self, speed: float) -> None:
        with self._lock:
            self._speed = speed
