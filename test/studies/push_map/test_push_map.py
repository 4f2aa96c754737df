"""Push maps: the search, the oracle, and robots that are pushed to their limit."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, strategies as st
from picture_support import Drawn
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim_studies.push_map.capture import PushStance, support_polygon
from bipedsim_studies.push_map.command import lines_of
from bipedsim_studies.push_map.picture import plot
from bipedsim_studies.push_map.push_map import Direction, PushMap
from bipedsim_studies.push_map.settings import PushMapSettings
from bipedsim_studies.push_map.trial import PushKind, Situation, direction_names, situation, survives
from bipedsim_studies.study.search import Threshold, threshold

SQUARE = np.array([[0.2, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.2, -0.1]])


def stance(feet: tuple[str, ...] = ("left", "right"), shift: float = 0.0) -> PushStance:
    return PushStance(SQUARE + np.array([0.0, shift]), np.array([0.05, shift]), 0.9, 70.0, 9.81, feet)


@given(edge=st.floats(1.0, 99.0), factor=st.floats(0.05, 20.0))
def test_the_search_brackets_the_edge_as_near_as_asked(edge: float, factor: float) -> None:
    asked: list[float] = []

    def below(value: float) -> bool:
        asked.append(value)
        return value < edge

    found = threshold(below, factor * edge, 0.02, 100.0)
    assert found.survived < edge <= found.failed
    assert found.failed - found.survived <= 0.02 * found.failed
    assert found.trials == len(asked) < 25


def test_the_search_ends_where_nothing_or_everything_is_survived() -> None:
    assert threshold(lambda value: True, 1.0, 0.02, 10.0).survived == 10.0
    assert math.isinf(threshold(lambda value: True, 1.0, 0.02, 10.0).failed)
    nothing = threshold(lambda value: False, 1.0, 0.02, 10.0)
    assert nothing.survived == 0.0
    assert nothing.failed < 0.02


@given(st.floats(0.0, 2.0 * math.pi))
def test_the_reach_ends_on_the_edge_of_the_support(angle: float) -> None:
    here = stance()
    x, y = here.zmp + here.reach(angle) * np.array([math.cos(angle), math.sin(angle)])
    inside = min(0.2 - x, x + 0.1, 0.1 - y, y + 0.1)
    assert abs(inside) < 1e-12
    assert here.bound(angle) == pytest.approx(70.0 * math.sqrt(9.81 / 0.9) * here.reach(angle))


def test_the_support_of_two_feet_is_their_hull() -> None:
    feet = np.vstack([SQUARE + np.array([0.0, 0.2]), SQUARE - np.array([0.1, 0.2])])
    polygon = support_polygon(feet)
    assert len(polygon) == 6
    edges = np.roll(polygon, -1, axis=0) - polygon
    turns = edges[:, 0] * np.roll(edges, -1, axis=0)[:, 1] - edges[:, 1] * np.roll(edges, -1, axis=0)[:, 0]
    assert (turns > 0.0).all()


def test_sides_are_named_by_the_foot_that_carries() -> None:
    angles = [k * math.pi / 2.0 for k in range(4)]
    assert [direction_names(stance())(a) for a in angles] == ["forward", "left", "backward", "right"]
    left, right = direction_names(stance(("left",), 0.1)), direction_names(stance(("right",), -0.1))
    assert [left(a) for a in angles] == ["forward", "outward", "backward", "inward"]
    assert [right(a) for a in angles] == ["forward", "inward", "backward", "outward"]
    assert left(math.pi / 4.0) == "45 deg"


def test_the_reference_of_a_standing_robot_is_where_it_stands() -> None:
    robot = load_robot("talos")
    where = situation(RunConfig(robot="talos", controller="posture"), 0.5)
    assert where.stance.feet == ("left", "right")
    assert where.stance.mass == pytest.approx(robot.mass)
    # The soles are 0.17 m apart; the nominal posture has its CoM over the middle of them, 0.877 m up.
    length, width = np.ptp(robot.soles[0].vertices, axis=0)
    assert np.ptp(where.stance.polygon, axis=0) == pytest.approx([length, 0.17 + width], abs=1e-3)
    assert where.stance.zmp == pytest.approx([0.0, 0.0], abs=1e-3)
    assert where.stance.com_height == pytest.approx(0.877, abs=1e-3)


def test_a_robot_that_falls_by_itself_is_no_situation() -> None:
    with pytest.raises(ConfigError) as caught:
        situation(RunConfig(controller="user_controllers:Rest"), 1.5)

    assert caught.value.place.endswith("biped14")


def test_a_robot_in_the_air_is_no_situation(tmp_path: Path) -> None:
    scenario = tmp_path / "drop.yaml"
    scenario.write_text("description: from high above\ncontroller: posture\nduration: 1.0\ndrop_height: 0.3\n")
    with refusal(place="t = 0.1 s"):
        situation(RunConfig(scenario=str(scenario), controller="posture"), 0.1)


def test_walking_begins_with_the_earliest_velocity_wherever_it_is_listed(tmp_path: Path) -> None:
    scenario = tmp_path / "late.yaml"
    scenario.write_text(
        "description: steps in disorder\ncontroller: zmp\nduration: 9.0\nvelocity:\n"
        "  - {at: 6.0, vx: 0.1}\n  - {at: 0.5, vx: 0.2}\n"
    )
    assert 3.5 < situation(RunConfig(scenario=str(scenario), controller="zmp"), None).at < 5.5


@pytest.mark.ci
def test_one_foot_only_carries_a_walker_when_it_is_pushed() -> None:
    where = situation(RunConfig(scenario="walk"), 2.0)
    assert where.walking
    assert where.at > 2.0
    (foot,) = where.stance.feet
    corners = where.stance.polygon
    sides = np.linalg.norm(np.roll(corners, 1, axis=0) - corners, axis=1)
    assert np.sort(sides) == pytest.approx([0.13, 0.13, 0.24, 0.24], abs=1e-3)
    assert (where.stance.polygon[:, 1].mean() > 0.0) == (foot == "left")


@pytest.mark.ci
def test_standing_takes_most_of_what_the_support_allows_and_no_more() -> None:
    """The oracle of the linear inverted pendulum on both sides: 85 % of it are recovered from, 115 % are not."""
    where = situation(RunConfig(controller="zmp"), 1.2)
    angle = 0.5 * math.pi
    bound = where.stance.bound(angle)
    kind = PushKind(settle=1.0)
    assert survives(where, kind, angle, 0.85 * bound)
    assert not survives(where, kind, angle, 1.15 * bound)


def test_a_stiff_robot_takes_what_a_rigid_body_that_pivots_about_its_edge_does() -> None:
    """`posture` recovers from more than m omega d, as documented: it tips and comes back, with the energy of a body of
    its inertia.
    """
    robot = load_robot("biped14")
    where = situation(RunConfig(controller="posture"), 1.2)
    data, q = robot.model.createData(), robot.q_nominal.copy()
    pin.ccrba(robot.model, data, q, np.zeros(robot.model.nv))
    z, d, m = where.stance.com_height, where.stance.reach(0.0), where.stance.mass
    # Where the push acts, at the root link, above the soles.
    height = q[2] - (pin.centerOfMass(robot.model, data, q)[2] - z)
    lift = math.hypot(z, d) - z
    inertia = data.Ig.inertia[1, 1] + m * (z * z + d * d)
    pivot = math.sqrt(2.0 * inertia * m * 9.81 * lift) / height
    assert pivot > 1.2 * where.stance.bound(0.0)
    assert pivot == pytest.approx(33.1, abs=0.05)
    kind = PushKind()
    assert survives(where, kind, 0.0, 0.98 * pivot)
    assert not survives(where, kind, 0.0, 1.15 * pivot)


def test_the_picture_and_the_json_hold_every_direction(tmp_path: Path) -> None:
    names = ("forward", "left", "backward", "right")
    found = PushMap(
        PushKind(),
        (Situation(RunConfig(controller="zmp"), 2.0, False, stance()),),
        {0: [Direction(n, k * math.pi / 2.0, Threshold(20.0 + k, math.inf, 3), 30.0) for k, n in enumerate(names)]},
    )
    plot(found, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000
    (where,) = json.loads(json.dumps(found.as_json()))["situations"]
    assert [entry["name"] for entry in where["directions"]] == list(names)
    assert where["directions"][2]["impulse_Ns"] == 22.0
    assert where["directions"][2]["falls_at_Ns"] is None
    assert where["zmp_m"] == [0.05, 0.0]
    assert "zmp" in next(lines_of(found)), "the controller of the map, also if it is the default"


def a_map_of(hardware: dict[str, float]) -> PushMap:
    """A map of two scenarios, with an impulse of its own for each hardware."""
    runs = PushMapSettings(scenarios=("stand", "walk"), hardware=tuple(hardware)).runs()
    feet = {"stand": ("left", "right"), "walk": ("left",)}
    situations = tuple(
        Situation(run, 2.0, run.scenario == "walk", stance(feet[run.scenario or ""]), math.nan) for run in runs
    )
    directions = {
        i: [
            Direction(name, k * math.pi, Threshold(hardware[str(run.hardware)] + k, 90.0, 3), 30.0)
            for k, name in enumerate(("forward", "backward"))
        ]
        for i, run in enumerate(runs)
    }
    return PushMap(PushKind(), situations, directions)


def test_several_hardware_give_a_range(tmp_path: Path) -> None:
    found = a_map_of({"a.yaml": 22.0, "b.yaml": 18.0, "c.yaml": 24.0})
    assert found.variants() == [[0, 1, 2], [3, 4, 5]]
    forward, backward = found.across([3, 4, 5])
    assert [entry.threshold.survived for entry in forward] == [22.0, 18.0, 24.0]
    assert {(entry.name, entry.angle) for entry in backward} == {("backward", math.pi)}
    drawn = Drawn(lambda path: plot(found, path), tmp_path)
    assert sum("3 robots" in text for text in drawn.texts) == 2
    lines = [line for line in lines_of(found) if "b.yaml" in line]
    assert [line.split()[:4] for line in lines[:2]] == [
        ["forward", "18.0", "to", "24.0"],
        ["backward", "19.0", "to", "25.0"],
    ]
    assert len(lines) == 4
    assert [where["hardware"] for where in found.as_json()["situations"][:3]] == ["a.yaml", "b.yaml", "c.yaml"]


def test_each_robot_counts_with_its_own_mass(tmp_path: Path) -> None:
    """Two robots that withstand the same change of velocity differ in the impulse, and not in J / (m omega L)."""
    found = a_map_of({"a.yaml": 20.0, "b.yaml": 30.0})
    stances = [replace(each.stance, mass=mass) for each, mass in zip(found.situations, [70, 105] * 2, strict=True)]
    phased = tuple(replace(each, stance=one, phase=0.5) for each, one in zip(found.situations, stances, strict=True))
    found = replace(found, situations=phased, legs=(0.9,) * 4)
    forward = next(line for line in lines_of(found) if line.startswith("  forward"))
    assert "0.286 to  0.286 m/s" in forward
    drawn = Drawn(lambda path: plot(found, path), tmp_path)
    assert any("2 robots" in text for text in drawn.texts)


def test_situations_on_other_feet_are_not_compared() -> None:
    """Outward on the left foot is inward on the right one."""
    found = a_map_of({"a.yaml": 22.0, "b.yaml": 18.0})
    walk = replace(found.situations[3], stance=stance(("right",), -0.1))
    found = replace(found, situations=(*found.situations[:3], walk))
    assert found.variants() == [[0, 1], [2], [3]]


def test_phases_are_grouped_over_the_hardware() -> None:
    run = RunConfig(controller="zmp", scenario="walk")
    situations = [
        Situation(replace(run, hardware=hardware), 2.0, True, stance(("left",)), phase)
        for hardware in ("a.yaml", "b.yaml")
        for phase in (0.25, 0.75)
    ]
    assert PushMap(PushKind(), tuple(situations)).variants() == [[0, 2], [1, 3]]


@pytest.mark.ci
def test_the_limit_is_that_of_the_simulated_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """m omega d has the mass of the plant, of which the controller does not know. Ahead, the edge of the soles is d."""
    heavy = tmp_path / "heavy.yaml"
    heavy.write_text("preset: ideal\nmass_scale: 1.3\n")
    settings = "{directions: 1, tolerance: 0.2, at: 1.2, push: {settle: 1}, run: {controller_params: {catch_time: 0}}}"
    words = ["push-map", settings, "--scenarios", "stand", "--jobs", "1", "--json", "--hardware", "ideal", str(heavy)]
    assert main(words) == 0
    light, heavier = json.loads(capsys.readouterr().out)["situations"]
    assert (light["hardware"], heavier["hardware"]) == ("ideal", str(heavy))
    assert heavier["mass_kg"] == pytest.approx(1.3 * light["mass_kg"])
    distance = max(x for x, _ in heavier["polygon_m"]) - heavier["zmp_m"][0]
    limit = 1.3 * light["mass_kg"] * math.sqrt(9.81 / heavier["com_height_m"]) * distance
    (ahead,) = heavier["directions"]
    assert ahead["bound_Ns"] == pytest.approx(limit, rel=1e-3)
    assert 0.6 * limit < ahead["impulse_Ns"] < 1.1 * limit


def test_no_number_of_a_picture_is_between_another_one_and_its_point(tmp_path: Path) -> None:
    """Two curves that nearly meet ahead: the larger number stands outside, the smaller one inside."""
    rng = np.random.default_rng(3)
    situations = (
        Situation(RunConfig(controller="zmp"), 2.0, False, stance()),
        Situation(RunConfig(controller="zmp", scenario="walk"), 4.0, True, stance(("left",), 0.1)),
    )
    values = 30.0 + rng.uniform(-2.0, 2.0, (2, 4)).round(1)
    directions = {
        i: [
            Direction(direction_names(where.stance)(a), a, Threshold(v, 60.0, 3), 30.0)
            for a, v in zip(np.arange(4) * np.pi / 2.0, values[i], strict=True)
        ]
        for i, where in enumerate(situations)
    }
    drawn = Drawn(lambda path: plot(PushMap(PushKind(), situations, directions), path), tmp_path)
    middle = 0.5 * (drawn.place("backward") + drawn.place("forward"))
    for pair in values.T:
        outer, inner = (np.linalg.norm(drawn.place(f"{value:.1f}") - middle) for value in (pair.max(), pair.min()))
        assert outer > inner + 10.0
    # Directions have names in place of angles, each once.
    assert not [text for text in drawn.texts if "°" in text]
    assert {"ahead ↑", "left", "outward", "right", "inward"} <= set(drawn.texts)


@pytest.mark.parametrize(("key", "value"), [("directions", "0"), ("at", "0"), ("at", "-1")])
def test_wrong_settings_are_named(key: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push-map", f"{{{key}: {value}}}"]) == 2
    assert f"{key} = {float(value) if key == 'at' else value}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--scenarios=stan", "unknown scenario 'stan'; did you mean 'stand'?"),
        ("--robot=biped41", "unknown robot 'biped41'; did you mean 'biped14'?"),
        ("--controller=zmpp", "unknown controller 'zmpp'; did you mean 'zmp'?"),
        ("{run: {ground: slop}}", "unknown ground 'slop'; did you mean 'slope'?"),
    ],
)
def test_wrong_names_are_told_before_processes_start(
    option: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", lambda process: pytest.fail("a process started"))
    assert main(["push-map", option]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("delay", [0.0, 0.3, 1.5])
def test_ctrl_c_is_answered_by_the_command_alone(delay: float) -> None:
    """As a terminal sends it: to the command and to all of its processes at once."""
    code = "import sys; from bipedsim.cli.main import main; sys.exit(main())"
    words = ["push-map", "--scenarios", "stand", "--jobs", "2"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        end = time.monotonic() + 240.0
        # The command, its resource tracker, and two workers.
        while len(group(process.pid)) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr is not None
        assert process.wait(240) == 130
        assert process.stderr.read() == b"bipedsim: interrupted\n"
    # The workers and the tracker notice the end of the command a moment later.
    while group(process.pid) and time.monotonic() < end:
        time.sleep(0.01)
    assert not group(process.pid)


def group(leader: int) -> list[int]:
    """Return the processes of a group that are no zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of) == leader and state != "Z":
                found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
def test_the_command_maps_in_processes(capsys: pytest.CaptureFixture[str]) -> None:
    # The bound is that of feet that stay.
    settings = "{directions: 2, tolerance: 0.2, at: 1.2, push: {settle: 1}, run: {controller_params: {catch_time: 0}}}"
    assert main(["push-map", settings, "--scenarios", "stand", "--jobs", "2", "--json"]) == 0
    (where,) = json.loads(capsys.readouterr().out)["situations"]
    for entry in where["directions"]:
        assert 0.7 * entry["bound_Ns"] < entry["impulse_Ns"] < entry["falls_at_Ns"] < 1.3 * entry["bound_Ns"]
