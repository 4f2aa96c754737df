"""Read and run the blocks of a guide in the order of its page: files to save, Python, and commands."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bipedsim.cli.main import main

PATIENCE_S = 240.0
"""Time after which a command counts as hung [s]."""
INTERRUPTED = (130, -signal.SIGINT)
"""Exit codes of a command after Ctrl-C, in addition to 0."""
QUIET_S = 10.0
"""Time without output after which a node counts as running [s]."""
SHORTER = {
    "push-map": ("{directions: 1, tolerance: 0.5}",),
    "up": ("--real-time-factor", "0.3", "--params-file", str(Path(__file__).with_name("guide_params.yaml"))),
}
"""Options that the test adds to a subcommand: less to compute, and slow enough for a busy machine."""
NODES = ("up", "control", "teleop", "check-robot")
"""Subcommands that take part in a ROS graph."""
BLOCK = re.compile(
    r"(?P<intro>[^\n]*)\n\n?(?:```(?P<language>\w*)\n(?P<fenced>.*?)^```|(?P<indented>(?: {4}\S[^\n]*\n)+))",
    re.MULTILINE | re.DOTALL,
)
UNAVAILABLE = {
    "git": "the repository is already here",
    "cd": "the test starts in the right folder",
    "mkdir": "the test starts in the right folder",
    ".": "the environment of the tests is already active",
    "make setup": "the environment of the tests is already installed",
    "python -m pip": "the environment of the tests is already installed",
    "bipedsim score": "it runs 278 trials; test/studies/score runs smaller batteries",
    "bipedsim teleop": "it reads keys from a terminal",
    "ros2": "the command ros2 comes with an installation of ROS 2, and no registry has it",
}
"""Commands that do not run here by their first words, with the reason."""


@dataclass(frozen=True)
class Block:
    """One block of a page.

    Attributes:
        name: File in which the reader saves it; empty if there is none.
        language: Language of a fenced block; empty for commands.
        text: Content.
    """

    name: str
    language: str
    text: str


@dataclass(frozen=True)
class Typed:
    """One command of a block.

    Attributes:
        words: Program and arguments.
        terminal: Number of the terminal, from 1.
        falls: Whether the page says that the robot falls.
        differs: Whether the page says that the command finds a difference, and ends with exit code 1.
        stopped: Whether the page says to press Ctrl-C.
    """

    words: tuple[str, ...]
    terminal: int
    falls: bool
    differs: bool
    stopped: bool

    @property
    def line(self) -> str:
        """The command as a line."""
        return shlex.join(self.words)

    @property
    def unavailable(self) -> str:
        """The reason why the command does not run here; empty if it does."""
        first = [reason for start, reason in UNAVAILABLE.items() if f"{self.line} ".startswith(f"{start} ")]
        return first[0] if first else ""

    @property
    def is_node(self) -> bool:
        """Whether the command takes part in a ROS graph."""
        if self.words[0] == "bipedsim":
            return self.words[1] in NODES
        return self.words[0] == "python3" or "--ros-args" in self.words


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    for found in BLOCK.finditer(page):
        name = re.search(r"`([\w./]+\.\w+)`[^`]*:$", found["intro"])
        if found["indented"]:
            yield Block("", "", found["indented"])
        else:
            yield Block(name[1] if name else "", found["language"], found["fenced"])


def commands(text: str) -> list[Typed]:
    """Return the commands of a block."""
    found = []
    for line in text.splitlines():
        command, _, comment = line.strip().partition("  # ")
        words = shlex.split(command)
        if words == ["make", "demo"]:
            words = shlex.split("bipedsim up --demo")
        terminal = re.search(r"terminal (\d)", comment)
        stopped = "Ctrl-C" in comment
        found.append(
            Typed(tuple(words), int(terminal[1]) if terminal else 1, "falls" in comment, "differs" in comment, stopped)
        )
    return found


class Reader:
    """Follow the instructions of a page in a folder.

    Args:
        page: Text of the page.
        folder: Empty folder, the current one.
        env: Environment of the commands that run in processes of their own.
    """

    def __init__(self, page: str, folder: Path, env: Mapping[str, str]) -> None:
        self._page, self._folder = page, folder
        self._env = {**env, "PYTHONUNBUFFERED": "1", "MPLBACKEND": "Agg", "BROWSER": "true"}
        self._names: dict[str, object] = {"__name__": "page"}

    def follow(self) -> None:
        """Save, run and type all blocks of the page."""
        for block in blocks(self._page):
            if block.name:
                path = self._folder / block.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text.replace("repeat: 1000", "repeat: 8"), encoding="utf-8")
                if path.suffix == ".yaml":
                    assert yaml.safe_load(block.text)
            elif block.language == "python":
                self._run(block.text)
            elif not block.language:
                self._type(commands(block.text))
            else:
                assert block.language == "text", f"a block of {block.language} that nobody runs: name its file"

    def _run(self, code: str) -> None:
        """Run Python, and compare the output with the comments behind `print`."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "page", "exec"), self._names)
        expected = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
        assert len(expected) == len(re.findall(r"\bprint\(", code))
        assert printed.getvalue().splitlines() == expected

    def _type(self, typed: Sequence[Typed]) -> None:
        """Type commands: each terminal but the last goes on while those after it start."""
        typed = [command for command in typed if not command.unavailable]
        last = max((command.terminal for command in typed), default=1)
        with contextlib.ExitStack() as stack:
            running = []
            for command in typed:
                if command.terminal < last:
                    process = stack.enter_context(self._started(command))
                    running.append((command, process))
                    self._settle(command, process)
                else:
                    self._one(command)
            for command, process in running:
                self._end(command, process)

    def _settle(self, command: Typed, process: subprocess.Popen[bytes]) -> None:
        """Wait until a command that goes on prints an address, or prints nothing for a while."""
        size, quiet_since, end = 0, time.monotonic(), time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < end:
            output = self._output(command)
            if "http://" in output:
                time.sleep(3.0)
                return
            if len(output) != size:
                size, quiet_since = len(output), time.monotonic()
            if time.monotonic() - quiet_since > (QUIET_S if size else 3.0 * QUIET_S):
                return
            time.sleep(0.2)

    def _one(self, command: Typed) -> None:
        """Type a command and wait for its end."""
        if command.words[0] == "bipedsim" and not command.is_node and not command.stopped:
            code = main(list(self._checked(command)[1:]))
            assert code == self._expected(command), command.line
        else:
            # A robot may still be on its way to rest, so a check of it is repeated.
            attempts = 3 if "check-robot" in command.words else 1
            for attempt in range(attempts):
                with self._started(command) as process:
                    if command.stopped:
                        self._settle(command, process)
                    if attempt == attempts - 1:
                        self._end(command, process)
                    elif process.wait(PATIENCE_S) == self._expected(command):
                        break
        for option in ("-o", "--output", "--plot", "--record", "--html"):
            if option in command.words:
                assert (self._folder / command.words[command.words.index(option) + 1]).exists(), command.line

    @staticmethod
    def _checked(command: Typed) -> tuple[str, ...]:
        """Return the command with the options that suit a test; a fall becomes an exit code."""
        words = command.words
        if words[0] != "bipedsim":
            return words
        added = list(SHORTER.get(words[1], ()))
        if {"--clock", "--real-time-factor"} & set(words):
            added = []
        if words[1] in ("run", "up") and "--fail-on-fall" not in words:
            added.append("--fail-on-fall")
        return (*words, *added)

    @staticmethod
    def _expected(command: Typed) -> int:
        """Return the exit code that the page announces."""
        return 4 if command.falls else int(command.differs)

    @contextlib.contextmanager
    def _started(self, command: Typed) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command in a process of its own, which does not outlive the block."""
        words = list(self._checked(command))
        if words[0] == "bipedsim":
            words[:1] = [sys.executable, "-m", "bipedsim.cli.main"]
        elif words[0] in ("python", "python3"):
            words[0] = sys.executable
        elif words[0] == "recorder_node":
            words[:1] = [sys.executable, "-m", "bipedsim_ros.nodes.recorder_node"]
        with self._log(command).open("wb") as output:
            process = subprocess.Popen(
                words, cwd=self._folder, env=self._env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(PATIENCE_S)

    def _end(self, command: Typed, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a process, or press Ctrl-C if the page requires it."""
        if command.stopped and process.poll() is None:
            process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE_S)
        allowed = {self._expected(command), *(INTERRUPTED if command.stopped else ())}
        assert code in allowed, f"{command.line}\n{self._output(command)}"

    def _log(self, command: Typed) -> Path:
        """Return the file with the output of a command."""
        return self._folder / f"output_{command.terminal}.txt"

    def _output(self, command: Typed) -> str:
        """Return the output of a command so far."""
        return self._log(command).read_text(encoding="utf-8", errors="replace")
