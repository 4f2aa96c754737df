"""A command at a terminal shows its progress. With a pipe or --json it does not."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from marks import sampled

from bipedsim.cli import waiting
from bipedsim.config import progress


def seen_at_a_terminal(folder: Path, columns: int, *arguments: str) -> str:
    """Return the stderr output of a command at a terminal of this width; 0 is a terminal without a known width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [sys.executable, "-m", "bipedsim.cli.main", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                some = os.read(ours, 65536)
            except OSError:
                break
            if not some:
                break
            seen += some
    os.close(ours)
    assert process.returncode == 0, seen
    return seen.decode()


@pytest.mark.long
@pytest.mark.parametrize("columns", sampled([0, 120]))
def test_what_takes_long_is_seen_at_a_terminal(tmp_path: Path, columns: int) -> None:
    run = ["run", "--duration", "0.2", "--plot", "a.png"]
    seen = seen_at_a_terminal(tmp_path, columns, *run)
    parts = ["loading biped14 ...\r", "/200 [", "drawing a.png ...\r"]
    places = [seen.find(part) for part in parts]
    assert -1 not in places, seen
    assert places == sorted(places)
    assert seen.count("drawing") == 1
    assert seen_at_a_terminal(tmp_path, columns, "run", "--duration", "0.2", "--json") == ""


def test_a_pipe_gets_lines_at_the_interval_and_no_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.ProgressBar(total=100, desc="rows", unit="row", mininterval=0.0, miniters=1) as bar:
        for _ in range(100):
            now[0] += 1.0
            bar.update()
            bar.set_postfix_str("2 failed")
    lines = capsys.readouterr().err.splitlines()
    assert [int(n) for line in lines for n in re.findall(r"(\d+) of 100", line)] == list(range(10, 101, 10))
    assert all(line.isprintable() for line in lines)


def test_a_bar_that_is_switched_off_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    assert list(progress.ProgressBar(range(3), desc="rows", disable=True)) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_a_long_operation_is_named_once_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with waiting.waiting("reading a.urdf"):
        pass
    assert capsys.readouterr().err == "", "short operations print nothing"
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    with waiting.waiting("reading a.urdf", shown=False):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
    with waiting.waiting("reading a.urdf"):
        time.sleep(0.2)
    assert "reading a.urdf" in capsys.readouterr().err


@pytest.mark.long
def test_a_pipe_sees_nothing_of_it(tmp_path: Path) -> None:
    # However slow the machine is, the drawing is no long operation here.
    code = "import sys; from bipedsim.cli import main, waiting; waiting.PATIENCE = 1e6; sys.exit(main.main())"
    command = [sys.executable, "-c", code, "run", "--duration", "0.1", "--plot", "a.png"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\r" not in done.stdout
    assert "drawing" not in done.stdout
