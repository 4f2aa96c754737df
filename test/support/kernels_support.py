"""A cache of kernels of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from bipedsim.numerics import kernel_cache


def keep_kernels_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process, and those that it starts, keep kernels in ``folder``.

    numba reads all its variables again if one has changed since the last compilation, so the setting alone may be lost.
    """
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", str(folder))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
