"""The statements of a release about itself agree: version, papers, and shipped files."""

from __future__ import annotations

import re
import shlex
from importlib.metadata import requires
from xml.etree import ElementTree

import yaml
from packaging.requirements import Requirement
from paths import ROOT

import bipedsim
from bipedsim_studies.reproduce.papers import PAPERS


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    """`bipedsim/__init__.py` declares it and setup.py reads it there; the formats of the others need a copy."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", bipedsim.__version__)
    newest = re.search(
        r"^(\d+\.\d+\.\d+) \((?:forthcoming|\d{4}-\d\d-\d\d)\)\n-+$", text("CHANGELOG.rst"), re.MULTILINE
    )
    assert newest is not None
    assert {
        "package.xml": ElementTree.fromstring(text("package.xml")).findtext("version"),
        "CITATION.cff": yaml.safe_load(text("CITATION.cff"))["version"],
        "CHANGELOG.rst": newest[1],
    } == dict.fromkeys(("package.xml", "CITATION.cff", "CHANGELOG.rst"), bipedsim.__version__)


def test_all_papers_are_cited() -> None:
    references = yaml.safe_load(text("CITATION.cff"))["references"]
    years = re.findall(r"\d{4}", " ".join(PAPERS))
    assert len(references) == len(PAPERS)
    assert set(years) <= {str(reference.get("year")) for reference in references}
    assert all(reference["title"] and reference["authors"] for reference in references)


def test_the_readme_installs_what_a_ros_workspace_needs() -> None:
    """colcon installs no dependencies, and a ROS distribution may have none of these."""
    command = re.search(r"^    pip install (daqp.*?[^\\])$", text("README.md"), re.MULTILINE | re.DOTALL)
    assert command is not None
    words = shlex.split(command[1].replace("\\\n", ""))
    installed = {one.name: one.specifier for one in map(Requirement, words)}
    needed = {one.name: one.specifier for one in map(Requirement, requires("bipedsim") or []) if not one.marker}
    assert set(needed) - set(installed) <= {"numpy", "setuptools"}, "numba brings numpy, ROS 2 setuptools"
    view = {"bokeh", "fast-simplification", "viser"}  # the extra of that name
    assert set(installed) - set(needed) == {"example-robot-data"} | view
    assert all(needed[name] == specifier for name, specifier in installed.items() if specifier)
