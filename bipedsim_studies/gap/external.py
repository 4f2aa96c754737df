"""Find the times of forces on a robot that neither its ankle sensors nor its drives measure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from bipedsim.numerics import Flags
from bipedsim.recording import Recording

COLUMNS = {
    "gantry_force": "a gantry holds the robot",
    "base_contact": "the root link is in contact",
    "link_contact": "a body, or a sole with a riser, is in contact",
}
"""Columns of simulated runs to the meaning of their forces, zero or NaN without. A real robot does not measure them."""


def acting(recording: Recording, name: str) -> Flags:
    """Return whether the force in the column ``name`` of ``COLUMNS`` acts in each row (n,)."""
    forces = getattr(recording, name).reshape(len(recording), -1)
    return np.asarray((np.isfinite(forces) & (forces != 0.0)).any(axis=1))


def external_forces(recording: Recording, ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield a text for each force on the robot, with its begin and end; leave out the ``ignored`` columns."""
    for name, meaning in COLUMNS.items():
        if name in ignored:
            continue
        rows = acting(recording, name)
        if rows.any():
            begin, end = recording.t[rows][[0, -1]]
            yield f"{meaning} from t = {begin:.3f} to {end:.3f} s"
    for begin, end in _pushes(recording):
        if len(recording) and begin <= recording.t[-1] and end >= recording.t[0]:
            yield f"the robot is pushed from t = {begin:.3f} to {end:.3f} s"


def _pushes(recording: Recording) -> list[tuple[float, float]]:
    """Return begin and end of the pushes of the robot [s]: those that the run contains, or else those planned.

    A push ends the push before it. A push without a force has no other effect.
    """
    if "pushes" not in recording.run:
        return list(recording.pushes)
    requested = [push for push in recording.run["pushes"] if push["body"] not in recording.objects]
    pushes = sorted((push["t"] + push["after"], push["duration"], any(push["wrench"])) for push in requested)
    nexts = [*(begin for begin, _, _ in pushes), np.inf][1:]
    last = float(recording.t[-1]) if len(recording) else 0.0
    return [
        (begin, min(begin + duration, following, last))
        for (begin, duration, has_force), following in zip(pushes, nexts, strict=True)
        if has_force and begin <= last
    ]
