"""Cache of compiled functions on disk, keyed by everything on which the result depends.

numba's own cache compares the bytes of the source file. It compiles again after an edit of a comment, and it does not
notice an edit of a function or constant in another file. Here the key is the code itself:

- instructions and constants of the function and of every function that it calls,
- the values of the globals that they use,
- the compiler with its settings (``NUMBA_BOUNDSCHECK``, ``NUMBA_OPT`` ...).

Docstrings, comments and line numbers are not part of the key.

An installed wheel also brings kernels (:data:`SHIPPED`). They have the same keys and are only read.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dis import hasconst, opmap
from enum import Enum
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import config as numba_config, types
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from bipedsim.numerics.claims import FILE as CLAIMS, claim, release
from bipedsim.numerics.inner import is_inner, rebuild
from bipedsim.numerics.processor import target_portable

config: Any = numba_config

target_portable()  # The processor is part of every key.

KEPT = 3
"""Number of versions of a compiled function that are stored, for example for switching between two branches."""

SHIPPED = Path(__file__).parents[1] / "kernels"
"""Folder of the kernels that a wheel brings, which may be missing; ``tools/make_wheel.py`` writes it."""

VERSIONS = "versions.json"
"""File in :data:`SHIPPED`: the compiler and processor of its kernels, as in :func:`compiled_with`."""

_INNER = ".inner.nbc"
"""End of the file names of inner kernels."""

_CHECK_BYTES = 16
"""Length of the checksum at the begin of each file."""

_SHOWN = 16
"""Number of characters of a digest in a file name."""
_CONSTANTS = frozenset(hasconst)
_EXTENDED = opmap["EXTENDED_ARG"]
_GLOBAL = opmap["LOAD_GLOBAL"]
# Since Python 3.11 the lowest bit of the argument has another meaning.
_GLOBAL_SHIFT = 1 if sys.version_info >= (3, 11) else 0
# Packages whose versions are part of every key, so that their code is not.
_FOREIGN = frozenset({"builtins", "math", "cmath", "numba", "numpy", "llvmlite", "typing"})
_COMPILER = f"{sys.implementation.cache_tag} numba {numba.__version__} numpy {np.__version__} inner checked"
_SETTINGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DEBUG_JIT",
    "DEBUG_NRT",
    "EXTEND_VARIABLE_LIFETIMES",
    "FULL_TRACEBACKS",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
    "USING_SVML",
)
"""Settings of numba that change machine code. ``codegen.magic_tuple()`` covers the processor and its features."""


class KernelType(types.Type):
    """Numba type of a kernel in a box. It is defined by the kernel's name, so it is the same in all processes."""

    def __init__(self, module: str, qualname: str) -> None:
        self.module = module
        self.qualname = qualname
        super().__init__(f"kernel {module}.{qualname}")

    @classmethod
    def of(cls, kernel: Dispatcher) -> KernelType:
        """Return the type of ``kernel``.

        Raises:
            TypeError: The kernel is not a module-level function, so another process would not find it.
        """
        kernel_type = cls(kernel.py_func.__module__, kernel.py_func.__qualname__)
        if getattr(sys.modules.get(kernel_type.module), kernel_type.qualname, None) is not kernel:
            raise TypeError(f"{kernel_type.name} is not found by that name; a kernel must be a function of a module")
        return kernel_type

    def kernel(self) -> Dispatcher:
        """Import and return the kernel."""
        return getattr(importlib.import_module(self.module), self.qualname)


class _CodeDigest(NamedTuple):
    """Contribution of one function to a key: digest of its own code and constants, and the functions that it uses."""

    own: bytes
    calls: tuple[Any, ...]


