"""A message on stderr announces compilation, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernels_support import keep_kernels_in
from numba.core.errors import NumbaError

from bipedsim.numerics import jit, kernel_cache


def test_what_is_compiled_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_kernels_in(tmp_path, monkeypatch)
    monkeypatch.setattr(jit, "_silent", True)
    kernel_cache.cache_folder.cache_clear()
    # Those of the test alone.
    monkeypatch.setattr(jit, "_caches", [])

    @jit.kernel
    def once(x):
        return x + 1.0

    @jit.kernel
    def others(x):
        return x + 2.0

    with jit.announced("the test, which is told once", 3.4):
        assert (once(1.0), others(1.0)) == (2.0, 3.0)
    said = capsys.readouterr()
    begin = "compiling the kernels of the test, which is told once, up to 3 s on an idle machine, once ...\n"
    begin += "compiled 2 kernels of the test in "
    assert said.out == ""
    assert said.err.startswith(begin)
    assert said.err.removeprefix(begin).removesuffix(" s\n").isdecimal()
    with jit.announced("the test", 3.4):
        assert once(2.0) == 3.0
    assert capsys.readouterr().err == "", "what is there is loaded in silence"
    assert once(1) == 2.0
    said = capsys.readouterr()
    assert said.err == f"compiling kernels, of {__name__} first, about a minute, once ...\n", "behind it, too"
    assert others(1) == 3.0
    assert capsys.readouterr().err == "", "one line is enough"
    kernel_cache.cache_folder.cache_clear()


@pytest.mark.parametrize(
    ("kept", "at_first", "said"),
    [
        (0, 85.0, "about a minute"),
        (5, 85.0, "up to 45 s on an idle machine"),
        (9, 85.0, "up to 13 s on an idle machine"),
        (0, 5.0, "up to 40 s on an idle machine"),
    ],
)
def test_how_long_it_takes_goes_by_how_much_is_missing(
    kept: int,
    at_first: float,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keep_kernels_in(tmp_path, monkeypatch)
    monkeypatch.setattr(jit, "_caches", [])
    # Ten kernels of four seconds: their number requires more than an estimate of five seconds.
    monkeypatch.setattr(jit, "_PER_KERNEL_S", 4.0)
    kernel_cache.cache_folder.cache_clear()

    def made(i: int) -> Any:
        def add(x):
            return x + i

        add.__qualname__ = f"add_{i}"
        return jit.kernel(add)

    kernels = [made(i) for i in range(10)]
    monkeypatch.setattr(jit, "_silent", False)
    for i in range(kept):
        assert kernels[i](1.0) == 1.0 + i
    with jit.announced("all", 5.0, at_first=at_first):
        assert kernels[9](1.0) == 10.0
    assert capsys.readouterr().err.startswith(f"compiling the kernels of all, {said}, once ...\n")
    kernel_cache.cache_folder.cache_clear()


def test_whoever_wants_to_know_of_compiling_is_called_before_it_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_kernels_in(tmp_path, monkeypatch)
    kernel_cache.cache_folder.cache_clear()
    kept: list[int] = []

    @jit.kernel
    def double(x):
        return x + x

    with jit.on_compiling(lambda: kept.append(len(list(tmp_path.glob("*.nbc"))))):
        double(1.0)
        double(1)
    assert kept == [0]
    with jit.on_compiling(lambda: kept.append(-1)):
        double(1.0)
    double(np.float32(1.0))
    assert kept == [0], "what is there is not compiled, and outside nobody asks"
    kernel_cache.cache_folder.cache_clear()


def test_a_kernel_cannot_allocate() -> None:
    @jit.kernel
    def greedy(n):
        return np.zeros(n)[0]

    with pytest.raises(NumbaError, match="Only accept returning of array passed into the function"):
        greedy(3)


def test_a_kernel_is_compiled_once_whatever_constants_it_is_called_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_kernels_in(tmp_path, monkeypatch)
    kernel_cache.cache_folder.cache_clear()

    @jit.kernel
    def shifted(x, by, double):
        return 2.0 * (x + by) if double else x + by

    @jit.entry
    def shifted_twice(x):
        return shifted(shifted(x, 1, True), by=2, double=False)

    assert shifted_twice(3.0) == 10.0
    assert len(shifted.signatures) == 1
    kernel_cache.cache_folder.cache_clear()
