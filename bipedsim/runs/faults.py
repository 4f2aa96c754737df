"""Injected faults of sensors, commands and drives at scheduled times.

The faults act between simulator and controller, with and without ROS nodes. The physics receives the faulty torques,
and the controller receives the faulty measurements. The seed alone determines the affected ticks.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bipedsim.config import checked_seed, from_mapping, is_path, param, read_yaml, yaml_fault, yaml_value
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import LIMIT, SETPOINT, Observation

JOINTS, IMU, ANKLES, HEIGHTS, COMMANDS, DRIVES = "joints", "imu", "ankles", "heights", "commands", "drives"
IMUS, SWITCHES = "imus", "switches"
FIELDS = {
    JOINTS: ("joint_position", "joint_velocity", "joint_effort"),
    IMU: ("imu_orientation", "imu_angular_velocity", "imu_linear_acceleration"),
    ANKLES: ("foot_wrench",),
    HEIGHTS: ("height_scan", "scan_up"),
    IMUS: ("imus",),
    SWITCHES: ("contact_switches",),
}
"""Quantities that each sensor measures: attributes of :class:`bipedsim.sim.Observation`."""
LOST, LATE, STUCK, NAN, OFFSET, SCALED = "lost", "late", "stuck", "nan", "offset", "scaled"
POSSIBLE = {
    JOINTS: (LOST, LATE, STUCK, NAN, OFFSET),
    IMU: (LOST, LATE, STUCK, NAN),
    ANKLES: (LOST, LATE, STUCK, NAN, SCALED),
    HEIGHTS: (LOST, LATE, STUCK, NAN),
    IMUS: (LOST, LATE, STUCK, NAN),
    SWITCHES: (LOST, LATE, STUCK),
    COMMANDS: (LOST, LATE),
    DRIVES: (SCALED,),
}
_MOST_LATE_S = 10.0
_MAKES_TORQUE = np.array([name not in ("position", "velocity") for name in SETPOINT])
# This key separates the random numbers of faults from those of the sensor noise.
_STREAM = 0xFA17


@dataclass(frozen=True)
class Fault:
    """Describe one fault: an entry of ``faults`` in a scenario file (docs/faults.md)."""

    part: str = param(JOINTS, "what fails", choices=tuple(POSSIBLE))
    does: str = param(LOST, "what it does", choices=(LOST, LATE, STUCK, NAN, OFFSET, SCALED))
    at: float = param(0.0, "when it begins", unit="s", low=0.0, high=1e9)
    duration: float = param(1e9, "duration", unit="s", low=0.0, high=1e9)
    joint: str = param("", "for joints and drives: only this joint")
    foot: str = param("", "for ankles: only this foot")
    sensor: str = param("", "for imus and switches: only this sensor of robot.yaml")
    amount: float | None = param(None, "late: seconds; offset: radians; scaled: remaining fraction", low=-1e6, high=1e6)
    share: float = param(1.0, "probability of the fault per message or tick", low=0.0, high=1.0)

    def problems(self) -> Iterator[ConfigError]:
        """Yield a message for each inconsistency between the keys."""
        if self.does not in POSSIBLE[self.part]:
            yield ConfigError(
                f"is nothing that {self.part} can do: {', '.join(POSSIBLE[self.part])}", "does", self.does
            )
        if (self.amount is None) == (self.does in (LATE, OFFSET, SCALED)):
            yield ConfigError(f"{self.does} {'needs one' if self.amount is None else 'takes none'}", "amount")
        elif self.does == LATE and not 0.0 < (self.amount or 0.0) <= _MOST_LATE_S:
            yield ConfigError(f"must be above 0 s and at most {_MOST_LATE_S:g} s", "amount", self.amount)
        if self.joint and self.part not in (JOINTS, DRIVES):
            yield ConfigError(f"{self.part} have none", "joint")
        if self.foot and self.part != ANKLES:
            yield ConfigError(f"{self.part} have none", "foot")
        if self.sensor and self.part not in (IMUS, SWITCHES):
            yield ConfigError(f"{self.part} have none", "sensor")
        if (self.joint or self.foot) and self.does in (LOST, LATE):
            yield ConfigError(
                f"messages hold all joints and feet, so that one alone cannot be {self.does}", "joint or foot"
            )
        if self.sensor and self.does in (LOST, LATE):
            yield ConfigError(f"all of {self.part} are {self.does} together; omit the key", "sensor", self.sensor)
        if self.share < 1.0 and self.does == LATE:
            yield ConfigError("must be 1: late ones are all late", "share", self.share)

    def __str__(self) -> str:
        """Return a description such as ``joints (l_knee) stuck from 2 s to 3 s``."""
        which = self.joint or self.foot or self.sensor
        end = f" to {self.at + self.duration:g} s" if self.duration < 1e9 else " on"
        amount = "" if self.amount is None else f" {self.amount:g}"
        share = "" if self.share == 1.0 else f", {self.share:.0%} of them"
        return f"{self.part}{f' ({which})' if which else ''} {self.does}{amount} from {self.at:g} s{end}{share}"

    def text(self) -> str:
        """Return the fault as a text for :func:`read_faults`."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        values = {"part": self.part, "does": self.does, **values}
        return str(yaml.safe_dump(values, default_flow_style=True, width=math.inf, sort_keys=False)).strip()


