"""Define the types of Unitree's topics for cyclonedds, with names and order of members as in unitree_sdk2's public IDL.

The low-level messages are read and written as bytes (:mod:`.layout`). Their types follow from these layouts, and exist
so that the vendor's programs discover the same description.
"""

from __future__ import annotations

import types as python_types
from dataclasses import dataclass
from typing import Any

import numpy as np
from cyclonedds.idl import IdlStruct, types
from cyclonedds.idl.annotations import autoid, final

from bipedsim_ros.interfaces.unitree.layout import FAMILIES

_NUMBERS = {
    "u1": types.uint8,
    "u2": types.uint16,
    "u4": types.uint32,
    "i2": types.int16,
    "i4": types.int32,
    "f4": types.float32,
}
_STRUCTS = {
    "motor_cmd": "MotorCmd_",
    "motor_state": "MotorState_",
    "imu_state": "IMUState_",
    "bms_cmd": "BmsCmd_",
    "bms_state": "BmsState_",
}
"""Type names of the members that are structs."""


def _type(module: str, name: str, **members: Any) -> type[Any]:
    """Return a type of an IDL module with these members, given as name to type."""
    kind = python_types.new_class(
        name,
        (IdlStruct,),
        {"typename": f"{module}.msg.dds_.{name}"},
        lambda namespace: namespace.update(__annotations__=members, __module__=__name__),
    )
    return autoid("sequential")(final(dataclass(kind)))


def _struct(family: str, name: str, layout: np.dtype[Any]) -> type[Any]:
    """Return the type with the members of a C struct, in the IDL module of a family."""
    members = {}
    for member in layout.names or ():
        part = layout[member]
        base = part.base
        element: Any = _struct(family, _STRUCTS[member], base) if base.names else _NUMBERS[base.str[1:]]
        members[member] = types.array[element, part.shape[0]] if part.shape else element
    return _type(family, name, **members)


def _as_bytes(kind: type[Any]) -> type[Any]:
    """Make the samples of a type serialised messages in the attribute ``data``; ``kind.of(data)`` creates a sample.

    cyclonedds' own serialisation remains available as ``kind.__idl__.serialize(sample)``.
    """

    def of(cls: type[Any], /, data: bytes, *_args: object, **_options: object) -> Any:
        sample = object.__new__(cls)
        sample.data = bytes(data)
        return sample

    kind.of = kind.deserialize = classmethod(of)
    kind.serialize = lambda self, *_args, **_options: self.data
    return kind


_API = "unitree_api"
RequestIdentity = _type(_API, "RequestIdentity_", id=types.int64, api_id=types.int64)
RequestLease = _type(_API, "RequestLease_", id=types.int64)
RequestPolicy = _type(_API, "RequestPolicy_", priority=types.int32, noreply=bool)
RequestHeader = _type(_API, "RequestHeader_", identity=RequestIdentity, lease=RequestLease, policy=RequestPolicy)
Request = _type(_API, "Request_", header=RequestHeader, parameter=str, binary=types.sequence[types.uint8])
"""Request to a service: identifiers of the request and of the called function, its lease, priority and parameters."""
ResponseStatus = _type(_API, "ResponseStatus_", code=types.int32)
ResponseHeader = _type(_API, "ResponseHeader_", identity=RequestIdentity, status=ResponseStatus)
Response = _type(_API, "Response_", header=ResponseHeader, data=str, binary=types.sequence[types.uint8])
"""Response of a service: identifiers of the request, status code and data."""
TYPES: dict[str, tuple[type[Any], type[Any]]] = {
    family.name: (
        _as_bytes(_struct(family.name, "LowCmd_", family.low_cmd)),
        _as_bytes(_struct(family.name, "LowState_", family.low_state)),
    )
    for family in FAMILIES.values()
}
"""Types of rt/lowcmd and rt/lowstate by family."""
