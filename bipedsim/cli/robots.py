"""List the robots: ``bipedsim robots``."""

from __future__ import annotations

import argparse
from typing import Any

from bipedsim.config import to_json
from bipedsim.errors import EXIT_OK, ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("--json", action="store_true", help="print as JSON")


def main(args: argparse.Namespace) -> int:
    """Print the data of each robot: those of bipedsim, then those of other packages."""
    from bipedsim.model import ROBOTS

    rows = [_row(name) for name in ROBOTS]
    if args.json:
        print(to_json(rows))
        return EXIT_OK
    package = ""
    for row in rows:
        if row["package"] != package:
            package = row["package"]
            print(f"\nof {package}:")
        if "error" in row:
            print(f"{row['name']:15} not available: {row['error']}")
        else:
            print(f"{row['name']:15} {row['joints']:3} joints {row['mass_kg']:8.2f} kg  {row['description']}")
    print("\nyour own: --robot path/to/robot.yaml (docs/robots.md)")
    return EXIT_OK


def _row(name: str) -> dict[str, Any]:
    from bipedsim.model import ROBOTS, load_robot

    row: dict[str, Any] = {"name": name, "package": ROBOTS.package(name)}
    try:
        robot = load_robot(name)
    except ConfigError as error:
        return row | {"error": str(error)}
    return row | {
        "joints": robot.nu,
        "loops": [loop.name for loop in robot.loops],
        "mass_kg": round(robot.mass, 3),
        "feet": [f"{sole.name} ({len(sole.vertices)} vertices)" for sole in robot.soles],
        "description": robot.description,
        "file": str(robot.source),
    }
