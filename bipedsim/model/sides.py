"""Detect left and right in the names of joints, links and feet."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_BEGIN = re.compile(r"(?<![A-Za-z])(?:left|right)(?=[a-z])", re.IGNORECASE)
"""Side at the beginning of a word, as in leftknee; it does not match in upright."""
_INITIAL = re.compile(r"[LR](?=[A-Z][a-z])|[lr](?=[A-Z])")
"""Side as the first letter of LHip or lKnee."""
_SIDES = {"left": "left", "l": "left", "right": "right", "r": "right"}
SIDES = ("left", "right")


def split_side(name: str) -> tuple[str, str]:
    """Split a name into its side (left, right or an empty string) and the rest of the name.

    A side is a word of the name, in any case: ``left_knee``, ``r_hip``, ``LeftElbow``, ``elbow_L``, ``l-toe``. It can
    also be the first letter before a capital, as in ``LHip``, or the beginning of a word, as in ``leftknee``. A name
    with both sides has none.

    >>> split_side("LHipYaw"), split_side("leg_left_1_joint"), split_side("larm"), split_side("torso")
    (('left', 'HipYaw'), ('left', 'leg_1_joint'), ('', 'larm'), ('', 'torso'))
    """
    words = [word for word in _WORD.finditer(name) if word[0].lower() in _SIDES]
    # A word has priority over a single letter: right_foot_l is on the right.
    matches = [word for word in words if len(word[0]) > 1] or words
    if not matches and (initial := _INITIAL.match(name)):
        matches = [initial]
    matches = matches or list(_BEGIN.finditer(name))
    sides = {_SIDES[word[0].lower()] for word in matches}
    if len(sides) != 1:
        return "", name
    first = matches[0]
    rest = re.sub(r"([_./ -])[_./ -]+", r"\1", name[: first.start()] + name[first.end() :]).strip("_./ -")
    return sides.pop(), rest or name
