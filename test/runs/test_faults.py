"""Injected faults: reported truth during the fault, and no effect afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from refusals import faults_of, refusal

from bipedsim.config.run import RunConfig
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import ContactSwitch, Imu, load_robot
from bipedsim.runs.faults import (
    ANKLES,
    FIELDS,
    HEIGHTS,
    IMU,
    IMUS,
    JOINTS,
    POSSIBLE,
    Fault,
    FaultSchedule,
    for_run,
    read_faults,
)
from bipedsim.runs.rollout import Rollout
from bipedsim.runs.runner import run
from bipedsim.sim import LIMIT, SETPOINT, Observation, Simulator

ROBOT = replace(
    load_robot("biped14"),
    imus=tuple(Imu(f"imu{i}", f"/imu{i}/data", "l_shank", 5, pin.SE3.Identity()) for i in range(2)),
    contact_switches=tuple(ContactSwitch(f"toe{i}", f"/toe{i}/closed", "left", 20.0) for i in range(2)),
)
DT = 1e-3
KNEE = ROBOT.joint_names.index("l_knee")


def measured(ticks: int) -> list[Observation]:
    """Return random measurements of a robot, different at every tick."""
    result = []
    for k in range(1, ticks + 1):
        rng = np.random.default_rng(k)
        observation = Observation.of_robot(ROBOT)
        observation.t = round(k * DT, 9)
        for name in (name for names in FIELDS.values() for name in names):
            getattr(observation, name)[:] = rng.normal(size=getattr(observation, name).shape)
        result.append(observation)
    return result


def seen(*faults: Fault, ticks: int = 30, seed: int = 0) -> list[tuple[Observation, dict[str, bool]]]:
    """Return the messages of :func:`measured` that reach the controller, and their ticks."""
    schedule = FaultSchedule(faults, ROBOT, DT, seed)
    return [(schedule.sense(observation).copy(), dict(schedule.sent)) for observation in measured(ticks)]


def same(a: Observation, b: Observation, sensor: str) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS[sensor])


@given(
    part=st.sampled_from([JOINTS, IMU, ANKLES, IMUS]),
    does=st.sampled_from(["lost", "stuck", "nan", "late"]),
    begin=st.integers(1, 12),
    length=st.integers(1, 10),
    wait=st.integers(1, 8),
)
def test_a_fault_changes_its_sensor_from_its_begin_to_its_end(
    part: str, does: str, begin: int, length: int, wait: int
) -> None:
    amount = wait * DT if does == "late" else None
    fault = Fault(part=part, does=does, at=begin * DT, duration=length * DT, amount=amount)
    truth = measured(30)
    for k, (observation, sent) in enumerate(seen(fault), start=1):
        true = truth[k - 1]
        for other in FIELDS.keys() - {part}:
            assert sent[other]
            assert same(observation, true, other)
        if not begin <= k < begin + length:
            assert sent[part]
            assert same(observation, true, part)
        elif does == "nan":
            assert all(np.isnan(getattr(observation, name)).all() for name in FIELDS[part])
        elif does == "stuck":
            at_begin = truth[begin - 1]
            for name in FIELDS[part]:
                held = 0.0 * getattr(true, name) if name == "joint_velocity" else getattr(at_begin, name)
                np.testing.assert_array_equal(getattr(observation, name), held)
        elif does == "lost":
            assert not sent[part]
            assert begin == 1 or same(observation, truth[begin - 2], part), "the newest that came"
        else:
            assert sent[part] == (k - wait >= begin)
            if sent[part]:
                assert same(observation, truth[k - 1 - wait], part)


def test_only_the_joint_or_foot_that_is_named_fails() -> None:
    for fault, name, index in (
        (Fault(part="joints", does="offset", joint="l_knee", amount=0.25), "joint_position", KNEE),
        (Fault(part="ankles", does="scaled", foot=ROBOT.soles[1].name, amount=0.5), "foot_wrench", 1),
        (Fault(part="imus", does="nan", sensor="imu1"), "imus", 1),
        (Fault(part="switches", does="stuck", sensor="toe1"), "contact_switches", 1),
    ):
        for (observation, _), true in zip(seen(fault), measured(30), strict=True):
            expected, first = getattr(true, name).copy(), getattr(measured(1)[0], name)
            was = expected[index]
            failed = {"joint_position": was + 0.25, "foot_wrench": 0.5 * was, "imus": np.nan}
            expected[index] = failed.get(name, first[index])
            np.testing.assert_array_equal(getattr(observation, name), expected)
            assert same(observation, true, IMU)


def test_late_joints_say_when_they_were_measured() -> None:
    late = Fault(part="joints", does="late", amount=0.004)
    came = [round(observation.t / DT) for observation, sent in seen(late, ticks=12) if sent[JOINTS]]
    assert came == list(range(1, 9))


def test_chances_follow_from_the_seed_and_a_restart_repeats_them() -> None:
    lossy = Fault(part="imu", does="lost", share=0.3)
    first = [sent[IMU] for _, sent in seen(lossy, ticks=400)]
    assert first == [sent[IMU] for _, sent in seen(lossy, ticks=400)]
    assert first != [sent[IMU] for _, sent in seen(lossy, ticks=400, seed=1)]
    # Four standard deviations of a binomial distribution.
    assert abs(first.count(False) - 120) < 4 * np.sqrt(400 * 0.3 * 0.7)

    schedule = FaultSchedule([lossy, Fault(part="joints", does="stuck", at=0.01)], ROBOT, DT, 0)

    def pass_through() -> list[bytes]:
        result = []
        for observation in measured(30):
            told = schedule.sense(observation)
            result.append(told.joint_position.tobytes() + told.imu_angular_velocity.tobytes())
            schedule.hears(observation.t)
        return result

    before = pass_through()
    schedule.restart()
    assert pass_through() == before


@pytest.mark.parametrize("part", [JOINTS, IMU, ANKLES])
def test_a_restart_lets_go_of_what_was_stuck(part: str) -> None:
    schedule = FaultSchedule([Fault(part=part, does="stuck")], ROBOT, DT, 0)
    first, *_others, last = measured(5)
    schedule.sense(first)
    schedule.restart()
    told = schedule.sense(last)
    for name in FIELDS[part]:
        held = 0.0 * getattr(last, name) if name == "joint_velocity" else getattr(last, name)
        np.testing.assert_array_equal(getattr(told, name), held)


@pytest.mark.parametrize("does", ["lost", "late"])
def test_a_sensor_that_fails_from_the_start_keeps_its_first_measurement(does: str) -> None:
    """The measurements at t = 0 reach the controller, with and without nodes."""
    sim = Simulator(ROBOT)
    fault = Fault(part=IMU, does=does, amount=1.0 if does == "late" else None)
    rollout = Rollout(sim, [], FaultSchedule([fault], ROBOT, sim.control_dt, 0))
    first = rollout.begin("", 0.0).copy()
    assert first.imu_linear_acceleration[2] == pytest.approx(9.81)
    for _ in range(3):
        rollout.tick(np.full(ROBOT.nu, 5.0))
    for name in FIELDS[IMU]:
        np.testing.assert_array_equal(getattr(rollout.observation, name), getattr(first, name))
        assert (getattr(rollout.measured, name) != getattr(first, name)).any()


def test_commands_are_lost_or_late_and_drives_lose_strength() -> None:
    weak = Fault(part="drives", does="scaled", joint="l_knee", amount=0.25, at=0.002)
    schedule = FaultSchedule([Fault(part="commands", does="late", amount=0.003), weak], ROBOT, DT, 0)
    told = [schedule.drive(k * DT, np.full(ROBOT.nu, float(k + 1))).copy() for k in range(8)]
    assert [tau[0] for tau in told] == [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert [tau[KNEE] for tau in told] == [0.0, 0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    lost = FaultSchedule([Fault(part="commands", does="lost", at=0.002, duration=0.003)], ROBOT, DT, 0)
    assert [lost.hears(k * DT) for k in range(7)] == [True, True, False, False, False, True, True]
    assert lost.lost_commands == 3


def test_a_run_has_its_faults_and_is_the_same_until_they_begin() -> None:
    clean, _ = run(RunConfig(duration=0.4))
    fault = "{part: drives, does: scaled, joint: l_knee, amount: 0, at: 0.2}"
    dead, summary = run(RunConfig(duration=0.4, faults=fault))
    before = clean.t <= 0.2
    np.testing.assert_array_equal(dead.joint_position[before], clean.joint_position[before])
    assert (dead.joint_effort[~before, KNEE] == 0.0).all()
    assert (clean.joint_effort[~before, KNEE] != 0.0).all()
    assert dead.joint_position[-1, KNEE] != clean.joint_position[-1, KNEE]
    assert summary["faults"] == ["drives (l_knee) scaled 0 from 0.2 s on"]
    assert summary["verdict"] == "stood 0.4 s, did not fall, under drives (l_knee) scaled 0 from 0.2 s on"


def test_measurements_that_are_no_numbers_reach_no_drive() -> None:
    recording, summary = run(RunConfig(duration=0.1, faults="{part: joints, does: nan, at: 0.05, duration: 0.01}"))
    assert np.isnan(recording.joint_position).any(axis=1).sum() == 10
    assert np.isfinite(recording.wrench).all()
    assert np.isfinite(recording.base_pose).all()
    assert summary["commands_dropped"] == 10


def test_faults_are_read_and_written(tmp_path: Path) -> None:
    faults = (
        Fault(part="imu", does="lost", at=2.0, duration=0.1),
        Fault(part="drives", does="scaled", joint="l_knee", amount=0.0),
        Fault(part="commands", does="lost", share=0.1),
    )
    texts = [fault.text() for fault in faults]
    assert read_faults(texts[0]) == faults[:1]
    assert read_faults(f"[{', '.join(texts)}]") == faults
    path = tmp_path / "faults.yaml"
    path.write_text("faults:\n" + "".join(f"  - {text}\n" for text in texts))
    assert read_faults(str(path)) == faults
    assert read_faults("") == ()
    assert for_run(faults[:2], texts[1]) == faults[:2], "what the scenario has already acts once"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("{part: knee}", {("faults[0]", "knee")}),
        ("{part: imu, does: scaled, amount: 1}", {("does", "scaled")}),
        ("{part: joints, does: late}", {("amount", None)}),
        ("{part: imu, does: lost, amount: 1}", {("amount", None)}),
        ("{part: imu, does: lost, joint: l_knee}", {("joint", None), ("joint or foot", None)}),
        ("{part: imu, does: nan, sensor: toe}", {("sensor", None)}),
        ("{part: imus, does: lost, sensor: toe}", {("sensor", "toe")}),
        ("{part: switches, does: nan}", {("does", "nan")}),
        ("[{part: imu, dos: lost}, {share: 2}]", {("faults[0]", "dos"), ("faults[1].share", 2.0)}),
        ("{part: imu", {("faults", "{part: imu")}),
        ("nowhere/faults.yaml", {("nowhere/faults.yaml", None)}),
    ],
)
def test_what_is_wrong_is_named(text: str, faults: set[tuple[str, Any]]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_faults(text)
    assert faults_of(caught.value) == {(place, repr(value)) for place, value in faults}


def test_a_joint_that_is_none_is_refused() -> None:
    with refusal(UnknownNameError, name="imu1"):
        FaultSchedule([Fault(part="switches", does="stuck", sensor="imu1")], ROBOT, DT, 0)
    with refusal(UnknownNameError, name="l_kne", meant="l_knee"):
        FaultSchedule([Fault(part="drives", does="scaled", joint="l_kne", amount=0.5)], ROBOT, DT, 0)


@pytest.mark.parametrize("part", ["imus", "switches"])
def test_parts_that_a_robot_does_not_have_are_refused(part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FaultSchedule([Fault(part=part)], load_robot("biped14"), DT, 0)
    assert caught.value.value == part
    FaultSchedule([Fault(part=part)], ROBOT, DT, 0)


LOSSY = Fault(part="imu", does="lost", share=0.3)


@settings(max_examples=25)
@given(
    others=st.lists(
        st.sampled_from(
            [
                Fault(part="joints", does="lost", share=0.5),
                Fault(part="ankles", does="nan", share=0.2),
                Fault(part="drives", does="scaled", amount=0.5, share=0.4),
                Fault(part="commands", does="lost", share=0.6),
            ]
        ),
        unique=True,
    ),
    asked=st.lists(st.integers(0, 3), min_size=40, max_size=40),
    first=st.booleans(),
)
def test_what_else_fails_or_is_asked_for_changes_no_chance(others: list[Fault], asked: list[int], first: bool) -> None:
    """Another fault, or one more command, must not change the lost messages of a sensor."""
    alone = [sent[IMU] for _, sent in seen(LOSSY, ticks=40)]
    schedule = FaultSchedule([LOSSY, *others] if first else [*others, LOSSY], ROBOT, DT, 0)
    got = []
    for observation, commands in zip(measured(40), asked, strict=True):
        schedule.sense(observation)
        got.append(schedule.sent[IMU])
        for _ in range(commands):
            schedule.hears(observation.t)
        schedule.drive(observation.t, np.zeros(ROBOT.nu))
    assert got == alone


@settings(max_examples=25)
@given(shares=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)), seed=st.integers(0, 2**40))
def test_a_larger_share_hits_all_that_a_smaller_one_does(shares: tuple[float, float], seed: int) -> None:
    """Two runs with different fractions then differ only by the additional losses."""
    few, many = ([sent[IMU] for _, sent in seen(replace(LOSSY, share=x), ticks=60, seed=seed)] for x in sorted(shares))
    assert all(sent or not also for sent, also in zip(few, many, strict=True))


def test_two_faults_of_one_kind_hit_at_different_ticks() -> None:
    one, other = (Fault(part="joints", does="nan", joint=joint, share=0.5) for joint in ("l_knee", "r_knee"))
    schedule = FaultSchedule([one, other, Fault(part="imu", does="nan", share=0.5)], ROBOT, DT, 0)
    hits = []
    for observation in measured(200):
        told = schedule.sense(observation)
        at = [ROBOT.joint_names.index(name) for name in ("l_knee", "r_knee")]
        hits.append([*np.isnan(told.joint_position[at]), np.isnan(told.imu_orientation[0])])
    weak = [Fault(part="drives", does="scaled", amount=amount, share=0.5) for amount in (0.5, 0.25)]
    schedule = FaultSchedule(weak, ROBOT, DT, 0)
    left = {float(schedule.drive(k * DT, np.ones(ROBOT.nu))[0]) for k in range(60)}
    assert left == {1.0, 0.5, 0.25, 0.125}, "neither, one, the other, both"
    # Independent ones agree in half of the ticks: four standard deviations.
    agree = np.array(hits).T
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert abs((agree[a] == agree[b]).sum() - 100) < 4 * np.sqrt(50)


@pytest.mark.parametrize("at", [0.005, 0.0052, 0.0048])
@pytest.mark.parametrize(
    ("part", "does"), [(part, does) for part, kinds in POSSIBLE.items() for does in kinds if part != HEIGHTS]
)
def test_a_fault_without_duration_lasts_for_one_tick(part: str, does: str, at: float) -> None:
    """The one that begins nearest to it: an impulse is a fault, too, and none is dropped between two ticks."""
    amount = {"late": DT, "offset": 0.5, "scaled": 0.5}.get(does)
    fault = Fault(part=part, does=does, at=at, duration=0.0, amount=amount)
    schedule = FaultSchedule([fault], ROBOT, DT, 0)
    hit = []
    for k, true in enumerate(measured(10), start=1):
        told = schedule.sense(true)
        command = np.full(ROBOT.nu, float(k))
        heard, given = schedule.hears(k * DT), schedule.drive(k * DT, command)
        sensed = part not in FIELDS or (schedule.sent[part] and same(told, true, part))
        if not (sensed and heard and np.array_equal(given, command)):
            hit.append(k)
    # A stuck value is that of the first tick, except for joint velocities.
    assert hit == ([] if does == "stuck" and part != JOINTS else [5])


def test_a_drive_that_turns_the_wrong_way_keeps_its_limit() -> None:
    """Of an impedance every torque changes its sign; a limit below zero would be one that no torque is within."""
    schedule = FaultSchedule([Fault(part="drives", does="scaled", amount=-0.5)], ROBOT, DT, 0)
    rows = np.ones((len(SETPOINT), ROBOT.nu))
    given = schedule.drive(0.0, rows)
    assert (given[LIMIT] == 0.5).all()
    for row, name in zip(given[:LIMIT], SETPOINT, strict=False):
        assert (row == (1.0 if name in ("position", "velocity") else -0.5)).all()


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ConfigError):
        FaultSchedule([LOSSY], ROBOT, DT, seed)
