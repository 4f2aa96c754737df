"""Select the command that the drives execute: validate, clip, and replace it after a timeout.

Commands arrive on several topics, one for each kind: torques, impedances, positions, trajectories, and joint commands
with names. The newest message
is valid regardless of its kind, as if a controller manager had switched. Every change of the kind is logged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bipedsim.control import Tuning, joint_damping
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import LIMIT, POSITION, SETPOINT, STIFFNESS, VELOCITY, Observation
from bipedsim_ros.loop.drive_params import DriveParams
from bipedsim_ros.loop.drops import Drops
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.loop.tracking import ErrorCode, Tracking
from bipedsim_ros.loop.trajectory import Trajectory
from bipedsim_ros.wire import (
    CommandFault,
    CommandReader,
    ImpedanceReader,
    JointCommandReader,
    Topic,
    Waypoints,
    read_trajectory,
    topics,
)

_ACTS = {
    "damping": "the joints are damped",
    "zero": "no torque",
    "hold": "the last one is held",
    "stiff": "the joints are held where they are",
}
_NO_WAYPOINTS = Waypoints(None, np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros((0, 0)), None, None)
# Maximum number of logged changes (kind of command, silences), and maximum number of stored silences.
_MAX_LOGGED, _MAX_SILENCES = 20, 100


class Silence(NamedTuple):
    """A time without commands.

    Attributes:
        begin: Time of the last command [s].
        end: Time of the next one [s]; None before it.
        wall: Wall time between them, or until now [s].
        ticks: Number of ticks for which the drives executed the last command again. The timeout mode replaces it in
            further ones.
    """

    begin: float
    end: float | None
    wall: float
    ticks: int


class Commands:
    """Holds the last valid command, and replaces it once it is older than ``command_timeout``.

    Until then the drives hold impedances and positions themselves. Trajectories and joint commands with names have no
    timeout. The modes are:

    * ``hold``: the last command, without limit;
    * ``zero``: no torque;
    * ``damping``: torque against the joint velocity;
    * ``stiff``: a spring and a damper to the joint positions at the beginning of the timeout.

    The gains scale with each joint's effort limit, so they suit a robot of any size. Damping reaches the limit at the
    velocity limit, stiffness at a deflection of 1 / ``timeout_stiffness`` radian.

    Args:
        robot: Robot whose drives execute the commands.
        params: Timeout, mode and gains.
        warn: Called with a warning: a dropped message, the beginning of a silence, its end.
        clock: Wall time [s].
        gains: Gains of the drives; those of the robot by default.

    Attributes:
        tuning: Changes the gains of the drives.
        kinds: Topics on which commands are accepted.
        followed: Topic of the last valid message.
        received: Number of valid messages.
        clipped: Number of valid messages that exceeded the effort limits.
        drops: Counts of invalid messages by kind.
        timeouts: Number of timeouts.
        timed_out: Whether the timeout mode is active.
        silences: The first silences that have ended.
    """

    def __init__(
        self,
        robot: Robot,
        params: SimParams,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        gains: DriveParams | None = None,
    ) -> None:
        self._robot = robot
        self._warn = warn
        self._clock = clock
        self.drops = Drops(lambda text: warn(f"command on {text}"))
        self._torques, self._positions = CommandReader(robot.joint_names), CommandReader(robot.joint_names)
        self._impedances = ImpedanceReader(robot.joint_names)
        gains = gains or DriveParams.of_robot(robot, params.physics_dt)
        self._gains = gains.of_joints(robot)
        self.tuning = Tuning(self._set_gains, gains, where="parameters of sim_node", of="drives")
        # Gains in the setpoint that are those of the drives, and not of the command.
        self._own_gains = np.zeros((2, robot.nu), dtype=bool)
        self._joints = JointCommandReader(robot.joint_names, self._gains, self._own_gains)
        self._tau = np.zeros(robot.nu)
        self._setpoint = np.zeros((len(SETPOINT), robot.nu))
        self._limit = np.ascontiguousarray(robot.effort_limit)
        self._negative_limit = -self._limit
        self._setpoint[LIMIT] = self._limit
        self._waypoints: Waypoints | None = None
        self._trajectory: Trajectory | None = None
        self._tracking: Tracking | None = None
        self._continues_setpoint = False
        self._holds = False
        self.kinds = topics.TOPIC_BASED if params.command_interface == "topic_based" else topics.COMMAND_KINDS
        self.followed = self.kinds[0]
        self._out = np.zeros(robot.nu)
        self._timeout_position = np.zeros(robot.nu)
        self._excess = np.zeros(robot.nu)
        self._t_last: float | None = None
        self._t = 0.0
        self._received_at = 0.0
        self._changes = 0
        self.received = self.clipped = self.timeouts = 0
        self.timed_out = False
        self.silences: list[Silence] = []
        self._silent_since: float | None = None
        self._repeated = 0
        self.configure(params)

    def configure(self, params: SimParams) -> None:
        """Apply timeout, mode and gains of ``params``; they may change at any time."""
        self._timeout = params.command_timeout
        self._mode = params.timeout_mode
        self._starts_held = params.start == "hold_position"
        self._kd = params.timeout_damping * joint_damping(self._robot)
        self._kp = params.timeout_stiffness * self._robot.effort_limit

    def _set_gains(self, gains: DriveParams) -> None:
        """Use new gains of the drives, also for the command that they execute at present."""
        self._gains[:] = gains.of_joints(self._robot)
        np.copyto(self._setpoint[STIFFNESS:LIMIT], self._gains, where=self._own_gains)

    @property
    def started(self) -> bool:
        """Whether a valid command has arrived since :meth:`clear`."""
        return self._t_last is not None

    def clear(self) -> None:
        """Discard the last command, as after a reset; the counts remain."""
        self.end_goal("the simulation was reset")
        self._end_silence(self._t)
        self._tau[:] = self._setpoint[:LIMIT] = 0.0
        self._own_gains[:] = False
        self._waypoints = self._trajectory = None
        self._joints.commanded[:] = self._holds = False
        self.followed = self.kinds[0]
        self._t_last = None
        self._t = 0.0
        self.timed_out = False

    def accept(self, data: bytes, t: float, topic: Topic = topics.COMMANDS) -> bool:
        """Accept a serialised message that arrived at simulated time ``t`` [s]; drop, count and log an invalid one."""
        fault = self._read(data, topic)
        if fault is not None:
            self.drops.add(fault.kind, f"{topic.name} dropped: {fault.text}")
            return False
        self.end_goal(f"a command on {topic.name} replaced it")
        self.received += 1
        if topic is not self.followed:
            if topic is not topics.TRAJECTORY:
                self._trajectory = None
            if self.started:
                self._log_change(
                    f"the drives follow {topic.name} from t = {t:.3f} s on, and no more {self.followed.name}"
                )
            self.followed = topic
        if topic is topics.COMMANDS:
            np.abs(self._tau, out=self._excess)
            self._excess -= self._limit
            if self._excess.max(initial=0.0) > 0.0:
                self._clip()
        if (silence := self.silence) is not None:
            wall, simulated = silence.wall, t - silence.begin
            # If the simulation is not in real time, the message reports both durations.
            both = f" ({wall:.3g} s of wall time)" if abs(wall - simulated) > 0.1 * wall else ""
            self._log_change(f"commands again at t = {t:.3f} s, after {simulated:.3g} s{both}")
            self._end_silence(t)
        self._t_last = t
        self._repeated = 0
        self._received_at = self._clock()
        return True

    def follow(self, tracking: Tracking, t: float) -> None:
        """Follow the trajectory of a goal from simulated time ``t`` [s] on, as one that arrived on its topic."""
        self.end_goal("a new goal replaced it")
        self.accept(tracking.goal.data, t, topics.TRAJECTORY)
        self._tracking = tracking

    def cancel(self, tracking: Tracking) -> None:
        """Hold the present setpoint instead of the trajectory of a goal that still runs."""
        if tracking is self._tracking:
            self._tracking = None
            tracking.finish(ErrorCode.SUCCESSFUL, f"cancelled at t = {self._t:.3f} s", cancelled=True)
            self._begin(_NO_WAYPOINTS)

    def end_goal(self, reason: str) -> None:
        """End the running goal, if there is one."""
        if self._tracking is not None:
            self._tracking.finish(ErrorCode.INVALID_GOAL, reason)
            self._tracking = None

    @property
    def follows_goal(self) -> bool:
        """Whether the drives follow the trajectory of a goal, which needs no further command."""
        return self._tracking is not None

    def _read(self, data: bytes, topic: Topic) -> CommandFault | None:
        """Read a message of any kind; return its fault if it is invalid."""
        if topic is topics.COMMANDS:
            return self._torques.read(data, self._tau)
        if topic is topics.IMPEDANCE:
            fault = self._impedances.read(data, self._setpoint)
            if fault is None:
                self._own_gains[:] = False
            return fault
        if topic is topics.JOINT_COMMANDS:
            return self._joints.read(data, self._setpoint)
        if topic is topics.TRAJECTORY:
            waypoints = read_trajectory(data, self._robot.joint_names)
            if isinstance(waypoints, CommandFault):
                return waypoints
            self._begin(waypoints)
            return None
        fault = self._positions.read(data, self._excess)
        if fault is None:
            self._set_position(self._excess)
        return fault

    def _set_position(self, position: Array, velocity: Array | float = 0.0) -> None:
        """Make the drives hold a position (nu,) [rad] and velocity [rad/s] with their own gains."""
        self._setpoint[:LIMIT] = 0.0
        self._setpoint[POSITION], self._setpoint[VELOCITY] = position, velocity
        self._setpoint[STIFFNESS:LIMIT] = self._gains
        self._own_gains[:] = True

    def _hold(self, observation: Observation, joints: Flags | slice) -> None:
        """Make the drives hold the measured positions of these joints, once after the start or a reset."""
        if not self._holds:
            self._setpoint[:LIMIT, joints] = 0.0
            self._setpoint[POSITION, joints] = observation.joint_position[joints]
            self._setpoint[STIFFNESS:LIMIT, joints] = self._gains[:, joints]
            self._own_gains[:, joints] = True
            self._holds = True

    def _begin(self, waypoints: Waypoints) -> None:
        """Begin a trajectory at the next tick: at the last setpoint of positions or a trajectory, if there is one."""
        has_setpoint = self.followed is topics.POSITIONS or self._trajectory is not None
        self._continues_setpoint = has_setpoint and not self.timed_out
        self._waypoints = waypoints

    def _follow_goal(self, observation: Observation, t: float) -> None:
        """Follow the trajectory, compare it with the joint state, and hold the joints where they violate the goal."""
        self._follow_trajectory(observation, t)
        tracking, trajectory = self._tracking, self._trajectory
        if tracking is None or trajectory is None:
            return
        if not tracking.check(t, trajectory, observation.joint_position, observation.joint_velocity):
            self._waypoints, self._continues_setpoint = _NO_WAYPOINTS, False
            self._follow_trajectory(observation, t)
        if tracking.end is not None:
            self._tracking = None

    def _follow_trajectory(self, observation: Observation, t: float) -> None:
        """Update the setpoint from the trajectory; a new one begins at the last setpoint or at the joint state."""
        if self._waypoints is not None:
            position, velocity = observation.joint_position, observation.joint_velocity
            if self._continues_setpoint:
                position, velocity = self._setpoint[POSITION], self._setpoint[VELOCITY]
            self._trajectory = Trajectory(self._waypoints, t, position, velocity)
            self._waypoints = None
        if self._trajectory is not None:
            self._trajectory.go(t)
            self._set_position(self._trajectory.position, self._trajectory.velocity)

    @property
    def kept(self) -> bool:
        """Whether the drives hold the last command themselves, so that a command need not arrive at every tick."""
        return self.followed is not topics.COMMANDS

    def miss(self, waited: float) -> None:
        """Record that no command answered the last lock-step state within ``waited`` [s] of wall time."""
        if self._t_last is not None and self._silent_since is None:
            self._fall_silent(
                f"no command within {waited:g} s for the state after t = {self._t:.3f} s: the last one is used again, "
                "and each further state waits as long"
            )

    @property
    def silence(self) -> Silence | None:
        """The present silence; None unless the next command is overdue."""
        if self._silent_since is None:
            return None
        return Silence(self._silent_since, None, self._clock() - self._received_at, self._repeated)

    def _clip(self) -> None:
        self.clipped += 1
        if self.clipped == 1:
            k, robot = int(self._excess.argmax()), self._robot
            self._warn(
                f"command on {topics.COMMANDS.name} clipped: {self._tau[k]:.4g} N.m for {robot.joint_names[k]}, whose "
                f"effort limit is {robot.effort_limit[k]:.4g} N.m; further ones are only counted"
            )

    def _fall_silent(self, text: str) -> None:
        self._silent_since = self._t_last
        self._log_change(text)

    def _end_silence(self, t: float) -> None:
        if (silence := self.silence) is not None and len(self.silences) < _MAX_SILENCES:
            self.silences.append(silence._replace(end=t))
        self._silent_since = None

    def _log_change(self, text: str) -> None:
        self._changes += 1
        if self._changes <= _MAX_LOGGED:
            last = "; further changes are only counted" if self._changes == _MAX_LOGGED else ""
            self._warn(f"{text}{last}")

    def command(self, observation: Observation, t: float) -> Array:
        """Return the command for the tick that begins at ``t`` [s]; the next call overwrites it.

        Returns:
            Torques (nu,) [N.m] within the effort limits, or setpoints of the drives (6, nu), rows as in ``SETPOINT``.
        """
        self._t = t
        # Time is a sum of rounded steps. Without the tolerance, a timeout of n ticks would begin after n or n + 1
        # ticks, depending on rounding.
        late = self._t_last is not None and t - self._t_last > self._timeout + 1e-9
        late = late and self.followed not in (topics.TRAJECTORY, topics.JOINT_COMMANDS)
        self._repeated += self._t_last is not None and t > self._t_last and (not late or self._mode == "hold")
        if late and not self.timed_out:
            self.timeouts += 1
            self._timeout_position[:] = observation.joint_position
            since = f"after t = {self._t_last:.3f} s"
            self._fall_silent(f"no command for {self._timeout:g} s, {since}: {_ACTS[self._mode]}")
        self.timed_out = late
        if late and self._mode == "zero":
            self._out[:] = 0.0
        elif late and self._mode == "damping":
            np.multiply(-self._kd, observation.joint_velocity, out=self._out)
        elif late and self._mode == "stiff":
            spring = self._kp * (self._timeout_position - observation.joint_position)
            np.subtract(spring, self._kd * observation.joint_velocity, out=self._out)
        elif self.kept and self.started:
            if self.followed is topics.TRAJECTORY:
                self._follow_goal(observation, t)
            elif self.followed is topics.JOINT_COMMANDS:
                self._hold(observation, ~self._joints.commanded)
            return self._setpoint
        elif self._starts_held and not self.started:
            self._hold(observation, slice(None))
            return self._setpoint
        else:
            self._out[:] = self._tau
        np.minimum(self._out, self._limit, out=self._out)
        return np.maximum(self._out, self._negative_limit, out=self._out)
