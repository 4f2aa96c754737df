"""A sensor of the ground around the robot, as the height scan of a depth camera or an elevation map."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bipedsim.config import part_of
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, GroundArrays, surface
from bipedsim.model import NoiseParams, Robot
from bipedsim.numerics import Array, Integers, box, entry, ready, zeros_of

_STREAM = 1
"""Key of its random numbers, so that they do not change those of the other sensors."""


def scan_grid(size: tuple[float, float], resolution: float, x_first: bool) -> Array:
    """Return the points (S, 2) of a height scan in the heading frame of the base [m].

    They are those of Isaac Lab's ``grid_pattern``, whose default order is "xy", x changing first. legged_gym's points
    and Isaac Lab's order "yx" have y changing first.
    """
    axes = [np.arange(-0.5 * edge, 0.5 * edge + 1e-9, resolution) for edge in size]
    x, y = np.meshgrid(*axes, indexing="xy" if x_first else "ij")
    return np.column_stack([x.ravel(), y.ravel()])


class _Scan(NamedTuple):
    """Store the signal chain of S points.

    Attributes:
        ground, params: The ground, and the sensor errors.
        points: (S, 2) in the heading frame [m].
        line: (n + 1, S) delayed measurements. head: (1,) row written next.
        bias: (1,) of all points [m].
        heights: (S,) the measurement [m].
        up_line: (n + 1, 3) delayed verticals in the axes of the base. up: (3,) the measurement.
    """

    ground: GroundArrays
    params: NoiseParams
    points: Array
    line: Annotated[Array, "n", "S"]
    head: Annotated[Integers, 1]
    bias: Annotated[Array, 1]
    heights: Annotated[Array, "S"]
    up_line: Annotated[Array, "n", 3]
    up: Annotated[Array, 3]


@entry
def _measure(boxed: Any, q: Array, normal: Array, first: bool) -> None:
    """Fill the heights, with ``normal`` (S,) standard normal numbers; ``first`` as in :func:`HeightScan.measure`."""
    s = boxed.arrays
    head = s.head[0]
    rows = s.line.shape[0]
    # The base's x axis in the plan view is the heading.
    x = 1.0 - 2.0 * (q[4] * q[4] + q[5] * q[5])
    y = 2.0 * (q[3] * q[4] + q[6] * q[5])
    size = np.sqrt(x * x + y * y)
    c, d = (x / size, y / size) if size > 0.0 else (1.0, 0.0)
    now = (head + 1) % rows
    s.up_line[head, 0] = 2.0 * (q[3] * q[5] - q[6] * q[4])
    s.up_line[head, 1] = 2.0 * (q[4] * q[5] + q[6] * q[3])
    s.up_line[head, 2] = 1.0 - 2.0 * (q[3] * q[3] + q[4] * q[4])
    if first:
        for r in range(rows):
            s.up_line[r] = s.up_line[head]
    s.up[:] = s.up_line[now]
    for i in range(s.points.shape[0]):
        ahead, left = s.points[i]
        z, patch = surface(s.ground, q[0] + c * ahead - d * left, q[1] + d * ahead + c * left)
        height = q[2] - z if patch >= 0 else np.inf
        s.line[head, i] = height
        if first:
            for r in range(rows):
                s.line[r, i] = height
        s.heights[i] = s.line[now, i] + s.bias[0] + s.params.height_noise * normal[i]
    s.head[0] = now


class HeightScan:
    """Measure the height of the base above the ground at points around it, without errors of attitude.

    Args:
        points: (S, 2) x ahead and y to the left of the base, in its heading frame [m].
        ground: The ground.
        params: Errors of the sensors.
        control_dt: Period of the measurements [s].

    Attributes:
        points: (S, 2) the points.
        heights: (S,) the last measurement [m], ``inf`` where there is no ground; always the same array.
        up: (3,) vertical in the axes of the base at the time of ``heights``; always the same array.

    Raises:
        ConfigError: The points are not finite numbers of this shape.
    """

    _STATE = ("line", "head", "bias", "heights", "up_line", "up")

    def __init__(self, points: ArrayLike, ground: Ground, params: NoiseParams, control_dt: float) -> None:
        places = np.array(points, dtype=np.float64)
        if places.ndim != 2 or places.shape[1] != 2 or not np.isfinite(places).all():
            raise ConfigError("must be finite numbers, x and y of each point", "height_scan", places.shape)
        rows = round(params.measurement_delay / control_dt) + 1
        self._scan = zeros_of(
            _Scan,
            {"n": rows, "S": len(places)},
            ground=ground.arrays(),
            params=part_of(NoiseParams, params),
            points=places,
        )
        self.points, self.heights, self.up = places, self._scan.heights, self._scan.up
        self._normal = np.zeros(len(places))
        self._noisy = params.height_noise > 0.0
        self._generator = np.random.Generator(np.random.Philox(0))
        self._box = box(self._scan)
        self._measure = ready(_measure, self._box, np.zeros(7), self._normal, True)

    def reset(self, seed: int, draw: int) -> None:
        """Draw the bias, and start the noise of reset number ``draw`` since ``seed`` was set."""
        sequence = np.random.SeedSequence(seed, spawn_key=(draw, _STREAM))
        self._generator = np.random.Generator(np.random.Philox(sequence))
        self._scan.bias[0] = self._generator.uniform(-1.0, 1.0) * self._scan.params.height_bias

    def measure(self, q: Array, first: bool) -> None:
        """Measure at the configuration ``q`` (nq,); ``first`` also fills the delay line, as for a robot at rest."""
        if self._noisy:
            self._generator.standard_normal(out=self._normal)
        self._measure(self._box, q, self._normal, first)

    def state(self) -> dict[str, Any]:
        """Return a copy of the state on which the next measurements depend."""
        arrays = {name: getattr(self._scan, name).copy() for name in self._STATE}
        return {"generator": self._generator.bit_generator.state, "arrays": arrays}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state` returned."""
        self._generator = np.random.Generator(np.random.Philox(0))
        self._generator.bit_generator.state = state["generator"]
        for name, values in state["arrays"].items():
            getattr(self._scan, name)[...] = values


def make_scan(
    points: ArrayLike | None, robot: Robot, ground: Ground, params: NoiseParams, control_dt: float
) -> HeightScan | None:
    """Return the height scan of ``robot`` at ``points``, None for none; the arguments are those of :class:`HeightScan`.

    Raises:
        ConfigError: The points are wrong, or the robot has no floating base.
    """
    if points is None:
        return None
    if not robot.free_flyer:
        raise ConfigError("needs a robot with a floating base", "height_scan", robot.name)
    return HeightScan(points, ground, params, control_dt)
