"""Bend the knees within two seconds and stand up again: a goal of FollowJointTrajectory with feedback."""

import sys

import rclpy
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from rclpy.action import ActionClient
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

JOINTS = [f"{side}_{joint}" for side in "lr" for joint in ("hip_pitch", "knee", "ankle_pitch")]
BENT, STANDING = 2 * [-0.55, 1.15, -0.6], 2 * [-0.38, 0.8, -0.42]  # [rad]


def point(t: int, positions: list[float]) -> JointTrajectoryPoint:
    """Return a point at rest `t` seconds after the start."""
    return JointTrajectoryPoint(positions=positions, velocities=[0.0] * 6, time_from_start=Duration(sec=t))


def show(message: FollowJointTrajectory.Impl.FeedbackMessage) -> None:
    """Print the largest error of the joints."""
    errors = dict(zip(message.feedback.joint_names, message.feedback.error.positions, strict=True))
    worst = max(errors, key=lambda name: abs(errors[name]))
    print(f"{message.feedback.desired.time_from_start.sec} s: {worst} is off by {errors[worst]:.4f} rad")


rclpy.init()
node = rclpy.create_node("follow")
client = ActionClient(node, FollowJointTrajectory, "/joint_trajectory_controller/follow_joint_trajectory")
if not client.wait_for_server(timeout_sec=10.0):
    sys.exit("no action: install control_msgs, and start `bipedsim up --controller none` first")
goal = FollowJointTrajectory.Goal(goal_time_tolerance=Duration(sec=1))
goal.trajectory = JointTrajectory(joint_names=JOINTS, points=[point(2, BENT), point(4, STANDING)])
goal.goal_tolerance = [JointTolerance(name=name, position=0.05) for name in JOINTS]
sent = client.send_goal_async(goal, feedback_callback=show)
rclpy.spin_until_future_complete(node, sent)
if not sent.result().accepted:
    sys.exit("refused: the log of sim_node names the reason")
future = sent.result().get_result_async()
rclpy.spin_until_future_complete(node, future)
print(future.result().result.error_string)
sys.exit(future.result().status != GoalStatus.STATUS_SUCCEEDED)
