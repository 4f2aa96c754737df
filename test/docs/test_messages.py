"""docs/messages.md contains all texts with inserted values. No other test checks their wording."""

from __future__ import annotations

import messages


def test_the_page_has_the_texts_of_the_code() -> None:
    assert messages.PAGE.read_text(encoding="utf-8") == messages.page(), "run tools/messages.py and read the changes"
