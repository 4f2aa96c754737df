"""Metrics of quiet standing from the centre of pressure, as in posturography.

Names and formulas are those of Prieto et al. 1996, "Measures of postural steadiness", IEEE Trans. Biomed. Eng. 43(9),
956-966, table I. AP is along the direction in which the person looks, and ML across. RD is the distance from the mean,
N the number of samples, and T = N / rate the time. The ellipse is the prediction ellipse of Chew 1966 (J. Am. Stat.
Assoc. 61, 605-617), as in Duarte and Freitas 2010. Prieto's ellipse converges to it for many samples.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy

from bipedsim.analysis.force_plates import running_mean, sum_of_plates
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.plates import THRESHOLD, PlateSignals

BAND = (0.15, 5.0)
"""Frequency band of the spectral metrics [Hz]."""
TAPERS = 8
"""Number of sine tapers over which a spectrum is averaged."""
STOOD = 9.9
"""Minimum duration of standing for metrics of sway [s], which is some periods of the slowest frequency."""
LEAST = 10
"""Minimum number of samples."""
MOTIONLESS = 1e-6
"""Extent of the CoP [m] below which there is no sway, as with a simulated body at rest."""
FARTHEST, BOUNCE = 0.2, 0.08
"""Upper limits in quiet standing: extent of the CoP [m], and range of the vertical force relative to its mean.

