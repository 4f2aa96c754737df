"""The cases of the papers, each run once for all tests that look at it."""

from __future__ import annotations

from functools import lru_cache

from bipedsim_studies.reproduce.common import CaseOutcome
from bipedsim_studies.reproduce.papers import get_paper


@lru_cache
def outcome(paper: str, case: str) -> CaseOutcome:
    """Return the result of a case."""
    return get_paper(paper).cases[case].run(False)


def measured(paper: str, case: str, start: str) -> float:
    """Return the one metric of a case whose quantity begins with ``start``."""
    found = [check.measured for check in outcome(paper, case).checks if check.quantity.startswith(start)]
    assert len(found) == 1, start
    return found[0]
