"""Test of a force plate's CoP as in laboratories: known loads at the points of a grid (ASTM F3109).

The plate is a simulated one, from its vibration to its converter. The load acts on it directly, so the true CoP is
known to rounding. The expected errors follow from the plate's parameters. S = cov(wrench) is the covariance due to
noise and converter steps in the channels (q^2 / 12 each). The standard deviation of the CoP p(w) is the square root of
the diagonal of (dp/dw) S (dp/dw)^T. Cross-talk X moves the CoP to p(X w).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # it imports its submodules at their first use
import yaml

from bipedsim.analysis.force_plates import filtered
from bipedsim.config import from_mapping, yaml_fault, yaml_value
from bipedsim.numerics import Array, box, entry
from bipedsim.plates import NO_MOMENT, Amplifiers, PlateConfig, PlateSignals, add_force, advance, clear, per_channel

LOADS = (100.0, 500.0, 1000.0)
"""Default vertical forces [N]."""
POINTS = 7
"""Default number of grid points along each side."""
COVERED = 0.9
"""Share of each side that the grid covers."""
SHEAR = 0.1
"""Horizontal force along x as a share of the vertical one, as with a tilted rod."""
DITHER = 0.3
"""Share of a converter step above which noise makes the quantisation error act as noise, too."""
SETTLE = 0.5
"""Time before samples count [s], in which the vibration of the plate decays."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The errors of a plate's CoP.

    Attributes:
        plate: The tested plate.
        loads: (L,) vertical forces [N].
        points: (P, 2) points of application, in the plate's axes [m].
        samples: Number of samples of each load at each point.
        bias: (L, P, 2) mean error of the CoP [m].
        scatter: (L, P, 2) standard deviation of the CoP [m].
        force_bias: (L, P) mean error of the normal force [N].
        expected_bias, expected_scatter: (L, P, 2) values that follow from the plate's parameters [m].
        clipped: Number of values beyond the range.
        cutoff: Cut-off frequency of the low-pass before the CoP [Hz]; None without.
    """

    plate: PlateConfig
    loads: Array
    points: Array
    samples: int
    bias: Array
    scatter: Array
    force_bias: Array
    expected_bias: Array
    expected_scatter: Array
    clipped: int
    cutoff: float | None

    def figures(self) -> dict[str, Any]:
        """Return the metrics of each load: root mean square and largest errors over the grid."""
        loads = []
        for i, load in enumerate(self.loads):
            row = {"load_N": float(load), "force_error_N": float(np.abs(self.force_bias[i]).max())}
            for name in ("bias", "expected_bias", "scatter", "expected_scatter"):
                size = np.linalg.norm(getattr(self, name)[i], axis=-1)
                row[f"cop_{name}_rms_m"] = float(np.sqrt(np.mean(size**2)))
                row[f"cop_{name}_max_m"] = float(size.max())
            loads.append(row)
        geometry = self.plate.geometry()
        return {
            "type": geometry.kind,
            "size_m": list(geometry.size),
            "points": len(self.points),
            "samples": self.samples,
            "clipped": self.clipped,
            "cutoff_hz": self.cutoff,
            "loads": loads,
        }


def read_plate(text: str) -> PlateConfig:
    """Parse a plate: the name or file of a model, or a mapping in braces as in a scenario file.

    Raises:
        ConfigError: The text describes no plate.
    """
    values: Any = {"model": text}
    if text.lstrip().startswith("{"):
        try:
            values = yaml_value(text)
        except yaml.YAMLError as error:
            raise yaml_fault(error, text, "--grid") from error
    return from_mapping(PlateConfig, {"name": "tested", **values}, "--grid").complete()


@entry
def _press(boxed: Any, point: Array, force: Array, steps: int) -> None:
    """Apply a force at a point of the world for some steps, and sample the plate."""
    c = boxed.arrays
    for _ in range(steps):
        clear(c.surfaces)
        add_force(c.surfaces, 0, point, (force[0] * c.h, force[1] * c.h, force[2] * c.h), NO_MOMENT, 0.0)
        advance(c)


def grid_test(
    plate: PlateConfig,
    loads: tuple[float, ...] = LOADS,
    points: int = POINTS,
    seconds: float = 1.0,
    cutoff: float | None = None,
    seed: int = 0,
) -> Grid:
    """Apply known loads at the points of a grid, one after another, and compare the CoP with their positions.

    Args:
        plate: A complete plate.
        loads: Vertical forces [N]; a tenth of each also acts along x.
        points: Number of grid points along each side.
        seconds: Duration of sampling at each point [s].
        cutoff: Cut-off frequency of a zero-phase low-pass of order 4, applied before the CoP [Hz].
        seed: Seed of the noise.
    """
    geometry = plate.geometry()
    h = 1.0 / geometry.rate
    wait, count = (round(t * geometry.rate) for t in (SETTLE, seconds))
    amplifiers = Amplifiers([plate], h, (wait + count) * h, 4)
    boxed = box(amplifiers.chain)
    places = [0.5 * COVERED * size * np.linspace(-1.0, 1.0, points) for size in geometry.size]
    grid = np.array([(x, y) for x in places[0] for y in places[1]])
    shape = (len(loads), len(grid))
    bias, scatter, force_bias = np.zeros((*shape, 2)), np.zeros((*shape, 2)), np.zeros(shape)
    expected_bias, expected_scatter = np.zeros((*shape, 2)), np.zeros((*shape, 2))
    clipped = 0
    for i, load in enumerate(loads):
        push = load * geometry.normal + SHEAR * load * geometry.rotation[:, 0]
        for k, point in enumerate(grid):
            position = geometry.centre + geometry.rotation[:, :2] @ point
            amplifiers.reset(seed, i * len(grid) + k)
            amplifiers.begin()
            _press(boxed, position, push, wait + count)
            rows = amplifiers.samples(0)
            clipped += amplifiers.clipped[0]
            signals = PlateSignals(rows[:, 0].copy(), geometry, rows[:, 1:].copy())
            if cutoff is not None:
                signals = filtered(signals, cutoff)
            cop = signals.cop(0.0, "plate")[wait + 1 :]
            bias[i, k], scatter[i, k] = cop.mean(axis=0) - point, cop.std(axis=0)
            force_bias[i, k] = signals.normal_force()[wait + 1 :].mean() - load
            arm = geometry.rotation.T @ (position - geometry.transducer_origin)
            force = geometry.rotation.T @ push
            wrench = np.append(force, np.cross(arm, force))
            read, expected_scatter[i, k] = expected(plate, wrench, cutoff)
            expected_bias[i, k] = read - point
    return Grid(
        plate,
        np.array(loads),
        grid,
        count,
        bias,
        scatter,
        force_bias,
        expected_bias,
        expected_scatter,
        clipped,
        cutoff,
    )


def expected(plate: PlateConfig, wrench: Array, cutoff: float | None = None) -> tuple[Array, Array]:
    """Return the expected CoP (2,) for an applied wrench, and its standard deviation (2,), in plate axes [m].

    The result is of first order in noise over force, and neglects drift.

    Args:
        plate: A complete plate.
        wrench: (6,) reaction at the transducers' origin in the plate's axes [N], [N.m].
        cutoff: As in :func:`grid_test`.
    """
    geometry = plate.geometry()
    cross = np.eye(6) if plate.cross_talk is None else np.array(plate.cross_talk)
    read = cross @ wrench
    n = len(geometry.channel_names)
    noise = per_channel(plate.noise, n, 0.0)
    steps = np.zeros(n)
    if plate.bits is not None:
        steps = 2.0 * per_channel(plate.range, n, 0.0) / 2.0**plate.bits
    # The quantisation error acts as noise as long as there is noise across a converter step (Widrow 1961).
    variance = noise**2 + np.where(noise > DITHER * steps, steps**2 / 12.0, 0.0)
    to_wrench = np.eye(6) if geometry.kind == 1 else geometry.matrix
    covariance = to_wrench @ np.diag(variance) @ to_wrench.T
    s, f, m = geometry.offset, read[:3], read[3:]
    x = -(m[1] - (s[2] * f[0] - s[0] * f[2])) / f[2]
    y = (m[0] - (s[1] * f[2] - s[2] * f[1])) / f[2]
    slope = np.zeros((2, 6))
    slope[0, [0, 2, 4]] = s[2] / f[2], -(s[0] + x) / f[2], -1.0 / f[2]
    slope[1, [1, 2, 3]] = s[2] / f[2], -(s[1] + y) / f[2], 1.0 / f[2]
    variance_share = 1.0 if cutoff is None else _noise_share(cutoff, geometry.rate)
    return np.array([x, y]), np.sqrt(variance_share * np.diag(slope @ covariance @ slope.T))


def _noise_share(cutoff: float, rate: float) -> float:
    """Return the share of white noise's variance that passes the low-pass: the mean of its squared response."""
    sections = scipy.signal.butter(4, cutoff, fs=rate, output="sos")
    _, response = scipy.signal.sosfreqz(sections, 1 << 14, whole=True)
    # The filter runs forwards and backwards, which squares the response.
    return float(np.mean(np.abs(response) ** 4))


