"""Run jiminy in its own process; started as a script with the file descriptor of a connection.

This script must not import bipedsim, which would load another pinocchio than jiminy's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter_ns
from typing import Any


class Worker:
    """One robot in jiminy. All vectors are in jiminy's order. The other process calls the methods by name."""

    def build(
        self,
        urdf: str,
        root: str,
        armature: dict[str, float],
        feet: list[tuple[str, Any]],
        friction: float,
        gravity: Any,
        regularization: float,
        dt: float,
    ) -> dict[str, Any]:
        """Build the robot, with a motor for each joint in ``armature``.

        Return the indices of its joints in q and v, and the order of its motors.
        """
        import jiminy_py.core as jiminy
        import numpy as np

        self._dt = dt
        self._robot = robot = jiminy.Robot("robot")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.urdf"
            path.write_text(urdf, encoding="utf-8")
            robot.initialize(str(path), True, [])
        self._feet = [[f"foot {k} point {i}" for i in range(len(points))] for k, (_, points) in enumerate(feet)]
        for names, (link, points) in zip(self._feet, feet, strict=True):
            for name, point in zip(names, points, strict=True):
                robot.add_frame(name, link, jiminy.pinocchio.SE3(np.eye(3), point))
        robot.add_contact_points([name for names in self._feet for name in names])
        for name, inertia in armature.items():
            motor = jiminy.SimpleMotor(name)
            robot.attach_motor(motor)
            motor.initialize(name)
            options = motor.get_options()
            options.update(enableArmature=True, armature=inertia, enableEffortLimit=False)
            motor.set_options(options)
        self._command = np.zeros(len(armature))
        self._force = np.zeros(6)
        robot.controller = jiminy.FunctionalController(self._compute_command)
        self._engine = engine = jiminy.Engine()
        engine.add_robot(robot)
        engine.register_profile_force("robot", root, self._external_force)
        options = engine.get_options()
        options["contacts"].update(model="constraint", friction=friction)
        options["constraints"]["regularization"] = regularization
        options["stepper"].update(
            odeSolver="euler_explicit", dtMax=dt, controllerUpdatePeriod=dt, sensorsUpdatePeriod=dt
        )
        options["telemetry"] = dict.fromkeys(options["telemetry"], False)
        options["world"]["gravity"] = gravity
        engine.set_options(options)
        model = robot.pinocchio_model
        joint_models = [model.joints[model.getJointId(name)] for name in armature]
        return {
            "idx_q": [joint.idx_q for joint in joint_models],
            "idx_v": [joint.idx_v for joint in joint_models],
            "motors": [motor.name for motor in robot.motors],
        }

    def _compute_command(self, t: float, q: Any, v: Any, sensors: Any, command: Any) -> None:
        command[:] = self._command

    def _external_force(self, t: float, q: Any, v: Any, force: Any) -> None:
        force[:] = self._force

    def reset(self, q: Any, v: Any) -> Any:
        """Start from q, v without a push, and return the state."""
        if self._engine.is_simulation_running:
            self._engine.stop()
        self._force[:] = 0.0
        self._engine.reset()
        self._engine.start(q, v)
        return self._state()

    def push(self, force: Any) -> None:
        """Apply a force [N] at the origin of the root, in world axes."""
        self._force[:3] = force

    def step(self, command: Any) -> Any:
        """Advance by dt and return the state."""
        self._command[:] = command
        self._engine.step(self._dt)
        return self._state()

    def time(self, commands: list[Any], cores: set[int] | None) -> int:
        """Advance with each of ``commands`` on the caller's cores, and return the total time [ns]."""
        if cores is not None:
            os.sched_setaffinity(0, cores)
        command_buffer, step, dt = self._command, self._engine.step, self._dt
        start = perf_counter_ns()
        for command in commands:
            command_buffer[:] = command
            step(dt)
        return perf_counter_ns() - start

    def contacts(self) -> list[tuple[Any, Any]]:
        """Return contact points and forces of each foot, (n, 3) each, in world axes."""
        import numpy as np

        robot, data = self._robot, self._robot.pinocchio_data
        names = list(robot.contact_frame_names)
        feet = []
        for foot in self._feet:
            frames = [(names.index(name), data.oMf[robot.contact_frame_indices[names.index(name)]]) for name in foot]
            points = np.array([placement.translation for _, placement in frames])
            # jiminy reports forces in the axes of the contact frame.
            forces = np.array([placement.rotation @ robot.contact_forces[i].linear for i, placement in frames])
            feet.append((points, forces))
        return feet

    def _state(self) -> tuple[Any, Any]:
        state = self._engine.robot_states[0]
        return state.q.copy(), state.v.copy()


def main() -> None:
    """Answer requests until the other process closes the connection."""
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    worker = Worker()
    while True:
        try:
            method, arguments = connection.recv()
        except EOFError:
            return
        try:
            answer = "", getattr(worker, method)(**arguments)
        except Exception as error:  # The caller handles the exception.
            answer = f"{type(error).__name__}: {error}", None
        connection.send(answer)


if __name__ == "__main__":
    main()