@cache
def _code_digest(function: Any) -> _CodeDigest:
    """Return the contribution of a dispatcher or plain function; globals have their values at the first call."""
    options = ""
    if isinstance(function, Dispatcher):
        options = repr(sorted(item for item in function.targetoptions.items() if item[0] != "no_cpython_wrapper"))
        function = function.py_func
    calls: list[Any] = []
    tokens = [function.__module__, function.__qualname__, options]
    tokens += _value(function.__defaults__, (), calls)
    for cell in function.__closure__ or ():
        tokens += _value(cell.cell_contents, (), calls)
    for code in _codes(function.__code__):
        instructions, used = _instructions(code)
        tokens += instructions
        tokens += map(repr, (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount))
        for name in used:
            if name in function.__globals__:
                tokens += [name, *_value(function.__globals__[name], code.co_names, calls)]
    return _CodeDigest(hashlib.sha256("\0".join(tokens).encode()).digest(), tuple(calls))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield ``code`` and the code of the functions defined within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _instructions(code: CodeType) -> tuple[list[str], list[str]]:
    """Return instructions and the constants that they load, in order, and the names of the globals that they use.

    Indices of constants are removed, because they change when a docstring is added or removed.
    """
    raw = bytearray(code.co_code)
    loaded = []
    used = set()
    high = 0
    for i in range(0, len(raw), 2):
        operation = raw[i]
        if operation in _CONSTANTS:
            loaded.append(_constant(code.co_consts[high | raw[i + 1]]))
            raw[i + 1] = 0
        elif operation == _GLOBAL:
            used.add(code.co_names[(high | raw[i + 1]) >> _GLOBAL_SHIFT])
        high = (high | raw[i + 1]) << 8 if operation == _EXTENDED else 0
    return [raw.hex(), *loaded], sorted(used)


def _constant(value: Any) -> str:
    """Return ``value`` as text; sets are sorted, because their order varies between processes.

    Code objects are represented by their names, because :func:`_codes` covers their content.
    """
    if isinstance(value, CodeType):
        return value.co_name
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _value(value: Any, names: tuple[str, ...], calls: list[Any]) -> list[str]:
    """Return the value of a global of a function as text; append functions to ``calls``.

    ``names`` are all names in the code, hence all attributes that it may take from a module.
    """
    if isinstance(value, _Intrinsic):
        value = value._defn
    if isinstance(value, Dispatcher | FunctionType):
        top = getattr(value, "__module__", "") or ""
        if top.partition(".")[0] not in _FOREIGN:
            calls.append(value)
        return [f"{top}.{value.__qualname__}" if isinstance(value, FunctionType) else "kernel"]
    if isinstance(value, ModuleType):
        text = [value.__name__]
        if value.__name__.partition(".")[0] not in _FOREIGN:
            for name in names:
                if name in vars(value):
                    text += [name, *_value(vars(value)[name], (), calls)]
        return text
    if isinstance(value, np.ndarray):
        return [repr((value.dtype.str, value.shape)), hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, type):
        members = dict(value.__members__) if issubclass(value, Enum) else ""
        return [f"{value.__module__}.{value.__qualname__}", repr(getattr(value, "_fields", members))]
    if isinstance(value, tuple):
        return [type(value).__qualname__, *(text for member in value for text in _value(member, names, calls))]
    if hasattr(value, "__qualname__") or isinstance(value, np.ufunc):
        return [f"{getattr(value, '__module__', '')}.{value.__name__}"]
    return [type(value).__qualname__, repr(value)]


@cache
def digest(function: Any) -> str:
    """Return the digest of ``function`` and of all functions that it calls, over all files."""
    return _digest(function, _code_digest)


def _digest(function: Any, digest_of: Callable[[Any], _CodeDigest]) -> str:
    seen: set[Any] = set()
    waiting = [function]
    total = hashlib.sha256()
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            code = digest_of(current)
            total.update(code.own)
            waiting += reversed(code.calls)
    return total.hexdigest()


def _arguments(signature: Any) -> tuple[types.Type, ...]:
    return tuple(getattr(signature, "args", signature))


def _kernels_in(kind: types.Type) -> Iterator[KernelType]:
    """Yield the kernels contained in arguments of type ``kind``."""
    if isinstance(kind, KernelType):
        yield kind
    for inner in (*getattr(kind, "members", ()), getattr(kind, "arrays", None)):
        if inner is not None:
            yield from _kernels_in(inner)


@cache
def cache_folder(source: Path) -> Path:
    """Return the cache folder for functions of the folder ``source``: a subfolder, or the user's cache.

    ``NUMBA_CACHE_DIR`` overrides both, and the kernels of a wheel. Installations may share a folder, because digests of
    the content are part of the file names.
    """
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR)
    subfolder = source / "__pycache__" / "kernels"
    try:
        subfolder.mkdir(parents=True, exist_ok=True)
        if os.access(subfolder, os.W_OK):
            return subfolder
    except OSError:
        pass
    return _user_cache()


def _user_cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "bipedsim" / "kernels"