def grid_lines(grid: Grid) -> list[str]:
    """Format a table of the errors."""
    figures = grid.figures()
    head = f"{'load':>8} {'CoP error rms':>15} {'largest':>11} {'predicted':>11} {'scatter rms':>13} {'predicted':>11}"
    size = " x ".join(f"{length:g}" for length in figures["size_m"])
    description = f"{figures['points']} points over {100 * COVERED:g} % of {size} m, type {figures['type']}"
    lines = [
        f"{description}, {figures['samples']} samples each, {100 * SHEAR:g} % of the load along x",
        "error: mean CoP minus load position; predicted: from cross-talk, noise and resolution of this plate",
        head,
    ]
    for row in figures["loads"]:
        lines.append(
            f"{row['load_N']:>6g} N {1e3 * row['cop_bias_rms_m']:>12.4f} mm {1e3 * row['cop_bias_max_m']:>8.4f} mm "
            f"{1e3 * row['cop_expected_bias_max_m']:>8.4f} mm {1e3 * row['cop_scatter_rms_m']:>10.4f} mm "
            f"{1e3 * row['cop_expected_scatter_rms_m']:>8.4f} mm"
        )
    if grid.clipped:
        lines.append(f"{grid.clipped} values exceeded the range of the amplifier and were clipped")
    return lines
