"""The long run of nodes: a dead recorder ends it, and ticks that a segment lacks are faults."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from benchmark_modules import benchmark

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")


@pytest.fixture(scope="module")
def live() -> ModuleType:
    """Return the part of the campaign."""
    return benchmark("campaign/live")


@pytest.mark.parametrize("dies", [True, False])
def test_a_recorder_that_does_not_record_ends_the_run_with_its_log(
    live: ModuleType, dies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = "sys.exit(3)" if dies else "time.sleep(600)"
    program = f"import sys, time; print('the disk is full', flush=True); {ends}"
    plant = live.Plant(tmp_path, argparse.Namespace(robot="biped14", rate=250.0, seed=0))
    log = tmp_path / "log.txt"
    with log.open("wb") as out, subprocess.Popen([sys.executable, "-c", program], stdout=out) as process:
        plant.running[live.RECORDER] = live.Life(live.RECORDER, process, log)
        if not dies:
            while not log.read_bytes():
                assert process.poll() is None
            monkeypatch.setattr(live, "START_S", 0.0)
        try:
            with pytest.raises(RuntimeError) as caught:
                plant._wait_for_recorder()
        finally:
            process.kill()
    assert str(caught.value).endswith("the disk is full\n")


@pytest.mark.parametrize(("ticks", "missed", "faults"), [(range(9), 0, 0), (range(3, 9), 3, 1), ((2, 3, 6), 2, 2)])
def test_missing_ticks_are_faults(
    live: ModuleType, ticks: range | tuple[int, ...], missed: int, faults: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = 0.004 * np.array(ticks)
    run = SimpleNamespace(t=t, run={"control_dt": 0.004}, gave_up_at=np.nan, changes=())
    monkeypatch.setattr(live, "load_recording", lambda _bag, _number: run)
    repeated = SimpleNamespace(first=None, simulated=[None] * ticks[-1], notes=())
    monkeypatch.setattr(live, "rerun", lambda _run: repeated)
    row = live.judge_segment(Path("bag"), 0)
    assert (row["missed_at_start"], len(row["faults"])) == (missed, faults)


def test_a_controller_that_is_never_heard_is_found(live: ModuleType) -> None:
    def line(t: float, text: str) -> str:
        return f"compiling\n[INFO] [{t}] [node]: {text}\n"

    ready = [line(t, "posture for biped14 (14 joints) at 250 Hz") for t in (100.5, 200.0, 300.0)]
    simulators = [line(50.0, "commands again at t = 9 s") + line(101.5, "commands again at t = 60 s")]
    simulators.append(line(200.25, "commands again at t = 3 s"))
    first, second, third = live.heard_after(ready, simulators)
    assert (first, second) == (1.0, 0.25)
    assert np.isnan(third)
    # One that ended before it was ready.
    assert np.isnan(live.heard_after(["Traceback"], simulators)[0])
