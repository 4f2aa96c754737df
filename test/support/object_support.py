"""Free bodies as tests want them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.ground import Ground
from bipedsim.objects import ObjectConfig, World

GRAVITY = np.array([0.0, 0.0, -9.81])


def world(*objects: dict[str, Any], ground: Ground | None = None, h: float = 1e-3, g: np.ndarray = GRAVITY) -> World:
    """Return a world of objects that are given by their keys; a ball where no shape is."""
    configs = [
        ObjectConfig(**{"name": f"body_{i}", "shape": "ball", "mass": 1.0, **keys}) for i, keys in enumerate(objects)
    ]
    faults = [problem for config in configs for problem in config.problems()]
    assert not faults, faults
    return World([config.make() for config in configs], ground or Ground.flat(), h, g)


def run(w: World, seconds: float, h: float = 1e-3) -> None:
    """Make steps for so long."""
    for _ in range(round(seconds / h)):
        assert not w.step()


def momentum(w: World) -> np.ndarray:
    """Return linear momentum, and angular momentum about the origin of the world (6,)."""
    b = w.bodies
    spin = np.einsum("nij,njk,nlk,nl->ni", b.R, b.inertia, b.R, b.w)
    linear = b.mass[:, None] * b.v
    return np.concatenate([linear.sum(axis=0), (np.cross(b.position, linear) + spin).sum(axis=0)])


def energy(w: World, g: np.ndarray = GRAVITY) -> float:
    """Return kinetic and potential energy [J]."""
    b = w.bodies
    local = np.einsum("nji,nj->ni", b.R, b.w)
    kinetic = 0.5 * (b.mass @ (b.v**2).sum(axis=1) + np.einsum("ni,nij,nj->", local, b.inertia, local))
    return float(kinetic - b.mass @ (b.position @ g))
