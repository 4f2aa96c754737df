"""docs/python.md: every example runs, in order, and prints what stands behind it."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

import bipedsim

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_example_runs_and_prints_what_stands_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    monkeypatch.setitem(sys.modules, "page", type(sys)("page"))
    assert len(BLOCKS) >= 10
    for number, block in enumerate(BLOCKS, start=1):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, f"docs/python.md, example {number}", "exec"), names)
        said = re.findall(r"^ *print\(.*\)  # (.*)$", block, re.MULTILINE)
        assert len(said) == len(re.findall(r"\bprint\(", block)), f"example {number}: say what it prints"
        assert printed.getvalue().splitlines() == said, f"example {number}"


def test_all_names_are_there_and_documented() -> None:
    for name in bipedsim.__all__:
        assert getattr(bipedsim, name) is not None
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in documents)
    assert [name for name in bipedsim.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_importing_costs_nothing() -> None:
    heavy = ("numpy", "numba", "pinocchio", "yaml", "bipedsim.errors")
    code = f"import sys, bipedsim; print(*(name for name in {heavy} if name in sys.modules))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == ""
