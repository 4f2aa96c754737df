"""Tests that only ``make test-all`` runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def sampled(values: Sequence[Any], keep: int = 1) -> list[Any]:
    """Return ``values`` as parameters: ``make test`` runs the first ``keep`` of them, ``make test-all`` all."""
    rest = (value if isinstance(value, tuple) else (value,) for value in values[keep:])
    return [*values[:keep], *(pytest.param(*value, marks=pytest.mark.slow) for value in rest)]
