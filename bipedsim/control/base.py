"""The interface of a controller: it reads measurements and returns torques, and never accesses the simulator."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bipedsim.errors import ConfigError, InvalidCommandError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Command, Observation


class Controller(Protocol):
    """Compute joint commands from measurements, in the simulator or on a robot.

    An entry of the table is a class whose constructor takes ``(robot: Robot, params: Params, dt: float)``. The
    dataclass of its parameters is the class attribute ``Params``.

    A controller may have the optional members below. :class:`bipedsim.control.monitor.Guard` looks for them once, after
    construction. docs/ros_interface.md lists their topics.

    * ``set_velocity(vx, vy, wz)``, a method: takes the newest velocity command [m/s, m/s, rad/s] in the heading frame
      of the robot, x ahead, y to the left. The host calls it between two updates, and only with finite numbers. After
      :meth:`reset` the command is zero.
    * ``set_footsteps(steps)``, a method: takes the next footsteps (n, 3), x and y [m] and yaw [rad] each, alternating
      between the feet. Their frame is midway between the feet as they stand: x ahead, z up. It raises a
      :class:`ConfigError` for steps that the controller cannot take, and the controller continues as before.
    * ``tune(params)``, a method: takes parameters of which fields declared ``live`` have changed. The host calls it
      between two updates. It raises a :class:`ConfigError` for values that the controller cannot take, and the
      controller continues as before.
    * ``readouts``, a dict from names to numbers: debug signals such as ``zmp_margin`` [m]. The controller writes new
      numbers into the same dict at every update; the keys never change.
    * ``fallen``, a bool: the controller has given up. It is false again after :meth:`reset`.
    * ``decimation``, an int: the number of ticks per update, counted from the first tick. Between updates the last
      command is repeated. A policy at 50 Hz has a decimation of 20 where ``dt`` is 1 ms. The guard counts ticks by time
      stamps. If the tick of an update is lost, the next tick runs the update, and later updates keep their schedule.
    * ``height_points``, an array (S, 2): the points at which it needs ``Observation.height_scan``, in the heading frame
      of the base [m]. None, as by default, for no height scan.
    * ``true_velocity``, an array (3,): takes the velocity of the base in its axes [m/s] before each reset and update.
      Only a host with the simulator in its process writes it; elsewhere it stays NaN, and the controller refuses to
      start. None, as by default, for a controller that runs on robots.
    * ``estimate``, an :class:`Estimate`: the estimated state of the robot, or None while it is unknown.
    """

    def reset(self, observation: Observation) -> None:
        """Start from this observation. The host calls this before the first :meth:`update` and after every reset."""
        ...

    def update(self, observation: Observation) -> Command:
        """Return the command for one tick. The controller owns and may reuse the returned arrays."""
        ...


class Estimate(Protocol):
    """Describe the state that a controller estimates; its next update overwrites the arrays.

    Attributes:
        q: (nq,) configuration in pinocchio's order: position [m] and quaternion x y z w of the base first. The
            controller chooses the origin.
        v: (nv,) velocity: linear [m/s] and angular [rad/s] velocity of the base in its own frame first.
    """

    q: Array
    v: Array


def fitting(robot: Robot, excluded: str) -> str:
    """Return a hint on controllers configured in robot.yaml, except ``excluded``; empty if there are none."""
    names = [name for name in robot.controllers if name != excluded]
    return f"; its robot.yaml has values for {', '.join(names)}: use --controller {names[0]}" if names else ""


def refuse_loops(robot: Robot, controller: str) -> None:
    """Refuse a robot with closed kinematic chains, for a controller whose equations cover only trees.

    Raises:
        ConfigError: The robot has closed kinematic chains; the message names the ``controller``.
    """
    if robot.loops:
        names = ", ".join(loop.name for loop in robot.loops)
        raise ConfigError(
            f"it does not support closed chains, and {robot.name!r} has the loops {names}. Use --controller posture",
            f"controller {controller!r}",
        )


def checked(command: Any, observation: Observation) -> Command:
    """Return the value of a controller's ``update`` if it is a valid command for the robot's joints.

    Raises:
        InvalidCommandError: The value is no :class:`Command`, an array does not have one value per joint, a stiffness
            has no position, or a gain is negative.
    """
    shape = observation.joint_position.shape
    tau_joint = command.tau_joint if isinstance(command, Command) else None
    if not isinstance(tau_joint, np.ndarray) or tau_joint.shape != shape:
        received = f"tau_joint of shape {np.shape(tau_joint)}" if tau_joint is not None else type(command).__name__
        raise InvalidCommandError(
            received, f"it must return Command(tau_joint), shape {shape}, zeros where only an impedance is wanted"
        )
    assert isinstance(command, Command)
    if command.closes_loop:
        for name in ("position", "velocity", "stiffness", "damping"):
            values = getattr(command, name)
            if values is not None and (not isinstance(values, np.ndarray) or values.shape != shape):
                raise InvalidCommandError(
                    f"a {name} of shape {np.shape(values)}", f"it must be None or an array of shape {shape}"
                )
            if values is not None and name in ("stiffness", "damping") and (values < 0.0).any():
                raise InvalidCommandError(f"a {name} of {values.min():g}", "it must be at least 0")
        if command.stiffness is not None and command.position is None:
            raise InvalidCommandError("a stiffness, and no position that it is about")
    return command


def checked_torque(command: Any, observation: Observation) -> Array:
    """Return the torques (nu,) [N.m] of a command, for a caller that cannot run position loops of the drives.

    Raises:
        ConfigError: The value is no :class:`Command` of torques alone, or does not have one torque per joint.
    """
    checked_command = checked(command, observation)
    if checked_command.closes_loop:
        raise ConfigError(
            "the controller asks the drives to close their loops, and torques alone will do here: a linearisation or a "
            "filter of torques must see all of the control law; have its update return the torques"
        )
    return checked_command.tau_joint
