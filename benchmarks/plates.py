"""Measure the cost of force plates: the time of a step without plates, with two and with eight.

    python benchmarks/plates.py [--robot biped14] [--rounds 40]

Each round simulates a segment of the same run with every number of plates in turn, so that other load on the machine
affects all of them. The robot stands under `posture` with each foot on one plate. The other six plates are next to it
and without load. The output is the median over the rounds of the mean step time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from bipedsim import Simulator, load_robot, make_controller
from bipedsim.plates import PlateConfig

STRETCH = 250
"""Number of steps of a segment."""


def plates_of(count: int, across: bool) -> tuple[PlateConfig, ...]:
    """Return plates of 0.6 m x 0.5 m in two rows. Each foot is on one plate, or across the border of two plates."""
    positions = [(x, y) for x in (0.0, 0.61, -0.61, 1.22) for y in (0.255, -0.255)]
    shift = 0.3 if across else 0.0
    if across:
        positions = [(x, y) for y in (0.0, 0.51, -0.51, 1.02) for x in (0.0, -0.605)]
    return tuple(
        PlateConfig(name=f"p{k}", size=(0.6, 0.5), position=(x + shift, y, 0.0), natural_frequency=350.0, noise=0.2)
        for k, (x, y) in enumerate(positions[:count])
    )


def main() -> None:
    """Run the measurement and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="biped14")
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()
    cases = {f"{n}{', feet across' * across}": (n, across) for n, across in ((0, 0), (2, 0), (8, 0), (2, 1), (8, 1))}
    runs = {}
    for name, (count, across) in cases.items():
        robot = load_robot(args.robot)
        sim = Simulator(robot, force_plates=plates_of(count, bool(across)))
        controller = make_controller("posture", robot, {}, sim.control_dt)
        observation = sim.reset()
        controller.reset(observation)
        runs[name] = [sim, controller, observation]
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(args.rounds):
        for name, state in runs.items():
            sim, controller, observation = state
            spent = 0.0
            for _ in range(STRETCH):
                command = controller.update(observation)
                begin = time.perf_counter()
                observation = sim.step(command)
                spent += time.perf_counter() - begin
            state[2] = observation
            times[name].append(1e6 * spent / STRETCH)
    print(f"{args.robot}, posture, one_step, {args.rounds} rounds of {STRETCH} steps")
    print(f"{'plates':<16} {'us a step':>10} {'spread':>8} {'more':>8}")
    base = np.array(times["0"])
    for name, values in times.items():
        quarter, middle, three = np.percentile(values, [25, 50, 75])
        more = float(np.median(np.array(values) - base))
        print(f"{name:<16} {middle:>10.2f} {three - quarter:>8.2f} {more:>8.2f}")


if __name__ == "__main__":
    main()
