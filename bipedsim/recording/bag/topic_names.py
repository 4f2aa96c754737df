"""Rename the topics of a bag from another robot or simulator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bipedsim.errors import ConfigError, UnknownNameError

ANY = "*"
"""At the end of both names of an entry: all topics that begin with the text before it."""


class TopicNames:
    """Names under which the topics of a bag are read.

    Args:
        remap: Topic in the bag to its new name. ``/robot1/*`` to ``/*`` renames all topics that begin with
            ``/robot1/``. A topic with its own entry has this name. Otherwise the first entry with a ``*`` that fits it
            counts.
        path: The bag, for messages.

    Raises:
        ConfigError: A name does not begin with ``/``, or only one of two names ends in ``*``.
    """

    def __init__(self, remap: Mapping[str, str], path: Path) -> None:
        self._path = path
        self._remap = dict(remap)
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}
        for old, new in remap.items():
            rests = old.removesuffix(ANY), new.removesuffix(ANY)
            fits = old.endswith(ANY) == new.endswith(ANY) and not any(ANY in rest for rest in rests)
            if not (fits and all(rest.startswith("/") for rest in rests)):
                problem = "is not a pair of names that begin with '/'. Use /r1/imu:=/imu/data, or '/r1/*:=/*'"
                raise ConfigError(problem, "remap", f"{old}:={new}")

    def __getitem__(self, topic: str) -> str:
        """Return the new name of a topic.

        Raises:
            ConfigError: Another topic of the bag has the same new name.
        """
        if topic not in self._new:
            new = self._renamed(topic)
            other = self._old.setdefault(new, topic)
            if other != topic:
                problem = f"both become {new}. Give one of them a name that nothing reads: {topic}:=/unused{topic}"
                raise ConfigError(problem, f"{self._path}: remap", [other, topic])
            self._new[topic] = new
        return self._new[topic]

    def _renamed(self, topic: str) -> str:
        if topic in self._remap:
            return self._remap[topic]
        for old, new in self._remap.items():
            if old.endswith(ANY) and topic.startswith(old[:-1]):
                return new[:-1] + topic[len(old) - 1 :]
        return topic

    def check(self, types: Mapping[str, str], counts: Mapping[str, int]) -> None:
        """Check that each entry renames a topic, once all topics are known.

        Args:
            types, counts: New name of each topic to its type, and to its number of messages.

        Raises:
            UnknownNameError: The bag has no topic of this name.
        """
        for old, new in self._remap.items():
            if old not in self._new and not any(old[-1:] == ANY and topic.startswith(old[:-1]) for topic in self._new):
                topics = sorted(self._new.items())
                choices = [described(topic, types.get(name, ""), counts.get(name, 0)) for topic, name in topics]
                turned = f"{new}:={old}, because the name in the bag comes first" if new in self._new else ""
                raise UnknownNameError("topic", old, choices, f"{self._path}: remap", turned)


def described(topic: str, msgtype: str, count: int) -> str:
    """Return a topic with its type and its number of messages, for a message."""
    return f"{topic} ({msgtype}, {count})"
