"""Errors that bipedsim raises on purpose; each message says what, where, and the way out."""

from __future__ import annotations

import copy
import difflib
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INCOMPLETE, EXIT_FELL, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes of commands and nodes: done; what was asked for failed or missed its figures; wrong input; done, with what
could be read of a damaged or unfinished recording; the robot fell, with ``--fail-on-fall``; Ctrl-C."""

SHOWN = 400
"""Characters of a value in a message."""
OF_PACKAGE = 4
"""Choices of another package that a message lists."""


_NONE: Any = object()
E = TypeVar("E", bound="BipedSimError")


class BipedSimError(Exception):
    """Base of every error that bipedsim raises on purpose; all of them come whole out of a pool of processes.

    Args:
        text: What is wrong and the way out, or another error. The message is ``PLACE: TEXT`` or ``PLACE = VALUE TEXT``.
        place: File and key, argument, or object that is wrong; empty if the text says all.
        value: The value there.

    Attributes:
        place: As above, followed by the place of the other error.
        value: As above, arrays and tuples as lists; None without one.
        faults: The errors of which this one consists; empty for a single one.
    """

    faults: tuple[BipedSimError, ...] = ()

    def __init__(self, text: object, place: object = "", value: Any = _NONE) -> None:
        inner = text if isinstance(text, BipedSimError) else None
        self.place: str = ": ".join(filter(None, (str(place), inner.place if inner else "")))
        self.value: Any = inner.value if inner else None if value is _NONE else _plain(value)
        prefix = f"{place}: " if value is _NONE else f"{place} = {shown(value)} "
        super().__init__(f"{prefix}{text}" if str(place) else str(text))

    def within(self: E, place: object) -> E:
        """Return this error with ``place`` before its own place, such as the file before a key."""
        error = copy.copy(self)
        error.args = (f"{place}: {self}",)
        error.place = f"{place}: {self.place}" if self.place else str(place)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception would call the constructor with the message alone, which is not what constructors here take.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[BipedSimError], args: tuple[Any, ...], attributes: dict[str, Any]) -> BipedSimError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(attributes)
    return error


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else list(value) if isinstance(value, tuple) else value


def shown(value: Any) -> str:
    """Return a value as a message shows it: what is long is cut."""
    try:
        text = repr(_plain(value))
    except ValueError:
        # Python writes no number of more than 4300 digits.
        text = "a number of thousands of digits"
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}...{text[-SHOWN // 4 :]}"


def some(names: Sequence[str], most: int = 8) -> str:
    """Return names for a sentence; of many the first ones, and how many more there are."""
    listed = ", ".join(names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


def either(names: Sequence[str]) -> str:
    """Return names of which one suffices, joined by commas and 'or'.

    >>> either(["/a", "/b", "/c"]), either(["/a"])
    ('/a, /b or /c', '/a')
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def install(requirement: str) -> str:
    """Return the command that installs something, such as an extra of setup.py, next to the running bipedsim.

    It names the Python: bipedsim is installed from its sources and in no registry, so that another Python's pip would
    not find it.

    >>> install("bipedsim[view]").endswith(" -m pip install 'bipedsim[view]'")
    True
    """
    found = shutil.which("python")
    same = found is not None and os.path.abspath(found) == os.path.abspath(sys.executable)
    return f"{'python' if same else sys.executable} -m pip install '{requirement}'"


def closest(name: str, choices: Iterable[str]) -> str:
    """Return which of the choices was probably meant, or an empty string.

    It is one that begins with ``name``, has its letters in another order, or is nearly it.

    >>> closest("real", ["ideal", "realistic"])
    'realistic'
    >>> closest("pk", ["pose", "kp", "kd"])
    'kp'
    """
    choices = tuple(choices)
    longer = [choice for choice in choices if len(name) > 1 and choice.startswith(name)]
    turned = [choice for choice in choices if sorted(choice) == sorted(name)]
    near = difflib.get_close_matches(name, choices, n=1)
    return min(longer, key=len) if longer else next(iter([*turned, *near]), "")


def number_in(text: str, otherwise: str = "1") -> str:
    """Return the number that a text begins with, as an example of how to give one; ``otherwise`` where there is none.

    >>> [number_in(text) for text in ("5s", "0,25", "fast")]
    ['5', '0.25', '1']
    """
    found = re.match(r"[+-]?\d+(?:[.,]\d+)?", text.strip())
    return found[0].replace(",", ".") if found else otherwise


class ConfigError(BipedSimError):
    """A file, argument or parameter is wrong; the message names file, key, value and choices."""


