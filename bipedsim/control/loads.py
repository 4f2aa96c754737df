"""Load thresholds at which controllers switch a foot between contact states, as shares of the robot's weight.

The analysis of recorded runs has its own thresholds in ``analysis/loads.py``.
"""

from __future__ import annotations

TOUCHES, LEAVES = 0.06, 0.03
"""Measured force at which touchdown is detected, and at which lift-off is; both exceed the drift of the sensors."""
CARRIES, RELIEVED = 0.05, 0.02
"""Force above which a foot becomes a constraint of linearised outputs, and below which it stops being one.

A foot that touches down early gets at least the second value as its planned share of the weight."""
WHOLE = 0.2
"""Total force on the feet from which the ground reaction is fed forward in full; in proportion below."""
