"""The type of arrays of real numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Of real numbers, of any shape; docstrings say which."""
