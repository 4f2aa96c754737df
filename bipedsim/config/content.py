"""Compute digests of code and files, so that a result records everything that it depends on."""

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
"""Name of the digest for the simulator's own code."""
_APART = ("cli", "gym", "view", "robots")
"""Packages that no run depends on, and the robots, which have digests of their own."""
_LIBRARIES = ("numpy", "scipy", "numba", "pin")
"""Distributions whose versions influence the bits of a run."""


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
    """Return one digest of all Python and YAML files below ``folder``, except for its subfolders ``without``.

    The result is cached, because edits do not change code that the process has loaded.
    """
    total = hashlib.sha256()
    for path in sorted(path for pattern in ("*.py", "*.yaml") for path in folder.rglob(pattern)):
        relative = path.relative_to(folder)
        if relative.parts[0] not in without:
            total.update(f"{relative.as_posix()}\0{digest_of(path)}\n".encode())
    return total.hexdigest()


@cache
def own_content() -> Mapping[str, str]:
    """Return the dependencies of every run: simulator digest, versions of libraries and Python, and processor."""
    return {
        OWN: package_digest(Path(__file__).parents[1], _APART),
        **{name: importlib.metadata.version(name) for name in _LIBRARIES},
        "Python": platform.python_version(),
        "machine": platform.machine(),
    }


def code_content(module: str) -> dict[str, str]:
    """Return the digests of a module and of all modules that it imports, by name.

    Imports are followed in the source, so imports within functions count. The standard library and the simulator (see
    :func:`own_content`) are not followed. An installed package is represented by its version, unless ``module`` is part
    of it. Imports by computed names are not found.

    A loaded module keeps the digest of the first call, because later edits of its file do not change the process.
    """
    digests: dict[str, str] = {}
    pending, seen = [module], {OWN}
    own_package = module.partition(".")[0]
    while pending:
        name = pending.pop()
        top = name.partition(".")[0]
        if name in seen or top == OWN or top in sys.stdlib_module_names:
            continue
        seen.add(name)
        spec = _spec(name)
        if spec is None:
            continue
        if top != own_package and _is_installed(spec):
            digests[top] = _version(top)
            continue
        pending += _parents(name)
        for path in _files(spec):
            with suppress(OSError):
                key = name if path.suffix != ".pyi" else f"{name} (.pyi)"
                digests[key] = _digest_as_loaded(name, path)
                pending += _imports(str(path), digest_of(path), name, spec.submodule_search_locations is not None)
    return digests


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the differences between two contents as text: ``mine has changed``, ``numpy 2.0.2 is 2.1.0 now``."""
    differences = []
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None:
            differences.append(f"{name} is new")
        elif after is None:
            differences.append(f"{name} is gone")
        elif len(before) == len(after) == 64:
            differences.append(f"{name} has changed")
        else:
            differences.append(f"{name} was {before} and is now {after}")
    return differences


_first: dict[str, tuple[object, str]] = {}
"""File of a module to the loaded module (or None) and the digest at the first call."""


def _digest_as_loaded(name: str, path: Path) -> str:
    module, now = sys.modules.get(name), digest_of(path)
    before, first = _first.get(str(path), (None, now))
    # A module that was reloaded or is not loaded has the digest of its present file.
    digest = first if module is not None and before in (None, module) else now
    _first[str(path)] = module, digest
    return digest


def _spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module without importing its parent packages; None if it does not exist."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    parent = name.rpartition(".")[0]
    if not parent:
        with suppress(ImportError, ValueError):
            return importlib.util.find_spec(name)
        return None
    parent_spec = _spec(parent)
    if parent_spec is None or parent_spec.submodule_search_locations is None:
        return None
    with suppress(ImportError, ValueError):
        return PathFinder.find_spec(name, list(parent_spec.submodule_search_locations))
    return None


def _files(spec: ModuleSpec) -> Iterator[Path]:
    """Yield the file of a module and its stub, which names the modules that a package loads lazily."""
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
    """Return the absolute names that the source of a module imports; some may be attributes instead of modules."""
    if not path.endswith((".py", ".pyi")):
        return ()
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError):
        return ()
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package_parts = name.split(".") if package else name.split(".")[:-1]
                package_parts = package_parts[: len(package_parts) - node.level + 1]
                base = ".".join([*package_parts, *([base] if base else [])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(name for name in dict.fromkeys(names) if name)


@cache
def _site() -> tuple[str, ...]:
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    return tuple(os.path.realpath(folder) + os.sep for folder in {*folders, site.getusersitepackages()})


def _is_installed(spec: ModuleSpec) -> bool:
    locations = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    if not locations or locations[0] in ("built-in", "frozen"):
        return True
    return any(os.path.realpath(location).startswith(_site()) for location in locations if location)


def _version(top: str) -> str:
    """Return the version of an installed package, or of the module itself."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(top)
    return str(getattr(sys.modules.get(top), "__version__", "installed"))
