"""Run all checks in a fixed order."""

from __future__ import annotations

from bipedsim_ros.contract.commands import check_commands
from bipedsim_ros.contract.evidence import Evidence
from bipedsim_ros.contract.finding import Findings
from bipedsim_ros.contract.measurements import MOVING, STANDING, check_imu, check_joints, check_wrenches, upward_axis
from bipedsim_ros.contract.robot_contract import Contract
from bipedsim_ros.contract.stream import check_ages, check_command_topic, check_sensor_topic
from bipedsim_ros.contract.switches import check_switches


def check(contract: Contract, evidence: Evidence, state: str) -> Findings:
    """Compare the observed topics of a robot with the expectations of a controller.

    Args:
        contract: Expectations of the controller.
        evidence: Observed topics and messages.
        state: Motion of the robot, one of :data:`bipedsim_ros.contract.measurements.STATES`.
    """
    out = Findings()
    runs = {topic.name: check_sensor_topic(contract, evidence, topic, out) for topic in contract.measured}
    q, standing = None, False
    if runs[contract.joints.name]:
        q = check_joints(contract, evidence, state, out)
        standing = state == STANDING and q is not None
        check_ages(contract, evidence, out)
    robot = contract.robot
    frames = [(contract.imu, robot.imu_joint_id, robot.placement_joint_imu)]
    frames += [(t, i.joint_id, i.placement_joint_imu) for t, i in zip(contract.imus, robot.imus, strict=True)]
    for topic, joint, placement in frames:
        if runs[topic.name]:
            up = upward_axis(robot, q, joint, placement) if standing and q is not None else None
            check_imu(contract, evidence, topic, up, out)
    loads = None
    if all(runs[topic.name] for topic in contract.wrenches):
        loads = check_wrenches(contract, evidence, standing, out)
    check_switches(contract, evidence, state if standing or state != STANDING else MOVING, loads, out)
    check_command_topic(contract, evidence, out)
    check_commands(contract, evidence, out)
    # The report is sorted by topic; the findings of a topic keep the order of the checks.
    order = [*(topic.found_as for topic in contract.measured), contract.commands.found_as]
    out.sort(key=lambda finding: order.index(finding.topic))
    return out
