"""The examples of docs/stability.md on feet that stick run as they are printed, one after the other."""

from __future__ import annotations

import re

from paths import ROOT

PAGE = ROOT / "docs" / "stability.md"


def test_examples_of_sticking_and_impacts_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    sections = text[text.index("## Sticking and detachment") : text.index("## Poincare maps")]
    blocks = re.findall(r"^```python\n(.*?)^```", sections, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    exec("\n".join(blocks), {})
