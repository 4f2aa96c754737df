"""Force plates over ROS: real nodes, a bag, and the same samples as a run without nodes has, to the bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import LOCK_STEP

from bipedsim.config import RunConfig
from bipedsim.plates import as_json
from bipedsim.recording.bag import Bag, columns
from bipedsim.recording.load import load_recording
from bipedsim.recording.schema import PLATE_COP, PLATE_FREE_MOMENT, PLATE_WRENCH
from bipedsim.runs import run
from bipedsim.runs.replay import rerun

SCENARIO = """
controller: posture
force_plates:
  - {name: left_one, type: 3, half_base: [0.12, 0.2], size: [0.6, 0.4], position: [0.1, 0.2, 0], rate: 2000,
     thickness: 0.05, natural_frequency: 350, noise: 0.5, range: 200, bits: 16}
  - {name: right_one, type: 1, size: [0.6, 0.4], position: [0.1, -0.2, 0], rate: 250}
"""


@pytest.mark.slow
@pytest.mark.ros
def test_a_bag_holds_the_samples_of_a_run_without_nodes(tmp_path: Path, ros_env: dict[str, str]) -> None:
    scenario = tmp_path / "plates.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    arguments = ["--scenario", str(scenario), *LOCK_STEP, "--duration", "0.3", "--record"]
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", *arguments, str(tmp_path / "run")]
    done = subprocess.run(command, env=ros_env, capture_output=True, text=True, check=False, timeout=600.0)
    assert done.returncode == 0, done.stdout + done.stderr
    bag = load_recording(tmp_path / "run")
    recording, _ = run(RunConfig(scenario=str(scenario), duration=0.3))
    assert {*bag.force_plates} == {"left_one", "right_one"} == {*recording.force_plates}
    for name, ours in recording.force_plates.items():
        theirs = bag.force_plates[name]
        assert as_json(theirs.geometry) == as_json(ours.geometry)
        assert theirs.clipped <= ours.clipped
        common, i, j = np.intersect1d(np.rint(1e9 * ours.t), np.rint(1e9 * theirs.t), return_indices=True)
        # A recorder finds topics of things that it does not know within a moment.
        assert len(common) >= 0.8 * len(ours)
        assert ours.channels[i].tobytes() == theirs.channels[j].tobytes()
        assert ours.t[i].tobytes() == theirs.t[j].tobytes()
    assert recording.force_plates["left_one"].clipped > 0
    done_again = rerun(bag)
    assert done_again.first is None, str(done_again.first)
    assert "force_plate_left_one" in done_again.compared

    messages = Bag(tmp_path / "run").messages
    plate = bag.force_plates["right_one"]
    wrench, cop, moment = (
        columns([one.data for one in messages[topic.format(plate="right_one")]], msgtype)
        for topic, msgtype in (
            (PLATE_WRENCH, "geometry_msgs/msg/WrenchStamped"),
            (PLATE_COP, "geometry_msgs/msg/PointStamped"),
            (PLATE_FREE_MOMENT, "std_msgs/msg/Float64"),
        )
    )
    _, i, j = np.intersect1d(np.rint(1e9 * plate.t), wrench.stamp, return_indices=True)
    assert len(i) > 50
    np.testing.assert_array_equal(wrench.values["wrench"][j, :3], plate.force()[i])
    centre = plate.geometry.centre
    np.testing.assert_allclose(wrench.values["wrench"][j, 3:], plate.moment_about(centre)[i], atol=1e-12)
    np.testing.assert_array_equal(cop.values["point"][j], plate.cop()[i])
    assert len(moment.values["data"]) == len(wrench.stamp)
    assert wrench.frames == cop.frames == ("odom",)
    assert plate.normal_force()[-1] == pytest.approx(0.5 * bag.weight, rel=0.2)
