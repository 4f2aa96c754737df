"""Check whether joints, IMU and ankle wrenches are plausible for the robot: signs, units, axes and order.

The joint positions of a robot that stands still on level ground determine the attitude of its base. The measurements of
the IMU and of the ankle sensors then follow from the robot description, so the checks detect a wrong sign, unit, frame
or order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.analysis import centre_of_pressure, sole_wrench
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_ros.contract.evidence import Evidence
from bipedsim_ros.contract.finding import Findings, TopicReport
from bipedsim_ros.contract.robot_contract import Contract, ExpectedTopic
from bipedsim_ros.contract.stream import rising

STANDING, HANGING, MOVING = STATES = ("standing", "hanging", "moving")

STILL = 0.05
"""Maximum range of each joint of a robot at rest, during 90 % of the time [rad]."""
RATE = 0.1
"""Maximum angular rate of the IMU of a robot at rest, during 90 % of the time [rad/s]."""
FLATNESS = 0.01
"""Maximum distance of the sole corners from a common plane [m]."""
GRAVITY = 0.05
"""Maximum relative difference between the IMU's specific force and g."""
TILT = np.deg2rad(12.0)
"""Maximum angle between the IMU's tilt and that from the joints, and between its orientation and the joints [rad]."""
LOAD = 0.1
"""Maximum fraction of the weight that may be missing under the feet, because of payloads or sensor drift."""
COP = 0.02
"""Maximum distance of the centre of pressure outside of a sole [m]."""
_LIMIT_SLACK = 0.1
_KILOGRAM_FORCE = 1.0 / 9.81
_DEGREES = 180.0 / np.pi


class JointTable(NamedTuple):
    """Joint states in the robot's order; repeated states are removed.

    Attributes:
        t: (n,) stamps [s].
        q, v, effort: (n, nu) [rad], [rad/s], [N.m]; NaN where the messages lack them.
    """

    t: Array
    q: Array
    v: Array
    effort: Array


def read_joints(contract: Contract, evidence: Evidence) -> JointTable | None:
    """Return the joint states; None if a joint is missing."""
    table = evidence.topics[contract.joints.found_as].columns
    names = contract.robot.joint_names
    if not set(names) <= set(table.labels):
        return None
    order = [table.labels.index(name) for name in names]
    rows = rising(table.stamp)

    def pick(field: str) -> Any:
        values = table.values[field]
        if values.shape[1] != len(table.labels):
            return np.full((len(rows), len(names)), np.nan)
        return values[rows][:, order]

    t = np.asarray(table.stamp[rows] * 1e-9, dtype=np.float64)
    return JointTable(t, pick("position"), pick("velocity"), pick("effort"))


def check_joints(contract: Contract, evidence: Evidence, state: str, out: Findings) -> Array | None:
    """Check names, values and units of the joints; return q (nq,) of a robot at rest, or None if it is unknown."""
    robot, report = contract.robot, out.of(contract.joints.found_as)
    table = evidence.topics[contract.joints.found_as].columns
    absent = [joint for joint in robot.joint_names if joint not in table.labels]
    extra = [joint for joint in table.labels if joint not in robot.joint_names]
    known = f"{robot.nu} joints and {len(extra)} more" if extra else f"{robot.nu} joints"
    if not report.judge(
        not absent,
        "names",
        f"lacks {', '.join(absent)}" if absent else known,
        f"the joints of {robot.name} (the order is free)",
        "a controller sends no command without them: compare the URDF of the robot with that of robot.yaml"
        + (f"; it also publishes {', '.join(extra)}" if extra else ""),
    ):
        return None
    joints = read_joints(contract, evidence)
    assert joints is not None
    known_at = np.isfinite(joints.q) & np.isfinite(joints.v)
    rows = known_at.all(axis=1)
    incomplete = [robot.joint_names[i] for i in np.flatnonzero(~known_at.all(axis=0))]
    report.judge(
        not incomplete,
        "finite",
        f"{(~rows).mean():.1%} of the states lack {', '.join(incomplete)}"
        if incomplete
        else "positions and velocities",
        "positions and velocities of all joints",
        "add both state interfaces of these joints to the broadcaster; the controller skips such states",
    )
    if not rows.any():
        return None
    q = joints.q[rows]
    in_range = _check_range(robot, q, report)
    _check_velocity(joints.t[rows], q, joints.v[rows], report)
    if state == MOVING or not in_range or not robot.soles:
        return None
    moved = float(np.ptp(np.quantile(q, [0.05, 0.95], axis=0), axis=0).max())
    if moved > STILL:
        report.not_checked("posture", f"joints move by {moved:.2g} rad: needs a robot at rest (or --state moving)")
        return None
    settled = robot.settle(np.median(q, axis=0))
    if state == HANGING:
        return settled
    height = _sole_heights(robot, settled)
    flat = report.judge(
        height <= FLATNESS,
        "posture",
        f"soles are in one plane within {1e3 * height:.1f} mm",
        f"within {1e3 * FLATNESS:g} mm for a robot that stands on level ground",
        "a joint of the legs has another zero, sign or unit, or two names are exchanged; --state hanging if it hangs",
    )
    return settled if flat else None


