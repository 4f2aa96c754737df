"""No loop of compiled code may be endless: each `while` in the source counts up to a limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from house_support import modules

COUNTED_ELSEWHERE = {
    ("bipedsim.contact.time_stepping.cone_solver", "solve_cones"): "its blocks count in q.used up to q.iterations",
    ("bipedsim.contact.time_stepping.points", "solve_points"): "its blocks count in q.used up to q.iterations",
    ("bipedsim.contact.time_stepping.lcp_problem", "spread"): "goes on to the next foot, whose contacts are counted",
    ("bipedsim.objects.nearest", "find_nearest"): "the shapes shrink by a factor up to a point",
    ("bipedsim.objects.parts", "_root"): "each round goes on to a smaller number",
    ("bipedsim.objects.stepping", "_collide"): "each round takes at least one pair",
    ("bipedsim.objects.stepping", "_part"): "each round takes at least one pair",
    ("bipedsim.numerics.polygons", "simplify"): "each round removes a vertex",
    ("bipedsim.view.thinned", "_keep_extremes"): "goes on to the next stretch, whose rows are counted",
}
"""Loops whose limit is in the functions that they call, and the reason why they end."""


def compiled(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module that are compiled."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = {ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in node.decorator_list}
            if names & {"kernel", "entry", "njit", "jit"}:
                yield node


def counted(loop: ast.While) -> set[str]:
    """Return the names that the loop itself counts: ``n += 1`` or ``n -= 1``, or by another number than 1."""
    steps = [node for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
    return {
        node.target.id
        for node in steps
        if isinstance(node.target, ast.Name) and isinstance(node.op, (ast.Add, ast.Sub))
    }


def ends(condition: ast.expr, names: set[str]) -> bool:
    """Whether a condition fails once a counted name has got to a limit."""
    if isinstance(condition, ast.BoolOp):
        return (any if isinstance(condition.op, ast.And) else all)(ends(value, names) for value in condition.values)
    if not isinstance(condition, ast.Compare) or not isinstance(condition.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        return False
    sides = (condition.left, *condition.comparators)
    # A sum of floats, such as time, may stand still.
    return any(isinstance(node, ast.Name) and node.id in names for side in sides for node in ast.walk(side))


def endless(source: str) -> list[tuple[str, int]]:
    """Return function and line of each `while` of compiled code that does not count up to a limit."""
    return [
        (function.name, node.lineno)
        for function in compiled(ast.parse(source))
        for node in ast.walk(function)
        if isinstance(node, ast.While) and not ends(node.test, counted(node))
    ]


@pytest.mark.parametrize("module", sorted(name for name in modules() if name.startswith("bipedsim.")))
def test_every_while_of_compiled_code_counts(module: str) -> None:
    path: Path = modules()[module]
    found = endless(path.read_text(encoding="utf-8"))
    assert [each for each in found if (module, each[0]) not in COUNTED_ELSEWHERE] == []


def test_the_list_of_exceptions_is_needed() -> None:
    for module, function in COUNTED_ELSEWHERE:
        assert function in [name for name, _ in endless(modules()[module].read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("condition", "body", "found"),
    [
        ("True", "n += 1", True),
        ("again", "again = False", True),
        ("n < 5", "n += 1", False),
        ("n < 5 or again", "n += 1", True),
        ("again and n < 5", "n += 1", False),
        ("n != 5", "n += 1", True),
    ],
)
def test_a_loop_without_a_limit_would_be_found(condition: str, body: str, found: bool) -> None:
    source = f"@kernel\ndef f(n, again):\n    while {condition}:\n        {body}\n"
    assert bool(endless(source)) == found
    assert endless(source.replace("@kernel\n", "")) == []
