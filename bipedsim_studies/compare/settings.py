"""Define the settings of a comparison, which are the keys of its settings file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bipedsim.config import RunConfig, param
from bipedsim.errors import ConfigError
from bipedsim_studies.study import time_limit


@dataclass(frozen=True)
class CompareSettings:
    """Settings of a comparison. An empty ``models`` means all models."""

    run: RunConfig = param(RunConfig(), "parameters of the runs; the contact model and its parameters have no effect")
    models: tuple[str, ...] = param((), "contact models (default: all)")
    reference: str | None = param(None, "contact model with which the others are compared (default: the first)")
    contact_params: Mapping[str, Any] = param({}, "parameters of the contact models, such as exact.gamma: 0.1")
    time_limit: float = time_limit("run")

    def problems(self) -> Iterator[ConfigError]:
        """Yield the parameters of contact models without a model."""
        for name in self.contact_params:
            if not all(name.partition(".")):
                yield ConfigError("must be MODEL.NAME, such as exact.gamma", "contact_params: name", name)

    def params(self) -> dict[str, dict[str, Any]]:
        """Return the parameters of each model."""
        params: dict[str, dict[str, Any]] = {}
        for name, value in self.contact_params.items():
            model, _, parameter = name.partition(".")
            params.setdefault(model, {})[parameter] = value
        return params
