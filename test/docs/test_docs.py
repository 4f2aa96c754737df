"""Statements of the documents that code can check: parameters, names, links and command lines."""

from __future__ import annotations

import argparse
import dataclasses
import pkgutil
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from docs_support import rows, section
from guide_support import blocks
from paths import INSTALLED, ROOT, STANDING

from bipedsim.cli.commands import make_parser
from bipedsim.cli.options import key_values, split_params
from bipedsim.config import without_prefix
from bipedsim.contact.models import CONTACT_MODELS, make_contact_model
from bipedsim.control.controllers import CONTROLLERS, find_controller
from bipedsim.dynamics.projection import Projection
from bipedsim.model import load_robot
from bipedsim.runs.scenario import SCENARIOS, Scenario
from bipedsim_ros.interfaces import INTERFACES
from bipedsim_studies.compare.figures import FIGURES
from bipedsim_studies.reproduce.papers import PAPERS, get_paper

DOCS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks" / "README.md"]
DOCS += sorted((ROOT / "examples").rglob("*.md"))
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


PARAMETER_HEAD = ["name", "default", "unit", "meaning"]


def parameter_rows(text: str) -> list[list[str]]:
    """Return the rows of all tables of parameters in ``text``, which are known by their heads."""
    found: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        cells = rows(line)
        inside = line.startswith("|") and (inside or cells == [PARAMETER_HEAD])
        found += [row for row in cells if inside and row != PARAMETER_HEAD]
    return found


def check_parameters(table: list[list[str]], declared: Iterable[dataclasses.Field[Any]]) -> None:
    """Compare name, default and unit of every row with the fields of the code, in their order."""
    fields = list(declared)
    assert [row[0] for row in table] == [f"`{field.name}`" for field in fields]
    for (_, default, unit, meaning), field in zip(table, fields, strict=True):
        mutable = field.default_factory is not dataclasses.MISSING
        assert key_values([f"it={default}"]) == {"it": {} if mutable else field.default}, field.name
        assert unit == field.metadata["unit"], field.name
        assert meaning


@pytest.mark.parametrize("model", CONTACT_MODELS)
def test_parameter_tables_are_those_of_the_code(model: str) -> None:
    page = (ROOT / "docs" / "contact_models" / f"{model}.md").read_text(encoding="utf-8")
    table = section(page, "Parameters")
    assert rows(table)[0] == PARAMETER_HEAD
    check_parameters(parameter_rows(table), dataclasses.fields(CONTACT_MODELS[model].Params))


def pages_of_controllers() -> dict[str, Path]:
    """Return the page that docs/controllers.md names for each controller."""
    table = rows(section((ROOT / "docs" / "controllers.md").read_text(encoding="utf-8"), "Which one"))
    assert table[0] == ["controller", "what it does", "choose it"]
    links = [re.fullmatch(r"\[`(\w+)`\]\(([\w/]+\.md)(#.+)?\)", row[0]) for row in table[1:]]
    return {link[1]: ROOT / "docs" / link[2] for link in links if link}


def test_all_controllers_are_in_the_overview() -> None:
    pages = pages_of_controllers()
    assert list(pages) == list(CONTROLLERS)
    for name, page in pages.items():
        assert f"`{name}`" in page.read_text(encoding="utf-8") or page.stem == name


@pytest.mark.parametrize("page", sorted(set(pages_of_controllers().values())), ids=named)
def test_parameter_tables_of_controllers_are_those_of_the_code(page: Path) -> None:
    """A page may describe several controllers.

    Then it has a table of their common parameters and one for each controller.
    """
    declared: dict[str, dataclasses.Field[Any]] = {}
    for name in (name for name, its in pages_of_controllers().items() if its == page):
        for field in dataclasses.fields(CONTROLLERS[name].Params):
            known = declared.setdefault(field.name, field)
            assert (known.default, known.metadata) == (field.default, field.metadata), "a name with two meanings"
    table = parameter_rows(page.read_text(encoding="utf-8"))
    names = [row[0].strip("`") for row in table]
    assert sorted(names) == sorted(declared)
    check_parameters(table, (declared[name] for name in names))


