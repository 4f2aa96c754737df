"""Check the fields of errors, so that tests do not depend on the words of a message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from bipedsim.errors import BipedSimError, ConfigError

E = TypeVar("E", bound=BipedSimError)


@contextmanager
def refusal(
    error: type[BipedSimError] = ConfigError, /, **fields: Any
) -> Iterator[pytest.ExceptionInfo[BipedSimError]]:
    """Check that an error is raised and has these fields.

    Args:
        error: Class of the error.
        fields: As for :func:`check_fields`.
    """
    with pytest.raises(error) as caught:
        yield caught
    check_fields(caught.value, **fields)


def check_fields(error: BaseException, **fields: Any) -> None:
    """Check attributes of an error.

    Args:
        error: The error.
        fields: Attribute to value. A ``place`` may also be the last part of the place of the error, such as the key
            without its file. ``cause`` is the class of the error that caused this one.
    """
    for name, expected in fields.items():
        if name == "place":
            found = getattr(error, name)
            assert f": {found}".endswith(f": {expected}"), f"place {found!r} is not {str(expected)!r}: {error}"
        elif name == "cause":
            assert isinstance(error.__cause__, expected), repr(error.__cause__)
        else:
            found = getattr(error, name)
            # NaN equals NaN only as a text.
            assert found == expected or repr(found) == repr(expected), (
                f"{name} = {found!r} is not {expected!r}: {error}"
            )


def faults_of(error: BaseException) -> set[tuple[str, Any]]:
    """Return the last part of the place of all errors in a group, and the unknown name, or the value."""
    assert isinstance(error, ConfigError)
    faults = error.faults or (error,)
    return {(fault.place.rpartition(": ")[2], repr(getattr(fault, "name", fault.value))) for fault in faults}
