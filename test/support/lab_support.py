"""Plates with known loads on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.plates import PlateGeometry, PlateSignals

N = 400
RATE = 1000.0


def a_wrench(seed: int = 0) -> np.ndarray[Any, Any]:
    """Reaction at the transducers in plate axes with z down, of a person who walks on and off the plate."""
    rng = np.random.default_rng(seed)
    s = np.linspace(0.0, 1.0, N)
    load = 700.0 * np.clip(np.sin(np.pi * (1.4 * s - 0.2)), 0.0, None) ** 0.5
    wave = np.column_stack([np.sin(7.0 * s + phase) for phase in rng.uniform(0.0, 6.0, 5)])
    force = np.column_stack([0.1 * load * wave[:, 0], 0.2 * load * wave[:, 1], -load])
    arm = np.column_stack([0.1 * wave[:, 2], 0.15 * wave[:, 3], np.full(N, -0.04)])
    moment = np.cross(arm, force)
    moment[:, 2] += 5.0 * wave[:, 4] * (load > 0.0)
    return np.column_stack([force, moment])


def a_plate(kind: int, name: str = "1", seed: int = 0, on: Any = "person") -> PlateSignals:
    """A plate of the type, 0.6 m x 0.4 m, turned and moved in the world, with a person on it."""
    angle = 0.3
    turn = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    own = np.array([[0.3, -0.2, 0.0], [-0.3, -0.2, 0.0], [-0.3, 0.2, 0.0], [0.3, 0.2, 0.0]])
    rng = np.random.default_rng(7)
    geometry = PlateGeometry(
        name,
        own @ turn.T + [1.0, 2.0, 0.0],
        kind,
        RATE,
        offset=np.array([0.0, 0.0, -0.04]) if kind == 3 else np.array([0.001, -0.002, -0.04]),
        half_base=np.array([0.2, 0.12]),
        calibration=np.diag([300.0, 310.0, 900.0, 120.0, 90.0, 70.0]) + rng.uniform(-2.0, 2.0, (6, 6)),
        channels_on=on,
    )
    return PlateSignals(0.25 + np.arange(N) / RATE, geometry, np.nan_to_num(geometry.channels(a_wrench(seed))))
