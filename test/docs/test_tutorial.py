"""The code of docs/controllers.md and its tutorial, as a reader would save and run it: as a class, a node, compiled."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.control.monitor import joint_damping
from bipedsim.model import load_robot
from bipedsim.recording import load_recording
from bipedsim.runs.runner import run

PAGE = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("tutorials/controller.md", "controllers.md"))
PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the reader saves."""
    folder = tmp_path_factory.mktemp("tutorial")
    for name, text in re.findall(r"`(\w+\.\w+)`[^`]*:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(text, encoding="utf-8")
    found = sorted(path.name for path in folder.iterdir())
    assert found == ["CMakeLists.txt", "balance.py", "careful.py", "hold.cpp", "hold.py", "shove.yaml", "stand.py"]
    return folder


@pytest.fixture
def folder(saved: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as the current folder."""
    monkeypatch.chdir(saved)
    return saved


def test_the_impedance_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    recording, summary = run(RunConfig(robot="talos", controller="stand:Stand", duration=1.0))
    assert summary["fell_at_s"] is None
    assert np.isfinite(recording.setpoint).all()


def lines(start: str) -> list[str]:
    """Return the command lines of the page that begin so."""
    return re.findall(rf"^ {{4}}({re.escape(start)}.*)$", PAGE, re.MULTILINE)


def told_of_gains() -> list[tuple[float, str, str]]:
    """Return the table of gains: gain, effect, largest capture error."""
    found = re.findall(r"^\| ([0-9.]+) \| (.+?) \| (.*?) ?\|$", PAGE, re.MULTILINE)
    assert len(found) == 3
    return [(float(gain), what, error) for gain, what, error in found]


def shoved(controller: str = "balance:Balance", gain: float = 3.0, duration: float | None = None) -> RunConfig:
    """Return the run of the page."""
    params = {"gain": gain}
    return RunConfig(controller=controller, scenario="shove.yaml", controller_params=params, duration=duration)


@pytest.mark.long
@pytest.mark.parametrize(("gain", "what", "error"), told_of_gains())
def test_the_class_balances_as_the_page_says(folder: Path, gain: float, what: str, error: str) -> None:
    recording, summary = run(shoved(gain=gain))
    if "falls" in what:
        after = re.search(r"falls after ([0-9.]+) s", what)
        assert after
        assert summary["fell_at_s"] == pytest.approx(float(after[1]), abs=0.1)
        return
    assert what == "stands"
    assert summary["fell_at_s"] is None
    assert summary["gave_up_at_s"] is None
    assert 1000.0 * summary["readouts"]["capture_error_m"]["max"] == pytest.approx(float(error.split()[0]), abs=1.0)
    # The last row has measurements, and no answer to them.
    assert recording.readouts["capture_error_m"][-2] < 0.1 * summary["readouts"]["capture_error_m"]["max"]
    assert summary["base_position_error_m"] < 1e-3


def test_a_careful_class_gives_up_before_it_lies_down(folder: Path) -> None:
    recording, summary = run(shoved("careful:Careful", gain=0.0, duration=2.6))
    assert 1.1 < summary["gave_up_at_s"] < summary["fell_at_s"] - 0.1
    robot = load_robot("biped14")
    first = int(np.searchsorted(recording.t, summary["gave_up_at_s"]))
    damped = -joint_damping(robot) * recording.joint_velocity[first:-1]
    expected = np.clip(damped, -robot.effort_limit, robot.effort_limit)
    np.testing.assert_allclose(recording.joint_effort[first + 1 :], expected, rtol=1e-12)


def test_the_commands_run_in_one_process(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that the runs above are not."""
    commands = [line for line in lines("bipedsim run --controller balance:Balance") if "gain" not in line]
    assert len(commands) == 4
    for command in commands:
        arguments = shlex.split(command)[1:]
        if "shove.png" in arguments:
            continue
        assert main([*arguments, "--duration", "0.02"]) == 0, command
        assert re.search(r"^capture error +[0-9.]+ to [0-9.]+ m$", capsys.readouterr().out, re.MULTILINE)
        for picture in (word for word in arguments if word.endswith(".png")):
            assert (folder / picture).stat().st_size > 10_000


@pytest.mark.ros
@pytest.mark.slow
def test_the_class_as_a_node_repeats_the_headless_run(folder: Path, ros_env: dict[str, str]) -> None:
    (command,) = lines("bipedsim up --controller balance:Balance --scenario")
    # Noise lets every bit of every measurement count, so that a short run will do.
    arguments = [*shlex.split(command)[1:], "--duration", "0.3", "--set", "gain=2.5", "--hardware", "realistic"]
    done = subprocess.run(
        [sys.executable, "-m", "bipedsim.cli.main", *arguments],
        cwd=folder,
        env=ros_env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    left = {path.name for path in (folder / "runs" / "shove").iterdir()}
    assert left >= {"bag", "summary.json", "forces.png"}
    recorded = load_recording(folder / "runs" / "shove")
    expected, _ = run(replace(shoved(gain=2.5, duration=0.3), hardware="realistic"))
    rows = np.flatnonzero(recorded.t > 0.0)
    np.testing.assert_array_equal(recorded.joint_effort[rows], expected.joint_effort)
    assert np.isfinite(recorded.readouts["capture_error_m"]).any()


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize("name", ["biped14", "parallel_ankles", "talos", "g1", "icub"])
def test_the_node_in_python_holds_the_robot_up(ros: Any, folder: Path, tmp_path: Path, name: str) -> None:
    """Against sim_node, in processes of their own, one command per state."""
    from nav_msgs.msg import Odometry

    truth = ros.collect(Odometry, "/ground_truth/odom")
    stats = tmp_path / "stats.json"
    sim = ros.start("sim_node", robot=name, clock="lock_step", duration=0.6, stats_file=str(stats))
    ros.until(lambda: truth, "the state at t = 0")
    node = ros.start(folder / "hold.py")
    assert ros.ended(sim) == 0
    ros.until(lambda: truth[-1].header.stamp.nanosec == 600_000_000, "the last state")
    counted = json.loads(stats.read_text())
    assert counted["missed_commands"] == counted["commands_dropped"] == 0
    first, last = truth[0].pose.pose, truth[-1].pose.pose
    assert abs(last.position.z - first.position.z) < 0.02
    turns = [[getattr(pose.orientation, axis) for axis in "xyzw"] for pose in (first, last)]
    assert abs(np.dot(*turns)) > 0.999
    assert node.stop() == 0, node.output
    assert "Traceback" not in node.output


def rclcpp_prefixes() -> list[str]:
    """Return the location of rclcpp, from the environment of a sourced ROS."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [prefix for prefix in prefixes if prefix and (Path(prefix) / "include" / "rclcpp").is_dir()]


@pytest.mark.ros
def test_the_node_in_cpp_compiles(folder: Path) -> None:
    if not rclcpp_prefixes():
        pytest.skip("rclcpp is not installed, or its setup.sh not sourced")
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    for command in lines("cmake "):
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stdout + done.stderr
    assert os.access(folder / "build" / "hold", os.X_OK)
