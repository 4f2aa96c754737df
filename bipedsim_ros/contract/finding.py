"""What a check found, what was expected and what to do; as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

OK, DIFFERS, MISSING, NOT_CHECKED = "ok", "differs", "missing", "not checked"


@dataclass(frozen=True)
class Finding:
    """One check of one topic.

    Attributes:
        topic: Topic, as the robot names it.
        check: What was looked at.
        verdict: ok, differs, missing or not checked.
        found, expected: In words, with units; what is expected is empty where it says no more than what was found.
        todo: What to do about it; empty if nothing has to be done.
    """

    topic: str
    check: str
    verdict: str
    found: str
    expected: str = ""
    todo: str = ""


class Findings(list[Finding]):
    """Findings in the order in which they were made."""

    def of(self, topic: str) -> Said:
        """Return what notes the findings of a topic."""
        return Said(self, topic)


@dataclass(frozen=True)
class Said:
    """Notes the findings of one topic."""

    findings: Findings
    topic: str

    def _note(self, check: str, verdict: str, found: str, expected: str = "", todo: str = "") -> None:
        self.findings.append(Finding(self.topic, check, verdict, found, expected, todo))

    def ok(self, check: str, found: str) -> None:
        """Note that something is as expected."""
        self._note(check, OK, found)

    def differs(self, check: str, found: str, expected: str, todo: str) -> None:
        """Note a difference."""
        self._note(check, DIFFERS, found, expected, todo)

    def missing(self, check: str, expected: str, todo: str) -> None:
        """Note that something is not there."""
        self._note(check, MISSING, "nothing", expected, todo)

    def not_checked(self, check: str, why: str) -> None:
        """Note that nothing can be said."""
        self._note(check, NOT_CHECKED, why)

    def judge(self, good: bool, check: str, found: str, expected: str, todo: str) -> bool:
        """Note ``found`` as ok, or as a difference; return ``good``."""
        self._note(check, *((OK, found) if good else (DIFFERS, found, expected, todo)))
        return good

    def measure(self, good: bool, check: str, found: str, expected: str, todo: str) -> bool:
        """Judge a number: how far it is from where it would differ is said where it is right, too."""
        self._note(check, OK if good else DIFFERS, found, expected, "" if good else todo)
        return good


def sound(findings: Sequence[Finding]) -> bool:
    """Return whether nothing differs and nothing is missing."""
    return all(finding.verdict in (OK, NOT_CHECKED) for finding in findings)


def table(findings: Sequence[Finding], source: str) -> str:
    """Return the findings as text, topic by topic, differences with what to do."""
    lines = [source]
    topic = ""
    for finding in findings:
        if finding.topic != topic:
            topic = finding.topic
            lines += ["", topic]
        expected = f"; expected {finding.expected}" if finding.expected else ""
        lines.append(f"  {finding.verdict:12}{finding.check:16}{finding.found}{expected}")
        if finding.todo:
            lines.append(f"  {'':28}-> {finding.todo}")
    counts = {verdict: sum(f.verdict == verdict for f in findings) for verdict in (OK, DIFFERS, MISSING, NOT_CHECKED)}
    words = {DIFFERS: "differ"}
    told = (f"{n} {verdict if n == 1 else words.get(verdict, verdict)}" for verdict, n in counts.items() if n)
    lines += ["", ", ".join(told)]
    return "\n".join(lines)


def as_dict(findings: Sequence[Finding], robot: str, source: str) -> dict[str, Any]:
    """Return the findings for JSON."""
    return {
        "robot": robot,
        "source": source,
        "ok": sound(findings),
        "findings": [asdict(finding) for finding in findings],
    }
