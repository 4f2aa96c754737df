"""The scenarios on every robot of the table: sway, shift, fall over the toes, jump."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from marks import sampled
from paths import STANDING
from refusals import refusal

from bipedsim.analysis import other_bodies, rotate
from bipedsim.config.run import RunConfig
from bipedsim.contact.modes import clamped_range
from bipedsim.control.controllers import make_controller
from bipedsim.control.posture.motions import JUMP, ONCE, SQUAT, SWAY, TimeLawParams, path
from bipedsim.errors import ControllerWarning, UnknownNameError
from bipedsim.model import load_robot
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.runs.scenario import SCENARIOS, get_scenario

loaded = lru_cache(load_robot)
RECTANGULAR = tuple(name for name in STANDING if loaded(name).soles[0].n_vertices == 4)
"""iCub's soles are round: it rolls over one edge after the other, and its ankles of 24 N.m catch no landing there."""


def run_scenario(robot: str, scenario: str, duration: float) -> tuple[Recording, dict[str, object]]:
    return run(RunConfig(robot=robot, scenario=scenario, duration=duration))


@pytest.mark.parametrize("name", sampled(STANDING))
def test_sways_on_feet_that_stay(name: str) -> None:
    recording, summary = run_scenario(name, "sway", 12.0)
    assert summary["state_changes"] == 0
    assert summary["unresolved_steps"] == 0
    assert summary["foot_drift_m"] < 1e-5
    load = recording.wrench[5000:, :, 2] / recording.weight
    assert load.max() > 0.8
    assert load.min() > 0.05


@pytest.mark.parametrize("name", sampled(RECTANGULAR))
def test_shifts_until_the_right_foot_rests_on_its_inner_edge(name: str) -> None:
    recording, summary = run_scenario(name, "shift", 5.0)
    assert summary["state_changes"] <= 30
    assert summary["unresolved_steps"] == 0
    sole = loaded(name).soles[1]
    first, count = clamped_range(int(recording.mode[-1, 1]), sole.n_vertices)
    inner = sole.vertices[[(first + k) % sole.n_vertices for k in range(count)]]
    assert count == 2
    assert inner[:, 1].min() > sole.centre[1]
    assert recording.wrench[-1, 0, 2] > 0.95 * recording.weight


@pytest.mark.parametrize("name", sampled(RECTANGULAR))
def test_falls_over_the_front_edges(name: str) -> None:
    """Face to front edge, once per foot, and nothing else until far over."""
    recording = run_scenario(name, "toe_fall", 6.0)[0]
    x, y = recording.base_pose[:, 3:5].T
    up = 1.0 - 2.0 * (x * x + y * y)
    start = np.arccos(np.clip(up[0], -1.0, 1.0))
    fallen = int(np.argmax(np.arccos(np.clip(up, -1.0, 1.0)) > start + 0.3))
    assert fallen > 0
    modes = recording.mode[:fallen]
    assert (np.diff(modes, axis=0) != 0).sum(axis=0).tolist() == [1, 1]
    assert not recording.sliding[:fallen].any()
    for k, sole in enumerate(loaded(name).soles):
        first, count = clamped_range(int(modes[-1, k]), sole.n_vertices)
        clamped = [(first + j) % sole.n_vertices for j in range(count)]
        assert sole.vertices[clamped, 0].min() >= np.sort(sole.vertices[:, 0])[-2] - 1e-9


@pytest.mark.long
def test_icub_walks_with_its_trunk_ahead() -> None:
    """With a small weight of the posture, its torso and hip yaw turn to their limits, and it falls."""
    # The scenario asks for 0.3 m/s.
    with pytest.warns(ControllerWarning):
        recording, summary = run_scenario("icub", "walk", 15.0)
    assert summary["fell_at_s"] is None
    assert recording.base_pose[-1, 0] > 1.0
    yaw = recording.joint_names.index("torso_yaw")
    assert np.abs(recording.joint_position[:, yaw]).max() < 0.4


