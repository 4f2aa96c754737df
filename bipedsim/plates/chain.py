"""From the force on a plate to the samples of its amplifier: the plate's own vibration, filter, sampling, converter.

Each axis of a mounted plate is an oscillator, y'' + 2 z w y' + w^2 y = w^2 u, whose deflection is what transducers
measure of a force u; a filter before the converter is a Butterworth low-pass of second order behind it. Both are
linear: over a physics step, in which u is constant but for what comes at one moment, they are solved exactly, whatever
the length of the step. An impact J at one moment adds w^2 J to y'; through a plate of natural frequency w and damping z
its peak is

    J w exp(-z / sqrt(1 - z^2) acos z)

and does not depend on the step; at a rigid plate it is J over the step.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.numerics import Array, Integers, entry, kernel
from bipedsim.plates.surfaces import Surfaces

STATES = 4
"""Of an axis: deflection and its rate, output of the filter and its rate."""
TERMS, NORM = 16, 0.25
"""Of the series of the exponential, and what its argument is halved to."""
MOST_HALVINGS = 1100
"""A finite number is no larger."""
ALIGNED = 1e-9
"""A sample this near to the end of a step, as a share of it, is at its end."""


class Chain(NamedTuple):
    """P plates of C channels at most, S samples in a step at most.

    Attributes:
        surfaces: What acts on them. h: Step [s].
        flow: (P, 6, 5, 5) A of x' = A x, x the states and the force. whole: (P, 6, 5, 5) its exponential over a step.
            like: (P, 6) the first axis of the plate that moves the same way. rigid: (P, 6) 1 where nothing moves.
            read: (P, 6) which state is read.
        state: (P, 6, 5). period: (P,) between samples [s]. taken: (P,) samples since reset.
        steps: (1,) physics steps since reset.
        cross: (P, 6, 6) what is read of a wrench. gains: (P, C, 6) channels of that. channels: (P,) how many each plate
            has. gives_cop: (P,) 1 of type 1.
        limit, quantum: (P, C) range and step of the converter. noise: (P, C) deviation of a sample. drift: (P, C) per
            second, as drawn.
        offset: (P, 3) from the transducers to the centre of the surface. threshold: Force of type 1 without a CoP [N].
        normal: (P, S, C) standard normal numbers, filled before each tick.
        out: (P, S, 1 + C) time and channels of the samples of a tick. new: (P,) how many there are.
        clipped: (P,) values beyond the range since reset.
        when: (1,) share of the step after which what comes at one moment does.
        E, F, G: (5, 5) work. x: (5,) work. wrench: (6,) work.
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
    """Fill ``out`` (5, 5) with exp(A t), by its series and squaring; all arrays are (5, 5)."""
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
def _move(c, x, E):
    """Let the states (5,) go on by the exponential E."""
    for i in range(5):
        total = 0.0
        for k in range(5):
            total += E[i, k] * x[k]
        c.x[i] = total
    for i in range(5):
        x[i] = c.x[i]


@kernel
def _go_on(c, p, after):
    """Let all axes of plate ``p`` go on by ``after`` [s] in which the force is constant."""
    if not after > 0.0:
        return
    whole = after >= c.h * (1.0 - ALIGNED)
    last = -1
    for a in range(6):
        if c.rigid[p, a]:
            continue
        if whole:
            _move(c, c.state[p, a], c.whole[p, a])
            continue
        if c.like[p, a] != last:
            last = c.like[p, a]
            exponential(c.flow[p, last], after, c.E, c.F, c.G)
        _move(c, c.state[p, a], c.E)


@kernel
def _strike(c, p):
    """Let what comes at one moment act on plate ``p``: as much as the force would in a second."""
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
            # The converter's numbers end one below its range.
            total = min(total, c.limit[p, k] - step)
        row[1 + k] = total
    if c.gives_cop[p]:
        _as_cop(c, p, row)


@kernel
def _as_cop(c, p, row):
    """Turn moments at the transducers into the CoP on the surface and the free moment."""
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
    """Forget the samples of the last tick."""
    c = boxed.arrays
    for p in range(c.new.shape[0]):
        c.new[p] = 0


@kernel
def advance(c: Chain) -> None:
    """Let all plates go on by a physics step under what acts on them, and take the samples that are due in it."""
    s = c.surfaces
    t0 = c.steps[0] * c.h
    for p in range(c.new.shape[0]):
        strikes = False
        for a in range(6):
            strikes = strikes or s.at_once[p, a] != 0.0
        for a in range(6):
            # A rigid plate shows what came at once as part of the mean.
            soft = 0.0 if c.rigid[p, a] else s.at_once[p, a]
            u = (s.load[p, a] - soft) / c.h
            c.state[p, a, STATES] = u
            if c.rigid[p, a]:
                c.state[p, a, 0] = c.state[p, a, 2] = u
            elif c.steps[0] == 0:
                # Whoever stands there has stood there before.
                c.state[p, a, 0] = c.state[p, a, 2] = u
                c.state[p, a, 1] = c.state[p, a, 3] = 0.0
        if c.steps[0] == 0:
            _sample(c, p, 0.0)
            c.taken[p] = 1
        at = 0.0
        strike = c.when[0] * c.h if strikes else np.inf
        for _ in range(c.out.shape[1] + 1):
            due = c.taken[p] * c.period[p] - t0
            if due > c.h * (1.0 + ALIGNED):
                break
            due = min(due, c.h)
            if strike < due:
                _go_on(c, p, strike - at)
                _strike(c, p)
                at, strike = strike, np.inf
            _go_on(c, p, due - at)
            at = due
            _sample(c, p, c.taken[p] * c.period[p])
            c.taken[p] += 1
        if strike < np.inf:
            _go_on(c, p, strike - at)
            _strike(c, p)
            at = strike
        if at < c.h * (1.0 - ALIGNED):
            _go_on(c, p, c.h - at)
    c.steps[0] += 1
