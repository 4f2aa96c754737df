"""The table "Bring your own" of docs/controllers.md: each command runs as printed and the robot stands.

The test fails for a new row until a way to run it is added here. The nodes are separate processes and use real DDS.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from docs_support import rows, section
from paths import LOCK_STEP, ROOT

PAGE = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("tutorials/controller.md", "controllers.md"))
HEAD, *TABLE = rows(section(PAGE, "Bring your own"))
PATIENCE_S = 240.0
FAST = ("--clock", "as_fast_as_possible")
# The vendor's program uses its own clock, and its commands may be late on a busy machine.
SLOWLY = ("--clock", "real_time", "--real-time-factor", "0.1")

TRAJECTORY = """
    import time

    import rclpy
    from rclpy.qos import QoSProfile
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    rclpy.init()
    node = rclpy.create_node("tool")
    sent = node.create_publisher(JointTrajectory, "/joint_trajectory_controller/joint_trajectory", QoSProfile(depth=1))
    message = JointTrajectory(joint_names=["l_knee"])
    point = JointTrajectoryPoint(positions=[0.4])
    point.time_from_start.nanosec = 100_000_000
    message.points = [point]
    while True:  # commands are taken best effort: one alone may be lost before both sides know of each other
        sent.publish(message)
        time.sleep(0.5)
"""
MANAGER = """
    import time

    import rclpy
    from sensor_msgs.msg import JointState

    rclpy.init()
    node = rclpy.create_node("manager")
    sent = node.create_publisher(JointState, "/robot_joint_commands", 1)
    while True:  # as the hardware interface, which repeats its commands while the states differ
        sent.publish(JointState(name=["l_knee"], position=[0.4]))
        time.sleep(0.1)
"""
VENDOR = """
    import sys

    from unitree_support import Program

    program = Program(int(sys.argv[1]))
    motors, command = program.state()["motor_state"], program.command.values
    command["mode_machine"] = 5
    command["motor_cmd"]["q"], command["motor_cmd"]["kp"], command["motor_cmd"]["kd"] = motors["q"], 200.0, 4.0
    program.until(lambda state: False, "the robot ends first", period=0.002)
