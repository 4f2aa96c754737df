"""How kernels are compiled, and how tuples of arrays are handed to them as one argument.

A compiled function of fifty arrays spends microseconds on unpacking them from Python at every call. Boxed, they cost
one pointer, and the compiled code reads them by name: ``step.arrays.projection.G``.

``kernel`` compiles without numba's runtime: such a function cannot allocate, which the compiler checks, and spends
nothing on counting references to fifty arrays at every call, three quarters of the time else.
"""

from __future__ import annotations

from typing import Any

from numba import njit, typeof, types
from numba.experimental import structref

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}

kernel: Any = njit(**_OPTIONS)
inlined_kernel: Any = njit(forceinline=True, **_OPTIONS)
"""For what runs at every step: passing the tuples to a function costs as much as many functions do."""

entry: Any = njit(cache=True, error_model="numpy")
"""For what is called from Python with a box: only here are references counted."""


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
