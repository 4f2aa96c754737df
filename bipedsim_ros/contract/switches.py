"""Check whether contact switches agree with the posture of the robot and with its ankle wrenches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bipedsim.model import ContactSwitch
from bipedsim.numerics import Flags
from bipedsim_ros.contract.evidence import Evidence
from bipedsim_ros.contract.finding import Findings
from bipedsim_ros.contract.measurements import HANGING, STANDING
from bipedsim_ros.contract.robot_contract import Contract

AGREES = 0.9
"""Minimum fraction of the messages with the expected state."""
CLEAR = 2.0
"""Minimum ratio of load and threshold, or of threshold and load, at which the state of a switch is certain."""
_FEW = 10


def check_switches(
    contract: Contract, evidence: Evidence, state: str, loads: Sequence[float] | None, out: Findings
) -> None:
    """Check each contact switch.

    The expected state follows from the load of the sole if the robot stands at rest, from ``state`` if it stands or
    hangs and the loads are unknown, and from the ankle wrenches while it moves.

    Args:
        contract, evidence: See :func:`bipedsim_ros.contract.check.check`.
        state: Motion of the robot, one of :data:`bipedsim_ros.contract.measurements.STATES`.
        loads: Normal force of each sole at rest [N]; None if they are unknown.
        out: List for the findings.
    """
    feet = [sole.name for sole in contract.robot.soles]
    for topic, switch in zip(contract.switches, contract.robot.contact_switches, strict=True):
        observed = evidence.read(topic)
        if observed is None:
            continue
        report = out.of(topic.found_as)
        closed = np.asarray(observed.columns.values["data"][:, 0] != 0.0)
        k = feet.index(switch.foot)
        if state not in (STANDING, HANGING):
            loaded = _loaded(contract, evidence, k, switch, np.array(observed.sent))
            if loaded.sum() < _FEW:
                report.not_checked("state", f"needs {_FEW} messages while the foot carries the robot")
                continue
            closed, expected, why = closed[loaded], True, f"while {switch.foot} carries the robot, by its ankle wrench"
        elif state == HANGING:
            expected, why = False, "for a robot that hangs"
        elif loads is None:
            expected, why = True, "for a robot that stands"
        elif switch.threshold / CLEAR < loads[k] < CLEAR * switch.threshold:
            report.not_checked("state", f"{loads[k]:.0f} N on the sole are near the threshold, {switch.threshold:g} N")
            continue
        else:
            expected = loads[k] > switch.threshold
            why = f"with {loads[k]:.0f} N on the sole and a threshold of {switch.threshold:g} N"
        share = float(closed.mean())
        report.judge(
            (share if expected else 1.0 - share) >= AGREES,
            "state",
            f"closed in {share:.0%} of the messages",
            f"{'closed' if expected else 'open'} {why}",
            "publish true while the switch is closed; otherwise look at its wiring, its foot and its threshold",
        )


def _loaded(contract: Contract, evidence: Evidence, k: int, switch: ContactSwitch, sent: np.ndarray) -> Flags:
    """Return for each time ``sent`` (n,) [ns] whether the ankle sensor of foot ``k`` surely measured the robot."""
    observed = evidence.read(contract.wrenches[k])
    if observed is None:
        return np.zeros(len(sent), dtype=np.bool_)
    force = np.linalg.norm(observed.columns.values["wrench"][:, :3], axis=1)
    last = np.searchsorted(np.array(observed.sent), sent, side="right") - 1
    # An airborne foot is far lighter than this.
    limit = CLEAR * switch.threshold + 0.25 * contract.robot.weight
    return np.asarray((last >= 0) & (force[np.maximum(last, 0)] > limit))
