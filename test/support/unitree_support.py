"""A program of a user on Unitree's topics, as deploy_real.py goes about it, and the vendor's own packing."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("cyclonedds", reason="cyclonedds is not installed (pip install 'bipedsim[unitree]')")

from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from bipedsim_ros.interfaces.unitree import idl
from bipedsim_ros.interfaces.unitree.dds import configuration
from bipedsim_ros.interfaces.unitree.layout import FAMILIES, HG, Cdr

PATIENCE_S = 120.0


class Program:
    """The vendor's side of the topics.

    Attributes:
        command: The command to send; its numbers are in ``command.values``.
    """

    def __init__(self, domain: int, family: str = HG.name) -> None:
        self._domain = Domain(domain, configuration("lo"))
        self.participant = DomainParticipant(domain)
        self._command_type, state_type = idl.TYPES[family]
        self._writer = DataWriter(self.participant, Topic(self.participant, "rt/lowcmd", self._command_type))
        self._reader = DataReader(self.participant, Topic(self.participant, "rt/lowstate", state_type))
        self.command, self._state = Cdr(FAMILIES[family].low_cmd), Cdr(FAMILIES[family].low_state)
        self.command.values["motor_cmd"]["mode"] = 1

    def state(self) -> Any:
        """Return the newest state with a valid checksum, as values by name; wait for the first."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            samples = self._reader.take(1)
            if samples:
                assert self._state.read(samples[0].data) is None
                return self._state.values.copy()
            time.sleep(0.001)
        pytest.fail("no message on rt/lowstate")

    def ticks(self) -> set[int]:
        """Return the ticks of the states that have come since they were read last [ms]."""
        came = set()
        for sample in self._reader.take(100):
            assert self._state.read(sample.data) is None
            came.add(int(self._state.values["tick"]))
        return came

    def send(self, data: bytes | None = None) -> None:
        """Send the command, or other bytes instead."""
        self._writer.write(self._command_type.of(self.command.serialized() if data is None else data))

    def until(self, condition: Callable[[Any], Any], what: str, send: bool = True, period: float = 0.02) -> Any:
        """Send the command every ``period`` [s] until a state fulfils a condition, and return that state."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            state = self.state()
            if condition(state):
                return state
            if send:
                self.send()
            time.sleep(period)
        pytest.fail(f"never happened: {what}")

    def pressed(self, bit: int) -> Callable[[Any], bool]:
        """Return the condition that a button of the remote control is down."""
        return lambda state: bool(struct.unpack("<H", bytes(state["wireless_remote"][2:4]))[0] >> bit & 1)


def vendors_crc(words: bytes) -> int:
    """Return the checksum as the vendor's program has it in Python, bit by bit."""
    crc = 0xFFFFFFFF
    for (word,) in struct.iter_unpack("<I", words[:-4]):
        for bit in range(31, -1, -1):
            high = crc >> 31
            crc = crc << 1 & 0xFFFFFFFF
            if high:
                crc ^= 0x04C11DB7
            if word >> bit & 1:
                crc ^= 0x04C11DB7
    return crc


def packed_command(command: Any) -> bytes:
    """Return a command as the vendor packs it for the checksum."""
    numbers: list[Any] = [command.mode_pr, command.mode_machine]
    for m in command.motor_cmd:
        numbers += [m.mode, m.q, m.dq, m.tau, m.kp, m.kd, m.reserve]
    return struct.pack("<2B2x" + "B3x5fI" * HG.n + "5I", *numbers, *command.reserve, command.crc)


def packed_state(state: Any) -> bytes:
    """Return a state as the vendor packs it for the checksum."""
    imu = state.imu_state
    numbers = [*state.version, state.mode_pr, state.mode_machine, state.tick]
    numbers += [*imu.quaternion, *imu.gyroscope, *imu.accelerometer, *imu.rpy, imu.temperature]
    for m in state.motor_state:
        numbers += [m.mode, m.q, m.dq, m.ddq, m.tau_est, *m.temperature, m.vol, *m.sensor, m.motorstate, *m.reserve]
    form = "<2I2B2xI" + "13fh2x" + "B3x4f2hf7I" * HG.n + "40B5I"
    return struct.pack(form, *numbers, *state.wireless_remote, *state.reserve, state.crc)


def packed_go_command(c: Any) -> bytes:
    """Return a command of the other family as the vendor packs it."""
    numbers = [*c.head, c.level_flag, c.frame_reserve, *c.sn, *c.version, c.bandwidth]
    for m in c.motor_cmd:
        numbers += [m.mode, m.q, m.dq, m.tau, m.kp, m.kd, *m.reserve]
    numbers += [c.bms_cmd.off, *c.bms_cmd.reserve, *c.wireless_remote, *c.led, *c.fan, c.gpio, c.reserve, c.crc]
    return struct.pack("<4B4IH2x" + "B3x5f3I" * 20 + "4B" + "55Bx2I", *numbers)


def packed_go_state(s: Any) -> bytes:
    """Return a state of the other family as the vendor packs it."""
    imu, b = s.imu_state, s.bms_state
    numbers = [*s.head, s.level_flag, s.frame_reserve, *s.sn, *s.version, s.bandwidth]
    numbers += [*imu.quaternion, *imu.gyroscope, *imu.accelerometer, *imu.rpy, imu.temperature]
    for m in s.motor_state:
        numbers += [m.mode, m.q, m.dq, m.ddq, m.tau_est, m.q_raw, m.dq_raw, m.ddq_raw, m.temperature, m.lost]
        numbers += m.reserve
    numbers += [b.version_high, b.version_low, b.status, b.soc, b.current, b.cycle, *b.bq_ntc, *b.mcu_ntc, *b.cell_vol]
    numbers += [*s.foot_force, *s.foot_force_est, s.tick, *s.wireless_remote, s.bit_flag, s.adc_reel]
    numbers += [s.temperature_ntc1, s.temperature_ntc2, s.power_v, s.power_a, *s.fan_frequency, s.reserve, s.crc]
    form = "<4B4IH2x" + "13fb3x" + "B3x7fb3x3I" * 20 + "4BiH4b15H" + "8hI41B3xf2b2x2f4h2I"
    return struct.pack(form, *numbers)
