"""Store the results of checks (found, expected, remedy), and print them as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

OK, DIFFERS, MISSING, NOT_CHECKED = "ok", "differs", "missing", "not checked"


@dataclass(frozen=True)
class Finding:
    """Result of one check of one topic.

    Attributes:
        topic: Name that the robot uses for the topic.
        check: Name of the check.
        verdict: ok, differs, missing or not checked.
        found, expected: Texts with units; ``expected`` is empty if it would only repeat ``found``.
        todo: Remedy; empty if none is needed.
    """

    topic: str
    check: str
    verdict: str
    found: str
    expected: str = ""
    todo: str = ""


class Findings(list[Finding]):
    """List of findings in the order of the checks."""

    def of(self, topic: str) -> TopicReport:
        """Return an object that adds findings about a topic."""
        return TopicReport(self, topic)


@dataclass(frozen=True)
class TopicReport:
    """Adds the findings about one topic to the list."""

    findings: Findings
    topic: str

    def _note(self, check: str, verdict: str, found: str, expected: str = "", todo: str = "") -> None:
        self.findings.append(Finding(self.topic, check, verdict, found, expected, todo))

    def ok(self, check: str, found: str) -> None:
        """Report an expected value."""
        self._note(check, OK, found)

    def differs(self, check: str, found: str, expected: str, todo: str) -> None:
        """Report a difference."""
        self._note(check, DIFFERS, found, expected, todo)

    def missing(self, check: str, expected: str, todo: str) -> None:
        """Report that something is missing."""
        self._note(check, MISSING, "nothing", expected, todo)

    def not_checked(self, check: str, reason: str) -> None:
        """Report that a check is impossible."""
        self._note(check, NOT_CHECKED, reason)

    def judge(self, good: bool, check: str, found: str, expected: str, todo: str) -> bool:
        """Report ``found`` as ok or as a difference; return ``good``."""
        self._note(check, *((OK, found) if good else (DIFFERS, found, expected, todo)))
        return good

    def measure(self, good: bool, check: str, found: str, expected: str, todo: str) -> bool:
        """Report a number as ok or as a difference, with the limit in both cases; return ``good``."""
        self._note(check, OK if good else DIFFERS, found, expected, "" if good else todo)
        return good


def all_ok(findings: Sequence[Finding]) -> bool:
    """Return whether no finding differs or is missing."""
    return all(finding.verdict in (OK, NOT_CHECKED) for finding in findings)


def table(findings: Sequence[Finding], source: str) -> str:
    """Return the findings as a text, sorted by topic, with remedies for differences."""
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
    summary = (f"{n} {verdict if n == 1 else words.get(verdict, verdict)}" for verdict, n in counts.items() if n)
    lines += ["", ", ".join(summary)]
    return "\n".join(lines)


def as_dict(findings: Sequence[Finding], robot: str, source: str) -> dict[str, Any]:
    """Return the findings for JSON."""
    return {
        "robot": robot,
        "source": source,
        "ok": all_ok(findings),
        "findings": [asdict(finding) for finding in findings],
    }
