"""The loop over ROS compared with a bare ping-pong, by real processes.

The times depend on the machine and are not tested.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from refusals import refusal

pytest.importorskip("rclpy")

from bipedsim.errors import BipedSimError
from bipedsim_ros.bench import LoopBench, Settings, table
from bipedsim_ros.bench.report import ratios

pytestmark = pytest.mark.ros


@pytest.mark.slow
def test_both_answer_under_both_clocks(ros_env: dict[str, str]) -> None:
    done: list[str] = []
    bench = LoopBench(Settings(blocks=1, seconds=0.1, priority=0), done.append, ros_env)
    report = bench.report()
    players = ("bare", "helped", "ours")
    assert done == [f"{clock}: {who}" for clock in ("real_time", "lock_step") for who in players]
    assert len(done) == bench.pieces
    for found in report["blocks"].values():
        for who in players:
            (block,) = found[who]
            assert all(math.isfinite(value) and value > 0.0 for value in block.values())
            assert block["p50_us"] <= block["p99_us"]
    text = table(report)
    assert "biped14 under posture" in text
    assert text.count("\n") == 12


@pytest.mark.long
def test_who_cannot_run_is_quoted(ros_env: dict[str, str]) -> None:
    bench = LoopBench(Settings(robot="nobody", blocks=1, seconds=0.1, priority=0), lambda text: None, ros_env)
    with refusal(BipedSimError, place="bare ping-pong"):
        bench.report()


def test_ratios_are_of_the_best_and_of_the_median() -> None:
    def block(p50: float, p99: float, per_s: float) -> dict[str, float]:
        return {"p50_us": p50, "p99_us": p99, "per_s": per_s}

    ours = [block(v, 2 * v, 900) for v in (240, 300, 900)]
    slow: dict[str, Any] = {"bare": [block(200, 400, 1000)] * 3, "helped": [block(100, 150, 1000)] * 3, "ours": ours}
    fast: dict[str, Any] = {"bare": [block(1, 1, v) for v in (3000, 4000, 1000)], "ours": [block(1, 1, 2000)] * 3}
    fast["helped"] = [block(1, 1, 8000)] * 3
    rows = {row.pop("name"): row for row in ratios({"blocks": {"real_time": slow, "lock_step": fast}})}
    p50, p99, per_s = "round trip p50 us", "round trip p99 us", "lock_step rounds/s"
    assert rows[f"{p50}, best"] == {"bare": 200, "helped": 100, "ours": 240, "ours / bare": 1.2, "ours / helped": 2.4}
    assert rows[f"{p50}, median"]["ours / bare"] == 1.5
    assert rows[f"{p99}, median"]["ours / helped"] == 4.0
    assert rows[f"{per_s}, best"]["ours / bare"] == 0.5
    assert rows[f"{per_s}, median"]["ours / bare"] == pytest.approx(2 / 3)
