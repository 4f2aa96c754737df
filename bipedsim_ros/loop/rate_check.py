"""Whether this machine steps fast enough for the rate: found out at the start, before a controller relies on it.

A tick of n physics steps takes n times one of them, and once the sensors. Both are measured apart, so that the answer
can name a rate and a physics step that this machine does keep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bipedsim.contact import CONTACT_MODELS
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import standing_torque
from bipedsim.sim import Simulator, whole_ratio

USABLE = 0.7
"""Share of a tick that the step may take; topics and commands need the rest."""
COMFORTABLE = 0.4
"""Above this share a controller that takes its time answers after the deadline: a warning."""
TOPICS = 1e-4
"""What a tick's messages take with nobody listening [s], measured on two cores of a virtual machine."""

_HIGH = 0.95
# The static torques of a posture do not balance it: after so much simulated time [s] the robot is put back.
_STRETCH = 0.1
_TICKS = 300
_BUDGET_NS = 300_000_000
# Whole rates [Hz] whose period is whole microseconds, so that it can be typed, within the range of rate and physics_dt.
_RATES = tuple(rate for rate in range(20_000, 9, -1) if 1_000_000 % rate == 0)


@dataclass(frozen=True)
class StepCost:
    """What a tick costs.

    Attributes:
        tick: Median over the ticks [s].
        high: What 95 % of the ticks do not exceed [s].
        physics: Median of a physics step [s].
        sensors: Median of what comes after the last physics step of a tick [s].
        substeps: Physics steps of a tick.
    """

    tick: float
    high: float
    physics: float
    sensors: float
    substeps: int

    @classmethod
    def of(cls, physics_ns: Sequence[int], sensors_ns: Sequence[int], substeps: int) -> StepCost:
        """Return the cost from the times of the physics steps of each tick together, and of its sensors [ns]."""
        physics, sensors = np.array(physics_ns) * 1e-9, np.array(sensors_ns) * 1e-9
        return cls(
            tick=float(np.median(physics + sensors)),
            high=float(np.quantile(physics + sensors, _HIGH)),
            physics=float(np.median(physics)) / substeps,
            sensors=float(np.median(sensors)),
            substeps=substeps,
        )

    def of_tick(self, substeps: int) -> float:
        """Return what a tick of ``substeps`` physics steps would take [s]."""
        return substeps * self.physics + self.sensors


def measure(sim: Simulator, clock_ns: Callable[[], int] = time.perf_counter_ns) -> StepCost | None:
    """Return what a tick costs while the robot stands, None if it does not get through one; the state is unchanged.

    Takes 0.3 s at most, or one tick where that is longer.
    """
    robot = sim.robot
    torque = np.clip(standing_torque(robot), -robot.effort_limit, robot.effort_limit)
    physics: list[int] = []
    sensors: list[int] = []
    stepped = 0

    def on_physics_step(*_: object) -> None:
        nonlocal stepped
        stepped = clock_ns()

    before, t, listener = sim.snapshot(), sim.t, sim.on_physics_step
    sim.on_physics_step = on_physics_step
    end = clock_ns() + _BUDGET_NS
    try:
        while len(physics) < _TICKS and (clock_ns() < end or not physics):
            if sim.t - t >= _STRETCH:
                sim.restore(before)
            begin = clock_ns()
            sim.step(torque)
            sensors.append(clock_ns() - stepped)
            physics.append(stepped - begin)
    except DivergenceError:
        # The run will say so in its own words, if it comes to that.
        pass
    finally:
        sim.on_physics_step = listener
        sim.restore(before)
    return StepCost.of(physics, sensors, whole_ratio(sim.control_dt, sim.physics_dt)) if physics else None


def judge(cost: StepCost, contact_model: str, robot: str, rate: float, factor: float = 1.0) -> str:
    """Return a warning about ``rate`` [Hz], empty if there is nothing to warn of.

    With a ``factor``, a second of the wall clock has so many simulated ones.

    Raises:
        ConfigError: The step takes more than ``USABLE`` of a tick; the message names the ways out.
    """
    period = 1.0 / (rate * factor)
    faster = f" and real_time_factor = {factor:g}" if factor != 1.0 else ""
    found = (
        f"contact model {contact_model!r} takes {_us(cost.tick)} for a step of robot {robot!r} on this machine "
        f"(median; 95 % of them at most {_us(cost.high)}), and a tick at rate = {rate:g} Hz{faster} has {_us(period)}"
    )
    if cost.tick > USABLE * period:
        ways = [*_ways_to_step_less(cost, rate, factor), "clock:=lock_step, which waits for every step"]
        others = ", ".join(name for name in CONTACT_MODELS if name != contact_model)
        ways += [f"another contact_model ({others})", "rate_check:=warn to start nevertheless"]
        raise ConfigError(f"{found}, of which it may take {USABLE:.0%}. Ways out: {'; '.join(ways)}")
    if cost.tick > COMFORTABLE * period or max(cost.tick + TOPICS, cost.high) > period:
        return f"{found}: commands may come too late; see missed_commands and overruns in /diagnostics"
    return ""


def _ways_to_step_less(cost: StepCost, rate: float, factor: float) -> list[str]:
    """Return the arguments of sim_node under which the step would fit, best first; none if nothing helps."""
    ways = []
    if factor > 1.0 and _fits(cost.tick, rate):
        ways.append("real_time_factor:=1.0")
    for substeps in range(cost.substeps - 1, 0, -1):
        if _fits(cost.of_tick(substeps), rate * factor):
            ways.append(f"physics_dt:={_typed(1.0 / (rate * substeps))}, which keeps the rate")
            break
    lower = [r for r in _RATES if r < rate and _fits(cost.of_tick(1), r * factor)]
    ways += [f"rate:={best} physics_dt:={_typed(1.0 / best)}, the highest rate that it can keep" for best in lower[:1]]
    return ways


def _fits(tick: float, rate: float) -> bool:
    return rate * tick <= USABLE and rate * (tick + TOPICS) <= 1.0


def _typed(seconds: float) -> str:
    """Return a period so that it can be typed: YAML takes 5e-05 for a text."""
    return str(np.format_float_positional(seconds, precision=12, fractional=False, trim="-"))


def _us(seconds: float) -> str:
    micros = 1e6 * seconds
    return f"{micros:.0f} us" if micros >= 100.0 else f"{micros:.3g} us"
