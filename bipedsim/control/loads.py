"""When a foot carries, as controllers see it: shares of the robot's weight, one for each question.

What is said of a run afterwards has shares of its own, ``analysis/loads.py``.
"""

from __future__ import annotations

TOUCHES, LEAVES = 0.06, 0.03
"""Measured force above which a foot has met the ground, and below which it has left it: sensors drift by less."""
CARRIES, RELIEVED = 0.05, 0.02
"""Force above which a foot becomes a constraint of linearised outputs, and below which it is none any more. A foot that
has landed before it is to carry counts with the second."""
WHOLE = 0.2
"""Force on all feet at which the ground reaction is fed forward in full; below, in proportion."""
