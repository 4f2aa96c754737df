"""Measure the loop over ROS (``python -m bipedsim_ros.bench``).

``bipedsim bench --loop`` starts this program, because bipedsim_studies must not import bipedsim_ros.
"""

from __future__ import annotations

import argparse
import sys

from bipedsim.config import ProgressBar, to_json
from bipedsim.errors import EXIT_FAILED, EXIT_USAGE, BipedSimError, ConfigError
from bipedsim_ros.bench import LoopBench, Settings, table
from bipedsim_ros.wire import require_rclpy


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="bipedsim bench --loop")
    parser.add_argument("--robot", required=True)
    parser.add_argument("--blocks", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        require_rclpy()
        settings = Settings(robot=args.robot, blocks=args.blocks, seconds=args.seconds)
        with ProgressBar(unit="part") as bar:

            def tick(text: str) -> None:
                bar.set_description(text, refresh=False)
                bar.update()

            bench = LoopBench(settings, tick)
            bar.reset(total=bench.pieces)
            report = bench.report()
    except BipedSimError as error:
        print(f"bipedsim bench: {error}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED
    print(to_json(report, indent=None) + "\n" if args.json else table(report), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
