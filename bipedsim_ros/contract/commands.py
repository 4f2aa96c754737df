"""Check the commands to the drives: size, order, sign and response time. Nothing is published."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from bipedsim.numerics import Array
from bipedsim_ros.contract.evidence import Evidence
from bipedsim_ros.contract.finding import Findings, TopicReport
from bipedsim_ros.contract.measurements import read_joints
from bipedsim_ros.contract.robot_contract import Contract
from bipedsim_ros.contract.stream import rising

ANSWERED = 0.5
"""Minimum fraction of states, or of commands if there are fewer, that are answered before the next state."""
_SLOWER = 0.9
FOLLOWS = 0.1
"""Maximum relative difference between commanded and measured torque."""
_MEAN = 0.05  # [s]
# Torques below this fraction of the limit carry no information about order and sign.
_QUIET = 0.05


def check_commands(contract: Contract, evidence: Evidence, out: Findings) -> None:
    """Check the joint order of the effort controller and, if commands are sent, their size, delay and effect."""
    report = out.of(contract.commands.found_as)
    if evidence.command_joints is not None:
        report.judge(
            evidence.command_joints == contract.command_joints,
            "joints",
            ", ".join(evidence.command_joints),
            ", ".join(contract.command_joints),
            "run the controller with the robot's order: its parameter joints",
        )
    observed = evidence.read(contract.commands)
    if observed is None:
        if contract.commands.found_as in evidence.topics:
            report.not_checked("round trip", "no controller sends commands, and check-robot never does")
        return
    nu = contract.robot.nu
    commands = observed.columns.values["data"]
    # The layout names the blocks of an impedance; each block contains one number per joint.
    blocks = commands.shape[1] // nu if contract.takes == "impedance" else 1
    right, finite = commands.shape[1] == max(1, blocks) * nu, bool(np.isfinite(commands).all())
    noun = "torques" if contract.takes == "effort" else "numbers"
    if not report.judge(
        right and finite,
        "size",
        f"{noun} that are not finite" if right and not finite else f"{commands.shape[1]} {noun}",
        f"{nu} finite {noun}" + " in each block" * (contract.takes == "impedance"),
        "the robot drops such commands: compare the joints of controller and robot",
    ):
        return
    states = evidence.topics.get(contract.joints.found_as)
    joints = read_joints(contract, evidence) if states is not None and states.messages else None
    if states is None or joints is None:
        return
    measured, sent = np.array(states.sent)[rising(states.columns.stamp)], np.array(observed.sent)
    _check_round_trip(measured, sent, report)
    if contract.takes != "effort":
        report.not_checked("effort", f"the drives close their loops around {contract.takes} commands")
        return
    before = np.searchsorted(sent, measured, side="right") - 1
    rows = np.flatnonzero((before >= 0) & np.isfinite(joints.effort).all(axis=1))
    if not len(rows):
        report.not_checked("effort", "the joint states hold no effort to compare with")
        return
    # Reorder the commands to the robot's order.
    index = [contract.command_joints.index(joint) for joint in contract.robot.joint_names]
    limit = contract.robot.effort_limit
    wanted = np.clip(commands[before[rows]][:, index], -limit, limit)
    _check_effort(contract, wanted, joints.effort[rows], report)


def _check_round_trip(measured: Any, sent: Any, report: TopicReport) -> None:
    after = np.searchsorted(sent, measured[:-1], side="right")
    known = after < len(sent)
    delay = (sent[np.minimum(after, len(sent) - 1)] - measured[:-1])[known]
    answered = delay[delay <= np.diff(measured)[known]] * 1e-3
    if not len(answered):
        report.not_checked("round trip", "no state was answered before the next one")
        return
    # A policy at 50 Hz answers only every twentieth state of a loop at 1 kHz.
    commands = int(np.sum((sent > measured[0]) & (sent <= measured[-1])))
    slower = commands < _SLOWER * len(delay)
    states = f"as many states as there are commands, {commands}" if slower else "the states"
    report.measure(
        len(answered) >= ANSWERED * (commands if slower else len(delay)),
        "round trip",
        f"{len(answered) / max(1, len(delay)):.1%} of the states were answered before the next one came, these after "
        f"{np.median(answered):.0f} us (median; p99 {np.quantile(answered, 0.99):.0f} us)",
        f"at least {ANSWERED:.0%} of {states}",
        "commands come late, several at once: the controller's machine, or the network to it, is too busy "
        "(docs/ros_interface.md, Timing)",
    )


def _blocks(values: Array, count: int) -> list[Array]:
    """Return ``values`` (n, k) in blocks of at least ``count`` rows."""
    return np.array_split(values, max(1, len(values) // count))


def _check_effort(contract: Contract, wanted: Array, effort: Array, report: TopicReport) -> None:
    """Compare measured efforts with commands; if they differ, search for a joint order or a sign that fits."""
    names, limit = contract.robot.joint_names, contract.robot.effort_limit
    # Averages over several states suppress noise and the delay of the drives.
    count = max(1, round(_MEAN * contract.rate))
    wanted, effort = (np.array([part.mean(axis=0) for part in _blocks(x, count)]) for x in (wanted, effort))
    # error[i, j] is the relative difference between the command of joint i and the effort of joint j.
    scale = np.sqrt((effort**2).mean(axis=0)) + _QUIET * limit
    error = np.sqrt(((wanted[:, :, None] - effort[:, None, :]) ** 2).mean(axis=0)) / scale
    own = np.diag(error)
    if float(np.median(own)) <= FOLLOWS and float(own.max()) <= 2.0 * FOLLOWS:
        report.ok("effort", f"follows the commands, within {float(own.max()):.1%} of the torque")
        return
    rows, columns = linear_sum_assignment(error)
    exchanged = [
        (names[j], names[i]) for i, j in zip(rows, columns, strict=True) if i != j and own[j] > 2 * error[i, j]
    ]
    if exchanged and float(np.median(error[rows, columns])) <= FOLLOWS:
        text = "; ".join(f"{joint} does what is sent for {commanded_joint}" for joint, commanded_joint in exchanged[:6])
        report.differs(
            "order",
            text,
            "each joint its own torque",
            "give the controller the robot's order: its parameter joints",
        )
        return
    reverse = np.sqrt(((wanted + effort) ** 2).mean(axis=0)) / scale
    reversed_joints = [joint for joint, r, o in zip(names, reverse, own, strict=True) if r <= FOLLOWS < o]
    if reversed_joints:
        report.differs(
            "effort sign",
            f"opposite to the command: {', '.join(reversed_joints)}",
            "effort as commanded",
            "turn the sign of command or measurement in the driver",
        )
        return
    report.not_checked(
        "effort", "does not follow the commands closely enough to judge order and sign (measured current?)"
    )
