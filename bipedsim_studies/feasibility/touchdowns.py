"""Predict the outcome of each touchdown of a run from the velocity before it, and compare with the simulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.contact import mode_name
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim_studies.feasibility.impact_shaping import (
    ImpactOutcome,
    gained_velocity,
    impact_conditions,
    impact_outcome,
)
from bipedsim_studies.feasibility.states import States, recorded_states
from bipedsim_studies.feasibility.support import TOUCHES, Support, SupportReader

LANDING = 2
"""Physics steps of a touchdown; a flat foot usually lands on one edge first, and then on the other."""


@dataclass(frozen=True, eq=False)
class PredictedTouchDown:
    """Touchdown with its prediction.

    Attributes:
        t: Time of the state before it [s].
        feet: Feet that touch down.
        speed: Normal velocity of the fastest vertex that hits [m/s], negative.
        all_stick: Smallest condition (eq. 90) for all contacts to stick, positive if they would [N.s, N.m.s or m/s].
        limit: Name of this condition.
        predicted: (K,) predicted modes after the impact, as text.
        happened: (K,) modes of the run after ``LANDING`` rows, as text.
        impulse_predicted: (K,) predicted normal impulse on each foot [N.s].
        impulse_happened: (K,) recorded normal impact impulse on each foot in these rows [N.s].
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
        """Whether the contacts agree with the prediction."""
        return self.predicted == self.happened


def touch_downs(
    recording: Recording, robot: Robot, ground: Ground, states: States | None = None
) -> tuple[PredictedTouchDown, ...]:
    """Return all touchdowns of a run for which the state before is known.

    The impact has the velocity of the last row without contact, at the configuration of the next row. The other forces
    act during ``LANDING`` rows. If a robot sets its foot down softly, the impact would lift the other foot with a
    smaller impulse than its weight holds it down. In the paper's impact, which takes no time, that foot would leave the
    ground.

    Args:
        recording: Run of a simulator that records each physics step.
        robot, ground: Robot and ground of the run.
        states: States of the run, if already computed.

    Raises:
        RecordingError: See :func:`bipedsim_studies.feasibility.states.recorded_states`.
    """
    states = states or recorded_states(recording, robot)
    mode = recording.mode
    landed = (mode[1:] > 0) & (mode[:-1] == 0)
    reader = SupportReader(robot, ground)
    predictions = []
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
        smallest, limit = _all_stick(support, v, gained)
        predictions.append(
            PredictedTouchDown(
                t=float(recording.t[i]),
                feet=tuple(recording.feet[k] for k in feet),
                speed=min(_fastest(support, int(k), v) for k in feet),
                all_stick=smallest,
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
    return tuple(predictions)


def _all_stick(support: Support, v: Array, gained: Array) -> tuple[float, str]:
    """Return the weakest condition for all vertices in contact to stick; for three of four, the face must stick."""
    keep, highest = {}, TOUCHES
    for foot, touching in zip(support.feet, support.touching(), strict=True):
        if touching:
            keep[foot.name] = touching if len(touching) < 3 else tuple(range(foot.n_vertices))
            highest = max(highest, float(foot.heights[list(keep[foot.name])].max()))
    conditions = impact_conditions(support, keep, gained=gained, touches=highest)
    margins = conditions.margins(v)
    i = int(np.argmin(margins))
    return float(margins[i]), conditions.exact_labels[i]


def _impact(support: Support, outcome: ImpactOutcome, v: Array) -> Array:
    """Return the normal impulses (K,) that stop the velocities before the impact, as defined in a recording."""
    normal = np.zeros(len(support.feet))
    conditions = outcome.conditions
    for i, name in enumerate(conditions.held):
        normal[support.index(name)] = conditions.wrenches[6 * i + 2, :-1] @ v
    return normal


def _fastest(support: Support, k: int, v: Array) -> float:
    w = support.J[6 * k : 6 * k + 6] @ v
    offsets = support.feet[k].offsets[list(support.touching()[k])]
    return float((w[2] + w[3] * offsets[:, 1] - w[4] * offsets[:, 0]).min())
