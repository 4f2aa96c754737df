"""Torques that the model does not explain: effects that are put into a recording, by joint and by phase."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bipedsim.config.run import RunConfig
from bipedsim.model import load_robot
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim_studies.identify import estimate, estimation, signals_of
from bipedsim_studies.identify.report import FOREIGN, INCOMPLETE, unexplained
from bipedsim_studies.identify.signals import LANDING, PHASES, RATE

KNEE = "r_knee"


@pytest.fixture(scope="module")
def walk() -> Recording:
    return run(RunConfig(scenario="walk", controller="zmp", hardware="realistic", duration=8.0))[0]


def test_phases_follow_the_contact(walk: Recording) -> None:
    """The judge is the true force on the soles, with the margin of the smoothing windows."""
    signals = signals_of(walk, load_robot("biped14"))
    rows = np.searchsorted(walk.t, signals.t)
    loaded = walk.wrench[:, :, 2] > 1.0
    all_loaded = loaded.all(axis=1)
    seen = set()
    for row, phase in zip(rows, signals.phases, strict=True):
        seen.add(PHASES[phase])
        if phase == 0:
            assert all_loaded[max(0, row - 150) : row + 150].any()
        elif phase == 1:
            assert not all_loaded[row - 20 : row + 20].any()
        else:
            assert not all_loaded[row - 350 : row].all()
    assert seen == {*PHASES}
    landings = np.flatnonzero(np.diff((signals.phases == 2).astype(int)) == 1)
    assert len(landings) > 5
    assert (signals.phases == 2).sum() <= len(landings) * round(LANDING * RATE) + round(LANDING * RATE)


@pytest.mark.long
def test_the_size_of_errors_of_the_model_is_found(walk: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """White noise in the efforts is such an error. The judge is its size behind the smoothing windows."""
    robot, rng, level = load_robot("biped14"), np.random.default_rng(2), 5.0
    k = robot.joint_names.index(KNEE)
    part = walk.rows(slice(None, 4000))
    part.joint_effort = part.joint_effort.copy()
    part.joint_effort[:, k] += level * rng.normal(size=len(part))
    signals = signals_of(part, robot)
    behind_windows = signals.noise[-6] / 3.0  # of the forces, whose noise is 3 N
    found = estimate(robot, [signals]).model_errors
    assert found[robot.idx_v[k]] == pytest.approx(level * behind_windows, rel=0.25)
    monkeypatch.setattr(estimation, "SETTLED", estimation.SETTLED + 1)
    assert_allclose(estimate(robot, [signals]).model_errors, found, rtol=0.1, atol=0.01)


@pytest.mark.long
def test_exchanged_feet_fit_no_model_of_the_robot(walk: Recording) -> None:
    robot = load_robot("biped14")
    exchanged = replace(walk, ankle_wrench=walk.ankle_wrench[:, ::-1])
    result = estimate(robot, [signals_of(exchanged.rows(slice(None, 4000)), robot)])
    foreign = [joint for joint, each in result.unexplained.items() if each.share > FOREIGN]
    hints = [line for line in unexplained(result) if "docs/other_bag.md" in line]
    assert {"l_hip_pitch", "r_hip_pitch"} <= {*foreign}
    assert 0 < len(hints) <= len(foreign)


@pytest.mark.slow
def test_an_effect_that_the_model_lacks_is_found_where_it_is(walk: Recording) -> None:
    """A torque over the angle, as a spring or cogging has, and one that acts only after each touchdown."""
    robot = load_robot("biped14")
    k = robot.joint_names.index(KNEE)
    right = estimate(robot, [signals_of(walk, robot)])
    assert max(each.share for each in right.unexplained.values()) < INCOMPLETE

    cogging = walk.rows(slice(None))
    cogging.joint_effort = walk.joint_effort.copy()
    extra = 12.0 * np.sin(40.0 * walk.joint_position[:, k])
    cogging.joint_effort[:, k] += extra
    found = estimate(robot, [signals_of(cogging, robot)]).unexplained
    assert {joint for joint, each in found.items() if each.share > INCOMPLETE} == {KNEE}
    assert 0.3 * extra.std() < found[KNEE].rms < 1.2 * extra.std()

    signals = signals_of(walk, robot)
    landing = np.interp(walk.t, signals.t, (signals.phases == 2).astype(float)) > 0.5
    knocks = walk.rows(slice(None))
    knocks.joint_effort = walk.joint_effort.copy()
    knocks.joint_effort[landing, k] += 10.0 * np.sin(60.0 * walk.t[landing])
    by_phase = estimate(robot, [signals_of(knocks, robot)]).unexplained[KNEE].by_phase
    assert by_phase[PHASES[2]] > 3.0 * max(by_phase[PHASES[0]], by_phase[PHASES[1]])
