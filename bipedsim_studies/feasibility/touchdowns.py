"""Every touch-down of a run: the outcome that its velocity before calls for, beside what the simulator made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.contact import mode_name
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim_studies.feasibility.impact_shaping import Outcome, gained_velocity, impact_conditions, impact_outcome
from bipedsim_studies.feasibility.states import States, recorded_states
from bipedsim_studies.feasibility.support import TOUCHES, Support, SupportReader

LANDING = 2
"""Physics steps that a landing takes: a flat foot mostly comes down on one edge, and then on the other."""


@dataclass(frozen=True, eq=False)
class TouchDown:
    """A touch-down.

    Attributes:
        t: Time of the state before it [s].
        feet: Which feet touched down.
        speed: Normal velocity of the fastest vertex that hits [m/s], negative.
        all_stick: Smallest of the conditions (eq. 90) for everything that touches to stick, positive if it would
            [N.s, N.m.s or m/s], and ``limit``, which one that is.
        predicted: (K,) modes in words after the impact.
        happened: (K,) the same of the run, after ``LANDING`` rows.
        impulse_predicted, impulse_happened: (K,) normal impulse on each foot [N.s]; of the run what was recorded as
            impact in these rows.
    """

    t: float
    feet: tuple[str, ...]
    speed: float
    all_stick: float
    limit: str
    predicted: tuple[str, ...]
    happened: tuple[str, ...]
    impulse_predicted: Array
    impulse_happened: Array

    @property
    def agrees(self) -> bool:
        """Whether the contacts are as predicted."""
        return self.predicted == self.happened


def touch_downs(
    recording: Recording, robot: Robot, ground: Ground, states: States | None = None
) -> tuple[TouchDown, ...]:
    """Return all touch-downs of a run of which the state before is known.

    The impact is that of the velocity of the last row without contact, at the configuration one row on. While it lasts,
    ``LANDING`` rows, the other forces act: a robot that sets its foot down softly lifts the other one by less than its
    weight holds down, and the paper's impact, which takes no time, would have that foot leave.

    Args:
        recording: The run, of a simulator that records every physics step.
        robot, ground: What ran, and on what.
        states: Those of the run, where they have been read already.

    Raises:
        RecordingError: See :func:`bipedsim_studies.feasibility.states.recorded_states`.
    """
    states = states or recorded_states(recording, robot)
    mode = recording.mode
    landed = (mode[1:] > 0) & (mode[:-1] == 0)
    reader = SupportReader(robot, ground)
    found = []
    for i in np.flatnonzero(landed.any(axis=1)):
        if i + LANDING >= len(recording) or not np.isfinite(states.v[i]).all():
            continue
        v = states.v[i]
        support = reader.at(pin.integrate(robot.model, states.q[i], states.dt * v), v, before=states.q[i])
        feet = np.flatnonzero(landed[i])
        if not all(support.touching()[k] for k in feet):
            continue
        after = i + LANDING
        u = recording.joint_effort[i + 1]
        gained = gained_velocity(support, np.where(np.isfinite(u), u, 0.0), LANDING * states.dt)
        outcome = impact_outcome(support, v, gained)
        least, limit = _all_stick(support, v, gained)
        found.append(
            TouchDown(
                t=float(recording.t[i]),
                feet=tuple(recording.feet[k] for k in feet),
                speed=min(_fastest(support, int(k), v) for k in feet),
                all_stick=least,
                limit=limit,
                predicted=outcome.names,
                happened=tuple(
                    mode_name(int(mode[after, k]), bool(recording.sliding[after, k]), support.feet[k].n_vertices)
                    for k in range(len(support.feet))
                ),
                impulse_predicted=_impact(support, outcome, v),
                impulse_happened=recording.impact[i + 1 : after + 1, :, 2].sum(axis=0),
            )
        )
    return tuple(found)


def _all_stick(support: Support, v: Array, gained: Array) -> tuple[float, str]:
    """Return the weakest condition for all vertices that touch to stick; of three of four, the foot's face must."""
    keep, high = {}, TOUCHES
    for foot, touching in zip(support.feet, support.touching(), strict=True):
        if touching:
            keep[foot.name] = touching if len(touching) < 3 else tuple(range(foot.n_vertices))
            high = max(high, float(foot.heights[list(keep[foot.name])].max()))
    conditions = impact_conditions(support, keep, gained=gained, touches=high)
    margins = conditions.margins(v)
    i = int(np.argmin(margins))
    return float(margins[i]), conditions.exact_labels[i]


def _impact(support: Support, outcome: Outcome, v: Array) -> Array:
    """Return the normal impulses (K,) that stop the velocities before the impact, as a recording has them."""
    normal = np.zeros(len(support.feet))
    conditions = outcome.conditions
    for i, name in enumerate(conditions.held):
        normal[support.index(name)] = conditions.wrenches[6 * i + 2, :-1] @ v
    return normal


def _fastest(support: Support, k: int, v: Array) -> float:
    w = support.J[6 * k : 6 * k + 6] @ v
    offsets = support.feet[k].offsets[list(support.touching()[k])]
    return float((w[2] + w[3] * offsets[:, 1] - w[4] * offsets[:, 0]).min())
