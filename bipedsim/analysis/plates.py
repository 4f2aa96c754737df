"""Force plate signals from a recording: ground reaction forces, centre of pressure and free moment.

A force plate measures the wrench of the feet about its own origin. Here the ground reaction wrenches on the soles are
transformed to the world origin and evaluated on the plane z = h. With the force f and the moment tau about the origin,
the horizontal moment is zero at the centre of pressure,

    x = (h f_x - tau_y) / f_z,    y = (h f_y + tau_x) / f_z,

which for h = 0 is x = -tau_y / f_z, y = tau_x / f_z (moraud2008 eq. 2; any force plate's manual). The free moment is
the remaining moment about the vertical, tau_z - (x f_y - y f_x).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # it imports its submodules at their first use; scipy.signal takes longer than the rest of a node

from bipedsim.analysis.loads import PRESSES
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Flags, Integers
from bipedsim.recording import Recording

INSIDE_TOLERANCE = 1e-6
"""Distance [m] outside a sole that still counts as on its edge."""
APART = 0.1
"""Time before and after a motion in which a robot does not count as standing still [s]."""
SETTLE = 1.0
"""Time after the start that does not count as standing [s]."""
MANY = 1 << 17
"""Largest number of values of a long run that are kept in memory at once."""


@dataclass(frozen=True, eq=False)
class ForcePlate:
    """Ground reactions of K feet over n ticks, in the world.

    Attributes:
        t: (n,) [s].
        force: (n, K, 3) on each foot [N].
        moment: (n, K, 3) about the world origin [N.m].
        cop: (n, K, 2) centre of pressure of each foot on the plate [m], NaN in the air.
        free_moment: (n, K) about the vertical through each CoP [N.m], NaN in the air.
        total_force: (n, 3) over all feet [N].
        total_cop: (n, 2) over all feet [m], NaN in the air.
        total_free_moment: (n,) [N.m].
    """

    t: Array
    force: Array
    moment: Array
    cop: Array
    free_moment: Array
    total_force: Array
    total_cop: Array
    total_free_moment: Array


def rotate(quaternion: Array, vector: Array) -> Array:
    """Rotate ``vector`` (..., 3) by the unit ``quaternion`` (..., 4), x y z w."""
    axis, w = quaternion[..., :3], quaternion[..., 3:]
    twice = 2.0 * np.cross(axis, vector)
    return np.asarray(vector + w * twice + np.cross(axis, twice))


def roll_pitch_yaw(quaternion: Array) -> Array:
    """Return roll, pitch and yaw (n, 3) [rad] of quaternions (n, 4) x y z w: R = Rz(yaw) Ry(pitch) Rx(roll).

    Roll and yaw are unwrapped, so they may exceed half a turn.
    """
    x, y, z, w = quaternion.T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    angles = np.column_stack([roll, pitch, yaw])
    known = np.isfinite(angles).all(axis=1)
    angles[known] = np.unwrap(angles[known], axis=0)
    return angles


def world_wrench(wrench: Array, sole_poses: Array) -> tuple[Array, Array]:
    """Return force [N] and moment about the world origin [N.m], both (..., 3) in world axes.

    Args:
        wrench: (..., 6) force and torque at the sole origin, in the sole frame.
        sole_poses: (..., 7) pose of the sole in the world: position [m], quaternion x y z w.
    """
    position, quaternion = sole_poses[..., :3], sole_poses[..., 3:]
    force = rotate(quaternion, wrench[..., :3])
    return force, rotate(quaternion, wrench[..., 3:]) + np.cross(position, force)


def centre_of_pressure(force: Array, moment: Array, height: float = 0.0, threshold: float = 0.0) -> tuple[Array, Array]:
    """Return the CoP (..., 2) [m] on the plane z = ``height`` and the free moment (...) [N.m] about it.

    Args:
        force: (..., 3) [N].
        moment: (..., 3) about the world origin [N.m].
        height: Height of the plate's surface [m].
        threshold: Vertical force [N] up to which both are NaN.
    """
    fx, fy, fz = np.moveaxis(force, -1, 0)
    loaded = np.where(fz > threshold, fz, np.nan)
    x = (height * fx - moment[..., 1]) / loaded
    y = (height * fy + moment[..., 0]) / loaded
    return np.stack([x, y], axis=-1), moment[..., 2] - (x * fy - y * fx)


def low_pass(values: Array, rate: float, cutoff: float = 20.0, order: int = 5, zero_phase: bool = True) -> Array:
    """Filter along the first axis with a Butterworth low-pass; moraud2008 uses order 5 at 20 Hz.

    Args:
        values: (n, ...) samples without NaN.
        rate: Samples per second [Hz].
        cutoff: Half-power frequency [Hz] of one pass.
        order: Order of one pass.
        zero_phase: Filter forwards and backwards: no delay, twice the attenuation. Otherwise causal, starting in the
            steady state of the first sample.

    Raises:
        ConfigError: The cut-off is not between 0 and half the rate, or the order is not positive.
    """
    if not 0.0 < cutoff < 0.5 * rate:
        raise ConfigError(f"Hz must be between 0 and half the sampling rate, {0.5 * rate:g} Hz", "cutoff", cutoff)
    if order < 1:
        raise ConfigError("must be at least 1", "order", order)
    sections = scipy.signal.butter(order, cutoff, fs=rate, output="sos")
    if zero_phase:
        # The ends are reflected for as long as the filter rings; scipy's default is a handful of samples.
        padding = min(len(values) - 1, int(3.0 * order * rate / cutoff))
        return np.asarray(scipy.signal.sosfiltfilt(sections, values, axis=0, padlen=max(0, padding)))
    state = scipy.signal.sosfilt_zi(sections).reshape(len(sections), 2, *([1] * (values.ndim - 1))) * values[0]
    return np.asarray(scipy.signal.sosfilt(sections, values, axis=0, zi=state)[0])


def sample_rate(t: Array) -> float:
    """Return the sampling rate [Hz] of the times ``t``; NaN for fewer than two."""
    return _rate(float(np.median(np.diff(t)))) if len(t) > 1 else float("nan")


def _rate(period: float) -> float:
    # The rate is rounded because differences of binary times give 999.9999999999991 instead of 1000.
    return round(1.0 / period, 6) if period else float("inf")


def force_plate(
    recording: Recording,
    cutoff: float | None = None,
    order: int = 5,
    zero_phase: bool = True,
    height: float = 0.0,
) -> ForcePlate:
    """Compute the ground reactions of a recording, with forces and moments filtered before the CoP, as in a plate.

    Args:
        recording: Needs ``wrench`` and ``sole_poses``; rows without them become zero force.
        cutoff: Cut-off frequency of the low-pass [Hz]; None for no filter.
        order, zero_phase: See :func:`low_pass`.
        height: Height of the plate's surface [m].

    Raises:
        ConfigError: The recording has no sole poses, or the cut-off does not fit its rate.
    """
    if len(recording) == 0 or np.isnan(recording.sole_poses).all():
        raise ConfigError("none recorded: a bag needs /ground_truth/odom and a robot that bipedsim knows", "sole poses")
    force, moment = world_wrench(recording.wrench, recording.sole_poses)
    # A foot in the air may be recorded with NaN torque or pose; its force is zero.
    idle = ~np.isfinite(force).all(axis=-1) | ~np.isfinite(moment).all(axis=-1)
    force[idle] = moment[idle] = 0.0
    if cutoff is not None:
        rate = sample_rate(recording.t)
        force, moment = (low_pass(values, rate, cutoff, order, zero_phase) for values in (force, moment))
    total_force, total_moment = force.sum(axis=1), moment.sum(axis=1)
    weight = recording.weight if np.isfinite(recording.weight) else float(np.abs(total_force[:, 2]).max())
    threshold = PRESSES * weight
    cop, free_moment = centre_of_pressure(force, moment, height, threshold)
    total_cop, total_free_moment = centre_of_pressure(total_force, total_moment, height, threshold)
    return ForcePlate(recording.t, force, moment, cop, free_moment, total_force, total_cop, total_free_moment)


def cop_under_soles(plate: ForcePlate, sole_poses: Array) -> tuple[Array, Array]:
    """Return the CoP of each foot (n, K, 3) in the plane of its sole, and that of all feet (n, 3), in the world [m].

    The CoP of all feet is the mean of the feet's, weighted by the force normal to each sole. On one slope, it is the
    CoP of both feet in its plane. The CoPs of a plate are in the plate's plane, which on slopes and stairs differs from
    the ground. Values are NaN where the plate's are.

    Args:
        plate: Ground reactions of the feet.
        sole_poses: (n, K, 7) position [m] and quaternion x y z w.
    """
    position, turn = sole_poses[..., :3], sole_poses[..., 3:]
    back = turn * [-1.0, -1.0, -1.0, 1.0]
    force = rotate(back, plate.force)
    moment = rotate(back, plate.moment - np.cross(position, plate.force))
    loaded = np.isfinite(plate.cop[..., 0]) & (force[..., 2] > 0.0)
    fz = np.where(loaded, force[..., 2], np.nan)
    in_sole = np.stack([-moment[..., 1] / fz, moment[..., 0] / fz, 0.0 * fz], axis=-1)
    feet = position + rotate(turn, in_sole)
    share = np.where(loaded, force[..., 2], 0.0)
    total = share.sum(axis=1)
    every = (share[..., None] * np.where(loaded[..., None], feet, 0.0)).sum(axis=1)
    return feet, every / np.where(total > 0.0, total, np.nan)[:, None]


def margin(points: Array, vertices: Array) -> Array:
    """Return the signed distance (...) [m] of ``points`` (..., 2) from the boundary of a convex polygon, > 0 inside.

    Outside it is the distance from the furthest crossed edge line, which is enough to distinguish inside and outside.

    Args:
        points: Points in the sole frame [m]; NaN gives NaN.
        vertices: (N, 2) counter-clockwise [m]. One or two vertices have no inside: the result is minus the distance
            from the point or segment.
    """
    if len(vertices) == 1:
        return -np.asarray(np.linalg.norm(points - vertices[0], axis=-1))
    if len(vertices) == 2:
        edge = vertices[1] - vertices[0]
        along = np.clip((points - vertices[0]) @ edge / (edge @ edge), 0.0, 1.0)
        return -np.asarray(np.linalg.norm(points - vertices[0] - along[..., None] * edge, axis=-1))
    edges = np.roll(vertices, -1, axis=0) - vertices
    edges /= np.linalg.norm(edges, axis=1)[:, None]
    offset = points[..., None, :] - vertices
    return np.asarray((edges[:, 0] * offset[..., 1] - edges[:, 1] * offset[..., 0]).min(axis=-1))


def standing_rows(recording: Recording, settle: float = SETTLE, speed: float = 0.02) -> Flags:
    """Return which rows (n,) show the robot standing still, so that the ground must carry its weight.

    Such a row is at least ``settle`` seconds after the start, and 0.1 s before and after any row in motion. A row is in
    motion if one of these conditions holds:

    * A foot is unloaded.
    * Another body is in contact.
    * A gantry holds the robot.
    * A joint moves faster than ``speed`` [rad/s]. For noisy velocities the mean over 0.05 s is used.
    """
    return _still(recording.t, _moving(recording, speed), settle)


def _moving(recording: Recording, speed: float) -> Flags:
    slow = _slow(recording.joint_velocity, sample_rate(recording.t), speed)
    loaded = (np.nan_to_num(recording.wrench[:, :, 2]) > 0.0).all(axis=1)
    alone = np.isnan(recording.base_contact[:, 2]) & np.isnan(recording.gantry_force[:, 2])
    return np.asarray(~(slow & loaded & alone))


def _still(t: Array, moving: Flags, settle: float, begin: float | None = None, moved: float = -np.inf) -> Flags:
    """Return which rows (n,) show the robot standing still; ``moved`` is the time of the last motion before them."""
    if len(t) == 0:
        return np.zeros(0, dtype=np.bool_)
    before = np.maximum(np.maximum.accumulate(np.where(moving, t, -np.inf)), moved)
    after = np.minimum.accumulate(np.where(moving, t, np.inf)[::-1])[::-1]
    begin = t[0] if begin is None else begin
    # The tolerance is needed because multiples of a time step are not exact in binary.
    return np.asarray((t - before >= APART) & (after - t >= APART) & (t - begin >= settle - 1e-9))


def summary(recording: Recording, settle: float = SETTLE) -> dict[str, Any]:
    """Return the metrics of a run; metrics that the recording does not determine are None.

    * duration_s, rate_hz, ticks;
    * fz_N, fz_over_mg: min, mean and max of the total vertical force over the run, on feet and all other bodies;
    * fz_mean_over_mg, fz_max_error_N: total vertical force compared with the weight in the :func:`standing_rows`;
    * standing_s: duration of these rows;
    * cop_inside_fraction: share of (tick, loaded foot) whose CoP is in the sole, within 1 um;
    * state_changes: changes of contact mode or friction state between ticks, over all feet, without the first tick.

    Args:
        recording: A run.
        settle: Time [s] after the start that does not count as standing.
    """
    figures = RunFigures(settle)
    figures.add(recording)
    return figures.figures()


class _Mean:
    """Accumulate mean and range of finite values; for up to :data:`MANY` values the mean equals numpy's."""

    def __init__(self) -> None:
        self.n, self.low, self.high = 0, np.inf, -np.inf
        self._sum, self._rest = 0.0, np.zeros(0)

    def add(self, values: Array) -> None:
        values = values[np.isfinite(values)]
        self.n += len(values)
        self.low, self.high = values.min(initial=self.low), values.max(initial=self.high)
        self._rest = np.concatenate([self._rest, values])
        while len(self._rest) > MANY:
            self._sum += float(self._rest[:MANY].sum())
            self._rest = self._rest[MANY:]

    @property
    def mean(self) -> float:
        return (self._sum + float(self._rest.sum())) / self.n


