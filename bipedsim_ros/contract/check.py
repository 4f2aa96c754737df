"""Run all checks in a fixed order."""

from __future__ import annotations

from bipedsim_ros.contract.commands import check_commands
from bipedsim_ros.contract.evidence import Evidence
from bipedsim_ros.contract.finding import Findings
from bipedsim_ros.contract.measurements import STANDING, check_imu, check_joints, check_wrenches
from bipedsim_ros.contract.robot_contract import Contract
from bipedsim_ros.contract.stream import check_ages, check_command_topic, check_sensor_topic


def check(contract: Contract, evidence: Evidence, state: str) -> Findings:
    """Compare the observed topics of a robot with the expectations of a controller.

    Args:
        contract: Expectations of the controller.
        evidence: Observed topics and messages.
        state: Motion of the robot, one of :data:`bipedsim_ros.contract.measurements.STATES`.
    """
    out = Findings()
    runs = {topic.name: check_sensor_topic(contract, evidence, topic, out) for topic in contract.sensors}
    q, standing = None, False
    if runs[contract.joints.name]:
        q = check_joints(contract, evidence, state, out)
        standing = state == STANDING and q is not None
        check_ages(contract, evidence, out)
    if runs[contract.imu.name]:
        check_imu(contract, evidence, q if standing else None, out)
    if all(runs[topic.name] for topic in contract.wrenches):
        check_wrenches(contract, evidence, standing, out)
    check_command_topic(contract, evidence, out)
    check_commands(contract, evidence, out)
    # The report is sorted by topic; the findings of a topic keep the order of the checks.
    order = [*(topic.found_as for topic in contract.sensors), contract.commands.found_as]
    out.sort(key=lambda finding: order.index(finding.topic))
    return out
