"""Studies from file to table: closed forms, the same bits after any failure of workers, and failure reports."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from children_support import children_of
from pool_support import dies
from refusals import refusal
from scipy.stats import binomtest

pytest.importorskip("distributed", reason="dask.distributed (the extra study) is not installed")
pytest.importorskip("pyarrow", reason="pyarrow (the extra study) is not installed")

import numpy as np
import pyarrow.parquet as pq

from bipedsim.config import RunConfig
from bipedsim.runs import run
from bipedsim_studies.compare.comparison import MeasuredRun, compare
from bipedsim_studies.stability.basin import probe
from bipedsim_studies.stability.gait import WalkerGait
from bipedsim_studies.study.config import read_plan
from bipedsim_studies.study.options import Parallel
from bipedsim_studies.study.processes import TRIES, DaskWorkers, Killed, LostWorkersError
from bipedsim_studies.study.results import ABOUT, JOURNAL, TABLE, Results, read_rows, wilson
from bipedsim_studies.study.study_run import run_study
from bipedsim_studies.study.table import lines_of
from bipedsim_studies.study.trial import run_trial

pytestmark = pytest.mark.studies

STUDY = """
description: a push while standing
run: {scenario: push, duration: 0.3, hardware: realistic}
scenario:
  pushes: [{at: 0.1, duration: 0.05, impulse_over_mass: [0, 0, 0]}]
vary:
  run.contact_model: [one_step, lcp]
  scenario.pushes.0.impulse_over_mass.1: {uniform: [-0.3, 0.3]}
repeat: 3
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "pushes.yaml"
    path.write_text(STUDY)
    return path


def test_a_row_is_what_a_run_of_its_own_gives(study: Path) -> None:
    trial = read_plan(study).trials[4]
    row = run_trial(trial)
    _, summary = run(trial.prepare())
    assert row["run.contact_model"] == "lcp"
    assert row["fz_N.max"] == summary["fz_N"]["max"]
    assert row["verdict"] == summary["verdict"]
    assert (row["success"], row["outcome"]) == (True, "stayed up")
    assert row["physics.depth_m.worst"] == summary["physics"]["depth_m"]["worst"]
    assert run_trial(trial) == row
    json.dumps(row, allow_nan=False)


def test_one_worker_or_two_in_one_go_or_two_the_same_bytes(study: Path, tmp_path: Path) -> None:
    plan = read_plan(study)
    for name, jobs in (("one", 1), ("two", 2)):
        run_study(plan, tmp_path / name, Parallel(jobs))
    table = (tmp_path / "one" / TABLE).read_bytes()
    assert (tmp_path / "two" / TABLE).read_bytes() == table
    # The machine went down in the middle of a line.
    lines = (tmp_path / "two" / JOURNAL).read_text().splitlines(keepends=True)
    assert len(lines) == 6
    (tmp_path / "two" / JOURNAL).write_text("".join(lines[:3]) + lines[3][:40])
    told: list[str] = []
    run_study(plan, tmp_path / "two", Parallel(1), tell=told.append)
    assert told == ["3 of 6 trials are there already, 3 to go"]
    assert (tmp_path / "two" / TABLE).read_bytes() == table
    rows = pq.read_table(tmp_path / "two" / TABLE).to_pylist()
    assert [row["trial"] for row in rows] == list(range(6))
    study.write_text(STUDY.replace("0.05", "0.06"))
    with refusal(place=tmp_path / "two"):
        run_study(read_plan(study), tmp_path / "two", Parallel(1))
    shutil.rmtree(tmp_path / "two")
    run_study(read_plan(study), tmp_path / "two", Parallel(2))
    assert {row["trial"] for row in read_rows(tmp_path / "two")} == set(range(6))
    assert (tmp_path / "two" / TABLE).read_bytes() != table, "the push lasts longer now"
    with Results(tmp_path / "two", read_plan(study)), refusal(place=tmp_path / "two"):
        Results(tmp_path / "two", read_plan(study))
    for name in (JOURNAL, ABOUT):
        with (tmp_path / "two" / name).open("r+b") as file:
            file.write(b"\0\0")
        with refusal(place=tmp_path / "two" / name):
            Results(tmp_path / "two", read_plan(study))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with refusal(place=tmp_path / "other"):
        Results(tmp_path / "other", plan)


def test_a_slope_is_stood_on_up_to_its_friction(tmp_path: Path) -> None:
    """Coulomb: a body slides where tan(angle) is above mu."""
    path = tmp_path / "slope.yaml"
    path.write_text(
        "run: {scenario: stand, duration: 0.5}\nground: {slope: {angle_deg: 1, friction_static: 0.1}}\n"
        "bisect: {name: ground.slope.angle_deg, guess: 4, limit: 20, tolerance: 0.01}\n"
        "success: {foot_drift_m: [null, 1.0e-4]}\nscenario: {}\n"
    )
    plan = read_plan(path)
    row = run_trial(plan.trials[0])
    critical = math.degrees(math.atan(0.1))
    assert row["ground.slope.angle_deg"] <= critical <= row["failed_at"]
    assert row["failed_at"] - row["ground.slope.angle_deg"] <= 0.01 * row["failed_at"]
    assert "foot_drift_m" in row["why"]
    assert f"{row['ground.slope.angle_deg']:.4g}" in lines_of(plan, {0: row})[1]


