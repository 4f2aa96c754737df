"""What does not fit is told by name, all of it at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from policy_support import Plain, Recurrent, biped, deployment, whole, write

from bipedsim.control import make_controller
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot

JOINTS = list(biped().joint_names)


def refused(folder: Path, robot: str = "biped14", dt: float = 1e-3, **changes: Any) -> str:
    file = whole(folder, **changes)
    with pytest.raises(ConfigError) as error:
        make_controller("policy", load_robot(robot), {"file": str(file)}, dt)
    return str(error.value)


def test_everything_that_does_not_fit_is_told_at_once(tmp_path: Path) -> None:
    said = refused(
        tmp_path,
        dt=3e-3,
        joints=[*JOINTS[:-1], "r_ankle_rol"],
        default={JOINTS[3]: 9.0},
        stiffness=[1.0, 2.0],
        damping={"arm": 1.0, ".*": 2.0},
        action={"joints": [JOINTS[0], "tail"], "limits": [[0.0, 1.0]] * 3},
        observations=[{"term": "base_lin_vel"}, {"term": "joint_pos", "scale": [1.0, 2.0]}, {"term": "projected_grav"}],
    )
    for part in (
        "unknown joint 'r_ankle_rol'",
        f"joints: {JOINTS[-1]} of 'biped14' are not driven",
        f"default: {JOINTS[3]} = 9 rad is beyond its limits",
        "stiffness: 2 numbers for 14 joints",
        "damping: unknown joint 'arm'",
        "action.joints: unknown joint 'tail'",
        "action.limits: 3 pairs for 2 joints",
        "period = 0.02 s is no whole number of control ticks of 0.003 s",
        "observations[0]: 'base_lin_vel' is the linear velocity of the base, which no sensor",
        "needs more than a robot measures",
        "observations[1]: 2 scales for the 14 values of joint_pos",
        "observations[2]: unknown term 'projected_grav'; did you mean 'projected_gravity'?",
    ):
        assert part in said
    assert said.count("\n") == 11
    assert said.startswith("11 errors")


def test_a_network_of_another_size(tmp_path: Path) -> None:
    said = refused(tmp_path, observations=[{"term": "joint_pos", "history": 2}, {"term": "clock"}], frames={"count": 2})
    assert "2 frames of 30 values (joint_pos 2 x 14, clock 2), and the network takes 51" in said
    Plain(51, 14).save(tmp_path / "policy.onnx")
    said = refused(tmp_path, action={"joints": JOINTS[:3]}, observations=[{"term": "joint_pos", "history": 3}])
    assert "42 values (joint_pos 3 x 14), and the network takes 51" in said


def test_a_network_that_gives_another_number_of_values(tmp_path: Path) -> None:
    whole(tmp_path)
    Plain(51, 12).save(tmp_path / "policy.onnx")
    with pytest.raises(ConfigError, match="the network gives 12 values, and moves 14 joints"):
        make_controller("policy", biped(), {"file": str(tmp_path / "deploy.yaml")})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"network": "policy.h5"}, "a network ends in one of .onnx, .pt, .pth, .jit"),
        ({"network": "nowhere.onnx"}, "nowhere.onnx: no such file"),
        ({"input": "state"}, "it has no input 'state'"),
        ({"output": "torque"}, "it has no output 'torque' (inputs obs; outputs actions)"),
        ({"states": {"h": "g"}}, "it has no input 'h'; it has no output 'g'"),
        ({"stiffness": -1.0}, "stiffness"),
        ({"joints": None}, "key 'joints' is missing"),
        ({"stiffness": None}, "key 'stiffness' is missing"),
        ({"speed": 1.0}, "unknown parameter 'speed'"),
        ({"joints": [JOINTS[0], *JOINTS]}, f"{JOINTS[0]} is named 2 times"),
        ({"observations": [{"term": "constant"}]}, "observations[0]: constant needs its numbers as `values`"),
        ({"observations": [{"term": "joint_pos", "values": [1.0]}]}, "joint_pos has no `values` of its own"),
        ({"observations": [{"term": "constant", "values": [float("inf")]}]}, "observations[0].values"),
    ],
)
def test_single_faults(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    assert said in refused(tmp_path, **changes)


def test_an_input_that_nobody_feeds(tmp_path: Path) -> None:
    file = whole(tmp_path)
    Recurrent(51, 14).save(tmp_path / "policy.onnx", ("time_step", "h"))
    with pytest.raises(ConfigError, match=r"input 'time_step' is neither what is seen \('obs'\) nor a memory"):
        make_controller("policy", biped(), {"file": str(file)})


def test_what_is_no_network(tmp_path: Path) -> None:
    file = write(tmp_path / "deploy.yaml", deployment())
    (tmp_path / "policy.onnx").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"policy\.onnx: onnxruntime cannot read it"):
        make_controller("policy", biped(), {"file": str(file)})


def test_robots_that_it_cannot_have(tmp_path: Path) -> None:
    assert "needs a free-flying robot" in refused(tmp_path, "arm")
    assert "'policy' does not support closed chains" in refused(tmp_path, "parallel_ankles")
