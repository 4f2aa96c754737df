"""Hooks of MkDocs that complete the documentation site; mkdocs.yml names this file.

The pages in docs/ link to files of the repository, so that they also work on a code host. These hooks publish such
files under `project/`: Markdown as it is, other files as pages with highlighted code. The hooks also generate the API
reference from the stubs, and put the version into the title. mkdocstrings loads this file, too, for `Docstrings`.
"""

from __future__ import annotations

import ast
import json
import os.path
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import griffe
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs"
PROJECT = "project"
"""Folder of the site with the files that are outside docs/."""
API = "api"
API_TITLE = "Python API"
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".yaml": "yaml", ".xml": "xml", ".json": "json", ".rviz": "yaml", ".sh": "bash"}
UNSEARCHED = "---\nsearch: {exclude: true}\n---\n\n"

sources: dict[str, str] = {}
"""Path in the repository of each page that these hooks publish, by its path in the site's source."""


class Docstrings(griffe.Extension):
    """Convert the reStructuredText of docstrings to Markdown: roles, and the colons before a literal block."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Convert the docstring of one object."""
        if obj.docstring is not None:
            text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", obj.docstring.value)
            obj.docstring.value = re.sub(r"::$", ":", text, flags=re.MULTILINE)


def on_config(config: Any) -> Any:
    """Put the version into the title."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "bipedsim" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise PluginError('bipedsim/__init__.py has no line __version__ = "..."')
    config.site_name = f"{config.site_name} {found[1]}"
    pages = [{package: f"{API}/{package}.md"} for package in api_names()]
    fill(config.nav, [{"Overview": f"{API}/index.md"}, *pages])
    return config


def fill(nav: list[Any], pages: list[Any]) -> None:
    """Insert ``pages`` into the section of the navigation that is reserved for the API reference."""
    for item in nav:
        if isinstance(item, dict):
            for title, content in item.items():
                if title == API_TITLE:
                    content.extend(pages)
                elif isinstance(content, list):
                    fill(content, pages)


def on_files(files: Files, config: Any) -> Files:
    """Add the API reference, and all files outside docs/ to which a page links."""
    sources.clear()
    for name, text in api_pages().items():
        files.append(File.generated(config, name, content=text))
    queue = [(f"{DOCS}/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    while queue:
        path, text = queue.pop()
        for _, target, _ in LINK.findall(CODE.sub("", text)):
            aim = resolved(path, target)
            if aim is None or aim.startswith(f"{DOCS}/") or published(aim) in sources or not (ROOT / aim).is_file():
                continue
            sources[published(aim)] = aim
            content = page_of(ROOT / aim)
            files.append(File.generated(config, published(aim), content=content))
            queue.append((aim, content))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Replace links to files outside docs/, and links from there, by links inside the site."""
    source = page.file.src_uri
    path = sources.get(source, f"{DOCS}/{source}")

    def inside(link: re.Match[str]) -> str:
        aim = resolved(path, link[2])
        if aim is None or (source not in sources and aim.startswith(f"{DOCS}/")):
            return link[0]
        return f"{link[1]}{os.path.relpath(published(aim), os.path.dirname(source) or '.')}{link[3]}"

    code = [block.span() for block in CODE.finditer(markdown)]
    return LINK.sub(
        lambda link: link[0] if any(start <= link.start() < end for start, end in code) else inside(link), markdown
    )


def on_nav(nav: Navigation, config: Any, files: Files) -> Navigation:
    """Refuse a navigation without the API reference."""
    if not any(page.file.src_uri == f"{API}/index.md" for page in nav.pages):
        raise PluginError(f"mkdocs.yml: the navigation has no section {API_TITLE!r}")
    return nav


def resolved(page: str, target: str) -> str | None:
    """Return the path in the repository to which a link leads; None if it is an address or leads elsewhere."""
    if re.match(r"[a-z]+:", target) or target.startswith("/"):
        return None
    aim = os.path.normpath(os.path.join(os.path.dirname(page), target))
    return None if aim.startswith("..") else aim


def published(path: str) -> str:
    """Return the path in the site's source of a file of the repository."""
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    return f"{PROJECT}/{path}" if path.endswith(".md") else f"{PROJECT}/{path}.md"


def page_of(path: Path) -> str:
    """Return a file of the repository as Markdown."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return UNSEARCHED + text
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".ipynb":
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
        body = "\n\n".join(f"```python\n{code}\n```" if kind == "code" else code for kind, code in cells)
        return f"{UNSEARCHED}{body}\n"
    return f"{UNSEARCHED}# {name}\n\n```{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n```\n"


def stub_names(stub: Path) -> list[tuple[str, str]]:
    """Return module and name of all relative imports in a stub."""
    found = []
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found += [(node.module or "", alias.name) for alias in node.names]
    return found


def api_names() -> dict[str, dict[str, bool]]:
    """Return the documented names of each package, and whether `import bipedsim` offers them, too.

    These are all names that bipedsim itself exports, and those of its packages that a page uses.
    """
    names: dict[str, dict[str, bool]] = defaultdict(dict)
    for module, name in stub_names(ROOT / "bipedsim" / "__init__.pyi"):
        if module:
            names[f"bipedsim.{module}"][name] = True
    used = set()
    for page in (ROOT / DOCS).rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        used |= set(re.findall(r"\bbipedsim((?:\.[a-z_]\w*)+)\.([A-Za-z]\w*)\b", text))
        for module, imported in re.findall(r"^ *from bipedsim((?:\.\w+)+) import ([\w, ]+)$", text, re.MULTILINE):
            used |= {(module, name.strip()) for name in imported.split(",")}
    for module, name in sorted(used):
        package = Path(ROOT, "bipedsim", *module.split("."))
        stub = package / "__init__.pyi"
        if stub.exists() and name in {name for _, name in stub_names(stub)}:
            names[f"bipedsim{module}"].setdefault(name, False)
    return dict(sorted(names.items()))


def api_pages() -> dict[str, str]:
    """Return the pages of the API reference by their paths."""
    pages = {}
    overview = ["# Python API\n\nThis page lists the public names of bipedsim. [The Python interface](../python.md)"]
    overview += ["shows them in use. Names in **bold** can also be imported from `bipedsim` itself.\n"]
    overview += ["| package | names |", "| --- | --- |"]
    for package, names in api_names().items():
        blocks = [f"# {package}\n", *(f"::: {package}.{name}\n" for name in names)]
        pages[f"{API}/{package}.md"] = "\n".join(blocks)
        links = [
            f"{'**' if top else ''}[`{name}`][{package}.{name}]{'**' if top else ''}" for name, top in names.items()
        ]
        overview.append(f"| [`{package}`]({package}.md) | {', '.join(links)} |")
    pages[f"{API}/index.md"] = "\n".join(overview) + "\n"
    return pages
