"""The tutorials and how-to guides: every block runs in the order of its page, in an empty folder."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from guide_support import Block, Reader, Typed, blocks, commands
from paths import ROOT

GUIDES = sorted(
    path
    for folder in ("tutorials", "howto")
    for path in (ROOT / "docs" / folder).glob("*.md")
    if path.stem not in ("index", "install")
)
NEEDS = {
    "crocoddyl": ("crocoddyl",),
    "placo": ("placo",),
    "policy": ("gymnasium", "onnx", "onnxruntime"),
    "real_robot": ("mujoco",),
    "trials": ("distributed", "pyarrow"),
}
"""Packages that a page asks its reader to install."""


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def typed(path: Path) -> list[Typed]:
    """Return all commands of a page."""
    return [command for block in blocks(text_of(path)) if not block.language for command in commands(block.text)]


def has_nodes(path: Path) -> bool:
    """Return whether a page starts nodes."""
    return any(command.is_node for command in typed(path) if not command.unavailable)


SLOW = {"force_plates", "height_map", "ci", "compare_controllers", "tune"}
"""Pages without nodes that take 20 to 30 s of a core; CI has no time for them."""


def page(path: Path) -> object:
    marks = [pytest.mark.slow] if has_nodes(path) or path.stem in SLOW else [pytest.mark.long]
    marks += [pytest.mark.ros] if has_nodes(path) else []
    return pytest.param(path, id=f"{path.parent.name}/{path.stem}", marks=marks)


@pytest.mark.parametrize("path", [page(path) for path in GUIDES])
def test_a_guide_works_as_printed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for package in NEEDS.get(path.stem, ()):
        pytest.importorskip(package, reason=f"{package} is not installed; {path.name} says how")
    env = {**os.environ}
    if has_nodes(path):
        if importlib.util.find_spec("rclpy") is None:
            pytest.skip("ROS 2 (rclpy) is not installed")
        env = request.getfixturevalue("ros_env")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.syspath_prepend(str(tmp_path))
    for block in blocks(text_of(path)):
        monkeypatch.delitem(sys.modules, Path(block.name).stem, raising=False)
    Reader(text_of(path), tmp_path, env).follow()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=f"{path.stem}: {command.line}")
        for path in GUIDES
        for command in typed(path)
        if command.unavailable
    ],
)
def test_a_command_that_cannot_run_here(command: Typed) -> None:
    pytest.skip(command.unavailable)


def test_blocks_are_found_in_order() -> None:
    text = (
        "Save it as `a.py`:\n\n```python\nx\n```\n\nThen:\n\n    bipedsim run\n    ros2 topic list\n\n```text\ny\n```\n"
    )
    assert list(blocks(text)) == [
        Block("a.py", "python", "x\n"),
        Block("", "", "    bipedsim run\n    ros2 topic list\n"),
        Block("", "text", "y\n"),
    ]


def test_every_guide_has_a_block_that_runs() -> None:
    assert len(GUIDES) >= 22
    for path in GUIDES:
        found = [block for block in blocks(text_of(path)) if block.language != "text"]
        assert any(block.language or any(not c.unavailable for c in commands(block.text)) for block in found), path
