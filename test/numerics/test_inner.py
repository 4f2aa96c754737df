"""Kernels that take a pointer into a box have no machine code of their own, and work all the same from the disk."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from bipedsim.numerics import kernel_cache
from bipedsim.numerics.inner import InnerLibrary

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


def test_an_entry_is_linked_from_kernels_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    kernel_cache.cache_folder.cache_clear()
    path = tmp_path / "inner_under_test.py"
    path.write_text(SOURCE)

    def use(expected: list[float]) -> tuple[ModuleType, set[str]]:
        module = fresh(path)
        x = np.array([1.0, 2.0, 3.0])
        module.run(module.box(module.Work(2.0, x)))
        assert x.tolist() == expected
        names = ("run", "scale_all", "scale")
        return module, {name for name in names if getattr(module, name).stats.cache_misses}

    module, compiled = use([2.0, 4.0, 6.0])
    assert compiled == {"run", "scale_all", "scale"}
    libraries = [overload.library for overload in module.scale_all.overloads.values()]
    assert [type(library) for library in libraries] == [InnerLibrary]
    assert use([2.0, 4.0, 6.0])[1] == set()
    path.write_text(path.read_text().replace("return scale_all(boxed.arrays)", "return -scale_all(boxed.arrays)"))
    assert use([2.0, 4.0, 6.0])[1] == {"run"}
    path.write_text(path.read_text().replace("*= w.gain", "*= -w.gain"))
    assert use([-2.0, -4.0, -6.0])[1] == {"run", "scale_all", "scale"}
    path.write_text(path.read_text().replace("gain: float\n    x: Any", "x: Any\n    gain: float"))
    changed = fresh(path)
    x = np.array([1.0, 2.0, 3.0])
    changed.run(changed.box(changed.Work(x, 2.0)))
    assert x.tolist() == [-2.0, -4.0, -6.0], "fields in another order are read where they are"
    kernel_cache.cache_folder.cache_clear()
