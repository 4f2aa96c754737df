"""Rate keeper and histogram, on a clock of their own: nothing here sleeps or reads the time of day."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refusal

from bipedsim.recording.bag import NS_PER_S
from bipedsim_ros.loop.realtime import Histogram, RateKeeper, StayAwake


class Clock:
    """A clock that moves only by the test, by a sleep, or by a reading (1 us each)."""

    def __init__(self, late_ns: int = 0) -> None:
        self.now = 5 * NS_PER_S
        self.late_ns = late_ns
        self.slept: list[float] = []

    def __call__(self) -> int:
        self.now += 1_000
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * NS_PER_S) + self.late_ns


def keeper(clock: Clock, **options: float) -> RateKeeper:
    return RateKeeper(1e-3, clock_ns=clock, sleep=clock.sleep, **options)


def test_deadlines_do_not_drift() -> None:
    clock = Clock(late_ns=40_000)
    rate = keeper(clock)
    first = rate.deadline_ns
    for _ in range(1_000):
        clock.now += 300_000
        assert rate.wait()
    assert rate.deadline_ns == first + 1_000 * 1_000_000
    assert rate.overruns == 0


def test_spinning_hides_a_late_sleep() -> None:
    clock = Clock(late_ns=100_000)
    rate = keeper(clock, spin_s=150e-6)
    rate.wait()
    assert clock.slept[0] == pytest.approx(850e-6, abs=2e-6)
    assert rate.lateness.maximum_ns <= 1_000


def test_sleep_later_than_the_spin_shows_as_lateness_not_as_overrun() -> None:
    clock = Clock(late_ns=400_000)
    rate = keeper(clock, spin_s=150e-6)
    assert rate.wait()
    assert rate.overruns == 0
    assert rate.lateness.maximum_ns == pytest.approx(250_000, abs=2_000)


def test_overrun_is_counted_and_caught_up() -> None:
    clock = Clock()
    rate = keeper(clock)
    first = rate.deadline_ns
    clock.now += 3_500_000
    met = [rate.wait() for _ in range(5)]
    assert met == [False, False, False, True, True]
    assert rate.overruns == 3
    assert rate.dropped == 0
    assert rate.deadline_ns == first + 5_000_000


def test_long_backlog_is_dropped_and_the_phase_kept() -> None:
    clock = Clock()
    rate = keeper(clock)
    first = rate.deadline_ns
    clock.now += 2 * NS_PER_S
    assert not rate.wait()
    assert rate.dropped == 1999
    assert (rate.deadline_ns - first) % rate.period_ns == 0
    assert rate.wait()


def test_a_restart_sets_the_next_deadline_to_one_period_from_now() -> None:
    clock = Clock()
    rate = keeper(clock)
    clock.now += NS_PER_S
    rate.start()
    assert rate.wait()
    assert (rate.ticks, rate.overruns, rate.dropped) == (1, 0, 0)


def test_period_must_be_positive() -> None:
    with refusal(place="period", value=0.0):
        RateKeeper(0.0)


def test_empty_histogram_says_nan() -> None:
    assert all(math.isnan(value) for value in Histogram().summary_us().values())


@given(
    st.lists(st.integers(min_value=0, max_value=2**47), min_size=1, max_size=200),
    st.sampled_from([0.5, 0.9, 0.99, 1.0]),
)
def test_quantiles_are_right_to_one_bucket(durations: list[int], fraction: float) -> None:
    histogram = Histogram()
    for duration in durations:
        histogram.record(duration)
    exact = float(np.quantile(durations, fraction, method="inverted_cdf"))
    measured = histogram.quantile_us(fraction) * 1e3
    rounding = 1e-12 * exact
    assert exact - rounding <= measured <= exact * (1 + 1 / 16) + rounding
    assert histogram.maximum_ns == max(durations)


def test_cores_stay_awake_while_held_and_not_longer(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.touch()
    awake = StayAwake(True, str(device))

    def held() -> int:
        return sum(os.readlink(f"/proc/self/fd/{fd}") == str(device) for fd in os.listdir("/proc/self/fd") if _open(fd))

    for _ in range(2):
        awake.hold()
        awake.hold()
        assert held() == 1
        assert device.read_bytes() == bytes(4), "a latency of zero"
        awake.release()
        awake.release()
        assert held() == 0
    idle = StayAwake(False, str(device))
    idle.hold()
    assert held() == 0


def _open(fd: str) -> bool:
    """Return whether the descriptor is still there: listing them takes one itself."""
    return os.path.islink(f"/proc/self/fd/{fd}")


def test_a_system_that_lets_no_one_keep_cores_awake_is_none_the_worse(tmp_path: Path) -> None:
    awake = StayAwake(True, str(tmp_path / "none"))
    awake.hold()
    awake.release()
    assert not list(tmp_path.iterdir())


# The script runs in a separate process, because it changes the scheduling.
URGENT = """
import os, threading
from bipedsim_ros.loop.realtime import run_urgently
threads = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(2)]
{before}
threads[0].start()
print(run_urgently(7))
threads[1].start()
ids = [int(name) for name in os.listdir("/proc/self/task")]
print(set((os.sched_getscheduler(i), os.sched_getparam(i).sched_priority) for i in ids))
"""


def urgent(before: str) -> tuple[str, str]:
    """Return the result of :func:`run_urgently`, and the policies and priorities of its threads."""
    code = [sys.executable, "-c", URGENT.format(before=before)]
    said, threads = subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()
    return said, threads


def test_every_thread_goes_first_where_that_is_permitted() -> None:
    if subprocess.run(["chrt", "-f", "7", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no right to a real-time priority here")
    said, threads = urgent("")
    assert said == "real-time priority 7 (SCHED_FIFO)"
    assert threads == str({(os.SCHED_FIFO, 7)}), "the one that starts later inherits"


SENDS_AGAIN = """
import ctypes
def send_again():
    ctypes.CDLL(None).prctl(15, b"dds.asyn.0.0", 0, 0, 0)
    threads[0].named.set()
    threading.Event().wait()
