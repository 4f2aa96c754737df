"""Contact models behind one switch: a new one is a new file and a line in ``CONTACT_MODELS``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bipedsim.contact.base import ContactModel
from bipedsim.contact.one_step import OneStep
from bipedsim.errors import UnknownNameError
from bipedsim.params import from_mapping
from bipedsim.sole import Sole

CONTACT_MODELS: dict[str, type[OneStep]] = {"one_step": OneStep}


def make_contact_model(
    name: str, soles: tuple[Sole, ...], physics_dt: float, params: Mapping[str, Any] | None = None
) -> ContactModel:
    """Return the contact model ``name`` for these soles.

    Raises:
        UnknownNameError: No such model; the message lists them.
        ConfigError: A parameter is unknown or out of range.
    """
    if name not in CONTACT_MODELS:
        raise UnknownNameError("contact model", name, CONTACT_MODELS)
    model = CONTACT_MODELS[name]
    return model(soles, from_mapping(model.Params, params, f"contact model {name}"), physics_dt)
