"""How kernels are compiled, and how tuples of arrays are handed to them as one argument.

A compiled function of fifty arrays spends microseconds on unpacking them from Python at every call. Boxed, they cost
one pointer, and the compiled code reads them by name: ``step.arrays.projection.G``.

``kernel`` compiles without numba's runtime: such a function cannot allocate, which the compiler checks, and spends
nothing on counting references to fifty arrays at every call, three quarters of the time else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config as numba_config
from numba import njit, typeof, types
from numba.experimental import structref

config: Any = numba_config
_PACKAGE = Path(__file__).parents[1]
_COMPILED = "numerics/**/*.py dynamics/*.py contact/**/*.py ground/support.py ground/ground.py sim/*.py control/**/*.py"
_SOURCES = tuple(sorted(path for pattern in _COMPILED.split() for path in _PACKAGE.glob(pattern)))


def _cache_folder(kind: str, sources: tuple[Path, ...]) -> str:
    """Return where the compiled functions of ``sources`` are kept: a folder for exactly these, or numba's default.

    numba looks only at the file of a function, and would go on with a caller that holds the old version of a function
    of another file.
    """
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.read_bytes())
    name = f"{kind}-{digest.hexdigest()[:16]}"
    if config.CACHE_DIR:
        return str(Path(config.CACHE_DIR) / name)
    parent = _PACKAGE / "__pycache__"
    folder = parent / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return str(base / "bipedsim" / folder.name)
    for other in parent.glob(f"{kind}-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return str(folder)


_KERNELS = _cache_folder("kernels", _SOURCES)
_CONTROLLERS = _cache_folder("controllers", _SOURCES)


def _compiler(folder: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles with ``options`` and caches in ``folder``."""

    def decorate(function: Callable[..., Any]) -> Any:
        before = config.CACHE_DIR
        config.CACHE_DIR = folder
        try:
            return njit(cache=True, error_model="numpy", **options)(function)
        finally:
            config.CACHE_DIR = before

    return decorate


kernel = _compiler(_KERNELS, _nrt=False)
inlined_kernel = _compiler(_KERNELS, _nrt=False, forceinline=True)
"""For what runs at every step: passing the tuples to a function costs as much as many functions do."""

entry = _compiler(_KERNELS)
"""For what is called from Python with a box: only here are references counted."""

control_kernel = _compiler(_CONTROLLERS, _nrt=False)
control_entry = _compiler(_CONTROLLERS)
"""The same for controllers and estimation, which change without a change of the physics; an entry may allocate."""


@structref.register
class BoxType(types.StructRef):
    """numba's type of a :class:`Box`; the type of its tuple is a parameter."""


class Box(structref.StructRefProxy):
    """A tuple on the compiled side, in its field ``arrays``; made by :func:`box`."""


structref.define_boxing(BoxType, Box)


@entry
def _make(kind, arrays):
    made: Any = structref.new(kind)  # type: ignore[call-arg]
    made.arrays = arrays
    return made


def box(arrays: tuple[Any, ...]) -> Any:
    """Return ``arrays``, a named tuple of arrays, numbers and such tuples, as one object for compiled functions."""
    return _make(BoxType([("arrays", typeof(arrays))]), arrays)
