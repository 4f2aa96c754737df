"""Add the controls to a live page: time, pushes, velocity, gains, and the command line of the next run."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from html import escape
from queue import SimpleQueue
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from bipedsim.contact import CONTACT_MODELS
from bipedsim.model import PRESETS
from bipedsim.numerics import Array
from bipedsim.recording import schema
from bipedsim.runs import heading_of
from bipedsim.view.page import Page
from bipedsim_ros.live.gains import Gains
from bipedsim_ros.live.presence import RunningRobot
from bipedsim_ros.live.remote import CONTROLLER, SIM, Answer, Remote
from bipedsim_ros.live.steering import Steering, TeleopParams
from bipedsim_ros.loop import DriveParams, SimParams
from bipedsim_ros.wire import topics

SHOWN = ("push_timeout", "real_time_factor", "clock", "title", "ground")
"""Parameters of sim_node that the page shows."""
STATUS_ID, ANSWER_ID, COMMAND_ID = "bipedsim-status", "bipedsim-answer", "bipedsim-command"
"""Ids of elements of the page, for programs that read it."""
DIRECTIONS = {
    "ahead": (1.0, 0.0, 0.0),
    "back": (-1.0, 0.0, 0.0),
    "left": (0.0, 1.0, 0.0),
    "right": (0.0, -1.0, 0.0),
    "up": (0.0, 0.0, 1.0),
    "down": (0.0, 0.0, -1.0),
}
"""Directions of a push, in the robot's heading frame."""
KEYS = {"w": "faster", "s": "slower", "a": "turn left", "d": "turn right", "q": "step left", "e": "step right"}
STOP_KEY = "space"
PAUSE_KEY, STEP_KEY = "p", "n"
FACTORS = (0.01, 10.0)
"""Range of the real-time factor on the page; sim_node accepts a larger range."""
MOST_DRAG = 2.0
"""Maximum distance by which a body is dragged [m]; the force is the robot's weight per metre."""
_NOTIFICATION_S = 10.0
_STYLE = "font-size:0.8em;line-height:1.5;padding:0 0.6em"


