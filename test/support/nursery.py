"""Nodes as forks of one process with all imports, so that a node costs a test no import time.

Each fork runs the node's own ``main`` with its own environment, arguments, DDS participant and exit code. The parent
process is this file as a program; it forks for every line that it reads.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from bipedsim_ros.nodes.start import module_of

NODES = ("sim_node", "controller_node", "commander_node", "recorder_node")


class Nursery:
    """The process that forks, and the exit codes of its children."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ended: dict[int, int] = {}

    def start(
        self, module: str, arguments: Sequence[str], env: Mapping[str, str], log: Path, errors: Path | None = None
    ) -> Child:
        """Return a child that runs the node ``module``, its output in the file ``log``, or its errors in another."""
        wish = {"module": module, "arguments": list(arguments), "env": dict(env)}
        line = json.dumps({**wish, "log": str(log), "errors": str(errors or log)})
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        while not isinstance(pid := self._read(), int):
            pass
        return Child(self, pid)

    def listen(self, timeout: float) -> None:
        """Take note of children that have ended, waiting for one ``timeout`` [s] at most."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            if selector.select(timeout):
                self._read()

    @property
    def _pipe(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _read(self) -> int | None:
        """Read one line: a child that was started, which is returned, or one that has ended."""
        words = [int(word) for word in self._pipe.readline().split()]
        if not words:
            raise RuntimeError("the process that starts nodes has ended; its message is above")
        if len(words) == 1:
            return words[0]
        self.ended[words[0]] = words[1]
        return None


nursery = cache(Nursery)
"""The one of this process."""


class Child:
    """A forked node, with the interface of :class:`subprocess.Popen` that tests use."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid

    def poll(self) -> int | None:
        """Return the exit code, negative after a signal, or None while it runs."""
        self._nursery.listen(0.0)
        return self._nursery.ended.get(self.pid)

    def wait(self, timeout: float) -> int:
        """Wait for the end; return the exit code."""
        end = time.monotonic() + timeout
        while self.pid not in self._nursery.ended:
            left = end - time.monotonic()
            if left <= 0.0:
                raise subprocess.TimeoutExpired(f"node {self.pid}", timeout)
            self._nursery.listen(left)
        return self._nursery.ended[self.pid]

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _live(wish: dict[str, Any]) -> NoReturn:
    """Be the node."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(wish["env"])
    log, errors = (os.open(wish[name], os.O_WRONLY | os.O_APPEND) for name in ("log", "errors"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    for opened, standard in ((nothing, 0), (log, 1), (errors, 2)):
        os.dup2(opened, standard)
        os.close(opened)
    module = importlib.import_module(module_of(wish["module"]))
    sys.argv = [str(module.__file__), *wish["arguments"]]
    code: int = module.main()
    # A normal exit would copy the memory of the parent piece by piece: 0.14 s of a core.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _serve() -> NoReturn:
    """Fork for every line of standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in NODES:
        importlib.import_module(f"bipedsim_ros.nodes.{name}")
    from bipedsim.model import load_robot
    from bipedsim.sim import Simulator

    Simulator(load_robot("biped14")).warm_up()
    # A child would copy each page that it looks through for garbage, when it ends at the latest: 0.3 s of a core.
    gc.collect()
    gc.freeze()
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == 0:
                    line = sys.stdin.readline()
                    if not line:
                        # The test process was killed, so this process ends its nodes.
                        for child in filter(None, (known.data for known in selector.get_map().values())):
                            os.kill(child, signal.SIGKILL)
                        sys.exit()
                    sys.stdout.flush()
                    pid = os.fork()
                    if pid == 0:
                        _live(json.loads(line))
                    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
                    print(pid, flush=True)
                else:
                    _, status = os.waitpid(key.data, 0)
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    print(key.data, os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
