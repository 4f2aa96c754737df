"""Read the signals of a recording, smooth and differentiate them, and predict them from their past."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.config import together
from bipedsim.errors import RecordingError
from bipedsim.model import HardwareParams, Robot
from bipedsim.numerics import Array, Flags, Indices, Integers, true_runs
from bipedsim.recording import COLUMNS, Recording
from bipedsim_studies.gap import acting, convention_fault, external_forces, rows_per_value
from bipedsim_studies.identify.lacking import Lacking, in_order, measured_in_soles
from bipedsim_studies.identify.noise import CHANNELS, channel_noise

SMOOTHED = 0.05
"""Length of the first smoothing window [s]."""
RATE = 50.0
"""Rate at which the equations are evaluated [1/s]."""
JITTER = 1.05
"""Longest median period of the rows over the longest period that is allowed, since stamps scatter."""
TAPS = 5
"""Samples of the second smoothing window, which the equations go through."""
AIRBORNE = 0.05
"""Share of the weight below which the force on a foot may be that of the foot itself."""
HELD = 0.3
"""Share of the weight that something other than the feet carries from which the robot counts as held."""
GANTRY = "gantry_force"
"""Column of simulated runs with the force of a gantry, which acts on the trunk."""
SWINGS = 0.1
"""Speed relative to the other foot [m/s] above which an unloaded foot is in the air."""
PAST = (0.16, 0.22, 0.3, 0.4, 0.52, 0.66, 0.82, 1.0)
"""Ages of the signals from which the present ones are predicted [s]. The smoothing windows end before the youngest."""
PHASES = ("all feet on the ground", "a foot in the air", "a touchdown")
"""Phases of a motion, for the statistics of unexplained torques."""
LANDING = 0.2
"""Duration of a touchdown [s]. The smoothing windows spread an impact over 0.1 s."""
NEEDED = ("joint_position", "joint_velocity", "imu_angular_velocity", "imu_linear_acceleration")
"""Columns of a recording that the equations need."""
MAY_LACK = ("joint_effort", "ankle_wrench")
"""Columns of which signals may be missing, but only in all rows."""
UNKNOWN = 10.0
"""Standard deviation of an unmeasured component of a wrench over the weight of the robot [1], [m]. It is far above all
wrenches, so that the least-squares problem eliminates the component like an unknown of the row."""
PATTERNS = 8
"""Number of principal components of the signals in a prediction."""
PREDICTING = ("q", "v", "effort", "wrench", "gyro", "accelerometer")
"""Signals whose past a prediction uses."""
PREDICTED = (*PREDICTING, "a", "effort_rate", "dry", "wrench_rate", "gyro_rate", "gyro_jerk", "accelerometer_rate")
"""Signals that are predicted."""
RIDGE = 10.0
"""Penalty on the squared coefficients of a prediction, whose features have the variance 1."""


@dataclass(frozen=True, eq=False)
class Signals:
    """Smoothed signals of a recording at n times, for nu joints and K feet.

    Attributes:
        t: (n,) times at :data:`RATE` [s].
        q, v, a: (n, nu) of the joints.
        effort, effort_rate: (n, nu) measured torque of the drives, and its derivative.
        dry: (n, nu) deflection of the dry friction of each joint over the deflection at which it slips, -1 to 1.
        wrench, wrench_rate: (n, K, 6) of the ankle sensors.
        gyro, gyro_rate, gyro_jerk: (n, 3) angular velocity of the IMU and its derivatives.
        accelerometer, accelerometer_rate: (n, 3).
        airborne: (n, K) whether a foot is in the air during the whole window.
        held: (n,) whether a gantry, a hand or the ground under the trunk carries the robot within the window.
        noise: (6 + nu + 6 K,) standard deviations after both windows of accelerometer, angular and joint accelerations,
            and wrenches. Unmeasured components of wrenches have :data:`UNKNOWN` times the weight.
        correlation: (L, 6 + nu + 6 K) correlation of this noise in rows that are 0 to L - 1 rows apart. It is 0 for
            rows further apart, whose windows do not overlap.
        lacking: Signals that are zero here because the recording lacks them.
        begin: Index of the first row that is used.
    """

    t: Array
    q: Array
    v: Array
    a: Array
    effort: Array
    effort_rate: Array
    dry: Array
    wrench: Array
    wrench_rate: Array
    gyro: Array
    gyro_rate: Array
    gyro_jerk: Array
    accelerometer: Array
    accelerometer_rate: Array
    airborne: Flags
    held: Flags
    noise: Array
    correlation: Array
    lacking: Lacking
    begin: int = 0

    def __len__(self) -> int:
        return len(self.t)

    @property
    def phases(self) -> Integers:
        """Index (n,) in ``PHASES`` of each row; -1 if a force on a foot is not measured, so that it may be in the air.

        A touchdown begins with the first row on the ground.
        """
        if self.lacking.wrenches[:, :3].any():
            return np.full(len(self), -1)
        air = np.asarray(self.airborne.any(axis=1))
        lands = np.zeros(len(self), dtype=np.bool_)
        for _, last in true_runs(air):
            lands[last : last + round(LANDING * RATE)] = True
        return np.where(air, 1, np.where(lands, 2, 0))


def _nearest_rows(t: Array, beside: int) -> Indices:
    """Return the rows that are nearest to equal steps at :data:`RATE`, without the first and last ``beside`` ones."""
    inner = t[beside : len(t) - beside]
    wanted = np.arange(inner[0], inner[-1] + 0.5 * (inner[1] - inner[0]), 1.0 / RATE)
    after = np.clip(np.searchsorted(inner, wanted), 1, len(inner) - 1)
    return np.asarray(beside + after - (wanted - inner[after - 1] < inner[after] - wanted))


def _window(taps: int) -> Array:
    """Return a Hann window of ``taps``, an uneven number, with the sum 1."""
    weights = np.hanning(taps + 2)[1:-1]
    return weights / weights.sum()


HANN = _window(TAPS)
"""Weights (TAPS,) of the second smoothing window."""


def _smooth(values: Array, window: Array) -> Array:
    columns = values.reshape(len(values), -1).T
    smoothed = np.stack([np.convolve(column, window, "same") for column in columns], axis=1)
    return smoothed.reshape(values.shape)


def _deflections(q: Array) -> Array:
    """Return the deflections (n, nu) of the dry friction of joints, as a share of the deflection at which it slips.

    The friction is that of the simulated drives (:mod:`bipedsim.sim.actuators`), an elastoplastic spring.
    """
    slips_at = HardwareParams().presliding
    deflection = np.zeros_like(q)
    for k, step in enumerate(np.diff(q, axis=0)):
        deflection[k + 1] = np.clip(deflection[k] + step, -slips_at, slips_at)
    return deflection / slips_at


def signals_of(recording: Recording, robot: Robot, source: str = "the recording") -> Signals:
    """Return the signals of a recording of ``robot``.

    Efforts, wrenches and accelerations are means over the tick before their row. The other signals are moved to the
    middle of that tick.

    Args:
        recording: At least 2 s without gaps, with 2 :data:`RATE` rows a second or more.
        robot: The robot.
        source: Name of the recording, for messages.

    Efforts and components of ankle wrenches may be missing in all rows.

    Raises:
        RecordingError: A joint, columns or rows are missing, or something else touches the robot.
    """
    recording = in_order(recording, robot, source)
    lacking = Lacking.of(recording, robot)
    recording = lacking.filled(recording)
    dt = _checked(recording, robot, lacking, source)

    def mid(values: Array) -> Array:
        return np.concatenate([values[:1], 0.5 * (values[1:] + values[:-1])])

    taps = 2 * round(0.5 * SMOOTHED / dt) + 1
    window, kept = _window(taps), _nearest_rows(recording.t, taps)

    def smoothed(values: Array, derivatives: int = 0) -> list[Array]:
        series = [_smooth(values, window)]
        for _ in range(derivatives):
            series.append(np.gradient(series[-1], dt, axis=0))
        return [each[kept] for each in series]

    position, velocity, wrench = recording.joint_position, recording.joint_velocity, recording.ankle_wrench
    gyro, accelerometer = recording.imu_angular_velocity, recording.imu_linear_acceleration
    (q,) = smoothed(mid(position))
    v, a = smoothed(mid(velocity), 1)
    effort, effort_rate = smoothed(recording.joint_effort, 1)
    (dry,) = smoothed(_deflections(_smooth(mid(position), _window(2 * round(0.3 * SMOOTHED / dt) + 1))))
    smooth_wrench, wrench_rate = smoothed(wrench, 1)
    smooth_gyro, gyro_rate, gyro_jerk = smoothed(mid(gyro), 2)
    smooth_accelerometer, accelerometer_rate = smoothed(accelerometer, 1)
    deviations = channel_noise(recording, lacking)
    rows = [rows_per_value(getattr(recording, name).reshape(len(recording), -1)) for name in CHANNELS]
    white = np.concatenate([deviations[name] for name in CHANNELS]) * np.sqrt(np.concatenate(rows))
    gains, correlation = _of_white_noise(window, max(round(1.0 / (RATE * dt)), 1), dt, len(robot.soles), robot.nu)
    white *= gains
    white[6 + robot.nu :][lacking.wrenches.ravel()] = UNKNOWN * robot.weight
    return Signals(
        t=recording.t[kept],
        q=q,
        v=v,
        a=a,
        effort=effort,
        effort_rate=effort_rate,
        dry=dry,
        wrench=smooth_wrench,
        wrench_rate=wrench_rate,
        gyro=smooth_gyro,
        gyro_rate=gyro_rate,
        gyro_jerk=gyro_jerk,
        accelerometer=smooth_accelerometer,
        accelerometer_rate=accelerometer_rate,
        airborne=_airborne(recording, lacking, robot, taps, kept) & _swinging(robot, q, v),
        held=_held(recording, lacking, robot, taps, kept),
        noise=white,
        correlation=correlation,
        lacking=lacking,
    )


def measured_rows(
    recording: Recording, robot: Robot, source: str = "the recording"
) -> tuple[Recording, tuple[str, ...]]:
    """Return the rows from the first to the last one with a measurement of all sensors, and a note on the others.

    The sensors of a robot start and end at different times. A signal that is missing in all rows does not count.

    Raises:
        RecordingError: A joint is missing, or the recording has other feet.
    """
    ordered = in_order(recording, robot, source)
    columns = [getattr(ordered, name).reshape(len(ordered), -1) for name in (*NEEDED, *MAY_LACK)]
    values = np.hstack(columns)
    present = np.isfinite(values)
    whole = np.flatnonzero((present | ~present.any(axis=0)).all(axis=1))
    if not len(whole):
        return recording, ()
    first, last = int(whole[0]), int(whole[-1])
    left_out = len(recording) - (last + 1 - first)
    if not left_out:
        return recording, ()
    note = f"{left_out} rows at the begin and end are not used, because a sensor has no measurement there"
    return recording.rows(slice(first, last + 1)), (note,)


def _checked(recording: Recording, robot: Robot, lacking: Lacking, source: str) -> float:
    """Return the period of the rows [s]; raise RecordingError if something is missing."""
    steps = np.diff(recording.t)
    dt = float(np.median(steps)) if len(steps) else np.inf
    faults = []
    if recording.duration < 2.0 * PAST[-1]:
        faults.append(f"lasts {recording.duration:.3g} s, and at least {2 * PAST[-1]:g} s are needed")
    elif dt > JITTER * 0.5 / RATE:
        faults.append(f"has {1 / dt:.4g} rows a second, and at least {2 * RATE:g} are needed")
    elif steps.max() > 1.5 * dt:
        row = int(np.argmax(steps))
        faults.append(
            f"has a gap of {steps[row]:.3g} s at t = {recording.t[row]:.3f} s; choose a part with --from and --to"
        )
    faults += [f"{what}; choose another part with --from and --to" for what in external_forces(recording, (GANTRY,))]
    imu = recording.imu_orientation, recording.imu_linear_acceleration
    if fault := convention_fault(robot, recording.joint_position, *imu, recording.ankle_wrench):
        faults.append(fault)
    if lacking.efforts.all() and lacking.wrenches.all():
        faults.append("lacks joint_effort and ankle_wrench; the equations of motion need the forces of one of them")
    for name in (*NEEDED, *MAY_LACK):
        absent = ~np.isfinite(getattr(recording, name).reshape(len(recording), -1)).all(axis=1)
        if absent.all():
            of_bag = f"{COLUMNS[name].topic} in a bag; docs/other_bag.md renames others"
            faults.append(f"lacks {name} ({of_bag}), which the equations of motion need")
        elif absent.any():
            first = recording.t[np.argmax(absent)]
            faults.append(
                f"lacks {name} in {absent.sum()} rows, first at t = {first:.3f} s; choose a part with --from and --to"
            )
    together([RecordingError(fault, source) for fault in faults], RecordingError)
    return dt


def _airborne(recording: Recording, lacking: Lacking, robot: Robot, taps: int, kept: Indices) -> Flags:
    """Return whether the force on each foot was measured, and small during the whole window of both smoothings."""
    small = np.linalg.norm(recording.ankle_wrench[..., :3], axis=-1) < AIRBORNE * robot.weight
    small &= ~lacking.wrenches[:, :3].any(axis=1)
    longest = np.ones(2 * taps + 1)
    return np.stack([np.convolve(~foot, longest, "same")[kept] < 0.5 for foot in small.T], axis=1)


def _held(recording: Recording, lacking: Lacking, robot: Robot, taps: int, kept: Indices) -> Flags:
    """Return whether the feet carried too little within the window of both smoothings, or a gantry held the robot.

    A tenth of the window may be an exception, such as the first row, in which no sensor has measured anything yet.
    If the normal force of a sole was not measured, only the force of a gantry shows it.
    """
    carried = np.linalg.norm(recording.ankle_wrench[..., :3], axis=-1).sum(axis=1)
    feet = zip(robot.ankle_joint_ids, robot.soles, strict=True)
    below = sum(robot.model.inertias[joint].mass for joint, sole in feet if not sole.load_cell)
    needed = (robot.mass - below) * np.linalg.norm(recording.imu_linear_acceleration, axis=1)
    weighed = measured_in_soles(robot, lacking.wrenches)[:, 2].all()
    held = (weighed & (needed - carried > HELD * robot.weight)) | acting(recording, GANTRY)
    window = np.ones(2 * taps + 1)
    return np.asarray(np.convolve(held, window, "same")[kept] > 0.1 * len(window))


def _swinging(robot: Robot, q: Array, v: Array) -> Flags:
    """Return whether each foot moves relative to the others."""
    model, data = robot.model, robot.model.createData()
    full_q, full_v = pin.neutral(model), np.zeros(model.nv)
    moves = np.zeros((len(q), len(robot.soles)), dtype=bool)
    for k in range(len(q)):
        full_q[robot.idx_q], full_v[robot.idx_v] = q[k], v[k]
        pin.forwardKinematics(model, data, full_q, full_v)
        speeds = [
            pin.getVelocity(model, data, j, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED).linear
            for j in robot.ankle_joint_ids
        ]
        moves[k] = [any(np.linalg.norm(speed - other) > SWINGS for other in speeds) for speed in speeds]
    return moves


def _of_white_noise(window: Array, stride: int, dt: float, feet: int, nu: int) -> tuple[Array, Array]:
    """Return size and correlation of white noise behind both windows, and a derivative where there is one.

    Returns:
        The factors (6 + nu + 6 K,) on its standard deviation, and the correlation (L, 6 + nu + 6 K) of rows that are 0
        to L - 1 rows apart.
    """
    second = np.zeros((TAPS - 1) * stride + 1)
    second[::stride] = HANN
    both = np.convolve(window, second)
    repeats = [3, 3 + nu, 6 * feet]  # the middle ones are derivatives
    filters = both, np.gradient(both, dt), both
    shifts = range(0, len(both), stride)
    products = [[each[shift:] @ each[: len(both) - shift] for each in filters] for shift in shifts]
    covariance = np.repeat(products, repeats, axis=1)
    return np.sqrt(covariance[0]), covariance / covariance[0]


def _centred(values: Array) -> Array:
    """Return deviations from the means over their root mean square, so that joints at rest do not count."""
    deviations = values - values.mean(axis=0)
    return deviations / (np.sqrt(np.mean(deviations**2)) + 1e-12)


def predicted(signals: Signals) -> Signals:
    """Return the signals as predicted from their past.

    The noise of a sensor moves the robot through its controller, so that it correlates with all later signals. The
    prediction of a row is independent of the noise in that row, and is therefore a valid instrument (Young,
    "Refined instrumental variable estimation", Automatica 2015). Each half is predicted with the coefficients of the
    other one.
    """
    n = len(signals)
    columns = np.hstack([_centred(getattr(signals, name).reshape(n, -1)) for name in PREDICTING])
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    patterns = left[:, : min(PATTERNS, len(values))] * np.sqrt(n)
    ages = [round(age * RATE) for age in PAST]
    begin = ages[-1]
    features = np.hstack([patterns[begin - age : n - age] for age in ages])
    half = len(features) // 2
    changed: dict[str, Any] = {}
    for name in PREDICTED:
        values = getattr(signals, name)
        flat = values.reshape(n, -1)[begin:]
        guess = np.empty_like(flat)
        for fitted, used in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
            mean, centre = flat[fitted].mean(axis=0), features[fitted].mean(axis=0)
            known = features[fitted] - centre
            normal = known.T @ known + RIDGE * np.eye(known.shape[1])
            guess[used] = mean + (features[used] - centre) @ np.linalg.solve(normal, known.T @ (flat[fitted] - mean))
        changed[name] = np.concatenate([values[:begin], guess.reshape(-1, *values.shape[1:])])
    return replace(signals, begin=begin, **changed)
