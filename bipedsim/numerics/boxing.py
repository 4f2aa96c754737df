"""Packed argument structs: named tuples of arrays that compiled code receives as a single pointer.

Dataclasses of numbers, such as the parameters of a model, are packed like tuples.

Passed by value, a tuple of fifty arrays has about 150 machine words. Every call copies them, and every word adds a line
to the code that the compiler reads. A :class:`Box` is a table of these words that is made once. Compiled code reads an
array from the table where it is named (``step.arrays.projection.G``). A nested tuple is a pointer into the same table,
and a kernel in a field can be called. The words never change, and the loads are marked as invariant, so the compiler
keeps the values of a loop in registers.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from bipedsim.numerics.kernel_cache import KernelType

_WORD = ir.IntType(64)
_NUMBERS = (
    ((bool, np.bool_), types.boolean),
    ((int, np.integer), types.int64),
    ((float, np.floating), types.float64),
)
_DOUBLE, _BITS = Struct("d"), Struct("q")
_ARRAYS: dict[Any, types.Type] = {}
"""Numba types of arrays, by the properties that determine them."""
_TUPLES: dict[Any, TupleType] = {}
"""Numba types of tuples and dataclasses, by their class and the types of their fields."""


class Field(NamedTuple):
    """Field of a packed tuple: its numba type, and the index of its first word."""

    type: types.Type
    offset: int


class TupleType(types.Type):
    """Numba type of a pointer to the words of a named tuple or dataclass.

    Args:
        kind: Class of the tuple.
        members: Type of each field by name; a :class:`TupleType` for a nested tuple.
    """

    def __init__(self, kind: type, members: dict[str, types.Type]) -> None:
        self.kind = kind
        self.members = tuple(members.values())
        self.fields: dict[str, Field] = {}
        self.size = 0
        for name, member in members.items():
            self.fields[name] = Field(member, self.size)
            self.size += _size(member)
        # The name is part of the name of every compiled function, so it is short, and unique for a set of fields.
        text = ", ".join(f"{name}: {field.type}" for name, field in self.fields.items())
        digest = hashlib.sha256(f"{kind.__module__}.{kind.__qualname__}({text})".encode()).hexdigest()
        super().__init__(f"{kind.__name__}#{digest[:12]}")


class BoxType(types.Type):
    """Numba type of a :class:`Box`."""

    def __init__(self, arrays: TupleType) -> None:
        self.arrays = arrays
        super().__init__(f"Box({arrays})")


register_model(TupleType)(models.OpaqueModel)
register_model(BoxType)(models.OpaqueModel)


class Box:
    """Packed named tuple, which compiled code reads from the field ``arrays``; made by :func:`box`.

    Attributes:
        address: Address of its words.
        type: Its numba type.
    """

    __slots__ = ("_numba_type_", "_owner", "_words", "address", "type")

    def __init__(self, arrays: tuple[Any, ...]) -> None:
        words: list[int] = []
        kind = _take(arrays, words)
        assert isinstance(kind, TupleType)
        self._owner = arrays
        self._words = np.array(words, dtype=np.int64)
        self.address = self._words.ctypes.data
        self._numba_type_ = self.type = BoxType(kind)


def box(arrays: tuple[Any, ...]) -> Box:
    """Pack ``arrays`` as an argument of compiled entry points.

    ``arrays`` is a named tuple of arrays, numbers, kernels, and such tuples or dataclasses. The box shares the arrays
    and copies the numbers.

    Raises:
        TypeError: A field has another type.
    """
    return Box(arrays)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the field names of a class of named tuples or dataclasses, and an empty tuple for any other class."""
    if issubclass(kind, tuple):
        return tuple(getattr(kind, "_fields", ()))
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def _take(value: Any, words: list[int]) -> types.Type:
    """Append the words of ``value`` and return its numba type.

    The words of a tuple are those of its fields. An array has address, shape and strides; a number has its bits.
    """
    kind: Any = type(value)
    if isinstance(value, np.ndarray):
        words += [value.ctypes.data, *value.shape, *value.strides]
        # numba uses only these properties, but its own lookup takes seven times as long.
        key = kind, value.dtype, value.ndim, value.flags.num
        return _ARRAYS.get(key) or _ARRAYS.setdefault(key, typeof(value))
    names = _names(kind)
    if names:
        members = []
        for name in names:
            try:
                members.append(_take(getattr(value, name), words))
            except TypeError as error:
                raise TypeError(f"{kind.__name__}.{name}: {error}") from None
        key = kind, *members
        return _TUPLES.get(key) or _TUPLES.setdefault(key, TupleType(kind, dict(zip(names, members, strict=True))))
    if isinstance(value, Dispatcher):
        return KernelType.of(value)
    # bool is tested before int, because True is also an int.
    for kinds, number in _NUMBERS:
        if isinstance(value, kinds):
            words.append(_BITS.unpack(_DOUBLE.pack(value))[0] if number is types.float64 else int(value))
            return number
    raise TypeError(f"a box holds arrays, numbers, kernels and named tuples of these, not {kind.__name__}")


