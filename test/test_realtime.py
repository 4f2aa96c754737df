"""Rate keeper and histogram, on a clock of their own: nothing here sleeps or reads the time of day."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bipedsim_ros.realtime import NS_PER_S, Histogram, RateKeeper


class Clock:
    """A clock that moves only when it is told to, is slept on, or is read (1 us a reading)."""

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


def test_restart_and_clear() -> None:
    clock = Clock()
    rate = keeper(clock)
    clock.now += NS_PER_S
    rate.start()
    assert rate.wait()
    rate.clear_counts()
    assert (rate.ticks, rate.overruns, rate.dropped, rate.lateness.count) == (0, 0, 0, 0)


def test_period_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
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
