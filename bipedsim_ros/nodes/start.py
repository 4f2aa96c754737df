"""Starting a node by its name, so that it can be ended before it has imported what it needs.

``python -m bipedsim_ros.nodes.start sim_node``, and what ``ros2 run`` starts. Nothing heavy is imported before signals
have an answer: an interrupt would leave a traceback, or an error of the extension module that it came upon.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path

PARENT = "BIPEDSIM_PARENT"
"""Variable with the process without which a node is to end: nobody else would end the nodes of a bring-up."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> int:
    """Run the node that is named by the command, or by its first argument; return its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: os._exit(0))
    parent = os.environ.get(PARENT)
    if parent and sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != int(parent):
            return 0
    if Path(sys.argv[0]).suffix == ".py":
        del sys.argv[0]
    return int(importlib.import_module(f"bipedsim_ros.nodes.{Path(sys.argv[0]).name}").main())


if __name__ == "__main__":
    sys.exit(main())
