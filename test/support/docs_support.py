"""Sections and tables of the documents."""

from __future__ import annotations

import re


def section(text: str, title: str) -> str:
    """Return the text under the heading ``## title``."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the tables in ``text``, without the rules under the heads."""
    lines = [line.strip()[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")] for line in lines if set(line) - set("| -")]
