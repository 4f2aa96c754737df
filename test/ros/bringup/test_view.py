"""``bipedsim view`` without a recording: options become parameters of the node, in a namespace."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("viser", reason="viser is not installed")

from rcl_interfaces.srv import GetParameters
from ros_support import RosWorld
from sensor_msgs.msg import JointState

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_USAGE
from bipedsim_ros.nodes.view_node import READY

VIEW = [sys.executable, "-m", "bipedsim.cli.main", "view"]


@pytest.mark.parametrize("option", [["--html", "walk.html"], ["--from", "0"], ["--to", "3"]])
def test_what_is_of_a_recording_is_not_taken_without_one(capsys: pytest.CaptureFixture[str], option: list[str]) -> None:
    assert main(["view", *option]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert option[0] in said


@pytest.mark.parametrize("option", [["--namespace", "r1"], ["--params-file", "mine.yaml"]])
def test_what_is_of_a_robot_that_is_up_is_not_taken_with_a_recording(
    capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    assert main(["view", "walk.npz", *option]) == EXIT_USAGE
    assert f"{option[0]}: of a robot that is up, which bipedsim view shows without walk.npz" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.ros
def test_options_reach_the_node_and_an_interrupt_ends_it(ros: RosWorld, tmp_path: Path) -> None:
    log = tmp_path / "said.txt"
    ros.node.create_publisher(JointState, "/joint_states", 1)
    file = tmp_path / "mine.yaml"
    file.write_text("/**/view_node: {ros__parameters: {frame_rate: 5.0, ft_sign: -1.0, browser: false}}")
    options = ["--namespace", "lab/r1", "--robot", "biped14", "--port", "18100", "--params-file", str(file)]
    with log.open("w") as out:
        node = subprocess.Popen([*VIEW, *options], env=ros.env, stdout=out, stderr=subprocess.STDOUT)
    try:
        values: Any = ros.call(
            GetParameters, "/lab/r1/view_node/get_parameters", names=["robot", "ft_sign", "frame_rate", "browser"]
        ).values
        assert [values[0].string_value, values[1].double_value, values[2].double_value] == ["biped14", -1.0, 5.0]
        assert not values[3].bool_value
        waits = "the page opens when there is a robot on /lab/r1/joint_states"
        ros.until(lambda: waits in log.read_text(), "what it waits for")
        assert "there is one on /joint_states (no --namespace). Else" in log.read_text()
        ros.node.create_publisher(JointState, "/lab/r1/joint_states", 1)
        ros.until(lambda: READY in log.read_text(), "a page of a robot that publishes joint states")
        said = log.read_text()
        assert "http://127.0.0.1:181" in said
    finally:
        node.send_signal(signal.SIGINT)
        assert node.wait(60) == 0, log.read_text()


@pytest.mark.long
@pytest.mark.ros
def test_a_robot_that_nobody_names_is_not_said_to_be_missing(ros: RosWorld, tmp_path: Path) -> None:
    log = tmp_path / "said.txt"
    ros.node.create_publisher(JointState, "/joint_states", 1)
    with log.open("w") as out:
        node = subprocess.Popen(VIEW, env=ros.env, stdout=out, stderr=subprocess.STDOUT)
    try:
        ros.until(lambda: "its model is unknown. Name it" in log.read_text(), "that its name is wanted")
        ros.spin(lambda: False, 1.5)
    finally:
        node.send_signal(signal.SIGINT)
        assert node.wait(60) == 0, log.read_text()
    assert "when there is a robot" not in log.read_text()


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--namespace", "1r"], "must consist of letters"),
        (["--port", "99999"], "port = 99999 is above its maximum 65535"),
        (["--robot", "biped15"], "unknown robot 'biped15'; did you mean 'biped14'?"),
    ],
)
def test_what_is_wrong_is_told_at_once(ros_env: dict[str, str], options: list[str], said: str) -> None:
    done = subprocess.run([*VIEW, *options], env=ros_env, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_USAGE
    assert said in done.stderr
