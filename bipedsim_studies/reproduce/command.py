"""Implement the command ``bipedsim reproduce``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bipedsim.config import to_json
from bipedsim.errors import EXIT_FAILED
from bipedsim_studies.reproduce.papers import PAPERS, get_paper


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("paper", help=", ".join(PAPERS))
    parser.add_argument("case", nargs="*", help="cases, such as fig6 (default: all)")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="folder of the figures (default: runs/reproduce/PAPER)"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON only")


def main(args: argparse.Namespace) -> int:
    """Run the cases and print their checks; return 1 if a check fails."""
    from bipedsim_studies.reproduce.common import reproduce

    output = args.output or Path("runs", "reproduce", args.paper)
    progress = not args.json
    result = reproduce(get_paper(args.paper), args.case, output, progress, quiet=args.json)
    if args.json:
        print(to_json(result))
    elif not result["ok"]:
        missed = ", ".join(name for name, case in result["cases"].items() if not case["ok"])
        print(f"bipedsim reproduce: figures missed in {missed}", file=sys.stderr)
    return 0 if result["ok"] else EXIT_FAILED
