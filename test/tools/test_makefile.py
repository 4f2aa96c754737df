"""Actions of the Makefile before tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from paths import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def planned(target: str, kernels: Path) -> str:
    """Return the commands that make would run for a target, with a cache in a folder."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "PYTEST_ARGS")}
    env["NUMBA_CACHE_DIR"] = str(kernels)
    return subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    ).stdout


def test_kernels_are_compiled_ahead_where_the_cache_is_empty(tmp_path: Path) -> None:
    mark = tmp_path / "warm"
    for target in ("test", "test-long", "test-all"):
        assert f"make --no-print-directory {mark}\n" in planned(target, tmp_path)
    assert "bipedsim warmup" in planned(str(mark), tmp_path)
    mark.touch()
    assert "bipedsim warmup" not in planned(str(mark), tmp_path)
    mark.unlink()
    assert "bipedsim warmup" in planned(str(mark), tmp_path), "emptied, however old the sources are"


def test_hooks_run_commands_of_make_lint(tmp_path: Path) -> None:
    """All of them except import-linter, which takes long; codespell is not part of ``make lint``."""
    lines = planned("lint", tmp_path).splitlines()
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    hooks = {hook["entry"] for hook in repository["hooks"]} - {"codespell"}
    assert hooks == {line for line in lines if line.startswith(".venv/bin/") and "lint-imports" not in line}


def test_workflows_call_targets_that_exist() -> None:
    called = set[str]()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        called |= set(re.findall(r"run: make ([a-z-]+)", path.read_text(encoding="utf-8")))
    assert {"lint", "test", "test-long", "docs", "wheel"} <= called
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert called <= targets


def test_bounds_are_checked_with_kernels_of_their_own(tmp_path: Path) -> None:
    lines = planned("test-bounds", tmp_path).replace("\\\n", " ").splitlines()
    checked = [line for line in lines if "bipedsim warmup" in line or "-m pytest" in line]
    assert len(checked) == 2
    for line in checked:
        assert line.startswith("NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=")
        assert str(tmp_path) not in line
