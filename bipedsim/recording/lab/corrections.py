"""Corrections of files of force plates: corners that were measured, moments in another unit of length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bipedsim.numerics import Array
from bipedsim.plates import PlateSignals
from bipedsim.recording.lab.cells import LARGEST

EXACT = 1e-4
"""Share of a plate's size by which corners may be off a rectangle without a note."""
MEASURED = 0.05
"""Share of a plate's size up to which corners are taken for measured ones: markers are a few millimetres off."""
CENTRED = 0.01
"""Share of half a plate's size within which no CoP of a person stays."""
OUTSIDE = 3.0
"""Multiple of half a plate's size beyond which there is no CoP."""
ARM = 0.03
"""Multiple of half a plate's size: moments over forces of a calibration matrix are above it, as ranges of transducers
are; in a unit that is 1000 times too small they are below."""


def fitted_rectangle(name: str, corners: Array, notes: list[str]) -> Array:
    """Return the rectangle (4, 3) that fits measured corners best; what else they may be is handed through.

    Args:
        name: Of the plate, for the note.
        corners: (4, 3) [m].
        notes: Gets how far the corners are off.
    """
    centre = corners.mean(axis=0)
    x = (corners[0] - corners[1] + corners[3] - corners[2]) / 4.0
    y = (corners[0] - corners[3] + corners[1] - corners[2]) / 4.0
    lengths = np.linalg.norm(x), np.linalg.norm(y)
    if not np.abs(corners).max() < LARGEST or not abs(x @ y) < MEASURED * lengths[0] * lengths[1]:
        return corners
    # Both sides turn by the same angle until they are at right angles.
    total, difference = x / lengths[0] + y / lengths[1], x / lengths[0] - y / lengths[1]
    total, difference = total / np.linalg.norm(total), difference / np.linalg.norm(difference)
    x, y = ((total + sign * difference) / np.sqrt(2.0) for sign in (1.0, -1.0))
    x, y = x * lengths[0], y * lengths[1]
    fitted = centre + np.array([x + y, y - x, -x - y, x - y])
    off, size = float(np.linalg.norm(fitted - corners, axis=1).max()), 2.0 * float(max(lengths))
    if not EXACT * size < off < MEASURED * size:
        return corners
    notes.append(
        f"force plate {name}: its corners are up to {1e3 * off:.1f} mm off a rectangle; the one that fits best is taken"
    )
    return fitted


def with_moment_unit(signals: PlateSignals, taken: float, notes: list[str]) -> PlateSignals:
    """Return signals whose moments are in the unit that has the CoP on the plate, where the file names no unit.

    Lengths in C3D files are in one unit, and moments should have it, too: laboratories also write N.m beside mm. Then
    the CoP is 1000 times too near the centre. Moments that are plausible as they are stay what they are.

    Args:
        signals: Of a plate of type 2 or 4.
        taken: Metres of the unit of length that its moments were taken to have.
        notes: Gets what was changed.
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
    near = arm < CENTRED * half and (geometry.kind != 4 or rows[3:5].max() < ARM * half * rows[2])
    if not near and arm < OUTSIDE * half:
        return signals
    for unit, name in ((1.0, "N.m"), (1e-3, "N.mm")):
        if unit == taken or (unit > taken) != near:
            continue
        scale = np.array([1.0, 1.0, 1.0] + [unit / taken] * 3)
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
