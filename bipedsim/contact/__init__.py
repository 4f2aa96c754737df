"""Contact models behind one switch: a new one is a new file and a line in ``CONTACT_MODELS``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bipedsim.contact.base import ContactModel, Projection
from bipedsim.contact.exact import Exact
from bipedsim.contact.one_step import OneStep
from bipedsim.errors import UnknownNameError
from bipedsim.params import from_mapping

CONTACT_MODELS: dict[str, type[OneStep] | type[Exact]] = {"one_step": OneStep, "exact": Exact}


def make_contact_model(
    name: str, projection: Projection, physics_dt: float, params: Mapping[str, Any] | None = None
) -> ContactModel:
    """Return the contact model ``name`` for the feet of ``projection``.

    Raises:
        UnknownNameError: No such model; the message lists them.
        ConfigError: A parameter is unknown or out of range.
    """
    if name not in CONTACT_MODELS:
        raise UnknownNameError("contact model", name, CONTACT_MODELS)
    # The constructor of each entry takes the parameters of its own class.
    model: Any = CONTACT_MODELS[name]
    return model(projection, from_mapping(model.Params, params, f"contact model {name}"), physics_dt)
