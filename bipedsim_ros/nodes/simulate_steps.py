"""Many steps of a paused simulation as one task of an executor, which serves everybody else between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _nothing() -> None:
    pass


async def simulate_steps(
    count: int,
    step: Callable[[], object],
    tell: Callable[[int, int], object],
    cancelled: Callable[[], bool],
    executor: Any,
) -> int:
    """Take steps, and return how many were taken: ``count``, or fewer if they were cancelled.

    Args:
        count: How many.
        step: Takes one; what it raises ends them.
        tell: Called after each with how many are taken and how many remain.
        cancelled: Whether nobody wants the rest.
        executor: Of rclpy, whose task this is.
    """
    for taken in range(count):
        if cancelled():
            return taken
        step()
        tell(taken + 1, count - taken - 1)
        # Another task in the queue: without one, the executor would wait for an event before it comes back.
        await executor.create_task(_nothing)
    return count
