"""Pace a loop in real time without ROS: a rate keeper on absolute deadlines, and a histogram of its delays.

The clock and the sleep are injected, so that tests run on a simulated clock and never sleep.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.recording.bag import NS_PER_S

LONGEST_WAIT_NS = 100_000_000
"""Longest single wait of a loop [ns]; Python handles signals only between two waits."""

_BITS = 4  # 2**_BITS buckets per octave, so quantiles are accurate to 1/16 of their value
_OCTAVES = 48  # up to 2**48 ns, about three days


_PR_SET_TIMERSLACK = 29  # linux/prctl.h


def sleep_on_time() -> None:
    """Disable the timer slack of the calling thread, by which the kernel extends sleeps and waits by up to 50 us."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)


_CPU_LATENCY = "/dev/cpu_dma_latency"  # linux, Documentation/power/pm_qos_interface.rst


_SENDS_AGAIN = "dds.asyn"  # prefix of Fast DDS's thread that resends lost messages
_MOST_URGENT_NICE = -20


_SLICE_NS = 100_000  # linux, kernel/sched/syscalls.c: the shortest slice that a thread may request
_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274}
"""Number of the system call sched_setattr by machine; Python does not provide the call."""


def _run_in_short_slices() -> None:
    """Give every present and future thread of this process a core soon, in short slices.

    Since Linux 6.12, a running thread of any nice value may use the rest of its slice (1 to 3 ms) before a thread that
    wakes up gets the core. A thread with a shorter slice gets it at once. Any process may request this; older kernels
    ignore the request.
    """
    call = _SET_ATTRIBUTES.get(os.uname().machine)
    if call is None:
        return
    libc = ctypes.CDLL(None)
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):
            nice = os.getpriority(os.PRIO_PROCESS, int(thread))
            # Size, policy, flags, nice, priority, slice, deadline, period.
            attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, _SLICE_NS, 0, 0)
            libc.syscall(call, int(thread), attributes, 0)


def run_urgently(priority: int) -> str:
    """Give every present and future thread of this process real-time priority: SCHED_FIFO at ``priority``.

    A process without the permission gets short slices instead, so its threads need not wait for other threads' slices.

    The middleware's threads need the priority too, because they deliver the messages for which the loop waits. One of
    them must not have it: the thread that resends lost messages spins on a lock that the others hold. At their priority
    it kept them from their core for minutes. At a lower real-time priority it would still precede all other programs.
    It therefore runs without real-time priority, at the most urgent nice value.

    Returns:
        The result, for the log.
    """
    if sys.platform != "linux":
        return "no real-time priority: only Linux has it"
    refused = ""
    try:
        for thread in os.listdir("/proc/self/task"):
            with suppress(ProcessLookupError, FileNotFoundError):
                name = Path("/proc/self/task", thread, "comm").read_text()
                if name.startswith(_SENDS_AGAIN):
                    os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))
                    try:
                        os.setpriority(os.PRIO_PROCESS, int(thread), _MOST_URGENT_NICE)
                    except PermissionError:
                        refused = (
                            f"; no right to a nice value of {_MOST_URGENT_NICE} for {name.strip()}: a lost message may "
                            "wait for other programs; how to permit it is in docs/ros_interface.md under Timing"
                        )
                else:
                    os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        _run_in_short_slices()
        return (
            "no right to a real-time priority: commands may come late when other programs run; how to permit it is "
            "in docs/ros_interface.md under Timing"
        )
    return f"real-time priority {priority} (SCHED_FIFO){refused}"


def may_run_urgently(priority: int) -> bool:
    """Return whether this process may have a real-time ``priority``; a thread that ends at once tries it."""
    if sys.platform != "linux":
        return False
    with ThreadPoolExecutor(1) as thread:
        attempt = thread.submit(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(priority))
    return attempt.exception() is None


def real_time_priority() -> int:
    """Return the real-time priority of the calling thread; 0 if it has none."""
    fifo = sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_FIFO
    return os.sched_getparam(0).sched_priority if fifo else 0


def give_way() -> None:
    """Halve the calling thread's real-time priority, if it has one, so that threads of its old priority precede it."""
    if priority := real_time_priority():
        half = max(priority // 2, os.sched_get_priority_min(os.SCHED_FIFO))
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(half))


class StayAwake:
    """Keeps idle cores from sleeping while a loop runs, where the system permits it.

    On a virtual machine, a core that sleeps between two messages takes 50 to 100 us to respond. A round trip contains
    four such waits. Like cyclictest, this class requests a latency of zero from the kernel while a file is open.

    Args:
        wanted: Whether to do anything.
        device: The file for the request.
    """

    def __init__(self, wanted: bool, device: str = _CPU_LATENCY) -> None:
        self._wanted = wanted
        self._device = device
        self._file: int | None = None

    def hold(self) -> None:
        """Keep the cores awake from now on."""
        if not self._wanted:
            return
        self._wanted = False
        try:
            self._file = os.open(self._device, os.O_WRONLY)
            os.write(self._file, (0).to_bytes(4, sys.byteorder))
        except OSError:
            # The request is not permitted or the device does not exist, so the cores sleep as usual.
            return

    def release(self) -> None:
        """Permit the cores to sleep."""
        if self._file is not None:
            os.close(self._file)
            self._file, self._wanted = None, True


