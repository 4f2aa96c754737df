"""Sticking and detachment: what the torques may be for some contacts to stick and the others to break.

Source: Hurmuzlu, Genot and Brogliato 2001, appendix A, eq. 59 to 72.
"""

from __future__ import annotations

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim_studies.feasibility.conditions import NOTHING, Conditions, Keep, Reserve
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

    The held contacts are at rest and stay so, J a + J' v = 0; the others that touch leave with a positive normal
    acceleration [m/s^2].

    Args:
        support: The robot at (q, v), at rest where it touches.
        keep: See :class:`Conditions`.
        touches, reserve, sides: See :class:`Conditions`.
        h: 0 for the conditions of continuous time, which are the paper's. A step [s] gives those of the simulator's
            step from this state, (J v + h J a) / h = 0, in which a velocity that the contacts have left is taken away
            within the step and viscous friction is implicit: equal to the former to first order in h where
            J v = h J' v, as between two steps.

    Raises:
        ConfigError: See :class:`Conditions`; or the step is negative.
    """
    if not h >= 0.0:
        raise ConfigError(f"h = {h} s must not be negative")
    s = support
    nu = s.selection.shape[1]
    inertia = s.M + h * np.diag(s.damping)
    solved = np.linalg.solve(inertia, np.column_stack([s.selection, s.forces, s.J.T]))
    moved = s.J @ solved
    moving = s.J @ s.v
    return Conditions(
        s,
        moved[:, nu + 1 :],
        moved[:, :nu],
        (moving / h if h > 0.0 else s.bias) - moved[:, nu],
        keep,
        turning=None if h > 0.0 else moving.reshape(-1, 6)[:, 3:],
        touches=touches,
        reserve=reserve,
        sides=sides,
    )
