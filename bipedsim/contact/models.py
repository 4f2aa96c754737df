"""Table of the contact models, and their construction by name.

To add a model, write a file and add a line to ``CONTACT_MODELS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bipedsim.config import Table, from_mapping
from bipedsim.errors import UnknownNameError

if TYPE_CHECKING:
    from bipedsim.contact.base import ContactModel
    from bipedsim.dynamics import Projection

# Each constructor takes the parameters of its own class, so the entries have no common type.
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


def contact_params(name: str, given: Mapping[str, Any] | None = None) -> Any:
    """Return the ``Params`` of the contact model ``name``, with the values in ``given`` and defaults otherwise.

    Raises:
        UnknownNameError: No such model; the message lists them.
        ConfigError: A parameter is unknown or out of range.
    """
    if name not in CONTACT_MODELS:
        raise UnknownNameError("contact model", name, CONTACT_MODELS)
    return from_mapping(CONTACT_MODELS[name].Params, given, f"contact model {name}")


def make_contact_model(
    name: str, projection: Projection, physics_dt: float, params: Mapping[str, Any] | None = None
) -> ContactModel:
    """Return the contact model ``name`` for the feet of ``projection``.

    Raises:
        UnknownNameError: No such model; the message lists them.
        ConfigError: A parameter is unknown or out of range.
    """
    values = contact_params(name, params)
    model: ContactModel = CONTACT_MODELS[name](projection, values, physics_dt)
    return model
