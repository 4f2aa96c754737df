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
from bipedsim.errors import EXIT_INCOMPLETE, BipedSimError
from bipedsim.model import Robot
from bipedsim.runs.runner import run
from bipedsim_studies.identify import estimation, identification
from bipedsim_studies.identify.contact import Contact


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
    for path, seed in zip(paths, seeds, strict=True):
        run(RunConfig(duration=2.5, hardware={"gyro_noise": 0.01}, seed=seed))[0].save(path)
    notes = identification.Inputs.read(paths, None, [], (None, None), None).notes()
    (named,) = notes or [""]
    assert [k for k, path in enumerate(paths) if str(path) in named] == shared


def test_runs_without_noise_do_not_share_any(tmp_path: Path) -> None:
    paths = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for path in paths:
        run(RunConfig(duration=2.5))[0].save(path)
    assert not identification.Inputs.read(paths, None, [], (None, None), None).notes()
