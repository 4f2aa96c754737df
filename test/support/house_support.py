"""Imports between the modules of the three packages, and the names in their folders."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paths import INSTALLED

PACKAGES = ("bipedsim", "bipedsim_ros", "bipedsim_studies")


@cache
def _imported(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the statements that import, inside functions and for type checkers too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))


def imports(path: Path) -> Iterator[str]:
    """Yield the names of all modules that a file imports, inside functions and for type checkers too."""
    for statement in _imported(path):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif statement.module and not statement.level:
            yield statement.module


@cache
def modules(root: Path = INSTALLED) -> Mapping[str, Path]:
    """Return the file of every module and folder by its dotted name."""
    files = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


@cache
def named(stub: Path) -> Mapping[str, str]:
    """Return the names that a folder's stub offers, each with the module, seen from the folder, that it comes from.

    A module that is offered itself comes from ``""``.
    """
    statements = [s for s in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(s, ast.ImportFrom)]
    return {alias.name: statement.module or "" for statement in statements for alias in statement.names}


@dataclass(frozen=True)
class Import:
    """One name that a module imports from the three packages.

    Attributes:
        importer: The module.
        written: The module or folder of the statement; also a module in a folder whose stub does not export it.
        target: The module that the name comes from: a folder's names are followed through its stub.
    """

    importer: str
    written: str
    target: str


def package_imports(root: Path = INSTALLED) -> Iterator[Import]:
    """Yield all imports of the three packages from each other, inside functions and for type checkers too."""
    known = modules(root)
    for name, path in known.items():
        for statement in _imported(path):
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    if alias.name in known:
                        yield Import(name, alias.name, alias.name)
            elif statement.module in known:
                for alias in statement.names:
                    yield Import(name, *_followed(statement.module, alias.name, known))


def _followed(source: str, name: str, known: Mapping[str, Path]) -> tuple[str, str]:
    """Return the written and the actual source of ``name``, imported from ``source``."""
    module, stub = f"{source}.{name}", known[source].with_name("__init__.pyi")
    offered = named(stub) if is_folder(source) and stub.is_file() else {}
    if offered.get(name):
        return source, _followed(f"{source}.{offered[name]}", name, known)[1]
    if module in known:
        return source if name in offered else module, module
    return source, source


def is_folder(module: str) -> bool:
    """Return whether this is a folder and no file."""
    return modules()[module].name == "__init__.py"


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other over ``edges``, each sorted: none without a circle."""
    order: list[str] = []
    seen: set[str] = set()
    for start in edges:
        stack = [(start, iter(edges[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            following = next((other for other in rest if other not in seen), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(edges.get(following, ()))))
    back: dict[str, set[str]] = {}
    for node, others in edges.items():
        for other in others:
            back.setdefault(other, set()).add(node)
    found, taken = [], set()
    for root in reversed(order):
        group, stack_ = [], [root]
        while stack_:
            node = stack_.pop()
            if node not in taken:
                taken.add(node)
                group.append(node)
                stack_ += back.get(node, ())
        if len(group) > 1:
            found.append(sorted(group))
    return sorted(found)


@cache
def defined(path: Path) -> set[str]:
    """Return the names that a module has at its top level."""
    names: set[str] = set()
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
            names.add(statement.id)
    return names
