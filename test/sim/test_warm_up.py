"""After the warm-up nothing is compiled or loaded any more: in real time it would stop the clock, for seconds."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own, as what is loaded stays. Flight, a landing, a fall, a push, a reset, a snapshot.
RUN = """
import gc
import sys

import numpy as np
from numba.core.dispatcher import Dispatcher

from bipedsim.contact import CONTACT_MODELS
from bipedsim.errors import DivergenceError
from bipedsim.model import load_robot
from bipedsim.sim import Simulator


def loaded():
    return {one.py_func.__qualname__ + " " + one.py_func.__module__: len(one.overloads)
            for one in gc.get_objects() if isinstance(one, Dispatcher) and one.overloads}


sims = []
for model in sorted(CONTACT_MODELS):
    for robot in ("biped14", "planar_biped"):
        sim = Simulator(load_robot(robot), contact=model, hardware="realistic")
        sim.warm_up()
        sims.append(sim)
before = loaded()
aloft = pressed = 0
for sim in sims:
    robot = sim.robot
    q = robot.q_nominal.copy()
    q[2 if robot.free_flyer else 1] += 0.05
    sim.reset(q)
    sim.push(np.array([20.0, 0.0, 0.0, 0.0, 1.0, 0.0]), None, 0.05)
    try:
        for tick in range(400):
            sim.step(np.zeros(robot.nu))
            aloft += not sim.contact.impulse[:, 2].any()
            pressed += sim.contact.impulse[:, 2].any()
            if tick == 200:
                kept = sim.snapshot()
        sim.ground_truth()
        sim.restore(kept)
        sim.step(np.zeros(robot.nu))
    except DivergenceError:
        pass
assert min(aloft, pressed) > 50 * len(sims), "both have been"
print(sorted(name for name, n in loaded().items() if n > before.get(name, 0)))
"""


def test_nothing_is_left_to_be_compiled_in_the_loop() -> None:
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
