"""From force to samples: closed forms of oscillator and filter, sampling, converter, noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from bipedsim.numerics import Array, call
from bipedsim.plates import Amplifiers, PlateConfig, advance


def plate(**given) -> PlateConfig:  # type: ignore[no-untyped-def]
    return PlateConfig(name="one", size=(0.6, 0.4), **given).complete()


def respond(
    config: PlateConfig,
    force: Array,
    h: float = 1e-3,
    hits: dict[int, tuple[float, float]] | None = None,
    seed: int = 0,
    draw: int = 0,
) -> tuple[Array, Amplifiers]:
    """Return the samples under a vertical ``force`` (n,) for n steps, and ``hits``: step to impulse and share before.

    The force acts at (0.1, 0.05, 0) of a plate in the origin.
    """
    amplifiers = Amplifiers([config], h, h, 4)
    amplifiers.reset(seed, draw)
    c = amplifiers.chain
    # Plate axes: y and z look the other way.
    arm, up = np.array([0.1, -0.05, -(config.thickness or 0.0)]), np.array([0.0, 0.0, -1.0])
    unit = np.concatenate([up, np.cross(arm, up)])
    rows = []
    for i, fz in enumerate(force):
        amplifiers.begin()
        impulse, c.when[0] = (hits or {}).get(i, (0.0, 0.0))
        c.surfaces.at_once[0] = impulse * unit
        c.surfaces.load[0] = (h * fz + impulse) * unit
        call(advance, c)
        rows.append(amplifiers.samples(0).copy())
    return np.vstack(rows), amplifiers


def test_a_rigid_plate_shows_the_mean_of_each_step() -> None:
    force = np.random.default_rng(0).uniform(0.0, 700.0, 20)
    rows, _ = respond(plate(), force, hits={7: (2.0, 0.3)})
    np.testing.assert_allclose(rows[:, 0], 1e-3 * np.arange(21), atol=1e-15)
    wanted = force.copy()
    wanted[7] += 2000.0
    np.testing.assert_allclose(-rows[1:, 3], wanted, rtol=1e-12)
    # A person on the plate at t = 0 was there before.
    assert rows[0, 3] == rows[1, 3]


@pytest.mark.parametrize("frequency", [120.0, 350.0, 900.0])
@pytest.mark.parametrize("damping", [0.02, 0.4])
@pytest.mark.parametrize("h", [1e-3, 2.5e-4])
def test_an_impact_peaks_as_theory_says_whatever_the_step(frequency: float, damping: float, h: float) -> None:
    """The impulse response of an oscillator, which a step of a millisecond must not blur."""
    w = 2.0 * math.pi * frequency
    rate = 20_000.0
    config = plate(natural_frequency=frequency, damping=damping, rate=rate)
    at = 0.005 + 0.37 * h
    rows, _ = respond(config, np.zeros(round(0.03 / h)), h, {round(0.005 / h): (3.0, 0.37)})
    t = rows[:, 0] - at
    root = math.sqrt(1.0 - damping**2)
    exact = np.where(t > 0.0, 3.0 * w / root * np.exp(-damping * w * t) * np.sin(w * root * t), 0.0)
    np.testing.assert_allclose(-rows[:, 3], exact, atol=1e-9 * 3.0 * w)
    peak = 3.0 * w * math.exp(-damping / root * math.acos(damping))
    # Between two samples, the peak may be higher by the drop of a cosine over half of their distance.
    assert peak * (1.0 - (0.5 * w / rate) ** 2) <= -rows[:, 3].min() <= peak * (1.0 + 1e-12)


def test_plate_and_filter_are_solved_exactly_at_any_rate() -> None:
    """Against SciPy's solution of both transfer functions, at samples that are not those of the steps."""
    w, z, wc = 2.0 * math.pi * 200.0, 0.1, 2.0 * math.pi * 300.0
    force = np.concatenate([np.zeros(5), np.random.default_rng(1).uniform(0.0, 700.0, 40)])
    rows, _ = respond(plate(natural_frequency=200.0, damping=0.1, anti_alias=300.0, rate=1700.0), force)
    fine = 1.0 / 1.7e6
    t = np.arange(round(0.045 / fine)) * fine
    u = force[np.minimum((t / 1e-3).astype(int), len(force) - 1)]
    numerator = [w * w * wc * wc]
    denominator = np.polymul([1.0, 2.0 * z * w, w * w], [1.0, math.sqrt(2.0) * wc, wc * wc])
    _, y, _ = scipy.signal.lsim((numerator, denominator), u, t, interp=False)
    at = np.rint(rows[:, 0] / fine).astype(int)
    here = at < len(t)
    np.testing.assert_allclose(-rows[here, 3], y[at[here]], atol=0.7)
    np.testing.assert_allclose(np.diff(rows[:, 0]), 1.0 / 1700.0, rtol=1e-9)


def test_the_converter_has_a_range_and_steps() -> None:
    force = np.linspace(0.0, 1500.0, 400)
    rows, amplifiers = respond(plate(range=1000.0, bits=8), force)
    step = 2000.0 / 256
    fz = rows[1:, 3]
    np.testing.assert_allclose(fz / step, np.rint(fz / step), atol=1e-9)
    assert np.abs(fz + np.minimum(force, 1000.0)).max() <= 0.5 * step + 1e-9
    assert fz.min() == -1000.0
    # Two moments are small, three channels are empty.
    assert amplifiers.clipped == (int((force > 1000.0).sum()),)


