"""Small networks in ONNX, each with its twin in numpy, and deployment files for biped14."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper

from bipedsim.model import Robot, load_robot
from bipedsim.sim import Observation


@lru_cache
def biped() -> Robot:
    return load_robot("biped14")


def weights(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 1.0 / np.sqrt(rows), (rows, columns)).astype(np.float32)


def _save(path: Path, nodes: list[Any], inputs: Any, outputs: Any, constants: Any, metadata: Any) -> None:
    def info(values: Mapping[str, Any]) -> list[Any]:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()]

    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "policy", info(inputs), info(outputs), tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    onnx.save(model, str(path))


class Plain:
    """actions = tanh(obs W)."""

    def __init__(self, seen: int, given: int, seed: int = 0) -> None:
        self.w = weights(seen, given, seed)

    def save(self, path: Path, metadata: Mapping[str, str] | None = None) -> Path:
        nodes = [helper.make_node("MatMul", ["obs", "w"], ["a"]), helper.make_node("Tanh", ["a"], ["actions"])]
        shapes = {"obs": [1, len(self.w)]}, {"actions": [1, self.w.shape[1]]}
        _save(path, nodes, *shapes, {"w": self.w}, metadata or {})
        return path

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        return np.tanh(observation @ self.w)


class Recurrent:
    """h = tanh(obs A + h B), actions = h C."""

    def __init__(self, seen: int, given: int, hidden: int = 3) -> None:
        self.a, self.b, self.c = weights(seen, hidden, 1), weights(hidden, hidden, 2), weights(hidden, given, 3)
        self.h = np.zeros(hidden)

    def save(self, path: Path, memory: tuple[str, str] = ("h_in", "h_out")) -> Path:
        before, after = memory
        nodes = [
            helper.make_node("MatMul", ["obs", "a"], ["x"]),
            helper.make_node("MatMul", [before, "b"], ["y"]),
            helper.make_node("Add", ["x", "y"], ["z"]),
            helper.make_node("Tanh", ["z"], [after]),
            helper.make_node("MatMul", [after, "c"], ["actions"]),
        ]
        inputs = {"obs": [1, len(self.a)], before: [1, len(self.b)]}
        outputs = {"actions": [1, self.c.shape[1]], after: [1, len(self.b)]}
        _save(path, nodes, inputs, outputs, {"a": self.a, "b": self.b, "c": self.c}, {})
        return path

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        self.h = np.tanh(observation @ self.a + self.h @ self.b)
        return self.h @ self.c


def write(path: Path, values: Mapping[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(dict(values), sort_keys=False), encoding="utf-8")
    return path


def deployment(**changes: Any) -> dict[str, Any]:
    """Return a deployment file for biped14 that sees 3 + 3 + 3 + 14 + 14 + 14 values; None leaves a key out."""
    values = {
        "network": "policy.onnx",
        "period": 0.02,
        "joints": list(biped().joint_names),
        "default": dict(zip(biped().joint_names, biped().posture.tolist(), strict=True)),
        "stiffness": 500.0,
        "damping": 10.0,
        "action": {"scale": 0.05},
        "observations": [
            {"term": "base_ang_vel", "scale": 0.25},
            {"term": "projected_gravity"},
            {"term": "velocity_commands", "scale": [2.0, 2.0, 0.25]},
            {"term": "joint_pos_rel"},
            {"term": "joint_vel", "scale": 0.05},
            {"term": "last_action"},
        ],
    }
    return {key: value for key, value in {**values, **changes}.items() if value is not None}


def whole(folder: Path, **changes: Any) -> Path:
    """Return the deployment file of a policy for biped14 in ``folder``, with a network that fits the defaults."""
    Plain(51, 14).save(folder / "policy.onnx")
    return write(folder / "deploy.yaml", deployment(**changes))


def observed(seed: int, t: float = 0.0) -> Observation:
    """Return measurements of biped14 that mean nothing, but are those of no other seed."""
    random = np.random.default_rng(seed)
    found = Observation.zeros(14, 2)
    found.t = t
    for name in ("joint_position", "joint_velocity", "joint_effort", "imu_angular_velocity", "foot_wrench"):
        values = getattr(found, name)
        values[:] = random.normal(0.0, 0.3, values.shape)
    quaternion = random.normal(0.0, 0.2, 4) + np.array([0.0, 0.0, 0.0, 1.0])
    found.imu_orientation[:] = quaternion / np.linalg.norm(quaternion)
    return found
