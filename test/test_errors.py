"""Errors pass unchanged between processes, and their hints name the intended word."""

from __future__ import annotations

import importlib
import inspect
import pickle
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from paths import INSTALLED
from pool_support import refuse
from refusals import refusal

from bipedsim.errors import BipedSimError, DivergenceError, UnknownNameError, closest, install
from bipedsim.runs.worker_pool import WorkerPool


def subclasses(cls: type[BipedSimError]) -> Iterator[type[BipedSimError]]:
    yield cls
    for sub in cls.__subclasses__():
        yield from subclasses(sub)


def every_error() -> list[type[BipedSimError]]:
    """Return all classes of errors, wherever in the packages they are."""
    for path in sorted(INSTALLED.glob("bipedsim*/**/*.py")):
        if re.search(r"class \w+Error\(\w+Error\)", path.read_text(encoding="utf-8")):
            try:
                importlib.import_module(".".join(path.relative_to(INSTALLED).with_suffix("").parts))
            except ModuleNotFoundError as error:
                if error.name != "rclpy":  # Without ROS 2, the errors of its modules cannot occur.
                    raise
    return sorted(set(subclasses(BipedSimError)), key=lambda cls: cls.__name__)


VALUES = {
    "choices": ("one", "two"),
    "packages": {"two": "theirs"},
    "position": (2, 11),
    "t": 0.25,
    "q": np.array([1.0, 2.0]),
    "v": np.array([-3.0, 0.5]),
}


@pytest.mark.long
@pytest.mark.parametrize("cls", every_error(), ids=lambda cls: cls.__name__)
@given(text=st.text())
def test_every_error_survives_the_way_through_a_pool(cls: type[BipedSimError], text: str) -> None:
    names = inspect.signature(cls.__init__).parameters if "__init__" in vars(cls) else ["self", "message"]
    error = cls(*(VALUES.get(name, text) for name in names if name != "self"))
    error.__notes__ = ["seen in trial 3"]
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is cls
    assert str(back) == str(error)
    assert back.args == error.args
    assert vars(back).keys() == vars(error).keys()
    for name, value in vars(error).items():
        np.testing.assert_array_equal(getattr(back, name), value)


def test_the_table_of_errors_holds_those_with_constructors_of_their_own() -> None:
    names = {cls.__name__ for cls in every_error()}
    assert names >= {"UnknownNameError", "DivergenceError", "EngineUnavailableError", "NoImpactOutcomeError"}


def test_choices_of_other_packages_are_named_with_their_package_and_not_all_listed() -> None:
    theirs = {f"body_{i}": "studies" for i in range(20)}
    error = UnknownNameError("robot", "body_13x", ["talos", *theirs], packages=theirs)
    assert error.choices == ("talos", *theirs)
    assert error.meant == "body_13", "a name that is not listed can be meant"
    own, _, others = str(error).partition("studies")
    assert "talos" in own
    assert not any(name in own.split("?")[1] for name in theirs)
    assert sum(f"{name}," in f"{others}," for name in theirs) < len(theirs)


def test_a_pool_hands_on_what_was_wrong() -> None:
    with refusal(UnknownNameError, place="here", kind="robot", name="talo", meant="talos"), WorkerPool(1) as pool:
        pool.submit(refuse, "talo").result()


@pytest.mark.parametrize(
    ("typed", "choices", "meant"),
    [
        ("real", ("ideal", "realistic"), "realistic"),
        ("force", ("frame", "force_over_weight"), "force_over_weight"),
        ("postur", ("zmp", "posture"), "posture"),
        ("biped41", ("talos", "biped14"), "biped14"),
        ("walk", ("walk_fast_and_far", "walks"), "walks"),
        ("penalty", ("one_step", "lcp"), ""),
        ("", ("lcp",), ""),
        ("l", ("lcp",), ""),
    ],
)
def test_what_was_meant_begins_with_what_was_typed_or_is_spelt_nearly_so(
    typed: str, choices: tuple[str, ...], meant: str
) -> None:
    assert closest(typed, choices) == meant


def test_a_divergence_holds_copies_of_the_last_state() -> None:
    q, v = np.zeros(3), np.array([0.0, -7.0])
    error = DivergenceError("not finite", 1.5, q, v)
    q[:] = v[:] = 9.0
    assert not error.q.any()
    assert error.v[1] == -7.0
    assert "|v| = 7 at index 1" in str(error)


@pytest.mark.long
def test_what_is_missing_is_installed_into_the_python_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    words = shlex.split(install("bipedsim[view]"))
    assert words == [sys.executable, "-m", "pip", "install", "bipedsim[view]"]
    done = subprocess.run([*words[:4], "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert shlex.split(install("bipedsim[view]"))[0] == "python"


def test_there_is_one_such_hint() -> None:
    for package in ("bipedsim", "bipedsim_ros", "bipedsim_studies"):
        for path in (INSTALLED / package).rglob("*.py"):
            bare = "pip install 'bipedsim[" in path.read_text(encoding="utf-8")
            assert not bare or path.name == "errors.py", f"{path}: bipedsim.errors.install says which pip"