@pytest.mark.parametrize("bits", [3, 8, 16])
def test_the_converter_has_as_many_numbers_as_its_bits_say(bits: int) -> None:
    """From -2^(b-1) to 2^(b-1) - 1, as converters have them: the upper end of the range is none of them."""
    step = 2.0 * 1000.0 / 2**bits
    # Also the last half step below the range, and beyond it to both sides; a force down is positive in the channel.
    force = np.concatenate([np.linspace(-1500.0, 1500.0, 301), 1000.0 - step * np.array([0.6, 0.5, 0.4, 0.0, -0.4])])
    force = np.concatenate([force, -force])
    rows, amplifiers = respond(plate(range=1000.0, bits=bits), force)
    lowest = -(2 ** (bits - 1))
    codes = np.clip(np.rint(-force / step), lowest, -lowest - 1)
    np.testing.assert_allclose(rows[1:, 3], codes * step, atol=1e-9)
    assert rows[:, 3].min() == -1000.0
    assert rows[:, 3].max() == pytest.approx(1000.0 - step, abs=1e-9)
    assert amplifiers.clipped == (int((np.abs(force) > 1000.0).sum()) + (abs(force[0]) > 1000.0),)


def test_a_range_without_bits_ends_at_its_ends() -> None:
    force = np.array([-1500.0, -1000.0, 999.0, 1000.0, 1500.0])
    rows, amplifiers = respond(plate(range=1000.0), force)
    np.testing.assert_allclose(rows[1:, 3], -np.clip(force, -1000.0, 1000.0), atol=1e-12)
    # The first step's force is that of t = 0, too.
    assert amplifiers.clipped == (3,)


@pytest.mark.long
def test_noise_and_drift_follow_from_seed_and_reset() -> None:
    config = plate(noise=(1.0, 2.0, 3.0, 0.1, 0.2, 0.3), drift=0.5)
    force = np.zeros(4000)
    first, _ = respond(config, force)
    again, _ = respond(config, force)
    other, _ = respond(config, force, draw=1)
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()
    t = first[:, 0]
    slope = np.polyfit(t, first[:, 1:], 1)[0]
    assert (np.abs(slope) < 0.5 + 0.1).all()
    assert np.abs(slope).max() > 0.05
    left = first[:, 1:] - np.outer(t, slope)
    # Six standard deviations of a standard deviation of 4000 samples.
    np.testing.assert_allclose(left.std(axis=0), config.noise, rtol=6.0 / math.sqrt(2.0 * 4000))
    assert np.abs(np.corrcoef(left.T) - np.eye(6)).max() < 6.0 / math.sqrt(4000)


def test_every_sample_of_a_tick_has_noise_of_its_own() -> None:
    """Five channels in each: the samples are independent in time and between channels."""
    rows, _ = respond(plate(noise=1.0, rate=5000.0), np.zeros(400))
    noise = rows[1:, 1:].T.reshape(6, 400, 5)
    for channel in noise:
        apart = np.corrcoef(channel.T) - np.eye(5)
        assert np.abs(apart).max() < 6.0 / math.sqrt(400)
        assert abs(channel.std() - 1.0) < 6.0 / math.sqrt(2.0 * 2000)


def test_cross_talk_mixes_what_acts() -> None:
    cross = np.eye(6)
    cross[0, 2] = 0.02
    cross[3, 2] = 0.001
    rows, _ = respond(plate(cross_talk=tuple(map(tuple, cross.tolist()))), np.full(3, 500.0))
    ideal, _ = respond(plate(), np.full(3, 500.0))
    np.testing.assert_allclose(rows[:, 1:], ideal[:, 1:] @ cross.T, atol=1e-9)


def test_type_1_gives_the_cop_and_none_of_an_empty_plate() -> None:
    rows, _ = respond(plate(type=1, thickness=0.05), np.array([700.0, 10.0]))
    np.testing.assert_allclose(rows[1, 1:], [0.0, 0.0, -700.0, 0.1, -0.05, 0.0], atol=1e-12)
    np.testing.assert_allclose(rows[2, 1:], [0.0, 0.0, -10.0, 0.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("kind", [2, 3, 4])
def test_the_channels_are_those_that_the_geometry_reads(kind: int) -> None:
    more = {3: {"half_base": (0.12, 0.2)}, 4: {"calibration": tuple(map(tuple, (2.0 * np.eye(6) + 0.1).tolist()))}}
    config = plate(type=kind, thickness=0.05, position=(0.0, 0.0, 0.0), **more.get(kind, {}))
    rows, amplifiers = respond(config, np.full(3, 500.0))
    wrench = amplifiers.geometries[0].wrench(rows[:, 1:])
    arm = np.array([0.1, -0.05, -0.05])
    force = np.array([0.0, 0.0, -500.0])
    np.testing.assert_allclose(wrench[1], np.concatenate([force, np.cross(arm, force)]), atol=1e-9)
