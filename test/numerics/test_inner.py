"""Kernels that only other kernels call have no machine code of their own, and also load from the cache."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from kernels_support import keep_kernels_in

from bipedsim.numerics import kernel_cache

SOURCE = """
from typing import Any, NamedTuple
from bipedsim.numerics import box, entry, kernel

class Work(NamedTuple):
    gain: float
    x: Any

@kernel
def scale(w, i):
    w.x[i] *= w.gain

@kernel
def scale_all(w):
    for i in range(w.x.shape[0]):
        scale(w, i)
    return w.x[0] + 1.0

@entry
def run(boxed):
    return scale_all(boxed.arrays)
"""


def fresh(path: Path) -> ModuleType:
    """Return the module, loaded as a new process would."""
    sys.modules.pop(path.stem, None)
    importlib.invalidate_caches()
    return importlib.import_module(path.stem)


def form(path: Path) -> str:
    """Return the form in which a kernel is cached: "object" can be run, "bitcode" is linked into other kernels."""
    return str(pickle.loads(path.read_bytes()[kernel_cache._CHECK_BYTES :])[0][1])


def test_an_entry_is_linked_from_kernels_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_kernels_in(tmp_path / "cache", monkeypatch)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    kernel_cache.cache_folder.cache_clear()
    path = tmp_path / "inner_under_test.py"
    path.write_text(SOURCE)

    def use(expected: list[float]) -> set[str]:
        module = fresh(path)
        x = np.array([1.0, 2.0, 3.0])
        module.run(module.box(module.Work(2.0, x)))
        assert x.tolist() == expected
        names = ("run", "scale_all", "scale")
        return {name for name in names if getattr(module, name).stats.cache_misses}

    compiled = use([2.0, 4.0, 6.0])
    assert compiled == {"run", "scale_all", "scale"}
    kept = {name: list((tmp_path / "cache").glob(f"*.{name}-*.nbc")) for name in compiled}
    assert {name: [form(path) for path in paths] for name, paths in kept.items()} == {
        "run": ["object"],
        "scale_all": ["bitcode"],
        "scale": ["bitcode"],
    }
    assert use([2.0, 4.0, 6.0]) == set()
    path.write_text(path.read_text().replace("return scale_all(boxed.arrays)", "return -scale_all(boxed.arrays)"))
    assert use([2.0, 4.0, 6.0]) == {"run"}
    path.write_text(path.read_text().replace("*= w.gain", "*= -w.gain"))
    assert use([-2.0, -4.0, -6.0]) == {"run", "scale_all", "scale"}
    path.write_text(path.read_text().replace("gain: float\n    x: Any", "x: Any\n    gain: float"))
    changed = fresh(path)
    x = np.array([1.0, 2.0, 3.0])
    changed.run(changed.box(changed.Work(x, 2.0)))
    assert x.tolist() == [-2.0, -4.0, -6.0], "fields in another order are read where they are"
    kernel_cache.cache_folder.cache_clear()


NUMBERS = """
from typing import Any, NamedTuple
from bipedsim.numerics import box, entry, kernel

class Work(NamedTuple):
    x: Any

@kernel
def halve(x):
    return 0.5 * x[0]

@entry
def run(boxed):
    return halve(boxed.arrays.x)
"""


def test_python_calls_a_kernel_that_was_compiled_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_kernels_in(tmp_path / "cache", monkeypatch)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    kernel_cache.cache_folder.cache_clear()
    path = tmp_path / "numbers_under_test.py"
    path.write_text(NUMBERS)
    x = np.array([3.0])

    def files() -> list[str]:
        return sorted(form(file) for file in (tmp_path / "cache").glob("*.halve-*.nbc"))

    def halved(module: ModuleType) -> float:
        return float(module.run(module.box(module.Work(x))))

    first = fresh(path)
    assert halved(first) == 1.5
    assert files() == ["bitcode"]
    assert first.halve(x) == 1.5
    assert files() == ["bitcode", "object"]
    assert (halved(first), first.halve(x)) == (1.5, 1.5), "both versions stay in use"
    second = fresh(path)
    assert (halved(second), second.halve(x)) == (1.5, 1.5)
    assert not second.halve.stats.cache_misses
    kernel_cache.cache_folder.cache_clear()
