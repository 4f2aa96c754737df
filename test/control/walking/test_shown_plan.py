"""Plan topics of zmp, compared with the actual motion of the feet and the CoM."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.analysis import com_motion, robot_of
from bipedsim.config import RunConfig
from bipedsim.recording import Recording, plan_of
from bipedsim.runs import Scenario, Velocity, prepare, run

STOP = 3.5
"""When the command to stop comes [s]."""


@lru_cache
def turning() -> Recording:
    """Return a walk ahead and to the left that ends in standing."""
    velocity = (Velocity(at=0.5, vx=0.4, wz=0.3), Velocity(at=STOP))
    scenario = Scenario(controller="zmp", duration=7.0, velocity=velocity)
    recording, summary = run(prepare(RunConfig(robot="biped14", controller="zmp"), scenario))
    assert summary["gave_up_at_s"] is None
    return recording


def shown(recording: Recording, i: int, name: str) -> float:
    """Return a number of the plan in row ``i``."""
    return float(recording.readouts[f"plan_{name}"][i])


@pytest.mark.long
def test_soles_land_where_the_plan_says() -> None:
    """Also round a bend, and where the walk ends: the last landing is the last step that is planned."""
    recording = turning()
    number = recording.readouts["plan_step_1_foot"]
    # The first step of the plan is over where the next one, of the other foot, is the first; or none.
    over = [i for i in range(len(number) - 1) if np.isfinite(number[i]) and number[i + 1] != number[i]]
    assert len(over) >= 5
    for i in over:
        foot = int(number[i])
        pose = pin.XYZQUATToSE3(recording.sole_poses[min(i + 40, len(number) - 1), foot])
        planned = [shown(recording, i, f"step_1_{axis}") for axis in "xyz"]
        np.testing.assert_allclose(pose.translation, planned, atol=4e-3)
        assert abs(pin.rpy.matrixToRpy(pose.rotation)[2] - shown(recording, i, "step_1_yaw")) < 0.01
    yaws = [shown(recording, i, "step_1_yaw") for i in over]
    assert yaws[-1] > 0.5


@pytest.mark.long
def test_steps_alternate_and_go_on_ahead_until_the_robot_stands() -> None:
    recording = turning()
    walking = plan_of({name: float(values[2500]) for name, values in recording.readouts.items()})
    assert walking is not None
    assert walking.footsteps is not None
    assert walking.feet is not None
    assert walking.feet.tolist() in ([0, 1, 0], [1, 0, 1])
    assert (np.diff(walking.footsteps[:, 0]) > 0.05).all()
    standing = plan_of({name: float(values[-2]) for name, values in recording.readouts.items()})
    assert standing is not None
    assert standing.footsteps is None
    assert standing.com is not None


def test_the_planned_com_is_where_the_com_goes() -> None:
    """The tolerance is the deviation that the feedback allows.

    The DCM is ahead of the CoM while the robot accelerates.
    """
    recording = turning()
    planned = np.stack([recording.readouts[f"plan_com_{axis}"] for axis in "xyz"], axis=1)
    # The last row was not answered.
    rows = slice(1500, -1)
    np.testing.assert_allclose(planned[rows], com_motion(recording, robot_of(recording)).position[rows], atol=0.02)
    assert planned[-2, 0] - planned[1500, 0] > 0.5


def test_summaries_leave_the_places_of_a_plan_out() -> None:
    _, summary = run(RunConfig(robot="biped14", controller="zmp", duration=0.05))
    assert set(summary["readouts"]) == {"zmp_margin", "dcm_error", "command_share"}
