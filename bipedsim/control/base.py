"""The interface of a controller: it sees measurements and returns torques, and knows no simulator."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Command, Observation


class Controller(Protocol):
    """Anything with these two methods drives the simulator and a robot alike.

    The table entry is a class whose constructor takes ``(robot: Robot, params: Params, dt: float)``, with the dataclass
    of its parameters as the class attribute ``Params``.

    A controller may have more members. Whoever hosts it looks for them once, after construction, through
    :class:`bipedsim.control.monitor.Guard`; docs/ros_interface.md says on which topics they are:

    * ``set_velocity(vx, vy, wz)``, a method: takes the newest velocity command [m/s, m/s, rad/s] in the heading frame
      of the robot, x ahead, y to the left. It is called between two updates, and only with finite numbers. After
      :meth:`reset` the command is zero.
    * ``set_footsteps(steps)``, a method: takes the next footsteps (n, 3), x and y [m] and yaw [rad] each, alternating
      between the feet, in the frame midway between the feet as they stand: x ahead, z up. Steps that it cannot take
      it refuses with a :class:`ConfigError`, and goes on as before.
    * ``readouts``, a dict from names to numbers: what there is to watch, such as ``zmp_margin`` [m]. The controller
      writes new numbers into the same dict at every update; its keys never change.
    * ``fallen``, a bool: the controller has given up. It is false again after :meth:`reset`.
    * ``decimation``, an int: it is asked at every so many ticks, from the first one on, and its last command stands in
      between: that of a policy at 50 Hz is 20 where ``dt`` is 1 ms. Ticks go by time stamps: who misses the one that
      was its turn is asked at the next that it sees, and then at its beat again.
    * ``estimate``, an :class:`Estimate`: where the controller believes the robot to be; None as long as it does not
      know.
    """

    def reset(self, observation: Observation) -> None:
        """Start from this observation; called once before the first :meth:`update` and after every reset."""
        ...

    def update(self, observation: Observation) -> Command:
        """Return the command for one tick. The controller owns and may reuse the returned arrays."""
        ...


class Estimate(Protocol):
    """What a controller believes of the state; the arrays are overwritten by its next update.

    Attributes:
        q: (nq,) configuration in pinocchio's order: position [m] and quaternion x y z w of the base first. The origin
            is where the controller has put it.
        v: (nv,) velocity: linear [m/s] and angular [rad/s] of the base in its own frame first.
    """

    q: Array
    v: Array


def fitting(robot: Robot, but: str) -> str:
    """Return what to say of the controllers, ``but`` aside, that the robot.yaml has values for; empty if of none."""
    names = [name for name in robot.controllers if name != but]
    return f"; its robot.yaml has values for {', '.join(names)}: take --controller {names[0]}" if names else ""


def refuse_loops(robot: Robot, who: str) -> None:
    """Refuse a robot with closed chains, for a controller whose equations know of trees alone.

    Raises:
        ConfigError: It has loops.
    """
    if robot.loops:
        names = ", ".join(loop.name for loop in robot.loops)
        raise ConfigError(
            f"controller {who!r} knows no closed chains, and {robot.name!r} has the loops {names}; take "
            "--controller posture"
        )


RETURNED = "the controller's update returned "
"""What :func:`checked` begins with, of what it refuses."""


def checked(command: Any, observation: Observation) -> Command:
    """Return what a controller's ``update`` has returned, if it is a command for the joints of the robot.

    Raises:
        ConfigError: It is no :class:`Command`, holds another number of values than the robot has joints, a stiffness
            without a position, or one below 0.
    """
    shape = observation.joint_position.shape
    tau_joint = command.tau_joint if isinstance(command, Command) else None
    if not isinstance(tau_joint, np.ndarray) or tau_joint.shape != shape:
        found = f"tau_joint of shape {np.shape(tau_joint)}" if tau_joint is not None else type(command).__name__
        raise ConfigError(
            f"{RETURNED}{found}; it must return Command(tau_joint), shape {shape}, zeros where "
            "only an impedance is wanted"
        )
    assert isinstance(command, Command)
    if command.closes_loop:
        for name in ("position", "velocity", "stiffness", "damping"):
            values = getattr(command, name)
            if values is not None and (not isinstance(values, np.ndarray) or values.shape != shape):
                raise ConfigError(
                    f"{RETURNED}a {name} of shape {np.shape(values)}; it must be None or an array of shape {shape}"
                )
            if values is not None and name in ("stiffness", "damping") and (values < 0.0).any():
                raise ConfigError(f"{RETURNED}a {name} of {values.min():g}; it is at least 0")
        if command.stiffness is not None and command.position is None:
            raise ConfigError(f"{RETURNED}a stiffness, and no position that it is about")
    return command


def checked_torque(command: Any, observation: Observation) -> Array:
    """Return the torques (nu,) [N.m] of what a controller's ``update`` has returned, for who can do with these alone.

    Raises:
        ConfigError: It is no :class:`Command` of torques, or holds another number than the robot has joints.
    """
    found = checked(command, observation)
    if found.closes_loop:
        raise ConfigError(
            "the controller asks the drives to close their loops, and torques alone will do here: a linearisation or a "
            "filter of torques must see all of the control law; have its update return the torques"
        )
    return found.tau_joint
