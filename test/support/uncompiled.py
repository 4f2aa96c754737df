"""A contact model whose solve is called from Python, as that of a third party without compilation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bipedsim.dynamics.projection import Projection


class InPython:
    """A contact model that is not compiled into the step.

    Args:
        model: One that would be.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        if name == "compiled":
            raise AttributeError(name)
        return getattr(self._model, name)

    def solve(self, projection: Projection) -> Any:
        self._model.solve(projection)
        return SimpleNamespace(impulse=self._model.compiled.impulse)
