"""Compute conditions on the torques for some contacts to stick and the others to open.

Source: Hurmuzlu, Genot and Brogliato 2001, appendix A, eq. 59 to 72.
"""

from __future__ import annotations

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim_studies.feasibility.conditions import NOTHING, Conditions, Keep, Reserve, Response
from bipedsim_studies.feasibility.support import TOUCHES, Support


def sticking_conditions(
    support: Support,
    keep: Keep | None = None,
    *,
    touches: float = TOUCHES,
    reserve: Reserve = NOTHING,
    sides: int = 8,
    h: float = 0.0,
) -> Conditions:
    """Return the conditions A(q, mu) u + B(q, v, mu) > 0 on the torques u (nu,) (eq. 72).

    The held contacts are at rest and remain so, J a + J' v = 0. All others in contact leave with a positive normal
    acceleration [m/s^2].

    Args:
        support: The robot at (q, v), at rest at its contacts.
        keep: See :class:`Conditions`.
        touches, reserve, sides: See :class:`Conditions`.
        h: 0 for the paper's conditions in continuous time. A step [s] gives the conditions of the simulator's step from
            this state, (J v + h J a) / h = 0. That step removes residual contact velocities, and viscous friction is
            implicit. Both kinds are equal to first order in h if J v = h J' v, as between two steps.

    Raises:
        ConfigError: See :class:`Conditions`; or the step is negative.
    """
    if not h >= 0.0:
        raise ConfigError("s must not be negative", "h", h)
    s = support
    nu = s.selection.shape[1]
    inertia = s.M + h * np.diag(s.damping)
    solved = s.J @ np.linalg.solve(inertia, np.column_stack([s.selection, s.forces, s.J.T]))
    moving = s.J @ s.v
    free = (moving / h if h > 0.0 else s.bias) - solved[:, nu]
    turning = None if h > 0.0 else moving.reshape(-1, 6)[:, 3:]
    response = Response(solved[:, nu + 1 :], solved[:, :nu], free, turning)
    return Conditions(s, response, keep, touches=touches, reserve=reserve, sides=sides)
