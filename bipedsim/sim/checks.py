"""Checks of arrays that callers of a simulator pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array


def numbers(name: str, values: Any) -> Array:
    """Return ``values`` as an array of floating-point numbers.

    Raises:
        ConfigError: The values are not numbers.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError("is not an array of numbers", name, values) from error


def checked_vector(name: str, values: Any, size: int, robot: str) -> Array:
    """Return ``values`` as an array (size,) of finite numbers.

    Args:
        name: Name of the argument, for the message.
        values: The numbers.
        size: Number of values that ``robot`` needs.
        robot: Name of the robot, for the message.

    Raises:
        ConfigError: The values are not numbers, too few or too many, or not finite.
    """
    array = numbers(name, values)
    if array.shape != (size,):
        raise ConfigError(f"its shape {array.shape} must be ({size},) for {robot}", name)
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ConfigError("is not finite", f"{name}[{bad}]", array[bad])
    return array