class InvalidSyntaxError(ConfigError):
    """A text breaks the syntax of its language.

    Args:
        language: Name of the language, such as ``"YAML"``.
        place: File or parameter with the text.
        line: The line with the fault.
        position: Number of this line and of the column with the fault, both from 1.
        why: The fault and its usual cause.
    """

    def __init__(self, language: str, place: object, line: str, position: tuple[int, int], why: str) -> None:
        at = f"line {position[0]}, column {position[1]}"
        super().__init__(f"not valid {language} in {at}, {shown(line)}: {why}", place)
        self.value = line
        self.position = position


class MeasurementError(ConfigError):
    """Measurements from which a controller cannot start; the next ones may do."""


class InvalidCommandError(ConfigError):
    """A controller returned an invalid command.

    Args:
        received: Description of the returned value.
        expected: Description of a valid value; empty if ``received`` implies it.

    Attributes:
        detail: Both in one sentence.
    """

    def __init__(self, received: str, expected: str = "") -> None:
        self.received = received
        self.expected = expected
        self.detail = f"{received}; {expected}" if expected else received
        super().__init__(f"the controller's update returned {self.detail}")


class UnknownNameError(ConfigError):
    """A name that no table or model knows.

    Args:
        kind: What was looked up, such as ``"robot"``.
        name: The name that was given.
        choices: The names that exist.
        where: File and key that hold the name, when it came from a file.
        otherwise: What else may be given there, such as ``"the path of a file"``.
        packages: Package of each choice that another package provides. Of many, the message lists the first ones.

    Attributes:
        meant: The choice that was probably meant; empty if none is close.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        choices: Iterable[str],
        where: str = "",
        otherwise: str = "",
        packages: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.kind = kind
        self.name = name
        self.choices = tuple(choices)
        self.meant = closest(str(name), self.choices)
        hint = f"; did you mean {self.meant!r}?" if self.meant else "."
        listed = ", ".join(choice for choice in self.choices if choice not in packages) or "(none)"
        for package in dict.fromkeys(packages.values()):
            names = [choice for choice in self.choices if packages.get(choice) == package]
            listed += f"; of {package}: {some(names, OF_PACKAGE)}"
        listed += f"; or {otherwise}" if otherwise else ""
        super().__init__(f"unknown {kind} {shown(name)}{hint} Choices: {listed}", where)


class FailedError(BipedSimError):
    """The task failed although its input was correct; commands end with ``EXIT_FAILED``."""


class DivergenceError(FailedError):
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
        fastest = int(abs(v).argmax())
        super().__init__(
            f"simulation diverged at t = {t:.6f} s: {reason}; the state before this step is kept "
            f"(largest |v| = {abs(v[fastest]):.4g} at index {fastest}). Usual causes: an explicit PD with "
            "kd*h/I_eff > 1, commands without limits, physics_dt too large, or a contact too stiff for its substeps"
        )


class RecordingError(BipedSimError):
    """A bag or run that cannot be read; the message names the file and what was found in it."""


class DamagedError(RecordingError):
    """A bag or run of which damage has left nothing that can be read."""


class BipedSimWarning(UserWarning):
    """Base of all warnings of bipedsim. The command line prints each text once, without file and line."""


class IncompleteWarning(BipedSimWarning):
    """A recording is damaged or was not finished: what could be read was read, and the message says what is missing.

    The command line prints it and ends with ``EXIT_INCOMPLETE``.
    """


class ChangedWarning(BipedSimWarning):
    """A file that a recording came from has changed since: what is read from it now need not fit the recording."""


class OmittedWarning(BipedSimWarning):
    """A recording contains data that its tables and figures cannot show, or a scene parts that a ground cannot have."""


class DoubledWarning(BipedSimWarning):
    """The robot and its controller both contain a property, such as the damping of the drives, so it counts twice."""


class InferredWarning(BipedSimWarning):
    """An input lacks a value that affects the physics, such as the scale of an image, so a default is used."""


class ControllerWarning(BipedSimWarning):
    """A controller cannot follow its command, or reports faulty measurements or unsuitable gains."""


def warn_controller(message: str) -> None:
    """Report a command that a controller cannot follow, faulty measurements, or unsuitable gains."""
    warnings.warn(ControllerWarning(message), stacklevel=3)


def warn_inferred(message: str) -> None:
    """Report a default that is used because an input lacks a value."""
    warnings.warn(InferredWarning(message), stacklevel=2)


def warn_doubled(message: str) -> None:
    """Report a property that counts twice."""
    warnings.warn(DoubledWarning(message), stacklevel=2)


def warn_omitted(message: str) -> None:
    """Report data that tables and figures of a recording omit, or parts of a scene that a ground omits."""
    warnings.warn(OmittedWarning(message), stacklevel=2)


def warn_changed(message: str) -> None:
    """Report that a file has changed since a recording was made."""
    warnings.warn(ChangedWarning(message), stacklevel=2)


def warn_incomplete(message: str) -> None:
    """Tell that a recording could not be read whole."""
    warnings.warn(IncompleteWarning(message), stacklevel=2)
