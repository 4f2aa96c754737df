"""Convert values to JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def to_json(value: Any, indent: int | None = 2) -> str:
    """Convert plain values to JSON; infinite and NaN values become null.

    >>> to_json({"a": float("inf"), "b": [1, (2.5, float("nan"))]}, indent=None)
    '{"a": null, "b": [1, [2.5, null]]}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