The vertical force is taken as means over 20 ms."""


def stood_still(plates: Mapping[str, PlateSignals], threshold: float = THRESHOLD) -> tuple[Array, float] | str:
    """Return the CoP (n, 2) [m] of all plates and its rate [Hz] if a person or robot stood quietly all the time.

    The x axis of the world counts as ahead. If metrics of sway would have no meaning, the result is the reason:

    * The plates were not loaded all the time, or for less than 10 s.
    * The motion exceeds quiet standing of people, or there was no motion at all.
    """
    used = [plate for plate in plates.values() if plate.loaded(threshold).any()]
    if not used or not all(plate.loaded(threshold).all() for plate in used):
        return "no person or robot stood on the same force plates all the time"
    if not all(plate.t[-1] - plate.t[0] >= STOOD for plate in used):
        return f"the stance lasted less than {STOOD:g} s"
    rate = min(plate.geometry.rate for plate in used)
    total = sum_of_plates(used, threshold)
    extent = np.ptp(total.cop, axis=0)
    if extent.max() < MOTIONLESS:
        return f"motionless: the CoP stayed within {1e3 * extent.max():.1g} mm"
    up = running_mean(total.force[:, 2], rate)
    lift = float(np.ptp(up) / up.mean())
    if extent.max() > FARTHEST or lift > BOUNCE:
        return (
            f"no quiet standing: the CoP moved over {1e3 * extent.max():.3g} mm and the vertical force varied by "
            f"{100.0 * lift:.3g} % of its mean; limits are {1e3 * FARTHEST:g} mm and {100.0 * BOUNCE:g} %"
        )
    return total.cop, rate


def sway_figures(cop: Array, rate: float) -> dict[str, float]:
    """Return the metrics of a path of the CoP.

    * mean_distance_m = mean RD; rms_distance_m = sqrt(mean RD^2); path_m = sum |steps|; range_m = largest distance of
      two points along AP or ML; mean_velocity_m_per_s = path / T;
    * mean_frequency_hz = path / (2 pi mean RD T): of a circle with the mean distance, at the mean velocity;
    * mean_frequency_ap_hz, mean_frequency_ml_hz = path / (4 sqrt(2) mean |AP| T), and likewise for ML;
    * circle_area_m2 = pi (mean RD + 1.645 s_RD)^2, s_RD^2 = rms^2 - mean^2: contains 95 % of the distances;
    * ellipse_area_m2 = 2 pi F sqrt(det S) (N - 1)(N + 1) / (N (N - 2)), S the covariance, F = F_0.95(2, N - 2):
      contains 95 % of new points;
    * sway_area_m2_per_s = sum |AP_n+1 ML_n - AP_n ML_n+1| / (2 T): area swept from the mean;
    * power_m2, median_frequency_hz, frequency_95_hz: of the spectrum G from 0.15 to 5 Hz, averaged over 8 sine tapers;
    * centroidal_frequency_hz = sqrt(mu_2 / mu_0), frequency_dispersion = sqrt(1 - mu_1^2 / (mu_0 mu_2)), with the
      moments mu_k = sum f^k G(f).

    The spectral metrics are NaN where T is too short for the band. Most metrics also exist for one direction, with
    ``_ap`` and ``_ml``.

    Args:
        cop: (N, 2) AP and ML [m], at even times, without NaN.
        rate: Samples per second [Hz].

    Raises:
        ConfigError: There are fewer than 10 samples, or the CoP is missing in some.
    """
    n = len(cop)
    if n < LEAST or not np.isfinite(cop).all():
        missing = int((~np.isfinite(cop).all(axis=1)).sum())
        raise ConfigError(f"samples of {n} lack a CoP; all of {LEAST} or more need one", "sway: missing", missing)
    centred = cop - cop.mean(axis=0)
    duration = n / rate
    distance = np.linalg.norm(centred, axis=1)
    steps = np.diff(centred, axis=0)
    path = float(np.linalg.norm(steps, axis=1).sum())
    mean, rms = float(distance.mean()), float(np.sqrt((distance**2).mean()))
    covariance = np.cov(centred, rowvar=False)
    critical = float(scipy.stats.f.ppf(0.95, 2, n - 2)) * (n - 1) * (n + 1) / (n * (n - 2))
    swept = centred[1:, 0] * centred[:-1, 1] - centred[:-1, 0] * centred[1:, 1]
    figures = {
        "duration_s": duration,
        "mean_distance_m": mean,
        "rms_distance_m": rms,
        "path_m": path,
        "range_m": float(np.ptp(centred, axis=0).max()),
        "mean_velocity_m_per_s": path / duration,
        "mean_frequency_hz": _quotient(path, 2.0 * np.pi * mean * duration),
        "circle_area_m2": float(np.pi * (mean + 1.645 * np.sqrt(max(rms**2 - mean**2, 0.0))) ** 2),
        "ellipse_area_m2": float(2.0 * np.pi * critical * np.sqrt(max(np.linalg.det(covariance), 0.0))),
        "sway_area_m2_per_s": float(np.abs(swept).sum() / (2.0 * duration)),
        **_spectral(distance - mean, rate, ""),
    }
    for k, suffix in enumerate(("_ap", "_ml")):
        deviation, length = np.abs(centred[:, k]), float(np.abs(steps[:, k]).sum())
        figures |= {
            f"mean_distance{suffix}_m": float(deviation.mean()),
            f"rms_distance{suffix}_m": float(np.sqrt((deviation**2).mean())),
            f"path{suffix}_m": length,
            f"range{suffix}_m": float(np.ptp(centred[:, k])),
            f"mean_velocity{suffix}_m_per_s": length / duration,
            f"mean_frequency{suffix}_hz": _quotient(length, 4.0 * np.sqrt(2.0) * float(deviation.mean()) * duration),
            **_spectral(centred[:, k], rate, suffix),
        }
    return figures


def _quotient(a: float, b: float) -> float:
    return a / b if b > 0.0 else float("nan")


def _spectral(values: Array, rate: float, suffix: str) -> dict[str, float]:
    """Return the spectral metrics of (N,) values."""
    n = len(values)
    number = np.arange(1, n + 1)
    spectrum = np.zeros(n // 2 + 1)
    for k in range(1, TAPERS + 1):
        taper = np.sqrt(2.0 / (n + 1)) * np.sin(np.pi * k * number / (n + 1))
        spectrum += np.abs(np.fft.rfft(taper * values)) ** 2 / TAPERS
    frequency = np.fft.rfftfreq(n, 1.0 / rate)
    inside = (frequency >= BAND[0]) & (frequency <= BAND[1])
    f, power = frequency[inside], 2.0 * spectrum[inside] / rate
    names = (
        "power{}_m2",
        "median_frequency{}_hz",
        "frequency_95{}_hz",
        "centroidal_frequency{}_hz",
        "frequency_dispersion{}",
    )
    if len(f) < LEAST or power.sum() <= 0.0:
        return dict.fromkeys((name.format(suffix) for name in names), float("nan"))
    share = np.cumsum(power) / power.sum()
    m0, m1, m2 = ((f**k * power).sum() for k in range(3))
    metrics = (
        m0 * rate / n,
        f[int(np.searchsorted(share, 0.5))],
        f[int(np.searchsorted(share, 0.95))],
        np.sqrt(m2 / m0),
        np.sqrt(max(1.0 - m1**2 / (m0 * m2), 0.0)),
    )
    return {name.format(suffix): float(value) for name, value in zip(names, metrics, strict=True)}


def sway_lines(figures: dict[str, float]) -> list[str]:
    """Format the most common metrics of :func:`sway_figures`."""
    rows = (
        ("mean distance", "mean_distance{}_m", 1e3, "mm"),
        ("rms distance", "rms_distance{}_m", 1e3, "mm"),
        ("range", "range{}_m", 1e3, "mm"),
        ("path", "path{}_m", 1e3, "mm"),
        ("mean velocity", "mean_velocity{}_m_per_s", 1e3, "mm/s"),
        ("mean frequency", "mean_frequency{}_hz", 1.0, "Hz"),
        ("median frequency", "median_frequency{}_hz", 1.0, "Hz"),
        ("95 % frequency", "frequency_95{}_hz", 1.0, "Hz"),
    )
    lines = [f"{'sway of the CoP':<18} {'':>12} {'ahead':>12} {'aside':>12}"]
    for name, key, scale, unit in rows:
        cells = " ".join(f"{scale * figures[key.format(suffix)]:>12.4g}" for suffix in ("", "_ap", "_ml"))
        lines.append(f"{name:<18} {cells} {unit}")
    lines.append(f"{'95 % ellipse':<18} {1e6 * figures['ellipse_area_m2']:>12.4g} mm^2")
    lines.append(f"{'95 % circle':<18} {1e6 * figures['circle_area_m2']:>12.4g} mm^2")
    lines.append(f"{'swept':<18} {1e6 * figures['sway_area_m2_per_s']:>12.4g} mm^2/s")
    return lines