"""


def ticked(cell: str) -> str:
    """Return the first command of a cell, as it is printed."""
    found = re.search(r"`([^`]+)`", cell)
    assert found, f"no command in {cell!r}"
    return found[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with every file that the reader saves."""
    for name, text in re.findall(r"`(\w+\.\w+)`[^`]*:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def env(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment of a terminal; with ROS, in a domain of its own."""
    env = request.getfixturevalue("ros_env") if importlib.util.find_spec("rclpy") else {**os.environ}
    return env | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"}


def typed(command: str, folder: Path, env: dict[str, str]) -> str:
    """Run a command, which must succeed, and return its output."""
    done = subprocess.run(
        shlex.split(command), cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def stood(summary: Path) -> None:
    values = json.loads(summary.read_text(encoding="utf-8"))
    assert values["fell_at_s"] is None
    assert values["gave_up_at_s"] is None


def headless(command: str, folder: Path, env: dict[str, str]) -> None:
    typed(f"{command} --duration 0.5 --output out.npz", folder, env)
    said = typed("bipedsim summary out.npz", folder, env)
    assert "fell" not in said, said


def brought_up(
    command: str, folder: Path, env: dict[str, str], beside: str = "", clock: Sequence[str] = LOCK_STEP
) -> None:
    """Run a launch of half a second together with the program that the row names."""
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    whole = f"{command} {shlex.join(clock)} --duration 0.5 --record run"
    other = None
    with (folder / "up.txt").open("w+", encoding="utf-8") as said:
        up = subprocess.Popen(shlex.split(whole), cwd=folder, env=env, stdout=said, stderr=subprocess.STDOUT)
        try:
            if beside:
                other = subprocess.Popen(shlex.split(beside), cwd=folder, env=env)
            code = up.wait(PATIENCE_S)
        finally:
            for process in (other, up):
                if process is not None and process.poll() is None:
                    process.terminate()
                    process.wait(PATIENCE_S)
        said.seek(0)
        assert code == 0, said.read()
    stood(folder / "run" / "summary.json")


def a_class(row: list[str], folder: Path, env: dict[str, str]) -> None:
    headless(ticked(row[1]), folder, env)


def a_class_as_a_node(row: list[str], folder: Path, env: dict[str, str]) -> None:
    brought_up(ticked(row[1]), folder, env)


def a_node_in_python(row: list[str], folder: Path, env: dict[str, str]) -> None:
    command, node = re.findall(r"`([^`]+)`", row[1])
    brought_up(command, folder, env, beside=node)


def a_node_in_cpp(row: list[str], folder: Path, env: dict[str, str]) -> None:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    if not any(prefix and (Path(prefix) / "include" / "rclcpp").is_dir() for prefix in prefixes):
        pytest.skip("rclcpp, which this row is about, comes with /opt/ros alone, not as a wheel; source its setup.sh")
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    command, *build, node = re.findall(r"`([^`]+)`", row[1])
    for one in build:
        typed(one, folder, env)
    brought_up(command, folder, env, beside=node)


def a_policy(row: list[str], folder: Path, env: dict[str, str]) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip install 'bipedsim[policy]')")
    from policy_support import whole

    whole(folder)
    headless(ticked(row[1]), folder, env)


def a_vendors_program(row: list[str], folder: Path, env: dict[str, str]) -> None:
    pytest.importorskip("cyclonedds", reason="cyclonedds is not installed (pip install 'bipedsim[unitree]')")
    command, program = re.findall(r"`([^`]+)`", row[1])
    # The vendor's example comes with its SDK. The test uses a program with the same topics, on a domain of its own.
    assert program == "python g1_low_level_example.py lo"
    (folder / "program.py").write_text(textwrap.dedent(VENDOR), encoding="utf-8")
    domain = 100 + os.getpid() % 100
    beside = f"{sys.executable} program.py {domain}"
    brought_up(f"{command} --set unitree.domain={domain}", folder, env, beside, SLOWLY)


def other_tools(row: list[str], folder: Path, env: dict[str, str]) -> None:
    _bend_the_knee(row, folder, env, TRAJECTORY, FAST)


def a_controller_manager(row: list[str], folder: Path, env: dict[str, str]) -> None:
    _bend_the_knee(row, folder, env, MANAGER, SLOWLY)


def _bend_the_knee(row: list[str], folder: Path, env: dict[str, str], tool: str, clock: Sequence[str]) -> None:
    (folder / "tool.py").write_text(textwrap.dedent(tool), encoding="utf-8")
    brought_up(ticked(row[1]), folder, env, beside=f"{sys.executable} tool.py", clock=clock)
    from bipedsim.recording import load_recording

    recording = load_recording(folder / "run")
    knee = recording.joint_position[:, list(recording.joint_names).index("l_knee")]
    assert abs(knee[-1] - 0.4) < 0.1


def an_agent(row: list[str], folder: Path, env: dict[str, str]) -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (pip install 'bipedsim[gym]')")
    lines = ["import gymnasium, bipedsim.gym", f"env = {ticked(row[1])}", "env.reset(seed=0)"]
    lines += ["for _ in range(20): over = env.step(0.0 * env.action_space.sample())[2]", "assert not over"]
    typed(shlex.join([sys.executable, "-c", "\n".join(lines)]), folder, env)


WAYS: dict[str, Callable[[list[str], Path, dict[str, str]], None]] = {
    "a Python class": a_class,
    "the same, over topics": a_class_as_a_node,
    "your own node in Python": a_node_in_python,
    "your own node in C++": a_node_in_cpp,
    "a trained policy": a_policy,
    "a controller manager of your own": a_controller_manager,
    "a program made for a vendor's robot": a_vendors_program,
    "trajectories, positions, impedances of other tools": other_tools,
    "an agent that learns": an_agent,
}


def has(row: list[str]) -> str:
    """Return the purpose of the row, without its links."""
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", row[0])


QUICK = (a_class, a_policy, an_agent)
"""Rows without their own nodes. Each launch takes ten seconds."""


@pytest.mark.long
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=() if WAYS.get(has(row)) in QUICK else pytest.mark.slow, id=has(row)) for row in TABLE],
)
def test_a_row_runs_as_printed(row: list[str], folder: Path, env: dict[str, str]) -> None:
    assert has(row) in WAYS, f"the row {has(row)!r} has no way to run it here: add one to WAYS"
    WAYS[has(row)](row, folder, env)


def test_no_way_is_left_without_a_row() -> None:
    assert [has(row) for row in TABLE] == list(WAYS)


def test_what_it_costs_is_measured() -> None:
    """Every number of the column is in the report that the page names."""
    report = (ROOT / "benchmarks" / "reports" / "ways_in.md").read_text(encoding="utf-8")
    measured = {float(row[1]) for row in rows(report)[1:]}
    column = HEAD.index("cost per tick")
    told = [float(number) for row in TABLE for number in re.findall(r"([\d.]+) µs", row[column])]
    assert told
    assert [number for number in told if number not in measured] == []
