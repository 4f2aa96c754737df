"""Smallest distances from limits in a run: torques, velocities and positions of joints, friction and CoP of feet.

Feet count only while they carry :data:`~bipedsim.analysis.CARRIES` of the weight, and by values that last. At touchdown
and lift-off a foot slides for a tick or two, and its CoP is on an edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bipedsim.analysis.loads import CARRIES
from bipedsim.analysis.recorded_robot import robot_of
from bipedsim.analysis.verdict import AT_STOP, BRIEF
from bipedsim.errors import BipedSimError
from bipedsim.numerics import Array
from bipedsim.recording import Recording

_PRISMATIC = "JointModelP"


@dataclass(frozen=True)
class NearLimit:
    """The row in which a value was closest to its limit.

    Attributes:
        quantity: Name of the quantity, such as ``"torque"``.
        of: Name of the joint or foot.
        t: Time of the row [s].
        worst, limit: The value in this row, and the closer of its limits [unit]. For a foot, it is the mildest value
            within :data:`BRIEF` from then on.
        unit: Unit; empty for shares.
        beyond: Whether the value exceeds its limit.
        share: Value as a share of the limit; NaN for quantities whose limit may be 0.
        begins: Whether a joint was at this position limit already in the first row, and never beyond it. An example is
            a gripper that is closed by its joint limit.
    """

    quantity: str
    of: str
    t: float
    worst: float
    limit: float
    unit: str
    beyond: bool
    share: float = math.nan
    begins: bool = False

    @property
    def at_it(self) -> bool:
        """Whether the value was at its limit, up to rounding."""
        return abs(self.limit - self.worst) <= AT_STOP


def joint_limits(recording: Recording, lower: str, upper: str) -> tuple[Array, Array] | None:
    """Return limits of the recorded joints (nu,) each, infinite where a joint has none.

    Args:
        recording: The run.
        lower, upper: Attributes of :class:`bipedsim.model.Robot`; if they are equal, the limit is symmetric.

    Returns:
        Lower and upper limits; None if the robot is not available here.
    """
    try:
        robot = robot_of(recording)
    except BipedSimError:
        return None
    unlimited = np.full(len(recording.joint_names), np.inf)
    low, high = -unlimited, unlimited
    for i, name in enumerate(recording.joint_names):
        if name in robot.joint_names:
            j = robot.joint_names.index(name)
            low[i], high[i] = getattr(robot, lower)[j], getattr(robot, upper)[j]
    return (-np.abs(high) if lower == upper else low), high


def near_limits(recording: Recording, joints: int = 3) -> list[NearLimit]:
    """Return the values closest to their limits, sorted within each quantity; quantities not recorded are left out.

    Args:
        recording: The run.
        joints: Maximum number of joints per quantity, and the same number of joints at their limits from the start.
    """
    names, feet = recording.joint_names, recording.feet
    nearest_all: list[NearLimit] = []
    effort = recording.effort_limit
    for quantity, values, limits, units in (
        ("torque", recording.joint_effort, (-effort, effort), ("N.m", "N")),
        (
            "velocity",
            recording.joint_velocity,
            joint_limits(recording, "velocity_limit", "velocity_limit"),
            ("rad/s", "m/s"),
        ),
        (
            "position",
            recording.joint_position,
            joint_limits(recording, "position_lower", "position_upper"),
            ("rad", "m"),
        ),
    ):
        if limits is not None:
            unit = [units[slides] for slides in _slide(recording)]
            by_share = quantity != "position"
            nearest = _nearest(quantity, recording.t, values, limits, names, unit, by_share)
            # Joints at their limits from the start are expected, so they do not displace others.
            for begins in (False, True):
                nearest_all += [near for near in nearest if near.begins is begins][:joints]
    ones, unlimited = np.ones(len(feet)), np.full(len(feet), np.inf)
    used, no_units = _lasting(recording, recording.friction_used), [""] * len(feet)
    nearest_all += _nearest("friction used", recording.t, used, (-unlimited, ones), feet, no_units, True)
    margin, edges = -_lasting(recording, -recording.cop_margin), (0.0 * ones, unlimited)
    return nearest_all + _nearest("CoP to the edge", recording.t, margin, edges, feet, ["m"] * len(feet), False)


def _lasting(recording: Recording, values: Array) -> Array:
    """Return for each row the minimum of ``values`` (n, feet) of loaded feet over :data:`BRIEF` from this row on.

    The minimum is NaN where a foot is not loaded all the time. If the run is shorter than :data:`BRIEF`, it is taken
    over the whole run.
    """
    t = recording.t
    if not len(t):
        return values
    carries = np.nan_to_num(recording.wrench[:, :, 2]) > CARRIES * np.nan_to_num(recording.weight)
    loaded = np.where(carries, values, np.nan)
    rows = 1 if len(t) == 1 else min(len(t), 1 + round(BRIEF / float(np.median(np.diff(t)))))
    result = np.full_like(loaded, np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(loaded, rows, axis=0)
    least = windows.min(axis=2)
    # Windows across a gap or a jump back in time do not count.
    ends = t[rows - 1 :] - t[: len(least)]
    least[(ends < 0.0) | (ends > 2.0 * BRIEF)] = np.nan
    result[: len(least)] = least
    return result


def _slide(recording: Recording) -> list[bool]:
    """Return for each joint whether it is prismatic; False if the robot is not available here."""
    try:
        robot = robot_of(recording)
    except BipedSimError:
        return [False] * len(recording.joint_names)
    model = robot.model
    kinds = {name: joint.shortname() for name, joint in zip(model.names, model.joints, strict=True)}
    return [kinds.get(name, "").startswith(_PRISMATIC) for name in recording.joint_names]


def _nearest(
    quantity: str,
    t: Array,
    values: Array,
    limits: tuple[Array, Array],
    names: Sequence[str],
    units: Sequence[str],
    by_share: bool,
) -> list[NearLimit]:
    """Return for each name the row in which ``values`` (n, k) were closest to the limits (k,), the closest first."""
    candidates = []
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        for limit, sign in ((float(limits[0][i]), -1.0), (float(limits[1][i]), 1.0)):
            beyond = sign * (values[:, i] - limit)
            if not math.isfinite(limit) or not np.isfinite(beyond).any():
                continue
            row = int(np.nanargmax(beyond))
            worst = float(values[row, i])
            share = worst / limit if by_share and limit else math.nan
            begins = quantity == "position" and bool(abs(beyond[0]) <= AT_STOP and beyond[row] <= AT_STOP)
            is_beyond = bool(beyond[row] > 0.0)
            near = NearLimit(quantity, name, float(t[row]), worst, limit, unit, is_beyond, share, begins)
            candidates.append((share if by_share else float(beyond[row]), near))
    candidates.sort(key=lambda candidate: -candidate[0])
    # Only the closer one of the two limits is returned.
    seen: dict[str, NearLimit] = {}
    for _, near in candidates:
        seen.setdefault(near.of, near)
    return list(seen.values())