threads[0] = threading.Thread(target=send_again, daemon=True)
threads[0].named = threading.Event()
threads[0].start()
threads[0].named.wait()
threads[0].start = lambda: None
"""


def test_what_sends_again_takes_no_core_from_the_others() -> None:
    """The resending thread spins while another thread holds its lock.

    With equal priority, two of them blocked the simulation forever.
    """
    if subprocess.run(["chrt", "-f", "7", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no right to a real-time priority here")
    said, threads = urgent(SENDS_AGAIN)
    assert threads == str({(os.SCHED_OTHER, 0), (os.SCHED_FIFO, 7)})
    assert said == "real-time priority 7 (SCHED_FIFO)"


def test_who_may_have_a_priority_and_no_nice_value_is_told() -> None:
    if subprocess.run(["chrt", "-f", "7", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no right to a real-time priority here")
    # Root in a container may not set its limits such that the kernel refuses the one and not the other.
    refuse = """
def refuse(*_): raise PermissionError
os.setpriority = refuse
"""
    said, threads = urgent(SENDS_AGAIN + refuse)
    assert said.startswith("real-time priority 7 (SCHED_FIFO); no right to a nice value of -20 for dds.asyn.0.0: ")
    assert "docs/ros_interface.md under Timing" in said
    assert threads == str({(os.SCHED_OTHER, 0), (os.SCHED_FIFO, 7)})


def test_without_the_right_to_it_the_way_out_is_named() -> None:
    said, threads = urgent("os.getuid() or os.setuid(65534)")
    if said.startswith("real-time"):
        pytest.skip("every user may have a real-time priority here")
    assert "docs/ros_interface.md under Timing" in said
    assert threads == str({(os.SCHED_OTHER, 0)})


def test_without_the_right_to_it_threads_need_not_wait_for_the_slices_of_others() -> None:
    look = """
import ctypes, os, pathlib, struct
os.getuid() or os.setuid(65534)
def slices():
    texts = [pathlib.Path(f"/proc/self/task/{i}/sched").read_text() for i in os.listdir("/proc/self/task")]
    print({line.split()[-1] for text in texts for line in text.splitlines() if line.startswith("se.slice")})
import atexit
atexit.register(slices)
slices()
"""
    try:
        kernel = tuple(int(part) for part in os.uname().release.split(".")[:2])
        known = kernel >= (6, 12) and "se.slice" in Path("/proc/self/sched").read_text()
    except (OSError, ValueError):
        known = False
    if not known:
        pytest.skip("this kernel has no slices that a thread may choose, or does not show them")
    code = [sys.executable, "-c", URGENT.format(before=look)]
    before, said, _, after = subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()
    if said.startswith("real-time"):
        pytest.skip("every user may have a real-time priority here")
    assert (after, before) == ("{'100000'}", before)
    assert before != after