def _size(kind: types.Type) -> int:
    if isinstance(kind, TupleType):
        return int(kind.size)
    if isinstance(kind, types.Array):
        return 1 + 2 * int(kind.ndim)
    return 0 if isinstance(kind, KernelType) else 1


@typeof_impl.register(Box)
def _typeof_box(value: Box, context: Any) -> types.Type:
    return value._numba_type_


@unbox(BoxType)
def _unbox(kind: BoxType, obj: Any, c: Any) -> NativeValue:
    number = c.pyapi.object_getattr_string(obj, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = TupleType

    def generic_resolve(self, kind: TupleType, name: str) -> types.Type | None:  # type: ignore[override]
        field = kind.fields.get(name)
        if field is None:
            return None
        return types.Dispatcher(field.type.kernel()) if isinstance(field.type, KernelType) else field.type


@infer_getattr
class _BoxAttributes(AttributeTemplate):
    key = BoxType

    def resolve_arrays(self, kind: BoxType) -> TupleType:
        return kind.arrays


@lower_getattr_generic(BoxType)
def _arrays(context: Any, builder: Any, kind: BoxType, value: Any, name: str) -> Any:
    return value


@lower_getattr_generic(TupleType)
def _field(context: Any, builder: Any, kind: TupleType, value: Any, name: str) -> Any:
    field = kind.fields[name]
    if isinstance(field.type, KernelType):
        return context.get_dummy_value()
    words = builder.bitcast(value, _WORD.as_pointer())
    if isinstance(field.type, TupleType):
        inner = cgutils.gep_inbounds(builder, words, field.offset)
        return builder.bitcast(inner, context.get_value_type(field.type))

    def word(i: int) -> Any:
        loaded = builder.load(cgutils.gep_inbounds(builder, words, field.offset + i))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(field.type, types.Array):
        return _array(context, builder, field.type, word)
    if isinstance(field.type, types.Float):
        return builder.bitcast(word(0), context.get_value_type(field.type))
    if isinstance(field.type, types.Boolean):
        return builder.icmp_signed("!=", word(0), _WORD(0))
    return word(0)


def _array(context: Any, builder: Any, kind: types.Array, word: Any) -> Any:
    """Return a numba array whose words ``word(i)`` returns; it does not own its memory."""
    n = kind.ndim
    shape = [word(1 + i) for i in range(n)]
    count = _WORD(1)
    for extent in shape:
        count = builder.mul(count, extent)
    model = context.data_model_manager[kind]
    struct = model.get_value_type()
    address = struct.elements[model.get_field_position("data")]
    # numba's own proxy of the structure would store each field in memory and load it again.
    array = ir.Constant(struct, None)
    for name, value in (
        ("nitems", count),
        ("itemsize", _WORD(context.get_abi_sizeof(context.get_data_type(kind.dtype)))),
        ("data", builder.inttoptr(word(0), address)),
        ("shape", cgutils.pack_array(builder, shape)),
        ("strides", cgutils.pack_array(builder, [word(1 + n + i) for i in range(n)])),
    ):
        array = builder.insert_value(array, value, model.get_field_position(name))
    return array