def test_what_goes_wrong_in_a_trial_is_its_row(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY + "success: {no_such_figure: 1}\n")
    plan = read_plan(study)
    row = run_trial(plan.trials[0])
    assert (row["outcome"], row["success"]) == ("error", False)
    assert "no figure 'no_such_figure'" in row["why"]
    assert "error in 1 trial (0): success: there is no figure" in "\n".join(lines_of(plan, {0: row}))


def test_what_a_dead_worker_had_in_hand_is_done_by_another(tmp_path: Path) -> None:
    with DaskWorkers(2) as pool:
        found: dict[int, Any] = dict(pool.each(dies, [(str(tmp_path), i) for i in range(5)]))
    assert {i: result for i, result in found.items() if i != 3} == {0: 0, 1: 1, 2: 4, 4: 16}
    assert isinstance(found[3], Killed)
    assert 1 < len(list(tmp_path.glob("3.*"))) <= TRIES
    assert "time_limit" in found[3].why


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows the children of a process")
def test_a_worker_that_takes_long_to_come_back_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, all workers used to be dropped one after the other, and the study waited forever."""
    monkeypatch.setattr(sys.modules[DaskWorkers.__module__], "RETURNS", 0.1)
    with DaskWorkers(1) as pool:
        for child in _children(os.getpid()):
            os.kill(child, signal.SIGKILL)
        assert dict(pool.each(abs, [-1, -2])) == {0: 1, 1: 2}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows the children of a process")
def test_workers_that_do_not_come_back_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOOK", 0.02), ("ALONE", 0.1)):
        monkeypatch.setattr(sys.modules[DaskWorkers.__module__], name, value)
    with DaskWorkers(1) as pool:
        # Until the next one has begun, there is none.
        for child in _children(os.getpid()):
            os.kill(child, signal.SIGKILL)
        with pytest.raises(LostWorkersError, match=r"0\.1 s"):
            list(pool.each(time.sleep, [0.5]))


def test_an_answer_that_cannot_be_sent_is_an_error_and_no_wait_for_ever() -> None:
    with DaskWorkers(1) as pool, pytest.raises(TypeError, match="pickle"):
        list(pool.each(open, [__file__]))


def test_a_scheduler_that_nobody_started_is_told() -> None:
    with refusal(place="tcp://127.0.0.1:9"):
        DaskWorkers(1, "tcp://127.0.0.1:9")


def test_workers_of_a_scheduler_do_the_work(study: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster

    plan = read_plan(study)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1", memory_limit=0
    ) as cluster:
        remote = Parallel(7, cluster.scheduler_address)
        run_study(plan, tmp_path / "theirs", remote)
        theirs = [_compared(remote), _followed(remote)]
    run_study(plan, tmp_path / "ours", Parallel(1))
    assert (tmp_path / "theirs" / TABLE).read_bytes() == (tmp_path / "ours" / TABLE).read_bytes()
    assert theirs == [_compared(Parallel()), _followed(Parallel())]


def _compared(where: Parallel) -> list[bytes]:
    """Return the forces of a short run under two contact models."""
    found = compare(RunConfig(scenario="stand", duration=0.1), ["one_step", "lcp"], parallel=where).rows.values()
    assert all(isinstance(row, MeasuredRun) for row in found)
    return [row.recording.wrench.tobytes() for row in found if isinstance(row, MeasuredRun)]


def _followed(where: Parallel) -> bytes:
    """Return the outcomes of starts of a walker."""
    map = WalkerGait("compass").map()
    return probe(
        WalkerGait("compass").map, map.centre, 0.05 * np.ones(len(map.centre)), 4, parallel=where
    ).outcome.tobytes()


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY.replace("repeat: 3", "repeat: 200"))
    folder = tmp_path / "out"
    command = [sys.executable, "-m", "bipedsim.cli.main", "study", str(study), "-o", str(folder), "--jobs", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal = folder / JOURNAL
    while process.poll() is None and not (journal.exists() and journal.read_text().count("\n") > 2):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 130, said
    assert "the same command continues" in said
    assert "Traceback" not in said
    done = journal.read_text().count("\n")
    assert 2 < done < 400
    assert pq.read_table(folder / TABLE).num_rows == done


def _children(pid: int) -> list[int]:
    """Return the worker processes of a command."""
    commands = {child: Path(f"/proc/{child}/cmdline").read_text() for child in children_of(pid)}
    return [child for child, command in commands.items() if "spawn_main" in command]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows the children of a process")
def test_killed_workers_and_a_killed_command_cost_no_trial(study: Path, tmp_path: Path) -> None:
    """A worker is killed every 15 trials, and the command once. The table equals that of an undisturbed study."""
    study.write_text(STUDY.replace("repeat: 3", "repeat: 60"))
    run_study(read_plan(study), tmp_path / "quiet", Parallel(2))
    folder, killed = tmp_path / "killed", 0
    command = [sys.executable, "-m", "bipedsim.cli.main", "study", str(study), "-o", str(folder), "--jobs", "2"]
    for interrupted in (True, False):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            time.sleep(0.1)
            journal = folder / JOURNAL
            done = journal.read_text().count("\n") if journal.exists() else 0
            if interrupted and done > 40:
                process.kill()
            elif done >= 15 * (killed + 1):
                for child in _children(process.pid)[:1]:
                    os.kill(child, signal.SIGKILL)
                    killed += 1
        process.communicate()
        assert process.returncode == (-signal.SIGKILL if interrupted else 0)
    assert killed > 3
    assert (folder / TABLE).read_bytes() == (tmp_path / "quiet" / TABLE).read_bytes()


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (3, 10), (97, 100)])
def test_intervals_are_wilsons(k: int, n: int) -> None:
    expected = binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
