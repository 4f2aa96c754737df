"""Simulate many steps of a paused simulation as one task of an executor that serves other callbacks in between."""

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
    """Simulate steps; return how many were simulated: ``count``, or fewer after a cancellation.

    Args:
        count: Number of steps.
        step: Simulates one step; its exceptions end the task.
        tell: Called after each step with the numbers of completed and remaining steps.
        cancelled: Returns whether the task is cancelled.
        executor: rclpy's executor of this task.
    """
    for taken in range(count):
        if cancelled():
            return taken
        step()
        tell(taken + 1, count - taken - 1)
        # With an empty queue, the executor would wait for an event before it continues this task.
        await executor.create_task(_nothing)
    return count
