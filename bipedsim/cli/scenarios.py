"""List the scenarios: ``bipedsim scenarios``."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options; the command has none."""


def main(args: argparse.Namespace) -> int:
    """Print name, controller and description of each scenario."""
    from bipedsim.analysis import aligned
    from bipedsim.runs import SCENARIOS

    print("\n".join(aligned([(name, one.controller, one.description) for name, one in SCENARIOS.items()])))
    print("your own: --scenario path/to/scenario.yaml (docs/scenarios.md)")
    return 0
