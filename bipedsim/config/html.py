"""Format small HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def facts(title: str, rows: Mapping[str, str]) -> str:
    """Return an HTML table of names and texts; empty texts are left out."""
    cells = (
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in rows.items()
        if text
    )
    return f"<table><caption style='text-align:left'><b>{escape(title)}</b></caption>{''.join(cells)}</table>"
