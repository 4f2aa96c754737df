"""Start a node by its name, so that it can be ended before it has imported its modules.

Use ``python -m bipedsim_ros.nodes.start sim_node``; ``ros2 run`` starts this module too. Signal handlers are installed
before any large import: otherwise an interrupt would cause a traceback, or an error in an extension module.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path

PARENT = "BIPEDSIM_PARENT"
"""Variable with the id of the parent process; the node ends when this process ends."""
RECORDING = "recording"
"""Begin of the line on stdout with which recorder_node reports that it records."""
ENDING = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a node cleanly."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> int:
    """Run the node named by the command or by its first argument; return its exit code."""
    for number in ENDING:
        signal.signal(number, lambda _number, _frame: os._exit(0))
    # The parent process may have blocked signals during the start of Python. They are handled now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    if not end_with_parent():
        return 0
    if Path(sys.argv[0]).suffix == ".py":
        del sys.argv[0]
    return int(importlib.import_module(module_of(Path(sys.argv[0]).name)).main())


def end_with_parent() -> bool:
    """Make the kernel interrupt this process when the process in :data:`PARENT` ends; return False if it has ended."""
    parent = os.environ.get(PARENT)
    if not parent or sys.platform != "linux":
        return True
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    return os.getppid() == int(parent)


def module_of(name: str) -> str:
    """Return the module of a node of this package or of a vendor bridge."""
    if importlib.util.find_spec(f"bipedsim_ros.nodes.{name}") is not None:
        return f"bipedsim_ros.nodes.{name}"
    return str(importlib.import_module("bipedsim_ros.interfaces").node_module(name))


if __name__ == "__main__":
    sys.exit(main())
