"""Configurations of limxdynamics/tron1-rl-deploy-python: controllers/model/ROBOT/params.yaml, with an encoder.

``SolefootController`` and ``PointfootController`` have the terms and their order. The networks are those of
``policy/isaacgym``, whose joints have the order of the file. Commands have the scales of the training
(tron1-rl-isaacgym), so that they are velocities; the program scales the joystick by ``user_cmd_scales`` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bipedsim.errors import ConfigError
from bipedsim.model import Robot

_GAIT = {"frequencies": 2.0, "swing_height": 0.1}
"""Stride frequency [Hz] and swing height [m] of a point foot, which are in its program and not in its file."""


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the file in bipedsim's keys.

    Raises:
        ConfigError: The robot has wheels.
    """
    own = next(iter(values.values()))
    names, control, size = own["joint_names"], own["control"], own["size"]
    if "wheel_joint_damping" in control or any("wheel" in name for name in names):
        raise ConfigError("has wheels, whose drives follow velocities", f"{path}: joint_names")
    scales = own["normalization"]["obs_scales"]
    limits = own["normalization"]["clip_scales"]
    gait = {**_GAIT, **own.get("gait", {})}
    damping = dict.fromkeys(names, control["damping"])
    if "ankle_joint_damping" in control:
        damping |= {name: control["ankle_joint_damping"] for name in names if "ankle" in name}
    proprioception = [
        {"term": "base_ang_vel", "scale": scales["ang_vel"]},
        {"term": "projected_gravity"},
        {"term": "joint_pos_rel", "scale": scales["dof_pos"]},
        {"term": "joint_vel", "scale": scales["dof_vel"]},
        {"term": "last_action"},
        {"term": "clock"},
        {"term": "constant", "values": [gait["frequencies"], 0.5, 0.5, gait["swing_height"]]},
    ]
    unused = [0.0] * (size["commands_size"] - 3)
    period = control["decimation"] / own["loop_frequency"]
    folder = path.parent / "policy" / "isaacgym"
    return {
        "network": str(folder / "policy.onnx"),
        "period": period,
        "joints": names,
        "default": [own["init_state"]["default_joint_angle"][name] for name in names],
        "stiffness": control["stiffness"],
        "damping": damping,
        "action": {"scale": control["action_scale_pos"], "clip": [-limits["clip_actions"], limits["clip_actions"]]},
        "encoders": {
            "encoder": {
                "network": str(folder / "encoder.onnx"),
                "observations": proprioception,
                "frames": {"count": size["obs_history_length"]},
            }
        },
        "observations": [
            {"term": "encoder"},
            *proprioception,
            {"term": "velocity_commands", "scale": [scales["lin_vel"], scales["lin_vel"], scales["ang_vel"]]},
            *([{"term": "constant", "values": unused}] if unused else []),
        ],
        "clip": [-limits["clip_observations"], limits["clip_observations"]],
        "clock": {"period": 1.0 / gait["frequencies"], "start": period},
    }
