"""``bipedsim score``, from the command line to its files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="dask.distributed (the extra study) is not installed")
pytest.importorskip("pyarrow", reason="pyarrow (the extra study) is not installed")

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_FAILED, EXIT_USAGE

pytestmark = pytest.mark.studies

SHORT = """
version: 7
repeat: 2
run: {hardware: realistic}
tests:
  - {name: stands, group: still, scenario: {duration: 0.4, velocity: [{at: 0}]}}
  - name: pushed
    group: pushes
    scenario: {duration: 0.4, velocity: [{at: 0}], pushes: [{at: 0.1, impulse_over_mass: [0, 0, 0]}]}
    vary: {scenario.pushes.0.impulse_over_mass: [[0.05, 0, 0], [0, 0.05, 0]]}
    success: {fz_over_mg.max: [0.9, 1.5]}
"""


def test_a_robots_file_counts_from_where_the_command_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(Path(str(files("bipedsim") / "robots" / "biped14")), tmp_path / "mine")
    (tmp_path / "short.yaml").write_text(SHORT)
    monkeypatch.chdir(tmp_path)
    assert main(["score", "zmp", "--robot", "mine/robot.yaml", "--battery", "short.yaml", "--jobs", "1"]) == 0
    assert "wrote runs/score_zmp_mine/score.html" in capsys.readouterr().out


def test_a_score_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    battery = tmp_path / "short.yaml"
    battery.write_text(SHORT)
    words = ["score", "zmp", "--battery", str(battery), "--jobs", "1"]
    assert main([*words, "-o", str(tmp_path / "first")]) == 0
    assert "ALL     6       100.0%" in capsys.readouterr().out
    assert main([*words, "-o", str(tmp_path / "second"), "--against", str(tmp_path / "first")]) == 0
    assert "+0.0%" in capsys.readouterr().out
    tables = [(tmp_path / name / "results.parquet").read_bytes() for name in ("first", "second")]
    assert tables[0] == tables[1]
    said = json.loads((tmp_path / "second" / "score.json").read_text())
    assert said["battery"] == 7
    assert said["against"]["lines"][-1]["only_first"] == 0
    page = (tmp_path / "second" / "score.html").read_text()
    assert "://" not in page
    assert page.count("<tr>") == (1 + 2 + 2 + 1) * 2


def test_a_score_of_another_robot_or_a_misspelt_figure_is_refused_before_any_trial(tmp_path: Path) -> None:
    battery = tmp_path / "short.yaml"
    battery.write_text(SHORT)
    words = ["score", "zmp", "--battery", str(battery), "--jobs", "1"]
    assert main([*words, "-o", str(tmp_path / "first")]) == 0
    other = tmp_path / "second"
    assert main([*words, "-o", str(other), "--against", str(tmp_path / "first"), "--robot", "talos"]) == EXIT_USAGE
    battery.write_text(SHORT.replace("fz_over_mg.max", "fz_over_mg.maximum"))
    assert main([*words, "-o", str(other)]) == EXIT_USAGE
    assert not other.exists()


def test_each_trial_draws_its_hardware_and_all_controllers_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong mass of the drawn robot shows in its weight; the parameters that a test varies stay."""
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    still = "group: still, scenario: {duration: 0.4, velocity: [{at: 0}]}"
    shift = f"  - {{name: delayed, {still}, vary: {{run.hardware.command_delay: [0.004]}}}}\n"
    own = f"  - {{name: own, {still}, run: {{hardware: ideal}}}}\n"
    Path("short.yaml").write_text(SHORT + shift + own)
    for name, mass in (("light", 0.95), ("heavy", 1.05)):
        Path(f"{name}.yaml").write_text(f"mass_scale: {mass}\n")
    words = ["score", "--battery", "short.yaml", "--jobs", "1", "--hardware", "light.yaml", "heavy.yaml"]
    rows = {}
    for folder, params in (("first", []), ("second", ["--set", "dcm_gain=4"])):
        assert main([*words, "-o", folder, *params, "--", "zmp"]) == 0
        assert "left out: own" in capsys.readouterr().out
        rows[folder] = parquet.read_table(f"{folder}/results.parquet").to_pylist()
    drawn = [Path(row["run.hardware"]).stem for row in rows["first"]]
    assert set(drawn) == {"light", "heavy"}
    assert drawn == [Path(row["run.hardware"]).stem for row in rows["second"]]
    weights = {(name, row["test"]): row["fz_over_mg.mean"] for name, row in zip(drawn, rows["first"], strict=True)}
    for (name, _), weight in weights.items():
        assert weight == pytest.approx({"light": 0.95, "heavy": 1.05}[name], abs=0.03)
    assert main([*words[:-1], "-o", "third", "--against", "first", "--", "zmp"]) == EXIT_USAGE


CONTROLLER = """
import numpy as np
from bipedsim.sim import Command
from score_gains import WRONG_AT


class Mine:
    def __init__(self, robot, params, dt):
        self.nu = robot.nu

    def set_velocity(self, vx, vy, wz):
        pass

    def reset(self, observation):
        pass

    def update(self, observation):
        if observation.t > WRONG_AT:
            {}["gain"]
        return Command(np.zeros(self.nu))
"""


def test_an_edited_controller_gets_no_old_score(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(SHORT)
    (tmp_path / "score_mine.py").write_text(CONTROLLER)
    gains = tmp_path / "score_gains.py"

    def scored() -> subprocess.CompletedProcess[str]:
        words = ["score", "score_mine:Mine", "--battery", "short.yaml", "--jobs", "2", "-o", "out"]
        command = [sys.executable, "-m", "bipedsim.cli.main", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    gains.write_text("WRONG_AT = 0.2\n")
    done = scored()
    assert done.returncode == EXIT_FAILED
    line = CONTROLLER.splitlines().index('            {}["gain"]') + 1
    assert done.stdout.count("KeyError") == 1, "one line for all trials"
    assert f"score_mine.py:{line}" in done.stdout
    assert "6 trials (0, 1, 2, 3, 4, 5)" in done.stdout
    gains.write_text("WRONG_AT = 9.0\n")
    done = scored()
    assert done.returncode == EXIT_USAGE
    assert "score_gains" in done.stderr
    shutil.rmtree(tmp_path / "out")
    assert scored().returncode == 0
    assert "6 of 6 trials are there already" in scored().stdout
