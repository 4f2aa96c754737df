"""The examples of docs/stability.md on return maps, passive walking and zero dynamics run as documented."""

from __future__ import annotations

import re
from typing import Any

import pytest
from paths import ROOT

PAGE = ROOT / "docs" / "stability.md"


@pytest.mark.parametrize("title", ["Poincare maps", "Passive walking", "Zero dynamics"])
def test_the_example_runs(title: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert text is not None
    (code,) = re.findall(r"^```python\n(.*?)^```", text[1], re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, f"{PAGE.name}: {title}", "exec"), names)
    assert capsys.readouterr().out
