"""Define the types of Unitree's topics for cyclonedds, with names and order of members as in unitree_sdk2's public IDL.

This module must not import annotations from __future__, because cyclonedds evaluates the annotations. The low-level
messages are read and written as bytes (:mod:`.layout`). Their types exist so that the vendor's programs discover the
same description.
"""

# mypy: disable-error-code="call-arg"

from dataclasses import dataclass
from typing import Any

from cyclonedds.idl import IdlStruct, annotations, types

from bipedsim_ros.interfaces.unitree.layout import GO, HG


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
class MotorCmd(IdlStruct, typename="unitree_hg.msg.dds_.MotorCmd_"):
    """Command to one motor."""

    mode: types.uint8
    q: types.float32
    dq: types.float32
    tau: types.float32
    kp: types.float32
    kd: types.float32
    reserve: types.uint32


@_as_bytes
@dataclass
@annotations.final
@annotations.autoid("sequential")
class LowCmd(IdlStruct, typename="unitree_hg.msg.dds_.LowCmd_"):
    """Command to all motors."""

    mode_pr: types.uint8
    mode_machine: types.uint8
    motor_cmd: types.array[MotorCmd, HG.n]
    reserve: types.array[types.uint32, 4]
    crc: types.uint32


@dataclass
@annotations.final
@annotations.autoid("sequential")
class ImuState(IdlStruct, typename="unitree_hg.msg.dds_.IMUState_"):
    """Measurements of the IMU."""

    quaternion: types.array[types.float32, 4]
    gyroscope: types.array[types.float32, 3]
    accelerometer: types.array[types.float32, 3]
    rpy: types.array[types.float32, 3]
    temperature: types.int16


@dataclass
@annotations.final
@annotations.autoid("sequential")
class MotorState(IdlStruct, typename="unitree_hg.msg.dds_.MotorState_"):
    """Measurements of one motor."""

    mode: types.uint8
    q: types.float32
    dq: types.float32
    ddq: types.float32
    tau_est: types.float32
    temperature: types.array[types.int16, 2]
    vol: types.float32
    sensor: types.array[types.uint32, 2]
    motorstate: types.uint32
    reserve: types.array[types.uint32, 4]


@_as_bytes
@dataclass
@annotations.final
@annotations.autoid("sequential")
class LowState(IdlStruct, typename="unitree_hg.msg.dds_.LowState_"):
    """Measurements of the robot."""

    version: types.array[types.uint32, 2]
    mode_pr: types.uint8
    mode_machine: types.uint8
    tick: types.uint32
    imu_state: ImuState
    motor_state: types.array[MotorState, HG.n]
    wireless_remote: types.array[types.uint8, 40]
    reserve: types.array[types.uint32, 4]
    crc: types.uint32


@dataclass
@annotations.final
@annotations.autoid("sequential")
class MotorCmdGo(IdlStruct, typename="unitree_go.msg.dds_.MotorCmd_"):
    """Command to one motor."""

    mode: types.uint8
    q: types.float32
    dq: types.float32
    tau: types.float32
    kp: types.float32
    kd: types.float32
    reserve: types.array[types.uint32, 3]


@dataclass
@annotations.final
@annotations.autoid("sequential")
class BmsCmdGo(IdlStruct, typename="unitree_go.msg.dds_.BmsCmd_"):
    """Command to the battery."""

    off: types.uint8
    reserve: types.array[types.uint8, 3]


@_as_bytes
@dataclass
@annotations.final
@annotations.autoid("sequential")
class LowCmdGo(IdlStruct, typename="unitree_go.msg.dds_.LowCmd_"):
    """Command to all motors."""

    head: types.array[types.uint8, 2]
    level_flag: types.uint8
    frame_reserve: types.uint8
    sn: types.array[types.uint32, 2]
    version: types.array[types.uint32, 2]
    bandwidth: types.uint16
    motor_cmd: types.array[MotorCmdGo, GO.n]
    bms_cmd: BmsCmdGo
    wireless_remote: types.array[types.uint8, 40]
    led: types.array[types.uint8, 12]
    fan: types.array[types.uint8, 2]
    gpio: types.uint8
    reserve: types.uint32
    crc: types.uint32


@dataclass
@annotations.final
@annotations.autoid("sequential")
class ImuStateGo(IdlStruct, typename="unitree_go.msg.dds_.IMUState_"):
    """Measurements of the IMU."""

    quaternion: types.array[types.float32, 4]
    gyroscope: types.array[types.float32, 3]
    accelerometer: types.array[types.float32, 3]
    rpy: types.array[types.float32, 3]
    temperature: types.uint8


@dataclass
@annotations.final
@annotations.autoid("sequential")
class MotorStateGo(IdlStruct, typename="unitree_go.msg.dds_.MotorState_"):
    """Measurements of one motor."""

    mode: types.uint8
    q: types.float32
    dq: types.float32
    ddq: types.float32
    tau_est: types.float32
    q_raw: types.float32
    dq_raw: types.float32
    ddq_raw: types.float32
    temperature: types.uint8
    lost: types.uint32
    reserve: types.array[types.uint32, 2]


@dataclass
@annotations.final
@annotations.autoid("sequential")
class BmsStateGo(IdlStruct, typename="unitree_go.msg.dds_.BmsState_"):
    """Measurements of the battery."""

    version_high: types.uint8
    version_low: types.uint8
    status: types.uint8
    soc: types.uint8
    current: types.int32
    cycle: types.uint16
    bq_ntc: types.array[types.uint8, 2]
    mcu_ntc: types.array[types.uint8, 2]
    cell_vol: types.array[types.uint16, 15]


@_as_bytes
@dataclass
@annotations.final
@annotations.autoid("sequential")
class LowStateGo(IdlStruct, typename="unitree_go.msg.dds_.LowState_"):
    """Measurements of the robot."""

    head: types.array[types.uint8, 2]
    level_flag: types.uint8
    frame_reserve: types.uint8
    sn: types.array[types.uint32, 2]
    version: types.array[types.uint32, 2]
    bandwidth: types.uint16
    imu_state: ImuStateGo
    motor_state: types.array[MotorStateGo, GO.n]
    bms_state: BmsStateGo
    foot_force: types.array[types.int16, 4]
    foot_force_est: types.array[types.int16, 4]
    tick: types.uint32
    wireless_remote: types.array[types.uint8, 40]
    bit_flag: types.uint8
    adc_reel: types.float32
    temperature_ntc1: types.uint8
    temperature_ntc2: types.uint8
    power_v: types.float32
    power_a: types.float32
    fan_frequency: types.array[types.uint16, 4]
    reserve: types.uint32
    crc: types.uint32


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


TYPES: dict[str, tuple[type[Any], type[Any]]] = {HG.name: (LowCmd, LowState), GO.name: (LowCmdGo, LowStateGo)}
"""Types of rt/lowcmd and rt/lowstate by family."""
