"""Straight legs that pass through the ground: the property of the soles, and the gaits of the compass walker."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from paths import LOCK_STEP
from refusals import faults_of, refusal

from bipedsim.contact.base import STATE_CHANGES
from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.control.controllers import make_controller
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.ground.read import get_ground
from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.reproduce.adubredu.ideal_walker import WALKER
from bipedsim_studies.reproduce.adubredu.walker import DISTURBANCE, PASSIVE, PASSIVE_PERIOD, START, walk
from bipedsim_studies.stability.newton import jacobian
from bipedsim_studies.stability.straight_legs import EventMap

# Springs throw the landing foot up again.
RIGID = [name for name in CONTACT_MODELS if name != "nonlinear_damping"]
LEAD = 0.1


@pytest.fixture(scope="module")
def compass() -> Robot:
    return load_robot("compass")


def downhill(robot: Robot, contact: str = "one_step", h: float = 1e-3) -> Simulator:
    return Simulator(robot, get_ground("downhill"), contact=contact, physics_dt=h, control_dt=h)


def feet(sim: Simulator) -> np.ndarray:
    """Return the feet (2, 2), along the slope and above it [m]."""
    poses = sim.ground_truth().pose_world_sole[:, :3]
    patch = sim.ground.patches[0]
    return poses @ patch.rotation_world_patch[:, [0, 2]]


@pytest.mark.long
@pytest.mark.parametrize("contact", RIGID)
def test_a_foot_passes_below_the_ground_and_lands_in_front(compass: Robot, contact: str) -> None:
    """Three steps without a motor. A foot that is behind does not push, and every step takes its expected time."""
    # The gait of larger steps is another one: by 1.3e-3 rad at 1 ms.
    sim = downhill(compass, contact, h=5e-4)
    sim.reset(*WALKER.robot_state(PASSIVE))
    deepest = 0.0
    landings = []
    stance = 0
    while sim.t < 3.5 * PASSIVE_PERIOD:
        sim.step(np.zeros(1))
        load = sim.contact.impulse[:, 2]
        place = feet(sim)
        swing = 1 - stance
        ahead = place[swing, 0] - place[stance, 0]
        if load[swing] > 0.0 and ahead > 0.0:
            landings.append((sim.t, ahead))
            stance = swing
        elif sim.t > 1e-3 + (landings[-1][0] if landings else 0.0) + 0.05:
            assert load[swing] == 0.0
            deepest = min(deepest, float(place[swing, 1]))
        assert load[stance] >= 0.0
    # By events it is 0.08 mm.
    assert -2e-4 < deepest < -5e-5
    assert len(landings) == 3
    times, leads = np.array(landings).T
    np.testing.assert_allclose(np.diff(times), PASSIVE_PERIOD, atol=0.01)
    np.testing.assert_allclose(leads, 2.0 * np.sin(PASSIVE[0]), atol=2e-3)


def test_without_the_property_the_foot_stubs(compass: Robot) -> None:
    """The same walker on soles with ground contact everywhere gets only as far as the point where its legs pass."""
    stubs = replace(compass, soles=tuple(replace(sole, passes_ground=0.0) for sole in compass.soles))
    sim = downhill(stubs)
    sim.reset(*WALKER.robot_state(PASSIVE))
    lowest = 0.0
    while sim.t < PASSIVE_PERIOD:
        sim.step(np.zeros(1))
        lowest = min(lowest, float(feet(sim)[:, 1].min()))
    assert lowest > -1e-4
    assert feet(sim)[1, 0] < LEAD


def test_a_snapshot_below_the_ground_repeats_to_the_bit(compass: Robot) -> None:
    sim = downhill(compass)
    sim.reset(*WALKER.robot_state(PASSIVE))
    while feet(sim)[1, 1] > -5e-5:
        sim.step(np.zeros(1))
    snapshot = sim.snapshot()
    runs = []
    for _ in range(2):
        sim.restore(snapshot)
        for _ in range(2000):
            sim.step(np.zeros(1))
        runs.append(np.concatenate([sim.q, sim.v]))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert sim.contact.state_changes > snapshot.contact["counters"][STATE_CHANGES], "it has landed"


def test_a_start_below_the_ground_is_no_penetration(compass: Robot) -> None:
    """A foot that begins under the ground is in swing, and does not bounce."""
    sim = downhill(compass)
    q, v = WALKER.robot_state(np.array([0.1, -0.2, -0.12, 0.3]))
    sim.reset(q, v)
    assert feet(sim)[1, 1] < -2e-3
    for _ in range(100):
        sim.step(np.zeros(1))
        assert sim.contact.impulse[1, 2] == 0.0
    assert np.abs(sim.v).max() < 1.0


def test_a_load_cell_feels_the_ground_and_no_mass(compass: Robot) -> None:
    sim = downhill(compass)
    sim.reset(*WALKER.robot_state(PASSIVE))
    for _ in range(300):
        observation = sim.step(np.zeros(1))
        np.testing.assert_allclose(observation.foot_wrench, sim.contact.wrench, atol=1e-12)


def test_a_load_cell_has_no_ankle_frame(tmp_path: Path, compass: Robot) -> None:
    text = compass.source.read_text(encoding="utf-8")
    text = text.replace("load_cell: true", "load_cell: true, ankle_frame: left_leg").replace(
        "urdf: robot.urdf", f"urdf: {compass.urdf_path}"
    )
    path = tmp_path / "robot.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_robot(path)
    assert faults_of(caught.value) == {
        ("feet.left.ankle_frame", "'left_leg'"),
        ("feet.right.ankle_frame", "'left_leg'"),
    }


def test_the_walker_by_events_has_the_known_gait_and_multipliers() -> None:
    """Fixed point, period and Floquet multipliers that were worked out before, for the walker without a motor."""
    found = WALKER.stride(PASSIVE)
    np.testing.assert_allclose(found.after, PASSIVE, atol=5e-8)
    assert found.duration == pytest.approx(PASSIVE_PERIOD, abs=1e-6)
    multipliers = np.linalg.eigvals(jacobian(EventMap(WALKER), PASSIVE, 1e-5))
    expected = np.array([0.26070 + 0.30404j, 0.26070 - 0.30404j, 0.31014, 0.0])
    assert max(np.abs(multipliers - value).min() for value in expected) < 2e-4


def test_a_heel_strike_keeps_the_legs_and_swaps_them() -> None:
    after = WALKER.heel_strike(np.array([-0.15, -0.3, 0.3, -0.1]))
    np.testing.assert_allclose(after[[0, 2]], [0.15, -0.3])


def test_pfl_needs_an_angle_for_every_foot(compass: Robot) -> None:
    with refusal(UnknownNameError, name="middle"):
        make_controller("pfl", compass, {"swing": {"middle": "hip"}})
    arm = replace(compass, controllers={})
    with refusal(place="pfl: swing"):
        make_controller("pfl", arm, {"swing": {"left": "hip"}})


@pytest.mark.slow
@pytest.mark.parametrize(("contact", "steps"), [("one_step", 100), ("exact", 25), ("ncp", 25)])
def test_many_steps_from_the_disturbed_start(contact: str, steps: int) -> None:
    found = walk(START + DISTURBANCE, steps, True, contact=contact)
    assert np.abs(found.mid_speeds[1:] - found.mid_speeds[-20:].mean()).max() < 2e-3


def over_ros(folder: Path, env: dict[str, str], duration: float) -> int:
    """Return the state changes of a walk of real nodes at 100 Hz; two for every step."""
    arguments = ["--robot", "compass", "--controller", "pfl", "--ground", "downhill", *LOCK_STEP]
    arguments += ["--rate", "100", "--duration", str(duration), "--record", str(folder / "run")]
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600.0)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))
    return int(summary["state_changes"])


@pytest.mark.slow
@pytest.mark.ros
def test_the_walker_walks_over_ros(tmp_path: Path, ros_env: dict[str, str]) -> None:
    """From rest the first steps take 2.1, 2.5, 1.9 and 1.7 s."""
    assert over_ros(tmp_path, ros_env, 7.0) >= 6


@pytest.mark.ros
@pytest.mark.slow
def test_a_hundred_steps_over_ros(tmp_path: Path, ros_env: dict[str, str]) -> None:
    assert over_ros(tmp_path, ros_env, 135.0) >= 200
