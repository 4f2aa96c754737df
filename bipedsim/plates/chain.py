"""Compute amplifier samples from the force on a plate: vibration of the plate, filter, sampling and converter.

Each axis of a mounted plate is an oscillator, y'' + 2 z w y' + w^2 y = w^2 u. The transducers measure its deflection y
under the force u. The filter before the converter is a Butterworth low-pass of second order. Both are linear. The force
is constant within a physics step, apart from impacts. The equations are therefore solved exactly for any step length.
An impact J adds w^2 J to y'. Its peak at a plate with natural frequency w and damping z is

    J w exp(-z / sqrt(1 - z^2) acos z)

and does not depend on the step. At a rigid plate, the peak is J divided by the step.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.numerics import Array, Integers, entry, kernel
from bipedsim.plates.surfaces import Surfaces

STATES = 4
"""States of an axis: deflection and its rate, output of the filter and its rate."""
TERMS, NORM = 16, 0.25
"""Number of terms in the series of the exponential, and norm to which its argument is halved."""
MOST_HALVINGS = 1100
"""Maximum number of halvings, which is sufficient for any finite number."""
ALIGNED = 1e-9
"""Tolerance, as a fraction of a step, within which a sample is at the end of the step."""


class Chain(NamedTuple):
    """Arrays of P plates with at most C channels each and at most S samples per tick.

    Attributes:
        surfaces: Surfaces and the forces on them.
        h: Step [s].
        flow: (P, 6, 5, 5) A of x' = A x, where x contains the states and the force.
        whole: (P, 6, 5, 5) exponential of A over a step.
        like: (P, 6) first axis of the plate with the same dynamics.
        rigid: (P, 6) 1 for a rigid axis without filter.
        read: (P, 6) index of the state that is the output.
        state: (P, 6, 5) states and force.
        period: (P,) time between samples [s].
        taken: (P,) number of samples since the reset.
        steps: (1,) physics steps since the reset.
        cross: (P, 6, 6) cross-talk: matrix from the wrench to the measured wrench.
        gains: (P, C, 6) matrix from the measured wrench to the channels.
        channels: (P,) number of channels of each plate.
        gives_cop: (P,) 1 for plates of type 1.
        limit, quantum: (P, C) range and resolution of the converter.
        noise: (P, C) standard deviation of a sample.
        drift: (P, C) drift per second, drawn at the reset.
        offset: (P, 3) from the transducers to the centre of the surface.
        threshold: Normal force below which a plate of type 1 has no CoP [N].
        normal: (P, S, C) standard normal random numbers, filled before each tick.
        out: (P, S, 1 + C) time and channels of the samples in a tick.
        new: (P,) number of samples in the tick.
        clipped: (P,) values beyond the range since the reset.
        when: (1,) time of impacts within the step, as a fraction of the step.
        E, F, G: (5, 5) work arrays.
        x: (5,) work array.
        wrench: (6,) work array.
    """

    surfaces: Surfaces
    h: float
    flow: Annotated[Array, "P", 6, 5, 5]
    whole: Annotated[Array, "P", 6, 5, 5]
    like: Annotated[Integers, "P", 6]
    rigid: Annotated[Integers, "P", 6]
    read: Annotated[Integers, "P", 6]
    state: Annotated[Array, "P", 6, 5]
    period: Annotated[Array, "P"]
    taken: Annotated[Integers, "P"]
    steps: Annotated[Integers, 1]
    cross: Annotated[Array, "P", 6, 6]
    gains: Annotated[Array, "P", "C", 6]
    channels: Annotated[Integers, "P"]
    gives_cop: Annotated[Integers, "P"]
    limit: Annotated[Array, "P", "C"]
    quantum: Annotated[Array, "P", "C"]
    noise: Annotated[Array, "P", "C"]
    drift: Annotated[Array, "P", "C"]
    offset: Annotated[Array, "P", 3]
    threshold: float
    normal: Annotated[Array, "P", "S", "C"]
    out: Annotated[Array, "P", "S", "C+1"]
    new: Annotated[Integers, "P"]
    clipped: Annotated[Integers, "P"]
    when: Annotated[Array, 1]
    E: Annotated[Array, 5, 5]
    F: Annotated[Array, 5, 5]
    G: Annotated[Array, 5, 5]
    x: Annotated[Array, 5]
    wrench: Annotated[Array, 6]


@kernel
def _product(A, B, out):
    for i in range(5):
        for j in range(5):
            total = 0.0
            for k in range(5):
                total += A[i, k] * B[k, j]
            out[i, j] = total


@kernel
def exponential(A: Array, t: float, out: Array, power: Array, work: Array) -> None:
    """Fill ``out`` (5, 5) with exp(A t) by series and squaring; all arrays are (5, 5)."""
    largest = 0.0
    for i in range(5):
        row = 0.0
        for j in range(5):
            row += abs(A[i, j] * t)
        largest = max(largest, row)
    halvings = 0
    while largest > NORM and halvings < MOST_HALVINGS:
        largest *= 0.5
        halvings += 1
    scale = t / 2.0**halvings
    for i in range(5):
        for j in range(5):
            out[i, j] = power[i, j] = 1.0 if i == j else 0.0
    for term in range(1, TERMS):
        _product(power, A, work)
        for i in range(5):
            for j in range(5):
                power[i, j] = work[i, j] * scale / term
                out[i, j] += power[i, j]
    for _ in range(halvings):
        _product(out, out, work)
        for i in range(5):
            for j in range(5):
                out[i, j] = work[i, j]


@kernel
def _propagate(c, x, E):
    """Propagate the states (5,) with the exponential E."""
    for i in range(5):
        total = 0.0
        for k in range(5):
            total += E[i, k] * x[k]
        c.x[i] = total
    for i in range(5):
        x[i] = c.x[i]


@kernel
def _advance_plate(c, p, after):
    """Advance all axes of plate ``p`` by ``after`` [s] with constant force."""
    if not after > 0.0:
        return
    whole = after >= c.h * (1.0 - ALIGNED)
    last = -1
    for a in range(6):
        if c.rigid[p, a]:
            continue
        if whole:
            _propagate(c, c.state[p, a], c.whole[p, a])
            continue
        if c.like[p, a] != last:
            last = c.like[p, a]
            exponential(c.flow[p, last], after, c.E, c.F, c.G)
        _propagate(c, c.state[p, a], c.E)


@kernel
def _apply_impact(c, p):
    """Apply the impacts on plate ``p``; the effect equals that of the force during one second."""
    for a in range(6):
        if not c.rigid[p, a]:
            for i in range(STATES):
                c.state[p, a, i] += c.flow[p, a, i, STATES] * c.surfaces.at_once[p, a]


@kernel
def _sample(c, p, t):
    """Take a sample of plate ``p`` at time ``t`` [s]."""
    n = c.new[p]
    if n < c.out.shape[1]:
        c.new[p] = n + 1
    else:
        n -= 1
    for a in range(6):
        total = 0.0
        for b in range(6):
            total += c.cross[p, a, b] * c.state[p, b, c.read[p, b]]
        c.wrench[a] = total
    row = c.out[p, n]
    row[0] = t
    for k in range(c.channels[p]):
        total = 0.0
        for a in range(6):
            total += c.gains[p, k, a] * c.wrench[a]
        total += c.drift[p, k] * t + c.noise[p, k] * c.normal[p, n, k]
        if abs(total) > c.limit[p, k]:
            c.clipped[p] += 1
            total = c.limit[p, k] if total > 0.0 else -c.limit[p, k]
        step = c.quantum[p, k]
        if step > 0.0:
            total = np.rint(total / step) * step
            # The largest number of the converter is one resolution below its range.
            total = min(total, c.limit[p, k] - step)
        row[1 + k] = total
    if c.gives_cop[p]:
        _convert_to_cop(c, p, row)


@kernel
def _convert_to_cop(c, p, row):
    """Convert the moments at the transducers to the CoP on the surface and the free moment."""
    fx, fy, fz = row[1], row[2], row[3]
    s = c.offset[p]
    mx = row[4] - (s[1] * fz - s[2] * fy)
    my = row[5] - (s[2] * fx - s[0] * fz)
    mz = row[6] - (s[0] * fy - s[1] * fx)
    x = y = 0.0
    if abs(fz) > c.threshold:
        x, y = -my / fz, mx / fz
    row[4] = x
    row[5] = y
    row[6] = mz - (x * fy - y * fx)


@entry
def begin_tick(boxed: Any) -> None:
    """Discard the samples of the last tick."""
    c = boxed.arrays
    for p in range(c.new.shape[0]):
        c.new[p] = 0


@kernel
def advance(c: Chain) -> None:
    """Advance all plates by a physics step with the forces on them, and take the samples that are due."""
    s = c.surfaces
    t0 = c.steps[0] * c.h
    for p in range(c.new.shape[0]):
        has_impact = False
        for a in range(6):
            has_impact = has_impact or s.at_once[p, a] != 0.0
        for a in range(6):
            # A rigid plate measures impacts as part of the mean force.
            soft = 0.0 if c.rigid[p, a] else s.at_once[p, a]
            u = (s.load[p, a] - soft) / c.h
            c.state[p, a, STATES] = u
            if c.rigid[p, a]:
                c.state[p, a, 0] = c.state[p, a, 2] = u
            elif c.steps[0] == 0:
                # The initial load is assumed to be static.
                c.state[p, a, 0] = c.state[p, a, 2] = u
                c.state[p, a, 1] = c.state[p, a, 3] = 0.0
        if c.steps[0] == 0:
            _sample(c, p, 0.0)
            c.taken[p] = 1
        at = 0.0
        impact_time = c.when[0] * c.h if has_impact else np.inf
        for _ in range(c.out.shape[1] + 1):
            due = c.taken[p] * c.period[p] - t0
            if due > c.h * (1.0 + ALIGNED):
                break
            due = min(due, c.h)
            if impact_time < due:
                _advance_plate(c, p, impact_time - at)
                _apply_impact(c, p)
                at, impact_time = impact_time, np.inf
            _advance_plate(c, p, due - at)
            at = due
            _sample(c, p, c.taken[p] * c.period[p])
            c.taken[p] += 1
        if impact_time < np.inf:
            _advance_plate(c, p, impact_time - at)
            _apply_impact(c, p)
            at = impact_time
        if at < c.h * (1.0 - ALIGNED):
            _advance_plate(c, p, c.h - at)
    c.steps[0] += 1
