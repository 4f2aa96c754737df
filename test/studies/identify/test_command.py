"""The command: results that remain if others fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contact_support import described

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import EXIT_INCOMPLETE, EXIT_USAGE, BipedSimError, ConfigError
from bipedsim.model import Robot
from bipedsim.runs.runner import run
from bipedsim_studies.identify import estimation, identification
from bipedsim_studies.identify.contact import Contact
from bipedsim_studies.identify.suggest import Suggestion


@pytest.mark.parametrize("error", [np.linalg.LinAlgError("singular"), BipedSimError("a foot is missing")])
def test_numbers_remain_if_the_contact_fails(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate takes minutes, and does not need the contact."""

    def fails(*_: Any) -> Contact:
        raise error

    def known(robot: Robot, *_: Any) -> estimation.Estimate:
        return described(robot)

    monkeypatch.setattr(Contact, "of", fails)
    monkeypatch.setattr(identification, "estimate", known)
    run(RunConfig(scenario="squat", duration=3.0))[0].save(tmp_path / "squat.npz")
    words = ["identify", str(tmp_path / "squat.npz"), "-o", str(tmp_path / "hardware.yaml")]
    assert main([*words, "--json", "--plot", str(tmp_path / "page.html")]) == EXIT_INCOMPLETE
    values = json.loads(capsys.readouterr().out)
    assert values["contact"] is None
    assert any(str(error) in note for note in values["notes"])
    assert "armature" in (tmp_path / "hardware.yaml").read_text()
    assert str(error) in (tmp_path / "page.html").read_text()
    assert main(words) == EXIT_INCOMPLETE
    assert str(error) in capsys.readouterr().out


@pytest.mark.parametrize(("seeds", "shared"), [((1, 1, 2), [0, 1]), ((1, 2, 3), [])])
def test_runs_with_the_same_noise_are_named(seeds: tuple[int, ...], shared: list[int], tmp_path: Path) -> None:
    """The intervals suppose that each recording has its own."""
    paths = [tmp_path / f"run_{k}.npz" for k in range(len(seeds))]
    for path, seed, scenario in zip(paths, seeds, ("stand", "squat", "sway"), strict=True):
        run(RunConfig(scenario=scenario, duration=2.5, hardware={"gyro_noise": 0.01}, seed=seed))[0].save(path)
    notes = identification.Inputs.read(paths, None, [], (None, None), None).notes()
    (named,) = notes or [""]
    assert [k for k, path in enumerate(paths) if str(path) in named] == shared


def test_runs_without_noise_do_not_share_any(tmp_path: Path) -> None:
    paths = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for path, scenario in zip(paths, ("squat", "sway"), strict=True):
        run(RunConfig(scenario=scenario, duration=2.5))[0].save(path)
    assert not identification.Inputs.read(paths, None, [], (None, None), None).notes()


def test_the_same_measurements_do_not_count_twice(tmp_path: Path) -> None:
    """A bag and an export of a part of it are two files."""
    paths = [tmp_path / "whole.npz", tmp_path / "part.npz"]
    recording = run(RunConfig(scenario="squat", duration=4.0))[0]
    for path, rows in zip(paths, (slice(0, 4000), slice(1000, 3500)), strict=True):
        recording.rows(rows).save(path)
    for sources, check in ((paths, None), (paths[:1], paths[1])):
        with pytest.raises(ConfigError) as raised:
            identification.Inputs.read(sources, None, [], (None, None), check)
        assert raised.value.place == str(paths[1])


def test_the_hardware_is_written_before_a_figure_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identification, "estimate", lambda robot, *_: described(robot))
    run(RunConfig(scenario="squat", duration=3.0))[0].save(tmp_path / "squat.npz")
    (tmp_path / "file").touch()
    words = ["identify", str(tmp_path / "squat.npz"), "-o", str(tmp_path / "hardware.yaml")]
    assert main([*words, "--plot", str(tmp_path / "file" / "figure.png")]) == EXIT_USAGE
    assert "armature" in (tmp_path / "hardware.yaml").read_text()


@pytest.mark.parametrize("command", ["identify", "gap"])
def test_a_figure_of_an_unknown_kind_is_refused_before_the_work(command: str) -> None:
    with pytest.raises(SystemExit) as raised:
        main([command, "missing.npz", "--plot", "figure.xyz"])
    assert raised.value.code == EXIT_USAGE


def test_without_a_motion_that_succeeds_the_result_is_incomplete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identification, "estimate", lambda robot, *_: described(robot))
    monkeypatch.setattr(identification, "suggestions", lambda *_: [Suggestion("fall", {}, None, "it falls")])
    run(RunConfig(scenario="squat", duration=3.0))[0].save(tmp_path / "squat.npz")
    words = ["identify", str(tmp_path / "squat.npz"), "--suggest", str(tmp_path / "next.yaml"), "--json"]
    assert main(words) == EXIT_INCOMPLETE
    assert json.loads(capsys.readouterr().out)["notes"]
    assert not (tmp_path / "next.yaml").exists()
