"""One compiled step for every contact model: it is the sum of its parts, and takes in models from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from paths import INSTALLED, ROOT
from penalty_model import Penalty, PenaltyParams
from uncompiled import InPython

from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.dynamics import step
from bipedsim.dynamics.protocol import Contact, Outcome
from bipedsim.dynamics.step import Dynamics
from bipedsim.ground.ground import Ground
from bipedsim.model.load import load_robot
from bipedsim.sim.steps import Steps

H = 1e-3
STEPS = 40


def fall(make: Callable[[Dynamics], Any]) -> np.ndarray:
    """Return the velocities of biped14 that comes down on a slope with a turn, step by step."""
    robot = load_robot("biped14")
    dynamics = Dynamics(robot, Ground.plane(np.zeros(3), pin.utils.rotate("y", 0.05)), H)
    contact = make(dynamics)
    steps = Steps(robot.model, dynamics, contact, H)
    q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
    q[2] += 1e-3
    v[:6] = 0.3, 0.1, -0.5, 0.2, 0.4, 0.3
    found, pressed = [], 0.0
    for _ in range(STEPS):
        assert steps.take(q, v, np.zeros(14)) == Outcome.TAKEN
        assert abs(v).max() < 100.0
        q = steps.move(q, v)
        found.append(np.concatenate([q, v, contact.result.impulse.ravel()]))
        pressed += contact.result.impulse[:, 2].sum()
    assert pressed > 1.0, "the feet have met the ground"
    return np.array(found)


@pytest.mark.parametrize("name", sampled(list(CONTACT_MODELS), 2))
def test_a_step_is_the_sum_of_its_parts(name: str) -> None:
    kind = CONTACT_MODELS[name]

    def make(dynamics: Dynamics) -> Contact:
        return kind(dynamics.projection, kind.Params(), H)

    np.testing.assert_array_equal(fall(make), fall(lambda dynamics: InPython(make(dynamics))))


def test_a_step_gives_its_own_projection_to_a_model_made_with_another() -> None:
    """Such a model would otherwise solve for feet that are never filled."""
    kind = CONTACT_MODELS["one_step"]

    def make(dynamics: Dynamics) -> Contact:
        other = Dynamics(load_robot("biped14"), Ground.flat(), H)
        return kind(other.projection, kind.Params(), H)

    np.testing.assert_array_equal(fall(make), fall(lambda dynamics: kind(dynamics.projection, kind.Params(), H)))


def test_a_model_in_python_goes_on_working() -> None:
    fall(lambda dynamics: Penalty(dynamics.projection, PenaltyParams(), H))


USE = """
import numpy as np
from bipedsim.dynamics.step_kernels import prepare, solve_contact
from bipedsim.model import load_robot
from bipedsim.sim import Simulator

sim = Simulator(load_robot("biped14"), contact="mud")
loaded = 0
for _ in range(20):
    sim.step(np.zeros(14))
    for impulse, wrench, R in zip(sim.contact.impulse, sim.contact.wrench, sim.dynamics.projection.rotation):
        np.testing.assert_allclose(wrench * sim.physics_dt, np.concatenate([R.T @ impulse[:3], R.T @ impulse[3:]]))
        loaded += impulse[2] > 0.0
assert loaded > 10
stats = solve_contact.stats
print(sim.v.tobytes().hex(), stats.cache_hits.total(), stats.cache_misses.total(), len(prepare.signatures))
"""


@pytest.mark.slow
def test_a_model_of_another_distribution_is_compiled_into_the_step_and_kept(tmp_path: Path) -> None:
    """One file and one entry point; the second process finds the step on the disk."""
    (tmp_path / "mud_package").mkdir()
    source = tmp_path / "mud_package" / "__init__.py"
    text = (ROOT / "test" / "support" / "plugin_model.py").read_text()
    # A cache that all share may hold what the last run of this test compiled.
    new = f"    begin_vertices(p, s)\n    if m.damping == {time.time_ns()}:\n        return\n"
    source.write_text(text.replace("    begin_vertices(p, s)\n", new))
    metadata = tmp_path / "mud-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mud\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[bipedsim.contact_models]\nmud = mud_package:MudModel\n")
    paths = os.pathsep.join([str(tmp_path), str(INSTALLED), os.environ.get("PYTHONPATH", "")])

    def run() -> tuple[list[str], str]:
        done = subprocess.run(
            [sys.executable, "-c", USE], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr

    first, said = run()
    second, nothing = run()
    assert first[1:] == ["0", "1", "0"], "the model was compiled once, and no step was put together in Python"
    assert second == [first[0], "1", "0", "0"]
    # Where the sensors were never compiled either, lines before say so.
    begin, end = said.splitlines()[-2:]
    assert begin.startswith("compiling the kernels of contact model mud, ")
    assert re.fullmatch(r"compiled \d+ kernels of contact model mud in \d+ s", end)
    assert said.count("contact model mud") == 2
    assert nothing == ""
    source.write_text(source.read_text().replace("2e3", "1e3").replace("Slow down", "Brake"))
    assert run()[0][1:] == ["1", "0", "0"], "a parameter and a docstring are no code of the kernel"
    source.write_text(source.read_text().replace("per_speed = s.h", "per_speed = 0.5 * s.h"))
    changed, _ = run()
    assert changed[1:] == ["0", "1", "0"]
    assert changed[0] != first[0]


def test_the_last_side_of_a_joint_limit_counts() -> None:
    tried = [np.array(limits, dtype=np.int64).tobytes() for limits in ([1, 0, 0], [-1, 1, 0], [0, -1, 0])]
    np.testing.assert_array_equal(step._last_sides(tried, np.int64), [-1, -1, 0])
