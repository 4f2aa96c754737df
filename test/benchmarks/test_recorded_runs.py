"""The tool that shows whether a change has an effect on the physics must detect one bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT

from bipedsim.contact import CONTACT_MODELS

TOOL = ROOT / "benchmarks" / "recorded_runs.py"


def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(path: Path, **arrays: np.ndarray) -> None:
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **arrays)


@pytest.mark.slow
def test_a_run_is_repeated_to_the_bit(tmp_path: Path) -> None:
    for folder in ("before", "after"):
        made = call("--output", tmp_path / folder, "--only", "squat_one_step")
        assert made.returncode == 0, made.stderr
    same = call("--compare", tmp_path / "before", tmp_path / "after")
    assert (same.returncode, same.stdout) == (0, "all runs are the same, to the bit\n")
    # A tick of the last bit, somewhere in the middle.
    with np.load(tmp_path / "after" / "squat_one_step.npz") as run:
        arrays = dict(run)
    arrays["joint_position"][1000, 3] = np.nextafter(arrays["joint_position"][1000, 3], 1.0)
    write(tmp_path / "after" / "squat_one_step.npz", **arrays)
    other = call("--compare", tmp_path / "before", tmp_path / "after")
    assert (other.returncode, other.stdout) == (1, "squat_one_step.npz: joint_position\n")


def test_what_is_missing_or_of_another_shape_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a" / "one.npz", t=np.arange(3.0), q=np.zeros(3))
    write(tmp_path / "b" / "one.npz", t=np.arange(3.0).reshape(3, 1), q=np.zeros(3), new=np.zeros(1))
    write(tmp_path / "b" / "two.npz", t=np.zeros(1))
    found = call("--compare", tmp_path / "a", tmp_path / "b")
    assert found.returncode == 1
    assert found.stdout == f"one.npz: new, t\ntwo.npz: not in {tmp_path / 'a'}\n"


def test_another_version_of_the_code_is_no_difference_and_another_seed_is_one(tmp_path: Path) -> None:
    for folder, code, seed in (("a", "1", 0), ("b", "2", 0), ("c", "1", 1)):
        header = {"run": {"code": code, "content": {"bipedsim": code, "robot": "x"}, "seed": seed}}
        write(
            tmp_path / folder / "one.npz", t=np.zeros(1), header=np.array(json.dumps(header)), header_crc=np.array(seed)
        )
    assert call("--compare", tmp_path / "a", tmp_path / "b").returncode == 0
    other = call("--compare", tmp_path / "a", tmp_path / "c")
    assert (other.returncode, other.stdout) == (1, "one.npz: header\n")


def test_a_folder_without_runs_is_an_error_and_not_agreement(tmp_path: Path) -> None:
    refused = call("--compare", tmp_path, tmp_path)
    assert refused.returncode == 2
    assert "holds no run" in refused.stderr


@pytest.mark.parametrize("word", [*CONTACT_MODELS, "biped14", "talos", "g1", "walk", "stairs", "jump", "realistic"])
def test_the_runs_reach_it(word: str) -> None:
    text = TOOL.read_text(encoding="utf-8")
    table = text[text.index("RUNS = {") : text.index("\n}\n")]
    # Runs without an explicit model use one_step.
    assert f" {word} " in table.replace('"', " ")
