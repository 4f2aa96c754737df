"""The commands of the pages on force plates, formats and tools, as they are printed there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from paths import ROOT

from bipedsim.cli.main import main

PAGES = ("force_plates", "lab_formats", "tools")


def printed(page: str) -> list[list[str]]:
    """Return the commands on lines of their own, without those that start nodes."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"^ {4}bipedsim (.+)$", text, re.MULTILINE)]


@pytest.mark.slow
def test_commands_of_the_pages_run_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder contains the files that the pages use: runs/first and runs/walk, and a laboratory's walking.c3d."""
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--scenario", "walk", "--duration", "5", "--output", "first.npz"]) == 0
    assert main(["export", "first.npz", "-o", "walking.c3d"]) == 0
    for name in ("first", "walk"):
        assert main(["export", "first.npz", "-o", f"runs/{name}/bag/bag_0.mcap"]) == 0
    commands = [command for page in PAGES for command in printed(page)]
    assert len(commands) >= 7
    for command in commands:
        # The test does not need the full simulated time.
        short = ["--duration", "1.9"] if command[0] == "run" else []
        assert main([*command, *short]) == 0, command
        for file in re.findall(r"^wrote (.+)$", capsys.readouterr().out, re.MULTILINE):
            assert Path(file).stat().st_size > 0, command


def test_the_grid_prints_the_figures_of_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "force_plates.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`bipedsim (plates --grid [^`]+)`", text)
    wanted = re.findall(r"^\| (\d+) N \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(wanted) == 3
    assert main(shlex.split(command)) == 0
    out = capsys.readouterr().out
    rows = [re.findall(r"[\d.]+", line) for line in out.splitlines() if " N " in line and line.endswith("mm")]
    assert [(row[0], f"{float(row[4]):.3f}", f"{float(row[5]):.3f}") for row in rows] == wanted
