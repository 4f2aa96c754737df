"""The compass under PFL as a return map: its multipliers, and one beyond 1 where a gain is spoiled on purpose."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from bipedsim.control.base import Controller
from bipedsim.control.output.pfl import PflController, PflParams
from bipedsim.ground.read import get_ground
from bipedsim.model import Robot, load_robot
from bipedsim.sim.io import Observation
from bipedsim_studies.reproduce.adubredu.ideal_walker import SWING_TIME, TARGET, WALKER
from bipedsim_studies.reproduce.adubredu.walker import START
from bipedsim_studies.stability.loop import ClosedLoop
from bipedsim_studies.stability.newton import FixedPoint, Stability, fixed_point, stability
from bipedsim_studies.stability.return_map import ReturnMap
from bipedsim_studies.stability.section import TouchDown

pytestmark = pytest.mark.slow

CONTROL_DT = 4e-3
RATE = -0.283
"""Rate of the stance leg after a touch-down of the gait, about [rad/s]."""
GOOD, SPOILED = 0.0, 8.0
"""Gains from that rate to the next step [rad / (rad/s)]: none, and one so large that every step overcorrects the last.

K_p and K_d are not varied. Each swing begins at the measured position of the leg, so the law of the paper has no error
to correct, and the event-based model has no difference.
"""


class Placing(PflController):
    """PFL that places its foot by how fast it walks: a swing ends at the target plus gain (rate - RATE)."""

    gain = GOOD

    def _begin(self, observation: Observation, stance: int) -> None:
        rate = -observation.imu_angular_velocity[1] + (observation.joint_velocity[0] if stance else 0.0)
        self._target = TARGET + self.gain * (rate - RATE)
        super()._begin(observation, stance)


@lru_cache
def gait(gain: float) -> tuple[ReturnMap, FixedPoint, Stability]:
    """Return the map of the compass under PFL that places its feet with ``gain``."""

    def controller(robot: Robot, dt: float) -> Controller:
        swing = {"left": "hip", "right": "-hip"}
        made = Placing(robot, PflParams(swing=swing, swing_target=TARGET, swing_time=SWING_TIME), dt)
        made.gain = gain
        return made

    loop = ClosedLoop(load_robot("compass"), get_ground("downhill"), controller, CONTROL_DT)
    state = START if gain == GOOD else np.array([0.1428, -0.2830, -0.2856, 0.033])
    map = ReturnMap(loop, TouchDown(loop.robot, loop.feet), *WALKER.robot_state(state), settle=0, mirrored=True)
    guess = map.centre if gain == GOOD else gait(GOOD)[1].xi
    point = fixed_point(map, guess, 1e-6)
    return map, point, stability(map, point, (1e-3, 3e-4))


def test_the_multipliers_of_the_walker_under_pfl() -> None:
    """By events, the law in continuous time has 0.7891 and three zeros: a swing starts from the measured state."""
    map, point, found = gait(GOOD)
    assert found.verdict == "stable"
    assert found.multipliers[0].real == pytest.approx(0.7891, abs=0.01)
    assert np.abs(found.multipliers[1:]).max() < 0.01
    assert point.xi[0] == pytest.approx(TARGET, abs=1e-3)
    assert map.memory(point.xi) < 1e-3
    # The multiplier predicts the effect of a disturbance.
    away = point.xi + np.array([0.0, 5e-3, 0.0])
    left = [back.xi[1] - point.xi[1] for back in map.follow(away, 4)]
    np.testing.assert_allclose(np.array(left[1:]) / left[:-1], found.multipliers[0].real, rtol=0.05)


def test_a_spoiled_gain_has_a_multiplier_beyond_one() -> None:
    map, point, found = gait(SPOILED)
    assert found.verdict == "unstable"
    assert found.multipliers[0].real < -1.5
    vectors = np.linalg.eig(found.jacobian)
    way = np.real(vectors[1][:, int(np.argmax(np.abs(vectors[0])))])
    ahead, behind = (map.follow(point.xi + size * way, 3) for size in (1e-4, -1e-4))
    sizes = [float(np.abs(a.xi - b.xi).max()) for a, b in zip(ahead, behind, strict=True)]
    # In a walk without end ticks do not begin at touch-downs; of a strong gain that changes the number, not the fact.
    np.testing.assert_array_less(1.5, np.array(sizes[1:]) / sizes[:-1])
