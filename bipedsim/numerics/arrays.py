"""The types of arrays, of any shape; docstrings say which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Of real numbers."""

Integers = NDArray[np.int64]
"""Of whole numbers."""

Indices = NDArray[np.intp]
"""Of places in other arrays."""

Flags = NDArray[np.bool_]
"""Of yes and no."""
