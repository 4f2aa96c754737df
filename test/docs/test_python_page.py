"""Python pages: every example runs, in order, and prints the documented output."""

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

PAGES = {"python.md": 10, "gym.md": 2}
"""Pages, and how many examples each has at least."""


@pytest.mark.parametrize("page", PAGES)
def test_every_example_runs_and_prints_what_stands_behind_it(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page == "gym.md":
        pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install bipedsim[gym]")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    monkeypatch.setitem(sys.modules, "page", type(sys)("page"))
    assert len(blocks) >= PAGES[page]
    for number, block in enumerate(blocks, start=1):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, f"docs/{page}, example {number}", "exec"), names)
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
