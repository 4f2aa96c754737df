"""Write self-contained HTML pages of headings, tables and embedded figures, without scripts and network access."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from bipedsim.config import write_whole
from bipedsim.errors import RecordingError

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a section with a table; without a title only the table, and without words in ``head`` no head."""

    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    lines = [line(head, "th")] * any(head) + [line(row, "td") for row in rows]
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return f'<section>{heading}<div class="wide"><table>{"".join(lines)}</table></div></section>'


def text_list(title: str, lines: Iterable[str], kind: str = "small") -> str:
    """Return a heading and a list; ``kind`` is a class of the style sheet."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<h2>{escape(title)}</h2><ul class="{kind}">{items}</ul>'


def preformatted(title: str, lines: Iterable[str]) -> str:
    """Return a heading, and lines of text such as commands."""
    return f"<h2>{escape(title)}</h2><pre>{escape(chr(10).join(lines))}</pre>"


def folded(summary: str, content: str) -> str:
    """Return HTML that shows only the line ``summary`` until the reader opens it; a printed page has no fold."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def image(png: bytes, alternative: str) -> str:
    """Return an embedded figure with its text for readers that do not show it."""
    data = base64.b64encode(png).decode()
    return f'<img alt="{escape(alternative)}" src="data:image/png;base64,{data}">'


def write_page(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write a page. If this fails, an earlier page remains as it was.

    Args:
        path: .html; missing folders are created.
        title: Title of the window.
        parts: The content.

    Raises:
        RecordingError: The file cannot be written.
    """
    style = files(__package__).joinpath("html_page.css").read_text(encoding="utf-8")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{style}</style></head>'
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(f"the page cannot be written ({error.strerror})", path) from error
    write_whole(path, page.encode())
