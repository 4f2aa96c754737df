"""Robots and estimates with errors of the ankle sensors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from estimates import estimate_with

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.parameters import parameters_of
from bipedsim_studies.identify.unknowns import Unknowns


def biased(robot: Robot, seed: int) -> dict[str, object]:
    """Return hardware whose ankle sensors are off by 1 N and 0.1 N.m."""
    rng = np.random.default_rng(seed)
    offsets = {sole.name: [*rng.normal(0.0, 1.0, 3), *rng.normal(0.0, 0.1, 3)] for sole in robot.soles}
    unbiased = {"force_bias": 0.0, "torque_bias": 0.0, "accelerometer_bias": 0.0}
    return {"preset": "realistic", **unbiased, "foot_wrench_offset": offsets}


def described(robot: Robot) -> Estimate:
    """Return the description as an estimate whose ankle sensors may be off by 1 N and 0.1 N.m."""
    p = parameters_of(robot)
    variance = np.full(len(p), 1e-12)
    variance[p.at["force_offset"].ravel()] = 1.0
    variance[p.at["moment_offset"].ravel()] = 0.01
    return estimate_with(p, p.start, np.diag(variance))


def drifted(robot: Robot, drifts: Mapping[int, Array]) -> Estimate:
    """Return the description as an estimate whose ankle sensors are off by 1 N and 0.1 N.m in each of two recordings.

    Args:
        robot: The robot.
        drifts: Parameter to how far it is off in the two recordings.
    """
    common = described(robot)
    p, unknowns = common.parameters, Unknowns.of(common.parameters, 2)
    offsets, variance = unknowns.offsets, np.diag(common.all_covariance).copy()
    values = np.zeros((2, len(offsets)))
    for i, value in drifts.items():
        values[:, offsets == i] = value[:, None]
    of_drift = np.tile(variance[offsets], 2)
    variance[offsets] = 1e-12
    covariance = np.diag(np.concatenate([variance, of_drift]))
    return Estimate(unknowns, np.concatenate([p.start, values.ravel()]), covariance, {}, True, np.zeros(0), np.zeros(2))