def _check_range(robot: Robot, q: Array, report: TopicReport) -> bool:
    low, high = robot.position_lower - _LIMIT_SLACK, robot.position_upper + _LIMIT_SLACK
    names = [robot.joint_names[i] for i in np.flatnonzero(((q < low) | (q > high)).any(axis=0))]
    as_degrees = bool(((q >= _DEGREES * low) & (q <= _DEGREES * high)).all())
    return report.judge(
        not names,
        "positions",
        f"outside of the limits: {', '.join(names)}" if names else "within the limits",
        "within the limits of the URDF [rad]",
        "they look like degrees: publish radians" if as_degrees else "another zero, sign or unit of these joints",
    )


def _check_velocity(t: Array, q: Array, v: Array, report: TopicReport) -> None:
    """Compare velocities with the change of the positions over 50 ms."""
    stride = max(1, int(np.searchsorted(t, t[0] + 0.05)))
    if len(t) <= 2 * stride or float(np.ptp(q, axis=0).max()) < 0.01:
        report.not_checked("velocities", "needs joints that move by more than 0.01 rad")
        return
    steps = np.diff(t)[:, None]
    travelled = np.vstack([np.zeros(q.shape[1]), np.cumsum(0.5 * (v[1:] + v[:-1]) * steps, axis=0)])
    by_velocity, by_position = (x[stride:] - x[:-stride] for x in (travelled, q))
    ratio = float((by_velocity * by_position).sum() / (by_position**2).sum())
    todo = "unit, sign or filter of the velocity"
    if abs(ratio / _DEGREES - 1.0) < 0.2:
        todo = "they look like degrees per second: publish radians"
    report.judge(
        abs(ratio - 1.0) < 0.2,
        "velocities",
        f"{ratio:.3g} times the change of the positions",
        "1",
        todo,
    )


def _sole_heights(robot: Robot, q: Array) -> float:
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    corners = [data.oMi[s.joint_id].act(x)[2] - s.radius for s in robot.soles for x in s.vertices_joint]
    return float(np.abs(corners).max())


def check_imu(
    contract: Contract, evidence: Evidence, topic: ExpectedTopic, expected: Array | None, out: Findings
) -> None:
    """Check an IMU; at rest also compare it with gravity and with the attitude from the joints.

    Args:
        contract, evidence: See :func:`bipedsim_ros.contract.check.check`.
        topic: Topic of the IMU.
        expected: (3,) upward axis in its frame at rest on level ground, as :func:`upward_axis` returns it; None if the
            robot moves or hangs.
        out: List for the findings.
    """
    report = out.of(topic.found_as)
    values = evidence.topics[topic.found_as].columns.values
    quaternion, rate, force = (values[key] for key in ("orientation", "angular_velocity", "linear_acceleration"))
    finite = np.isfinite(rate).all() and np.isfinite(force).all()
    if not report.judge(
        bool(finite), "finite", "rates and accelerations" if finite else "NaN", "numbers", "look at its driver"
    ):
        return
    absent = bool((values["orientation_covariance"][:, :1] == -1.0).any())
    norm = float(np.median(np.linalg.norm(quaternion, axis=1)))
    unit = report.judge(
        not absent and abs(norm - 1.0) < 1e-3,
        "orientation",
        "none (covariance[0] = -1)" if absent else f"quaternion of length {norm:.4g}",
        "a unit quaternion",
        "let the IMU or a filter (imu_filter_madgwick, say) estimate it",
    )
    if expected is None:
        report.not_checked("gravity", "needs a robot that stands at rest")
        return
    turning = float(np.quantile(np.linalg.norm(rate, axis=1), 0.9))
    report.measure(
        turning < RATE,
        "rates",
        f"{turning:.2g} rad/s at rest",
        f"below {RATE:g} rad/s",
        "a bias, or degrees per second; if the robot does move, --state moving",
    )
    measured = np.median(force, axis=0)
    size = float(np.linalg.norm(measured))
    g = float(np.linalg.norm(contract.robot.model.gravity.linear))
    if not report.measure(
        abs(size / g - 1.0) < GRAVITY,
        "gravity",
        f"{size:.3f} m/s^2 at rest",
        f"{g:.2f} m/s^2, the specific force (REP-145)",
        "it looks like units of g: multiply by 9.81"
        if abs(size - 1.0) < GRAVITY
        else "gravity has been taken out: publish the specific force"
        if size < 1.0
        else "unit or scale of the accelerometer",
    ):
        return
    lean = _angle(measured, expected)
    report.judge(
        lean < TILT,
        "gravity sign",
        f"upward axis {np.round(measured / size, 2).tolist()} in the IMU's frame",
        f"{np.round(expected, 2).tolist()}, by the joints of a robot that stands on level ground",
        "sign: at rest an accelerometer reads +g upwards, not gravity"
        if _angle(-measured, expected) < TILT
        else f"the axes are not those of {topic.frame}: correct the mounting of the IMU in URDF or driver",
    )
    if unit:
        typical = np.median(quaternion, axis=0)
        _check_orientation(typical / np.linalg.norm(typical), expected, report)