def test_settings_of_robots_are_those_of_robot_yaml() -> None:
    page = (ROOT / "docs" / "controllers" / "zmp.md").read_text(encoding="utf-8")
    described = {row[0].strip("`"): row[1] for row in rows(page) if len(row) == 2}
    settings = {name: load_robot(name).controllers.get("zmp", {}) for name in STANDING}
    for name, values in settings.items():
        written = ", ".join(f"`{key}: {value}`" for key, value in values.items())
        assert described.get(name, "") == written


def test_pages_of_contact_models_have_one_shape() -> None:
    titles = ["When to choose it", "Parameters", "Good at", "Bad at", "Cost", "Equations"]
    overview = (ROOT / "docs" / "contact_models.md").read_text(encoding="utf-8")
    assert re.findall(r"\[`(\w+)`\]\(contact_models/\1\.md\)", overview) == list(CONTACT_MODELS)
    for model in CONTACT_MODELS:
        page = (ROOT / "docs" / "contact_models" / f"{model}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {model}\n")
        assert "\n**Source.** " in page
        found = re.findall(r"^## (.+)", page, re.MULTILINE)
        assert [title for title in found if title in titles] == titles, model


def test_the_own_contact_model_is_the_one_that_is_tested() -> None:
    page = (ROOT / "docs" / "contact_models.md").read_text(encoding="utf-8")
    printed = [block.text for block in blocks(page) if block.name == "mud_package.py"]
    assert printed == [(ROOT / "test" / "support" / "plugin_model.py").read_text(encoding="utf-8")]


def test_all_papers_and_cases_are_described() -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    overview = {row[0]: row[2] for row in rows(text) if row[0].startswith("[`")}
    assert list(overview) == [f"[`{name}`](#{name})" for name in PAPERS]
    for name in PAPERS:
        cases = [f"`{case}`" for case in get_paper(name).cases]
        assert overview[f"[`{name}`](#{name})"].split() == cases
        described = [row[0] for row in rows(section(text, name))]
        assert sorted(set(cases) & set(described)) == sorted(cases)


def test_all_scenarios_and_their_keys_are_described() -> None:
    text = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    described = {row[0]: row[1:] for row in rows(text) if len(row) == 3}
    del described["scenario"]
    assert described == {f"`{name}`": [f"`{s.controller}`", s.description] for name, s in SCENARIOS.items()}
    _, *table = rows(section(text, "Scenario files"))
    assert [row[0] for row in table] == [f"`{field.name}`" for field in dataclasses.fields(Scenario)]


def test_all_figures_of_a_comparison_are_defined() -> None:
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    keys = [key for row in rows(section(text, "Figures")) for key in re.findall(r"`(\w+)`", row[0])]
    assert keys == list(FIGURES)


def anchors(path: Path) -> set[str]:
    """Return the link anchors of the headings of a document."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCS, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        aim = (path.parent / file).resolve() if file else path
        assert aim.exists(), target
        assert not anchor or anchor in anchors(aim), target


ELSEWHERE = {"balance.py", "careful.py", "shove.yaml", "ramp.yaml", "CMakeLists.txt", "metadata.yaml", "g1.py"}
ELSEWHERE |= {"g1_constants.py", "my_module.py", "deploy.yaml", "params/deploy.yaml", "env.yaml", "deploy_mujoco.py"}
ELSEWHERE |= {"params.yaml", "export_io_descriptors.py", "stand.py", "name.py", "my_robot/robot.yaml", "stand.yaml"}
"""Files that the reader writes, that a run creates, or of other projects."""


@pytest.mark.parametrize("path", [*DOCS, ROOT / "CHANGELOG.rst"], ids=named)
def test_files_that_are_named_exist(path: Path) -> None:
    """Paths from the root of the repository, and files in backquotes next to the page or anywhere in the packages."""
    text = re.sub(r"https?://\S+", "", path.read_text(encoding="utf-8"))
    folders = "bipedsim|bipedsim_ros|bipedsim_studies|benchmarks|config|docs|examples|launch|requirements|test|tools"
    for name in re.findall(rf"(?<![\w./-])((?:{folders})/[\w./*-]*[\w*])", text):
        # Names of Gymnasium look like paths.
        if not {"__pycache__", ".venv"} & set(name.split("/")) and not re.fullmatch(r"bipedsim/\w+-v\d", name):
            assert list(ROOT.glob(name)), name
    saved = {block.name for block in blocks(text)}
    for name in set(re.findall(r"`([\w/]+\.(?:py|sh|toml|txt|yaml))`", text)) - saved - ELSEWHERE:
        places = [path.parent / name, ROOT / name, *INSTALLED.glob(f"bipedsim*/**/{name}"), *ROOT.glob(f"*/{name}")]
        assert any(place.exists() for place in places), name


def resolves(name: str) -> bool:
    """Return whether a dotted name is a module or an attribute of a module."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("path", [*DOCS, ROOT / "CHANGELOG.rst"], ids=named)
