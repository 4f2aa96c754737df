"""Sensor errors: resolution, offset, noise, bias and delay of measurements, repeatable from a seed."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.config import checked_seed, part_of
from bipedsim.model import NoiseParams, OffsetParams, Robot, joint_values
from bipedsim.numerics import Array, Integers, box, entry, kernel, ready, zeros_of
from bipedsim.sim.io import Observation


class Offsets(NamedTuple):
    """Store the fixed errors of the sensors; see :class:`bipedsim.model.OffsetParams`.

    Attributes:
        position: (nu,) of joint positions [rad].
        gyro, accelerometer: (3,) in the IMU frame [rad/s], [m/s^2].
        wrench: (K, 6) of the ankle sensors [N, N.m].
    """

    position: Annotated[Array, "nu"]
    gyro: Annotated[Array, 3]
    accelerometer: Annotated[Array, 3]
    wrench: Annotated[Array, "K", 6]

    @classmethod
    def of(cls, params: OffsetParams, robot: Robot) -> Offsets:
        """Return the offsets of the sensors of ``robot``."""
        none = (0.0,) * 6
        return cls(
            position=joint_values(robot, params.encoder_offset),
            gyro=np.array(params.gyro_offset),
            accelerometer=np.array(params.accelerometer_offset),
            wrench=np.array([params.foot_wrench_offset.get(sole.name, none) for sole in robot.soles]).reshape(-1, 6),
        )


class _SignalChain(NamedTuple):
    """Store the signal chain from the ideal observation to the real one, for nu joints and K feet.

    Attributes:
        ideal, real: Input and output.
        line: (n + 1, 3 nu + 10 + 6 K) delayed measurements, n the delay in ticks. head: (1,) row written next.
        tilt_bias, gyro_bias, accelerometer_bias: (3,) in the IMU frame. yaw_bias: (1,). wrench_bias: (K, 6).
        position_offset: (nu,) of joint positions [rad]. The other biases contain their offsets.
        rotation: (3,) work array.
    """

    params: NoiseParams
    ideal: Observation
    real: Observation
    line: Annotated[Array, "n", "m"]
    head: Annotated[Integers, 1]
    tilt_bias: Annotated[Array, 3]
    gyro_bias: Annotated[Array, 3]
    accelerometer_bias: Annotated[Array, 3]
    yaw_bias: Annotated[Array, 1]
    wrench_bias: Annotated[Array, "K", 6]
    position_offset: Annotated[Array, "nu"]
    rotation: Annotated[Array, 3]


@kernel
def _put(c: Observation, row):
    """Write an observation into a row of the delay line."""
    nu = c.joint_position.shape[0]
    for j in range(nu):
        row[j] = c.joint_position[j]
        row[nu + j] = c.joint_velocity[j]
        row[2 * nu + j] = c.joint_effort[j]
    for i in range(4):
        row[3 * nu + i] = c.imu_orientation[i]
    for i in range(3):
        row[3 * nu + 4 + i] = c.imu_angular_velocity[i]
        row[3 * nu + 7 + i] = c.imu_linear_acceleration[i]
    for k in range(c.foot_wrench.shape[0]):
        for i in range(6):
            row[3 * nu + 10 + 6 * k + i] = c.foot_wrench[k, i]


@kernel
def _turn(q, e, out):
    """Fill ``out`` with the quaternion ``q`` x y z w, rotated by the rotation vector ``e`` in its own frame; w >= 0."""
    angle = np.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    half = 0.5 if angle < 1e-8 else np.sin(0.5 * angle) / angle
    x, y, z, w = half * e[0], half * e[1], half * e[2], np.cos(0.5 * angle)
    out[0] = q[3] * x + q[0] * w + q[1] * z - q[2] * y
    out[1] = q[3] * y + q[1] * w + q[2] * x - q[0] * z
    out[2] = q[3] * z + q[2] * w + q[0] * y - q[1] * x
    out[3] = q[3] * w - q[0] * x - q[1] * y - q[2] * z
    scale = 1.0 / np.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2] + out[3] * out[3])
    if out[3] < 0.0:
        scale = -scale
    for i in range(4):
        out[i] *= scale


@kernel
def _attitude(c: _SignalChain, q, normal):
    """Fill the orientation; tilt and yaw have separate errors, divided along the vertical in the IMU frame."""
    ux = 2.0 * (q[0] * q[2] - q[1] * q[3])
    uy = 2.0 * (q[1] * q[2] + q[0] * q[3])
    uz = 1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1])
    e = c.rotation
    for i in range(3):
        e[i] = c.tilt_bias[i] + c.params.attitude_noise * normal[i]
    about = c.yaw_bias[0] + c.params.yaw_noise * normal[3] - (e[0] * ux + e[1] * uy + e[2] * uz)
    e[0] += about * ux
    e[1] += about * uy
    e[2] += about * uz
    _turn(q, e, c.real.imu_orientation)


@entry
def _corrupt(boxed, normal, first):
    """Store the ideal observation in the delay line, and fill the real one with the measurements that arrive now.

    Args:
        boxed: See :class:`_SignalChain`.
        normal: (nu + 10 + 6 K,) standard normal numbers, one per channel.
        first: Whether to fill the whole line with this observation, as for a robot that was at rest before.
    """
    c = boxed.arrays
    rows = c.line.shape[0]
    head = c.head[0]
    _put(c.ideal, c.line[head])
    if first:
        for r in range(rows):
            if r != head:
                _put(c.ideal, c.line[r])
    head = (head + 1) % rows
    c.head[0] = head
    row = c.line[head]
    out, p = c.real, c.params
    nu = out.joint_position.shape[0]
    step = p.encoder_resolution
    for j in range(nu):
        position = row[j] + c.position_offset[j]
        out.joint_position[j] = np.rint(position / step) * step if step > 0.0 else position
        out.joint_velocity[j] = row[nu + j] + p.velocity_noise * normal[j]
        out.joint_effort[j] = row[2 * nu + j]
    _attitude(c, row[3 * nu :], normal[nu:])
    for i in range(3):
        out.imu_angular_velocity[i] = row[3 * nu + 4 + i] + c.gyro_bias[i] + p.gyro_noise * normal[nu + 4 + i]
        error = p.accelerometer_noise * normal[nu + 7 + i]
        out.imu_linear_acceleration[i] = row[3 * nu + 7 + i] + c.accelerometer_bias[i] + error
    for k in range(out.foot_wrench.shape[0]):
        for i in range(6):
            deviation = p.force_noise if i < 3 else p.torque_noise
            error = c.wrench_bias[k, i] + deviation * normal[nu + 10 + 6 * k + i]
            out.foot_wrench[k, i] = row[3 * nu + 10 + 6 * k + i] + error


class Noise:
    """Convert ideal observations to real ones.

    All random numbers depend on the seed and on the number of resets since it was set, 0 for the first. The same seed
    gives the same bits in every process with the same version of NumPy. Every reset gives another draw. Each channel
    has its own random numbers, so disabling one channel does not change the others.

    Args:
        params: See :class:`NoiseParams`.
        ideal: The ideal observation; its arrays are refilled in place.
        control_dt: Period of the observations [s].
        seed: At least 0.
        offsets: Fixed errors of the sensors; none by default.
        real: The observation to fill, with arrays as in ``ideal``; a new one by default.
        stream: Key that separates the random numbers from those of other instances with the same seed.

    Attributes:
        observation: The real observation; always the same object.
        delay: Age of the measurements when they arrive [s], a whole number of ticks.

    Raises:
        ConfigError: The seed is no integer, or negative.
    """

    def __init__(
        self,
        params: NoiseParams,
        ideal: Observation,
        control_dt: float,
        seed: int,
        offsets: Offsets | None = None,
        real: Observation | None = None,
        stream: tuple[int, ...] = (),
    ) -> None:
        self._params = params
        self._ideal = ideal
        self._seed = checked_seed(seed)
        self._resets = 0
        self._stream = stream
        nu, feet = len(ideal.joint_position), len(ideal.foot_wrench)
        self.observation = Observation.zeros(nu, feet) if real is None else real
        self._offsets = zeros_of(Offsets, {"nu": nu, "K": feet}) if offsets is None else offsets
        ticks = round(params.measurement_delay / control_dt)
        self.delay = ticks * control_dt
        self._generator = np.random.Generator(np.random.Philox(0))
        self._normal = np.zeros(nu + 10 + 6 * feet)
        self._chain = zeros_of(
            _SignalChain,
            {"n": ticks + 1, "m": 3 * nu + 10 + 6 * feet, "K": feet, "nu": nu},
            params=part_of(NoiseParams, params),
            ideal=ideal,
            real=self.observation,
            position_offset=self._offsets.position,
        )
        self._box = box(self._chain)
        self._corrupt = ready(_corrupt, self._box, self._normal, True)

    def reset(self, seed: int | None = None) -> None:
        """Draw new biases and restart the noise, from a new seed or for the next reset of the old one.

        Raises:
            ConfigError: The seed is no integer, or negative.
        """
        if seed is not None:
            self._seed, self._resets = checked_seed(seed), 0
        sequence = np.random.SeedSequence(self._seed, spawn_key=(self._resets, *self._stream))
        self._resets += 1
        self._generator = np.random.Generator(np.random.Philox(sequence))
        c, p, fixed = self._chain, self._params, self._offsets

        def bias(out: Array, largest: Any, offset: Array | float = 0.0) -> None:
            out[...] = self._generator.uniform(-1.0, 1.0, out.shape) * largest + offset

        bias(c.tilt_bias, p.attitude_bias)
        bias(c.yaw_bias, p.yaw_bias)
        bias(c.gyro_bias, p.gyro_bias, fixed.gyro)
        bias(c.accelerometer_bias, p.accelerometer_bias, fixed.accelerometer)
        bias(c.wrench_bias, np.repeat([p.force_bias, p.torque_bias], 3), fixed.wrench)

    def measure(self, first: bool = False) -> Observation:
        """Process the ideal observation of this tick and return the measurements that arrive at this tick.

        The time stamp is the time of arrival, as from a driver. The next call overwrites the observation.

        Args:
            first: Whether this is the first observation after :meth:`reset`, before which the robot was at rest.
        """
        # A draw costs one microsecond per tick. Drawing blocks would halve the mean, but cost ten in some ticks.
        self._generator.standard_normal(out=self._normal)
        self._corrupt(self._box, self._normal, first)
        self.observation.t = self._ideal.t
        return self.observation

    def state(self) -> dict[str, Any]:
        """Return a copy of the state on which the next observations depend."""
        return {
            "seed": (self._seed, self._resets),
            "generator": self._generator.bit_generator.state,
            "arrays": {name: getattr(self._chain, name).copy() for name in _STATE},
            "observation": self.observation.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> Observation:
        """Restore a state that :meth:`state` returned, and return its observation."""
        self._seed, self._resets = state["seed"]
        self._generator = np.random.Generator(np.random.Philox(0))
        self._generator.bit_generator.state = state["generator"]
        for name, values in state["arrays"].items():
            getattr(self._chain, name)[...] = values
        return self.observation.take(state["observation"])


_STATE = ("line", "head", "tilt_bias", "gyro_bias", "accelerometer_bias", "yaw_bias", "wrench_bias")
