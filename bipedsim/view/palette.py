"""Declare the colours of all plots and pages.

Readers with red, green or blue colour blindness can distinguish the colours of a scene, and those of a plot
(``test/view/test_palette.py``). Curves have enough contrast for text on white.
"""

from __future__ import annotations

FOOT_COLOURS = ("#0072B2", "#C24A00", "#066157", "#A8558A", "#875221", "#622C7F")
"""Colours of feet and of other curves in a fixed order; the first two are the left and the right foot."""
TOTAL_COLOUR = "#222222"
"""Sum of all feet, and the CoM."""
LIMIT_COLOUR = "#B00020"
"""Limits, sliding contacts and errors."""
FORCE_COLOUR = "#0A9B48"
PUSH_COLOUR = "#6B215D"
COP_COLOUR = "#D9488F"
CAPTURE_COLOUR = "#E69F00"
SUPPORT_COLOUR = "#4FA5FF"
PLAN_COLOUR = "#2D3FE7"
AXIS_COLOUR, INERTIA_COLOUR = FOOT_COLOURS[1], FOOT_COLOURS[0]
"""Joint axes and inertia boxes, which are layers of their own."""
AIR = "in the air"
FACE_COLOUR = "#43CA7C"
MODE_COLOURS = {AIR: "#B8B8B8", "vertex": "#E0E801", "edge": "#3B2E8C", "face": FACE_COLOUR}
"""Kind of a contact mode to its colour."""
UNKNOWN_COLOUR = "#777777"
"""Contact of an unknown mode."""
OBJECT_COLOUR = "#7A4FA3"
SOIL_COLOUR, SURFACE_COLOUR = "#ECE9E3", "#8C8577"
"""Ground, and its borders."""


def foot_colour(k: int) -> str:
    """Return the colour of foot ``k`` in all plots."""
    return FOOT_COLOURS[k % len(FOOT_COLOURS)]


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#RRGGBB`` (WCAG 2), from 0 for black to 1 for white."""
    shares = (value / 255.0 for value in bytes.fromhex(colour.removeprefix("#")))
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_colour(background: str) -> str:
    """Return black or white, whichever has more contrast on ``background``."""
    return "#000000" if luminance(background) > 0.18 else "#FFFFFF"