def test_names_of_the_packages_exist(path: Path) -> None:
    """Modules and their attributes: as `bipedsim.module.name`, and in the imports of examples."""
    text = path.read_text(encoding="utf-8")
    names = set(re.findall(r"\bbipedsim(?:_ros|_studies)?(?:\.[A-Za-z_]\w*)+", text))
    for module, imported in re.findall(r"^ *from (bipedsim[\w.]*) import (.+)$", text, re.MULTILINE):
        names |= {f"{module}.{name.strip()}" for name in imported.split(",")}
    # Groups of entry points are called like modules.
    code = "".join(path.read_text(encoding="utf-8") for path in INSTALLED.glob("bipedsim*/**/*.py"))
    names -= set(re.findall(r'"(bipedsim\.\w+)"', code))
    assert sorted(name for name in names if not resolves(name)) == []


def test_a_name_that_is_gone_would_be_found() -> None:
    assert resolves("bipedsim.model.load_robot")
    assert not resolves("bipedsim.model.load_robots")
    assert not resolves("bipedsim.models.load_robot")


def command_lines(path: Path) -> Iterator[list[str]]:
    """Yield the arguments of every ``bipedsim`` command, in a block of code on a line of its own, or in backquotes."""
    text = path.read_text(encoding="utf-8")
    fenced = "".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    indented = "\n".join(re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE))
    lines = re.findall(r"^(?:\.venv/bin/)?bipedsim ([a-z].*)$", f"{fenced}\n{indented}", re.MULTILINE)
    quoted = re.findall(r"`(?:\.venv/bin/)?bipedsim ([a-z][^`]*)`", text)
    for line in [*lines, *quoted]:
        yield shlex.split(line.split(" > ")[0], comments=True)


COMMANDS = [
    pytest.param(arguments, id=f"{named(path)}: {' '.join(arguments)}")
    for path in DOCS
    for arguments in command_lines(path)
    if not {"...", "PAPER", "NAME"} & set(arguments)
]


def test_there_are_command_lines() -> None:
    assert len(COMMANDS) > 30


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    return make_parser()


@pytest.mark.parametrize("arguments", COMMANDS)
def test_command_lines_are_understood(arguments: list[str], parser: argparse.ArgumentParser) -> None:
    """Options, and the names of scenarios, contact models with their parameters, papers and cases."""
    if "--help" in arguments:
        return
    # A command that is only named needs no arguments.
    if len(arguments) == 1:
        with pytest.raises(SystemExit) as end:
            parser.parse_args([*arguments, "--help"])
        assert end.value.code == 0
        return
    args = vars(parser.parse_args(arguments))
    assert str(args.get("scenario")).endswith(".yaml") or args.get("scenario") in {None, "", *SCENARIOS}
    if args.get("controller") not in {None, "none", *INTERFACES} and ":" not in args["controller"]:
        find_controller(args["controller"])
    assert set(args.get("scenarios") or ()) <= set(SCENARIOS)
    assert set(args.get("models") or ()) <= set(CONTACT_MODELS)
    if args.get("contact_model"):
        params = without_prefix(split_params(args["set"], CONTACT_MODELS)[1], args["contact_model"])
        projection = Projection.of_soles(load_robot("biped14").soles)
        make_contact_model(args["contact_model"], projection, 1e-3, params)
    if args["command"] == "reproduce":
        assert set(args["case"]) <= set(get_paper(args["paper"]).cases)


def test_what_the_commands_of_the_readme_write_is_no_news_to_git() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    outputs = re.findall(r"(?:--plot|--record|--output|-o) ([\w./]+)", text)
    assert {"walk.npz", "walk.png", "walk.gif", "walk.csv", "runs/g1"} <= {*outputs}
    ignored = subprocess.run(["git", "check-ignore", *outputs], cwd=ROOT, capture_output=True, text=True, check=False)
    assert {*outputs} == {*ignored.stdout.split()}
