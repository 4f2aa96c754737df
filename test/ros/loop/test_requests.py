"""Requests of other threads to the loop: in order, rejected with a message, and always answered."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from bipedsim.errors import BipedSimError, ConfigError, DivergenceError
from bipedsim_ros.loop.requests import Requests

pytestmark = pytest.mark.ros


class _Asking:
    """A thread that asks for an action.

    Attributes:
        requests: The queue; its log is in ``logged``.
        answers: Replies to the action.
    """

    def __init__(self) -> None:
        self.logged: list[str] = []
        self._queued = threading.Event()
        self.requests = Requests(self._queued.set, self.logged.append)
        self.answers: list[tuple[bool, str]] = []

    def ask(self, action: object) -> threading.Thread:
        """Ask in a thread; return when the action is queued."""
        thread = threading.Thread(target=lambda: self.answers.append(self.requests.ask(action)))  # type: ignore[arg-type]
        thread.start()
        assert self._queued.wait(10.0)
        self._queued.clear()
        return thread


def raises(error: BipedSimError) -> str:
    raise error


def test_an_action_answers_who_asked_for_it() -> None:
    asking = _Asking()
    thread = asking.ask(lambda: "done")
    assert asking.requests.serve()
    assert not asking.requests.serve()
    thread.join(10.0)
    assert asking.answers == [(True, "done")]
    assert asking.logged == []


@pytest.mark.parametrize(
    ("error", "logged"),
    [(ConfigError("no"), 1), (DivergenceError("it is fast", 0.0, np.zeros(1), np.ones(1)), 0)],
    ids=["wrong", "diverged"],
)
def test_a_failure_answers_and_is_logged_once(error: BipedSimError, logged: int) -> None:
    """The loop itself logs a divergence."""
    asking = _Asking()
    thread = asking.ask(lambda: raises(error))
    assert asking.requests.serve()
    thread.join(10.0)
    assert asking.answers == [(False, str(error))]
    assert len(asking.logged) == logged


def test_a_posted_action_tells_its_own_receiver_of_a_failure() -> None:
    asking, refused = _Asking(), list[str]()
    asking.requests.post(lambda: raises(ConfigError("no")), refused.append)
    asking.requests.post(lambda: "done", refused.append)
    while asking.requests.serve():
        pass
    assert (refused, asking.logged) == (["no"], [])


def test_after_the_end_nobody_waits() -> None:
    asking = _Asking()
    thread = asking.ask(lambda: "done")
    asking.requests.close()
    thread.join(5.0)
    assert not thread.is_alive()
    success, _ = asking.requests.ask(lambda: "done")
    assert not success
    assert [success for success, _ in asking.answers] == [False]
