"""Objects over ROS: real nodes, a bag, and the same run without nodes; and files of both."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import LOCK_STEP

from bipedsim.config import RunConfig
from bipedsim.recording import Recording
from bipedsim.recording.csv import export_csv
from bipedsim.recording.load import load_recording
from bipedsim.recording.schema import OBJECT_COMPONENTS
from bipedsim.runs import run

BALL = """
controller_params: {mode: stand}
objects:
  - {name: ball, shape: ball, mass: 0.4, radius: 0.1, position: [0.45, 0.1, 0.25], velocity: [-3.0, 0, 0.5],
     restitution: 0.6}
  - {name: crate, shape: box, mass: 2.0, size: [0.2, 0.2, 0.2], position: [0.0, 1.0, 0.1]}
pushes:
  - {at: 0.05, duration: 0.1, force_over_weight: [1.0, 0.0, 0.0], body: crate}
"""

KICK = """
controller: zmp
controller_params: {kick_foot: right, kick_at: 0.05, ramp: 0.05, start_hold: 0.05, kick_hold: 0.1}
objects:
  - {name: ball, shape: ball, mass: 0.4, radius: 0.11, position: [0.42, -0.1, 0.11], restitution: 0.6}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "ball.yaml"
    path.write_text(BALL, encoding="utf-8")
    return path


def test_files_hold_the_objects(tmp_path: Path, scenario: Path) -> None:
    recording, _ = run(RunConfig(scenario=str(scenario), duration=0.3))
    assert sorted(recording.objects) == ["ball", "crate"]
    # The ball has bounced off the shin, and the crate has slid.
    assert recording.objects["ball"][:, 0].min() > 0.1
    assert recording.objects["ball"][-1, 0] > recording.objects["ball"][:, 0].min() + 0.05
    assert recording.objects["crate"][-1, 0] > 0.01
    recording.save(tmp_path / "run.npz")
    again = load_recording(tmp_path / "run.npz")
    for name, states in recording.objects.items():
        assert again.objects[name].tobytes() == states.tobytes()
    export_csv(recording, tmp_path / "run.csv")
    header, last = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()[:: len(recording)]
    at = header.split(",").index("object_ball_x[m]")
    values = [float(cell) for cell in last.split(",")[at : at + len(OBJECT_COMPONENTS)]]
    np.testing.assert_allclose(values, recording.objects["ball"][-1], rtol=1e-8, atol=1e-12)


@pytest.mark.long
@pytest.mark.ros
def test_a_bag_holds_what_a_run_without_nodes_does(tmp_path: Path, scenario: Path, ros_env: dict[str, str]) -> None:
    both_ways(tmp_path, scenario, 0.3, ros_env)


@pytest.mark.slow
@pytest.mark.ros
def test_a_robot_on_one_leg_kicks_a_ball_over_ros(tmp_path: Path, ros_env: dict[str, str]) -> None:
    """The controller in its own process: the same kick to the bit, on one leg until the end."""
    path = tmp_path / "kick.yaml"
    path.write_text(KICK, encoding="utf-8")
    bag = both_ways(tmp_path, path, 2.4, ros_env)
    assert np.linalg.norm(bag.objects["ball"][-1, 7:10]) > 2.0
    lifted = bag.wrench[:, 1, 2] == 0.0
    assert lifted[bag.t > 0.6].all()
    assert bag.wrench[-1, 0, 2] == pytest.approx(bag.weight, rel=0.05)


def both_ways(folder: Path, scenario: Path, duration: float, env: dict[str, str]) -> Recording:
    """Run a scenario with nodes and without; the objects must be the same to the bit. Return the content of the bag."""
    arguments = ["--scenario", str(scenario), *LOCK_STEP, "--duration", str(duration)]
    arguments += ["--record", str(folder / "run")]
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600.0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))["unresolved_steps"] == 0
    bag = load_recording(folder / "run")
    recording, _ = run(RunConfig(scenario=str(scenario), duration=duration))
    ticks = [np.rint(1e3 * one.t).astype(int) for one in (recording, bag)]
    common, ours, theirs = np.intersect1d(*ticks, return_indices=True)
    assert len(common) >= round(1e3 * duration) - 1
    for name, states in recording.objects.items():
        assert states[ours].tobytes() == bag.objects[name][theirs].tobytes()
    return bag
