"""Rules of the architecture that a reader could break without noticing."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from house_support import circles, defined, imports, is_folder, modules, named, package_imports
from paths import INSTALLED, ROOT

MOST_ABOUT_WORDING = 40
LONGEST_CLASS = 400
OF_ROS = ("rclpy", "launch", "launch_ros", "ament_index_python", "rosidl_runtime_py", "builtin_interfaces", "tf2_ros")


def of_ros(module: str) -> bool:
    top = module.split(".")[0]
    return top in OF_ROS or top.endswith(("_msgs", "_srvs", "_interfaces"))


@pytest.mark.parametrize(
    "path", sorted(INSTALLED.glob("bipedsim/**/*.py")), ids=lambda path: str(path.relative_to(INSTALLED))
)
def test_the_physics_never_imports_ros(path: Path) -> None:
    assert [name for name in imports(path) if of_ros(name)] == []


def test_a_ros_import_would_be_found() -> None:
    assert list(filter(of_ros, imports(INSTALLED / "bipedsim_ros" / "nodes" / "sim_node.py")))
    assert of_ros("sensor_msgs.msg")
    assert not of_ros("numpy.linalg")


AFTER_3_10 = {
    "asyncio": {"Barrier", "Runner", "TaskGroup", "timeout", "timeout_at"},
    "contextlib": {"chdir"},
    "datetime": {"UTC"},
    "enum": {"EnumCheck", "FlagBoundary", "ReprEnum", "StrEnum", "member", "nonmember", "property", "verify"},
    "itertools": {"batched"},
    "math": {"cbrt", "exp2", "fma", "sumprod"},
    "tomllib": {"load", "loads"},
    "typing": {
        *("LiteralString", "Never", "NotRequired", "Required", "Self", "TypeVarTuple", "Unpack"),
        *("TypeAliasType", "ReadOnly", "TypeIs", "NoDefault"),
        *("assert_never", "assert_type", "clear_overloads", "dataclass_transform", "get_overloads", "override"),
        "reveal_type",
    },
    "warnings": {"deprecated"},
}
"""Names of the standard library that Python 3.10, the oldest one of setup.py, does not have."""


def too_new(text: str) -> list[str]:
    """Return the names of :data:`AFTER_3_10` that a module imports, or uses as attributes."""
    tree = ast.parse(text)
    imported = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    used = [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    late = {f"{module}.{name}" for module, names in AFTER_3_10.items() for name in names}
    return sorted({*imported, *used} & late)


@pytest.mark.parametrize("package", ["bipedsim", "bipedsim_ros", "bipedsim_studies"])
def test_no_module_needs_a_newer_python_than_setup_py(package: str) -> None:
    found = {path.name: too_new(path.read_text(encoding="utf-8")) for path in INSTALLED.glob(f"{package}/**/*.py")}
    assert len(found) > 10
    assert {name: names for name, names in found.items() if names} == {}


def test_a_name_that_is_too_new_would_be_found() -> None:
    assert too_new("from typing import Any, Self\nimport math\nmath.cbrt(8.0)\nmath.sqrt(4.0)") == [
        "math.cbrt",
        "typing.Self",
    ]


def test_the_simulator_knows_neither_nodes_nor_studies_and_these_not_each_other() -> None:
    rooms = {(i.importer.split(".")[0], i.target.split(".")[0]) for i in package_imports()}
    assert {(a, b) for a, b in rooms if a != b} == {("bipedsim_ros", "bipedsim"), ("bipedsim_studies", "bipedsim")}


def test_no_modules_import_each_other_in_a_circle() -> None:
    edges: dict[str, set[str]] = {name: set() for name in modules()}
    for found in package_imports():
        if found.target != found.importer:
            edges[found.importer].add(found.target)
    assert circles(edges) == []


def test_a_circle_would_be_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_at_the_top_there_are_only_folders_errors_and_the_public_names() -> None:
    files = {path.name for path in (INSTALLED / "bipedsim").iterdir() if path.is_file()}
    assert files == {"__init__.py", "__init__.pyi", "errors.py", "py.typed"}


def test_nobody_imports_past_a_folder_from_outside() -> None:
    """A name at the top of a package is public."""
    past = []
    for found in package_imports():
        folder = found.written.rpartition(".")[0]
        if not is_folder(found.written) and "." in folder and not f"{found.importer}.".startswith(f"{folder}."):
            past.append(f"{found.importer} imports {found.written}")
    assert past == []


STUBS = sorted(INSTALLED.glob("bipedsim*/**/__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: str(path.parent.relative_to(INSTALLED)))
def test_a_folder_names_what_there_is(stub: Path) -> None:
    names = named(stub)
    for name, module in names.items():
        below = stub.parent.joinpath(*module.split("."))
        if not module:
            assert below.joinpath(f"{name}.py").is_file() or below.joinpath(name, "__init__.py").is_file(), name
        elif below.is_dir():
            assert name in named(below / "__init__.pyi")
        else:
            assert name in defined(below.with_suffix(".py")), f"{module}.py has no {name}"
    # Type checkers take `import x as x` of a stub for a public name, and `import x` for a private one.
    imported = [
        alias for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert [alias.name for alias in imported if alias.asname != alias.name] == []


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: str(path.parent.relative_to(INSTALLED)))
def test_no_public_name_is_that_of_a_module(stub: Path) -> None:
    """Once the module is imported, Python returns it for `from bipedsim.x import name`, and never asks for the name."""
    modules = {path.stem for path in stub.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert [name for name, module in named(stub).items() if module and name in modules] == []


@pytest.mark.parametrize("package", ["bipedsim", "bipedsim_ros", "bipedsim_studies"])
def test_a_class_name_has_one_meaning_in_a_package(package: str) -> None:
    names = Counter(
        node.name
        for path in (INSTALLED / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def loaded_by(module: str) -> set[str]:
    """Return the modules that importing ``module`` loads, found out in a fresh process."""
    code = f"import sys, {module}; print(*sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(INSTALLED), os.environ.get("PYTHONPATH", "")])}
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("package", ["bipedsim", "bipedsim_ros", "bipedsim_studies", "tools"])
def test_no_class_is_so_long_that_it_has_several_responsibilities(package: str) -> None:
    """A longer class is split by responsibility. ruff limits functions: complexity and number of arguments."""
    long = [
        f"{path.relative_to(ROOT)}: {node.name} has {length} lines"
        for path in ROOT.glob(f"{package}/**/*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_CLASS
    ]
    assert long == []


def test_few_tests_are_about_wording() -> None:
    """Tests use the class and the fields of an error.

    The wording is in docs/messages.md, which another test compares.
    """
    found = [line for path in ROOT.glob("test/**/*.py") for line in path.read_text("utf-8").splitlines()]
    matches = [line for line in found if re.search(r"pytest\.(raises|warns)\(.*match=|in str\((caught|error)", line)]
    assert len(matches) <= MOST_ABOUT_WORDING, "use refusal() of test/support/refusals.py"


def test_the_controller_node_knows_no_simulator() -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    loaded = loaded_by("bipedsim_ros.nodes.controller_node")
    assert "bipedsim.control.base" in loaded
    assert [
        name for name in loaded if name.startswith(("bipedsim.sim.simulator", "bipedsim.contact", "bipedsim.ground"))
    ] == []


@pytest.mark.parametrize("module", ["bipedsim_ros.nodes.sim_node", "bipedsim_ros.bringup.bringup"])
def test_what_starts_often_leaves_to_others_what_few_runs_need(module: str) -> None:
    """Splines and filters of scipy, and matplotlib, take longer to import than all the rest of a node."""
    if "nodes" in module:
        pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    slow = {"scipy.interpolate", "scipy.signal", "scipy.ndimage", "matplotlib"}
    assert not slow & loaded_by(module)


def test_help_needs_no_ros() -> None:
    """``bipedsim up --help`` and the launch file read a table that loads neither nodes nor simulator."""
    loaded = loaded_by("bipedsim_ros.bringup.bringup")
    assert "bipedsim.sim.simulator" not in loaded
    assert "bipedsim_ros.nodes.sim_node" not in loaded


def test_ci_runs_a_test_of_every_study() -> None:
    """Those of ``study`` and ``score`` are in ``make test`` as a whole."""
    files = list(ROOT.glob("test/studies/*/test_*.py"))
    in_ci = {path.parent.name for path in files if "pytest.mark.ci" in path.read_text(encoding="utf-8")}
    assert {path.parent.name for path in files} - in_ci == {"study", "score"}
