"""A whole step with all contacts in one compiled call, for a robot without objects and a compiled, rigid model."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from bipedsim.dynamics import Attempt, Outcome, StepWithContact, begin_attempt, end_attempt, use_memory
from bipedsim.numerics import Array, Flags, Integers, call_native, entry
from bipedsim.touch.coupling import fill_rebounds, fill_rows, solve_all
from bipedsim.touch.find import RobotContacts, add_passed_limits, find_all


class WholeStep(NamedTuple):
    """All arrays of such a step.

    Attributes:
        step: Dynamics and contact model of the feet.
        robot: The contacts.
        counters: Counters of the contact model.
        counted: Copy of the counters from the beginning of the step.
        nothing: (K, 6) zeros.
        solved: (1,) whether the solution of the last step is within tolerance.
    """

    step: StepWithContact
    robot: RobotContacts
    counters: Integers
    counted: Integers
    nothing: Array
    solved: Annotated[Flags, 1]


@entry
def take_step(boxed: Any, q: Array, v: Array, tau_joint: Array, part: int) -> int:
    """Take a step as :meth:`bipedsim.dynamics.Dynamics.touch` does with a :class:`~bipedsim.touch.Touching`."""
    s = boxed.arrays
    c, coupling = s.step, s.robot.coupling
    a = c.step
    outcome = begin_attempt(a, q, v, tau_joint, part, 1.0, Attempt.PROJECT.value)
    if outcome != Outcome.TAKEN:
        return int(outcome)
    a.bodies.near[0] = False
    s.counted[:] = s.counters
    find_all(s.robot, q, v)
    bounces = fill_rows(coupling, v)
    attempt = Attempt.CONTACT.value
    # Each repetition adds the limit of at least one joint.
    for _ in range(a.stops.idx_q.shape[0] + 1):
        if bounces:
            begin_attempt(a, q, v, tau_joint, part, 1.0, attempt)
            use_memory(c.memory, a.progress.memory[0])
            call_native(c.solve.function, c.solve.argument)  # type: ignore[call-arg]
            attempt = Attempt.CONTACT_AGAIN.value
            fill_rebounds(coupling, c.impulse, 0.0 if a.flight.aloft[0] else 0.5)
        # A step that is solved twice, with other joint limits or for a rebound, counts once.
        s.counters[:] = s.counted
        s.solved[0] = solve_all(coupling, s.nothing)
        outcome = end_attempt(a, q, v, c.impulse, c.late, part, Attempt.COUPLED.value)
        use_memory(c.memory, a.progress.memory[0])
        if outcome != Outcome.OTHER_LIMITS:
            break
        add_passed_limits(s.robot, q)
        bounces = fill_rows(coupling, v) and bounces
    a.flight.aloft[0] = False
    return int(outcome)
