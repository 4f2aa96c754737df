"""Check at the start whether this machine steps fast enough for the rate, before a controller relies on it.

The time of a tick is that of its n physics steps plus once that of the sensors. Both are measured separately, so that
the message can name a rate and a physics step that this machine can sustain.
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
"""Maximum fraction of a tick for the step; topics and commands need the rest."""
COMFORTABLE = 0.4
"""Fraction of a tick above which a slow controller may miss the deadline; the check warns above it."""
TOPICS = 1e-4
"""Time of a tick's messages without subscribers [s], measured on two cores of a virtual machine."""

_HIGH = 0.95
# The static torques of a posture do not balance it, so the robot is put back after this simulated time [s].
_RESTORE_S = 0.1
_TICKS = 300
_BUDGET_NS = 300_000_000
# Whole rates [Hz] with a period of whole microseconds, which can be typed, within the range of rate and physics_dt.
_RATES = tuple(rate for rate in range(20_000, 9, -1) if 1_000_000 % rate == 0)


@dataclass(frozen=True)
class StepCost:
    """Computing time of a tick.

    Attributes:
        tick: Median of all ticks [s].
        high: 95 % quantile of all ticks [s].
        physics: Median of a physics step [s].
        sensors: Median of the time after the last physics step of a tick [s].
        substeps: Physics steps per tick.
    """

    tick: float
    high: float
    physics: float
    sensors: float
    substeps: int

    @classmethod
    def of(cls, physics_ns: Sequence[int], sensors_ns: Sequence[int], substeps: int) -> StepCost:
        """Return the cost from the time of all physics steps of each tick, and of its sensors [ns]."""
        physics, sensors = np.array(physics_ns) * 1e-9, np.array(sensors_ns) * 1e-9
        return cls(
            tick=float(np.median(physics + sensors)),
            high=float(np.quantile(physics + sensors, _HIGH)),
            physics=float(np.median(physics)) / substeps,
            sensors=float(np.median(sensors)),
            substeps=substeps,
        )

    def of_tick(self, substeps: int) -> float:
        """Return the estimated time of a tick with ``substeps`` physics steps [s]."""
        return substeps * self.physics + self.sensors


def measure(sim: Simulator, clock_ns: Callable[[], int] = time.perf_counter_ns) -> StepCost | None:
    """Return the cost of a tick while the robot stands; None if the simulation diverges in the first tick.

    The state is unchanged. The measurement takes at most 0.3 s, or one tick if that is longer.
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
            if sim.t - t >= _RESTORE_S:
                sim.restore(before)
            begin = clock_ns()
            sim.step(torque)
            sensors.append(clock_ns() - stepped)
            physics.append(stepped - begin)
    except DivergenceError:
        # The run itself reports a divergence if it occurs there.
        pass
    finally:
        sim.on_physics_step = listener
        sim.restore(before)
    return StepCost.of(physics, sensors, whole_ratio(sim.control_dt, sim.physics_dt)) if physics else None


def judge(cost: StepCost, contact_model: str, robot: str, rate: float, factor: float = 1.0) -> str:
    """Return a warning about ``rate`` [Hz], or an empty text.

    Args:
        cost: Measured cost of a tick.
        contact_model, robot: Names for the message.
        rate: Ticks per simulated second [Hz].
        factor: Simulated seconds per second of wall time.

    Raises:
        ConfigError: The step takes more than ``USABLE`` of a tick; the message names remedies.
    """
    period = 1.0 / (rate * factor)
    faster = f" and real_time_factor = {factor:g}" if factor != 1.0 else ""
    measured = (
        f"contact model {contact_model!r} takes {_us(cost.tick)} for a step of robot {robot!r} on this machine "
        f"(median; 95 % of them at most {_us(cost.high)}), and a tick at rate = {rate:g} Hz{faster} has {_us(period)}"
    )
    if cost.tick > USABLE * period:
        remedies = [*_arguments_for_smaller_steps(cost, rate, factor), "clock:=lock_step, which waits for every step"]
        others = ", ".join(name for name in CONTACT_MODELS if name != contact_model)
        remedies += [f"another contact_model ({others})", "`rate_check: warn` to start nevertheless"]
        raise ConfigError(f"{measured}, of which it may take {USABLE:.0%}. Ways out: {'; '.join(remedies)}")
    if cost.tick > COMFORTABLE * period or max(cost.tick + TOPICS, cost.high) > period:
        return f"{measured}: commands may come too late; see missed_commands and overruns in /diagnostics"
    return ""


def _arguments_for_smaller_steps(cost: StepCost, rate: float, factor: float) -> list[str]:
    """Return arguments of sim_node with which the step would fit into a tick, best first."""
    arguments = []
    if factor > 1.0 and _fits(cost.tick, rate):
        arguments.append("real_time_factor:=1.0")
    for substeps in range(cost.substeps - 1, 0, -1):
        if _fits(cost.of_tick(substeps), rate * factor):
            arguments.append(f"physics_dt:={_typed(1.0 / (rate * substeps))}, which keeps the rate")
            break
    lower = [r for r in _RATES if r < rate and _fits(cost.of_tick(1), r * factor)]
    arguments += [
        f"rate:={best} physics_dt:={_typed(1.0 / best)}, the highest rate that it can keep" for best in lower[:1]
    ]
    return arguments


def _fits(tick: float, rate: float) -> bool:
    return rate * tick <= USABLE and rate * (tick + TOPICS) <= 1.0


def _typed(seconds: float) -> str:
    """Return a period in positional notation, because YAML reads 5e-05 as a text."""
    return str(np.format_float_positional(seconds, precision=12, fractional=False, trim="-"))


def _us(seconds: float) -> str:
    micros = 1e6 * seconds
    return f"{micros:.0f} us" if micros >= 100.0 else f"{micros:.3g} us"
