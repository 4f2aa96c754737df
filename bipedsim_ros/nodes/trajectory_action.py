"""Provide the action control_msgs/action/FollowJointTrajectory, if control_msgs is installed.

The rules are those of ros2_control's joint_trajectory_controller; docs/ros_interface.md lists the differences. The loop
of sim_node compares the joints with the trajectory at every tick. The action only starts and cancels goals, and reads
how they proceed.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from functools import partial
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording.bag import NS_PER_S
from bipedsim_ros.loop import ErrorCode, SimLoop, Tracking
from bipedsim_ros.wire import CommandFault, Goal, read_goal, topics

PACKAGE = "control_msgs"
_PERIOD_S = 0.05
"""Wall time between two feedback messages, as ``action_monitor_rate`` of joint_trajectory_controller."""
_PATIENCE_S = 1.0
"""Maximum wall time in which the last results are sent when the node ends."""


def offer_trajectory_action(node: Node, robot: Robot, loop: SimLoop) -> TrajectoryAction | None:
    """Create the action on a node; return None if its package is not installed."""
    if importlib.util.find_spec(PACKAGE) is None:
        return None
    return TrajectoryAction(node, robot, loop)


class _Active:
    """A goal that runs: its handle in rclpy, its tracking, and a future that is done after its last feedback."""

    def __init__(self, handle: Any, tracking: Tracking) -> None:
        self.handle, self.tracking = handle, tracking
        self.ended = Future()
        self.reported_at = -1.0


class TrajectoryAction:
    """Action server; a thread other than the loop's serves it.

    Args:
        node: Node in whose namespace the action is.
        robot: Robot that follows the trajectories.
        loop: Loop that steps the simulator.
    """

    def __init__(self, node: Node, robot: Robot, loop: SimLoop) -> None:
        self._node, self._loop, self._joint_names = node, loop, robot.joint_names
        kind = importlib.import_module(f"{PACKAGE}.action").FollowJointTrajectory
        self._feedback, self._result = kind.Feedback, kind.Result
        self._point = importlib.import_module("trajectory_msgs.msg").JointTrajectoryPoint
        self._active: dict[bytes, _Active] = {}
        self._idle = threading.Event()
        self._idle.set()
        self._timer = node.create_timer(_PERIOD_S, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._timer.cancel()
        self._server = ActionServer(
            node,
            kind,
            topics.FOLLOW_TRAJECTORY,
            self._execute,
            goal_callback=self._on_goal,
            cancel_callback=self._on_cancel,
        )

    def send_results(self) -> None:
        """Wait until the clients of all goals have their results, after the loop has ended."""
        self._idle.wait(_PATIENCE_S)

    def destroy(self) -> None:
        """Destroy the action server, which the node does not manage."""
        self._server.destroy()

    def _on_goal(self, request: Any) -> GoalResponse:
        """Accept a goal that the drives can follow now; log the reason of a refusal."""
        goal = read_goal(request, self._joint_names)
        if isinstance(goal, CommandFault):
            return self._refuse(goal.text)
        valid, text = self._loop.requests.ask(partial(self._loop.check_goal, goal))
        return GoalResponse.ACCEPT if valid else self._refuse(text)

    def _refuse(self, reason: str) -> GoalResponse:
        self._node.get_logger().error(f"goal of {topics.FOLLOW_TRAJECTORY} refused: {reason}")
        return GoalResponse.REJECT

    def _on_cancel(self, handle: Any) -> CancelResponse:
        active = self._active.get(bytes(handle.goal_id.uuid))
        if active is not None:
            self._loop.requests.ask(partial(self._loop.cancel, active.tracking))
            end = active.tracking.end
            return CancelResponse.ACCEPT if end is None or end.cancelled else CancelResponse.REJECT
        # The goal is accepted, but has not begun.
        return CancelResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        """Follow the trajectory of a goal until it ends, and return its result."""
        goal = read_goal(handle.request, self._joint_names)
        assert isinstance(goal, Goal)
        tracking = Tracking(goal, self._joint_names)
        if handle.is_cancel_requested:
            tracking.finish(ErrorCode.SUCCESSFUL, "cancelled before its start", cancelled=True)
        else:
            followed, text = self._loop.requests.ask(partial(self._loop.follow, tracking))
            if not followed:
                tracking.finish(ErrorCode.INVALID_GOAL, text)
        key, active = bytes(handle.goal_id.uuid), _Active(handle, tracking)
        self._active[key] = active
        self._idle.clear()
        self._timer.reset()
        await active.ended
        del self._active[key]
        return self._conclude(handle, tracking)

    def _conclude(self, handle: Any, tracking: Tracking) -> Any:
        """Set the final state of a goal, log it, and return the result."""
        end = tracking.end
        assert end is not None
        log = self._node.get_logger()
        if end.cancelled:
            handle.canceled()
            log.info(f"goal of {topics.FOLLOW_TRAJECTORY}: {end.text}")
        elif end.code == ErrorCode.SUCCESSFUL:
            handle.succeed()
            log.info(f"goal of {topics.FOLLOW_TRAJECTORY}: {end.text}")
        else:
            handle.abort()
            log.warning(f"goal of {topics.FOLLOW_TRAJECTORY} aborted: {end.text}")
        return self._result(error_code=int(end.code), error_string=end.text)

    def _report(self) -> None:
        """Publish feedback of all running goals, and wake those that have ended."""
        if not self._active:
            # The executor has sent the results in a task between two calls.
            self._timer.cancel()
            self._idle.set()
        for active in tuple(self._active.values()):
            # The order matters: feedback of the last tick must not precede a later end.
            ended = active.tracking.end is not None
            state = active.tracking.state()
            if state is not None and state.t != active.reported_at:
                active.reported_at = state.t
                feedback = self._feedback(joint_names=list(self._joint_names))
                stamp = feedback.header.stamp
                stamp.sec, stamp.nanosec = divmod(round(state.t * NS_PER_S), NS_PER_S)
                feedback.desired = self._filled(state.desired, state.elapsed)
                feedback.actual = self._filled(state.actual, state.elapsed)
                feedback.error = self._filled(state.desired - state.actual, state.elapsed)
                active.handle.publish_feedback(feedback)
            if ended:
                active.ended.set_result(None)

    def _filled(self, values: Array, elapsed: float) -> Any:
        """Return a point with positions and velocities (2, nu) at the time ``elapsed`` [s] of the trajectory."""
        point = self._point(positions=values[0].tolist(), velocities=values[1].tolist())
        # A trajectory with a stamp in the future has not begun, and its elapsed time is negative.
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(elapsed * NS_PER_S), NS_PER_S)
        return point
