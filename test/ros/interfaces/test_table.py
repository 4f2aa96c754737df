"""The table of vendors' interfaces."""

from __future__ import annotations

import importlib.util

import pytest
from refusals import refusal

from bipedsim.errors import UnknownNameError
from bipedsim_ros.interfaces import INTERFACES, get_interface, node_module


def test_every_row_has_a_node_whose_module_is_there() -> None:
    for name in INTERFACES:
        row = INTERFACES[name]
        if not row.executable:
            assert row.module == row.check == ""
            continue
        assert node_module(row.executable) == row.module
        assert importlib.util.find_spec(row.module) is not None


def test_an_unknown_interface_is_refused_with_those_that_there_are() -> None:
    with refusal(UnknownNameError, name="unitre", meant="unitree"):
        get_interface("unitre")


def test_what_it_needs_is_named_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with refusal(place="interface", value="unitree"):
        get_interface("unitree")
