"""Configurations of AgibotTech/agibot_x1_infer: control_module/cfg/*.yaml, which list several controllers.

``RLController`` has the terms and their order. Other joints of the robot hold the pose of ``pd_zero`` and ``pd_stand``,
as in the mode of the robot that names the controller. The low-pass filter of the targets is omitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bipedsim.errors import ConfigError
from bipedsim.model import Robot


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the first learned controller of the file in bipedsim's keys.

    Raises:
        ConfigError: No controller of the file has a network.
    """
    controllers = values["controllers"]
    name = next((name for name, entry in controllers.items() if "onnx_conf" in entry), None)
    if name is None:
        raise ConfigError("no entry has `onnx_conf`, so none has a network", f"{path}: controllers")
    own = controllers[name]
    mode = next(
        (state["controllers"] for state in values["robot_states"].values() if state["controllers"][-1:] == [name]),
        [name],
    )
    # Later controllers of a mode override earlier ones.
    held: dict[str, tuple[float, float, float]] = {}
    for entry in (controllers[other] for other in mode):
        gains = zip(entry["init_state"], entry["stiffness"], entry["damping"], strict=True)
        held |= dict(zip(entry["joint_list"], gains, strict=True))
    joints = [joint for joint in held if joint in robot.joint_names or joint in own["joint_list"]]
    moved = {"joints": own["joint_list"]}
    conf, scales, walk = own["onnx_conf"], own["obs_scales"], own["walk_step_conf"]
    clip = conf["observations_clip"]
    return {
        "network": str(path.parent.parent / "policy" / Path(conf["policy_file"]).name),
        "period": walk["decimation"] / values["control_frequecy"],  # spelt so in the file
        "joints": joints,
        "default": {joint: held[joint][0] for joint in joints},
        "stiffness": {joint: held[joint][1] for joint in joints},
        "damping": {joint: held[joint][2] for joint in joints},
        "action": {
            **moved,
            "scale": walk["action_scale"],
            "clip": [-conf["actions_clip"], conf["actions_clip"]],
        },
        "observations": [
            {"term": "clock"},
            {"term": "velocity_commands", "scale": [scales["lin_vel"], scales["lin_vel"], 1.0]},
            {"term": "joint_pos_rel", "scale": scales["dof_pos"], **moved},
            {"term": "joint_vel", "scale": scales["dof_vel"], **moved},
            {"term": "last_action"},
            {"term": "base_ang_vel", "scale": scales["ang_vel"]},
            {"term": "base_euler", "scale": scales["quat"]},
        ],
        "clip": [-clip, clip],
        "frames": {"count": conf["num_hist"]},
        "clock": {
            "period": walk["cycle_time"],
            "still": [0.0, 1.0],
            "still_below": walk["cmd_threshold"] if walk["sw_mode"] else 0.0,
        },
    }
