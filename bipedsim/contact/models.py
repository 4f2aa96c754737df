"""Contact models behind one switch: a new one is a new file and a line in ``CONTACT_MODELS``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bipedsim.config import Table, from_mapping
from bipedsim.errors import UnknownNameError

if TYPE_CHECKING:
    from bipedsim.contact.base import ContactModel
    from bipedsim.dynamics import Projection

# The constructor of each takes the parameters of its own class, which no common type can say.
CONTACT_MODELS = Table(
    "contact model",
    "bipedsim.contact_models",
    {
        "one_step": "bipedsim.contact.selection.one_step:OneStep",
        "exact": "bipedsim.contact.selection.exact:Exact",
        "feedback_linearised": "bipedsim.contact.compliant.feedback_linearised:FeedbackLinearised",
        "nonlinear_damping": "bipedsim.contact.compliant.nonlinear_damping:NonlinearDamping",
        "lcp": "bipedsim.contact.time_stepping.lcp:Lcp",
        "ncp": "bipedsim.contact.time_stepping.ncp:Ncp",
    },
)


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
