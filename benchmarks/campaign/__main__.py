"""Robustness of nodes and files on a large scale: `python benchmarks/campaign --help`.

Every part tries many hostile inputs from a seed, checks each result, and stores the results as JSON and Markdown. The
exit code is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

PARTS = {
    "messages": "hostile messages and service calls, over DDS, to every node that listens",
    "processes": "nodes of a bring-up killed, stopped and continued; a full disk; a folder that is read-only",
    "files": "every kind of file that is read, damaged and cut",
    "restarts": "each node of a running robot ended, killed, or stopped and started again, in each clock",
    "live": "a long run in real time: gains that change, nodes that restart, topics that are echoed",
    "lock_step": "the same run in lock_step again and again, beside a busy machine",
}


def main() -> int:
    """Run one part; return its exit code: 0, 1 if it found a defect, or 2 after a wrong argument."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/campaign", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    for name, text in PARTS.items():
        part = parts.add_parser(name, help=text, description=f"{name}: {text}")
        if name not in sys.argv[1:2]:
            # The program imports only the requested parts: they need ROS, or compile kernels.
            continue
        if not Path(__file__).with_name(f"{name}.py").exists():
            parser.exit(2, f"benchmarks/campaign: there is no {name}.py yet\n")
        module = importlib.import_module(name)
        part.add_argument("--seed", type=int, default=0, help="of everything that is drawn (default: %(default)s)")
        part.add_argument("--quick", action="store_true", help="a few of each kind, to see that it works")
        part.add_argument("--output", type=Path, metavar="FILE", help="write JSON, and Markdown beside it")
        module.add_arguments(part)
        part.set_defaults(main=module.main)
    args = parser.parse_args()
    return int(args.main(args))


if __name__ == "__main__":
    sys.exit(main())
