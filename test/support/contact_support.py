"""Robots with ankle sensors that are off by as much as an estimate does not know."""

from __future__ import annotations

import numpy as np
from estimates import estimate_with

from bipedsim.model import Robot
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.parameters import parameters_of


def biased(robot: Robot, seed: int) -> dict[str, object]:
    """Return hardware whose ankle sensors are off by 1 N and 0.1 N.m."""
    rng = np.random.default_rng(seed)
    offsets = {sole.name: [*rng.normal(0.0, 1.0, 3), *rng.normal(0.0, 0.1, 3)] for sole in robot.soles}
    unbiased = {"force_bias": 0.0, "torque_bias": 0.0, "accelerometer_bias": 0.0}
    return {"preset": "realistic", **unbiased, "foot_wrench_offset": offsets}


def described(robot: Robot, recordings: int = 1) -> Estimate:
    """Return the description as an estimate from some recordings, whose ankle sensors may be off by 1 N and 0.1 N.m."""
    p = parameters_of(robot)
    variance = np.full(len(p), 1e-12)
    variance[p.at["force_offset"].ravel()] = 1.0
    variance[p.at["moment_offset"].ravel()] = 0.01
    return estimate_with(p, p.start, np.diag(variance), recordings=recordings)
