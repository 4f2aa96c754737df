"""Teleoperation by keys: their meaning, the published messages, and an unchanged terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bipedsim_ros.live.steering import Steering, TeleopParams

COMMAND = [sys.executable, "-m", "bipedsim.cli.main", "teleop"]


@pytest.mark.parametrize(
    ("keys", "velocity"),
    [
        ("", (0.0, 0.0, 0.0)),
        ("wwws", (0.5, 0.0, 0.0)),
        ("qEaD", (0.0, 0.0, 0.0)),
        ("Qaa", (0.0, 0.25, 0.2)),
        ("\x1b[A\x1b[A\x1b[B\x1b[D", (0.25, 0.0, 0.1)),
        ("wqa w", (0.25, 0.0, 0.0)),
        ("wwwwwwwwws" + "a" * 12, (0.75, 0.0, 1.0)),
        ("zé1\x1b", (0.0, 0.0, 0.0)),
    ],
)
def test_keys_change_the_velocity_by_steps_within_limits(keys: str, velocity: tuple[float, ...]) -> None:
    steering = Steering(TeleopParams(linear_step=0.25))
    steering.press(keys)
    assert steering.velocity == pytest.approx(velocity)
    assert not steering.ended
    steering.press("x")
    assert steering.ended


def test_sliders_and_keys_ask_for_the_same_velocity() -> None:
    steering = Steering(TeleopParams(linear_step=0.25))
    steering.ask((0.26, -3.0, 0.52))
    assert steering.velocity == pytest.approx((0.25, -1.0, 0.5))
    steering.press("wea")
    assert steering.velocity == pytest.approx((0.5, -1.0, 0.6))


@pytest.mark.parametrize("step", [0.1, 0.15, 0.05, 0.07])
def test_a_limit_that_is_a_number_of_steps_is_reached(step: float) -> None:
    """However its decimals are rounded: 0.3 / 0.1 is 2.9999999999999996."""
    for n in range(1, 30):
        steering = Steering(TeleopParams(linear_step=step, max_linear=round(n * step, 9)))
        steering.press("w" * (n + 5) + "e" * (n + 5))
        assert steering.velocity == pytest.approx((n * step, -n * step, 0.0))
        steering.ask((-10.0, 10.0, 0.0))
        assert steering.velocity == pytest.approx((-n * step, n * step, 0.0))


def test_digits_are_buttons_of_a_remote_control() -> None:
    steering = Steering(TeleopParams())
    steering.press("1w24")
    assert steering.buttons == ["start", "A", "gantry=lower"]


class Teleop:
    """``bipedsim teleop`` on a terminal of the test's own."""

    def __init__(self, env: dict[str, str], *options: str) -> None:
        self.keyboard, self._terminal = pty.openpty()
        self.before = self.settings()
        self.shown = ""
        threading.Thread(target=self._read, daemon=True).start()
        # A session of its own with this terminal, so that Ctrl-C reaches it as from a keyboard.
        self.process = subprocess.Popen(
            [*COMMAND, *options],
            env=env,
            stdin=self._terminal,
            stdout=self._terminal,
            stderr=self._terminal,
            start_new_session=True,
        )

    def _read(self) -> None:
        """Read the output, so that the pipe never fills."""
        with contextlib.suppress(OSError):
            while part := os.read(self.keyboard, 4096):
                self.shown += part.decode(errors="replace")

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._terminal)

    def type(self, keys: str) -> None:
        os.write(self.keyboard, keys.encode())

    def ready(self) -> bool:
        return self.settings()[3] != self.before[3]


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.parametrize("end", ["key", "SIGHUP"])
def test_velocities_are_published_and_the_terminal_is_as_it_was(ros: Any, end: str, tmp_path: Path) -> None:
    from geometry_msgs.msg import Twist
    from std_msgs.msg import String

    heard, pressed = ros.collect(Twist, "/cmd_vel"), ros.collect(String, "/remote")
    file = tmp_path / "mine.yaml"
    file.write_text("teleop_node: {ros__parameters: {linear_step: 0.25}}")
    teleop = Teleop(ros.env, "--params-file", str(file))

    def until(condition: Callable[[], Any], what: str) -> None:
        ros.until(lambda: condition() or teleop.process.poll() is not None, what)

    try:
        until(teleop.ready, "a terminal without echo")
        until(lambda: heard, "a first message")

        def button() -> bool:
            teleop.type("2")
            return bool(pressed)

        until(button, "a button of the remote control")
        assert pressed[0].data == "A"
        teleop.type("wwa")
        until(lambda: heard[-1].linear.x == 0.5 and heard[-1].angular.z == 0.1, "what the keys ask for")
        if end == "key":
            teleop.type("x")
        else:
            os.kill(teleop.process.pid, getattr(signal, end))
        assert teleop.process.wait(240) == 0
    finally:
        teleop.process.kill()
        teleop.process.wait(240)
    assert teleop.settings() == teleop.before
    ros.until(lambda: heard[-1].linear.x == 0.0 and heard[-1].angular.z == 0.0, "the robot is left standing")


def test_without_a_terminal_it_says_so() -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    done = subprocess.run(COMMAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 2
    assert "standard input must be a terminal" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.ros
def test_who_listens_is_looked_for_before_it_is_said_that_nobody_does(ros: Any) -> None:
    """Discovery takes up to 3 s. In this time the command used to report that no node listens."""
    from geometry_msgs.msg import Twist

    teleop = Teleop(ros.env)
    try:
        ros.until(lambda: "(no listener)" in teleop.shown, "that nobody listens")
        before, _, _ = teleop.shown.partition("(no listener)")
        assert "(looking for listeners)" in before
        ros.node.create_subscription(Twist, "/cmd_vel", lambda _: None, 1)
        known = len(teleop.shown)
        ros.until(lambda: teleop.shown[known:].rstrip(" ").endswith("rad/s"), "a listener")
        teleop.type("x")
        assert teleop.process.wait(240) == 0
    finally:
        teleop.process.kill()
        teleop.process.wait(240)
