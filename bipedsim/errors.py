"""Errors that bipedsim raises on purpose; each message says what, where, and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class BipedSimError(Exception):
    """Base of every error that bipedsim raises on purpose."""


class ConfigError(BipedSimError):
    """A file, argument or parameter is wrong; the message names file, key, value and choices."""


class UnknownNameError(ConfigError):
    """A name that no table or model knows.

    Args:
        kind: What was looked up, such as ``"robot"``.
        name: The name that was given.
        choices: The names that exist.
        where: File and key that hold the name, when it came from a file.
    """

    def __init__(self, kind: str, name: str, choices: Iterable[str], where: str = "") -> None:
        self.kind = kind
        self.name = name
        self.choices = tuple(choices)
        close = difflib.get_close_matches(str(name), self.choices, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        listed = ", ".join(self.choices) or "(none)"
        prefix = f"{where}: " if where else ""
        super().__init__(f"{prefix}unknown {kind} {name!r}{hint} Choices: {listed}")


class DivergenceError(BipedSimError):
    """The state stopped being finite or bounded; holds the last good state.

    Attributes:
        t: Time of the last good state [s].
        q: Last good configuration (nq,).
        v: Last good velocity (nv,).
    """

    def __init__(self, reason: str, t: float, q: NDArray[np.float64], v: NDArray[np.float64]) -> None:
        self.t = t
        self.q = q.copy()
        self.v = v.copy()
        fastest = int(np.argmax(np.abs(v)))
        super().__init__(
            f"simulation diverged at t = {t:.6f} s: {reason}; the state before this step is kept "
            f"(largest |v| = {abs(v[fastest]):.4g} at index {fastest}). Usual causes: an explicit PD with "
            "kd*h/I_eff > 1, commands without limits, physics_dt too large, or a contact too stiff for its substeps"
        )


class RecordingError(BipedSimError):
    """A bag or run that cannot be read; the message names the file and what was found in it."""
