"""Compare the time of a step on height fields of 200 x 200 cells with one on a plane, alternating in one process.

OMP_NUM_THREADS=1 python benchmarks/field_steps.py --robot talos --contact-model one_step --walk
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from bipedsim import Ground, Simulator, get_ground, load_robot, make_controller
from bipedsim.ground import make_ground


def field(cell: float, height: float, distance: float) -> Ground:
    """Return 200 x 200 cells with random heights at points of this distance [m]."""
    shape = {"min_height": -height, "max_height": height, "step": 0.0, "downsampled_scale": distance}
    return make_ground({"field": {"cell": cell, "size": [200 * cell] * 2, "random_uniform": shape}}, "field")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="talos")
    parser.add_argument("--contact-model", default="one_step")
    parser.add_argument("--walk", action="store_true", help="walk at 0.2 m/s instead of standing")
    parser.add_argument("--ticks", type=int, default=3000)
    args = parser.parse_args()
    grounds = {
        "plane": Ground.flat(),
        "tiles": get_ground("tiles"),
        "level field, cells of 10 cm": field(0.1, 0.0, 0.1),
        "level field, cells of 2 cm": field(0.02, 0.0, 0.02),
        "+-20 mm every 20 cm, cells of 10 cm": field(0.1, 0.02, 0.2),
        "+-10 mm every 10 cm, cells of 5 cm": field(0.05, 0.01, 0.1),
        "+-4 mm every 5 cm, cells of 2 cm": field(0.02, 0.004, 0.05),
    }
    robot = load_robot(args.robot)
    worlds = []
    for ground in grounds.values():
        sim = Simulator(robot, ground, contact=args.contact_model)
        observation = sim.reset(ground.place(robot.q_nominal))
        controller = make_controller("zmp" if args.walk else "posture", robot, dt=sim.control_dt)
        controller.reset(observation)
        worlds.append([sim, controller, observation])
    taken = np.zeros((args.ticks, len(worlds)))
    for tick in range(args.ticks):
        for i, (sim, controller, observation) in enumerate(worlds):
            if args.walk and tick == 200:
                controller.set_velocity(0.2, 0.0, 0.0)
            torque = controller.update(observation).tau_joint
            begin = time.perf_counter()
            worlds[i][2] = sim.step(torque)
            taken[tick, i] = time.perf_counter() - begin
    median = np.median(taken[500:], axis=0)
    for name, value in zip(grounds, median, strict=True):
        print(f"{name:40s} {1e6 * value:6.1f} us  {value / median[0]:.2f}")


if __name__ == "__main__":
    main()