@dataclass(frozen=True)
class _FaultFile:
    faults: tuple[Fault, ...] = param((), "list of faults")


def read_faults(text: str) -> tuple[Fault, ...]:
    """Read faults: ``{part: imu, does: lost}``, a list of such, or the path of a YAML file with a key ``faults``.

    Raises:
        ConfigError: A file is missing, or something is wrong; the message lists all errors in the text.
    """
    if not text:
        return ()
    if is_path(text):
        return from_mapping(_FaultFile, read_yaml(Path(text)), text).faults
    try:
        value = yaml_value(text)
    except yaml.YAMLError as error:
        raise yaml_fault(error, text, "faults") from error
    return from_mapping(_FaultFile, {"faults": value if isinstance(value, list) else [value]}, "options").faults


class FaultSchedule:
    """Apply the faults of a run.

    Args:
        faults: Faults in any order; several active ones act one after the other.
        robot: Robot with the joints and feet that the faults name.
        control_dt: Time from one tick to the next [s].
        seed: Seed of faults that act by chance. Each fault has its own random numbers, so faults do not influence each
            other. The numbers do not depend on its times, its amount or its share. A larger share therefore affects
            all ticks that a smaller one does, and more.

    Attributes:
        faults: Faults of the run; if there are none, the other methods need not be called.
        sent: For each sensor, whether a message of this tick reaches the controller.
        stamp: For each sensor, the time [s] of the measurement that reaches the controller.
        lost_commands: Number of commands that never reached the drives.

    Raises:
        UnknownNameError: The robot has no such joint, foot or sensor.
        ConfigError: The robot has no sensors of the part, or the seed is no integer of at least 0.
    """

    def __init__(self, faults: Sequence[Fault], robot: Robot, control_dt: float, seed: int) -> None:
        sensors = {
            IMUS: tuple(imu.name for imu in robot.imus),
            SWITCHES: tuple(switch.name for switch in robot.contact_switches),
        }
        feet = tuple(sole.name for sole in robot.soles)
        self._index: dict[Fault, Any] = dict.fromkeys(faults, slice(None))
        for fault in faults:
            if not sensors.get(fault.part, True):
                problem = f"are missing in robot {robot.name}. List them in robot.yaml: sensors"
                raise ConfigError(problem, f"fault '{fault}': part", fault.part)
            for kind, name, names in (
                ("joint", fault.joint, robot.joint_names),
                ("foot", fault.foot, feet),
                ("sensor", fault.sensor, sensors.get(fault.part, ())),
            ):
                if not name:
                    continue
                if name not in names:
                    raise UnknownNameError(kind, name, names, f"fault '{fault}'")
                self._index[fault] = names.index(name)
        self.faults = tuple(faults)
        self._robot = robot
        self._dt = control_dt
        self._seed = checked_seed(seed)
        self.restart()

    def restart(self, first: Observation | None = None) -> None:
        """Restart at t = 0, with the same random numbers.

        Args:
            first: The measurements at t = 0, which no fault affects. A sensor that is lost or late from then on keeps
                them. By default zeros.
        """
        self._chances = self._drawn()
        self._seen = Observation.of_robot(self._robot) if first is None else first.copy()
        self._command = np.zeros(self._robot.nu)
        self._kept: dict[Fault, dict[str, Array]] = {}
        self._lines: dict[Fault, deque[tuple[float, Any]]] = {
            fault: deque() for fault in self.faults if fault.does == LATE
        }
        self.sent = dict.fromkeys(FIELDS, True)
        self.stamp = dict.fromkeys(FIELDS, 0.0)
        self.lost_commands = 0

    def _drawn(self) -> dict[Fault, np.random.Generator]:
        """Return the random generator of each fault, seeded by its kind and by the number of equal ones before it."""
        before: Counter[str] = Counter()
        chances = {}
        for fault in self.faults:
            kind = f"{fault.part} {fault.does} {fault.joint} {fault.foot}{fault.sensor}"
            chances[fault] = np.random.default_rng([self._seed, _STREAM, zlib.crc32(kind.encode()), before[kind]])
            before[kind] += 1
        return chances

    def _lasts(self, fault: Fault, t: float) -> bool:
        """Return whether a fault is active in the tick that begins at ``t``; every fault is active in at least one."""
        return fault.at <= t + 0.5 * self._dt < fault.at + max(fault.duration, self._dt)

    def _active(self, t: float, part: str) -> Iterator[Fault]:
        """Yield the faults of ``part`` that act at ``t``; faults with a share below 1 act at random."""
        for fault in self.faults:
            acts = fault.part == part and self._lasts(fault, t)
            if acts and (fault.share == 1.0 or self._chances[fault].random() < fault.share):
                yield fault

    def sense(self, observation: Observation) -> Observation:
        """Return the observation that reaches the controller after faults; the next call overwrites it."""
        for sensor, names in FIELDS.items():
            t = observation.t
            values = {name: np.array(getattr(observation, name)) for name in names}
            self.sent[sensor] = True
            acting = list(self._active(t, sensor))
            for fault in acting:
                self._apply(fault, values)
            for fault in self._kept.keys() - set(acting):
                if fault.part == sensor and fault.share == 1.0:
                    del self._kept[fault]
            for fault, line in self._lines.items():
                if fault.part == sensor:
                    t, values = self._delayed(fault, line, fault in acting, t, values)
            if any(fault.does == LOST for fault in acting) or not values:
                self.sent[sensor] = False
                continue
            self.stamp[sensor] = t
            for name, value in values.items():
                getattr(self._seen, name)[:] = value
        self._seen.t = self.stamp[JOINTS]
        return self._seen

    def _apply(self, fault: Fault, values: dict[str, Array]) -> None:
        """Apply ``fault`` to ``values``, the measurements of its sensor."""
        which = self._index[fault]
        if fault.does == STUCK:
            # A stuck encoder repeats its position, so its velocity is 0. A stuck gyro repeats its last value.
            kept = self._kept.setdefault(fault, {name: value.copy() for name, value in values.items()})
            for name, value in values.items():
                value[which] = 0.0 if name == "joint_velocity" else kept[name][which]
        elif fault.does == NAN:
            for value in values.values():
                value[which] = np.nan
        elif fault.does == OFFSET:
            values["joint_position"][which] += fault.amount
        elif fault.does == SCALED:
            values["foot_wrench"][which] *= fault.amount

    def _delayed(
        self, fault: Fault, line: deque[tuple[float, Any]], acting: bool, t: float, value: Any
    ) -> tuple[float, Any]:
        """Put a value into a delay line; return the newest value that leaves it, with its time, or ``(t, {})``."""
        wait = (fault.amount or 0.0) if acting else 0.0
        line.append((t, value))
        out: tuple[float, Any] = (t, {})
        while line and line[0][0] + wait <= t + 1e-9:
            out = line.popleft()
        return out

    def hears(self, t: float) -> bool:
        """Return whether a command that arrives at ``t`` [s] reaches the drives; count it if it does not."""
        lost = any(fault.does == LOST for fault in self._active(t, COMMANDS))
        self.lost_commands += lost
        return not lost

    def drive(self, t: float, command: Array) -> Array:
        """Return the command after faults for the tick that begins at ``t`` [s].

        The torque is zero until the first delayed command arrives.

        Args:
            t: Time [s].
            command: Torques (nu,) [N.m], or an impedance (6, nu), rows as in ``SETPOINT``.
        """
        value: Any = command
        for fault, line in self._lines.items():
            if fault.part == COMMANDS:
                # Only the interval matters here: a loss was decided when the command arrived.
                _, value = self._delayed(fault, line, self._lasts(fault, t), t, np.array(value))
                if isinstance(value, dict):
                    value = self._command
        self._command = np.array(value)
        out = self._command.copy()
        for fault in self._active(t, DRIVES):
            # For a closed loop, all entries that make torque are scaled, and its limit by the absolute value.
            share: Any = fault.amount
            out[_MAKES_TORQUE if out.ndim == 2 else ..., self._index[fault]] *= share
            if out.ndim == 2:
                out[LIMIT] = np.abs(out[LIMIT])
        return out


def for_run(scenario: Sequence[Fault], text: str) -> tuple[Fault, ...]:
    """Return the faults of a scenario and of an option, without duplicates."""
    return tuple(dict.fromkeys((*scenario, *read_faults(text))))
