"""After the warm-up nothing is compiled or loaded any more. In real time, that would stop the clock for seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Each kind has its own process, because loaded kernels stay. The run includes flight, landing, fall, push, reset and
# snapshot.
RUN = """
import gc
import sys

import numpy as np
from numba.core.dispatcher import Dispatcher
from penalty_model import Penalty

from bipedsim.contact import CONTACT_MODELS
from bipedsim.dynamics import step_kernels
from bipedsim.errors import DivergenceError
from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.sim import GantryConfig, Simulator


def loaded():
    return {one.py_func.__qualname__ + " " + one.py_func.__module__: len(one.overloads)
            for one in gc.get_objects() if isinstance(one, Dispatcher) and one.overloads}


kind = sys.argv[1]
if kind == "models":
    sims = [Simulator(load_robot(robot), contact=model, hardware="realistic")
            for model in sorted(CONTACT_MODELS) for robot in ("biped14", "planar_biped") if model != "one_step"]
elif kind == "python":
    CONTACT_MODELS._own["springs"] = Penalty
    sims = [Simulator(load_robot("biped14"), contact="springs")]
elif kind == "one_step":
    robots = "biped14", "planar_biped", "parallel_ankles"
    sims = [Simulator(load_robot(robot), hardware="realistic") for robot in robots]
    sims.append(Simulator(load_robot("biped14"), gantry=GantryConfig(lower_at=0.05, release_at=0.2)))
else:
    # A ball that hits a shin, and what falls on the ground and on each other beside the robot.
    ball = ObjectConfig(name="ball", shape="ball", mass=0.4, radius=0.1, position=(0.6, 0.1, 0.35),
                        velocity=(-5.0, 0.0, 0.0), restitution=0.7)
    can = ObjectConfig(name="can", shape="cylinder", mass=1.0, radius=0.1, length=0.2, position=(2.0, 0.0, 0.12))
    box = ObjectConfig(name="box", shape="box", mass=1.0, size=(0.2, 0.2, 0.2), position=(2.0, 0.0, 0.8),
                       rpy=(0.3, 0.2, 0.0))
    plates = [PlateConfig(name="plate", size=(4.0, 4.0))]
    sims = [Simulator(load_robot("biped14"), objects=objects, force_plates=plates)
            for objects, plates in (([], plates), ([can], []), ([ball, can, box], plates))]
for sim in sims:
    sim.watch(lambda name, said, begun: None)
    sim.warm_up(loops=True)
before = loaded()
# Rare: landings without a set of modes that holds, and stops that a model meets which is not compiled into the step.
assert (step_kernels.prepare if kind == "python" else step_kernels.restore_contact).overloads
aloft = pressed = fallen = 0
for sim in sims:
    robot = sim.robot
    q = robot.q_nominal.copy()
    q[2 if robot.free_flyer else 1] += 0.05
    sim.reset(q)
    sim.push(np.array([20.0 if kind == "models" else 400.0, 0.0, 0.0, 0.0, 1.0, 0.0]), None, 0.05)
    try:
        for tick in range(400 if kind == "models" else 900):
            sim.step(np.zeros(robot.nu) if tick < 100 else np.zeros((6, robot.nu)))
            aloft += not sim.contact.impulse[:, 2].any()
            pressed += sim.contact.impulse[:, 2].any()
            fallen += sim.body_impulse[:, 2].any()
            if tick == 200:
                kept = sim.snapshot()
        sim.ground_truth()
        sim.restore(kept)
        sim.step(np.zeros(robot.nu))
    except DivergenceError:
        pass
assert min(aloft, pressed) > 50 * len(sims), "both have been"
assert fallen or kind == "models", "bodies have touched the ground, too"
print(sorted(name for name, n in loaded().items() if n > before.get(name, 0)))
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["models", "one_step", "objects", "python"])
def test_nothing_is_left_to_be_compiled_in_the_loop(kind: str) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "support")}
    done = subprocess.run([sys.executable, "-c", RUN, kind], capture_output=True, text=True, check=False, env=env)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
