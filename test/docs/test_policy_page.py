"""docs/controllers/policy.md: its tables are those of the code, and its example is a deployment file."""

from __future__ import annotations

import re
from dataclasses import fields

import yaml
from docs_support import rows, section
from paths import ROOT

from bipedsim.config import from_mapping
from bipedsim.control.policy.config import (
    ActionConfig,
    ClockConfig,
    CommandConfig,
    FramesConfig,
    PolicyConfig,
    TermConfig,
)
from bipedsim.control.policy.terms import ALIASES, TERMS

PAGE = (ROOT / "docs" / "controllers" / "policy.md").read_text(encoding="utf-8")
OWN = section(PAGE, "Our deployment files")


def ticked(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


def test_keys_are_those_of_the_code() -> None:
    table = {name: row for row in rows(OWN)[1:] for name in ticked(row[0])}
    assert sorted(table) == sorted(field.name for field in fields(PolicyConfig))
    for field in fields(PolicyConfig):
        default = table[field.name][1]
        if field.metadata["required"]:
            assert default == "must be given", field.name
        elif isinstance(field.default, (int, float)):
            assert float(default) == field.default, field.name
    for key, kind in (
        ("action", ActionConfig),
        ("frames", FramesConfig),
        ("command", CommandConfig),
        ("clock", ClockConfig),
    ):
        assert {field.name for field in fields(kind)} <= set(ticked(table[key][2])), key


def test_terms_are_those_of_the_code() -> None:
    text = section(PAGE, "Terms")
    named = [name for row in rows(text)[1:] for name in ticked(row[0])]
    assert sorted(named) == sorted([*TERMS, *ALIASES])
    shown = text[text.index("`{term") : text.index("}`")]
    assert sorted(re.findall(r"(\w+):", shown)) == sorted(field.name for field in fields(TermConfig))


def test_the_example_is_a_deployment_file() -> None:
    text = re.search(r"```yaml\n(.*?)```", OWN, re.DOTALL)
    assert text is not None
    config = from_mapping(PolicyConfig, yaml.safe_load(text[1]), "example")
    assert [term.term for term in config.observations][-1] == "clock"
