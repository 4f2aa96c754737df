"""A kernel is compiled again if one of its dependencies changes in any file, and only then."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from kernels_support import keep_kernels_in
from numba.core import config as numba_config

from bipedsim.numerics import kernel_cache

FILES = {
    "__init__.py": "",
    "constants.py": """from enum import IntEnum
import numpy as np

GAIN = 2.0
TABLE = np.array([1.0, 10.0])

class Kind(IntEnum):
    LARGE = 1
""",
    "leaf.py": '''from bipedsim.numerics import kernel
from .constants import GAIN, TABLE, Kind

@kernel
def scale(x):
    """Multiply."""
    return GAIN * x

@kernel
def look_up(i):
    return TABLE[i] * Kind.LARGE.value
''',
    "other.py": """from bipedsim.numerics import kernel

OFFSET = 1.0

@kernel
def shift(x, by=3.0):
    return x + OFFSET + by

@kernel
def alone(x):
    return x - 1.0
""",
    "top.py": """from bipedsim.numerics import kernel
from . import other
from .leaf import look_up, scale

@kernel
def both(x):
    return other.shift(scale(x))

@kernel
def all_of_it(x):
    # The sum.
    return both(x) + look_up(1)
""",
}
KERNELS = {"leaf": ("scale", "look_up"), "other": ("shift", "alone"), "top": ("both", "all_of_it")}
EVERYTHING = {name for names in KERNELS.values() for name in names}


class Package:
    """A package on disk, loaded afresh as a new process would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "kernels_under_test"
        self.folder.mkdir()
        for name, text in FILES.items():
            (self.folder / name).write_text(text)

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def load(self) -> dict[str, ModuleType]:
        for name in [name for name in sys.modules if name.partition(".")[0] == self.folder.name]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return {name: importlib.import_module(f"{self.folder.name}.{name}") for name in KERNELS}

    def kernels(self) -> dict[str, Any]:
        """Return the kernels that are loaded."""
        return {
            name: getattr(sys.modules[f"{self.folder.name}.{file}"], name)
            for file, names in KERNELS.items()
            for name in names
        }

    def run(self) -> tuple[float, set[str]]:
        """Return the results of the kernels, after a comparison with the interpreter, and the names of the compiled
        kernels.
        """
        modules = self.load()
        compiled = modules["top"].all_of_it(1.0), modules["other"].alone(1.0)
        functions = self.kernels()
        for file, names in KERNELS.items():
            for name in names:
                setattr(modules[file], name, functions[name].py_func)
        modules["top"].scale, modules["top"].look_up = functions["scale"].py_func, functions["look_up"].py_func
        assert compiled == (modules["top"].all_of_it(1.0), modules["other"].alone(1.0)), "stale"
        return sum(compiled), {name for name, function in functions.items() if function.stats.cache_misses}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    keep_kernels_in(tmp_path / "cache", monkeypatch)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    kernel_cache.cache_folder.cache_clear()
    yield Package(tmp_path)
    kernel_cache.cache_folder.cache_clear()


def test_a_second_process_compiles_nothing(package: Package) -> None:
    value, compiled = package.run()
    assert compiled == EVERYTHING
    assert package.run() == (value, set())


