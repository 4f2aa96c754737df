"""Define the types of Unitree's topics for cyclonedds, with names and order of members as in unitree_sdk2's public IDL.

This module must not import annotations from __future__, because cyclonedds evaluates the annotations. The low-level
messages are read and written as bytes (:mod:`.layout`). Their types follow from these layouts, and exist so that the
vendor's programs discover the same description.
"""

# mypy: disable-error-code="call-arg"

import types as python_types
from dataclasses import dataclass
from typing import Any

import numpy as np
from cyclonedds.idl import IdlStruct, annotations, types

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


def _struct(family: str, name: str, layout: np.dtype[Any]) -> type[Any]:
    """Return the type with the members of a C struct, in the IDL module of a family."""
    members = {}
    for member in layout.names or ():
        part = layout[member]
        base = part.base
        element: Any = _struct(family, _STRUCTS[member], base) if base.names else _NUMBERS[base.str[1:]]
        members[member] = types.array[element, part.shape[0]] if part.shape else element
    kind = python_types.new_class(
        name,
        (IdlStruct,),
        {"typename": f"{family}.msg.dds_.{name}"},
        lambda namespace: namespace.update(__annotations__=members, __module__=__name__),
    )
    return annotations.autoid("sequential")(annotations.final(dataclass(kind)))


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


@dataclass
@annotations.final
@annotations.autoid("sequential")
class RequestIdentity(IdlStruct, typename="unitree_api.msg.dds_.RequestIdentity_"):
    """Identifier of a request, and of the called function."""

    id: types.int64
    api_id: types.int64


@dataclass
@annotations.final
@annotations.autoid("sequential")
class RequestLease(IdlStruct, typename="unitree_api.msg.dds_.RequestLease_"):
    """Lease of a request."""

    id: types.int64


@dataclass
@annotations.final
@annotations.autoid("sequential")
class RequestPolicy(IdlStruct, typename="unitree_api.msg.dds_.RequestPolicy_"):
    """Priority of a request, and whether it needs a response."""

    priority: types.int32
    noreply: bool


@dataclass
@annotations.final
@annotations.autoid("sequential")
class RequestHeader(IdlStruct, typename="unitree_api.msg.dds_.RequestHeader_"):
    """Header of a request."""

    identity: RequestIdentity
    lease: RequestLease
    policy: RequestPolicy


@dataclass
@annotations.final
@annotations.autoid("sequential")
class Request(IdlStruct, typename="unitree_api.msg.dds_.Request_"):
    """Request to a service."""

    header: RequestHeader
    parameter: str
    binary: types.sequence[types.uint8]


@dataclass
@annotations.final
@annotations.autoid("sequential")
class ResponseStatus(IdlStruct, typename="unitree_api.msg.dds_.ResponseStatus_"):
    """Status code of a response."""

    code: types.int32


@dataclass
@annotations.final
@annotations.autoid("sequential")
class ResponseHeader(IdlStruct, typename="unitree_api.msg.dds_.ResponseHeader_"):
    """Header of a response."""

    identity: RequestIdentity
    status: ResponseStatus


@dataclass
@annotations.final
@annotations.autoid("sequential")
class Response(IdlStruct, typename="unitree_api.msg.dds_.Response_"):
    """Response of a service."""

    header: ResponseHeader
    data: str
    binary: types.sequence[types.uint8]


TYPES: dict[str, tuple[type[Any], type[Any]]] = {
    family.name: (
        _as_bytes(_struct(family.name, "LowCmd_", family.low_cmd)),
        _as_bytes(_struct(family.name, "LowState_", family.low_state)),
    )
    for family in FAMILIES.values()
}
"""Types of rt/lowcmd and rt/lowstate by family."""
