"""Digests of code and files, so that a result knows the content of all that it came from."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

OWN = "bipedsim"
"""Name under which the code of the simulator counts as one."""
_APART = ("cli", "gym", "view", "robots")
"""Packages of it on which no run depends, and robots, of which each counts by itself."""
_LIBRARIES = ("numpy", "scipy", "numba", "pin")
"""Distributions whose versions change the bits of a run."""


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits.

    Raises:
        OSError: The file cannot be read.
    """
    state = path.stat()
    return _digest(str(path.absolute()), state.st_size, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=4096)
def _digest(path: str, *_state: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@cache
def package_digest(folder: Path, without: tuple[str, ...] = ()) -> str:
    """Return one digest of all Python and YAML files below ``folder``, except those in its folders ``without``.

    They are read once in a process: later edits do not change what the process runs.
    """
    total = hashlib.sha256()
    for path in sorted(path for pattern in ("*.py", "*.yaml") for path in folder.rglob(pattern)):
        place = path.relative_to(folder)
        if place.parts[0] not in without:
            total.update(f"{place.as_posix()}\0{digest_of(path)}\n".encode())
    return total.hexdigest()


@cache
def own_content() -> Mapping[str, str]:
    """Return what every run depends on: digest of the simulator, versions of its libraries and of Python, processor."""
    return {
        OWN: package_digest(Path(__file__).parents[1], _APART),
        **{name: importlib.metadata.version(name) for name in _LIBRARIES},
        "Python": platform.python_version(),
        "machine": platform.machine(),
    }


def code_content(module: str) -> dict[str, str]:
    """Return the digests of a module and of all modules that it imports, by name.

    Imports are followed through the source, so that those within functions count, too. Not followed are the standard
    library and the simulator (see :func:`own_content`). An installed package counts by its version, unless ``module``
    is in it. Modules that a name in a variable stands for are not found.

    A module that this process has loaded counts as it was when it was first asked for: later edits of its file do not
    change what the process runs.
    """
    found: dict[str, str] = {}
    waiting, seen = [module], {OWN}
    home = module.partition(".")[0]
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        if name in seen or top == OWN or top in sys.stdlib_module_names:
            continue
        seen.add(name)
        spec = _spec(name)
        if spec is None:
            continue
        if top != home and _is_installed(spec):
            found[top] = _version(top)
            continue
        waiting += _parents(name)
        for path in _files(spec):
            with suppress(OSError):
                key = name if path.suffix != ".pyi" else f"{name} (.pyi)"
                found[key] = _loaded(name, path)
                waiting += _imports(str(path), digest_of(path), name, spec.submodule_search_locations is not None)
    return found


def changes(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what differs between two contents, in words: ``mine has changed``, ``numpy: 2.1.0 was 2.0.2``."""
    said = []
    for name in sorted({*was, *now}):
        before, after = was.get(name), now.get(name)
        if before == after:
            continue
        if before is None:
            said.append(f"{name} is new")
        elif after is None:
            said.append(f"{name} is gone")
        elif len(before) == len(after) == 64:
            said.append(f"{name} has changed")
        else:
            said.append(f"{name} {before} is {after} now")
    return said


_first: dict[str, tuple[object, str]] = {}
"""Each file of a module: the module that was loaded, if it was, and the digest when it was first asked for."""


def _loaded(name: str, path: Path) -> str:
    module, now = sys.modules.get(name), digest_of(path)
    before, first = _first.get(str(path), (None, now))
    # A module that has been loaded anew, or not at all, is what its file is now.
    digest = first if module is not None and before in (None, module) else now
    _first[str(path)] = module, digest
    return digest


def _spec(name: str) -> ModuleSpec | None:
    """Return where a module is, without importing the packages around it; None if it is not there."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    parent = name.rpartition(".")[0]
    if not parent:
        with suppress(ImportError, ValueError):
            return importlib.util.find_spec(name)
        return None
    above = _spec(parent)
    if above is None or above.submodule_search_locations is None:
        return None
    with suppress(ImportError, ValueError):
        return PathFinder.find_spec(name, list(above.submodule_search_locations))
    return None


def _files(spec: ModuleSpec) -> Iterator[Path]:
    """Yield the file of a module, and its stub: what a package loads lazily is named there alone."""
    if spec.origin is None or not os.path.isfile(spec.origin):
        return
    path = Path(spec.origin)
    yield path
    stub = path.with_suffix(".pyi")
    if stub.is_file():
        yield stub


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


@lru_cache(maxsize=1024)
def _imports(path: str, _digest: str, name: str, package: bool) -> tuple[str, ...]:
    """Return the names that the source of a module imports, absolute; what is no module among them is not found."""
    if not path.endswith((".py", ".pyi")):
        return ()
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError):
        return ()
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                around = name.split(".") if package else name.split(".")[:-1]
                around = around[: len(around) - node.level + 1]
                base = ".".join([*around, *([base] if base else [])])
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(one for one in dict.fromkeys(found) if one)


@cache
def _site() -> tuple[str, ...]:
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    return tuple(os.path.realpath(folder) + os.sep for folder in {*folders, site.getusersitepackages()})


def _is_installed(spec: ModuleSpec) -> bool:
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    if not places or places[0] in ("built-in", "frozen"):
        return True
    return any(os.path.realpath(place).startswith(_site()) for place in places if place)


def _version(top: str) -> str:
    """Return the version of an installed package, or of the module itself."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(top)
    return str(getattr(sys.modules.get(top), "__version__", "installed"))
