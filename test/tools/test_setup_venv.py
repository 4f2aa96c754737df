"""The set-up of .venv: pins, package sources, and discovery by ROS tools."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from paths import ROOT

WISHES = """
import setuptools
from distutils.core import run_setup
its = run_setup("setup.py", stop_after="init")
extras = (one for extra, them in its.extras_require.items() if extra not in ("bench", "kilted") for one in them)
print(*its.install_requires, *extras, sep="\\n")
"""


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_venv", ROOT / "tools" / "setup_venv.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_that_setup_py_asks_for_is_pinned() -> None:
    """An unpinned package would be installed in its newest version."""
    out = subprocess.run([sys.executable, "-c", WISHES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wishes = {re.split(r"[^\w.-]", line)[0].lower() for line in out.split("\n") if line}
    lines = (ROOT / "requirements" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = {line.split("==")[0] for line in lines}
    assert len(wishes) > 20
    assert wishes - pins == set()


def test_uv_installs_from_where_pip_would(tool: ModuleType) -> None:
    listing = "\n".join(
        [
            ":env:.find-links='/media/wheels /srv/wheels'",
            ":env:.no-input='1'",
            "global.index-url='https://one.example/simple'",
            "global.trusted-host='one.example'",
            "install.index-url='https://two.example/simple'",
            "freeze.timeout='10'",
        ]
    )
    settings = tool.settings_of_uv(listing, {"PATH": "/usr/bin"})
    assert settings == {
        "PATH": "/usr/bin",
        "UV_DEFAULT_INDEX": "https://two.example/simple",  # the command's own section counts more
        "UV_FIND_LINKS": "/media/wheels,/srv/wheels",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "one.example",
    }
    of_uv = {"UV_DEFAULT_INDEX": "https://three.example/simple"}
    assert tool.settings_of_uv(listing, of_uv)["UV_DEFAULT_INDEX"] == "https://three.example/simple"


def test_a_setting_of_pip_that_uv_would_not_follow_leaves_the_work_to_pip(tool: ModuleType) -> None:
    assert tool.settings_of_uv("install.require-hashes='true'", {}) is None


def test_ros_tools_find_files_in_folders_that_are_no_links(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ros2 launch` searches share/bipedsim, and does not follow linked folders."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sim_node").touch()
    share = tmp_path / "share" / "bipedsim"
    share.mkdir(parents=True)
    (share / "launch").symlink_to(ROOT / "launch")  # as an older set-up left it
    monkeypatch.setattr(tool, "VENV", tmp_path)
    for _ in range(2):  # a second set-up repairs, and does not fail because of the first
        tool.link_ros_files()
        assert not (share / "launch").is_symlink()
        assert (share / "launch" / "sim.launch.py").read_bytes() == (ROOT / "launch" / "sim.launch.py").read_bytes()
        assert (share / "config" / "sim.yaml").exists()
        assert (tmp_path / "lib" / "bipedsim" / "sim_node").resolve() == tmp_path / "bin" / "sim_node"
    assert sorted(path.name for path in (ROOT / "launch").iterdir()) == sorted(p.name for p in share.glob("launch/*"))


def test_bytecode_is_kept_where_the_environment_says_not_to(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every process compiles every library it imports, most of the time that it takes to start."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = ["make", "-f", str(ROOT / "Makefile"), "--eval", "shown:; @env", "shown"]
    shown = subprocess.run(command, capture_output=True, check=True)
    assert b"PATH=" in shown.stdout
    assert b"PYTHONDONTWRITEBYTECODE" not in shown.stdout
    (tmp_path / "one.py").touch()
    monkeypatch.setattr(tool, "environment", lambda of=tool.environment: {**of(), "PYTHONPATH": str(tmp_path)})
    monkeypatch.setattr(tool, "PYTHON", sys.executable)
    monkeypatch.setattr(tool, "LOG", tmp_path / "setup.log")
    monkeypatch.setattr(tool, "IMPORTED", ("one",))
    tool.compile_imports()
    assert list((tmp_path / "__pycache__").glob("one.*.pyc"))


def test_what_is_imported_ahead_is_there(tool: ModuleType) -> None:
    assert all(importlib.util.find_spec(name) for name in tool.IMPORTED)