@pytest.mark.long
@pytest.mark.parametrize("name", sampled(["talos", "biped14", "g1", "icub"]))
def test_falls_and_lies_on_its_bodies(name: str) -> None:
    """The columns report the bodies in contact and the joints at their limits. The summary agrees."""
    recording, summary = run_scenario(name, "fall", 6.0)
    assert "; lies on " in summary["verdict"]
    force = other_bodies(recording)
    carried = np.isfinite(force).all(axis=1)
    assert not carried[: np.searchsorted(recording.t, 1.5)].any()
    assert carried[-100:].all()
    soles = rotate(recording.sole_poses[..., 3:], recording.wrench[..., :3])[..., 2].sum(axis=1)
    np.testing.assert_allclose((soles + force[:, 2])[-100:], recording.weight, rtol=1e-3)
    assert summary["fz_over_mg"]["mean"] == pytest.approx(1.0, abs=1e-3)
    stopped = np.nan_to_num(recording.stop_torque) != 0.0
    told = summary["joint_stops"]
    assert set(told) == {joint for joint, at in zip(recording.joint_names, stopped.T, strict=True) if at.any()}
    for joint, stop in told.items():
        at = np.flatnonzero(stopped[:, recording.joint_names.index(joint)])
        assert stop["to_s"] == pytest.approx(recording.t[at[-1]])
        last = at[recording.t[at] > stop["from_s"]]
        torque = recording.stop_torque[last, recording.joint_names.index(joint)]
        assert stop["torque_Nm"] == pytest.approx(torque.mean())


@pytest.mark.parametrize("name", sampled(RECTANGULAR))
def test_jumps_lands_and_stands(name: str) -> None:
    recording, summary = run_scenario(name, "jump", 4.0)
    assert summary["unresolved_steps"] == 0
    air = (recording.mode == 0).all(axis=1)
    assert 0.1 < air.sum() / 1000.0 < 0.3
    assert recording.sole_poses[:, :, 2].max() > 0.02
    landed = recording.t > recording.t[air][-1]
    assert landed.sum() > 1000
    last = recording.t > recording.t[-1] - 1.0
    robot = loaded(name)
    assert (recording.mode[last] == 2 * robot.soles[0].n_vertices + 1).all()
    assert np.abs(recording.wrench[last][:, :, 2].sum(axis=1) / recording.weight - 1.0).max() < 0.02
    assert np.abs(recording.joint_position[-1] - robot.posture).max() < 0.01


@pytest.mark.parametrize(
    ("law", "numbers"),
    [
        (SQUAT, (0.1, 1.0, 0.2, 1.0, 0.0)),
        (SWAY, (0.06, 5.0, 0.2, 1.0, 0.0)),
        (ONCE, (0.1, 3.0, 0.2, 1.0, 0.0)),
        (JUMP, (0.1, 1.0, 0.2, 1.0, 0.03)),
        (JUMP, (0.05, 0.8, 0.0, 1.0, 0.05)),
    ],
)
def test_paths_begin_at_rest_and_have_the_derivatives_that_they_say(law: int, numbers: tuple[float, ...]) -> None:
    step = 1e-4
    s, ds, dds, a_up = np.array([path(law, step * k, TimeLawParams(*numbers), 9.81) for k in range(20000)]).T
    assert (s[0], ds[0]) == (0.0, 0.0)
    assert (s[2:] - s[:-2]) / (2.0 * step) == pytest.approx(ds[1:-1], abs=1e-4)
    assert (ds[2:] - ds[:-2]) / (2.0 * step) == pytest.approx(dds[1:-1], abs=0.1)
    assert a_up.min() >= -9.81


def test_a_jump_leaves_the_ground_in_free_flight_and_never_goes_deeper_than_asked() -> None:
    path_of = np.array([path(JUMP, 1e-3 * k, TimeLawParams(0.1, 1.0, 0.0, 1.0, 0.03), 9.81) for k in range(2000)])
    s, a_up = path_of[:, 0], path_of[:, 3]
    flight = a_up == -9.81
    speed = np.sqrt(2.0 * 9.81 * 0.03)
    assert flight.sum() / 1000.0 == pytest.approx(2.0 * speed / 9.81, abs=2e-3)
    assert s.max() == pytest.approx(0.1, abs=1e-6)
    assert s.min() > -0.32 * 0.03
    assert s[-1] == 0.0


def test_scenarios_are_found_by_name() -> None:
    assert get_scenario("jump") is SCENARIOS["jump"]
    with refusal(UnknownNameError, name="jmp", meant="jump"):
        get_scenario("jmp")


@pytest.mark.parametrize("mode", ["sway", "steps"])
def test_some_motions_need_two_feet(mode: str) -> None:
    robot = loaded("biped14")
    one_leg = replace(
        robot,
        soles=robot.soles[:1],
        ankle_joint_ids=robot.ankle_joint_ids[:1],
        placement_joint_ankle=robot.placement_joint_ankle[:1],
    )
    with refusal(place=f"posture: {mode}"):
        make_controller("posture", one_leg, {"mode": mode})
