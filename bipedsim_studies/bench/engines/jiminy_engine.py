"""Provide jiminy as an engine of the benchmark, in another process because its pinocchio conflicts with bipedsim's."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines import jiminy_worker
from bipedsim_studies.bench.engines.base import Engine, wrench_about
from bipedsim_studies.bench.urdf_export import ROOT_LINK, link_name, urdf

if importlib.util.find_spec("jiminy_py") is None:
    raise ImportError("No module named 'jiminy_py'")


class JiminyEngine(Engine):
    """jiminy's constraint model with a contact point at every sole vertex, and explicit Euler at dt.

    A block of steps is timed inside the other process, on the same core.

    Args:
        robot, dt: See :class:`Engine`.
        regularization: Regularisation of the constraint solver; jiminy's default is 1e-3.
    """

    def __init__(self, robot: Robot, dt: float, regularization: float) -> None:
        super().__init__(robot, dt)
        self._connection, worker_end = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(jiminy_worker.__file__)), str(worker_end.fileno())],
            pass_fds=[worker_end.fileno()],
            # Only the command handles Ctrl-C. The worker ends when the pipe closes.
            start_new_session=True,
        )
        worker_end.close()
        built = self._request(
            "build",
            urdf=urdf(robot, soles=False),
            root=ROOT_LINK,
            armature={name: float(robot.model.armature[i]) for name, i in zip(self._joints, self._ours_v, strict=True)},
            feet=[(link_name(robot, sole.joint_id), sole.vertices_joint) for sole in robot.soles],
            friction=max(sole.friction_static for sole in robot.soles),
            gravity=robot.model.gravity.vector.copy(),
            regularization=regularization,
            dt=dt,
        )
        self._q, self._v = np.arange(robot.model.nq), np.arange(robot.model.nv)
        self._q[self._ours_q] = built["idx_q"]
        self._v[self._ours_v] = built["idx_v"]
        motors = {name: i for i, name in enumerate(built["motors"])}
        self._motors = np.array([motors[name] for name in robot.joint_names])
        self._state: tuple[Array, Array]
        self.step = self._step

    def _request(self, method: str, **arguments: Any) -> Any:
        connection: Connection[Any, Any] = self._connection
        connection.send((method, arguments))
        try:
            failure, result = connection.recv()
        except EOFError:
            raise RuntimeError(f"jiminy's process ended with code {self._process.wait()}") from None
        if failure:
            raise RuntimeError(failure)
        return result

    def _ordered(self, tau_joint: Array) -> Array:
        result = np.zeros(len(self._motors))
        result[self._motors] = tau_joint
        return result

    def _store_state(self, state: tuple[Array, Array]) -> None:
        self._state = state[0][self._q], state[1][self._v]

    def reset(self, q: Array, v: Array) -> None:
        start_q, start_v = np.empty_like(q), np.empty_like(v)
        start_q[self._q], start_v[self._v] = q, v
        self._store_state(self._request("reset", q=start_q, v=start_v))

    def push(self, force_world: Array) -> None:
        self._request("push", force=force_world)

    def _step(self, tau_joint: Array) -> None:
        self._store_state(self._request("step", command=self._ordered(tau_joint)))

    def time_block(self, torques: list[Array]) -> float:
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        return float(self._request("time", commands=[self._ordered(torque) for torque in torques], cores=cores))

    def state(self) -> tuple[Array, Array]:
        return self._state

    def wrenches(self) -> Array:
        origins = self._soles.positions(self._state[0])
        feet = self._request("contacts")
        return np.array([wrench_about(origin, *foot) for origin, foot in zip(origins, feet, strict=True)])

    def close(self) -> None:
        self._connection.close()
        self._process.wait(timeout=10.0)