def _check_orientation(quaternion: Array, expected: Array, report: TopicReport) -> None:
    def up(x: float, y: float, z: float, w: float) -> Array:
        row: Array = pin.Quaternion(w, x, y, z).toRotationMatrix()[2]
        return row

    x, y, z, w = quaternion.tolist()
    todo = "orientation of the IMU's frame in a world with z upwards (REP-103, ENU); some IMUs give NED"
    if _angle(up(y, z, w, x), expected) < TILT:
        todo = "the quaternion looks like w x y z: publish x y z w"
    elif _angle(up(-x, -y, -z, w), expected) < TILT:
        todo = "it looks like the world in the IMU's frame: publish the inverse"
    lean = _angle(up(x, y, z, w), expected)
    report.judge(
        lean < TILT,
        "attitude",
        f"tilted by {np.rad2deg(lean):.1f} degrees from the attitude that the joints imply",
        f"less than {np.rad2deg(TILT):.0f}",
        todo,
    )


def upward_axis(robot: Robot, q: Array, joint: int, placement: pin.SE3) -> Array:
    """Return the world's z axis (3,) in a frame with this ``placement`` in ``joint``, at ``q`` (nq,)."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    up: Array = (data.oMi[joint] * placement).rotation[2]
    return up


def _angle(a: Array, b: Array) -> float:
    cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)))


def check_wrenches(contract: Contract, evidence: Evidence, standing: bool, out: Findings) -> list[float] | None:
    """Check that the ankle wrenches are finite, and at rest that they carry the robot with the CoP inside the soles.

    Returns:
        Normal force of each sole at rest [N]; None if the robot moves, or if the wrenches do not carry it.
    """
    robot = contract.robot
    medians = []
    for topic in contract.wrenches:
        observed = evidence.read(topic)
        if observed is None:
            return None
        wrench = observed.columns.values["wrench"]
        if not out.of(topic.found_as).judge(
            bool(np.isfinite(wrench).all()),
            "finite",
            "numbers" if np.isfinite(wrench).all() else "NaN",
            "numbers",
            "look at its driver",
        ):
            return None
        medians.append(contract.ft_sign * np.median(wrench, axis=0))
    if not standing:
        for topic in contract.wrenches:
            out.of(topic.found_as).not_checked("load", "needs a robot that stands at rest")
        return None
    # The soles are level. An unloaded sensor therefore measures only the weight of the foot below it.
    at_soles = [sole_wrench(robot, k, median) for k, median in enumerate(medians)]
    feet = [float(sole_wrench(robot, k, np.zeros(6))[2]) for k in range(len(medians))]
    loads = [float(wrench[2]) - foot for wrench, foot in zip(at_soles, feet, strict=True)]
    weight = robot.weight - sum(feet)
    shares = ", ".join(f"{s.name} {load:.1f} N" for s, load in zip(robot.soles, loads, strict=True))
    ratio = sum(loads) / weight
    if not out.of(contract.wrenches[-1].found_as).measure(
        abs(ratio - 1.0) < LOAD,
        "sum of loads",
        f"{sum(loads):.1f} N ({shares})",
        f"{weight:.1f} N within {LOAD:.0%}, the weight above the sensors, upwards: the ground on the foot",
        _load_todo(ratio, np.array(loads), weight),
    ):
        return None
    for topic, sole, wrench in zip(contract.wrenches, robot.soles, at_soles, strict=True):
        report = out.of(topic.found_as)
        if wrench[2] < LOAD * robot.weight:
            report.not_checked("CoP", f"only {wrench[2]:.0f} N on this foot")
            continue
        cop = centre_of_pressure(wrench, 0.0)
        margin = float(sole.margin(cop))
        report.measure(
            margin > -COP,
            "CoP",
            f"{np.round(cop, 3).tolist()} m in the sole, {1e3 * margin:.0f} mm from its edge",
            "inside the sole",
            f"unit or sign of the torques, or the axes and origin are not those of {topic.frame}",
        )
    return [float(wrench[2]) for wrench in at_soles]


def _load_todo(ratio: float, loads: Array, weight: float) -> str:
    if abs(ratio + 1.0) < LOAD:
        return "sign: it is the foot on the ground; run the controller with ft_sign:=-1.0, or turn it in the driver"
    if abs(abs(ratio) / _KILOGRAM_FORCE - 1.0) < LOAD:
        return "it looks like kilograms: publish newtons"
    if abs(np.abs(loads).sum() / weight - 1.0) < LOAD:
        return "one foot has the other sign"
    if abs(ratio) < LOAD:
        return "the feet carry nothing: does the robot hang (--state hanging), or were the sensors tared under load?"
    return "scale or offset of a sensor, the axes of its frame, or a mass that robot.yaml does not know"
