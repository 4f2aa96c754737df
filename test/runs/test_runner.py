"""A headless run, tick by tick."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.control.controllers import make_controller
from bipedsim.errors import EXIT_FAILED, UnknownNameError
from bipedsim.model import load_robot
from bipedsim.recording import joined, load_recording
from bipedsim.runs import Push, runner
from bipedsim.runs.runner import Run, prepare, run
from bipedsim.view.page.frames import frames_of


def test_a_push_at_the_start_acts_once_and_is_described_once() -> None:
    """A step before the run loads the kernels. It must not start the push."""
    prepared = prepare(RunConfig(scenario="stand"))
    push = Push(at=0.0, duration=0.1, force=(0.0, 20.0, 0.0))
    run = Run(replace(prepared, scenario=replace(prepared.scenario, pushes=(push,))))
    assert run.described["pushes"] == []
    for _ in range(3):
        run.control()
        run.step()
    assert [(one["t"], one["wrench"][1]) for one in run.described["pushes"]] == [(0.0, 20.0)]


@pytest.mark.parametrize("controller", ["posture", "pfl"])
def test_a_run_begins_with_a_controller_that_has_answered_nothing_yet(controller: str) -> None:
    """Its kernels were loaded by its first answer."""
    prepared = prepare(RunConfig(controller=controller))
    run, fresh = Run(prepared), make_controller(controller, prepared.robot)
    fresh.reset(run.observation)
    for _ in range(3):
        run.control()
        limit = prepared.robot.effort_limit
        expected = np.clip(fresh.update(run.observation).tau_joint, -limit, limit)
        np.testing.assert_array_equal(run.command, expected)
        run.step()


def test_what_was_simulated_before_the_controller_raised_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report contains the exception. Ctrl-C leaves the same files.

    The controller raises at its 52nd update, as in `bipedsim up`. Compilation before time begins must not count.
    """
    file = tmp_path / "run.npz"
    run = ["run", "--controller", "user_controllers:Crash", "--duration", "1", "--output", str(file)]
    assert main(run) == EXIT_FAILED
    out, err = capsys.readouterr()
    assert "but the controller was stopped at t = 0.051 s: its update raised RuntimeError: this controller" in out
    assert "controller stopped at t = 0.051 s; the run ended there" in out
    assert "the simulation ended with an error at t = 0.051 s" in err
    head = "bipedsim run: the controller user_controllers:Crash raised an exception in its own code:\n"
    _, _, raised = err.partition(head)
    assert [line.split()[0] for line in raised.splitlines() if "File" in line or ".py" in line] == ["File"]
    assert raised.endswith("\nRuntimeError: this controller crashes\n")
    assert len(load_recording(file)) == 51


def test_a_controller_that_raises_while_it_is_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "unmade.py").write_text(
        "from user_controllers import Rest\n\n\nclass Mine(Rest):\n"
        "    def __init__(self, robot, params, dt):\n        raise ValueError('no gains')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["run", "--controller", "unmade:Mine", "--duration", "0.01"]) == EXIT_FAILED
    head, _, raised = capsys.readouterr().err.partition("\n")
    assert head == "bipedsim run: the controller unmade:Mine raised an exception in its own code:"
    assert raised.endswith("\nValueError: no gains\n")


def test_compiling_is_no_part_of_the_real_time_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compile clock runs backwards, so that its subtraction is visible."""
    readings = itertools.count(0.0, -1000.0)
    monkeypatch.setattr(runner, "compile_seconds", lambda: next(readings))
    _, summary = run(RunConfig(controller="posture", duration=0.01))
    assert 1000.0 < 0.01 / summary["real_time_factor"] < 2000.0


def test_parameters_may_have_the_name_of_their_class_before_them_as_in_ros() -> None:
    params, contact = {"posture.mode": "squat", "squat_depth": 0.02}, {"one_step.gamma": 0.2}
    settings = RunConfig(controller="posture", controller_params=params, contact_params=contact)
    run = Run(prepare(settings))
    assert run.sim.config.contact_params == {"gamma": 0.2}
    with refusal(UnknownNameError, kind="parameter", name="pfl.mode"):
        prepare(RunConfig(controller="posture", controller_params={"pfl.mode": "squat"}))


def test_a_misspelt_parameter_is_told_before_the_controller_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making one compiles its kernels, which takes up to a minute."""
    made: list[str] = []
    monkeypatch.setattr(runner, "make_controller", lambda name, *_: made.append(name))
    with refusal(UnknownNameError, name="com_hight", meant="com_height"):
        prepare(RunConfig(controller="zmp", controller_params={"com_hight": 0.9}))
    assert made == []


def test_forces_at_vertices_are_recorded_when_asked_for_and_shown(tmp_path: Path) -> None:
    """They add up to the wrench of the foot, force and torque, and the page has them from the file."""
    settings = RunConfig(contact_model="lcp", duration=0.05)
    plain, _ = run(settings)
    assert plain.vertex_forces == {}
    recording, _ = run(settings, vertex_forces=True)
    np.testing.assert_array_equal(recording.wrench, plain.wrench)
    recording.save(tmp_path / "run.npz")
    loaded = load_recording(tmp_path / "run.npz")
    assert list(loaded.vertex_forces) == list(loaded.feet) == ["left", "right"]
    for k, foot in enumerate(loaded.feet):
        forces, at = loaded.vertex_forces[foot], np.column_stack([loaded.sole_vertices[k], np.zeros(4)])
        np.testing.assert_array_equal(forces, recording.vertex_forces[foot])
        np.testing.assert_allclose(forces.sum(axis=1), loaded.wrench[:, k, :3], atol=1e-6)
        np.testing.assert_allclose(np.cross(at, forces).sum(axis=1), loaded.wrench[:, k, 3:], atol=1e-6)
    part = joined([loaded.rows(slice(0, 20)), loaded.rows(slice(20, None))])
    np.testing.assert_array_equal(part.vertex_forces["left"], loaded.vertex_forces["left"])
    instant = frames_of(loaded, load_robot("biped14")).instant(10)
    assert instant.vertex_forces is not None
    np.testing.assert_array_equal(instant.vertex_forces[1], loaded.vertex_forces["right"][10])


def test_forces_at_vertices_that_nobody_knows_are_refused_with_the_way_out() -> None:
    with refusal(place="vertex forces"):
        run(RunConfig(duration=0.01), vertex_forces=True)
    with refusal(place="vertex forces"):
        run(RunConfig(contact_model="lcp", ground="slope", scenario="slope", duration=0.01), vertex_forces=True)


@pytest.mark.parametrize("ticks", [29, 57, 58])
def test_a_duration_has_all_its_ticks(ticks: int) -> None:
    """Such durations times the rate are just below a whole number."""
    assert ticks / 100.0 * 100.0 < ticks
    assert prepare(RunConfig(duration=ticks / 100.0, rate=100.0)).ticks == ticks
