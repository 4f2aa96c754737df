"""Contact models behind one switch: a new one is a new file and a line in ``CONTACT_MODELS``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bipedsim.contact.base import ContactModel, Projection
from bipedsim.contact.exact import Exact
from bipedsim.contact.feedback_linearised import FeedbackLinearised
from bipedsim.contact.lcp import Lcp
from bipedsim.contact.ncp import Ncp
from bipedsim.contact.nonlinear_damping import NonlinearDamping
from bipedsim.contact.one_step import OneStep
from bipedsim.errors import UnknownNameError
from bipedsim.params import from_mapping

# The constructor of each takes the parameters of its own class, which no common type can say.
CONTACT_MODELS: dict[str, Any] = {
    "one_step": OneStep,
    "exact": Exact,
    "feedback_linearised": FeedbackLinearised,
    "nonlinear_damping": NonlinearDamping,
    "lcp": Lcp,
    "ncp": Ncp,
}


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
    kind = CONTACT_MODELS[name]
    model: ContactModel = kind(projection, from_mapping(kind.Params, params, f"contact model {name}"), physics_dt)
    return model
