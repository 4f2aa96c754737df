"""The folder of a study: files, resumption, and rejected folders."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal

from bipedsim.config import write_whole
from bipedsim.errors import ConfigError, RecordingError
from bipedsim_studies.study.config import StudyPlan, read_plan
from bipedsim_studies.study.results import ABOUT, JOURNAL, Results, read_rows
from bipedsim_studies.study.table import error_lines, lines_of, points_of, same_lines
from bipedsim_studies.study.trial import FAILED, begin_row


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "mine.yaml").write_text("flat: {friction_static: 0.4}\n")
    path = tmp_path / "some.yaml"
    path.write_text("run: {scenario: stand, duration: 0.1, ground: ./mine.yaml}\nrepeat: 6\n")
    return path


def row(plan: StudyPlan, i: int, **more: Any) -> dict[str, Any]:
    return begin_row(plan.trials[i]) | {"outcome": "stayed up", "success": True} | more


def test_results_of_other_code_or_files_are_refused_by_name(study: Path, tmp_path: Path) -> None:
    plan = read_plan(study)
    with Results(tmp_path / "out", plan) as results:
        results.add(row(plan, 0))
    with Results(tmp_path / "out", read_plan(study)) as results:
        assert list(results.rows) == [0]
    (tmp_path / "mine.yaml").write_text("flat: {friction_static: 0.5}\n")
    with pytest.raises(ConfigError) as caught:
        Results(tmp_path / "out", read_plan(study))
    assert "mine.yaml" in caught.value.place
    about = json.loads((tmp_path / "out" / ABOUT).read_text())
    for name in ("bipedsim", "numba", "machine", "robot biped14: robot.urdf"):
        other = {**about, "content": {**read_plan(study).needs.content, name: "other"}}
        (tmp_path / "out" / ABOUT).write_text(json.dumps(other))
        with pytest.raises(ConfigError) as caught:
            Results(tmp_path / "out", read_plan(study))
        assert name in caught.value.place
    study.write_text(study.read_text().replace("0.1", "0.2"))
    with refusal(place=tmp_path / "out"):
        Results(tmp_path / "out", read_plan(study))
    shutil.rmtree(tmp_path / "out")
    with Results(tmp_path / "out", read_plan(study)) as results:
        assert results.rows == {}


@pytest.mark.parametrize("outcome", FAILED)
def test_trials_without_a_result_are_tried_again(study: Path, tmp_path: Path, outcome: str) -> None:
    plan = read_plan(study)
    with Results(tmp_path / "out", plan) as results:
        results.add(row(plan, 0))
        results.add(row(plan, 1, outcome=outcome, success=False, why="no memory"))
        results.add(row(plan, 2, outcome="fell", success=False))
    with Results(tmp_path / "out", plan) as results:
        assert (sorted(results.rows), results.again) == ([0, 2], 1)
        results.add(row(plan, 1))
    with Results(tmp_path / "out", plan) as results:
        assert (sorted(results.rows), results.again) == ([0, 1, 2], 0)
    assert [one["outcome"] for one in read_rows(tmp_path / "out")] == ["stayed up", "stayed up", "fell"]


def test_what_is_reported_is_on_the_disk(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is written after all of its rows, and the table itself, are on the disk."""
    pytest.importorskip("pyarrow", reason="pyarrow (the extra study) is not installed")
    synced: dict[str, int] = {}
    real = os.fsync

    def spy(handle: int) -> None:
        real(handle)
        synced[os.readlink(f"/proc/self/fd/{handle}")] = os.fstat(handle).st_size

    monkeypatch.setattr(os, "fsync", spy)
    plan = read_plan(study)
    with Results(tmp_path / "out", plan) as results:
        for i in range(5):
            results.add(row(plan, i))
        path = results.write_table()
        journal = tmp_path / "out" / JOURNAL
        assert synced[str(journal)] == journal.stat().st_size
        assert path.stat().st_size in synced.values()
        results.add(row(plan, 5))
    assert synced[str(journal)] == journal.stat().st_size


def test_a_disk_that_takes_nothing_is_told_and_keeps_what_it_had(study: Path, tmp_path: Path) -> None:
    plan = read_plan(study)
    path = tmp_path / "some.json"
    write_whole(path, b"first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Results(tmp_path / "out", plan) as results:
        results.add(row(plan, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[0][1]))
        try:
            with refusal(RecordingError, place=path):
                write_whole(path, bytes(10_000))
            with refusal(RecordingError, place=tmp_path / "out" / JOURNAL):
                results.add(row(plan, 1, why="x" * 10_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
            signal.signal(signal.SIGXFSZ, before[1])
    assert path.read_bytes() == b"first"
    with Results(tmp_path / "out", plan) as results:
        assert list(results.rows) == [0]


def test_an_error_is_told_once_with_all_its_trials(study: Path) -> None:
    plan = read_plan(study)
    rows = [row(plan, i, outcome="error", why="KeyError: 'a' in mine.py:7 (update)") for i in (4, 1)]
    rows += [row(plan, 0), row(plan, 2, outcome="timed out", why="it did not end")]
    first, second = error_lines(rows)
    assert "2 trials (1, 4): KeyError: 'a' in mine.py:7" in first
    assert "1 trial (2): it did not end" in second
    assert error_lines([row(plan, 0)]) == []


def test_repetitions_that_are_the_same_run_are_told(study: Path) -> None:
    """An interval of runs that chance has no part in means nothing."""
    plan = read_plan(study)
    same = [row(plan, i, steps=4) for i in range(3)]
    assert len(same_lines(same)) == 1
    assert same_lines([*same[:2], row(plan, 2, steps=5)]) == []
    assert same_lines([same[0]]) == []
    assert replace(plan, name="other").checksum == plan.checksum


def test_what_was_bisected_is_the_mean_of_the_trials_that_had_a_success(study: Path) -> None:
    study.write_text(study.read_text() + "bisect: {name: run.rate, guess: 500}\n")
    plan = read_plan(study)
    rows = {i: row(plan, i, **{"run.rate": value}) for i, value in enumerate((4.0, 6.0))}
    rows[2] = row(plan, 2, success=False, **{"run.rate": 0.0})
    (point,) = points_of(plan, rows)
    assert (list(point.found), point.successes, point.trials) == ([4.0, 6.0], 2, 3)
    assert "5 +- 1.4" in lines_of(plan, rows)[1]
