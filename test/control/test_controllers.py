"""Common properties of all registered controllers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_support import whole
from refusals import refusal

from bipedsim.control.controllers import CONTROLLERS, find_controller, make_controller
from bipedsim.model import Robot, load_robot
from bipedsim.sim.io import Command, Observation
from bipedsim.sim.simulator import Simulator

loaded = lru_cache(load_robot)
# Some motions end before the reset, and others are in progress.
PARAMS: dict[str, dict[str, Any]] = {
    "posture": {"mode": "squat", "ramp": 0.1, "squat_period": 0.5},
    "zmp": {"ramp": 0.1},
    "computed_torque": {"mode": "squat", "ramp": 0.1, "squat_period": 0.5},
    "sliding": {"mode": "squat", "ramp": 0.1, "squat_period": 0.5},
    "pfl": {"mode": "squat", "ramp": 0.1, "squat_period": 0.5},
}


@pytest.fixture(scope="module", autouse=True)
def policy(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have a policy to make one of, asked at every tick."""
    PARAMS["policy"] = {"file": str(whole(tmp_path_factory.mktemp("policy"))), "period": 1e-3}


def made(name: str, robot: str = "biped14") -> Any:
    return make_controller(name, loaded(robot), PARAMS.get(name), 1e-3)


def asked(command: Command, robot: str = "biped14") -> np.ndarray:
    """Return all that a command asks for."""
    return command.packed(loaded(robot).effort_limit)


def drive(
    controller: Any, height: float, ticks: int, begin: float = 0.0, push: float = 0.0, robot: str = "biped14"
) -> list[Observation]:
    """Run a controller with a robot dropped from ``height`` [m] at time ``begin`` [s]; return its observations."""
    sim = Simulator(loaded(robot))
    q = sim.robot.q_nominal.copy()
    q[2] += height
    seen = [sim.reset(q).copy()]
    seen[0].t = begin
    controller.reset(seen[0])
    sim.push(np.array([push, push, 0.0, 0.0, 0.0, 0.0]), duration=0.05)
    for _ in range(ticks):
        command = controller.update(seen[-1])
        np.clip(command.tau_joint, -sim.robot.effort_limit, sim.robot.effort_limit, out=command.tau_joint)
        seen.append(sim.step(command).copy())
        seen[-1].t += begin
    return seen


def answers(controller: Any, seen: list[Observation], robot: str = "biped14") -> list[bytes]:
    """Return the answers of a controller to ``seen`` after a reset, and its debug signals."""
    controller.reset(seen[0])
    result = []
    for observation in seen:
        result.append(asked(controller.update(observation), robot).tobytes())
        shown = sorted(getattr(controller, "readouts", {}).items())
        estimate = getattr(controller, "estimate", None)
        believed = b"" if estimate is None else estimate.q.tobytes() + estimate.v.tobytes() + bytes([estimate.faults])
        result.append(np.array([value for _, value in shown]).tobytes() + believed)
    return result


@pytest.mark.parametrize(
    ("name", "robot"), [*((name, "biped14") for name in CONTROLLERS), ("posture", "parallel_ankles")]
)
def test_after_a_reset_a_controller_is_a_new_one(name: str, robot: str) -> None:
    """Before the reset the robot was dropped, pushed and steered, at another time.

    Torques and debug signals are equal to the bit.
    """
    used = made(name, robot)
    seen = drive(made(name, robot), 0.002, 40, robot=robot)
    fresh = answers(made(name, robot), seen, robot)
    last = drive(used, 0.01, 60, 7.0, 200.0, robot)[-1]
    if hasattr(used, "set_velocity"):
        used.set_velocity(0.3, 0.1, 0.2)
    if hasattr(used, "set_footsteps"):
        used.set_footsteps(np.array([[0.1, 0.1, 0.0]]))
    for _ in range(2):
        again = answers(used, seen, robot)
        assert [i for i, (a, b) in enumerate(zip(fresh, again, strict=True)) if a != b] == []
        # Repeat after invalid measurements.
        blind = last.copy()
        blind.imu_angular_velocity[:] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            used.update(blind)


@pytest.mark.parametrize("name", ["zmp", "computed_torque", "sliding", "pfl", "policy"])
def test_who_knows_no_closed_chains_says_so(name: str) -> None:
    with refusal(place=f"controller '{name}'"):
        make_controller(name, load_robot("parallel_ankles"), {})


@pytest.mark.long
@pytest.mark.parametrize("mode", ["sway", "shift", "toe_fall", "jump", "steps"])
def test_other_motions_take_chains_along(mode: str) -> None:
    make_controller("posture", load_robot("parallel_ankles"), {"mode": mode})


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_controller_goes_by_the_time_since_its_reset(name: str) -> None:
    """With the wall clock of a robot, it does the same as in a simulation, where time begins at zero."""
    seen, late = drive(made(name), 0.002, 40), 4096.0

    def commands(begin: float) -> np.ndarray:
        controller = made(name)
        moved = [replace(observation, t=observation.t + begin) for observation in seen]
        controller.reset(moved[0])
        return np.array([asked(controller.update(observation)) for observation in moved])

    # Stamps have 1e-12 s left there, which gains make up to a millionth of a newton metre.
    np.testing.assert_allclose(commands(late), commands(0.0), rtol=0.0, atol=1e-5)


class PlainParams:
    """The decorator is missing on purpose."""

    class Params:
        kp = 3.0

    def __init__(self, robot: Robot, params: Params, dt: float) -> None: ...

    def reset(self, observation: Observation) -> None: ...

    def update(self, observation: Observation) -> None: ...


@pytest.mark.parametrize(
    "name", [f"{__name__}:PlainParams", f"./{__name__}:PlainParams", "./mine.py:Mine", "", ":Mine"]
)
def test_slips_in_a_controller_and_its_name_are_told_with_the_way_out(name: str) -> None:
    with refusal(**({"place": "controller", "value": name} if name else {"kind": "controller", "name": ""})):
        find_controller(name)


def test_a_controller_may_say_that_it_has_no_params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "without.py").write_text(
        "class Mine:\n    Params = None\n    def __init__(self, robot, params, dt): self.params = params\n"
        "    def reset(self, observation): pass\n    def update(self, observation): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert make_controller("without:Mine", loaded("biped14")).params is None  # type: ignore[attr-defined]
    with refusal(place="controller 'without:Mine' of 'biped14': gain"):
        make_controller("without:Mine", loaded("biped14"), {"gain": 1})
