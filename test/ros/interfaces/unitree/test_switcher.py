"""The motion switcher, as the vendor's example goes about it."""

from __future__ import annotations

import json

from bipedsim_ros.interfaces.unitree.switcher import CHECK_MODE, RELEASE_MODE, SELECT_MODE, Switcher


def test_what_has_the_motors_is_released() -> None:
    switcher = Switcher()
    code, data = switcher.answer(CHECK_MODE, "{}")
    assert (code, json.loads(data)) == (0, {"form": "0", "name": "ai"})
    assert switcher.answer(RELEASE_MODE, "{}") == (0, "")
    assert json.loads(switcher.answer(CHECK_MODE, "{}")[1])["name"] == ""
    assert switcher.answer(SELECT_MODE, '{"name": "ai"}') == (0, "")
    assert json.loads(switcher.answer(CHECK_MODE, "{}")[1])["name"] == "ai"


def test_other_calls_have_the_vendors_codes() -> None:
    switcher = Switcher()
    assert switcher.answer(1005, "") == (3203, "")
    assert switcher.answer(SELECT_MODE, "no json") == (3204, "")
    assert switcher.mode == "ai"
