"""Parameters that are declared live change while a controller runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bipedsim.control import find_controller
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.sim import Simulator

ROBOT = load_robot("biped14")
CHANGES: dict[str, dict[str, Any]] = {
    "posture": {"stiffness": 20.0, "damping": 0.1, "kp": {"l_knee": 900.0}, "kd": {"r_knee": 9.0}},
    "computed_torque": {"frequency": 7.0, "damping_ratio": 0.5},
    "sliding": {"slope": 5.0, "reach": 10.0, "layer": 1.0},
    "pfl": {"kp": 50.0, "kd": 3.0},
}
REFUSED = {"posture": {"kd": {"l_knee": -1.0}}, "sliding": {"reach": 1000.0}}


@pytest.mark.parametrize("name", CHANGES)
def test_a_tuned_controller_is_one_with_these_gains(name: str) -> None:
    _, cls = find_controller(name)
    params = cls.Params()
    live = {field for field, declared in cls.Params.__dataclass_fields__.items() if declared.metadata["live"]}
    assert live == set(CHANGES[name])
    changed = replace(params, **CHANGES[name])
    tuned, fresh = (cls(ROBOT, p, 1e-3) for p in (params, changed))
    observation = Simulator(ROBOT).reset()
    for controller in (tuned, fresh):
        controller.reset(observation)
    observation.joint_position += 0.01
    observation.joint_velocity += 0.02
    assert not np.array_equal(tuned.update(observation).tau_joint, fresh.update(observation).tau_joint)
    tuned.tune(changed)
    expected = fresh.update(observation).tau_joint.copy()
    np.testing.assert_array_equal(tuned.update(observation).tau_joint, expected)
    if name in REFUSED:
        with pytest.raises(ConfigError):
            tuned.tune(replace(params, **REFUSED[name]))
        np.testing.assert_array_equal(tuned.update(observation).tau_joint, expected)
