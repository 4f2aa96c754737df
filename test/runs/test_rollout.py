"""One run of a simulator, for all loops: its start, its counters, and the faults around it."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.errors import ConfigError
from bipedsim.ground import get_ground
from bipedsim.model import load_robot
from bipedsim.runs.faults import Fault, FaultSchedule
from bipedsim.runs.rollout import Rollout, label_of
from bipedsim.sim import GantryConfig, Simulator

ROBOT = load_robot("biped14")


def rollout(*faults: Fault, clearance: float | None = None) -> Rollout:
    gantry = None if clearance is None else GantryConfig(clearance=clearance)
    sim = Simulator(ROBOT, get_ground("slope"), gantry=gantry)
    return Rollout(sim, (), FaultSchedule(faults, ROBOT, sim.control_dt, 0))


def test_a_run_begins_on_its_ground_or_above_it() -> None:
    heights = {}
    for name, height, clearance in (("standing", 0.0, None), ("dropped", 0.03, None), ("hung", 0.03, 0.2)):
        begun = rollout(clearance=clearance)
        begun.begin("", height)
        assert begun.sim.t == 0.0
        heights[name] = begun.sim.q[2]
    assert heights["standing"] == pytest.approx(get_ground("slope").place(ROBOT.q_nominal)[2])
    assert heights["dropped"] - heights["standing"] == pytest.approx(0.03)
    assert heights["hung"] - heights["dropped"] == pytest.approx(0.2)


def test_counts_of_the_contact_model_go_on_over_all_starts() -> None:
    begun = rollout()
    counts = []
    for _ in range(2):
        begun.begin("", 0.01)
        before = begun.state_changes
        for _ in range(100):
            begun.tick(np.zeros(ROBOT.nu))
        counts.append(begun.state_changes - before)
        assert counts[-1] == begun.sim.contact.state_changes > 0
    assert begun.state_changes == sum(counts)
    q = ROBOT.q_nominal.copy()
    q[2] -= 0.5
    with pytest.raises(ConfigError):
        begun.start(q)
    assert begun.state_changes == sum(counts), "a refused start changes nothing"


@pytest.mark.parametrize("part", ["joints", "commands"])
def test_a_fault_loses_measurements_or_commands(part: str) -> None:
    begun = rollout(Fault(part=part, does="lost", at=0.002, duration=0.002))
    begun.begin("", 0.0)
    measured, heard = [], []
    for _ in range(6):
        heard.append(begun.hears())
        begun.tick(np.zeros(ROBOT.nu))
        measured.append(begun.is_measured)
    assert (all(measured), all(heard)) == (part != "joints", part != "commands")
    assert begun.faults.lost_commands == heard.count(False) == (2 if part == "commands" else 0)
    assert measured.count(False) == (2 if part == "joints" else 0)


def test_the_label_of_a_file_is_its_name() -> None:
    assert [label_of(text) for text in ("walk", "v1.5", "a/b/walk.yaml", "")] == ["walk", "v1.5", "walk", ""]
