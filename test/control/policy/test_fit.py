"""A policy that does not fit the robot is rejected with all errors at once, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from policy_support import Plain, Recurrent, biped, deployment, whole, write
from refusals import check_fields, faults_of, refusal

from bipedsim.control import make_controller
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot

JOINTS = list(biped().joint_names)


def refused(folder: Path, robot: str = "biped14", dt: float = 1e-3, **changes: Any) -> ConfigError:
    file = whole(folder, **changes)
    with pytest.raises(ConfigError) as error:
        make_controller("policy", load_robot(robot), {"file": str(file)}, dt)
    return error.value


def test_everything_that_does_not_fit_is_told_at_once(tmp_path: Path) -> None:
    error = refused(
        tmp_path,
        dt=3e-3,
        joints=[*JOINTS[:-1], "r_ankle_rol"],
        default={JOINTS[3]: 9.0},
        stiffness=[1.0, 2.0],
        damping={"arm": 1.0, ".*": 2.0},
        action={"joints": [JOINTS[0], "tail"], "limits": [[0.0, 1.0]] * 3},
        observations=[{"term": "base_pos_z"}, {"term": "joint_pos", "scale": [1.0, 2.0]}, {"term": "projected_grav"}],
    )
    assert faults_of(error) == {
        ("joints", "'r_ankle_rol'"),
        ("joints", "None"),
        ("default", "None"),
        ("stiffness", "None"),
        ("damping", "'arm'"),
        ("action.joints", "'tail'"),
        ("action.limits", "None"),
        ("period", "None"),
        ("observations[0]", "None"),
        ("observations[1]", "None"),
        ("observations[2]", "'projected_grav'"),
    }


def test_wrong_keys_and_wrong_values_are_told_at_once(tmp_path: Path) -> None:
    """Values are also checked where other keys have a wrong type, or do not exist."""
    error = refused(
        tmp_path,
        dt=3e-3,
        speed=1.0,
        clip="wide",
        damping=None,
        default={JOINTS[3]: 9.0},
        stiffness=[1.0, 2.0],
        observations=[{"term": "projected_grav"}],
    )
    assert faults_of(error) == {
        (str(tmp_path / "deploy.yaml"), "'speed'"),
        ("clip", "'wide'"),
        ("damping", "None"),
        ("default", "None"),
        ("stiffness", "None"),
        ("period", "None"),
        ("observations[0]", "'projected_grav'"),
    }


def test_nothing_is_said_of_values_that_need_a_wrong_key(tmp_path: Path) -> None:
    error = refused(tmp_path, joints=3)
    check_fields(error, place="joints", value=3)


@pytest.mark.parametrize("key", ["frames", "input", "output", "states", "network"])
def test_sizes_are_not_compared_if_a_key_that_decides_them_is_wrong(tmp_path: Path, key: str) -> None:
    """Errors of terms are reported in addition."""
    check_fields(refused(tmp_path, **{key: 7}), place=key, value=7)
    joints = {"joints": JOINTS[:3], "limits": [[0.0, 1.0]] * 2}
    found = faults_of(refused(tmp_path, observations=[{"term": "clock"}, {"term": "nose"}], action=joints, **{key: 7}))
    assert found == {(key, "7"), ("observations[1]", "'nose'"), ("action.limits", "None")}
    found = faults_of(refused(tmp_path, observations=[{"term": "clock"}], action=joints, **{key: 7}))
    assert found == {(key, "7"), ("action.limits", "None")}


def test_a_network_of_another_size(tmp_path: Path) -> None:
    terms = [{"term": "joint_pos", "history": 2}, {"term": "clock"}]
    check_fields(refused(tmp_path, observations=terms, frames={"count": 2}), place="observations")
    Plain(51, 14).save(tmp_path / "policy.onnx")
    error = refused(tmp_path, action={"joints": JOINTS[:3]}, observations=[{"term": "joint_pos", "history": 3}])
    assert "observations" in {place for place, _ in faults_of(error)}


def test_a_network_that_gives_another_number_of_values(tmp_path: Path) -> None:
    whole(tmp_path)
    Plain(51, 12).save(tmp_path / "policy.onnx")
    with refusal(place="action"):
        make_controller("policy", biped(), {"file": str(tmp_path / "deploy.yaml")})


@pytest.mark.parametrize(
    ("changes", "place", "value"),
    [
        ({"network": "policy.h5"}, "policy.h5", None),
        ({"network": "nowhere.onnx"}, "nowhere.onnx", None),
        ({"input": "state"}, "input 'state'", None),
        ({"output": "torque"}, "output 'torque'", None),
        ({"states": {"h": "g"}}, "output 'g'", None),
        ({"stiffness": -1.0}, f"stiffness.{JOINTS[0]}", -1.0),
        ({"joints": None}, "joints", None),
        ({"stiffness": None}, "stiffness", None),
        ({"speed": 1.0}, "deploy.yaml", "speed"),
        ({"joints": [JOINTS[0], *JOINTS]}, "joints", None),
        ({"action": {"clip": [0.1]}}, "action.clip", None),
        ({"action": {"clip": [0.1, -0.1]}}, "action.clip", None),
        ({"action": {"clip": [[-1.0, 1.0]] * 13}}, "action.clip", None),
        ({"action": {"clip": [[-1.0, 1.0], 2.0]}}, "action.clip", None),
        ({"encoders": {"clock": {"network": "p.onnx", "observations": [{"term": "clock"}]}}}, "encoders.clock", None),
        (
            {"encoders": {"latent": {"network": "policy.onnx", "observations": [{"term": "clock"}]}}},
            "encoders.latent.observations",
            None,
        ),
        ({"encoders": {"latent": {"network": "none.onnx", "observations": [{"term": "clock"}]}}}, "none.onnx", None),
        ({"observations": [{"term": "constant"}]}, "observations[0]", None),
        ({"observations": [{"term": "joint_pos", "values": [1.0]}]}, "observations[0]", None),
        ({"observations": [{"term": "constant", "values": [float("inf")]}]}, "observations[0].values[0]", float("inf")),
    ],
)
def test_single_faults(tmp_path: Path, changes: dict[str, Any], place: str, value: Any) -> None:
    found = faults_of(refused(tmp_path, **changes))
    assert (place, repr(value)) in {(where.rpartition("/")[2], what) for where, what in found}


def test_an_input_that_nobody_feeds(tmp_path: Path) -> None:
    file = whole(tmp_path)
    Recurrent(51, 14).save(tmp_path / "policy.onnx", ("time_step", "h"))
    with refusal(place="input 'time_step'"):
        make_controller("policy", biped(), {"file": str(file)})


def test_a_network_is_no_deployment_file(tmp_path: Path) -> None:
    file = tmp_path / "walk.pt"
    file.write_bytes(b"PK\x03\x04")
    with refusal(place=file):
        make_controller("policy", biped(), {"file": str(file)})


def test_what_is_no_network(tmp_path: Path) -> None:
    file = write(tmp_path / "deploy.yaml", deployment())
    (tmp_path / "policy.onnx").write_bytes(b"nothing")
    with refusal(place=tmp_path / "policy.onnx"):
        make_controller("policy", biped(), {"file": str(file)})


def test_robots_that_it_cannot_have(tmp_path: Path) -> None:
    for robot in ("arm", "parallel_ankles"):
        check_fields(refused(tmp_path, robot), place="controller 'policy'")
