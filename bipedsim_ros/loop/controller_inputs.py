"""Pass external commands to a controller: velocities on /cmd_vel, footsteps on /footsteps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import numpy as np
from nav_msgs.msg import Path

from bipedsim.control import Guard
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.recording.bag import NS_PER_S
from bipedsim_ros.loop.drops import Drops
from bipedsim_ros.loop.inbox import Inbox
from bipedsim_ros.wire import FEET_FRAME, MessageError, Topic, TwistReader, parse, topics

# Maximum time that a lock-step controller waits for a due velocity command.
_PATIENCE_S = 5.0
_POLL_S = 2e-5
# Maximum interval between two checks for commands: a check takes 20 us of a tick's 1000.
_LOOK_NS = 10_000_000


class ControllerInputs:
    """Subscribes to the commands for which a controller has a method; the loop of the node reads them.

    With a ``period``, the commander is part of a lock-step loop. It publishes one command at the start, and one each
    time that the stamps of the joint states pass a multiple of the period. The controller waits for each of them, so
    every command acts on the same tick in every run.

    Args:
        inbox: Creates the subscriptions.
        guard: Monitor that hosts the controller.
        timeout: Age, in time of the joint states, beyond which a velocity command counts as zero [s]; 0 disables it.
        period: Period of a lock-step commander [s]; 0 uses the commands that have arrived, without waiting.
        first: Whether to wait for a first velocity command even without a period.
        warn: Called with a warning about a message.
        stopped: Returns whether the node must end, which ends every wait.
    """

    def __init__(
        self,
        inbox: Inbox,
        guard: Guard,
        timeout: float,
        period: float,
        first: bool,
        warn: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> None:
        self._guard = guard
        self._timeout_ns = round(timeout * NS_PER_S)
        self._warn = warn
        self._drops = Drops(warn)
        self._stopped = stopped
        self._take = inbox.take_from
        self._velocity = self._footsteps = None
        if guard.set_velocity is not None:
            self._velocity = inbox.subscribe(topics.VELOCITY)
        if guard.set_footsteps is not None:
            self._footsteps = inbox.subscribe(topics.FOOTSTEPS)
        self._period_ns = round(period * NS_PER_S) if self._velocity is not None else 0
        self._first = self._velocity is not None and (first or self._period_ns > 0)
        # The interval of checks divides the period, so that due commands are checked for on time.
        self._look_ns = math.gcd(self._period_ns, _LOOK_NS)
        self._twist = TwistReader()
        self.restart()

    def restart(self) -> None:
        """Discard all commands, because time restarts."""
        self._received = 0
        self._newest: tuple[float, float, float] | None = None
        self._arrived_ns = 0
        self._late = False
        self._checked_ns = -1
        self._checked = False

    @property
    def missing(self) -> str:
        """Topic whose first message has not arrived yet, or an empty text."""
        return topics.VELOCITY.name if self._first and not self._received else ""

    def take(self, t_ns: int) -> None:
        """Read the commands that have arrived by the joint states stamped ``t_ns`` [ns], and wait for due ones.

        Commands are checked a hundred times per second of the stamps, and whenever a stamp is repeated, as while a
        robot waits.
        """
        if t_ns != self._checked_ns and t_ns // self._look_ns == self._checked_ns // self._look_ns:
            return
        self._checked_ns, self._checked = t_ns, True
        self._take_velocities(t_ns)
        if self._period_ns and self._received:
            due = t_ns // self._period_ns + 1
            if self._received < due:
                self._wait_for(due, t_ns)

    def deliver(self, t_ns: int) -> None:
        """Pass the newest velocity and footsteps to the controller, if :meth:`take` has checked for them."""
        if not self._checked:
            return
        self._checked = False
        if self._newest is not None:
            late = 0 < self._timeout_ns < t_ns - self._arrived_ns
            # A standing command need not be repeated, so its timeout is not worth a warning.
            if late != self._late and any(self._newest):
                age = self._timeout_ns / NS_PER_S
                silent = f"no message on {topics.VELOCITY.name} for {age:g} s: it counts as zero"
                self._warn(silent if late else f"{topics.VELOCITY.name} comes again")
            self._late = late
            self._guard.steer((0.0, 0.0, 0.0) if late else self._newest)
        if self._footsteps is not None:
            self._take_footsteps()

    def _take_velocities(self, t_ns: int) -> None:
        while self._velocity is not None and (data := self._take(self._velocity)) is not None:
            self._received += 1
            try:
                velocity = self._twist.read(data)
            except MessageError as error:
                self._drop(topics.VELOCITY, "unreadable", str(error))
                continue
            if all(map(math.isfinite, velocity)):
                self._newest, self._arrived_ns = velocity, t_ns
            else:
                self._drop(topics.VELOCITY, "not_finite", "it is not finite")

    def _wait_for(self, due: int, t_ns: int) -> None:
        end = time.monotonic() + _PATIENCE_S
        while self._received < due and not self._stopped():
            if time.monotonic() > end:
                self._warn(f"a message on {topics.VELOCITY.name} was due, and did not come in {_PATIENCE_S:g} s")
                self._received = due
                return
            time.sleep(_POLL_S)
            self._take_velocities(t_ns)

    def _take_footsteps(self) -> None:
        data = self._take(self._footsteps)
        if data is None or self._guard.set_footsteps is None:
            return
        try:
            message = parse(data, Path)
        except MessageError as error:
            self._drop(topics.FOOTSTEPS, "unreadable", str(error))
            return
        steps = footsteps(message)
        frame = message.header.frame_id
        if frame not in ("", FEET_FRAME):
            text = f"its frame is {frame!r}, it must be {FEET_FRAME!r} or empty: midway between the feet as they stand"
            self._drop(topics.FOOTSTEPS, "frame", text)
        elif not np.isfinite(steps).all():
            self._drop(topics.FOOTSTEPS, "not_finite", "it is not finite")
        else:
            try:
                self._guard.set_footsteps(steps)
            except ConfigError as error:
                self._drop(topics.FOOTSTEPS, "refused", str(error))

    def _drop(self, topic: Topic, kind: str, text: str) -> None:
        self._drops.add(f"{topic.name} {kind}", f"message on {topic.name} dropped: {text}")

    @property
    def dropped(self) -> Mapping[str, int]:
        """Number of dropped messages, by topic and kind of fault."""
        return self._drops.by_kind


def footsteps(message: Path) -> Array:
    """Return x, y [m] and yaw [rad] of each pose (n, 3); the yaw is NaN for a quaternion that is not of unit length."""
    steps = np.empty((len(message.poses), 3))
    for step, stamped in zip(steps, message.poses, strict=True):
        position, q = stamped.pose.position, stamped.pose.orientation
        norm = q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w
        is_unit = abs(norm - 1.0) < 1e-3
        yaw = math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z))
        step[:] = position.x, position.y, yaw if is_unit else math.nan
    return steps
