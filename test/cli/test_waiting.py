"""Who waits at a terminal sees for what; a pipe and --json see nothing of it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from marks import sampled


def seen_at_a_terminal(folder: Path, columns: int, *arguments: str) -> str:
    """Return what a command writes on stderr, which is a terminal of this width; 0 is one that does not say."""
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
    run = ["run", "--duration", "0.2", "--plot", "a.png", "--animate", "b.gif"]
    seen = seen_at_a_terminal(tmp_path, columns, *run)
    parts = ["loading biped14 ...\r", "/200 [", "drawing a.png ...\r", "drawing b.gif ...\r", "/5 ["]
    places = [seen.find(part) for part in parts]
    assert -1 not in places, seen
    assert places == sorted(places)
    assert seen.count("drawing") == 2
    assert seen_at_a_terminal(tmp_path, columns, "run", "--duration", "0.2", "--json") == ""


@pytest.mark.long
def test_a_pipe_sees_nothing_of_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bipedsim.cli.main", "run", "--duration", "0.1", "--plot", "a.png"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\r" not in done.stdout
    assert "drawing" not in done.stdout
