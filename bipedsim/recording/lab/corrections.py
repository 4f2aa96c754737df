"""Correct force-plate files: measured corners, moments in another unit of length, and the CoP by a polynomial."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bipedsim.numerics import Array
from bipedsim.plates import CHANNELS, PlateSignals
from bipedsim.recording.lab.cells import LARGEST

EXACT = 1e-4
"""Deviation of corners from a rectangle that needs no note, as a fraction of the plate's size."""
MEASURED = 0.05
"""Deviation up to which corners are taken as measured, as a fraction of the plate's size; markers deviate by a few
millimetres."""
CENTRED = 0.01
"""Fraction of half the plate's size; the CoP of a person never stays within it."""
OUTSIDE = 3.0
"""Multiple of half the plate's size beyond which no CoP is plausible."""
ARM = 0.03
"""Multiple of half the plate's size for moments over forces of a calibration matrix, from the ranges of transducers.
Plausible ratios are larger; ratios in a unit that is 1000 times too small are smaller."""
LOADED = 50.0
"""Normal force of the wrong sign above which a person is assumed on the plate [N]; drift is always smaller."""


def is_reversed(normal: Array) -> bool:
    """Return whether normal forces (n,) [N] have the wrong sign under a person."""
    lowest, highest = float(np.nanmin(normal, initial=0.0)), float(np.nanmax(normal, initial=0.0))
    return -lowest > LOADED and -lowest > 5.0 * highest


def fitted_rectangle(name: str, corners: Array, notes: list[str]) -> Array:
    """Return the best-fitting rectangle (4, 3) for measured corners; other corners are returned unchanged.

    Args:
        name: Name of the plate, for the note.
        corners: (4, 3) [m].
        notes: Receives the deviation.
    """
    centre = corners.mean(axis=0)
    x = (corners[0] - corners[1] + corners[3] - corners[2]) / 4.0
    y = (corners[0] - corners[3] + corners[1] - corners[2]) / 4.0
    lengths = np.linalg.norm(x), np.linalg.norm(y)
    if not np.abs(corners).max() < LARGEST or not abs(x @ y) < MEASURED * lengths[0] * lengths[1]:
        return corners
    # Both sides rotate by the same angle until they are perpendicular.
    total, difference = x / lengths[0] + y / lengths[1], x / lengths[0] - y / lengths[1]
    total, difference = total / np.linalg.norm(total), difference / np.linalg.norm(difference)
    x, y = ((total + sign * difference) / np.sqrt(2.0) for sign in (1.0, -1.0))
    x, y = x * lengths[0], y * lengths[1]
    fitted = centre + np.array([x + y, y - x, -x - y, x - y])
    deviation, size = float(np.linalg.norm(fitted - corners, axis=1).max()), 2.0 * float(max(lengths))
    if not EXACT * size < deviation < MEASURED * size:
        return corners
    notes.append(
        f"force plate {name}: its corners are up to {1e3 * deviation:.1f} mm off a rectangle; the one "
        "that fits best is taken"
    )
    return fitted


def with_moment_unit(signals: PlateSignals, assumed: float, notes: list[str]) -> PlateSignals:
    """Choose the unit of moments that puts the CoP on the plate, if the file states no unit.

    Moments in C3D files should use the file's unit of length, but some laboratories write N.m with lengths in mm. The
    CoP is then 1000 times too close to the centre. Plausible moments stay unchanged.

    Args:
        signals: Signals of a plate of type 2 or 4.
        assumed: Unit of length that the moments were assumed to have [m].
        notes: Receives a note on the change.
    """
    geometry = signals.geometry
    wrench = geometry.wrench(signals.channels)
    normal = np.abs(wrench[:, 2])
    heavy = normal > 0.5 * normal.max(initial=1.0)
    half = 0.5 * max(geometry.size)
    if not heavy.any():
        return signals
    arm = float((np.hypot(wrench[heavy, 3], wrench[heavy, 4]) / normal[heavy]).max())
    rows = np.linalg.norm(geometry.calibration, axis=1)
    too_small = arm < CENTRED * half and (geometry.kind != 4 or rows[3:5].max() < ARM * half * rows[2])
    if not too_small and arm < OUTSIDE * half:
        return signals
    for unit, name in ((1.0, "N.m"), (1e-3, "N.mm")):
        if unit == assumed or (unit > assumed) != too_small:
            continue
        scale = np.array([1.0, 1.0, 1.0] + [unit / assumed] * 3)
        if geometry.kind == 4:
            changed = replace(signals, geometry=replace(geometry, calibration=scale[:, None] * geometry.calibration))
        else:
            changed = replace(signals, channels=signals.channels * scale)
        cop = np.abs(changed.cop(axes="plate")[heavy])
        if (cop <= 0.5 * np.array(geometry.size)).all():
            notes.append(
                f"force plate {geometry.name}: the file does not say which unit its moments have. They are taken for "
                f"{name}: with the unit of its lengths the CoP would be up to {1e3 * arm:.3g} mm from the centre"
            )
            return changed
    return signals


def with_polynomial(signals: PlateSignals, polynomial: Array, unit: float, notes: list[str]) -> PlateSignals:
    """Return a plate with its CoP corrected by the maker's polynomial, as type 2 with the same forces and Mz.

    The correction is that of Kistler's manuals (9287C, section 8.4.3). With u = x, v = y for x and u = y, v = x for y,
    it is u - ((P1 v^4 + P2 v^2 + P3) u^3 + (P4 v^4 + P5 v^2 + P6) u). Polynomials grow outside the surface. There, the
    correction is that of the nearest edge.

    Args:
        signals: Signals of a plate.
        polynomial: (2, 6) coefficients P1 to P6 for x and y. If they move a CoP by half the plate, they have another
            unit or meaning, and are not used.
        unit: Unit of length of the coefficients [m].
        notes: Receives a note.
    """
    geometry = signals.geometry
    half = 0.5 * np.array(geometry.size)

    def correction(cop: Array) -> Array:
        x, y = np.clip(cop, -half, half).T / unit
        moved = [
            (p[0] * v**4 + p[1] * v**2 + p[2]) * u**3 + (p[3] * v**4 + p[4] * v**2 + p[5]) * u
            for p, u, v in zip(polynomial, (x, y), (y, x), strict=True)
        ]
        return unit * np.column_stack(moved)

    grid = half * np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 21)] * 2), axis=-1).reshape(-1, 2)
    largest = float(np.linalg.norm(correction(grid), axis=1).max())
    name = f"force plate {geometry.name}: FORCE_PLATFORM:FPCOPPOLY, the maker's polynomial for the CoP,"
    if not largest < half.min():
        notes.append(f"{name} would move it by up to {1e3 * largest:.3g} mm: it is not used")
        return signals
    wrench = geometry.wrench(signals.channels)
    wrench = wrench if geometry.channels_on == "person" else -wrench
    force = wrench[:, 2]
    moment = wrench[:, 3:] - np.cross(geometry.offset, wrench[:, :3])
    loaded = force != 0.0
    cop = np.column_stack([-moment[:, 1], moment[:, 0]]) / np.where(loaded, force, 1.0)[:, None]
    dx, dy = np.where(loaded[:, None], correction(cop), 0.0).T
    wrench[:, 3] -= dy * force
    wrench[:, 4] += dx * force
    notes.append(f"{name} moves it by up to {1e3 * largest:.1f} mm")
    geometry = replace(geometry, kind=2, channel_names=CHANNELS[2])
    return replace(signals, geometry=geometry, channels=wrench)
