"""Name all signals of a run and collect their values over time, for plots and for the data of a clicked body."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin

from bipedsim.analysis import resolution_of, unit_of
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import without_plan
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.state import DerivedState

MARGIN_DIGITS = 6
"""Decimals of the CoP margins [mm]."""


@dataclass(frozen=True)
class Signal:
    """A quantity over time.

    Attributes:
        name: Name with unit, such as ``l_knee position [rad]``.
        resolution: Smallest range of an axis, so that rounding errors do not fill a plot.
        gaps: Whether the value does not always exist, as the CoP of a foot in the air.
    """

    name: str
    resolution: float
    gaps: bool = False


@dataclass(frozen=True)
class Signals:
    """Signals of a robot without the telemetry of its controller, in a fixed order.

    The first groups are the readings of bodies (:mod:`bipedsim.view.page.body_figures`): positions, velocities, torques
    and commands of the joints, wrenches of the feet, contact forces and centres of mass of the bodies.
    """

    robot: Robot

    @property
    def wrenches(self) -> int:
        """Index of the first wrench."""
        return 4 * self.robot.nu

    @property
    def forces(self) -> int:
        """Index of the first contact force of a body."""
        return self.wrenches + 6 * len(self.robot.soles)

    @property
    def centres(self) -> int:
        """Index of the first centre of mass of a body."""
        return self.forces + 3 * (self.robot.nu + 1)

    @cached_property
    def all(self) -> tuple[Signal, ...]:
        """All signals."""
        robot = self.robot
        model, soles, weight = robot.model, robot.soles, robot.weight
        joints = list(zip(robot.joint_names, robot.effort_limit, strict=True))
        kinds = [model.joints[model.getJointId(name)].shortname() for name in robot.joint_names]
        unit = ["rad" if kind.startswith("JointModelR") else "m" for kind in kinds]
        torque = {"rad": ("torque", "N.m"), "m": ("force", "N")}
        made = [Signal(f"{n} position [{u}]", 1e-3) for (n, _), u in zip(joints, unit, strict=True)]
        made += [Signal(f"{n} velocity [{u}/s]", 1e-2) for (n, _), u in zip(joints, unit, strict=True)]
        for word in ("", "commanded "):
            made += [
                Signal(f"{n} {word}{torque[u][0]} [{torque[u][1]}]", 1e-3 * limit)
                for (n, limit), u in zip(joints, unit, strict=True)
            ]
        feet = [f"{sole.name} foot" for sole in soles]
        for foot in feet:
            made += [Signal(f"{foot} force {axis} [N]", 1e-3 * weight) for axis in "xyz"]
            made += [Signal(f"{foot} torque {axis} [N.m]", 1e-4 * weight) for axis in "xyz"]
        for body in ("root body", *robot.joint_names):
            made += [Signal(f"{body} other contact {axis} [N]", 1e-3 * weight, gaps=True) for axis in "xyz"]
        made += [Signal(f"{name} body {axis} [m]", 1e-3) for name in model.names for axis in "xyz"]
        made += [Signal(f"{foot} CoP {axis} [m]", 1e-3, gaps=True) for foot in feet for axis in "xy"]
        made += [Signal(f"{foot} CoP to edge [mm]", 1.0, gaps=True) for foot in feet]
        made += [Signal(f"{foot} friction used", 1e-2, gaps=True) for foot in feet]
        made += [Signal(f"CoM {axis} [m]", 1e-3) for axis in "xyz"]
        made += [Signal(f"capture point {axis} [m]", 1e-3) for axis in "xy"]
        made.append(Signal(LARGEST_TORQUE, 1.0))
        if robot.free_flyer:
            made += [Signal(f"base {axis} [m]", 1e-3) for axis in "xyz"]
            made += [Signal(f"base {angle} [rad]", 1e-3) for angle in ("roll", "pitch", "yaw")]
            made += [Signal(f"base velocity {axis} [m/s]", 1e-2) for axis in "xyz"]
            made += [Signal(f"base angular velocity {axis}, own axes [rad/s]", 1e-2) for axis in "xyz"]
        return tuple(made)

    def values(self, instant: Instant, state: DerivedState | None) -> Array:
        """Return all values (n,) of an instant; NaN for unknown values and without a contact.

        Zero forces and torques at t = 0 count as unknown, because a simulator publishes its initial state before the
        first step.
        """

        def of(values: Array | None, size: int, moved: bool = True) -> Array:
            unknown = values is None or not (moved or np.any(values))
            return np.full(size, np.nan) if unknown else np.asarray(values, dtype=np.float64).ravel()

        robot, model, began = self.robot, self.robot.model, instant.t != 0.0
        nu, feet = robot.nu, len(robot.soles)
        effort = of(instant.joint_effort, nu, began)
        forces = of(instant.body_forces, 3 * (nu + 1)).reshape(-1, 3)
        forces = np.where(forces.any(axis=1, keepdims=True), forces, np.nan)
        centres, com, capture = np.full((model.njoints, 3), np.nan), np.full(3, np.nan), np.full(2, np.nan)
        if state is not None:
            centres[:] = [pose.act(inertia.lever) for pose, inertia in zip(state.data.oMi, model.inertias, strict=True)]
            com, capture = state.com, state.capture[:2]
        known = np.isfinite(effort).any()
        largest = 100.0 * float(np.nanmax(np.abs(effort) / robot.effort_limit)) if known else np.nan
        parts = [
            of(instant.joint_position, nu),
            of(instant.joint_velocity, nu),
            effort,
            of(instant.joint_command, nu),
            of(instant.wrench, 6 * feet, began),
            forces.ravel(),
            centres.ravel(),
            of(instant.cop, 2 * feet),
            # A CoP on an edge has a margin of rounding errors, which the page would print.
            np.round(1e3 * of(instant.cop_margin, feet), MARGIN_DIGITS) + 0.0,
            of(instant.friction_used, feet),
            com,
            capture,
            np.array([largest]),
        ]
        if robot.free_flyer:
            parts.append(_base(instant))
        return np.concatenate(parts)


LARGEST_TORQUE = "largest torque [% of its limit]"


def _base(instant: Instant) -> Array:
    """Return position, roll, pitch and yaw, velocity in the world, and angular velocity of the base (12,)."""
    q, v = instant.q, instant.v
    if not np.isfinite(q[:7]).all():
        return np.full(12, np.nan)
    rotation = pin.Quaternion(q[6], q[3], q[4], q[5]).normalized().toRotationMatrix()
    linear, angular = (np.full(3, np.nan), np.full(3, np.nan)) if v is None else (rotation @ v[:3], v[3:6])
    return np.concatenate([q[:3], pin.rpy.matrixToRpy(rotation), linear, angular])


def usual_plots(robot: Robot) -> tuple[tuple[str, ...], ...]:
    """Return the signals of each plot that a page shows at first."""
    feet = [f"{sole.name} foot" for sole in robot.soles]
    wide = any(float(np.ptp(sole.vertices, axis=0).min()) > 0.0 for sole in robot.soles)
    plots = [tuple(f"{foot} force z [N]" for foot in feet)]
    plots += [tuple(f"{foot} CoP to edge [mm]" for foot in feet)] * wide
    plots += [(LARGEST_TORQUE,)] * bool(robot.nu) + [("base z [m]",)] * robot.free_flyer
    return tuple(filter(None, plots))


class SignalTable:
    """Values of all signals at the instants so far.

    Args:
        robot: The robot.
        most: Maximum number of instants; the oldest are dropped. None for no limit.

    Attributes:
        signals: Signals of the robot, and telemetry in the order in which it appeared.
    """

    def __init__(self, robot: Robot, most: int | None = None) -> None:
        self._of_robot = Signals(robot)
        self.signals = list(self._of_robot.all)
        self._number = {signal.name: i for i, signal in enumerate(self.signals)}
        self._telemetry: dict[str, int] = {}
        self._t: deque[float] = deque(maxlen=most)
        self._rows: deque[Array] = deque(maxlen=most)
        self.clear()

    def clear(self) -> None:
        """Forget all instants."""
        self._t.clear()
        self._rows.clear()
        self._low, self._high = np.full(len(self.signals), np.inf), np.full(len(self.signals), -np.inf)

    def __len__(self) -> int:
        return len(self._t)

    @property
    def t(self) -> Array:
        """Times of the instants (F,) [s]."""
        return np.array(self._t)

    def number(self, name: str) -> int | None:
        """Return the index of a signal, None if it is unknown."""
        return self._number.get(name)

    def add(self, instant: Instant, state: DerivedState | None) -> None:
        """Add an instant later than the last one."""
        telemetry = without_plan(instant.readouts)
        for name in telemetry.keys() - self._telemetry.keys():
            self._telemetry[name] = len(self.signals)
            unit = unit_of(name)
            self.signals.append(Signal(f"{name} [{unit}]" if unit else name, 10.0 * resolution_of(name)))
            self._number[self.signals[-1].name] = self._telemetry[name]
        row = np.full(len(self.signals), np.nan)
        known = self._of_robot.values(instant, state)
        row[: len(known)] = known
        for name, value in telemetry.items():
            row[self._telemetry[name]] = value
        new = len(row) - len(self._low)
        self._low = np.fmin(np.append(self._low, np.full(new, np.inf)), row)
        self._high = np.fmax(np.append(self._high, np.full(new, -np.inf)), row)
        self._t.append(instant.t)
        # Single precision is more than a screen shows, and halves the memory of a long run.
        self._rows.append(row.astype(np.float32))

    def values(self, columns: Sequence[int], first: int = 0, last: int | None = None) -> Array:
        """Return the values (F, C) of signals between two rows; NaN where they are unknown."""
        rows = [self._rows[i] for i in range(first, len(self._rows) if last is None else last)]
        out = np.full((len(rows), len(columns)), np.nan)
        for row, values in zip(out, rows, strict=True):
            # Rows from before the first telemetry are shorter.
            row[:] = [values[c] if c < len(values) else np.nan for c in columns]
        return out

    def axis(self, columns: Sequence[int]) -> tuple[float, float]:
        """Return the limits of an axis for signals: round numbers around all values, not below the resolution."""
        low, high = float(self._low[list(columns)].min()), float(self._high[list(columns)].max())
        return axis(low, high, max(self.signals[c].resolution for c in columns))


def axis(low: float, high: float, resolution: float) -> tuple[float, float]:
    """Return the limits of an axis for values from ``low`` to ``high``; infinite limits stand for no value."""
    if not low <= high:
        low = high = 0.0
    # Small variations of a large value, such as the height of a walking robot, would be invisible from 0.
    if 0.0 < low <= 0.8 * high:
        low = 0.0
    elif 0.8 * low <= high < 0.0:
        high = 0.0
    room = max(0.0, resolution - (high - low))
    low, high = low - 0.5 * room, high + 0.5 * room
    rough = (high - low) / 5.0
    step = 10.0 ** math.floor(math.log10(rough))
    step *= next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * step >= rough * (1.0 - 1e-9))
    return step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
