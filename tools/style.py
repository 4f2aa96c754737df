#!/usr/bin/env python3
"""Check the English of messages, docstrings, comments and Markdown: words, long sentences, missing subjects.

Print ``file:line: found -> suggestion`` for each finding and exit with 1 if there is any. Without arguments, check all
files of the repository except those in `EXCLUDED`. In tests, strings are data and only docstrings and comments are
checked. The vocabulary is the table "Words" of docs/glossary.md.

Usage: python tools/style.py [FILE...]
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
SCOPE = (
    *("*.md", ".github/*.md", "docs/**/*.md", "benchmarks/*.md"),
    *("bipedsim*/**/*.py", "tools/*.py", "examples/**/*.py", "test/**/*.py"),
)
EXCLUDED = (
    *("docs/glossary.md", "tools/style.py"),  # the words themselves
    "tools/anthropometry.py",  # the headers of generated files
)
"""Files and folders that are not checked."""
WORDS = 35
"""Maximum number of words in a sentence."""

CLAUSE = re.compile(r"(?:What|Who|Whoever|Whatever|Whose|That which|Where nothing)\b.*(?<!\?)$", re.S)
"""A sentence that begins with such a clause and is no question."""
PASSIVE = re.compile(
    r"(?!.*, (?:it|they|this|each|an?|the)\b|Biped|Need|Speed|Seed|Feed|Proceed|Based on|Compared|Given)"
    r"(?:Is|Are|[A-Z]\w+ed|Kept|Held|Made|Taken|Found|Told|Known|Seen|Written|Shown|Put|Meant)"
    r" (?:by|for|at|in|to|with|as|when|where|while|from|of|on|once|only|so|if|again|until)\b"
)
"""A sentence that begins with a participle and has no subject behind a comma."""
SECTION = re.compile(r"\n\s*(?:Args|Returns|Raises|Attributes|Yields|References):\s*\n")
END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*_])|\n\s*\n|\n\s*(?:[-*|]|\d+\.)\s")
MASKED = re.compile(r"`+[^`]*`+|\]\([^)]*\)|<[^<>\s]+>|https?://\S+|\b[\w./]*_\w*|\B--?[a-z][\w-]*|'[\w./ -]*'")
"""Code, addresses, names and options, which may contain any word."""


@dataclass(frozen=True)
class Vocabulary:
    """Words to avoid, and their replacements.

    Attributes:
        pattern: Pattern with one group per entry.
        suggestions: Suggestion for each group.
    """

    pattern: re.Pattern[str]
    suggestions: list[str]

    @classmethod
    def of(cls, page: str) -> Vocabulary:
        """Read the table under "Words"; `*` stands for any ending of a word."""
        groups, suggestions = [], []
        for line in page.partition("\n## Words\n")[2].splitlines():
            cells = line.strip("|").split("|")
            words = [re.escape(word) for word in re.findall("`(.+?)`", cells[0])]
            if words and len(cells) == 2:
                groups.append(f"({'|'.join(words)})".replace(r"\*", r"\w*").replace(r"\ ", r"\s+"))
                suggestions.append(cells[1].strip())
        return cls(re.compile(rf"\b(?<!-)(?:{'|'.join(groups)})(?![\w:-])", re.IGNORECASE), suggestions)


def python_texts(source: str, data: bool = False) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring, block of comments and, unless strings are ``data``, other string."""
    tree, parts_of_f_strings = ast.parse(source), set[int]()
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if data and id(node) not in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            parts_of_f_strings.update(map(id, node.values))
            yield node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else "_" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts_of_f_strings:
            yield node.lineno, node.value
    first, block = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            first, block = first or token.start[0], f"{block}\n{token.string.lstrip('#: ')}"
        elif token.type != tokenize.NL and block:
            yield first - 1, block
            first, block = 0, ""


def markdown_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each paragraph, list item and table cell outside code blocks; a cell ends with `|`."""
    plain = re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), source, flags=re.S)
    plain = re.sub(r"(?m)^( {4}(?! *[-*] )|#|<).*$", "", plain)
    for paragraph in re.finditer(r"(?:(?!\n\s*\n|\n\s*(?:[-*|]|\d+\.)\s).)+", plain, flags=re.S):
        line = 1 + plain.count("\n", 0, paragraph.start())
        if "|" in paragraph[0] and paragraph[0].strip().startswith("|"):
            yield from ((line, f"{cell}|") for cell in paragraph[0].split("|"))
        else:
            yield line, paragraph[0]


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line within the text and the text of each sentence; skip the sections of a docstring."""
    prose, begin = SECTION.split(text)[0], 0
    for end in [*END.finditer(prose), None]:
        stop = end.start() if end else len(prose)
        sentence = prose[begin:stop].lstrip(" .:;!?\n*->")
        if sentence:
            yield prose.count("\n", 0, stop - len(sentence)), sentence.rstrip()
        begin = stop


def findings(path: Path, words: Vocabulary) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each finding in a file."""
    source = path.read_text(encoding="utf-8")
    data = path.is_relative_to(ROOT / "test")
    for line, text in python_texts(source, data) if path.suffix == ".py" else markdown_texts(source):
        if text.count(" ") < 2:
            continue
        masked = MASKED.sub(lambda code: "_" + "\n" * code[0].count("\n"), text)
        for word in words.pattern.finditer(masked):
            suggestion = words.suggestions[(word.lastindex or 1) - 1]
            yield line + masked.count("\n", 0, word.start()), f"{' '.join(word[0].split())} -> {suggestion}"
        for offset, sentence in sentences(masked):
            n_words = len(re.findall(r"[A-Za-z_]{2,}[,;]?(?=\s|$|[.:])", sentence))
            if n_words > WORDS and not masked.endswith("|"):
                yield line + offset, f"{n_words} words in a sentence -> at most {WORDS}"
            if CLAUSE.match(sentence):
                yield line + offset, f"{sentence[:30]!r} -> name the subject"
            if passive := PASSIVE.match(sentence):
                yield line + offset, f"{passive[0]} -> active voice with a subject"


def checked() -> list[Path]:
    """Return the files in scope."""
    paths = sorted({path for pattern in SCOPE for path in ROOT.glob(pattern)})
    return [path for path in paths if not str(path.relative_to(ROOT)).startswith(EXCLUDED)]


def main(arguments: list[str]) -> int:
    """Check the files that are named, or all; return the exit code."""
    words = Vocabulary.of(GLOSSARY.read_text(encoding="utf-8"))
    wrong = False
    for path in [Path(name).resolve() for name in arguments] or checked():
        for line, found in sorted(set(findings(path, words))):
            wrong = True
            print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}: {found}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