EDITS: dict[str, tuple[tuple[str, str, str], set[str]]] = {
    "a docstring": (("leaf.py", '"""Multiply."""', '"""Return GAIN times x."""'), set()),
    "a docstring more": (("other.py", "    return x - 1.0", '    """One less."""\n    return x - 1.0'), set()),
    "a comment": (("top.py", "# The sum.", "# The sum of both,\n    # which is a number."), set()),
    "lines above": (("leaf.py", "from bipedsim", "\n\n\n# Kernels.\nfrom bipedsim"), set()),
    "another function of the file": (("other.py", "x - 1.0", "x - 2.0"), {"alone"}),
    "a callee in another file": (("leaf.py", "GAIN * x", "x * GAIN * 1.5"), {"scale", "both", "all_of_it"}),
    "a callee reached by its module": (("other.py", "+ OFFSET", "- OFFSET"), {"shift", "both", "all_of_it"}),
    "a constant in another file": (("constants.py", "GAIN = 2.0", "GAIN = 4.0"), {"scale", "both", "all_of_it"}),
    "a constant that becomes whole": (("constants.py", "GAIN = 2.0", "GAIN = 2"), {"scale", "both", "all_of_it"}),
    "a member of an enumeration": (("constants.py", "LARGE = 1", "LARGE = 4"), {"look_up", "all_of_it"}),
    "a number of an array": (("constants.py", "10.0", "11.0"), {"look_up", "all_of_it"}),
    "a default": (("other.py", "by=3.0", "by=5.0"), {"shift", "both", "all_of_it"}),
    "an option of the compiler": (
        ("other.py", "@kernel\ndef alone", "from bipedsim.numerics import entry\n@entry\ndef alone"),
        {"alone"},
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_compiles_what_depends_on_it(package: Package, edit: str) -> None:
    package.run()
    change, expected = EDITS[edit]
    package.edit(*change)
    assert package.run()[1] == expected
    assert package.run()[1] == set()


SETTINGS = {
    "BOUNDSCHECK": 0 if numba_config.BOUNDSCHECK else 1,
    "OPT": type(numba_config.OPT)("1"),
    "SLP_VECTORIZE": 1,
    "DEBUGINFO_DEFAULT": 1,
}


@pytest.mark.parametrize("name", SETTINGS)
def test_other_settings_of_the_compiler_are_other_code(
    package: Package, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stay in the cache, so alternating between them compiles each only once."""
    value, _ = package.run()
    package.load()
    caches = [function._cache for function in package.kernels().values()]
    assert kernel_cache.share_missing(caches) == 0.0
    with monkeypatch.context() as set_:
        assert getattr(kernel_cache.config, name) != SETTINGS[name]
        set_.setattr(kernel_cache.config, name, SETTINGS[name])
        assert kernel_cache.share_missing(caches) == 1.0, "a promise of few seconds would be false"
        assert package.run() == (value, EVERYTHING)
        assert package.run() == (value, set())
    assert package.run() == (value, set())


def test_a_kernel_kept_without_checks_of_bounds_is_not_taken_where_they_are_asked_for(package: Package) -> None:
    package.load()["leaf"].look_up(1)
    folder = package.folder.parent
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from kernels_under_test.top import look_up\nlook_up(1), look_up(2)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "NUMBA_BOUNDSCHECK": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("IndexError: index is out of bounds")


GENERATED = """from numba import types
from numba.extending import intrinsic
from bipedsim.numerics import kernel

@intrinsic
def twice(typing, x):
    def generate(context, builder, signature, arguments):
        return builder.fmul(arguments[0], context.get_constant(types.float64, 2.0))
    return types.float64(types.float64), generate

@kernel
def use(x):
    return twice(x)
"""


def test_an_edit_of_code_that_is_generated_is_noticed(package: Package) -> None:
    for factor in (2.0, 3.0, 2.0):
        (package.folder / "generated.py").write_text(GENERATED.replace("2.0", str(factor)))
        package.load()
        kernel = importlib.import_module(f"{package.folder.name}.generated").use
        assert kernel(5.0) == 5.0 * factor
    assert kernel.stats.cache_hits


def test_edits_one_after_the_other_are_never_stale(package: Package) -> None:
    """Random numbers everywhere.

    Each result is compared with the interpreter's, and going back costs no compilation.
    """
    rng = np.random.default_rng(0)
    constants = FILES["constants.py"].replace("2.0", "{}").replace("10.0", "{}")
    numbers = [[2.0, 10.0]]
    for _ in range(5):
        numbers.append([*numbers[-1]])
        numbers[-1][rng.integers(2)] = float(rng.normal())
    for row in numbers:
        (package.folder / "constants.py").write_text(constants.format(*row))
        package.run()
    (package.folder / "constants.py").write_text(constants.format(*numbers[-2]))
    assert package.run()[1] == set()


def test_old_versions_go(package: Package) -> None:
    for number in range(6):
        package.edit("other.py", "x - ", f"x - {number}.0 - ")
        package.run()
    files = sorted(path.name for path in (package.folder.parent / "cache").iterdir())
    assert len([name for name in files if ".alone-" in name]) == kernel_cache.KEPT
    assert len([name for name in files if ".scale-" in name]) == 1
    assert all(name.endswith(".nbc") for name in files if name != "claims")


DAMAGE = {
    "cut off": lambda kept: kept[:100],
    "empty": lambda kept: b"",
    "random": lambda kept: np.random.default_rng(1).bytes(len(kept)),
    "another value": lambda kept: pickle.dumps(("bipedsim", 1)),
    "a class that is gone": lambda kept: kept.replace(b"numba.core", b"numba.gone"),
}


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_compiled_again(package: Package, damage: str) -> None:
    value, _ = package.run()
    for path in (package.folder.parent / "cache").glob("*.nbc"):
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert package.run() == (value, EVERYTHING)
    assert package.run() == (value, set())


def test_a_folder_that_takes_nothing_is_told_once(package: Package, capfd: pytest.CaptureFixture[str]) -> None:
    cache = package.folder.parent / "cache"
    cache.write_text("a file where the folder should be")
    kernel_cache._warn_not_stored.cache_clear()
    first, compiled = package.run()
    assert (package.run(), compiled) == ((first, EVERYTHING), EVERYTHING), "computes all the same"
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert str(cache) in lines[0]
    assert "NUMBA_CACHE_DIR" in lines[0]


@pytest.mark.long
def test_processes_at_the_same_time_compile_each_kernel_once(package: Package) -> None:
    folder = package.folder.parent
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from kernels_under_test.top import all_of_it, both, look_up, other, scale\n"
        "print(all_of_it(1.0), *(f.stats.cache_misses.total() for f in (all_of_it, both, look_up, other.shift, scale)))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}

    def start() -> subprocess.Popen[str]:
        python = [sys.executable, "-c", code]
        return subprocess.Popen(python, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def numbers(process: subprocess.Popen[str]) -> list[float]:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        return [float(word) for word in out.split()]

    made = np.sum([numbers(process) for process in [start(), start(), start()]], axis=0)
    assert made.tolist() == [3 * 16.0, 1, 1, 1, 1, 1]
    assert numbers(start()) == [16.0, 0, 0, 0, 0, 0]


def test_where_nothing_can_be_written_the_cache_of_the_user_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(kernel_cache.os, "access", lambda path, mode: False)
    kernel_cache.cache_folder.cache_clear()
    assert kernel_cache.cache_folder(tmp_path / "installed") == tmp_path / "home" / "bipedsim" / "kernels"
    kernel_cache.cache_folder.cache_clear()


@pytest.fixture
def shipped(package: Package, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of kernels as in a wheel; the package has an empty cache of its own."""
    package.run()
    folder = package.folder.parent / "shipped"
    (package.folder.parent / "cache").rename(folder)
    kernel_cache.finish_shipped(folder)
    monkeypatch.setattr(kernel_cache, "SHIPPED", folder)
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", "")
    kernel_cache.cache_folder.cache_clear()
    kernel_cache.why_not_shipped.cache_clear()
    return folder


def test_kernels_of_a_wheel_are_read_and_never_written(package: Package, shipped: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in shipped.iterdir()}
    assert package.run()[1] == set()
    assert kernel_cache.why_not_shipped() == ""
    package.edit("other.py", "x - 1.0", "x - 2.0")
    assert package.run()[1] == {"alone"}
    assert {path: path.stat().st_mtime_ns for path in shipped.iterdir()} == before
    assert [path.name.split("-")[0] for path in package.folder.glob("__pycache__/kernels/*.nbc")] == [
        "kernels_under_test.other.alone"
    ]


def test_one_flipped_bit_of_a_kernel_of_a_wheel_is_noticed(package: Package, shipped: Path) -> None:
    """Machine code with a wrong bit may load, and compute wrong numbers."""
    for path in shipped.glob("*.nbc"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert package.run()[1] == EVERYTHING


def test_a_folder_named_by_the_user_is_the_only_one(
    package: Package, shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_kernels_in(package.folder.parent / "own", monkeypatch)
    kernel_cache.cache_folder.cache_clear()
    assert package.run()[1] == EVERYTHING


def test_other_versions_than_those_of_the_wheel_are_named(shipped: Path) -> None:
    versions = {**kernel_cache.compiled_with(), "numba": "0.1.2"}
    (shipped / kernel_cache.VERSIONS).write_text(json.dumps(versions))
    kernel_cache.why_not_shipped.cache_clear()
    reason = kernel_cache.why_not_shipped()
    assert "0.1.2" in reason
    assert kernel_cache.numba.__version__ in reason
    assert kernel_cache.np.__version__ not in reason
