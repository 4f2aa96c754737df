"""Conditions under which a test prints its stack."""

from __future__ import annotations

import faulthandler

import pytest
from hang import Patience
from numba import njit
from numba.core.event import unregister


def test_a_kernel_that_is_compiled_while_a_test_runs_begins_its_time_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[float, int]] = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, file: begun.append((seconds, file)))
    patience = Patience(7.0, 2)
    try:
        njit(lambda x: x + 1)(1)
        assert (7.0, 2) not in begun
        patience.running = True
        njit(lambda x: x + 2)(1)
    finally:
        unregister("numba:compile", patience)
    assert begun.count((7.0, 2)) >= 2, "at the begin and at the end of each"
