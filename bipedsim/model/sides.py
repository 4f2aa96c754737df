"""Left and right in the names of joints, links and feet."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_BEGIN = re.compile(r"(?<![A-Za-z])(?:left|right)(?=[a-z])", re.IGNORECASE)
"""What a word in one begins with, as in leftknee; upright is no side."""
_INITIAL = re.compile(r"[LR](?=[A-Z][a-z])|[lr](?=[A-Z])")
"""The first letter of LHip or lKnee."""
_SIDES = {"left": "left", "l": "left", "right": "right", "r": "right"}
SIDES = ("left", "right")


def split_side(name: str) -> tuple[str, str]:
    """Return left, right or an empty string, whichever a name says, and what is left of the name without it.

    A side is a word of the name, in any case: ``left_knee``, ``r_hip``, ``LeftElbow``, ``elbow_L``, ``l-toe``; the
    first letter before a capital, as in ``LHip``; or what a word begins with, as in ``leftknee``. A name with both
    says neither.

    >>> split_side("LHipYaw"), split_side("leg_left_1_joint"), split_side("larm"), split_side("torso")
    (('left', 'HipYaw'), ('left', 'leg_1_joint'), ('', 'larm'), ('', 'torso'))
    """
    words = [word for word in _WORD.finditer(name) if word[0].lower() in _SIDES]
    # A single letter is less of a word than left: right_foot_l stands on the right.
    found = [word for word in words if len(word[0]) > 1] or words
    if not found and (initial := _INITIAL.match(name)):
        found = [initial]
    found = found or list(_BEGIN.finditer(name))
    sides = {_SIDES[word[0].lower()] for word in found}
    if len(sides) != 1:
        return "", name
    first = found[0]
    rest = re.sub(r"([_./ -])[_./ -]+", r"\1", name[: first.start()] + name[first.end() :]).strip("_./ -")
    return sides.pop(), rest or name
