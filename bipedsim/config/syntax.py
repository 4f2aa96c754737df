"""Explain faults in the syntax of YAML, JSON and XML: position, text of the line, and the usual cause."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any
from xml.etree import ElementTree
from xml.parsers.expat import errors as expat

import yaml

from bipedsim.errors import ConfigError, InvalidSyntaxError

_ANY = "Check the quotes, brackets and indentation of this line and of the one before"
_XML_CAUSES = {
    expat.XML_ERROR_SYNTAX: "A file begins with < and contains only elements",
    expat.XML_ERROR_NO_ELEMENTS: "A tag is not closed, or the file ends too early",
    expat.XML_ERROR_INVALID_TOKEN: "Attribute values need quotes; write &lt; and &amp; for < and & in texts",
    expat.XML_ERROR_UNCLOSED_TOKEN: "A tag has no >, or the file ends too early",
    expat.XML_ERROR_TAG_MISMATCH: "A start tag has no end tag with its name. Close it with </NAME> or />",
    expat.XML_ERROR_DUPLICATE_ATTRIBUTE: "Delete one of the two attributes with the same name",
    expat.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: "Delete everything after the end of the first element",
    expat.XML_ERROR_UNDEFINED_ENTITY: "Write &amp; for &",
    expat.XML_ERROR_UNBOUND_PREFIX: 'Declare the prefix, for example xmlns:xacro="http://www.ros.org/wiki/xacro"',
}
"""Kind of fault to its usual cause."""
_OPENING = {"[": "bracket [", "{": "brace {", "'": "quote '", '"': 'quote "'}
_RESERVED = "@`%*&!|>"
"""Characters with a meaning at the beginning of a YAML value."""


class DuplicateKeyError(yaml.MarkedYAMLError):
    """A YAML mapping has a key twice."""


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
"""First bytes of a file to its encoding, longest first."""
_DECLARATION = re.compile(r"""\s*<\?xml\b(?:[^>]*?\bencoding\s*=\s*["']([\w.:-]*)["'])?[^>]*\?>""")
_NAMESPACE = re.compile(r"""\A([^<]*(?:<[!?][^>]*>[^<]*)*<[\w.-]+(?:\s[^>]*?)??)\sxmlns\s*=\s*["'][^"']*["']""")
"""The default namespace of the root element, which the XML readers of MuJoCo and urdfdom ignore."""


def decoded_xml(raw: bytes, where: str) -> tuple[str, str]:
    """Return the text of an XML file, and a warning if its encoding was inferred.

    A byte order mark defines the encoding, otherwise the declaration. Bytes that this encoding does not have are read
    as Latin-1, with a warning, because MuJoCo and urdfdom accept such files. The returned text has no default
    namespace, and declares no other encoding than UTF-8.

    Args:
        raw: Content of the file.
        where: Name of the file.

    Raises:
        ConfigError: Python does not know the declared encoding.
    """
    encoding = next((name for mark, name in _MARKS if raw.startswith(mark)), "")
    declared = _DECLARATION.match(raw[:200].decode("latin-1")) if not encoding else None
    encoding = encoding or (declared and declared[1]) or "utf-8"
    try:
        # The declaration was read as bytes, so a file that declares UTF-16 or UTF-32 without a mark is neither.
        text = raw.decode("utf-8" if declared and encoding.lower().startswith(("utf-16", "utf-32")) else encoding)
        warning = ""
    except LookupError as error:
        raise ConfigError("is an unknown encoding. Save the file in UTF-8", f"{where}: encoding", encoding) from error
    except UnicodeDecodeError as error:
        text = raw.decode("latin-1")
        warning = f"{where}: byte {error.start} is not {encoding}. The file is read as Latin-1. Save it in UTF-8"
    found = _DECLARATION.match(text)
    if found is not None and (found[0][0] != "<" or (found[1] or "utf-8").lower() not in ("utf-8", "utf8")):
        text = "\n" * found[0].count("\n") + text[found.end() :]
    return _NAMESPACE.sub(r"\1", text, count=1), warning


def parse_xml(text: str, where: str) -> ElementTree.Element:
    """Return the root element of an XML text.

    Args:
        text: The text, without a declared encoding other than UTF-8.
        where: Name of the file.

    Raises:
        ConfigError: The text is not valid XML.
    """
    try:
        return ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        line, column = error.position
        problem = expat.messages.get(error.code, "")
        cause = "Delete the NUL characters" if "\0" in text else _XML_CAUSES.get(problem, _ANY)
        raise _fault(where, "XML", text, (line - 1, column), problem, cause) from error


def parse_json(text: str, where: str) -> Any:
    """Return the value of a JSON text.

    Args:
        text: The text.
        where: Name of the file or parameter.

    Raises:
        ConfigError: The text is not valid JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cause = "Check the double quotes, commas and brackets"
        if text[error.pos : error.pos + 1] == "'":
            cause = "JSON needs double quotes"
        elif re.match(r"\s*[]}]", text[error.pos :]):
            cause = "Delete the comma before the closing bracket"
        raise _fault(where, "JSON", text, (error.lineno - 1, error.colno - 1), error.msg, cause) from error


def yaml_fault(error: yaml.YAMLError, text: str, where: str) -> ConfigError:
    """Return the error for a text that is not valid YAML.

    Args:
        error: Error of the parser.
        text: The text.
        where: Name of the file or parameter.
    """
    if isinstance(error, yaml.reader.ReaderError):
        line, column = text.count("\n", 0, error.position), error.position - text.rfind("\n", 0, error.position) - 1
        return _fault(where, "YAML", text, (line, column), f"control character {error.character:#x}", "Delete it")
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return ConfigError(f"not valid YAML: {error}", where)
    if isinstance(error, DuplicateKeyError):
        cause = "Keep only one of them"
    elif isinstance(error, yaml.constructor.ConstructorError):
        cause = "Give another value, or put it in quotes if it is a text"
    else:
        cause = _yaml_cause(text.splitlines(), (mark.line, mark.column), error.context_mark)
    return _fault(where, "YAML", text, (mark.line, mark.column), error.problem or "", cause)


def _yaml_cause(lines: list[str], place: tuple[int, int], opened: yaml.Mark | None) -> str:
    """Return the usual cause of a fault at line and column ``place``, in a context that began at ``opened``."""
    line = _line(lines, place[0])
    before = next((text for text in reversed(lines[: place[0]]) if text.strip()), "")
    if "\t" in _indent(line):
        return "Indent with spaces instead of tabs"
    opening = _line(lines, opened.line)[opened.column : opened.column + 1] if opened else ""
    if opened and opening in _OPENING:
        return f"The {_OPENING[opening]} in line {opened.line + 1} is not closed, or a comma is missing"
    if any(re.match(r"\s*[\w.-]+:[^\s:]", text) for text in (line, before)):
        return "Put a space after the colon of a key"
    if line[place[1] : place[1] + 1] in tuple(_RESERVED):
        return f"Put a text that begins with {line[place[1]]} in quotes"
    if line.count(": ") > 1:
        return "Put a text that contains a colon in quotes"
    if len(_indent(line)) > len(_indent(before)) and before:
        return "The line is indented deeper than the one before, which has a value already. Align keys of one mapping"
    return _ANY


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _line(lines: list[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""


def _fault(where: str, language: str, text: str, place: tuple[int, int], problem: str, cause: str) -> ConfigError:
    """Return the error for a fault at line and column ``place``, both counted from 0."""
    line = _line(text.splitlines(), place[0])
    return InvalidSyntaxError(language, where, line, (place[0] + 1, place[1] + 1), f"{problem}. {cause}")
