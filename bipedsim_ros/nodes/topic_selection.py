"""Select the topics to record: the default ones, with changes, or others."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bipedsim.errors import ConfigError
from bipedsim_ros.wire import Topic


class Selection(NamedTuple):
    """Topics to record.

    Attributes:
        types: Type of each topic whose type is known.
        waiting: Topics that are recorded when they have a type.
        patterns: Patterns of further topics, with * for any text.
        left_out: Patterns of topics that are not recorded.
    """

    types: dict[str, str]
    waiting: list[str]
    patterns: list[str]
    left_out: list[str]

    @classmethod
    def of(cls, entries: Sequence[str], known: Mapping[str, Topic], prefixes: Sequence[str]) -> Selection:
        """Return the selection of the parameter ``topics``.

        Args:
            entries: The parameter. Entries with a sign change the default topics, others replace them.
            known: The default topics by name.
            prefixes: Beginnings of the names of further default topics.

        Raises:
            ConfigError: An entry is malformed, or leaves out nothing.
        """
        signed = [entry.startswith(("+", "-")) for entry in entries]
        if any(signed) and not all(signed):
            raise ConfigError(
                "mixes entries with and without a sign; '+/topic' adds to the default topics, '/topic' replaces them",
                "topics",
                list(entries),
            )
        chosen = cls({}, [], [], [])
        if all(signed):
            chosen.types.update({name: row.msgtype for name, row in known.items()})
            chosen.patterns.extend(f"{prefix}*" for prefix in prefixes)
        for entry in entries:
            name, *types = entry.lstrip("+-").split()
            if not name.startswith("/") or len(types) > 1 or (types and ("*" in name or entry.startswith("-"))):
                raise ConfigError(
                    f"{entry!r} must be '/topic' or '/topic package/msg/Type'; '+' adds it to the default topics, "
                    "'-/topic' leaves it out, and * stands for any text",
                    "topics",
                )
            matching = fnmatch.filter(known, name)
            if entry.startswith("-"):
                if not matching and not any(name.startswith(prefix) for prefix in prefixes):
                    raise ConfigError(f"{entry!r} leaves out nothing", "topics")
                chosen.left_out.append(name)
                for left in matching:
                    chosen.types.pop(left, None)
            elif types:
                chosen.types[name] = types[0]
            elif "*" in name:
                chosen.types.update({match: known[match].msgtype for match in matching})
                chosen.patterns.append(name)
            elif name in known:
                chosen.types[name] = known[name].msgtype
            else:
                chosen.waiting.append(name)
        return chosen

    def matches(self, name: str) -> bool:
        """Return whether a topic that has appeared is recorded because of a pattern."""
        kept = any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)
        return kept and not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.left_out)