class _Median:
    """Accumulate the median of values; it is exact for up to :data:`MANY` different values."""

    def __init__(self) -> None:
        self._values, self._counts = np.zeros(0), np.zeros(0, dtype=np.int64)

    def add(self, values: Array) -> None:
        new_values, counts = np.unique(values, return_counts=True)
        self._values, index = np.unique(np.concatenate([self._values, new_values]), return_inverse=True)
        all_counts = np.concatenate([self._counts, counts])
        self._counts = np.bincount(index, all_counts, minlength=len(self._values)).astype(np.int64)
        while len(self._values) > MANY:
            # Neighbours are merged to limit the memory.
            self._values = self._values[::2]
            self._counts = np.add.reduceat(self._counts, np.arange(0, len(self._counts), 2))

    @property
    def median(self) -> float:
        n = int(self._counts.sum())
        middle = np.searchsorted(np.cumsum(self._counts), [(n - 1) // 2, n // 2], side="right")
        return float(self._values[middle].mean()) if n else float("nan")


class RunFigures:
    """Accumulate the metrics of :func:`summary` over the blocks of a run.

    The memory does not grow with the run. The noise of joint velocities is estimated for each block.

    Args:
        settle: Time [s] after the start that does not count as standing.
    """

    SPEED = 0.02
    COLUMNS = (
        *("joint_velocity", "wrench", "ankle_wrench", "sole_poses", "cop", "mode", "sliding"),
        *("base_contact", "link_contact", "gantry_force"),
    )
    """Columns of the recording that are read."""

    def __init__(self, settle: float = SETTLE) -> None:
        self._settle = settle
        self._ticks = 0
        self._posed = False
        self._begin = self._end = 0.0
        self._steps = _Median()
        # Whether the robot stands still in the last rows depends on the next ones, so those rows are kept.
        self._last = np.zeros(0), np.zeros(0, dtype=np.bool_), np.zeros(0)
        self._moved = -np.inf
        self._upward, self._all_upward = _Mean(), _Mean()
        self._weight = float("nan")
        self._inside = self._loaded = self._changes = 0
        self._modes: tuple[Integers, Flags] | None = None
        self._moded = False

    def add(self, rows: Recording) -> None:
        """Process the next rows."""
        if len(rows) == 0:
            return
        self._weight = rows.weight
        self._steps.add(np.diff(rows.t, prepend=self._end) if self._ticks else np.diff(rows.t))
        self._begin = self._begin if self._ticks else float(rows.t[0])
        self._end = float(rows.t[-1])
        self._ticks += len(rows)
        self._posed = self._posed or bool(np.isfinite(rows.sole_poses).any())
        new = rows.t, _moving(rows, self.SPEED), _upward(rows, self._posed)
        t, moving, upward = (np.concatenate(parts) for parts in zip(self._last, new, strict=True))
        n = int(np.searchsorted(t, self._end - 2.0 * APART))
        self._upward.add(upward[:n][self._still(t, moving)[:n]])
        self._moved = float(t[:n][moving[:n]].max(initial=self._moved))
        self._last = t[n:], moving[n:], upward[n:]
        for k, vertices in enumerate(rows.sole_vertices):
            cop = rows.cop[:, k]
            cop = cop[np.isfinite(cop).all(axis=1)]
            if len(vertices) and len(cop):
                self._inside += int((margin(cop, vertices) >= -INSIDE_TOLERANCE).sum())
                self._loaded += len(cop)
        # The row of a bag at t = 0 is before the first step, when no foot had a force or a contact mode.
        stepped = slice(int(np.searchsorted(rows.t, 0.0, side="right")), None)
        self._all_upward.add(new[2][stepped])
        mode, sliding = rows.mode[stepped], rows.sliding[stepped]
        if self._modes is not None and self._modes[0].shape[1:] == mode.shape[1:]:
            mode, sliding = np.vstack([self._modes[0], mode]), np.vstack([self._modes[1], sliding])
        self._changes += int(((np.diff(mode, axis=0) != 0) | np.diff(sliding, axis=0)).sum())
        if len(mode):
            self._modes = mode[-1:].copy(), sliding[-1:].copy()
        self._moded |= bool((mode >= 0).any())

    def _forces(self) -> tuple[dict[str, float] | None, dict[str, float] | None]:
        """Return the range of the total vertical force over the run [N], and the same as a share of the weight."""
        force = self._all_upward
        if not force.n:
            return None, None
        span = {"min": float(force.low), "mean": force.mean, "max": float(force.high)}
        known = np.isfinite(self._weight)
        return span, {name: value / self._weight for name, value in span.items()} if known else None

    def _still(self, t: Array, moving: Flags) -> Flags:
        return _still(t, moving, self._settle, self._begin, self._moved)

    def figures(self) -> dict[str, Any]:
        """Return the metrics of all rows so far."""
        rate = _rate(self._steps.median)
        t, moving, upward = self._last
        stood = copy(self._upward)
        stood.add(upward[self._still(t, moving)])
        figures: dict[str, Any] = {
            "duration_s": self._end - self._begin,
            "rate_hz": rate if np.isfinite(rate) else None,
            "ticks": self._ticks,
            **dict(zip(("fz_N", "fz_over_mg"), self._forces(), strict=True)),
            "fz_mean_over_mg": None,
            "fz_max_error_N": None,
            "standing_s": stood.n / rate if stood.n else 0.0,
        }
        if stood.n and np.isfinite(self._weight):
            figures["fz_mean_over_mg"] = stood.mean / self._weight
            figures["fz_max_error_N"] = float(max(abs(stood.low - self._weight), abs(stood.high - self._weight)))
        figures["cop_inside_fraction"] = self._inside / self._loaded if self._loaded else None
        figures["state_changes"] = self._changes if self._moded else None
        return figures


def _upward(recording: Recording, posed: bool) -> Array:
    """Return the upward force (n,) of all contacts on the robot [N]; NaN where ``posed`` and poses are missing."""
    sole, poses = recording.wrench, recording.sole_poses
    upward = rotate(poses[..., 3:], sole[..., :3])[..., 2]
    if not posed:
        # The soles are assumed level, as those of a robot that stands still on flat ground.
        upward = sole[..., 2]
    return np.asarray(upward.sum(axis=1) + np.nan_to_num(other_bodies(recording)[:, 2]))


def other_bodies(recording: Recording) -> Array:
    """Return the force (n, 3) in the world of all contacts on bodies other than soles [N]; NaN without contact."""
    # Joints without recorded contact, such as those of closed kinematic chains, count as without force.
    return np.asarray(recording.base_contact + np.nan_to_num(recording.link_contact).sum(axis=1))


def _slow(velocity: Array, rate: float, speed: float) -> Flags:
    """Return the rows (n,) in which all joints of ``velocity`` (n, nu) are slower than ``speed`` [rad/s], up to noise.

    The noise is estimated from second differences, in which a smooth motion vanishes. Their median is 0.6745 sqrt(6)
    standard deviations.
    """
    fast = np.abs(np.nan_to_num(velocity, nan=np.inf))
    slow = fast < speed
    window = round(0.05 * rate) if np.isfinite(rate) else 0
    if 3 <= window < len(velocity) and np.isfinite(fast).all():
        noise = np.median(np.abs(np.diff(velocity, 2, axis=0)), axis=0) / (0.6745 * np.sqrt(6.0))
        mean = scipy.ndimage.uniform_filter1d(velocity, window, axis=0)
        slow |= (fast < speed + 6.0 * noise) & (np.abs(mean) < speed)
    return np.asarray(slow.all(axis=1))
