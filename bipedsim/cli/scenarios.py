"""List the scenarios: ``bipedsim scenarios``."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options; the command has none."""


def main(args: argparse.Namespace) -> int:
    """Print name, controller and description of each scenario."""
    from bipedsim.runs import SCENARIOS

    for name, scenario in SCENARIOS.items():
        print(f"{name:12} {scenario.controller:10} {scenario.description}")
    print("your own: --scenario path/to/scenario.yaml (docs/scenarios.md)")
    return 0
