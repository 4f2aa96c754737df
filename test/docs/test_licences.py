"""The tables of docs/licences.md name all third-party content, and files that look like it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from docs_support import rows, section
from paths import BODIES, ROBOTS, ROOT

PAGE = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
PACKAGES = ("bipedsim", "bipedsim_ros", "bipedsim_studies", "tools", "config", "launch", "examples")
MEDIA = re.compile(r"\.(png|jpe?g|webp|gif|svg|mp4|stl|dae|obj|ply|glb|ttf|otf|woff2?|npz|npy|onnx|pt|c3d|mcap)$", re.I)
FOREIGN = re.compile(r"\b([A-Z][\w-]+|[a-z][a-z-]+)/(\w+(?:-\w+)*[_-]\w+|BMC|mjlab|contact_sim\.jl)\b")
"""An owner and a repository, or a path: the test asks only for owners that the page names."""


def listed(title: str) -> dict[str, list[str]]:
    """Return the cells behind each path in the table of a section."""
    return {row[0].strip("`"): row[1:] for row in rows(section(PAGE, title))[1:]}


VALUES = listed("Values")
OWNERS = {owner for cells in VALUES.values() for owner, _ in FOREIGN.findall(cells[1])}


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in out.splitlines() if (ROOT / line).is_file()]


def row_of(path: Path) -> list[str] | None:
    """Return the row of values that covers a file, by its own path or by a folder above it."""
    inside = path.relative_to(ROOT)
    return next((VALUES[str(one)] for one in (inside, *inside.parents) if str(one) in VALUES), None)


@pytest.mark.parametrize("title", ["Robots", "Values", "Images and data"])
def test_all_that_is_listed_exists_and_has_a_licence(title: str) -> None:
    for path, cells in listed(title).items():
        assert (ROOT / path).exists(), path
        assert all(cells), path


def test_all_images_meshes_fonts_and_data_are_listed() -> None:
    media = {str(path.relative_to(ROOT)) for path in tracked() if MEDIA.search(path.name)}
    assert media == listed("Images and data").keys()


def test_robots_of_an_installed_package_have_the_licence_of_their_model() -> None:
    installed = {path.parent for path in ROBOTS.glob("*/robot.yaml") if "urdf: package:" in path.read_text("utf-8")}
    assert {ROOT / path for path in listed("Robots")} == installed


def test_all_robots_bodies_and_plates_are_listed() -> None:
    robots = [path.parent for folder in (ROBOTS, BODIES) for path in folder.glob("*/robot.yaml")]
    plates = (ROOT / "bipedsim" / "plates" / "models").glob("*.yaml")
    assert [path for path in (*robots, *plates) if row_of(path) is None] == []


def test_a_file_that_names_the_repository_of_others_is_listed_with_it() -> None:
    for path in tracked():
        if path.relative_to(ROOT).parts[0] in PACKAGES and path.suffix in {".py", ".yaml", ".urdf", ".xml", ".js"}:
            for owner, name in FOREIGN.findall(path.read_text(encoding="utf-8")):
                if owner in OWNERS:
                    row = row_of(path)
                    assert row, f"{path} names {owner}/{name}"
                    assert f"{owner}/{name}" in row[1] or "the same" in row[1], f"{path}: {owner}/{name}"


def test_a_repository_of_others_would_be_found() -> None:
    assert {"unitreerobotics", "mujocolab", "robotology", "BMClab", "adubredu"} <= OWNERS
    assert FOREIGN.findall("as in robotology/whole-body-controllers: 3") == [("robotology", "whole-body-controllers")]