class Histogram:
    """Histogram of durations in nanoseconds, with a relative resolution of 6 % and constant memory.

    Buckets are exact below 16 ns; above, each octave has 16. Recording takes well under a microsecond, so a loop at
    1 kHz can use it for days.
    """

    def __init__(self) -> None:
        self._counts = [0] * ((_OCTAVES + 1) << _BITS)
        self.count = 0
        self.maximum_ns = 0

    def record(self, duration_ns: int) -> None:
        """Count a duration [ns]; a negative duration counts as zero."""
        duration_ns = max(duration_ns, 0)
        shift = duration_ns.bit_length() - _BITS - 1
        if shift < 0:
            index = duration_ns
        else:
            index = min(((shift + 1) << _BITS) + (duration_ns >> shift) - (1 << _BITS), len(self._counts) - 1)
        self._counts[index] += 1
        self.count += 1
        if duration_ns > self.maximum_ns:
            self.maximum_ns = duration_ns

    def quantile_us(self, fraction: float) -> float:
        """Return the upper edge [us] of the bucket that contains the quantile ``fraction`` in [0, 1]; NaN if empty."""
        if not self.count:
            return float("nan")
        index = int(np.searchsorted(np.cumsum(self._counts), fraction * self.count))
        octave, rest = divmod(index, 1 << _BITS)
        edge_ns = index if octave == 0 else ((1 << _BITS) + rest + 1 << octave - 1) - 1
        return min(edge_ns, self.maximum_ns) / 1e3

    def summary_us(self) -> dict[str, float]:
        """Return p50, p99, p999 and max [us]; NaN if nothing was recorded."""
        quantiles = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
        result = {name: round(self.quantile_us(fraction), 1) for name, fraction in quantiles.items()}
        return result | {"max": round(self.maximum_ns / 1e3, 1) if self.count else float("nan")}

    def clear(self) -> None:
        """Clear all counts."""
        self._counts = [0] * len(self._counts)
        self.count = 0
        self.maximum_ns = 0


class RateKeeper:
    """Keeps a loop at a fixed rate on absolute deadlines of a monotonic clock.

    Deadlines are ``start + k * period`` with an integer k, so that errors do not accumulate. After a late tick, the
    loop runs without pause until it has caught up. Only a backlog longer than ``max_backlog_s`` (a suspended machine,
    a debugger) is dropped, because catching up would run the robot faster than its controller can follow.

    On a stock kernel, a sleep ends some microseconds late even after :func:`sleep_on_time`. The loop therefore spins
    for the last ``spin_s`` before a deadline. A longer spin is worse, because the thread that receives the command may
    wait for the core on which the loop spins.

    Attributes:
        deadline_ns: Next deadline on the clock [ns].
        ticks: Number of past deadlines.
        overruns: Number of ticks whose work ended after the deadline.
        dropped: Number of deadlines dropped because of a long backlog.
        lateness: Delay of the return of :meth:`wait` after each deadline.
    """

    def __init__(
        self,
        period_s: float,
        *,
        spin_s: float = 40e-6,
        max_backlog_s: float = 0.1,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.period_ns = round(period_s * NS_PER_S)
        if self.period_ns <= 0:
            raise ConfigError("s must be positive", "period", period_s)
        self._spin_ns = round(spin_s * NS_PER_S)
        self._max_backlog_ns = round(max_backlog_s * NS_PER_S)
        self._clock_ns = clock_ns
        self._sleep = sleep
        self.lateness = Histogram()
        self.ticks = 0
        self.overruns = 0
        self.dropped = 0
        self.deadline_ns = 0
        self.start()

    def start(self) -> None:
        """Set the next deadline to one period from now; call it when the loop begins and after a pause."""
        self.deadline_ns = self._clock_ns() + self.period_ns

    def sleep_budget_ns(self) -> int:
        """Return the time [ns] for which the caller may block before :meth:`wait` has to spin; negative if late."""
        return self.deadline_ns - self._spin_ns - self._clock_ns()

    def wait(self) -> bool:
        """Block until the deadline, then advance it by one period.

        Returns:
            Whether the deadline was met. False means that it had passed before the call.
        """
        now = self._clock_ns()
        met = now <= self.deadline_ns
        if met:
            budget_ns = self.deadline_ns - self._spin_ns - now
            if budget_ns > 0:
                self._sleep(budget_ns / NS_PER_S)
            now = self._clock_ns()
            while now < self.deadline_ns:
                now = self._clock_ns()
        else:
            self.overruns += 1
        late_ns = now - self.deadline_ns
        self.lateness.record(late_ns)
        self.ticks += 1
        self.deadline_ns += self.period_ns
        if late_ns > self._max_backlog_ns:
            missed = late_ns // self.period_ns
            self.dropped += missed
            self.deadline_ns += missed * self.period_ns
        return met
