"""Compute conditions on the velocity before a touchdown for some contacts to stick after it and the others to open.

Source: Hurmuzlu, Genot and Brogliato 2001, appendix B, eq. 73 to 90: plastic multiple impact after Pfeiffer and
Glocker, without an expansion phase. The simulator's impacts are of this kind, because constraint selection solves for
the velocity after the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.contact import mode_name
from bipedsim.contact.selection import Exact, ExactParams
from bipedsim.dynamics import Projection, edge_lines
from bipedsim.numerics import Array, unlimited
from bipedsim_studies.feasibility.conditions import (
    NOTHING,
    Conditions,
    Keep,
    Reserve,
    Response,
    Slide,
    Slip,
    held_vertices,
)
from bipedsim_studies.feasibility.foot_rule import IMPULSES
from bipedsim_studies.feasibility.support import TOUCHES, Support

OUT_OF_REACH = 1e6
"""Height [m] of vertices that take no part in an impact."""


def impact_conditions(
    support: Support,
    keep: Keep | None = None,
    *,
    gained: Array | None = None,
    slide: Slide | None = None,
    touches: float = TOUCHES,
    reserve: Reserve = NOTHING,
    sides: int = 8,
) -> Conditions:
    """Return the conditions A(q, mu) v > 0 on the velocity v (nv,) before an impact (eq. 90).

    The contacts of the impact are those that rested before it and those that hit. The held ones are at rest after it,
    by impulses in the friction cones, or slide as specified by ``slide``. The others leave with a positive normal
    velocity [m/s].

    Args:
        support: The robot at the configuration of the impact; its velocity has no effect.
        gained: (6K,) velocities [m/s, rad/s] that all other forces would give the soles during the impact, see
            :func:`gained_velocity`. The default is the paper's impact, which takes no time, with B = 0.
        keep, slide, touches, reserve, sides: See :class:`Conditions`. Forces are impulses here, and ``reserve.force``
            is an impulse [N.s].

    Raises:
        ConfigError: See :class:`Conditions`.
    """
    G = support.J @ np.linalg.solve(support.M, support.J.T)
    w0 = np.zeros(len(support.J)) if gained is None else gained
    response = Response(G, support.J, w0, units=IMPULSES)
    return Conditions(support, response, keep, slide=slide, touches=touches, reserve=reserve, sides=sides)


def gained_velocity(support: Support, torque: Array, time: float) -> Array:
    """Return the velocities (6K,) of the soles after ``time`` [s] of torques (nu,) and bias forces, contact-free."""
    s = support
    gained: Array = time * (s.J @ np.linalg.solve(s.M, s.selection @ torque - s.forces) + s.bias)
    return gained


@dataclass(frozen=True, eq=False)
class ImpactOutcome:
    """Contacts after an impact.

    Attributes:
        modes: (K,) contact mode of each foot after the impact (contact/modes.py).
        sliding: (K,) whether the foot slides.
        names: (K,) mode and sliding as text.
        impulse: (K, 6) ground reaction impulse on each foot at the sole origin, contact axes [N.s, N.m.s].
        conditions: Conditions of eq. 90 for this outcome, with its slips.
        resolved: Whether constraint selection found an outcome without violations; otherwise, this one has the fewest.
    """

    modes: tuple[int, ...]
    sliding: tuple[bool, ...]
    names: tuple[str, ...]
    impulse: Array
    conditions: Conditions
    resolved: bool


def impact_outcome(support: Support, v: Array, gained: Array | None = None, touches: float = TOUCHES) -> ImpactOutcome:
    """Return the outcome of an impact from the search of the contact model ``exact``.

    Args:
        support: The robot at the configuration of the impact.
        v: (nv,) velocity before it.
        gained: See :func:`impact_conditions`.
        touches: Maximum height of a vertex in contact [m].
    """
    projection = _bare_impact(support, v, gained, touches)
    model = Exact(projection, ExactParams(), 1.0)
    result = model.solve(projection)
    modes = tuple(int(mode) for mode in result.mode)
    sliding = tuple(bool(slides) for slides in result.sliding)
    feet = support.feet
    keep = {feet[k].name: held_vertices(mode, feet[k].n_vertices) for k, mode in enumerate(modes) if mode}
    slips, radii = model.arrays.state.slip, model.arrays.trial.radius
    slide = {
        feet[k].name: Slip(slips[k].copy(), float(radii[k]), feet[k].rotation[:, :2] @ result.cop[k])
        for k, slides in enumerate(sliding)
        if slides
    }
    return ImpactOutcome(
        modes=modes,
        sliding=sliding,
        names=tuple(
            mode_name(mode, slides, foot.n_vertices) for mode, slides, foot in zip(modes, sliding, feet, strict=True)
        ),
        impulse=result.impulse.copy(),
        conditions=impact_conditions(support, keep, gained=gained, slide=slide, touches=touches),
        resolved=result.unresolved == 0,
    )


def _bare_impact(support: Support, v: Array, gained: Array | None, touches: float) -> Projection:
    """Return the projection of a step of one second that contains only the impact and the ``gained`` velocities.

    In such a long step, the small heights of the vertices in contact correspond to no relevant speed. All other
    vertices are moved out of reach.
    """
    feet = support.feet
    widest = max(foot.n_vertices for foot in feet)
    K = len(feet)
    w = support.J @ v
    polygons, offsets, edges = np.zeros((K, widest, 2)), np.zeros((K, widest, 3)), np.zeros((K, widest, 3))
    for k, foot in enumerate(feet):
        n = foot.n_vertices
        polygons[k, :n], offsets[k, :n] = foot.polygon, foot.offsets
        edges[k, :n] = edge_lines(foot.polygon) if n else 0.0
        offsets[k, :n, 2] += np.where(foot.heights <= touches, 0.0, OUT_OF_REACH)
    lowest = [float((foot.heights - foot.offsets[:, 2]).min(initial=OUT_OF_REACH)) for foot in feet]
    return Projection(
        G=support.J @ np.linalg.solve(support.M, support.J.T),
        w_free=w.copy() if gained is None else w + gained,
        w_before=w,
        bias=np.zeros(6 * K),
        rotation=np.array([foot.rotation for foot in feet]),
        position=np.column_stack([np.zeros((K, 2)), lowest]),
        offsets=offsets,
        vertices=polygons,
        n_vertices=np.array([foot.n_vertices for foot in feet], dtype=np.int64),
        edges=edges,
        mu_static=np.array([foot.mu_static for foot in feet]),
        mu_dynamic=np.array([foot.mu_dynamic for foot in feet]),
        changed=np.zeros(K, dtype=np.int64),
        radius=np.zeros(K),
        previous=np.zeros((K, widest, 2)),
        n_previous=np.zeros(K, dtype=np.int64),
        lifted=np.zeros((K, widest)),
        parted=np.zeros(1, dtype=np.bool_),
        budget=unlimited(),
    )
