"""The state of a simulation, and the check that it fits a simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.errors import ConfigError, shown
from bipedsim.numerics import Array
from bipedsim.sim.participant import Participants


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Store everything that the future of a simulation depends on; see :meth:`Simulator.snapshot`.

    Attributes:
        steps: Physics steps since reset.
        seed, draw: Origin of all noise.
        q, v: (nq,), (nv,) configuration and velocity.
        contact: State of the contact model.
        footing: State of the dynamics: ground patches under the feet, and active joint limits.
        participants: State of each participant, by its name.
    """

    steps: int
    seed: int
    draw: int
    q: Array
    v: Array
    contact: dict[str, Any]
    footing: dict[str, NDArray[Any]]
    participants: dict[str, Any]


def form_of(own: Snapshot, participants: Participants) -> Snapshot:
    """Return the form of the snapshots of a simulator, for :func:`check_form`; ``own`` is one of them."""
    # A third-party contact model may have arrays of any size, and participants check sizes that change.
    free = {name: ... for name, participant in participants.items() if participant.changes_form}
    return replace(own, contact=dict.fromkeys(own.contact, ...), participants={**own.participants, **free})


def check_form(form: Snapshot, snapshot: Snapshot) -> None:
    """Raise ConfigError if a snapshot does not have the form ``form``."""
    difference = next(_differences(form, snapshot, "snapshot"), "")
    if difference:
        raise ConfigError(f"of another simulation: {difference}", "snapshot")


def _differences(own: Any, other: Any, where: str) -> Iterator[str]:
    """Yield a message for each difference in form between ``other`` and ``own``: mapping keys or array sizes.

    A value ``...`` in a mapping of ``own`` accepts anything.
    """
    if is_dataclass(own) and type(own) is type(other):
        for field in fields(own):
            yield from _differences(getattr(own, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(own, Mapping) and isinstance(other, Mapping):
        for key in (*own, *(other.keys() - own.keys())):
            if key not in own or key not in other:
                yield f"{where}[{key!r}] is {'missing' if key in own else 'unknown'}"
            elif own[key] is not ...:
                yield from _differences(own[key], other[key], f"{where}[{key!r}]")
    elif isinstance(own, np.ndarray):
        if not isinstance(other, np.ndarray) or (own.shape, own.dtype) != (other.shape, other.dtype):
            yield f"{where} is {shown(other)}, expected an array {own.shape} of type {own.dtype}"
    elif isinstance(own, Mapping) or (own is None) != (other is None):
        yield f"{where} is {shown(other)}, expected {'nothing' if own is None else type(own).__name__}"
