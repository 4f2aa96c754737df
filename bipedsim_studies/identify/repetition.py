"""Find which part of the residuals of equations repeats with the motion.

An error of the model depends on the state. It is the same whenever the robot returns to a state, and more cycles of a
motion do not average it out. The noise of sensors differs each time.
"""

from __future__ import annotations

import numpy as np
import scipy  # it imports its submodules at their first use

from bipedsim.numerics import Array, Flags
from bipedsim_studies.identify.signals import Signals

SIMILAR = 0.05
"""Squared distance of two states, as a share of the mean over all pairs, at which their errors correlate by 1/e."""
LANDMARKS = 300
"""Largest number of states that span the similarities of all."""
FEWEST = 20
"""Rows from which an equation counts."""
_SINGULAR, _TINY, _FEW_PAIRS = 1e-8, 1e-12, 1e-6


def state_features(signals: Signals, rows: slice) -> Array:
    """Return features (n, m) of the states in ``rows``; their products are the similarities of the states, 0 to 1.

    A state consists of the joint positions and velocities. The similarity is a Gaussian function of the distance, with
    the approximation of Nyström for long recordings.
    """
    positions = signals.q[rows] - signals.q[rows].mean(axis=0)
    states = np.hstack([each / (np.sqrt(np.mean(each**2)) + _TINY) for each in (positions, signals.v[rows])])
    landmarks = states[:: -(-len(states) // LANDMARKS)]
    scale = SIMILAR * 2.0 * states.var(axis=0).sum() + _TINY

    def similar(to: Array) -> Array:
        return np.asarray(np.exp(-scipy.spatial.distance.cdist(to, landmarks, "sqeuclidean") / scale))

    values, vectors = np.linalg.eigh(similar(landmarks))
    kept = values > _SINGULAR * values[-1]
    return similar(states) @ (vectors[:, kept] / np.sqrt(values[kept]))


def repeated_shares(residuals: Array, used: Flags, features: Array, apart: int, of_model: Array) -> Array:
    """Return which shares (2,) of residuals repeat: of their whole variance, and of the part from errors of the model.

    The correlation of the residuals of equal states at different times is the first share plus the second one times
    ``of_model``. Noise of sensors may hide errors of many equations, and one equation may have large ones.

    Args:
        residuals: (n, R), in the unit of each equation.
        used: (n, R) whether the equation holds.
        features: (n, m) of :func:`state_features`.
        apart: Rows from which the noise of two residuals is independent.
        of_model: (R,) part of the expected variance of each equation that errors of the model cause, 0 to 1.
    """
    counts = used.sum(axis=0)
    chosen = counts >= FEWEST
    holds = used[:, chosen].astype(float)
    values = residuals[:, chosen] * holds
    values /= np.sqrt((values**2).sum(axis=0) / counts[chosen]) + _TINY
    # Least squares of the products of residuals on the similarities, over all pairs of rows without the near ones.
    products = np.sum((features.T @ values) ** 2, axis=0)
    squares = np.array([np.sum(((features.T * each) @ features) ** 2) for each in holds.T])
    for lag in range(min(apart, len(features))):
        pairs = 1.0 if lag == 0 else 2.0
        early, late = slice(len(features) - lag), slice(lag, None)
        similar = np.sum(features[early] * features[late], axis=1)
        products -= pairs * (similar @ (values[early] * values[late]))
        squares -= pairs * (similar**2 @ (holds[early] * holds[late]))
    known = squares > _FEW_PAIRS * len(features)
    if not known.any():
        return np.zeros(2)
    weights = np.sqrt(squares[known])
    causes = np.stack([np.ones(known.sum()), of_model[chosen][known]], axis=1)
    return np.asarray(scipy.optimize.nnls(weights[:, None] * causes, products[known] / weights)[0])
