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
from bipedsim_ros.interfaces.unitree.layout import LOW_CMD, LOW_STATE, N_MOTORS, Cdr

PATIENCE_S = 120.0


class Program:
    """The vendor's side of the topics.

    Attributes:
        command: The command to send; its numbers are in ``command.values``.
    """

    def __init__(self, domain: int) -> None:
        self._domain = Domain(domain, configuration("lo"))
        self.participant = DomainParticipant(domain)
        self._writer = DataWriter(self.participant, Topic(self.participant, "rt/lowcmd", idl.LowCmd))
        self._reader = DataReader(self.participant, Topic(self.participant, "rt/lowstate", idl.LowState))
        self.command, self._state = Cdr(LOW_CMD, "motor_cmd"), Cdr(LOW_STATE, "motor_state")
        self.command.values["motor_cmd"]["mode"] = 1

    def state(self) -> Any:
        """Return the newest state whose checksum is right, as values by name; waits for the first."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            samples = self._reader.take(1)
            if samples:
                assert self._state.read(samples[0].data) is None
                return self._state.values.copy()
            time.sleep(0.001)
        pytest.fail("no message on rt/lowstate")

    def send(self, data: bytes | None = None) -> None:
        """Send the command, or other bytes instead."""
        self._writer.write(idl.LowCmd.of(self.command.serialized() if data is None else data))

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
    return struct.pack("<2B2x" + "B3x5fI" * N_MOTORS + "5I", *numbers, *command.reserve, command.crc)


def packed_state(state: Any) -> bytes:
    """Return a state as the vendor packs it for the checksum."""
    imu = state.imu_state
    numbers = [*state.version, state.mode_pr, state.mode_machine, state.tick]
    numbers += [*imu.quaternion, *imu.gyroscope, *imu.accelerometer, *imu.rpy, imu.temperature]
    for m in state.motor_state:
        numbers += [m.mode, m.q, m.dq, m.ddq, m.tau_est, *m.temperature, m.vol, *m.sensor, m.motorstate, *m.reserve]
    form = "<2I2B2xI" + "13fh2x" + "B3x4f2hf7I" * N_MOTORS + "40B5I"
    return struct.pack(form, *numbers, *state.wireless_remote, *state.reserve, state.crc)