def _folders(source: Path) -> tuple[Path, ...]:
    """Return the folders in which to look for kernels of the folder ``source``."""
    return (cache_folder(source),) if config.CACHE_DIR else (SHIPPED, cache_folder(source))


def _compiler(codegen: Any) -> str:
    """Return a digest of the compiler, its settings and the target machine."""
    settings = [(name, repr(getattr(config, name, None))) for name in _SETTINGS]
    return hashlib.sha256(repr((_COMPILER, codegen.magic_tuple(), settings)).encode()).hexdigest()[: _SHOWN // 2]


def compiled_with() -> dict[str, str]:
    """Return Python, numba, numpy and processor of the kernels that this process compiles and loads, by name."""
    _, processor, _ = cpu_target.target_context.codegen().magic_tuple()
    return {
        "Python": sys.implementation.cache_tag or "",
        "numba": numba.__version__,
        "numpy": np.__version__,
        "processor": processor,
    }


@cache
def why_not_shipped() -> str:
    """Return why this process cannot use the kernels of the wheel, as text; empty if it can, or if there are none."""
    try:
        shipped: dict[str, str] = json.loads((SHIPPED / VERSIONS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    here = compiled_with()
    names = [name for name, value in shipped.items() if here.get(name) != value]
    if not names:
        return ""
    theirs, ours = (", ".join(f"{name} {versions.get(name)}" for name in names) for versions in (shipped, here))
    return f"the kernels that come with bipedsim are for {theirs}, and here is {ours}: they are compiled anew"


def _uses_shipped() -> bool:
    return not config.CACHE_DIR and (SHIPPED / VERSIONS).exists() and not why_not_shipped()


class StoredKernels(NamedTuple):
    """Kernels on disk that fit this process.

    Attributes:
        source: ``"wheel"`` if the installation brings kernels that fit, ``"cache"``, or ``"none"``.
        folder: Folder to which this process writes kernels of bipedsim.
        writable: Whether it can.
        files: Number of files, those of the wheel included.
        size: Their size [bytes].
    """

    source: str
    folder: Path
    writable: bool
    files: int
    size: int


def stored_kernels() -> StoredKernels:
    """Return the kernels on disk that this process can load, by compiler and processor; nothing is loaded."""
    folder = cache_folder(Path(__file__).parent)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    folders = {folder} if config.CACHE_DIR else {SHIPPED, _user_cache(), *SHIPPED.parent.rglob("__pycache__/kernels")}
    pattern = f"*-{_compiler(cpu_target.target_context.codegen())}*.nbc"
    sizes = [path.stat().st_size for each in folders for path in each.glob(pattern) if path.exists()]
    return StoredKernels(
        "wheel" if _uses_shipped() else "cache" if sizes else "none",
        folder,
        _is_writable(existing),
        len(sizes),
        sum(sizes),
    )


def _is_writable(folder: Path) -> bool:
    # Permissions do not say it: root may write everywhere, and no one to some file systems.
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def finish_shipped(folder: Path) -> None:
    """Make a cache ``folder`` one that a wheel can bring: remove inner kernels, and write :func:`compiled_with`.

    The machine code of an entry point contains its inner kernels. They are half of the size.
    """
    for path in (*folder.glob(f"*{_INNER}"), folder / CLAIMS):
        path.unlink(missing_ok=True)
    (folder / VERSIONS).write_text(json.dumps(compiled_with(), indent=2) + "\n", encoding="utf-8")


def share_missing(caches: Sequence[KernelCache]) -> float:
    """Return the fraction of functions without a stored version for any arguments; 0 if there are no functions.

    It is also 0 with the kernels of a wheel, which contain their inner kernels. Functions that take other functions as
    arguments count as missing. The contributions are not cached beyond this call, because some modules may be only
    partly loaded.
    """
    if _uses_shipped():
        return 0.0
    digest_of = cache(_code_digest.__wrapped__)
    stored = sum(versions._has_version(_digest(versions._kernel, digest_of)) for versions in caches)
    return 1.0 - stored / len(caches) if caches else 0.0


@cache
def _warn_not_stored(folder: Path, reason: str) -> None:
    """Warn on stderr, once per folder and process, that compiled kernels cannot be stored."""
    print(
        f"compiled kernels cannot be stored in {folder} ({reason}): they are compiled at every start; make room "
        "there, or name another folder by NUMBA_CACHE_DIR",
        file=sys.stderr,
        flush=True,
    )


def _checksum(data: bytes) -> bytes:
    """Return the checksum of the content of a file."""
    return hashlib.blake2b(data, digest_size=_CHECK_BYTES).digest()


class KernelCache(_Cache):
    """Cache of the compiled versions of one function, one file per version, in the interface that numba expects.

    Args:
        kernel: The function, compiled by numba.
        on_miss: Called before a version is compiled.
    """

    def __init__(self, kernel: Dispatcher, on_miss: Callable[[], None]) -> None:
        self._kernel = kernel
        self._on_miss = on_miss
        self._enabled = True
        function = kernel.py_func
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._source = Path(function.__code__.co_filename).absolute().parent

    @property
    def cache_path(self) -> str:
        """Folder of the files."""
        return str(cache_folder(self._source))

    def _has_version(self, code: str) -> bool:
        """Return whether a version of this code is stored for this compiler and machine."""
        context: Any = self._kernel.targetctx
        pattern = f"{self._name}-{_compiler(context.codegen())}*-{code[:_SHOWN]}.*"
        return any(True for folder in _folders(self._source) for _ in folder.glob(pattern))

    def enable(self) -> None:
        """Enable reading and writing of files."""
        self._enabled = True

    def disable(self) -> None:
        """Disable reading and writing of files."""
        self._enabled = False

    def flush(self) -> None:
        """Delete all versions."""
        for path in cache_folder(self._source).glob(f"{self._name}-*.nbc"):
            path.unlink(missing_ok=True)

    def _file(self, signature: Any, codegen: Any) -> str:
        """Return the name of the file: function, compiler and machine, argument types, and digest of the code."""
        arguments = _arguments(signature)
        code = digest(self._kernel)
        kernel_types = [kernel_type for kind in arguments for kernel_type in _kernels_in(kind)]
        if kernel_types:
            code += "".join(digest(kernel_type.kernel()) for kernel_type in kernel_types)
            code = hashlib.sha256(code.encode()).hexdigest()
        types_of = hashlib.sha256(repr([str(kind) for kind in arguments]).encode()).hexdigest()
        target = _compiler(codegen) + types_of[:_SHOWN]
        return f"{self._name}-{target}-{code[:_SHOWN]}{_INNER if is_inner(arguments) else '.nbc'}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the version for the signature ``sig``, or None; wait for another process that compiles it."""
        if not self._enabled:
            return None
        file = self._file(sig, target_context.codegen())
        inner = is_inner(_arguments(sig))

        def load(path: Path) -> Any:
            try:
                data = path.read_bytes()
                # Code of a damaged file could compute wrong numbers; it is compiled and written again.
                if _checksum(data[_CHECK_BYTES:]) != data[:_CHECK_BYTES]:
                    return None
                target_context.refresh()
                reduced = pickle.loads(data[_CHECK_BYTES:])
                return rebuild(target_context, reduced) if inner else CompileResult._rebuild(target_context, *reduced)
            except Exception:  # pickle and LLVM raise errors of all kinds
                return None

        for folder in _folders(self._source):
            compiled = load(folder / file)
            if compiled is not None:
                return compiled
        self._on_miss()
        path = cache_folder(self._source) / file
        claim(path)
        compiled = load(path)
        if compiled is not None:
            release(path)
        # Python cannot call a function that takes a pointer into a box, so its Python wrapper is not compiled.
        self._kernel.targetoptions["no_cpython_wrapper"] = inner
        return compiled

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store ``data`` and delete all but the last :data:`KEPT` versions; warn once if the disk is not writable."""
        if not self._enabled:
            return
        path = cache_folder(self._source) / self._file(sig, data.codegen)
        try:
            compiled = data._asdict()
            if compiled["lifted"] or compiled["library"].has_dynamic_globals:
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            # The file is replaced atomically, because other processes may read and write at the same time.
            part = path.with_suffix(f".{os.getpid()}.part")
            # numba would store a listing of the source with the types.
            reduced = dumps(data._replace(type_annotation="")._reduce())
            part.write_bytes(_checksum(reduced) + reduced)
            part.replace(path)
            versions = path.parent.glob(f"{path.stem.rpartition('-')[0]}-*.nbc")
            for old in sorted(versions, key=lambda other: other.stat().st_mtime, reverse=True)[KEPT:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _warn_not_stored(path.parent, error.strerror or str(error))
        finally:
            release(path)