class Panel:
    """Controls on a page, and the results of their actions.

    The page calls callbacks in its own threads. They only queue the actions; :meth:`look` executes them.

    Args:
        page: The page.
        running: The robot that the page shows.
        remote: Sends requests to the nodes.
        params: Steps and limits of the velocities.
    """

    def __init__(self, page: Page, running: RunningRobot, remote: Remote, params: TeleopParams) -> None:
        self._page, self._running, self._remote = page, running, remote
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._steering = Steering(params)
        self._steered_by: int | None = None
        self._dragged: tuple[Array, str] | None = None
        self._paused = False
        self._push_timeout = math.nan
        self._controller: dict[str, Any] = {}
        self._sim: dict[str, Any] = {}
        self._asked_sim = self._asked_controller = False
        self._status_text = ""
        self._q: Array = running.robot.q_nominal
        gui = page.gui
        with gui.add_folder("Run", order=10.0):
            self._status = gui.add_html("")
            if running.simulated:
                self._add_time(gui)
            else:
                gui.add_html(
                    _hint_html("no simulator is up: a robot can be neither paused, set back nor pushed from here")
                )
            self._answer = gui.add_html("")
        if running.simulated:
            with gui.add_folder("Push", order=20.0):
                self._add_push(gui)
        with gui.add_folder("Velocity", order=30.0):
            self._add_velocity(gui, params)
        self._gains = [Gains(gui, remote, self._todo.put, ("Gains", 35.0), CONTROLLER)]
        if running.simulated:
            names = tuple(field.name for field in fields(DriveParams))
            self._gains.append(Gains(gui, remote, self._todo.put, ("Drives", 36.0), SIM, names))
        if running.simulated:
            with gui.add_folder("Next run", order=40.0, expand_by_default=False):
                self._add_next_run(gui)
        page.server.on_client_disconnect(lambda client: self._todo.put(lambda: self._on_disconnect(client.client_id)))

    # Construction of the controls.

    def _add_time(self, gui: Any) -> None:
        self._pause = gui.add_button("Pause", hint=f"time stands still, or goes on (key {PAUSE_KEY.upper()})")
        self._later(self._pause.on_click, lambda: self._remote.pause(not self._paused))
        step = gui.add_button("One step", hint=f"one tick, while time stands still (key {STEP_KEY.upper()})")
        self._later(step.on_click, lambda: self._remote.trigger("One step"))
        reset = gui.add_button("Reset", hint="back to t = 0")
        self._later(reset.on_click, lambda: self._remote.trigger("Reset"))
        self._factor = gui.add_number("Real-time factor", 1.0, min=FACTORS[0], max=FACTORS[1], step=0.01)
        self._later(self._factor.on_update, self._change_factor)
        self._key(gui, "Pause or resume", PAUSE_KEY, lambda: self._remote.pause(not self._paused))
        self._key(gui, "One step", STEP_KEY, lambda: self._remote.trigger("One step"))

    def _add_push(self, gui: Any) -> None:
        robot = self._running.robot
        self._bodies = _bodies(self._running)
        self._body = gui.add_dropdown("Body", tuple(self._bodies))
        self._direction = gui.add_dropdown("Direction", tuple(DIRECTIONS), hint="as the robot sees it")
        self._impulse = gui.add_number(
            "Impulse [N.s]", round(0.1 * robot.mass, 1), min=0.0, step=0.1, hint="0.1 m/s of the whole robot at first"
        )
        self._lasts = gui.add_number(
            "Lasts [s]",
            SimParams.push_timeout,
            min=0.001,
            max=10.0,
            step=0.001,
            hint="push_timeout of sim_node, for all pushes",
        )
        self._later(self._lasts.on_update, self._change_lasts)
        push = gui.add_button("Push")
        self._later(push.on_click, self._press_push)
        gui.add_html(_hint_html("or drag a body with Ctrl held: a metre is the robot's weight"))
        self._page.scene.on_drag(lambda *drag: self._todo.put(lambda: self._drag(*drag)))

    def _add_velocity(self, gui: Any, params: TeleopParams) -> None:
        v, w = params.max_linear, params.max_angular
        self._sliders = [
            gui.add_slider(name, -limit, limit, step, 0.0)
            for name, limit, step in (
                ("Ahead [m/s]", v, params.linear_step),
                ("Left [m/s]", v, params.linear_step),
                ("Turn [rad/s]", w, params.angular_step),
            )
        ]
        for slider in self._sliders:
            slider.on_update(self._slid)
        stop = gui.add_button("Stop walking")
        self._later(stop.on_click, lambda: self._press(" ", None))
        keys = " ".join(KEYS).upper()
        self._keys_hint = gui.add_html(_hint_html(f"keys {keys}, {STOP_KEY}: stop"))
        for key, meaning in (*KEYS.items(), (STOP_KEY, "stop walking")):
            command = gui.add_command(meaning.capitalize(), hotkey=key.upper() if len(key) == 1 else key)
            command.on_trigger(lambda event, key=key: self._pressed(" " if key == STOP_KEY else key, event.client_id))

    def _add_next_run(self, gui: Any) -> None:
        run = self._running.run
        models, presets = tuple(CONTACT_MODELS), tuple(PRESETS)
        self._model = gui.add_dropdown(
            "Contact model", models, initial_value=_valid_or_first(models, run.get("contact_model"))
        )
        self._hardware = gui.add_dropdown("Hardware", presets)
        self._record = gui.add_checkbox("Record", False, hint="a recording begins with its run")
        for control in (self._model, self._hardware, self._record):
            self._later(control.on_update, self._show_command)
        self._command = gui.add_html("")
        self._show_command()

    def _later(self, register: Callable[[Callable[[Any], None]], Any], work: Callable[[], None]) -> None:
        """Queue ``work`` when the user changes a control, but not when the panel itself sets it."""
        register(lambda event: self._todo.put(work) if event.client_id is not None else None)

    def _key(self, gui: Any, name: str, key: str, work: Callable[[], None]) -> None:
        gui.add_command(name, hotkey=key.upper()).on_trigger(lambda _: self._todo.put(work))

    # Execution of the actions.

    def look(self) -> None:
        """Execute the queued actions, and continue a drag."""
        while not self._todo.empty():
            self._todo.get()()
        for gains in self._gains:
            gains.look()
        if self._dragged is not None:
            self._remote.push(*self._dragged)

    def renew(self, running: RunningRobot) -> None:
        """Continue with a run that looks the same, whose nodes may have other parameters."""
        self._running = running
        self._asked_sim = self._asked_controller = False

    def _ask(self) -> None:
        """Request the displayed parameters from the nodes, once they exist."""
        if not self._asked_sim:
            self._asked_sim = self._remote.read(SIM, SHOWN, self._take_sim)
        if not self._asked_controller:
            self._asked_controller = self._remote.read(CONTROLLER, ("robot", "controller"), self._take_controller)

    def show(
        self, q: Array, health: Mapping[str, tuple[int, str, Mapping[str, str]]], there: bool, more: Sequence[str] = ()
    ) -> None:
        """Show the state of the run.

        Args:
            q: Configuration of the robot, for the directions of pushes.
            health: Diagnostics of the nodes, see :class:`bipedsim_ros.live.Readings`.
            there: Whether the robot is present.
            more: Further notes.
        """
        self._q = q
        if there and self._running.simulated:
            self._ask()
        rows = list(more)
        if not there:
            rows.append("nothing is up any more: waiting for it to come back")
        elif self._running.simulated:
            rows += self._loop_rows(health)
        else:
            rows.append("a robot, or what keeps its contract")
        # While time stands still, topics without new messages are no fault.
        expected = (0, _STALE) if self._paused else (0,)
        rows += [text for name, (level, text, _) in health.items() if there and level not in expected and name != _LOOP]
        text = "".join(f"<div>{escape(row)}</div>" for row in rows)
        notes = "" if self._remote.steerable else "; no node takes velocities now"
        if self._remote.steered_by_others:
            notes += "; others send velocities, too"
        self._keys_hint.content = _hint_html(f"keys {' '.join(KEYS).upper()}, {STOP_KEY}: stop{notes}")
        if text != self._status_text:
            self._status_text = text
            self._status.content = f'<div id="{STATUS_ID}" style="{_STYLE}">{text}</div>'

    def _loop_rows(self, health: Mapping[str, tuple[int, str, Mapping[str, str]]]) -> list[str]:
        _, message, values = health.get(_LOOP, (0, "", {}))
        if values:
            self._set_paused(values.get("state") == "paused")
        factor, missed = values.get("real_time_factor", ""), health.get(_COMMANDS, (0, "", {}))[2]
        rows = [message] if message else []
        if factor and factor != "None":
            late = missed.get("missed_commands", "")
            rows.append(f"real-time factor {float(factor):.3g} so far" + (f", {late} commands late" if late else ""))
        return rows

    def _set_paused(self, paused: bool) -> None:
        if paused != self._paused:
            self._paused = paused
            self._pause.label = "Resume" if paused else "Pause"

    def answered(self, answer: Answer) -> None:
        """Show the result of an action; a failure appears in all browsers."""
        for gains in self._gains:
            gains.answered(answer.asked)
        text = f"{answer.asked}: {answer.text}" if answer.good else f"{answer.asked} failed: {answer.text}"
        colour = "inherit" if answer.good else "#c0392b"
        self._answer.content = f'<div id="{ANSWER_ID}" style="{_STYLE};color:{colour}">{escape(text)}</div>'
        if answer.good and answer.asked in ("Pause", "One step", "Resume", "Reset"):
            self._set_paused(answer.asked in ("Pause", "One step"))
        if not answer.good:
            for client in self._page.server.get_clients().values():
                client.add_notification(
                    f"{answer.asked} failed", answer.text, color="red", auto_close_seconds=_NOTIFICATION_S
                )
            # The controls may show the refused value, so the parameters are read again.
            self._asked_sim = False

    def _take_sim(self, values: Mapping[str, Any]) -> None:
        self._sim = dict(values)
        self._show_command()
        if "push_timeout" in values:
            self._push_timeout = float(values["push_timeout"])
            self._lasts.value = self._push_timeout
        if "real_time_factor" in values:
            self._factor.value = float(values["real_time_factor"])
        clock = values.get("clock", "real_time")
        self._factor.disabled = clock != "real_time"
        self._factor.hint = "simulated seconds per second" if clock == "real_time" else f"needs real_time, not {clock}"

    def _change_factor(self) -> None:
        self._remote.change("Real-time factor", "real_time_factor", self._factor.value)

    def _change_lasts(self) -> None:
        self._push_timeout = float(self._lasts.value)
        self._remote.change("Lasts", "push_timeout", self._push_timeout)

    def _press_push(self) -> None:
        if not math.isfinite(self._push_timeout):
            self.answered(Answer("Push", False, "sim_node has not said how long a push lasts: try again"))
            return
        impulse = float(self._impulse.value)
        force = impulse / self._push_timeout * self._in_world(np.array(DIRECTIONS[self._direction.value]))
        self._remote.push(force, self._bodies[self._body.value])
        text = f"{impulse:g} N.s {self._direction.value} on {self._body.value}: {np.linalg.norm(force):.4g} N for "
        good = self._remote.pushable
        self.answered(
            Answer("Push", good, f"{text}{self._push_timeout:g} s" if good else f"no node takes {topics.PUSH.name}")
        )

    def _drag(self, body: str, displacement: Array, on: bool) -> None:
        """Push a body along ``displacement`` (3,) [m], or stop the push."""
        weight = self._running.robot.weight
        force = weight * displacement * min(1.0, MOST_DRAG / max(float(np.linalg.norm(displacement)), 1e-9))
        self._dragged = (force, body) if on else None
        if on:
            self.answered(Answer("Drag", True, f"{np.linalg.norm(force):.0f} N on {body}"))
        else:
            self._remote.push(np.zeros(3), body)

    def _in_world(self, direction: Array) -> Array:
        """Convert a direction (3,) from the robot's heading frame to the world."""
        heading = heading_of(self._q) if self._running.robot.free_flyer and np.isfinite(self._q[:7]).all() else 0.0
        c, s = math.cos(heading), math.sin(heading)
        return np.array([c * direction[0] - s * direction[1], s * direction[0] + c * direction[1], direction[2]])

    # Velocity.

    def _slid(self, event: Any) -> None:
        if event.client_id is not None:
            self._todo.put(lambda: self._slide(event.client_id))

    def _slide(self, client: int) -> None:
        vx, vy, wz = (float(slider.value) for slider in self._sliders)
        self._steering.ask((vx, vy, wz))
        self._steer(client)

    def _pressed(self, key: str, client: int | None) -> None:
        self._todo.put(lambda: self._press(key, client))

    def _press(self, key: str, client: int | None) -> None:
        self._steering.press(key)
        for slider, value in zip(self._sliders, self._steering.velocity, strict=True):
            slider.value = value
        self._steer(client)

    def _steer(self, client: int | None) -> None:
        self._steered_by = client
        self._remote.steer(self._steering.velocity)

    def _on_disconnect(self, client: int) -> None:
        """Stop the robot and end a drag if the page that steered the robot was closed."""
        self._dragged = None
        if client == self._steered_by and any(self._steering.velocity):
            self._press(" ", None)
            self.answered(Answer("Velocity", True, "0: the page that steered was closed"))

    # The next run.

    def _take_controller(self, values: Mapping[str, Any]) -> None:
        self._controller = dict(values)
        self._show_command()

    def _show_command(self) -> None:
        about = self._running.run.get(schema.ABOUT, {})
        # Recordings store only the name of a file; the node's parameters contain its path.
        words = {
            "robot": self._controller.get("robot") or self._running.robot.name,
            "controller": self._controller.get("controller", ""),
            "scenario": self._sim.get("title", about.get("scenario", "")),
            "ground": self._sim.get("ground", about.get("ground", "")),
            "contact-model": self._model.value,
            "hardware": self._hardware.value,
            "record": "runs/next" if self._record.value else "",
        }
        line = command_of(words)
        self._command.content = (
            f'<div style="{_STYLE}">end this one (Ctrl-C), then<br><code id="{COMMAND_ID}">{escape(line)}</code></div>'
        )


_LOOP, _COMMANDS = "bipedsim: loop", "bipedsim: commands"
_STALE = int.from_bytes(DiagnosticStatus.STALE, "little")


def command_of(words: Mapping[str, str]) -> str:
    """Return the command that starts a run with these options, quoted for a shell; empty options are omitted."""
    options = [part for name, word in words.items() if word for part in (f"--{name}", word)]
    return shlex.join(["bipedsim", "up", "--view", *options])


def _hint_html(text: str) -> str:
    return f'<div style="{_STYLE};opacity:0.75">{escape(text)}</div>'


def _valid_or_first(names: tuple[str, ...], value: Any) -> str:
    return value if value in names else names[0]


def _bodies(running: RunningRobot) -> dict[str, str]:
    """Return the bodies that may be pushed: name on the page to name on /push."""
    import pinocchio as pin

    model = running.robot.model
    links = [frame.name for frame in model.frames if frame.type == pin.FrameType.BODY]
    named = {"base": "", **{name: name for name in links}}
    return {**named, **{body.name: body.name for body in running.objects}}
