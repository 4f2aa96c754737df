"""Starting a node by its name, so that it can be ended before it has imported what it needs.

``python -m bipedsim_ros.nodes.start sim_node``, and what ``ros2 run`` starts. Nothing heavy is imported before signals
have an answer: an interrupt would leave a traceback, or an error of the extension module that it came upon.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path

PARENT = "BIPEDSIM_PARENT"
"""Variable with the process without which a node is to end: nobody else would end the nodes of a bring-up."""
ENDING = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a node in order."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> int:
    """Run the node that is named by the command, or by its first argument; return its exit code."""
    for number in ENDING:
        signal.signal(number, lambda _number, _frame: os._exit(0))
    # What came while Python started is answered now, where whoever started this has held it back.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    if not end_with_parent():
        return 0
    if Path(sys.argv[0]).suffix == ".py":
        del sys.argv[0]
    return int(importlib.import_module(module_of(Path(sys.argv[0]).name)).main())


def end_with_parent() -> bool:
    """Have this process be interrupted when that of :data:`PARENT` ends; return False if it has ended already."""
    parent = os.environ.get(PARENT)
    if not parent or sys.platform != "linux":
        return True
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    return os.getppid() == int(parent)


def module_of(name: str) -> str:
    """Return the module of a node, one of ours or that of an interface."""
    if importlib.util.find_spec(f"bipedsim_ros.nodes.{name}") is not None:
        return f"bipedsim_ros.nodes.{name}"
    return str(importlib.import_module("bipedsim_ros.interfaces").node_module(name))


if __name__ == "__main__":
    sys.exit(main())
