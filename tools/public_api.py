#!/usr/bin/env python3
"""Write the signatures of the public Python interface to docs/public_api.txt, one line each.

The public names are those of `bipedsim/__init__.pyi` and `EXTENSIONS`. The tool reads the sources and imports nothing,
so its output does not depend on the Python version. Without an option it prints the signatures.

Usage: python tools/public_api.py [--write]
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "public_api.txt"
COMMAND = "python tools/public_api.py --write"
EXTENSIONS = (
    "bipedsim.cli.CliCommand",
    "bipedsim.gym.BipedEnv",
    "bipedsim.sim.Participant",
    "bipedsim_ros.wire.Topic",
)
"""Public names outside the top of bipedsim: classes that other packages need to extend it."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AnnAssign | ast.Assign


class NotFoundError(Exception):
    """A public name has no definition."""


def offered(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the module and the name there of each name in the stub of a folder; a module has no name."""
    tree = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [statement for statement in tree.body if isinstance(statement, ast.ImportFrom)]
    return {
        alias.asname or alias.name: (one.module, alias.name) if one.module else (alias.name, "")
        for one in imports
        for alias in one.names
    }


def definition(path: Path, name: str) -> Definition:
    """Return the statement that defines a name, in the file of a module or through the stub of a folder.

    Raises:
        NotFoundError: No statement defines it.
    """
    if path.is_dir():
        module, name = offered(path)[name]
        return definition(path.joinpath(*module.split(".")), name)
    for statement in ast.parse(path.with_suffix(".py").read_text(encoding="utf-8")).body:
        match statement:
            case ast.ClassDef(name=found) | ast.FunctionDef(name=found) if found == name:
                return statement
            case ast.AnnAssign(target=ast.Name(id=found)) | ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                return statement
    raise NotFoundError(f"{path}: no definition of {name}")


def default(value: ast.expr | None) -> str:
    """Return the default of a field, which `param` takes as its first argument; empty if the field is required."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "param" and value.args:
        value = value.args[0]
    # Python 3.10 writes a space behind a lambda without arguments.
    return f" = {ast.unparse(value)}".replace("lambda :", "lambda:") if value else ""


def lines(name: str, node: ast.stmt) -> Iterator[str]:
    """Yield the signature of a function or constant, or a class and its public members."""
    match node:
        case ast.FunctionDef():
            decorators = [ast.unparse(one) for one in node.decorator_list]
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            kind = "".join(f"@{one} " for one in decorators if one in ("property", "classmethod", "staticmethod"))
            if not any(one.endswith((".setter", "overload")) for one in decorators):
                yield f"{kind}{name}({ast.unparse(node.args)}){returns}"
        case ast.AnnAssign():
            yield f"{name}: {ast.unparse(node.annotation)}{default(node.value)}"
        case ast.Assign(value=ast.Call() as call):
            yield f"{name}: {ast.unparse(call.func)}"
        case ast.Assign():
            yield f"{name}: constant"
        case ast.ClassDef():
            yield f"class {name}({', '.join(map(ast.unparse, node.bases))})"
            for member in node.body:
                found = member.target if isinstance(member, ast.AnnAssign) else member
                own = getattr(found, "name", getattr(found, "id", "_"))
                if not own.startswith("_") or own == "__init__":
                    yield from lines(f"{name}.{own}", member)


def signatures() -> str:
    """Return the text of the file."""
    result = ["# Made by `python tools/public_api.py --write`: the public Python interface (docs/versioning.md)."]
    for name, (module, imported) in sorted(offered(ROOT / "bipedsim").items()):
        if imported:
            result += lines(f"bipedsim.{name}", definition(ROOT / "bipedsim", name))
        else:
            for statement in ast.parse((ROOT / "bipedsim" / f"{module}.py").read_text(encoding="utf-8")).body:
                if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                    result += lines(f"bipedsim.{module}.{statement.name}", statement)
    for dotted in EXTENSIONS:
        *folder, name = dotted.split(".")
        result += lines(dotted, definition(ROOT.joinpath(*folder), name))
    return "\n".join(result) + "\n"


def main(arguments: list[str]) -> int:
    """Print or write the signatures; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the file instead of printing")
    if parser.parse_args(arguments).write:
        FILE.write_text(signatures(), encoding="utf-8")
    else:
        sys.stdout.write(signatures())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
