"""The stored results of a part of the campaign."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bipedsim import __version__


def header(args: Any) -> dict[str, Any]:
    """Return when, where and with which arguments a part ran, as the first entries of its report."""
    python = platform.python_version()
    given = {name: value for name, value in vars(args).items() if name not in ("main", "output")}
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "bipedsim": __version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {python}",
        "arguments": {name: str(value) if isinstance(value, Path) else value for name, value in given.items()},
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows with the same keys as a table of Markdown."""
    if not rows:
        return "(none)\n"
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    for row in rows:
        texts = [f"{v:.3g}" if isinstance(v, float) else "" if v is None else str(v) for v in row.values()]
        lines.append("| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts) + " |")
    return "\n".join(lines) + "\n"


def keep(output: Path | None, figures: Mapping[str, Any], text: str) -> None:
    """Print the Markdown of a part; with ``output``, write it and the figures, as JSON."""
    print(text)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        output.with_suffix(".md").write_text(text, encoding="utf-8")
        print(f"wrote {output} and {output.with_suffix('.md')}")
