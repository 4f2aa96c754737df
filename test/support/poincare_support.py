"""A map that other processes can make, without anything that takes long to import."""

from __future__ import annotations

import numpy as np

from bipedsim_studies.stability.maps import NoReturnError, Return


class Bistable:
    """x -> x + 0.5 x (x - 1) (x + 1), y -> 0.2 y: (0, 0) is reached from |x| < 1, and larger x are falls."""

    names = ("x", "y")

    def __call__(self, xi: np.ndarray) -> Return:
        x, y = xi
        if abs(x) > 5.0:
            raise NoReturnError(f"x = {x}")
        return Return(np.array([x + 0.5 * x * (x - 1.0) * (x + 1.0), 0.2 * y]), 1.0)
